"""The linear predictor's rows: from joint rows (x, y) on the lattice to z in the unit ball."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpmodels.noise.lattice import Lattice

Floats = NDArray[np.float64]

# Length of the constant beside terms of length 1: 12 % more noise in the slopes.
CONSTANT = 0.5


@dataclass(frozen=True)
class Predictors:
    """Public facts that turn a joint row into ``z = (constant, x/radius) / length``.

    Parameters
    ----------
    terms : int
        Number of coded terms.
    intercept : bool
        Whether a constant stands before them.
    radius : float
        Longest scaled row of the terms, as a share of the longest joint row;
        0 where there are no terms.
    middle, reach : float
        The response is `middle` plus `reach` times its coordinate in the
        joint ball.
    """

    terms: int
    intercept: bool
    radius: float
    middle: float
    reach: float

    @property
    def columns(self) -> int:
        """Coordinates of z."""
        return self.terms + self.intercept

    @property
    def constant(self) -> float:
        """First coordinate of z where there is an intercept, else 0."""
        if not self.intercept:
            return 0.0
        return CONSTANT / math.hypot(1, CONSTANT) if self.terms else 1.0

    @property
    def share(self) -> float:
        """Longest part of z that belongs to the terms."""
        return math.sqrt(1 - self.constant**2)

    def read(self, block: Floats, lattice: Lattice) -> Floats:
        """Return z, shape (columns, rows), each at most 1 long; zeros where incomplete."""
        z = np.empty((self.columns, block.shape[1]))
        if self.intercept:
            z[0] = block[0] * (self.constant / lattice.radius)
        if not self.terms:
            return z
        x = z[int(self.intercept) :]
        np.multiply(block[1:-1], self.share / (lattice.steps * self.radius), out=x)
        norms = np.sqrt(np.einsum("ij,ij->j", x, x))
        x *= self.share / np.maximum(norms, self.share)
        return z

    def labels(self, block: Floats) -> Floats:
        """Return +1 for the second level, else -1; 0 where the row is incomplete."""
        return np.where(block[0] > 0, np.where(block[-1] > 0, 1.0, -1.0), 0.0)

    def response(self, block: Floats, lattice: Lattice) -> Floats:
        """Return the response in its own unit."""
        return np.asarray(self.middle + self.reach * block[-1] / lattice.steps)
