"""Exact augmented moments of the rows: how many, their sum, their sum of squares."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpmodels.design import PrivateDesign
from dpmodels.noise.lattice import Lattice
from dpmodels.statistics.additive import additive
from dpmodels.statistics.statistic import Statistic, fingerprint

# Block products are below 2**53; 2**9 of them stay below 2**62.
BLOCKS_PER_CARRY = 512


@additive
def moments(design: PrivateDesign, lattice: Lattice, *, count_public: bool) -> Statistic:
    """Sum ``z zᵀ`` over the rows exactly, with ``z = (2**bits, x)`` on the lattice.

    Every partial sum of a block's product is an integer below 2**53.

    Entry (0, 0) of the integers, shape (columns + 1, columns + 1), is the number of complete rows
    times ``4**bits``, the rest of row 0 the sum of the rows times ``2**bits``; an incomplete row
    adds zero. They are the same for any chunking, order or number of threads.
    """
    size = lattice.columns + 1
    total: NDArray[Any] = np.zeros((size, size), dtype=object)
    pending = np.zeros((size, size), dtype=np.int64)
    rows = 0
    products = design.blocks(lambda z: z @ z.T, lattice, count_public=count_public)
    for block, (product, count) in enumerate(products, start=1):
        pending += product.astype(np.int64)
        rows += count
        if block % BLOCKS_PER_CARRY == 0:
            total = total + pending
            pending[:] = 0
    basis = fingerprint({**design.facts, "lattice": repr(lattice)}, count_public=count_public)
    return Statistic("augmented moments", total + pending, rows, basis)
