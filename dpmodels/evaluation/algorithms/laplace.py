"""Discrete Laplace noise for tables of counts, as all algorithms here draw it."""

from __future__ import annotations

from typing import Final

import numpy as np

from dpmodels.noise import discrete_laplace, source
from dpmodels.typing import Floats, Integers

# Below, all but one draw in e^128 is 0; larger noise than was asked for costs less.
_LEAST: Final = 2.0**-7


def noisy(counts: Integers, scale: float) -> Floats:
    """Return counts with noise of a scale in rows, as floats of the same shape."""
    drawn = discrete_laplace(max(scale, _LEAST), counts.size, source())
    return np.asarray(counts + drawn.reshape(counts.shape), dtype=np.float64)
