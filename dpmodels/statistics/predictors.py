"""The linear predictor's rows: from joint rows (x, y) on the lattice to z in the unit ball."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from dpmodels.noise.lattice import Lattice
from dpmodels.statistics.turn import turn
from dpmodels.typing import Floats

# Length of the constant beside terms of length 1: 12 % more noise in the slopes.
CONSTANT = 0.5


class Seen(NamedTuple):
    """What a block of rows is for a linear predictor."""

    z: Floats  # Shape (columns, rows): each at most 1 long; zeros where incomplete
    linear: Floats  # Shape (rows,): its product with a parameter


@dataclass(frozen=True)
class Predictors:
    """Public facts that turn a joint row into ``z = (constant, x/radius) / length``."""

    terms: int  # Number of coded terms
    intercept: bool  # Whether a constant stands before them
    # Longest scaled row of the terms, as a share of the longest joint row; 0 where there are no
    # terms.
    radius: float
    middle: float  # The response is `middle` plus `reach` times its coordinate in the joint ball
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
        return self._rows(block, self._unit(block, lattice), lattice)

    def seen(self, block: Floats, lattice: Lattice, parameter: Floats) -> Seen:
        """Return z and its product with a parameter.

        `block`, shape (terms + 2, rows), are integer rows (1, x, y); the parameter, shape
        (columns,), is finite and a function of released values and public facts. Its terms are
        rounded, each by at most ``2**(bits - 52)`` of their length
        (:func:`dpmodels.statistics.turn.turn`).

        Both are functions of the row and the parameter alone. The squared length of a row and its
        product with the rounded parameter are integers, exact in any order; all that is done to
        them are correctly rounded operations on each number by itself, the same in blocks of any
        size.
        """
        unit = self._unit(block, lattice)
        own = parameter[int(self.intercept) :]
        linear = turn(own[None, :], lattice).times(block[1:-1])[0] * unit
        if self.intercept:
            linear += block[0] * (self.constant / lattice.radius * parameter[0])
        return Seen(self._rows(block, unit, lattice), linear)

    def _unit(self, block: Floats, lattice: Lattice) -> Floats:
        """Return what integers stand for in each row of z: less where it would be too long."""
        if not self.terms:
            return np.zeros(block.shape[1])
        unit = self.share / (lattice.steps * self.radius)
        squares = np.einsum("ij,ij->j", block[1:-1], block[1:-1])
        return np.asarray(unit / np.maximum(np.sqrt(squares) * (unit / self.share), 1.0))

    def _rows(self, block: Floats, unit: Floats, lattice: Lattice) -> Floats:
        z = np.empty((self.columns, block.shape[1]))
        if self.intercept:
            z[0] = block[0] * (self.constant / lattice.radius)
        np.multiply(block[1:-1], unit, out=z[int(self.intercept) :])
        return z

    def labels(self, block: Floats) -> Floats:
        """Return +1 for the second level, else -1; 0 where the row is incomplete."""
        return np.where(block[0] > 0, np.where(block[-1] > 0, 1.0, -1.0), 0.0)

    def response(self, block: Floats, lattice: Lattice) -> Floats:
        """Return the response in its own unit."""
        return np.asarray(self.middle + self.reach * block[-1] / lattice.steps)
