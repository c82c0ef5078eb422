"""Proportions of cells, ordered or not, and counts above a threshold, with noise and sampling.

Intervals of ratios of noisy sums are inverted: they are valid even if noise hides the divisor.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from dpmodels.noise.discrete import below
from dpmodels.noise.sums import half_width, half_widths
from dpmodels.postprocess.protocol import Spread
from dpmodels.postprocess.small_samples import DETECTION_SDS as DETECTION_SDS
from dpmodels.typing import Floats


class Noise(NamedTuple):
    """The noise of the parts of a table.

    `sd` is that of each part, before the table was balanced; `parts` is the number of parts with a
    public total, 0 without one; the noise of a part is a multiple of `step`, 0 for a fine lattice.
    With `paired` the three parts are those of one mean, and the first and the last share their
    noise. `added` gives for each part of the table the index of the part it was added to; it is
    empty if no parts were added. With `joined` the parts are those that it makes of released ones.
    """

    law: str
    sd: float
    parts: int
    step: float = 0.0
    paired: bool = False
    added: tuple[int, ...] = ()
    joined: Floats | None = None

    def divided(self, rows: float) -> Noise:
        """Return the noise of parts in units of `rows` rows."""
        return self._replace(sd=self.sd / rows, step=self.step / rows)

    def weights(self, part_weights: Floats) -> Floats:
        """Return the weights of independent noise variables in a weighted sum of a balanced table.

        `part_weights`, shape (..., some parts), are the weights of those parts; the others have
        weight 0. In the result, shape (..., variables), the last variable stands for the others.
        """
        part_weights = part_weights[..., list(self.added)] if self.added else part_weights
        if self.joined is not None:
            by_cell = part_weights.reshape(*part_weights.shape[:-1], -1, self.joined.shape[1])
            part_weights = by_cell @ self.joined.T
            part_weights = part_weights.reshape(*part_weights.shape[:-2], -1)
        if self.paired:
            low, middle, high, *outer = np.moveaxis(part_weights, -1, 0)
            ends = (low + high) / 2
            at_points = [weights - ends for weights in outer]
            return np.stack([(high - low) / 2, middle - ends, -ends, *at_points], axis=-1)
        if not self.parts:
            return np.concatenate([part_weights, np.zeros((*part_weights.shape[:-1], 1))], axis=-1)
        mean = part_weights.sum(axis=-1, keepdims=True) / self.parts
        n_others = max(self.parts - part_weights.shape[-1], 0)
        return np.concatenate([part_weights - mean, mean * np.sqrt(n_others)], axis=-1)

    def product(self, left: Floats, right: Floats) -> Floats:
        """Return the noise covariance of two weighted sums of the same parts, row by row."""
        products: Floats = (self.weights(left) * self.weights(right)).sum(axis=-1)
        return self.sd**2 * products


def ratio_interval(
    sums: Floats, weights: Floats, noise: Noise, sampling: Floats, level: float
) -> tuple[Floats, Floats]:
    """Invert the score of ratios ``r = Σ a_i b_i / Σ b_i``.

    `sums` are noisy b and `weights` a, shape (groups, parts); `sampling` is the sampling variance
    of the score, shape (groups,), 0 for the value on these rows. Ends have the shape (groups,),
    and are infinite where the divisor is not distinguishable from 0.

    At the true r the score ``Σ (a_i - r) b_i`` has mean 0 and a variance quadratic in r: Fieller's
    interval is where its square is below the variance times the squared quantile, that of the
    score's distribution at the estimate.

    .. [1] Fieller, E. C. (1954). "Some problems in interval estimation." Journal of the Royal
       Statistical Society B 16(2), 175-185.
    """
    top, bottom = (weights * sums).sum(axis=1), sums.sum(axis=1)
    detected = bottom > 0
    estimate = np.divide(top, bottom, out=np.zeros_like(top), where=detected)
    scores, ones = weights - estimate[:, None], np.ones_like(weights)
    noise_weights, spread = noise.weights(scores), np.sqrt(sampling)
    sds = np.sqrt(noise.sd**2 * (noise_weights**2).sum(axis=1) + spread**2)
    widths = [
        half_width(noise.law, row, noise.sd, extra_sd, level) / sd if sd > 0 else 1.0
        for row, extra_sd, sd in zip(noise_weights, spread.tolist(), sds.tolist(), strict=True)
    ]
    kappa = np.array(widths)
    # In terms of the distance from the estimate, where the score is 0: avoids cancellation.
    a = bottom**2 - kappa**2 * noise.product(ones, ones)
    half = kappa**2 * noise.product(scores, ones)
    c = kappa**2 * (noise.product(scores, scores) + sampling)
    bounded = detected & (a > 0)
    root = np.sqrt(np.where(bounded, half**2 + a * c, 0.0))
    divisor = np.where(bounded, a, 1.0)
    lower = np.where(bounded, estimate - (half + root) / divisor, -np.inf)
    return lower, np.where(bounded, estimate - (half - root) / divisor, np.inf)


# Steps above this fraction of the noise sd are treated as discrete: a choice.
SMALL_NOISE = 0.1
# Stands for an sd of 0, in rows.
LEAST = 1e-6


def count_interval(counts: Floats, noise: Noise, level: float) -> tuple[Floats, Floats]:
    """Return intervals of the counts of these rows, not below 0.

    A negative count is taken as 0, which lengthens its interval: otherwise some would be just 0.
    """
    weights = noise.weights(np.ones(1))
    if noise.law != "laplace" or noise.step < SMALL_NOISE * noise.sd:
        return within(counts, half_width(noise.law, weights, noise.sd, 0.0, level))
    other_sd = abs(float(weights[1])) * noise.sd
    return within(counts, stepped_width(noise, float(weights[0]), other_sd, level))


def within(counts: Floats, width: Floats | float) -> tuple[Floats, Floats]:
    """Return intervals about counts, not below 0; negative counts are taken as 0."""
    feasible = np.maximum(counts, 0.0)
    return np.maximum(feasible - width, 0.0), feasible + width


def stepped_width(noise: Noise, weight: float, other_sd: float, level: float) -> float:
    """Return the half-width for a weighted discrete noise variable plus a normal one."""
    from scipy.optimize import brentq

    # Probabilities of 0, 1, 2, ... steps of discrete Laplace noise of a known sd.
    square, spread = (noise.sd / noise.step) ** 2, max(other_sd, LEAST)
    ratio = max((square + 1 - np.sqrt(2 * square + 1)) / square, LEAST)
    numbers = np.arange(int(np.ceil(40 / -np.log(ratio))) + 1)
    law = np.asarray((1 - ratio) / (1 + ratio) * ratio**numbers)

    def missed(width: float) -> float:
        steps = weight * noise.step * np.arange(-len(law) + 1, len(law))
        inside = ndtr((width - steps) / spread) - ndtr((-width - steps) / spread)
        return float(np.concatenate([law[:0:-1], law]) @ inside) - level

    # The margin covers the stand-in for 0: a number of steps exactly at the end is inside.
    return float(brentq(missed, 0.0, noise.step * len(law) + 40 * spread)) + 10 * LEAST


def share_interval(counts: Floats, noise: Noise, level: float) -> tuple[Floats, Floats]:
    """Return intervals of the population's proportions of all cells, within 0 and 1, by cell.

    Wilson's interval [1]_ with the noise of the counts added to the sampling variance: all p for
    which ``(y - N p)²`` is below the squared quantile times the sum of ``N p (1 - p)`` and the
    noise variance of ``y - N p``. A negative count is taken as 0.

    .. [1] Wilson, E. B. (1927). "Probable inference, the law of succession, and statistical
       inference." Journal of the American Statistical Association 22(158), 209-212.
    """
    cells = len(counts)
    variance = float((noise.weights(np.ones(1)) ** 2).sum()) * noise.sd**2
    share = cells / noise.parts if noise.parts else 0.0
    covariance, all_cells = noise.sd**2 * (1 - share), noise.sd**2 * cells * (1 - share)
    return wilson(counts, (variance, covariance, all_cells), noise.law, level)


def wilson(
    counts: Floats, noise: tuple[float, float, float], law: str, level: float
) -> tuple[Floats, Floats]:
    """Return Wilson's intervals from noise variances of counts and total, and their covariance.

    `noise` is the variance of a count, its covariance with the total, and the total's variance.
    """
    total = float(counts.sum())
    if not total > 0:
        return np.zeros(len(counts)), np.ones(len(counts))
    feasible = np.maximum(counts, 0.0)
    variance, covariance, all_cells = noise
    estimate = np.minimum(feasible / total, 1.0)
    noisy = variance - 2 * estimate * covariance + estimate**2 * all_cells
    kappa = _factors(estimate, noisy, total, law, level)
    return score_interval(feasible, total, noise, kappa, total)


def score_interval(
    counts: Floats,
    total: float,
    noisy: tuple[Floats | float, Floats | float, Floats | float],
    kappa: Floats,
    rows: float,
) -> tuple[Floats, Floats]:
    """Solve ``(y - N p)² <= κ² (rows p (1 - p) + variance of the noise in y - N p)`` for p.

    `noisy` are the noise variance of y, its covariance with N, and the variance of N.
    """
    variance, covariance, everything = noisy
    a = total**2 - kappa**2 * (everything - rows)
    b = -2 * total * counts - kappa**2 * (rows - 2 * covariance)
    c = counts**2 - kappa**2 * variance
    inner = b * b - 4 * a * c
    bounded = (a > 0) & (inner >= 0)
    root = np.sqrt(np.where(bounded, inner, 0.0))
    divisor = np.where(bounded, 2 * a, 1.0)
    lower = np.where(bounded, (-b - root) / divisor, 0.0)
    upper = np.where(bounded, (-b + root) / divisor, 1.0)
    return np.clip(lower, 0.0, 1.0), np.clip(upper, 0.0, 1.0)


def _factors(shares: Floats, noisy: Floats, total: float, law: str, level: float) -> Floats:
    """Return quantiles of a noise variable plus a normal one, in sds of the sum."""
    noisy = np.maximum(noisy, 1e-12)
    part = np.round(noisy / (noisy + total * shares * (1 - shares)), 4)
    parts, positions = np.unique(part, return_inverse=True)
    widths = [
        half_width(law, np.ones(1), fraction**0.5, (1 - fraction) ** 0.5, level)
        for fraction in parts.tolist()
    ]
    return np.array(widths)[positions]


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
    return within(sums, noise.widths(spread, _NONE, level) + steps)


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
    return bins_of_quantile(score, noise.widths(spread, normal, level))


def bins_of_quantile(score: Floats, width: Floats) -> tuple[int, int]:
    """Return the first and the last bin that scores of running sums do not exclude."""
    below, above = score < -width, score > width
    # The last running sum counts all rows, and no bin precedes the first.
    below[-1] = False
    possible = np.flatnonzero(~below & ~np.append(False, above[:-1]))
    return (int(possible[0]), int(possible[-1])) if possible.size else (0, len(score) - 1)


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


def count_detected_with(share: float, scale: float, threshold: int) -> int:
    """Return the smallest count at which a level is released with the probability `share`."""
    low, high = 0, 2 * threshold + 1
    while high - low > 1:
        tried = (low + high) // 2
        missed = float(below(np.array([float(threshold - tried)]), scale, threshold)[0])
        low, high = (low, tried) if 1 - missed >= share else (tried, high)
    return high


def detected_count_interval(
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
        between = below(at - count, scale, threshold) - below_threshold
        return np.clip(between / np.maximum(1 - below_threshold, 1e-300), 0.0, 1.0)

    lowest = np.maximum(noisy - threshold, 1.0) - 1
    beyond = noisy + threshold + 1
    lower = _least_where(lambda c: 1 - released(c, noisy - 1) > half, lowest, beyond)
    upper = _least_where(lambda c: released(c, noisy) <= half, lowest, beyond) - 1
    return lower, np.maximum(upper, lower)


def _least_where(holds: Callable[[Floats], NDArray[np.bool_]], low: Floats, high: Floats) -> Floats:
    """Return the smallest integers above `low` from which on `holds` is true."""
    while (high - low > 1).any():
        tried = np.floor((low + high) / 2)
        enough = holds(tried) & (tried > low)
        low, high = np.where(enough, low, tried), np.where(enough, tried, high)
    return high
