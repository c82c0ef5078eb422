"""Intervals for counts that were released because the noisy count exceeds a threshold."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from dpmodels.noise.discrete import below
from dpmodels.typing import Floats


def count_detected_with(share: float, scale: float, threshold: int) -> int:
    """Return the smallest count at which a level is released with the probability `share`."""
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

    Given that the count is released, both tail probabilities ``P(c + Z >= n | c + Z > threshold)``,
    which rises with c, and ``P(c + Z <= n | c + Z > threshold)``, which falls, exceed ``(1 - level)
    / 2`` for the counts c of the interval. Both ends are found by bisection among integers from 1
    to ``n + threshold``.
    """
    half = (1 - level) / 2

    def released(count: Floats, at: Floats) -> Floats:
        """Return the probability of a noisy count up to `at`, given that it is released."""
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
    """Return the smallest integers above `low` from which on `holds` is true."""
    while (high - low > 1).any():
        tried = np.floor((low + high) / 2)
        enough = holds(tried) & (tried > low)
        low, high = np.where(enough, low, tried), np.where(enough, tried, high)
    return high
