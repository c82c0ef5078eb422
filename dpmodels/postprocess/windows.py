"""Windows about zero, or the bound nearest to it, and what each is worth to a draw of one.

Windows are copies of the declared range, shrunk about its anchor. A draw takes window j with a
probability in proportion to ``exp(-ε b_j - c_j)``, b_j the rows outside it and c_j a public cost.
As the window grows, the mean squared error of the sum of a power p grows by the factor ``4**p`` an
octave, so that costs rise by `STEEP` times its logarithm: the expected error is then at most a
small multiple of that of the smallest window with all rows. They rise so over the octaves just
below the declared range, where an error is largest, and hardly below, as rows outside must be worth
more than all costs.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from dpmodels.postprocess.ranges import anchor_of, range_cells
from dpmodels.typing import Floats

# Windows per octave, and octaves.
PER_OCTAVE, OCTAVES = 4, 20
# Rise of the costs over the logarithm of the fall of errors, over how many octaves, the least that
# they rise for each power, and how much an octave below. Choices, as are those that follow.
STEEP, STEEP_OCTAVES, LEAST_RISE, FLAT = 1.5, 9, 13.0, 0.05
# By how much rows outside exceed all costs, in the logarithm of probabilities.
SPARE = 14.0


@dataclass(frozen=True)
class Windows:
    """The windows of a declared range, and their costs for a power, 1 or 2.

    `worth` is ε times the rows that are surely not at the anchor.
    """

    lower: float
    upper: float
    power: int
    worth: float

    @cached_property
    def edges(self) -> Floats:
        """The edges of the public cells between windows, shape (cells + 1,)."""
        return range_cells(self.lower, self.upper, PER_OCTAVE, OCTAVES, 1)

    @cached_property
    def bounds(self) -> Floats:
        """Both ends of each window, the declared range first, shape (windows, 2)."""
        anchor = anchor_of(self.lower, self.upper)
        fractions = 2.0 ** (-np.arange(PER_OCTAVE * OCTAVES + 1) / PER_OCTAVE)
        return anchor + fractions[:, None] * (np.array([self.lower, self.upper]) - anchor)

    @property
    def costs(self) -> Floats:
        """Costs of the windows, shape (windows,), rising from 0 for the smallest."""
        octaves = np.arange(PER_OCTAVE * OCTAVES + 1) / PER_OCTAVE
        costs = -np.minimum(rise(self.power) * octaves, self.most) - FLAT * octaves
        return np.asarray(costs - costs[-1])

    @property
    def most(self) -> float:
        """By how much costs rise over the octaves just below the declared range."""
        full = rise(self.power) * STEEP_OCTAVES
        return min(full, max(self.worth - SPARE, LEAST_RISE * self.power))

    def outside(self, counts: NDArray[np.object_]) -> NDArray[np.object_]:
        """Return the rows outside each window, from exact counts by cell."""
        middles = (self.edges[1:] + self.edges[:-1]) / 2
        low, high = self.bounds[:, :1], self.bounds[:, 1:]
        return np.asarray(((middles < low) | (middles > high)) @ counts)

    def saved(self, window: int, eps: float) -> float:
        """Return the rows outside a window that its cost makes up for, beside the declared range.

        More than these are outside a drawn window only by chance.
        """
        return float(self.costs[0] - self.costs[window]) / eps


def rise(power: int) -> float:
    """Return by how much costs rise an octave."""
    return STEEP * power * math.log(4)


def needed(power: int) -> float:
    """Return ε times rows with which costs rise over all octaves that they may."""
    return rise(power) * STEEP_OCTAVES + SPARE
