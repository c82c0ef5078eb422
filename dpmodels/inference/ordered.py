"""Intervals of sums of ordered cells, of their proportions, and of quantiles."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from dpmodels.inference.proportions import SMALL_NOISE, score_interval
from dpmodels.noise.sums import half_widths
from dpmodels.postprocess.protocol import Spread
from dpmodels.typing import Floats

# From the weights of cells inside a sum and of all others to the noise in such sums.
Sums = Callable[[Floats, Floats], Spread]

_NONE, _ONE = np.zeros(()), np.ones(())


class SumNoise(NamedTuple):
    """The distribution, sd and step of the independent noise variables in sums."""

    law: str
    sd: float
    step: float

    def divided(self, rows: int) -> SumNoise:
        """Return the noise of sums in units of `rows` rows."""
        return SumNoise(self.law, self.sd / rows, self.step / rows)

    def widths(self, spread: Spread, normal_sd: Floats, level: float) -> Floats:
        """Return half-widths for the sum of the noise and a normal variable."""
        return half_widths(self.law, *spread, self.sd, normal_sd, level)


def sum_interval(
    sums: Floats, spread: Spread, noise: SumNoise, level: float
) -> tuple[Floats, Floats]:
    """Return intervals of sums of counts of these rows, not below 0.

    A negative sum is taken as 0. For noise with large steps half a step is added, since noise is a
    multiple of the step; unless, by Chebyshev's inequality, it is 0 with probability `level`.
    """
    sds = noise.sd * np.sqrt(spread.squares)
    seldom = sds**2 <= (1 - level) * noise.step**2
    steps = np.where((noise.step > SMALL_NOISE * sds) & ~seldom, noise.step / 2, 0.0)
    width = noise.widths(spread, _NONE, level) + steps
    feasible = np.maximum(sums, 0.0)
    return np.maximum(feasible - width, 0.0), feasible + width


def part_interval(
    sums: Floats, total: float, of: Sums, noise: SumNoise, level: float, *, sampling: bool
) -> tuple[Floats, Floats]:
    """Return intervals of the proportions of sums of cells in the sum of all cells.

    For these rows; for the population if `sampling`.
    """
    if not total > 0:
        return np.zeros(len(sums)), np.ones(len(sums))
    variance, other_variance, total_variance = (
        noise.sd**2 * of(*sides).squares for sides in ((_ONE, _NONE), (_NONE, _ONE), (_ONE, _ONE))
    )
    covariance = (variance + total_variance - other_variance) / 2
    feasible = np.maximum(sums, 0.0)
    estimate = np.minimum(feasible / total, 1.0)
    rows = total if sampling else 0.0
    spread = of(1 - estimate, -estimate)
    normal = np.sqrt(rows * estimate * (1 - estimate))
    sd = np.sqrt(noise.sd**2 * spread.squares + normal**2)
    width = noise.widths(spread, normal, level)
    kappa = np.divide(width, sd, out=np.ones_like(width), where=sd > 0)
    return score_interval(feasible, total, (variance, covariance, total_variance), kappa, rows)


def quantile_bins(
    running: Floats, prob: float, of: Sums, noise: SumNoise, level: float, *, sampling: bool
) -> tuple[int, int]:
    """Return the first and the last bin of an interval for a quantile.

    `running` are the sums of the first 1, 2, ... cells, and `of` gives their noise. A bin is
    excluded if its running sum is below the quantile's rank, or the one before it above, by more
    than noise, and `sampling`, explain. The quantile's bin is excluded with probability at most ``1
    - level``, so the interval covers.
    """
    total = float(running[-1])
    if not total > 0:
        return 0, len(running) - 1
    score = running - prob * total
    spread = of(np.asarray(1 - prob), np.asarray(-prob))
    normal = np.sqrt((total if sampling else 0.0) * prob * (1 - prob))
    width = noise.widths(spread, normal, level)
    below, above = score < -width, score > width
    # The last running sum counts all rows, and no bin precedes the first.
    below[-1] = False
    possible = np.flatnonzero(~below & ~np.append(False, above[:-1]))
    return (int(possible[0]), int(possible[-1])) if possible.size else (0, len(running) - 1)


# Intervals of expected numbers of events, from noisy counts.


def rate_interval(
    sums: Floats, spread: Spread, noise: SumNoise, effect: int, level: float
) -> tuple[Floats, Floats]:
    """Return intervals, not below 0, of the expected numbers of Poisson events.

    The numbers m that a score test with noise does not reject: ``(y - m)²`` is below the squared
    quantile times ``effect m + v``, v the noise variance and `effect` the number of events that may
    occur together. A negative sum is taken as 0.
    """
    feasible = np.maximum(sums, 0.0)
    normal = np.sqrt(effect * feasible)
    variance = noise.sd**2 * spread.squares + normal**2
    width = noise.widths(spread, normal, level)
    kappa = np.divide(width, np.sqrt(variance), out=np.ones_like(width), where=variance > 0)
    middle = feasible + effect * kappa**2 / 2
    root = np.sqrt((middle - feasible) ** 2 + kappa**2 * variance)
    return np.maximum(middle - root, 0.0), middle + root
