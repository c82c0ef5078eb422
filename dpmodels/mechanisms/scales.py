"""Scales of noise in augmented moments, and the lattices that hold it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import astuple
from typing import NamedTuple

import numpy as np

from dpmodels.mechanisms.protocol import Facts
from dpmodels.noise.lattice import Lattice, choose_lattice
from dpmodels.privacy import ZCDP, Guarantee, split_gaussian
from dpmodels.released import MomentNoise
from dpmodels.statistics import moment_sensitivity, moment_weights
from dpmodels.statistics.moments import absolute_sensitivity, absolute_weights

# From this scale on the discrete law's profile exceeds the continuous one's
# by less than 1e-11 of itself, which the margin of the calibration covers.
SMALLEST_SCALE = 2.0**20
# From this scale on the discrete law's variance is that of the continuous one to 1e-7.
SMALLEST_LAPLACE = 2.0**10
# Times the scale, what a lattice has to hold: a draw outside int64 has probability exp(-256).
ROOM = 4.0
# Cover the rounding of some thousand products and quotients of floats.
ROUND_UP, ROUND_DOWN = 1 + 1e-12, 1 - 1e-12


class Scaled(NamedTuple):
    """A lattice and the scales of the noise on it, in lattice steps."""

    lattice: Lattice
    steps: MomentNoise


def gaussian_scales(facts: Facts, multiplier: float) -> Scaled:
    """Return the noise of one Gaussian release of the augmented moments.

    `multiplier` is the noise scale over the sensitivity in isometric coordinates. BudgetError if
    the noise leaves no useful lattice.
    """
    weights = moment_weights(facts.adjacency, centred=facts.centred)
    sigma = multiplier * moment_sensitivity(facts.adjacency, weights) * ROUND_UP
    mean = sigma / weights.mean if facts.centred else math.nan
    scales = (sigma / weights.count, mean, sigma, sigma / math.sqrt(2))
    lattice = choose_lattice(facts.columns, float(np.nanmax(scales)))
    return Scaled(lattice, in_steps(lattice, scales, SMALLEST_SCALE))


def laplace_scales(facts: Facts, multiplier: float) -> Scaled:
    """Return the noise of one Laplace release of the augmented moments.

    `multiplier` is the noise scale over the L1 sensitivity, the second moment taken on and above
    the diagonal. BudgetError if the noise leaves no useful lattice.
    """
    weights = absolute_weights(facts.adjacency, facts.columns, centred=facts.centred)
    sensitivity = absolute_sensitivity(facts.adjacency, facts.columns, weights)
    scale = multiplier * sensitivity * ROUND_UP
    mean = scale / weights.mean if facts.centred else math.nan
    scales = (scale / weights.count, mean, scale, scale)
    lattice = choose_lattice(facts.columns, ROOM * float(np.nanmax(scales)))
    return Scaled(lattice, in_steps(lattice, scales, SMALLEST_LAPLACE))


def in_steps(lattice: Lattice, scales: Sequence[float], smallest: float) -> MomentNoise:
    """Return four scales, given in squared units of the ball, in steps of a lattice."""
    # A nan, of a part not released, stays nan: max keeps its first.
    return MomentNoise(*(max(scale * lattice.radius**2, smallest) for scale in scales))


def lattice_for(lattice: Lattice, steps: MomentNoise, sigma: float, smallest: float) -> Scaled:
    """Return the same noise on the finest lattice that holds noise of scale `sigma` too.

    `sigma` is in units of the squared unit length, `steps` and `smallest` in lattice steps.
    BudgetError if `sigma` leaves no useful lattice.
    """
    other = choose_lattice(lattice.columns, sigma)
    if other.bits >= lattice.bits:
        return Scaled(lattice, steps)
    shrink = (other.radius / lattice.radius) ** 2
    # A nan stays nan: max keeps its first.
    return Scaled(other, MomentNoise(*(max(step * shrink, smallest) for step in astuple(steps))))


def laplace_multipliers(
    guarantee: Guarantee, shares: Sequence[float] = (1.0,)
) -> tuple[float, ...]:
    """Return multipliers of Laplace releases that together satisfy a guarantee.

    An (eps, delta) guarantee leaves its delta unused. A release of multiplier m costs ``1/m`` of
    eps, or ``1/(2m²)`` of rho; `shares` are of the budget in its own unit.
    """
    if isinstance(guarantee, ZCDP):
        return split_gaussian(math.sqrt(0.5 / guarantee.rho) * ROUND_UP, shares)
    total = math.fsum(shares)
    return tuple(total / (share * guarantee.eps) * ROUND_UP for share in shares)
