"""Intervals of expected numbers of events, from noisy counts of them."""

from __future__ import annotations

import numpy as np

from dpmodels.inference.ordered import SumNoise
from dpmodels.postprocess.protocol import Spread
from dpmodels.typing import Floats


def rate_interval(
    sums: Floats, spread: Spread, noise: SumNoise, effect: int, level: float
) -> tuple[Floats, Floats]:
    """Return intervals, not below 0, of the numbers that are expected where events are Poisson's.

    The numbers m that a score test with the noise does not refuse: where ``(y - m)²`` is below the
    squared quantile times ``effect m + v``, v the variance of the noise and `effect` how many
    events may always come together. A sum below 0 is read as 0.
    """
    feasible = np.maximum(sums, 0.0)
    normal = np.sqrt(effect * feasible)
    variance = noise.sd**2 * spread.squares + normal**2
    width = noise.widths(spread, normal, level)
    kappa = np.divide(width, np.sqrt(variance), out=np.ones_like(width), where=variance > 0)
    middle = feasible + effect * kappa**2 / 2
    root = np.sqrt((middle - feasible) ** 2 + kappa**2 * variance)
    return np.maximum(middle - root, 0.0), middle + root
