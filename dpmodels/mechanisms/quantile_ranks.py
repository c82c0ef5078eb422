"""Draws by rank errors, and at which ranks, so that noise leaves quantiles among the rows."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpmodels.noise import Entropy
from dpmodels.noise.finite import draw_finite

# Products of ranks below are machine integers.
MACHINE = 2**62
# A number of rows is told from none where it exceeds so many of its noise sds: a choice.
TOLD = 4.0
# Weight of the empty range in cells at the quantile, at most: where a rank is moved to, since
# rows are in many cells as a rule; and where there is a quantile at all, were they in one. Choices.
NEAR, MISSED = 16.0, 0.05


@dataclass(frozen=True)
class Drawing:
    """Public terms of the draws for one quantile of one group.

    A draw falls a rank error of 1/c rows away, c its concentration, where rows are; but cells
    without rows above the largest or below the smallest all have one rank error and may be nearly
    all of the grid. They weigh less than m cells at the quantile where the rank wanted is
    ``log(grid/m) / c`` rows from their end.
    """

    prob: float  # The quantile, from 0 to 1
    grid: int  # Cells of the grid
    rows: float  # Released number of the group's rows, above 0

    def reach(self, concentration: float, weight: float) -> float:
        """Return how far from the end of the rows a rank has to be, as a share of them."""
        # Half a row more, so that the first and the last are met without noise.
        return (max(math.log(self.grid / weight), 0.0) / concentration + 0.5) / self.rows

    def middle(self, concentration: float) -> float:
        """Return the share of the rows to draw the quantile at; nan where rows are too few."""
        if self.reach(concentration, MISSED) > 0.5:
            return math.nan
        reach = self.reach(concentration, NEAR)
        return min(max(self.prob, reach), 1 - reach)


def draw_cell(ranks: NDArray[Any], prob: Fraction, concentration: float, entropy: Entropy) -> int:
    """Draw a cell of the grid by the rank errors of all.

    `ranks`, shape (cells + 1,), are the rows below each cell's lower end, last all rows; the
    concentration is by row.
    """
    unit = Fraction(concentration) / prob.denominator
    return draw_finite(rank_errors(ranks, prob), unit, entropy)


def rank_errors(ranks: NDArray[Any], prob: Fraction) -> NDArray[Any]:
    """Return how far the wanted rank is from those of each cell, times the denominator of prob."""
    rows = int(ranks[-1])
    wide = rows * prob.denominator < MACHINE
    scaled = (ranks if wide else ranks.astype(object)) * prob.denominator
    wanted = prob.numerator * rows
    return np.asarray(np.maximum(np.maximum(scaled[:-1] - wanted, wanted - scaled[1:]), 0))
