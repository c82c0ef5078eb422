"""What releases of quantiles are planned from."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from dpmodels.privacy import Adjacency
from dpmodels.typing import Floats, Indices

# The public cells of a range in which rows are counted for quantiles.

# Cells that grow from the pole on span so many doublings, about: a choice.
DOUBLINGS = 20


@dataclass(frozen=True)
class Grid:
    """Cells of a range whose places go from 0 to 1.

    Without a pole each cell is one of so many equal steps. With one, half of the cells are equal
    and half of them grow in proportion to their distance from the pole, so that a range that is a
    thousand times too wide costs ten doublings and not all precision; the pole and both ends of the
    range are cells of their own, since rows often stand there.
    """

    size: int  # About so many cells; of steps just so many, two or more
    pole: float | None = None

    @property
    def lower(self) -> Floats:
        """Lower ends of the cells."""
        return _places(self)[0]

    @property
    def upper(self) -> Floats:
        """Upper ends of the cells; of those that are one number the same."""
        return _places(self)[1]

    @property
    def cells(self) -> int:
        """How many there are."""
        return len(self.lower)

    def cell(self, places: Floats) -> Floats:
        """Return the cell of each place, nan where that is."""
        if self.pole is None:
            return np.asarray(np.rint(places * (self.size - 1)))
        cell = np.searchsorted(_ends(self.size, self.pole)[1:-1], places, side="right")
        return np.where(np.isnan(places), np.nan, cell)

    def within(self, first: Indices, last: Indices, share: Floats) -> Floats:
        """Return the places that lie in shares of runs of cells, `last` excluded; steps if any."""
        if self.pole is None:
            cell = np.minimum(first + np.floor(share * (last - first)), last - 1)
            return np.asarray(cell / (self.size - 1))
        low, high = self.lower[first], self.upper[last - 1]
        return np.asarray(low + share * (high - low))


@lru_cache(maxsize=16)
def _places(grid: Grid) -> tuple[Floats, Floats]:
    if grid.pole is None:
        steps = np.arange(grid.size) / (grid.size - 1)
        return steps, steps
    ends = _ends(grid.size, grid.pole)
    lower, upper = ends[:-1].copy(), ends[1:].copy()
    for place in (0.0, grid.pole, 1.0):
        alone = grid.cell(np.array([place])).astype(np.intp)
        lower[alone] = upper[alone] = place
    return lower, upper


@lru_cache(maxsize=16)
def _ends(size: int, pole: float) -> Floats:
    """Return the ends of equal cells, of growing ones, and of the three that hold one number."""
    doublings = np.linspace(-DOUBLINGS, 0, size // 2 + 1)
    sides = [side for side in (-pole, 1 - pole) if side]
    growing = [pole + side * 2.0 ** doublings[:: len(sides)] for side in sides]
    # The cell of 1 begins just below it, those of the pole and of 0 end just above.
    single = [np.nextafter(place, side) for place, side in ((0.0, 1.0), (pole, 1.0), (1.0, 0.0))]
    equal = np.linspace(0, 1, size - size // 2 + 1)
    ends = np.unique(np.concatenate([equal, *growing, single, [pole]]))
    return ends[(ends >= 0) & (ends <= 1)]


# A choice, within what the sampler takes: no table has so many rows.
LARGEST_SCALE = 2.0**50


@dataclass(frozen=True)
class QuantileFacts:
    """Public facts a plan may use."""

    probs: tuple[float, ...]  # Which quantiles, each from 0 to 1
    groups: int
    grid: Grid  # Cells of the public range
    level: float | None  # Coverage of the intervals that are wanted; None for none
    adjacency: Adjacency
