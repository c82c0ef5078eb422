"""The minimum of a tilted, ridged sum of losses to a declared gradient, and noise for the rest."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpmodels.errors import BudgetError
from dpmodels.mechanisms.add_noise import LAPLACE, ROUND_UP, Law, add_noise
from dpmodels.noise import Entropy
from dpmodels.statistics.gradient import Gradients, Slopes
from dpmodels.statistics.protocol import Loss
from dpmodels.typing import Floats

# Scale in steps before rounding is allowed for: far above 2^20, where the discrete laws are as
# private as the continuous ones, and far below what the samplers take.
FINE = 2.0**40
# Half of what the Laplace sampler takes.
LARGEST_SCALE = 2.0**55
# Rounding in the sum of the gradients of 10^6 rows is below it, whatever the rows.
SHORTEST = 2.0**-27
# Rounding leaves far less of a vector that is added to a gradient: a choice.
ROUNDED = 2.0**-45
# Eight times what the hardest rows tried have taken.
MOST_PASSES = 500
# A choice: from here on a step of the gradient method goes further.
SHORTEST_STEP = 2.0**-20
# Of a sum of losses: smaller differences say nothing.
ROUNDING = 2.0**-40
# How much longer a gradient may be at the minimum of an easier loss: a choice.
ROUGH = 2.0**10


def tolerance(scale: float, known: float = 0.0) -> float:
    """Return the length of the gradient at which to stop, in units of one row's largest.

    `scale` is of the tilt, `known` the most that released values add to it: the gradient is
    exposed to the rounding of both.
    """
    return SHORTEST * (1 + scale) + ROUNDED * known


def furthest(scale: float, ridge: float, known: float = 0.0) -> float:
    """Return how far a computed minimum may be from the true one.

    The sum is as strongly convex as `ridge`, the weight of ``|θ|²/2``, at least.

    A gradient of length t is at most ``t/ridge`` from the minimum. The computed gradient may be as
    far from the true one as from 0: twice the tolerance covers its rounding.
    """
    return 2 * tolerance(scale, known) / ridge


def minimise(rows: Gradients, loss: Loss, ridge: float, tilt: Floats, shortest: float) -> Floats:
    """Return a point where the gradient is at most as long as declared.

    `ridge` is the weight of ``|θ|²/2``, `tilt`, shape (columns,), the vector b of the linear term
    ``⟨b, θ⟩``, `shortest` the length of the gradient at which to stop.

    Newton's method along the loss's path of easier losses; a step is halved until the sum has
    fallen by a thousandth of what its slope promises, or, where that is lost in rounding, until
    its gradient has become shorter. Where no step down to 2⁻²⁰ does that, a step ``1/L`` of the
    gradient method. Rows of one class, separated, constant or few take 5 to 60 passes. Rows for
    which :data:`MOST_PASSES` are not enough, of which none are known, go on with accelerated
    gradients, which reach the declared length after at most ``√(L/Λ) log(18 (L/Λ)² (g/t)²) + 2``
    passes from one of length g. So it is reached in exact arithmetic whatever the rows.

    Source: Nesterov, Y. (2018). "Lectures on Convex Optimization." 2nd edition, Springer. Section
    2.2.
    """
    point = np.zeros(len(tilt))
    for stage in loss.path:
        target = shortest if stage is loss else ROUGH * shortest
        at = partial(_at, rows, stage, ridge, tilt)
        point, here = _newton(at, stage.smoothness, ridge, point, target)
    if np.linalg.norm(here.gradient) <= shortest:
        return point
    return _accelerated(at, loss.smoothness * here.energy + ridge, ridge, point, shortest)


def _newton(
    at: Callable[[Floats], Slopes], smoothness: float, ridge: float, point: Floats, shortest: float
) -> tuple[Floats, Slopes]:
    here, passes = at(point), 1
    while np.linalg.norm(here.gradient) > shortest and passes < MOST_PASSES:
        step, share = np.asarray(-np.linalg.solve(here.curvature, here.gradient)), 1.0
        there = at(point + step)
        passes += 1
        while not _better(there, here, share, step):
            share /= 2
            if share < SHORTEST_STEP:
                step, share = -here.gradient / (smoothness * here.energy + ridge), 1.0
                there = at(point + step)
                break
            there = at(point + share * step)
            passes += 1
        point, here = point + share * step, there
    return point, here


def _accelerated(
    at: Callable[[Floats], Slopes], steepest: float, ridge: float, point: Floats, shortest: float
) -> Floats:
    here = at(point)
    condition, length = steepest / ridge, float(np.linalg.norm(here.gradient))
    passes = math.sqrt(condition) * 2 * math.log(math.sqrt(18) * condition * length / shortest + 1)
    root = math.sqrt(1 / condition)
    ahead = point
    for _ in range(math.ceil(passes) + 2):
        if np.linalg.norm(here.gradient) <= shortest:
            break
        following = ahead - here.gradient / steepest
        ahead = following + (1 - root) / (1 + root) * (following - point)
        point, here = following, at(ahead)
    return ahead


def _better(there: Slopes, here: Slopes, share: float, step: Floats) -> bool:
    promised = -share * float(here.gradient @ step)
    if promised > ROUNDING * (1 + abs(here.value)):
        return there.value <= here.value - 1e-3 * promised
    size = float(np.linalg.norm(here.gradient))
    return float(np.linalg.norm(there.gradient)) <= (1 - share / 4) * size


def _at(rows: Gradients, loss: Loss, ridge: float, tilt: Floats, point: Floats) -> Slopes:
    own = rows.slopes(point, loss)
    value = own.value + float(ridge * point @ point / 2 + tilt @ point)
    gradient = own.gradient + ridge * point + tilt
    return Slopes(value, gradient, own.curvature + ridge * np.eye(len(point)), own.energy)


class Mask(NamedTuple):
    """Integer noise on a lattice of coefficients."""

    step: float  # Between the points of the lattice, in units of the coefficients
    scale: float  # Of the noise, in steps


def mask(distance: float, columns: int, multiplier: float, law: Law) -> Mask:
    """Plan noise for a point that is known to lie within a distance of another.

    `distance` is Euclidean, in units of the coefficients; `multiplier` is the noise scale over the
    sensitivity, L1 for Laplace noise, else L2.

    Given the true minimum, the error of the computed one is a function of the rows with values in
    a ball: neighbours' differ by twice its radius, and by up to a step in each coordinate after
    rounding. BudgetError if the noise is beyond what is meaningful.
    """
    spread = math.sqrt(columns) if law is LAPLACE else 1.0
    step = 2 * distance * spread * multiplier / FINE
    rounding = columns if law is LAPLACE else math.sqrt(columns)
    scale = multiplier * (2 * distance / step * spread + rounding) * ROUND_UP
    if not scale <= LARGEST_SCALE:
        raise BudgetError(
            "the budget asks for more noise than is meaningful; give a larger eps, delta or rho"
        )
    return Mask(step, scale)


def masked(point: Floats, own: Mask, entropy: Entropy, law: Law) -> Floats:
    """Round a point to the mask's lattice and add its noise."""
    whole: NDArray[Any] = np.array([round(x) for x in (point / own.step).tolist()], dtype=object)
    return add_noise(whole, own.scale, entropy, law) * own.step
