"""Links between a linear predictor and an expected response, with two derivatives."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np
from scipy.special import expit

from dpmodels.typing import Floats

# Exponentials of larger numbers are infinite.
_LARGEST = 700.0


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
