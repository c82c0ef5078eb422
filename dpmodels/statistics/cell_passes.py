"""Rows that are counted again, their numbers held in released ranges or cut at released ends."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from operator import add
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpmodels.design.cells import PrivateCells
from dpmodels.formula.values import Real
from dpmodels.statistics.counts import counts
from dpmodels.statistics.statistic import Statistic, fingerprint
from dpmodels.typing import Floats


class CellPasses(Statistic):
    """Exact counts of tables of a number each, one pass over the rows for each time.

    The rows are disjoint and can be read more than once.
    """

    __slots__ = ("_count_public", "_private", "_whole")

    def __init__(
        self, private: tuple[PrivateCells, ...], whole: int, *, count_public: bool
    ) -> None:
        facts = {**private[0].facts, "units of a row": str(whole)}
        basis = fingerprint(facts, count_public=count_public)
        super().__init__("passes over counted rows", np.zeros(0, dtype=object), 0, basis)
        self._private = private
        self._whole = whole
        self._count_public = count_public

    def __add__(self, other: Statistic) -> Statistic:
        """Join passes over disjoint rows; an ArgumentError names what is not bound alike."""
        if not isinstance(other, CellPasses):
            return NotImplemented
        self._require(other)
        return self._of(self._private + other._private)

    @property
    def numbers(self) -> tuple[Real, ...]:
        """The number of each table, with the range it is held in."""
        found = (tally.measured for tally in self._private[0].tallies)
        return tuple(number for number in found if number is not None)

    @property
    def measured(self) -> Real:
        """The number of the one table."""
        (number,) = self.numbers
        return number

    @property
    def degree(self) -> int:
        """The highest power of the number that its parts give."""
        return self._private[0].tallies[0].degree

    def held(self, lower: float, upper: float) -> CellPasses:
        """Return passes over the same rows, their number held in a range of released ends."""
        return self._of(tuple(own.held(lower, upper) for own in self._private))

    def cut(self, ends: tuple[Floats, ...]) -> CellPasses:
        """Return passes over the same rows, in cells of released or public ends, by table."""
        return self._of(tuple(own.cut(ends) for own in self._private))

    def counted(self, measure: Callable[..., Statistic], *words: object) -> Statistic:
        """Measure an additive statistic on all the rows."""
        public = self._count_public
        return reduce(add, (measure(own, *words, count_public=public) for own in self._private))

    def cross(self) -> tuple[NDArray[Any], int]:
        """Hand over the parts of the rows by cell."""
        return self.counted(counts, self._whole).cross()

    def _of(self, private: tuple[PrivateCells, ...]) -> CellPasses:
        return CellPasses(private, self._whole, count_public=self._count_public)
