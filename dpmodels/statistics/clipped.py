"""Exact moments of the rows clipped to 1, 1/2, 1/4, ... of the ball, in one pass."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpmodels.design import PrivateDesign
from dpmodels.noise.lattice import Lattice
from dpmodels.statistics.statistic import Statistic, additive, fingerprint
from dpmodels.typing import Floats, Integers

# Sums below this leave room for a few levels, and for the sums of other rows.
FITS_INT64 = 2**56


class Band(NamedTuple):
    """Which rows a sum of products is of."""

    doublings: int  # How often the rows can be doubled inside the ball
    held: bool  # Whether the sum is of the rows brought to the ball's surface


@additive
def clipped_moments(
    design: PrivateDesign, lattice: Lattice, halvings: int, *, count_public: bool
) -> Statistic:
    """Sum ``z zᵀ`` over the rows exactly, clipped at each of several radii.

    Level t is of the rows magnified by ``2**t`` and held in the ball: ``z = (2**bits, 2**t x)``
    where that is inside, ``z = (2**bits, u)`` where it is not, with u the row brought to the
    ball's surface and rounded towards zero. Level t over ``4**t`` is the second moment of the rows
    clipped to ``2**-t`` of the ball.

    The integers, shape (halvings + 1, columns + 1, columns + 1), are the same for any chunking,
    order or number of threads, and Python's where 64 bits might not hold them; an incomplete row
    adds zero.

    A row that can be doubled b times inside the ball is ``2**t x`` up to level b and u beyond: two
    sums of products per band hold every level.
    """
    sums: dict[Band, NDArray[Any]] = {}
    size, rows = lattice.columns + 1, 0
    kind: np.dtype[Any] = np.dtype(np.int64)
    for bands, count in design.blocks(
        lambda block: _products(block, lattice, halvings), lattice, count_public=count_public
    ):
        rows += count
        if rows * 4**lattice.bits >= FITS_INT64:
            kind = np.dtype(object)
        for band, product in bands.items():
            exact: NDArray[Any] = product.astype(kind, copy=False)
            sums[band] = sums[band] + exact if band in sums else exact
    facts = {**design.facts, "lattice": repr(lattice), "halvings": str(halvings)}
    basis = fingerprint(facts, count_public=count_public)
    return Statistic("clipped moments", _levels(sums, halvings, size, kind), rows, basis)


def _products(block: Floats, lattice: Lattice, halvings: int) -> dict[Band, Integers]:
    """Sum products over each band of a block; every partial sum is below 2**53."""
    norms = np.einsum("ij,ij->j", block[1:], block[1:])
    limits = lattice.radius**2 / 4.0 ** np.arange(1, halvings + 1)
    bands = (norms <= limits[:, None]).sum(axis=0)
    found = {}
    for band in np.unique(bands).tolist():
        chosen = bands == band
        rows = block[:, chosen]
        found[Band(band, held=False)] = (rows @ rows.T).astype(np.int64)
        if band < halvings:
            _hold(rows, norms[chosen], lattice)
            found[Band(band, held=True)] = (rows @ rows.T).astype(np.int64)
    return found


def _hold(rows: Floats, norms: Floats, lattice: Lattice) -> None:
    """Bring integer rows to the ball's surface from inside, in place."""
    np.multiply(rows[1:], lattice.radius * (1 - 2.0**-40) / np.sqrt(norms), out=rows[1:])
    np.trunc(rows, out=rows)
    outside = ~(np.einsum("ij,ij->j", rows[1:], rows[1:]) <= lattice.radius**2)
    rows[1:, outside] = 0.0


def _levels(
    sums: dict[Band, NDArray[Any]], halvings: int, size: int, kind: np.dtype[Any]
) -> NDArray[Any]:
    """Assemble the levels; no entry exceeds the number of rows times the squared radius."""
    levels: NDArray[Any] = np.zeros((halvings + 1, size, size), dtype=kind)
    inside, outside = levels[0].copy(), levels[0].copy()
    for band, exact in sums.items():
        if not band.held:
            inside += exact
    for level in range(halvings + 1):
        levels[level] = inside * _magnified(level, size) + outside
        inside -= sums.get(Band(level, held=False), 0)
        outside += sums.get(Band(level, held=True), 0)
    return levels


def _magnified(level: int, size: int) -> Integers:
    """Return what each product grows by when the rows are doubled so many times."""
    factor = np.full(size, 2**level, dtype=np.int64)
    factor[0] = 1
    return np.asarray(np.multiply.outer(factor, factor))
