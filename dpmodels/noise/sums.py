"""The law of a weighted sum of independent noise and a normal variable."""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from scipy.special import ndtr, ndtri

from dpmodels.typing import Floats

# Nodes of the inversion: step and end, where the sum has variance 1. Choices.
STEP, END = 0.15, 300.0
# This many standard deviations away the inversion has no correct digits.
FAR = 15.0
# Laplace terms with a smaller share of the variance are treated as normal.
SMALL = 1e-3


def upper_tail(law: str, weights: Floats, noise_sd: float, normal_sd: float, x: float) -> float:
    """Return the probability that a sum of noise and a normal variable exceeds a number.

    The law is "laplace" or "gaussian"; `weights` are one a noise variable, `noise_sd` the standard
    deviation of each before it is weighed; x is not below 0.
    """
    sd, parts = _standardised(law, weights, noise_sd, normal_sd)
    if sd == 0:
        return 0.5 if x == 0 else 0.0
    return _tail(parts, x / sd)


def half_width(law: str, weights: Floats, noise_sd: float, normal_sd: float, level: float) -> float:
    """Return the number that the size of such a sum stays below with a probability.

    Arguments are as for :func:`upper_tail`.
    """
    sd, parts = _standardised(law, weights, noise_sd, normal_sd)
    return sd * _quantile(parts, level) if sd > 0 else 0.0


def half_widths(
    law: str, squares: Floats, fourths: Floats, noise_sd: float, normal_sd: Floats, level: float
) -> Floats:
    """Return the same of many sums, by the sums of the squares and fourth powers of their weights.

    Laplace noise and the normal variable together are taken for the symmetric variance-gamma law
    with their variance and their fourth moment. It is that of sums of equal Laplace terms; compared
    with the inversion for others, half widths at levels from .9 to .999 are within 2 %.
    """
    noisy = squares * noise_sd**2
    variance = noisy + np.square(normal_sd)
    if law != "laplace":
        return np.asarray(np.sqrt(variance) * _quantile((), level))
    share = fourths * noise_sd**4 / np.where(variance > 0, variance, 1.0) ** 2
    return np.asarray(np.sqrt(variance) * np.interp(share, *_by_share(level)))


@lru_cache(maxsize=64)
def _by_share(level: float) -> tuple[Floats, Floats]:
    """Return quantiles of sums of equal Laplace terms, by what share of the variance each has."""
    shares = np.linspace(0.0, 1.0, 65)
    inner = [_quantile(((share, 1 / share),), level) for share in shares[1:].tolist()]
    return shares, np.array([_quantile((), level), *inner])


Parts = tuple[tuple[float, float], ...]
"""Shares of the variance that Laplace terms have, each with how many have it."""


def _standardised(
    law: str, weights: Floats, noise_sd: float, normal_sd: float
) -> tuple[float, Parts]:
    squares = np.square(weights * noise_sd)
    variance = float(squares.sum()) + normal_sd**2
    if not variance > 0:
        return 0.0, ()
    if law != "laplace":
        return math.sqrt(variance), ()
    # Rounded, so that groups of nearly equal terms share one inversion.
    shares = np.round(squares / variance, 4)
    large_shares, times = np.unique(shares[shares > SMALL], return_counts=True)
    return math.sqrt(variance), tuple(zip(large_shares.tolist(), times.tolist(), strict=True))


def _characteristic(parts: Parts, t: Floats) -> Floats:
    """Return the characteristic function of a sum of variance 1."""
    rest = max(0.0, 1.0 - sum(share * times for share, times in parts))
    value = np.exp(-rest * t * t / 2)
    for share, times in parts:
        value = value * (1 + share * t * t / 2) ** -float(times)
    return np.asarray(value)


def _tail(parts: Parts, x: float) -> float:
    """Invert by the midpoint rule.

    Source: Davies, R. B. (1973). "Numerical inversion of a characteristic function." Biometrika
    60(2), 415-417.
    """
    if not parts:
        return float(ndtr(-x))
    if x > FAR:
        # Of sums of variance 1 one Laplace variable has the longest tail.
        return math.exp(-math.sqrt(2) * x) / 2
    nodes = np.arange(STEP / 2, END, STEP)
    terms = np.sin(nodes * x) / nodes * _characteristic(parts, nodes)
    return min(max(0.5 - float(terms.sum()) * STEP / math.pi, 0.0), 0.5)


@lru_cache(maxsize=4096)
def _quantile(parts: Parts, level: float) -> float:
    from scipy.optimize import brentq

    if not parts:
        return float(ndtri((1 + level) / 2))
    tail_probability = (1 - level) / 2
    bound = 1.0 - math.log(1 - level)
    return float(brentq(lambda x: _tail(parts, x) - tail_probability, 0.0, 4 * bound, xtol=1e-6))
