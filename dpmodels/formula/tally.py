"""What rows are counted by: the cells of declared levels, and a number's place in its range."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import reduce

import numpy as np
from numpy.typing import NDArray

from dpmodels.errors import FormulaError, shorten
from dpmodels.formula.sides import positions
from dpmodels.formula.values import Category, Columns, Real
from dpmodels.typing import Floats

# A choice: counts that are released, and fit, at once.
MAX_CELLS = 1_000_000


@dataclass(frozen=True)
class Placed:
    """Each row's flat cell, -1 if incomplete, and the measured number's place in [0, 1]."""

    cells: NDArray[np.intp]
    positions: Floats | None


@dataclass(frozen=True)
class Tally:
    """A table that every row adds one to, in all.

    A cell for each combination of the factors' levels, and in each the power sums of `measured` up
    to `degree`, or counts alone where it is None. A table has at most so many parts of cells.
    `clustered` tells of one that every person adds one to, whose rows may be in several cells or in
    none: degree 2.
    """

    factors: tuple[Category, ...]
    measured: Real | None = None
    degree: int = 0
    clustered: bool = False
    most: int = MAX_CELLS

    def __post_init__(self) -> None:
        if self.cells * self.parts > self.most:
            names = " + ".join(factor.code for factor in self.factors)
            raise FormulaError(
                f"{shorten(names)!r} has {self.cells:,} combinations of levels; at most "
                f"{self.most // self.parts:,} are counted. Use fewer factors or levels"
            )

    @property
    def shape(self) -> tuple[int, ...]:
        """Number of levels of each factor."""
        return tuple(len(factor.levels) for factor in self.factors)

    @property
    def cells(self) -> int:
        """Number of combinations of levels; 1 without factors."""
        return math.prod(self.shape)

    @property
    def parts(self) -> int:
        """Numbers of each cell: the Bernstein parts, and two where persons are in several."""
        return self.degree + 1 + 2 * self.clustered

    @property
    def size(self) -> int:
        """Length of the statistic: parts of each cell, and the incomplete rows."""
        return self.cells * self.parts + 1

    def cut(self, ends: Floats) -> Tally:
        """Return the table of its number's cells, without groups: up to each of the ends."""
        number = self.measured
        assert number is not None
        evaluate, inner = number.evaluate, ends[1:-1]

        def cells(columns: Columns) -> Floats:
            values = np.asarray(evaluate(columns))
            return np.where(np.isnan(values), np.nan, np.searchsorted(inner, values))

        return Tally((Category(number.code, tuple(ends[1:].tolist()), cells),))

    def place(self, columns: Columns) -> Placed:
        """Find the cell and the position of each row."""
        codes = [factor.evaluate(columns) for factor in self.factors]
        where = None if self.measured is None else positions(self.measured, columns)
        known = [*codes, *([] if where is None else [where])]
        missing = reduce(np.logical_or, map(np.isnan, known))
        flat = np.zeros(len(missing), dtype=np.intp)
        for code, size in zip(codes, self.shape, strict=True):
            flat = flat * size + np.where(missing, 0.0, code).astype(np.intp)
        flat[missing] = -1
        return Placed(flat, where)
