"""Points beyond a range, between which the rows far outside of it are divided: Theorem 110.

Where their counts exceed what noise explains, the parts of both make those of a longer range.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from dpmodels.postprocess.ranges import SHORTER, CellNoise
from dpmodels.released import HeldIn
from dpmodels.typing import Flags, Floats

# Most groups: with more, noise in all groups' counts at a point hides as many rows as that in one
# cell of a search. A choice.
MOST_GROUPS = 100
# Error probabilities of the tests for rows at a declared bound, by cells where a range is searched
# and by points afterwards, of that for rows at another point, and at the next. Choices.
BY_CELLS, BY_POINTS, AT_POINT, AT_NEXT = 0.001, 0.004, 1e-4, 0.1


def points_beyond(clip_range: HeldIn, lower: float, upper: float) -> tuple[float, ...]:
    """Return points beyond a range: bounds from two lengths of it on, and half as far from four."""
    low, high = clip_range.lower, clip_range.upper
    below, above, shortest = [lower], [upper], SHORTER * (high - low)
    while low - below[-1] >= shortest * (1 if len(below) == 1 else 2):
        below.append((low + below[-1]) / 2)
    while above[-1] - high >= shortest * (1 if len(above) == 1 else 2):
        above.append((high + above[-1]) / 2)
    return (*below[:-1], *above[-2::-1])


def joined(points: tuple[float, ...]) -> Floats:
    """Return the parts of a range of which points are parts, shape (3 + points, 3).

    The points are those of :class:`dpmodels.released.HeldIn`. Of a polynomial in the range its
    coefficients in the first two points' range are values of its polar form; at a point, its value.
    """
    start, end = points[:2]
    at = np.array([start, start, end, *points[2:]])
    to = np.array([start, end, end, *points[2:]])
    return np.stack([(1 - at) * (1 - to), at * (1 - to) + to * (1 - at), at * to], axis=1)


def detected(counts: Floats, is_below: Flags, noise: CellNoise) -> list[int]:
    """Return which points are up to the farthest with rows of all groups, on each side.

    And one more that may have a part of them. `counts`, shape (groups, points).
    """
    totals, chosen = counts.sum(axis=0), list[int]()
    tests = (replace(noise, seldom=seldom) for seldom in (BY_POINTS, AT_POINT, AT_NEXT))
    at_bound, at_point, at_next = (test.reach(len(counts)) for test in tests)
    for inward in (np.flatnonzero(is_below), np.flatnonzero(~is_below)[::-1]):
        limits = np.where(np.arange(len(inward)), at_point, at_bound)
        for start in np.flatnonzero(totals[inward] > limits)[:1]:
            has_next = start > 0 and totals[inward[start - 1]] > at_next
            chosen += inward[start - has_next :].tolist()
    return sorted(chosen)


def widened(clip_range: HeldIn, points: list[float]) -> HeldIn:
    """Return a range up to points beyond it, with positions of all that its parts are made of."""
    low, high = min(points[0], clip_range.lower), max(points[-1], clip_range.upper)
    places = (np.array([clip_range.lower, clip_range.upper, *points]) - low) / (high - low)
    return replace(clip_range, lower=low, upper=high, points=tuple(places.tolist()))
