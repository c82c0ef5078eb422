"""The noise floor: random words and exact integer noise; no budgets, no data."""

from dpmodels.noise.discrete import (
    discrete_gaussian,
    discrete_gaussian_variance,
    discrete_laplace,
    discrete_laplace_variance,
)
from dpmodels.noise.entropy import derived, secure, seeded, simulating, simulation, source
from dpmodels.noise.uniform import Entropy

__all__ = [
    "Entropy",
    "derived",
    "discrete_gaussian",
    "discrete_gaussian_variance",
    "discrete_laplace",
    "discrete_laplace_variance",
    "secure",
    "seeded",
    "simulating",
    "simulation",
    "source",
]
