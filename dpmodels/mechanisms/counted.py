"""The number of complete rows and their sum, released apart from the second moment."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpmodels.mechanisms.noised import GAUSSIAN, Law, noised
from dpmodels.mechanisms.protocol import Facts, Plan
from dpmodels.noise import Entropy
from dpmodels.released import MomentNoise
from dpmodels.typing import Floats

# Of the budget, without and with the sum of the rows.
COUNT_SHARE = {False: 0.02, True: 0.15}


class CountNoise(NamedTuple):
    """Scales of the noise in the number of rows and their sum, in units of the ball."""

    rows: float
    total: float


def gaussian_count(facts: Facts, multiplier: float) -> CountNoise:
    """Return the noise of one Gaussian release of the count and, if centred, the sum.

    `multiplier` is the noise scale over the L2 sensitivity; nan stands for a sum not released.

    A complete row x of the unit ball adds ``(w, x)``, an incomplete one 0. The
    count alone moves by at most 1. With the sum, two complete rows are at most
    2 apart and a row is ``√(w² + 1)`` long: under ``replace`` the sensitivity is
    2, up to w = √3 at no cost; under ``add-remove`` it is ``√(5/4)`` for w = 1/2.
    """
    if not facts.centred:
        return CountNoise(multiplier, math.nan)
    if facts.adjacency.n_public:
        return CountNoise(2 * multiplier / math.sqrt(3), 2 * multiplier)
    scale = math.sqrt(1.25) * multiplier
    return CountNoise(2 * scale, scale)


def laplace_count(facts: Facts, eps: float) -> CountNoise:
    """Return the noise of one Laplace release of the count and, if centred, the sum.

    `eps` is of both together.

    A row of the unit ball has an L1 norm of at most ``√d``, d columns. With
    weights (w, 1) for count and sum, an added row moves them by at most
    ``w + √d`` and two complete rows are at most ``2√d`` apart: under ``replace``
    ``w = √d`` is free, under ``add-remove`` ``w = √d/4`` costs a quarter.
    """
    if not facts.centred:
        return CountNoise(1 / eps, math.nan)
    length = math.sqrt(facts.columns)
    if facts.adjacency.n_public:
        return CountNoise(2 / eps, 2 * length / eps)
    return CountNoise(5 / eps, 1.25 * length / eps)


def noised_count(
    exact: NDArray[Any], plan: Plan, entropy: Entropy, law: Law = GAUSSIAN
) -> tuple[float, Floats | None]:
    """Release the number of rows and, where the plan has noise for it, their sum.

    `exact` are augmented moments, shape (columns + 1, columns + 1).
    """
    lattice, steps = plan.lattice, plan.steps
    count = noised(exact[:1, 0], steps.count, entropy, law) / lattice.radius**2
    if math.isnan(steps.mean):
        return float(count[0]), None
    total = noised(exact[0, 1:], steps.mean, entropy, law) / (lattice.radius * lattice.steps)
    return float(count[0]), np.asarray(total)


def noise_of(plan: Plan, law: Law = GAUSSIAN) -> MomentNoise:
    """Return the standard deviations that a plan's steps come to, in units of the ball."""
    lattice, steps = plan.lattice, plan.steps
    unit, longer = lattice.steps**2, lattice.radius * lattice.steps
    return MomentNoise(
        law.sd * steps.count / lattice.radius**2,
        law.sd * steps.mean / longer,
        law.sd * steps.diagonal / unit,
        law.sd * steps.off / unit,
    )
