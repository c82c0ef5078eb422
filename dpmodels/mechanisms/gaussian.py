"""Scales of Gaussian noise in augmented moments, in isometric coordinates."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from dpmodels.mechanisms.protocol import Facts
from dpmodels.noise.lattice import Lattice, choose_lattice
from dpmodels.released import MomentNoise
from dpmodels.statistics import moment_sensitivity, moment_weights

# From this scale on the discrete law's profile exceeds the continuous one's
# by less than 1e-11 of itself, which the margin of the calibration covers.
SMALLEST_SCALE = 2.0**20


class GaussianScales(NamedTuple):
    """A lattice and the scales of the noise on it, in lattice steps."""

    lattice: Lattice
    steps: MomentNoise


def gaussian_scales(facts: Facts, multiplier: float) -> GaussianScales:
    """Return the noise of one Gaussian release of the augmented moments.

    `multiplier` is the noise scale over the sensitivity in isometric coordinates.

    BudgetError if the noise leaves no useful lattice.
    """
    weights = moment_weights(facts.adjacency, centred=facts.centred)
    # One part in 10^12 covers the rounding of every product below.
    sigma = multiplier * moment_sensitivity(facts.adjacency, weights) * (1 + 1e-12)
    mean = sigma / weights.mean if facts.centred else math.nan
    scales = (sigma / weights.count, mean, sigma, sigma / math.sqrt(2))
    lattice = choose_lattice(facts.columns, float(np.nanmax(scales)))
    unit = lattice.radius**2
    # A scale that is nan, of a mean not released, stays nan: max keeps its first.
    steps = MomentNoise(*(max(scale * unit, SMALLEST_SCALE) for scale in scales))
    return GaussianScales(lattice, steps)
