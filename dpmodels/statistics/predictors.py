"""The linear predictor's rows: from joint rows (x, y) on the lattice to z in the unit ball."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpmodels.noise.lattice import MAX_BITS, Lattice, lengths
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
    turned: Floats | None = None  # Shape (terms, rows): that part of z, where it has other axes


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
    # Of an offset, the column before those of the response: as `middle` and `reach` for these.
    known: tuple[float, float] | None = field(default=None, repr=False)
    # Lines that turn terms about the centre, in shares of the joint ball, into those whose length
    # `radius` is of; empty where they are the terms themselves.
    axes: tuple[tuple[float, ...], ...] = field(default=(), repr=False)

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

    def within(self, centre: Floats, radius: float, axes: Floats | None = None) -> Predictors:
        """Return those of the rows that lie in another ball, given by released values.

        `centre`, shape (terms,), and `radius` are shares of the joint ball's radius. The ball is
        one of the terms times `axes`, shape (terms, terms), where these are given.
        """
        integers = np.rint(centre * self.lattice.steps)
        lines = () if axes is None else tuple(map(tuple, axes.tolist()))
        return replace(self, centre=tuple(integers.tolist()), radius=radius, axes=lines)

    @property
    def placed(self) -> Floats:
        """The centre in shares of the joint ball's radius, shape (terms,)."""
        return np.array(self.centre) / self.lattice.steps

    @property
    def lattice(self) -> Lattice:
        """Integers of the joint rows."""
        return Lattice(MAX_BITS, self.terms + (self.known is not None) + self.responses)

    @property
    def largest_known(self) -> float:
        """How far an offset is from 0 at most."""
        return abs(self.known[0]) + abs(self.known[1]) if self.known is not None else 0.0

    def read(self, block: Floats, lattice: Lattice) -> Floats:
        """Return z, shape (columns, rows), each at most 1 long; zeros where incomplete."""
        return self._rows(self._placed(block, lattice), lattice)

    def linear_rows(self, block: Floats, lattice: Lattice, parameter: Floats) -> LinearRows:
        """Return z and its products with the lines of a parameter, offsets added.

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
        slopes = lines[:, int(self.intercept) :]
        if self.axes:
            linear = turn(slopes @ self._turning(lattice), _wide(lattice)).times(placed.terms)
        else:
            linear = turn(slopes, lattice).times(placed.terms) * placed.unit
        if self.intercept:
            linear += placed.leading * (self.constant / lattice.radius * lines[:, :1])
        if self.known is not None:
            linear += self.offsets(block, lattice)
        return LinearRows(self._rows(placed, lattice), linear)

    def away(self, block: Floats) -> Floats:
        """Return the squared distance of each row's terms from the centre, in lattice steps."""
        terms = self.terms_of(block) - np.array(self.centre)[:, None]
        if self.axes:
            steps = self.lattice.steps * self.radius / self.share
            return np.square(lengths(self._turned(terms, self.lattice)) * steps)
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
        if self.axes:
            shifted = (terms - np.array(self.centre)[:, None]) * (leading > 0)
            turned = self._turned(shifted, lattice)
            is_inside = (leading > 0) & (lengths(turned) <= self.share)
            ones = np.ones(block.shape[1])
            return Placed(leading * is_inside, shifted * is_inside, ones, turned * is_inside)
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
        terms = placed.terms if placed.turned is None else placed.turned
        np.multiply(terms, placed.unit, out=z[int(self.intercept) :])
        return z

    def _turning(self, lattice: Lattice) -> Floats:
        """Return the matrix from integers about the centre to the terms' part of z."""
        return np.array(self.axes) * (self.share / (lattice.steps * self.radius))

    def _turned(self, shifted: Floats, lattice: Lattice) -> Floats:
        return turn(self._turning(lattice), _wide(lattice)).times(shifted)

    def terms_of(self, block: Floats) -> Floats:
        """Return the integers of the terms, shape (terms, rows)."""
        return block[1 : 1 + self.terms]

    def chosen(self, block: Floats) -> Floats:
        """Return 1 for each row's level, else 0, shape (responses + 1, rows).

        A row that was shrunk has the signs it had: one of the responses is above 0 at most.
        """
        indicators = np.where(block[-self.responses :] > 0, 1.0, 0.0)
        return np.vstack([1.0 - indicators.max(axis=0), indicators])

    def inside(self, block: Floats, lattice: Lattice) -> NDArray[np.bool_]:
        """Return which rows are complete and not left out, shape (rows,)."""
        return np.asarray(self._placed(block, lattice).leading > 0)

    def labels(self, block: Floats) -> Floats:
        """Return +1 for the second level, else -1; 0 where the row is incomplete."""
        return np.where(block[0] > 0, np.where(block[-1] > 0, 1.0, -1.0), 0.0)

    def response(self, block: Floats, lattice: Lattice) -> Floats:
        """Return the response in its own unit."""
        return np.asarray(self.middle + self.reach * block[-1] / lattice.steps)

    def offsets(self, block: Floats, lattice: Lattice) -> Floats:
        """Return what is added to each row's linear predictor, shape (rows,)."""
        if self.known is None:
            return np.zeros(block.shape[1])
        middle, reach = self.known
        return np.asarray(middle + reach * block[self.terms + 1] / lattice.steps)


def _wide(lattice: Lattice) -> Lattice:
    """Return the lattice that differences of two rows are on."""
    return Lattice(lattice.bits + 1, lattice.columns)
