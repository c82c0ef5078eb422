"""The linear predictor's rows: from joint rows (x, y) on the lattice to z in the unit ball."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from dpmodels.noise.lattice import MAX_BITS, Lattice
from dpmodels.statistics.passes import turn
from dpmodels.typing import Floats

# Length of the constant beside terms of length 1: 12 % more noise in the slopes.
CONSTANT = 0.5


class LinearRows(NamedTuple):
    """Rows z of a block, and their linear predictors."""

    z: Floats  # Shape (columns, rows): each at most 1 long; zeros where incomplete
    linear: Floats  # Shape (lines, rows): its products with the lines of a parameter


class Placed(NamedTuple):
    """A block of rows about the centre of its predictors."""

    leading: Floats  # Shape (rows,): the lattice's radius, or 0 where a row is left out
    terms: Floats  # Shape (terms, rows): integers
    unit: Floats  # Shape (rows,): what they stand for in z


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
    # Integers of the rows' lattice that terms are counted from, rows farther away than `radius`
    # being left out; empty where the ball's own centre is theirs and all rows are within.
    centre: tuple[float, ...] = ()
    # Columns of the response, the last of the joint rows: of a category of several levels one for
    # each but the first, which differ in nothing else.
    responses: int = 1

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

    def within(self, centre: Floats, radius: float) -> Predictors:
        """Return those of the rows that lie in another ball, given by released values.

        `centre`, shape (terms,), and `radius` are shares of the joint ball's radius.
        """
        integers = np.rint(centre * self.lattice.steps)
        return replace(self, centre=tuple(integers.tolist()), radius=radius)

    @property
    def placed(self) -> Floats:
        """The centre in shares of the joint ball's radius, shape (terms,)."""
        return np.array(self.centre) / self.lattice.steps

    @property
    def lattice(self) -> Lattice:
        """Integers of the joint rows."""
        return Lattice(MAX_BITS, self.terms + self.responses)

    def read(self, block: Floats, lattice: Lattice) -> Floats:
        """Return z, shape (columns, rows), each at most 1 long; zeros where incomplete."""
        return self._rows(self._placed(block, lattice), lattice)

    def linear_rows(self, block: Floats, lattice: Lattice, parameter: Floats) -> LinearRows:
        """Return z and its products with the lines of a parameter.

        `block`, shape (1 + terms + responses, rows), are integer rows (1, x, y); the parameter,
        shape (lines, columns) or all lines in one, is finite and a function of released values and
        public facts. Terms of a line are rounded, each by at most ``2**(bits - 52)`` of its length
        (:func:`dpmodels.statistics.passes.turn`).

        Both are functions of the row and the parameter alone. The squared length of a row and its
        product with the rounded parameter are integers, exact in any order; all that is done to
        them are correctly rounded operations on each number by itself, the same in blocks of any
        size.
        """
        placed = self._placed(block, lattice)
        lines = parameter.reshape(-1, self.columns)
        linear = turn(lines[:, int(self.intercept) :], lattice).times(placed.terms) * placed.unit
        if self.intercept:
            linear += placed.leading * (self.constant / lattice.radius * lines[:, :1])
        return LinearRows(self._rows(placed, lattice), linear)

    def away(self, block: Floats) -> Floats:
        """Return the squared distance of each row's terms from the centre, in lattice steps."""
        terms = self.terms_of(block) - np.array(self.centre)[:, None]
        return np.asarray(np.einsum("ij,ij->j", terms, terms))

    def _placed(self, block: Floats, lattice: Lattice) -> Placed:
        """Return the rows' integers, zeros where a row is left out, and what they stand for.

        Where rows are counted from the ball's own centre, one that would be too long is shortened.
        Integers of a row beyond another ball are not read further; those within it are no longer
        than the lattice allows, and their sum of squares is exact.
        """
        leading, terms = block[0], self.terms_of(block)
        if not self.terms:
            return Placed(leading, terms, np.zeros(block.shape[1]))
        unit = self.share / (lattice.steps * self.radius)
        if not self.centre:
            squares = np.einsum("ij,ij->j", terms, terms)
            units = unit / np.maximum(np.sqrt(squares) * (unit / self.share), 1.0)
            return Placed(leading, terms, np.asarray(units))
        is_inside = (leading > 0) & (self.away(block) <= (lattice.steps * self.radius) ** 2)
        shifted = (terms - np.array(self.centre)[:, None]) * is_inside
        return Placed(leading * is_inside, shifted, np.full(block.shape[1], unit))

    def _rows(self, placed: Placed, lattice: Lattice) -> Floats:
        z = np.empty((self.columns, len(placed.leading)))
        if self.intercept:
            z[0] = placed.leading * (self.constant / lattice.radius)
        np.multiply(placed.terms, placed.unit, out=z[int(self.intercept) :])
        return z

    def terms_of(self, block: Floats) -> Floats:
        """Return the integers of the terms, shape (terms, rows)."""
        return block[1 : 1 + self.terms]

    def chosen(self, block: Floats) -> Floats:
        """Return 1 for each row's level, else 0, shape (responses + 1, rows).

        A row that was shrunk has the signs it had: one of the responses is above 0 at most.
        """
        indicators = np.where(block[-self.responses :] > 0, 1.0, 0.0)
        return np.vstack([1.0 - indicators.max(axis=0), indicators])

    def labels(self, block: Floats) -> Floats:
        """Return +1 for the second level, else -1; 0 where the row is incomplete."""
        return np.where(block[0] > 0, np.where(block[-1] > 0, 1.0, -1.0), 0.0)

    def response(self, block: Floats, lattice: Lattice) -> Floats:
        """Return the response in its own unit."""
        return np.asarray(self.middle + self.reach * block[-1] / lattice.steps)
