"""A model of the constant alone, by a released mean: where steps towards coefficients begin."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from dpmodels.statistics.losses import Poisson
from dpmodels.statistics.multinomial import Multinomial
from dpmodels.statistics.protocol import Loss
from dpmodels.typing import Floats

# Frequencies of levels, and a mean of what is counted, are taken for so much at the least.
RAREST = 1e-3


class Constant(NamedTuple):
    """A model of the constant alone, with a line for each linear predictor.

    In units of the longest gradient.
    """

    mean: Floats  # Shape (lines,): of the response
    linear: Floats  # Shape (lines,): the linear predictors
    bend: Floats  # Shape (lines, lines): twice the curvature of a row, which steps are divided by
    square: float  # Mean square of a row's pull along one way


def constant_model(means: Floats, loss: Loss | Poisson | Multinomial) -> Constant:
    """Return the model for released means of the responses, shape (responses,)."""
    if isinstance(loss, Multinomial):
        return _levels(means, loss)
    (mean,) = means.tolist()
    own = _counted(mean, loss) if isinstance(loss, Poisson) else _odds(mean)
    held, linear, bend, square = own
    return Constant(np.array([held]), np.array([linear]), np.array([[bend]]), square)


def _counted(mean: float, loss: Poisson) -> tuple[float, float, float, float]:
    held = float(np.clip(mean, RAREST * min(loss.upper, 1), loss.upper))
    return held, math.log(held), 2 * held / loss.clip, held / loss.clip**2


def _odds(mean: float) -> tuple[float, float, float, float]:
    held = float(np.clip(mean, RAREST, 1 - RAREST))
    square = held * (1 - held)
    return held, math.log(held / (1 - held)), min(2 * square, 0.25), square


def _levels(means: Floats, loss: Multinomial) -> Constant:
    held = np.maximum([1 - means.sum(), *means], RAREST)
    held = held / held.sum()
    linear, spread = np.log(held), np.diag(held) - np.outer(held, held)
    square = float(np.trace(spread)) / (loss.levels - 1) / loss.length**2
    return Constant(held, linear - linear.mean(), 2 * spread / loss.length, square)
