"""Shapes of simulated tables: shares by cell that sum to one, on domains of any size.

``standard(4096)`` gives six that challenge algorithms differently; ``standard((64, 64))`` the same
with two axes. They depend on no data and are the same at every call.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from dpmodels.arguments import integer
from dpmodels.errors import ArgumentError, quoted
from dpmodels.typing import Floats

LEAST, MOST = 2, 2**24
_SEED: Final = 11
# One in so many cells of a sparse table has rows, and of a spiky table is a spike.
_SPARSE: Final = 50


def standard(cells: int | Sequence[int] = 4096) -> dict[str, Floats]:
    """Return six simulated shapes by name.

    Parameters
    ----------
    cells : int or sequence of int
        Number of cells, or of cells along each axis; 2 or more.

    Returns
    -------
    dict of str to ndarray
        ``sparse``: one cell in fifty holds rows, in unequal parts; ``smooth``:
        a wave; ``spiky``: half of the rows in one cell in fifty, the others
        anywhere; ``uniform``; ``bimodal``: two normal hills; ``heavy-tailed``:
        a power law from the first cell on. Each sums to 1.

    Raises
    ------
    ArgumentError
        If a number of cells is not valid.

    Examples
    --------
    >>> import dpmodels as dp
    >>> {name: shares.shape for name, shares in dp.shapes.standard(256).items()}["smooth"]
    (256,)
    """
    sizes = cells if isinstance(cells, tuple | list) else (cells,)
    if not sizes:
        raise ArgumentError(f"cells={quoted(cells)}: expected a number of cells, such as 4096")
    domain = tuple(integer("cells", size, LEAST, MOST) for size in sizes)
    axes = [(np.arange(n_cells) + 0.5) / n_cells for n_cells in domain]
    centres = np.array(np.meshgrid(*axes, indexing="ij"))  # As fractions of each axis
    shapes = {
        "sparse": _few(domain),
        "smooth": np.prod([1.2 + np.sin(5 * place) for place in centres], axis=0),
        "spiky": _few(domain) + 1 / math.prod(domain),
        "uniform": np.ones(domain),
        "bimodal": _hill(centres, 0.3, 0.06) + 0.6 * _hill(centres, 0.7, 0.1),
        "heavy-tailed": (1 + 200 * np.linalg.norm(centres, axis=0)) ** -1.5,
    }
    return {name: shares / shares.sum() for name, shares in shapes.items()}


def _hill(centres: NDArray[np.float64], centre: float, width: float) -> Floats:
    return np.asarray(np.exp(-(((centres - centre) / width) ** 2).sum(axis=0) / 2))


def _few(domain: tuple[int, ...]) -> Floats:
    rng = np.random.default_rng(_SEED)
    cells = math.prod(domain)
    occupied = rng.choice(cells, size=max(cells // _SPARSE, 1), replace=False)
    shares = np.zeros(cells)
    shares[occupied] = rng.pareto(1.2, size=len(occupied)) + 0.1
    return np.asarray(shares / shares.sum()).reshape(domain)
