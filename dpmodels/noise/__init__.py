"""The noise floor: random words and exact integer noise; no budgets, no data."""

from dpmodels.noise.addition import NoiseOfSites, noisy_sums
from dpmodels.noise.discrete import discrete_gaussian, discrete_laplace, discrete_laplace_variance
from dpmodels.noise.entropy import derived, secure, seeded, simulating, simulation, source
from dpmodels.noise.uniform import Entropy

__all__ = [
    "Entropy",
    "NoiseOfSites",
    "derived",
    "discrete_gaussian",
    "discrete_laplace",
    "discrete_laplace_variance",
    "noisy_sums",
    "secure",
    "seeded",
    "simulating",
    "simulation",
    "source",
]
