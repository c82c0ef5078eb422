"""Where the cells of the next round are cut: by noisy counts of this one alone."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from dpmodels.mechanisms.quantile_facts import QuantileFacts
from dpmodels.postprocess.quantiles import NoisyCells, rising
from dpmodels.typing import Floats

# Of the first round.
FIRST_CELLS = 64
# For each quantile, by the rounds that are left: its noise is looked at through the one window,
# its interval through the other. Choices; more cells have more noise in their sums.
NEAR = {1: 5, 2: 12, 3: 16}
AROUND = {1: 5, 2: 10, 3: 16}
# More for the last round, where their noise stays below so much of the sampling variance; and at
# most so many for all quantiles together.
SPARE, MOST, MOST_TOGETHER = 0.04, 40, 120
# A cell is heavy from so many times the count that pieces have: a choice.
HEAVY = 2.5
# Cells of a tree, by the root of the rows over the noise sd of a count; and how few, how many.
# Choices, tried on rows of many shapes.
EVEN, PIECES = 4.0, (16, 4096)
# Noise sds that a window reaches beyond: of this round, and of the last. Choices.
NOISE_REACH, SLACK = 2.5, 0.3

Ends = NDArray[np.intp]


def first_ends(cells: int) -> Ends:
    """Return the ends of the first round's cells, in cells of the grid."""
    return equal_ends(cells, FIRST_CELLS)


def equal_ends(cells: int, most: int) -> Ends:
    """Return the ends of at most so many equal runs of the grid's cells."""
    return _whole(np.linspace(0, cells, min(cells, most) + 1))


def even_ends(ends: Ends, found: NoisyCells, facts: QuantileFacts, last_sd: float) -> Ends:
    """Return the ends of cells of equal noisy counts, from the lowest quantile to the highest.

    The rank of a cell is off by its count at most, by noise in proportion to the root of their
    number: so there are the more the larger the counts are over the noise sd of the last round.
    """
    probs, mass = np.array(facts.probs), _mass(found)
    rows, variance = float(mass.sum()), probs * (1 - probs)
    if not rows > 0:
        return equal_ends(int(ends[-1]), PIECES[0])
    reach = NOISE_REACH * np.array([found.rank_sd(prob) for prob in facts.probs]) + 0.5
    if facts.level is not None:
        z = float(ndtri((1 + facts.level) / 2)) + SLACK
        reach += z * np.sqrt(found.effect * rows * variance + PIECES[1] * last_sd**2)
    low, high = (probs * rows - reach).min(), (probs * rows + reach).max()
    low, high = max(low, 0.0), min(high, rows)
    pieces = int(np.clip(EVEN * math.sqrt((high - low) / last_sd), *PIECES))
    middle, half = np.array([(low + high) / 2]), np.array([(high - low) / 2])
    cuts = _cut(ends, mass, middle / rows, half, pieces)
    return _whole(np.concatenate([[0, ends[-1]], cuts]))


def _mass(found: NoisyCells) -> Floats:
    """Return counts of cells that are not negative."""
    return np.diff(rising(np.concatenate([[0.0], np.cumsum(found.counts)])))


def next_ends(
    ends: Ends, found: NoisyCells, facts: QuantileFacts, left: int, last_sd: float
) -> Ends:
    """Return the ends of the next round's cells.

    `left` rounds are to come; the counts of the last have noise of sd `last_sd`. Cells that no
    window touches become one. In those it touches, cuts leave equal noisy counts between them: a
    count that one cell has, wherever in it, is cut evenly, empty cells are put together; what
    is heavy is kept apart from what is beside it, so that values that many rows share are found.
    """
    probs, cells = np.array(facts.probs), len(found.counts)
    near, around = (min(own[left] * len(probs), MOST_TOGETHER) for own in (NEAR, AROUND))
    spare = SPARE * found.effect * found.total / last_sd**2
    if left == 1:
        around = int(np.clip(spare, around, max(around, min(MOST * len(probs), MOST_TOGETHER))))
    variance = probs * (1 - probs)
    now = found.noise_sd * np.sqrt(variance * cells + 1)
    last = last_sd * np.sqrt(variance * (near + around) + 1)
    mass = _mass(found)
    noise = NOISE_REACH * now + SLACK * last + 0.5
    cuts = [_cut(ends, mass, probs, noise, near)]
    if facts.level is not None:
        z = float(ndtri((1 + facts.level) / 2)) + SLACK
        spread = z * np.sqrt(found.effect * found.total * variance + last**2)
        cuts.append(_cut(ends, mass, probs, noise + spread, around))
    return _whole(np.concatenate([[0, ends[-1]], *cuts]))


def _cut(ends: Ends, mass: Floats, probs: Floats, reach: Floats, pieces: int) -> Floats:
    """Cut the cells within reach of the quantiles' ranks, together into so many pieces."""
    below = np.concatenate([[0.0], np.cumsum(mass)])
    if not below[-1] > 0:
        return ends.astype(np.float64)
    low, high = np.clip(below[-1] * probs + np.array([[-1.0], [1.0]]) * reach, 0.0, below[-1])
    first = np.searchsorted(below, low, side="right") - 1
    last = np.searchsorted(below, high, side="left")
    cells = np.arange(len(mass))
    touched = ((cells >= first[:, None]) & (cells < last[:, None])).any(axis=0)
    held = np.where(touched, mass, 0.0)
    heavy = held * pieces >= HEAVY * held.sum()
    borders = np.flatnonzero(np.diff(touched) | np.diff(heavy)) + 1
    sums = np.concatenate([[0.0], np.cumsum(held)])
    at = np.linspace(0, sums[-1], pieces + 1)[1:-1]
    return np.concatenate([ends[borders], np.interp(at, sums, ends)])


def _whole(ends: Floats) -> Ends:
    return np.unique(np.rint(ends)).astype(np.intp)
