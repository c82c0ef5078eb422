"""Noise that hides how far a computed minimum is from the true one."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpmodels.errors import BudgetError
from dpmodels.mechanisms.noised import LAPLACE, Law, noised
from dpmodels.noise import Entropy
from dpmodels.typing import Floats

_ROUND_UP = 1 + 1e-12
# Scale in steps before rounding is allowed for: far above 2^20, where the discrete laws are as
# private as the continuous ones, and far below what the samplers take.
FINE = 2.0**40
LARGEST_SCALE = 2.0**55


class Mask(NamedTuple):
    """Integer noise on a lattice of coefficients."""

    step: float  # Between the points of the lattice, in units of the coefficients
    scale: float  # Of the noise, in steps


def mask(distance: float, columns: int, multiplier: float, law: Law) -> Mask:
    """Plan noise for a point that is known to lie within a distance of another.

    `distance` is Euclidean, in units of the coefficients; `multiplier` is the noise scale over
    the sensitivity, L1 for Laplace noise, else L2.

    Given the true minimum, the error of the computed one is a function of the
    rows with values in a ball: neighbours' differ by twice its radius, and by
    up to a step in each coordinate after rounding.

    BudgetError if the noise is beyond what is meaningful.
    """
    spread = math.sqrt(columns) if law is LAPLACE else 1.0
    step = 2 * distance * spread * multiplier / FINE
    rounding = columns if law is LAPLACE else math.sqrt(columns)
    scale = multiplier * (2 * distance / step * spread + rounding) * _ROUND_UP
    if not scale <= LARGEST_SCALE:
        raise BudgetError(
            "the budget asks for more noise than is meaningful; give a larger eps, delta or rho"
        )
    return Mask(step, scale)


def masked(point: Floats, own: Mask, entropy: Entropy, law: Law) -> Floats:
    """Round a point to the mask's lattice and add its noise."""
    whole: NDArray[Any] = np.array([round(x) for x in (point / own.step).tolist()], dtype=object)
    return noised(whole, own.scale, entropy, law) * own.step
