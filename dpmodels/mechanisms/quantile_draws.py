"""Draws of cells by how far their ranks are from a wanted one."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpmodels.noise import Entropy
from dpmodels.noise.finite import draw_finite

# Products of ranks below are machine integers.
MACHINE = 2**62


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
