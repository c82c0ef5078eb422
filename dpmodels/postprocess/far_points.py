"""Points beyond a range, between which the rows far outside of it are divided: Theorem 110.

Where their counts exceed what noise explains, the parts of both make those of a longer range.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from dpmodels.postprocess.ranges import AT_BOUND, SHORTER, CellNoise
from dpmodels.released import HeldIn
from dpmodels.typing import Flags, Floats

# Most groups: with more, noise in all groups' counts at a point hides as many rows as that in one
# cell of a search. A choice.
MOST_GROUPS = 100
# Error probabilities of the tests for rows at a declared bound, by cells where a range is searched
# and by points afterwards, of that for rows at another point, and at the next. Choices.
BY_CELLS, BY_POINTS, AT_POINT, AT_NEXT = 0.001, 0.004, 1e-4, 0.1
# The probability with which more rows at a bound than are stated are missed.
MISSED = 0.05


def error_at_bounds(groups: int) -> float:
    """Return how often a test by cells errs: rows that it misses may be seen at points."""
    return BY_CELLS if groups <= MOST_GROUPS else AT_BOUND


def points_beyond(clip_range: HeldIn, lower: float, upper: float, groups: int) -> tuple[float, ...]:
    """Return points beyond a range: bounds from two lengths of it on, and half as far from four.

    None for more than :data:`MOST_GROUPS` groups.
    """
    if groups > MOST_GROUPS:
        return ()
    low, high = clip_range.lower, clip_range.upper
    below, above, shortest = [lower], [upper], SHORTER * (high - low)
    while low - below[-1] >= shortest * (1 if len(below) == 1 else 2):
        below.append((low + below[-1]) / 2)
    while above[-1] - high >= shortest * (1 if len(above) == 1 else 2):
        above.append((high + above[-1]) / 2)
    return (*below[:-1], *above[-2::-1])


def parts_joined(points: tuple[float, ...], degree: int, *, clustered: bool = False) -> Floats:
    """Return the parts of a range of which released ones are parts, shape (released, parts).

    Of persons in several groups five parts of the range and two numbers at each point.
    """
    if not clustered:
        return joined(points, degree)
    squares, products = joined(points, 2), joined(points, 1)
    parts = np.zeros((len(squares) + len(products), 5))
    parts[[0, 1, 2, *range(5, 2 + len(squares))], :3] = squares
    parts[[3, 4, *range(2 + len(squares), len(parts))], 3:] = products
    return parts


def joined(points: tuple[float, ...], degree: int) -> Floats:
    """Return the parts of a range of which points are parts, shape (parts + points, parts).

    The points are those of :class:`dpmodels.released.HeldIn`. Of a polynomial in the range its
    coefficients in the first two points' range are values of its polar form; at a point, its value.
    """
    is_end = np.arange(degree + 1)[:, None] > np.arange(degree)[::-1]
    places = np.where(is_end, points[1], points[0])
    places = np.vstack([places, np.repeat(points[2:], degree).reshape(-1, degree)])
    parts = np.ones((len(places), 1))
    for place in places.T[:, :, None]:
        zero = np.zeros_like(place)
        parts = np.hstack([parts * (1 - place), zero]) + np.hstack([zero, parts * place])
    return parts


def detected(counts: Floats, is_below: Flags, noise: CellNoise) -> list[int]:
    """Return which points are up to the farthest with rows of all groups, on each side.

    And one more that may have a part of them. `counts` are one or more lines of all points.
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


def most_missed(noise: CellNoise, counts: int) -> float:
    """Return how many rows at a declared bound a sum of so many counts may hide."""
    at_bound, missed = (replace(noise, seldom=seldom) for seldom in (BY_POINTS, MISSED))
    return at_bound.reach(counts) + missed.reach(counts)


def widened(clip_range: HeldIn, points: list[float]) -> HeldIn:
    """Return a range up to points beyond it, with positions of all that its parts are made of."""
    low, high = min(points[0], clip_range.lower), max(points[-1], clip_range.upper)
    places = (np.array([clip_range.lower, clip_range.upper, *points]) - low) / (high - low)
    return replace(clip_range, lower=low, upper=high, points=tuple(places.tolist()))
