"""Exact counts of rows by the size of each column, and by their length after a transform."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpmodels.design import PrivateDesign
from dpmodels.noise.lattice import Lattice
from dpmodels.statistics.passes import turned
from dpmodels.statistics.statistic import Statistic, additive, digest_of, fingerprint
from dpmodels.statistics.turn import turn
from dpmodels.typing import Floats, Integers


@additive
def column_counts(
    design: PrivateDesign, lattice: Lattice, halvings: int, *, count_public: bool
) -> Statistic:
    """Count complete rows, for each column, by the cell that its squared integer lies in.

    The integers have the shape (columns, halvings + 1). Cell k is of squared integers up to
    ``4**bits / 2**(halvings - k)`` and above those of cell k - 1; 0 is in the first that 1 can be
    in. A row adds 1 to one cell of each column, an incomplete row nothing, so the L2
    sensitivity is ``√(2 columns)`` when a row is replaced and ``√columns`` when it is added or
    removed.
    """
    size, least = halvings + 1, max(halvings - 2 * lattice.bits, 0)
    starts = size * np.arange(lattice.columns)[:, None]

    def counted(block: Floats) -> Integers:
        # A whole number is at most a power of 2 where half less is below it.
        _, powers = np.frexp(block[1:] ** 2 - 0.5)
        cells = np.maximum(powers + (halvings - 2 * lattice.bits), 0) + starts
        found = np.bincount(cells.ravel(), minlength=starts.size * size)
        found = found.reshape(starts.size, size)
        found[:, least] -= np.count_nonzero(block[0] == 0)
        return found

    facts = {"halvings": str(halvings)}
    return _summed("rows by column", counted, design, lattice, facts, count_public)


@additive
def turned_counts(
    design: PrivateDesign,
    lattice: Lattice,
    transform: Floats,
    limits: tuple[int, ...],
    *,
    count_public: bool,
) -> Statistic:
    """Count complete rows x by the length of ``T x``, held in the unit ball.

    T, shape (columns, columns), is finite and a function of released values and public facts. The
    integer vector that a row becomes is that of :meth:`dpmodels.statistics.Passes.within`, so it is
    in one cell at most: the L2 sensitivity is √2 when a row is replaced, 1 when it is added or
    removed.
    """
    ends, whole = np.array(limits, dtype=np.float64), turn(transform, lattice)

    def counted(block: Floats) -> Integers:
        rows = turned(block, whole, lattice)[1:, block[0] > 0]
        squares = np.einsum("ij,ij->j", rows, rows)
        return np.bincount(np.searchsorted(ends, squares), minlength=len(ends) + 1)

    facts = {"limits": str(limits), "transform": digest_of(transform)}
    return _summed("turned rows by length", counted, design, lattice, facts, count_public)


def _summed(
    name: str,
    counted: Callable[[Floats], Integers],
    design: PrivateDesign,
    lattice: Lattice,
    words: dict[str, str],
    count_public: bool,
) -> Statistic:
    total: NDArray[Any] = counted(np.zeros((lattice.columns + 1, 0))).astype(object)
    rows = 0
    for found, seen in design.blocks(counted, lattice, count_public=count_public):
        total = total + found
        rows += seen
    facts = {**design.facts, "lattice": repr(lattice), **words}
    return Statistic(name, total, rows, fingerprint(facts, count_public=count_public))
