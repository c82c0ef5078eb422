"""The noise floor: random words and exact integer noise; no budgets, no data."""

from dpmodels.noise.discrete import NoiseOfSites as NoiseOfSites
from dpmodels.noise.discrete import discrete_gaussian as discrete_gaussian
from dpmodels.noise.discrete import discrete_laplace as discrete_laplace
from dpmodels.noise.discrete import discrete_laplace_variance as discrete_laplace_variance
from dpmodels.noise.discrete import noisy_sums as noisy_sums
from dpmodels.noise.entropy import derived as derived
from dpmodels.noise.entropy import secure as secure
from dpmodels.noise.entropy import seeded as seeded
from dpmodels.noise.entropy import simulating as simulating
from dpmodels.noise.entropy import simulation as simulation
from dpmodels.noise.entropy import source as source
from dpmodels.noise.uniform import Entropy as Entropy
