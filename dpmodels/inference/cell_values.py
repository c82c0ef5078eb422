"""Points of numbers within the cells of a table, and the noise of their values."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dpmodels.typing import Floats, Integers


@dataclass(frozen=True, eq=False)
class Nodes:
    """The points of the columns of a table, each of a cell; `operators` have an axis of the table.

    An operator, shape (points, levels), has the rows of each point by those of the levels;
    `levels`, shape (points,), the level of each.
    """

    operators: tuple[Floats, ...]
    levels: tuple[Integers, ...]

    def at(self, by_cell: Floats) -> Floats:
        """Return numbers by cell, shape (cells, k), by point."""
        table = by_cell.reshape(*(operator.shape[1] for operator in self.operators), -1)
        return np.asarray(table[np.ix_(*self.levels)]).reshape(-1, by_cell.shape[1])

    def along(self, axis: int, operator: Floats) -> Nodes:
        """Return the points with others of one column, each of the cell that has most of it."""
        (*operators,), (*levels,) = self.operators, self.levels
        operators[axis], levels[axis] = operator, operator.argmax(axis=1)
        return Nodes(tuple(operators), tuple(levels))

    def spread(self, counts: Floats) -> Floats:
        """Return counts by point, from those by cell, shape (cells,)."""
        table = counts.reshape([operator.shape[1] for operator in self.operators])
        return _along(self.operators, table).ravel()

    def gathered(self, scores: Floats) -> Floats:
        """Return scores by cell from those by point, shape (points, k): sums are the same."""
        table = scores.reshape(*(operator.shape[0] for operator in self.operators), -1)
        summed = _along([operator.T for operator in self.operators], table)
        return summed.reshape(-1, scores.shape[1])


def _along(operators: Sequence[Floats], table: Floats) -> Floats:
    for axis, operator in enumerate(operators):
        table = np.moveaxis(np.tensordot(operator, table, (1, axis)), 0, axis)
    return table


@dataclass(frozen=True, eq=False)
class ValueNoise:
    """How some sums move by the noise in the values of cells."""

    covariance: Floats  # Of the noise of the sums, shape (k, k)
    tails: Floats  # What one noise sd more in the total of each tail adds, shape (tails, k)
    # By how many noise sds the total of each tail may be too large: it is not negative.
    largest: Floats

    @classmethod
    def of(cls, changes: Floats, largest: Floats | float = math.inf) -> ValueNoise:
        """Return the noise of sums that move by the noise of counts, shape (counts, k)."""
        limits = np.resize(largest, len(changes))
        is_tail = np.isfinite(limits) & changes.any(axis=1)
        return cls(np.asarray(changes.T @ changes), changes[is_tail], limits[is_tail])

    def __add__(self, other: ValueNoise) -> ValueNoise:
        return ValueNoise(
            self.covariance + other.covariance,
            np.concatenate([self.tails, other.tails]),
            np.concatenate([self.largest, other.largest]),
        )

    def through(self, matrix: Floats) -> ValueNoise:
        """Return the noise of a matrix times the sums."""
        covariance = matrix @ self.covariance @ matrix.T
        return ValueNoise(covariance, self.tails @ matrix.T, self.largest)


def no_noise(k: int) -> ValueNoise:
    """Return the noise of k sums of values that are known."""
    return ValueNoise(np.zeros((k, k)), np.zeros((0, k)), np.zeros(0))


# How some sums move with the values of cells: the noise of these, and by how much more with a row
# of each cell, shape (cells, k), and of each point, shape (points, k).
ValueMoves = tuple[ValueNoise, Floats, Floats]
