"""Repeated counts of rows, with values clipped to released ranges or binned at released edges."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from operator import add

import numpy as np
from numpy.typing import NDArray

from dpmodels.design.cells import PrivateCells
from dpmodels.formula.tally import Placed
from dpmodels.formula.values import Real
from dpmodels.statistics.counts import counts
from dpmodels.statistics.scattered import additive
from dpmodels.statistics.statistic import Statistic, digest_of, fingerprint
from dpmodels.typing import Floats, Integers


class CellPasses(Statistic):
    """Exact counts of tables with one number each; every count is a pass over the rows.

    The rows are disjoint and can be read more than once.
    """

    __slots__ = ("_count_public", "_private", "_units_per_row")

    def __init__(
        self, private: tuple[PrivateCells, ...], units_per_row: int, *, count_public: bool
    ) -> None:
        facts = {**private[0].facts, "units of a row": str(units_per_row)}
        basis = fingerprint(facts, count_public=count_public)
        super().__init__("passes over counted rows", np.zeros(0, dtype=object), 0, basis)
        self._private = private
        self._units_per_row = units_per_row
        self._count_public = count_public

    def __add__(self, other: Statistic) -> Statistic:
        """Join passes over disjoint rows; an ArgumentError names the first difference."""
        if not isinstance(other, CellPasses):
            return NotImplemented
        self._require(other)
        return self._of(self._private + other._private)

    @property
    def numbers(self) -> tuple[Real, ...]:
        """The number of each table, with the range it is clipped to."""
        numbers = (tally.measured for tally in self._private[0].tallies)
        return tuple(number for number in numbers if number is not None)

    @property
    def measured(self) -> Real:
        """The number of the one table."""
        (number,) = self.numbers
        return number

    @property
    def degree(self) -> int:
        """The highest power of the number that its parts give."""
        return self._private[0].tallies[0].degree

    def in_units(self, units_per_row: int) -> CellPasses:
        """Return passes over the same rows, which count so many units of each."""
        return CellPasses(self._private, units_per_row, count_public=self._count_public)

    def clipped(self, lower: float, upper: float) -> CellPasses:
        """Return passes over the same rows, with the number clipped to a released range."""
        return self._of(tuple(private.clipped(lower, upper) for private in self._private))

    def cut(self, edges: tuple[Floats, ...]) -> CellPasses:
        """Return passes over the same rows, in cells with released or public edges, by table."""
        return self._of(tuple(private.cut(edges) for private in self._private))

    def counted(self, measure: Callable[..., Statistic], *words: object) -> Statistic:
        """Measure an additive statistic on all the rows."""
        public = self._count_public
        return reduce(
            add, (measure(private, *words, count_public=public) for private in self._private)
        )

    def cross(self) -> tuple[NDArray[np.object_], int]:
        """Return the parts of the rows by cell."""
        return self.counted(counts, self._units_per_row).cross()

    def _of(self, private: tuple[PrivateCells, ...]) -> CellPasses:
        return CellPasses(private, self._units_per_row, count_public=self._count_public)


# Exact numbers of rows by the place of their number in its public range.


@additive
def place_counts(private: PrivateCells, edges: Floats, *, count_public: bool) -> Statistic:
    """Count complete rows of one table by the cell of their number, over all groups.

    `edges`, shape (cells + 1,), are in the number's unit and rise from its lower bound to its upper
    one. Cell k is of numbers above ``edges[k]`` and up to ``edges[k + 1]``; the first includes its
    lower edge. A complete row adds 1 to one cell, an incomplete one nothing: the L1 sensitivity is
    2 when a row is replaced, 1 when it is added or removed; the L2 sensitivity √2 and 1.
    """
    cells = len(edges) - 1
    inner = (edges[1:-1] - edges[0]) / (edges[-1] - edges[0])
    total, n_rows = np.zeros(cells, dtype=np.int64), 0

    def counted(placed: tuple[Placed, ...]) -> Integers:
        (placement,) = placed
        assert placement.positions is not None
        at = np.searchsorted(inner, placement.positions[placement.cells >= 0])
        return np.bincount(at, minlength=cells)

    for part, count in private.blocks(counted, count_public=count_public):
        total += part
        n_rows += count
    facts = {**private.facts, "ends of cells": digest_of(edges)}
    basis = fingerprint(facts, count_public=count_public)
    return Statistic("rows by place", total.astype(object), n_rows, basis)
