"""Noise of a direction that is uniform and a length of density ``r^(d-1) exp(-r/scale)``.

Idealised: floats from the quantiles of :mod:`dpmodels.noise.normals`.
"""

from __future__ import annotations

import math

import numpy as np

from dpmodels.noise import Entropy
from dpmodels.noise.normals import normals, uniforms
from dpmodels.typing import Floats


def spherical(columns: int, scale: float, entropy: Entropy) -> Floats:
    """Draw a vector of density proportional to ``exp(-|b|/scale)``.

    Source: Chaudhuri, K., Monteleoni, C. and Sarwate, A. D. (2011). "Differentially private
    empirical risk minimization." Journal of Machine Learning Research 12, 1069-1109. Section 3.
    """
    direction = normals(columns, entropy)
    length = -scale * float(np.log(uniforms(columns, entropy)).sum())
    return np.asarray(direction * (length / np.linalg.norm(direction)))


def spherical_sd(columns: int, scale: float) -> float:
    """Return the standard deviation of each coordinate."""
    return scale * math.sqrt(columns + 1)
