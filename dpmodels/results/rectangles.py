"""Rectangles of a plane's cells that somebody asks for."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpmodels.postprocess.protocol import OrderedCounts, Spread
from dpmodels.results.bins import Ranges
from dpmodels.typing import Floats

# Weights of cells that are held at once: a choice.
AT_ONCE = 2_000_000


class Rectangles(NamedTuple):
    """Rectangles, as many as there are ranges along each axis, in a plane of so many bins."""

    first: Ranges
    second: Ranges
    bins: tuple[int, int]

    def _sides(self) -> tuple[Floats, Floats]:
        """Return which part of each bin is in each, shape (rectangles, bins), along each axis."""
        first, second = (
            np.clip(own.stop[:, None] - np.arange(size), 0.0, 1.0)
            - np.clip(own.start[:, None] - np.arange(size), 0.0, 1.0)
            for own, size in zip((self.first, self.second), self.bins, strict=True)
        )
        return first, second

    def sums(self, counts: NDArray[Any]) -> Floats:
        """Return sums of counts, row by row, over them, evenly within a cell."""
        along, across = self._sides()
        return np.asarray(((along @ counts.reshape(self.bins)) * across).sum(axis=1))

    @property
    def aligned(self) -> bool:
        """Whether all of them end at breaks."""
        return self.first.aligned and self.second.aligned

    @property
    def inner(self) -> Rectangles:
        """The whole cells that are in them."""
        return Rectangles(self.first.inner, self.second.inner, self.bins)

    @property
    def outer(self) -> Rectangles:
        """The cells that they touch."""
        return Rectangles(self.first.outer, self.second.outer, self.bins)

    def spread(self, counts: OrderedCounts, inside: Floats, outside: Floats) -> Spread:
        """Return the noise in sums of the cells inside and the others of a group, with weights."""
        many = len(self.first.start)
        one, other = (np.broadcast_to(own, many)[:, None] for own in (inside, outside))
        found = [
            counts.spread(other[own] + (one - other)[own] * held) for own, held in self._some()
        ]
        return Spread(*map(np.concatenate, zip(*found, strict=True)))

    def _some(self) -> Iterator[tuple[slice, Floats]]:
        """Yield the parts of cells that are in some of them, so many that they can be held."""
        along, across = self._sides()
        cells = self.bins[0] * self.bins[1]
        step = max(AT_ONCE // cells, 1)
        for start in range(0, len(along), step):
            own = slice(start, start + step)
            yield own, (along[own, :, None] * across[own, None, :]).reshape(-1, cells)
