"""Intervals for counts that were released because they are large enough with their noise."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from dpmodels.noise.discrete import below
from dpmodels.typing import Floats


def found_with(share: float, scale: float, threshold: int) -> int:
    """Return the least number of rows with which a level is released with a probability."""
    low, high = 0, 2 * threshold + 1
    while high - low > 1:
        tried = (low + high) // 2
        enough = (
            1 - float(below(np.array([float(threshold - tried)]), scale, threshold)[0]) >= share
        )
        low, high = (low, tried) if enough else (tried, high)
    return high


def count_interval(
    noisy: Floats, scale: float, threshold: int, level: float
) -> tuple[Floats, Floats]:
    """Return both ends of intervals for the exact counts, shape (counts,) each.

    They hold the counts c for which a noisy one as far out has a probability of more than half of
    what the level leaves, among those that are released: ``P(c + Z >= n | c + Z > most)``, which
    rises with c, and ``P(c + Z <= n | c + Z > most)``, which falls. Both ends are found by
    bisection among whole numbers from 1 to ``n + most``.
    """
    half = (1 - level) / 2

    def released(count: Floats, at: Floats) -> Floats:
        """Return the probability of at most `at` for a count, given that it is released."""
        below_threshold = below(threshold - count, scale, threshold)
        below_value = below(at - count, scale, threshold)
        return np.clip(
            (below_value - below_threshold) / np.maximum(1 - below_threshold, 1e-300), 0.0, 1.0
        )

    lowest = np.maximum(noisy - threshold, 1.0) - 1
    beyond = noisy + threshold + 1
    lower = _least_where(lambda c: 1 - released(c, noisy - 1) > half, lowest, beyond)
    upper = _least_where(lambda c: released(c, noisy) <= half, lowest, beyond) - 1
    return lower, np.maximum(upper, lower)


def _least_where(holds: Callable[[Floats], Any], low: Floats, high: Floats) -> Floats:
    """Return the least whole numbers above the low ones from which on something holds."""
    while (high - low > 1).any():
        tried = np.floor((low + high) / 2)
        enough = holds(tried) & (tried > low)
        low, high = np.where(enough, low, tried), np.where(enough, tried, high)
    return high
