"""Links between a linear predictor and an expected response, with two derivatives."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np
from scipy.special import expit

from dpmodels.typing import Floats

# Exponentials of larger numbers are infinite.
_LARGEST = 700.0
# Choices: answers of which 10 % or less are of one kind are rare, as ``|1 - 2p|``; and how much of
# what a step without end would take off rows with rare answers is known.
RARE, OPEN = 0.8, 0.9


@dataclass(frozen=True)
class Link:
    """A link: mean and derivatives as functions of η.

    `name` is what η is, `unit` what the mean is, `ratio` the name of ratios exp(η).
    """

    name: str
    unit: str
    ratio: str
    mean: Callable[[Floats], Floats]
    slope: Callable[[Floats], Floats]  # dμ/dη
    bend: Callable[[Floats], Floats]  # d²μ/dη²


def _identity(eta: Floats) -> Floats:
    return eta


def _exp(eta: Floats) -> Floats:
    return np.exp(np.minimum(eta, _LARGEST))


def _logistic_slope(eta: Floats) -> Floats:
    return np.asarray(expit(eta) * expit(-eta))


def _logistic_bend(eta: Floats) -> Floats:
    return np.asarray(_logistic_slope(eta) * (expit(-eta) - expit(eta)))


IDENTITY: Final = Link("means", "", "", _identity, np.ones_like, np.zeros_like)
LOGIT: Final = Link(
    "log odds", "probability", "Odds ratios", expit, _logistic_slope, _logistic_bend
)
LOG: Final = Link("log rates", "expected count", "Rate ratios", _exp, _exp, _exp)
OF_FAMILY: Final = {"binomial": LOGIT, "poisson": LOG}


def lengthened(start: float, rate: float, ends: tuple[float, float]) -> tuple[float, float]:
    """Lengthen an interval towards rarer answers, of which the curvature falls as they do.

    A step v from where it is known leads to ``-log(1 - kv)/k``, k the rate, and where that has no
    end the interval has none (docs/theory.md, Theorem 112).
    """
    low, high = ends
    step = ((high if rate > 0 else low) - start) * rate
    if step <= 0 or abs(rate) < RARE:
        return ends
    if not step <= OPEN:
        return math.nan, math.nan
    end = start - math.log1p(-step) / rate
    return (low, max(high, end)) if rate > 0 else (min(low, end), high)
