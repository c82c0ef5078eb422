"""Proportions of cells among complete rows, with noise and sampling."""

from __future__ import annotations

import numpy as np
from scipy.special import ndtr

from dpmodels.inference.ratios import Noise
from dpmodels.noise.sums import half_width
from dpmodels.typing import Floats

# Steps above this fraction of the noise sd are treated as discrete: a choice.
SMALL_NOISE = 0.1
# Stands for an sd of 0, in rows.
LEAST = 1e-6


def count_interval(counts: Floats, noise: Noise, level: float) -> tuple[Floats, Floats]:
    """Return intervals of the counts of these rows, not below 0.

    A negative count is taken as 0, which lengthens its interval: otherwise some would be just 0.
    """
    return within(counts, _count_width(noise, level))


def within(counts: Floats, width: float) -> tuple[Floats, Floats]:
    """Return intervals about counts, not below 0; negative counts are taken as 0."""
    feasible = np.maximum(counts, 0.0)
    return np.maximum(feasible - width, 0.0), feasible + width


def _count_width(noise: Noise, level: float) -> float:
    """Return the half-width of an interval for one count."""
    weights = noise.weights(np.ones(1))
    if noise.law != "laplace" or noise.step < SMALL_NOISE * noise.sd:
        return half_width(noise.law, weights, noise.sd, 0.0, level)
    return stepped_width(noise, float(weights[0]), abs(float(weights[1])) * noise.sd, level)


def stepped_width(noise: Noise, weight: float, other_sd: float, level: float) -> float:
    """Return the half-width for a weighted discrete noise variable plus a normal one."""
    from scipy.optimize import brentq

    law, spread = _small_noise(noise), max(other_sd, LEAST)

    def missed(width: float) -> float:
        steps = weight * noise.step * np.arange(-len(law) + 1, len(law))
        inside = ndtr((width - steps) / spread) - ndtr((-width - steps) / spread)
        return float(np.concatenate([law[:0:-1], law]) @ inside) - level

    # The margin covers the stand-in for 0: a number of steps exactly at the end is inside.
    return float(brentq(missed, 0.0, noise.step * len(law) + 40 * spread)) + 10 * LEAST


def _small_noise(noise: Noise) -> Floats:
    """Return the probabilities of 0, 1, 2, ... steps of discrete Laplace noise of a known sd."""
    square = (noise.sd / noise.step) ** 2
    ratio = max((square + 1 - np.sqrt(2 * square + 1)) / square, LEAST)
    steps = np.arange(int(np.ceil(40 / -np.log(ratio))) + 1)
    return np.asarray((1 - ratio) / (1 + ratio) * ratio**steps)


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
    kappa = _factors(
        estimate, variance - 2 * estimate * covariance + estimate**2 * all_cells, total, law, level
    )
    return score_interval(feasible, total, (variance, covariance, all_cells), kappa, total)


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
