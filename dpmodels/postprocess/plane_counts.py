"""Counts of the cells of a plane, row by row, whatever order they were made in."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from dpmodels.postprocess.flat_counts import FlatCounts
from dpmodels.postprocess.plane import Plane, plane
from dpmodels.postprocess.protocol import NO_WEIGHT, OrderedCounts, Spread
from dpmodels.postprocess.tree_counts import TreeCounts
from dpmodels.released import CountsRelease, SumsRelease
from dpmodels.typing import Floats, Integers

# A choice: so many cells a side of the blocks by which noisy counts of cells are made whole.
SIDE = 4


@dataclass(frozen=True, eq=False)
class PlaneCounts:
    """Counts by group and cell, the last variable fastest."""

    made: OrderedCounts  # in the order of the plane's blocks
    blocks: Plane

    @property
    def unlawful(self) -> str:
        """Why the noise of sums has no known law; empty where it has one."""
        return self.made.unlawful

    @cached_property
    def _place(self) -> NDArray[np.intp]:
        return self.blocks.place.ravel()

    @cached_property
    def _order(self) -> NDArray[np.intp]:
        return self.blocks.order

    @cached_property
    def cells(self) -> Floats:
        """Shape (groups, cells)."""
        return self.made.cells[:, self._place]

    @property
    def incomplete(self) -> float:
        """Number of incomplete rows."""
        return self.made.incomplete

    @cached_property
    def whole(self) -> Integers:
        """Of each group in turn, the incomplete rows last."""
        own = self.made.whole
        cells = own[:-1].reshape(-1, len(self._place))[:, self._place]
        return np.append(cells.ravel(), own[-1])

    def spread(self, weights: Floats, others: Floats = NO_WEIGHT) -> Spread:
        """Return the noise in sums of the cells of one group."""
        return self.made.spread(np.asarray(weights, dtype=float)[..., self._order], others)

    def along(
        self, before: Floats, own: Floats, after: Floats, others: Floats = NO_WEIGHT
    ) -> Spread:
        """Return the noise in a sum a cell, in which all other cells have one weight."""
        assert np.array_equal(before, after), "a plane has no cells before a cell and after it"
        rest, each, beside = (self._turned(one) for one in (before, own, others))
        found = self.made.along(rest, each, rest, beside)
        return Spread(found.squares[self._place], found.fourths[self._place])

    def _turned(self, values: Floats) -> Floats:
        """Put one value a cell in the order of the blocks; a number stays."""
        given = np.asarray(values)
        return given[self._order] if given.ndim else given


def plane_counts(
    release: CountsRelease | SumsRelease, shape: tuple[int, ...] | None = None
) -> PlaneCounts:
    """Return the counts of a release of so many groups, rows and columns."""
    if isinstance(release, SumsRelease):
        blocks = plane(release.shape[1:], release.fanout)
        return PlaneCounts(TreeCounts(release, blocks.hierarchy), blocks)
    groups, *sides = shape or ()
    blocks = plane(tuple(sides), SIDE)
    cells = release.values[:-1].reshape(groups, -1)[:, blocks.order]
    turned = replace(release, values=np.append(cells.ravel(), release.values[-1]))
    return PlaneCounts(FlatCounts(turned, cells.shape, blocks.hierarchy), blocks)
