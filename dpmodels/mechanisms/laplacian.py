"""Scales of Laplace noise in augmented moments, the second moment on and above the diagonal."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from dpmodels.mechanisms.protocol import Facts
from dpmodels.noise.lattice import Lattice, choose_lattice
from dpmodels.privacy import ZCDP, Guarantee, split_gaussian
from dpmodels.released import MomentNoise
from dpmodels.statistics.sensitivity import absolute_sensitivity, absolute_weights

# From this scale on the discrete law's variance is that of the continuous one to 1e-7.
SMALLEST_LAPLACE = 2.0**10
# Times the scale, what a lattice has to hold: a draw outside int64 has probability exp(-256).
ROOM = 4.0
# Covers the rounding of every product and quotient of floats below.
_ROUND_UP = 1 + 1e-12


class LaplaceScales(NamedTuple):
    """A lattice and the scales of the noise on it, in lattice steps."""

    lattice: Lattice
    steps: MomentNoise


def laplace_multipliers(
    guarantee: Guarantee, shares: Sequence[float] = (1.0,)
) -> tuple[float, ...]:
    """Return multipliers of Laplace releases that together satisfy a guarantee.

    An (eps, delta) guarantee leaves its delta unused. A release of multiplier m costs ``1/m``
    of eps, or ``1/(2m²)`` of rho; `shares` are of the budget in its own unit.
    """
    if isinstance(guarantee, ZCDP):
        return split_gaussian(math.sqrt(0.5 / guarantee.rho) * _ROUND_UP, shares)
    total = math.fsum(shares)
    return tuple(total / (share * guarantee.eps) * _ROUND_UP for share in shares)


def laplace_scales(facts: Facts, multiplier: float) -> LaplaceScales:
    """Return the noise of one Laplace release of the augmented moments.

    `multiplier` is the noise scale over the L1 sensitivity.

    BudgetError if the noise leaves no useful lattice.
    """
    weights = absolute_weights(facts.adjacency, facts.columns, centred=facts.centred)
    sensitivity = absolute_sensitivity(facts.adjacency, facts.columns, weights)
    scale = multiplier * sensitivity * _ROUND_UP
    mean = scale / weights.mean if facts.centred else math.nan
    scales = (scale / weights.count, mean, scale, scale)
    lattice = choose_lattice(facts.columns, ROOM * float(np.nanmax(scales)))
    unit = lattice.radius**2
    # A scale that is nan, of a mean not released, stays nan: max keeps its first.
    steps = MomentNoise(*(max(scale * unit, SMALLEST_LAPLACE) for scale in scales))
    return LaplaceScales(lattice, steps)
