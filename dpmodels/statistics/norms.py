"""Exact counts of rows by their length, and the exact sum of the rows."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpmodels.design import PrivateDesign
from dpmodels.noise.lattice import Lattice
from dpmodels.statistics.statistic import Statistic, additive, fingerprint
from dpmodels.typing import Floats, Integers


@additive
def norm_counts(
    design: PrivateDesign, lattice: Lattice, limits: tuple[int, ...], *, count_public: bool
) -> Statistic:
    """Count complete rows by the cell that their integer norm lies in.

    Cell k is of squared norms above ``limits[k - 1]`` and up to ``limits[k]``,
    the last of all above; an incomplete row is in none. A row adds 1 to one cell
    at most, so the L2 sensitivity is √2 when a row is replaced, 1 when it is
    added or removed; the L1 sensitivity 2 and 1.
    """
    ends = np.array(limits, dtype=np.float64)
    total, rows = np.zeros(len(limits) + 1, dtype=np.int64), 0

    def counted(block: Floats) -> Integers:
        # Integers below 2**53 add up exactly in any order.
        squares = np.einsum("ij,ij->j", block[1:], block[1:])[block[0] > 0]
        return np.bincount(np.searchsorted(ends, squares), minlength=len(ends) + 1)

    for found, seen in design.blocks(counted, lattice, count_public=count_public):
        total += found
        rows += seen
    facts = {**design.facts, "lattice": repr(lattice), "limits": str(limits)}
    basis = fingerprint(facts, count_public=count_public)
    return Statistic("rows by length", total.astype(object), rows, basis)


@additive
def row_sums(design: PrivateDesign, lattice: Lattice, *, count_public: bool) -> Statistic:
    """Sum ``(2**bits, x)`` over the rows exactly; an incomplete row adds zero.

    Sensitivity: that of :func:`dpmodels.mechanisms.noisy_count.gaussian_count`.
    """
    total: NDArray[Any] = np.zeros(lattice.columns + 1, dtype=object)
    rows = 0
    sums = design.blocks(lambda z: z.sum(axis=1), lattice, count_public=count_public)
    for found, seen in sums:
        total = total + found.astype(np.int64)
        rows += seen
    facts = {**design.facts, "lattice": repr(lattice)}
    basis = fingerprint(facts, count_public=count_public)
    return Statistic("sums of rows", total, rows, basis)
