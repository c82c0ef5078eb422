"""A sum of the rows' gradients at a released parameter, with Gaussian noise."""

from __future__ import annotations

from typing import NamedTuple

from dpmodels.mechanisms.add_noise import SMALLEST_SCALE, add_noise
from dpmodels.mechanisms.protocol import RegressionFacts
from dpmodels.noise import Entropy
from dpmodels.noise.lattice import choose_lattice
from dpmodels.statistics.gradient import Gradients
from dpmodels.typing import Floats

# Units of noise in a step of the lattice where steps are too coarse: a row is 2**40 long then,
# as a row of counts is.
FINER = 2**20


class Noisy(NamedTuple):
    """A released sum of gradients, and the noise standard deviation of its coordinates."""

    gradient: Floats
    sd: float


def noisy_gradient(
    rows: Gradients, point: Floats, facts: RegressionFacts, noise: float, entropy: Entropy
) -> Noisy:
    """Release the sum of gradients at a released parameter, in units of the longest.

    A sum of Python integers is as exact in units as in steps, and a row moves it by at most
    ``lattice.radius * finer`` of them. On a coarser lattice than the finest the noise has more than
    ``2**28`` steps (:func:`dpmodels.noise.lattice.choose_lattice`).
    """
    lattice = choose_lattice(facts.columns, noise)
    exact, _ = rows.gradient(point, lattice).cross()
    finer = FINER if noise * lattice.radius < SMALLEST_SCALE else 1
    scale = max(noise * lattice.radius * finer, SMALLEST_SCALE)
    steps_per_unit = lattice.steps * finer
    return Noisy(add_noise(exact * finer, scale, entropy) / steps_per_unit, scale / steps_per_unit)
