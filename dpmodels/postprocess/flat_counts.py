"""Counts of ordered cells with independent noise in each cell."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dpmodels.postprocess.hierarchy import Hierarchy, distribute, line, whole_cells
from dpmodels.postprocess.protocol import (
    NO_WEIGHT,
    CellRanges,
    Spread,
    balanced,
    whole,
    whole_running,
)
from dpmodels.released import CountsRelease
from dpmodels.typing import Floats, Integers

# Choices: most cells of a group, or nodes above them, that are rounded together; with more cells
# rounding goes from the top down, with this many children per node.
AT_ONCE = 16
CHILDREN = 4
_POWERS = (1, 2, 3, 4)


@dataclass(frozen=True, eq=False)
class FlatCounts:
    """Counts with independent noise, except that they may share a public total.

    Integer counts of many cells in a row start from a few long runs, whose running totals are made
    nondecreasing, like the true ones. From there they follow the sums of shorter runs: what
    truncation at 0 adds to a cell is subtracted from its neighbours, not from all cells.
    """

    release: CountsRelease
    shape: tuple[int, ...]  # groups, cells
    above: Hierarchy | None = None  # Nodes used for rounding if cells are not in a row

    unlawful = ""

    @cached_property
    def _balanced(self) -> Floats:
        return balanced(self.release.values, self.release.rows)

    @property
    def cells(self) -> Floats:
        """Shape (groups, cells)."""
        return self._balanced[:-1].reshape(self.shape)

    @property
    def incomplete(self) -> float:
        """Number of incomplete rows."""
        return float(self._balanced[-1])

    @cached_property
    def whole(self) -> Integers:
        """Integer counts by group, the incomplete rows last."""
        if self.shape[1] <= AT_ONCE:
            return whole(self._balanced, self.release.rows)
        if self.above is not None:
            totals = whole(np.append(self.cells.sum(axis=1), self.incomplete), self.release.rows)
            cells = whole_cells(self.above, self.above.sums(self.cells), totals[:-1])
            return np.append(cells.ravel(), totals[-1])
        hierarchy = line(self.shape[1], CHILDREN)
        levels = hierarchy.sums(self.cells)
        top = max(place for place, size in enumerate(hierarchy.sizes) if size <= AT_ONCE)
        totals_by_node = whole_running(levels[top], self.incomplete, self.release.rows)
        nodes = totals_by_node[:-1].reshape(self.shape[0], -1)
        cells = distribute(nodes, hierarchy.starts[top:], levels[top + 1 :])
        return np.append(cells.ravel(), totals_by_node[-1])

    def spread(self, weights: Floats, other_groups: Floats = NO_WEIGHT) -> Spread:
        """Return the noise in sums of the cells of one group."""
        weights_array: Floats = np.asarray(weights, dtype=float)
        sums = [(weights_array**power).sum(axis=-1) for power in _POWERS]
        return self._shared(sums, other_groups)

    def along(
        self, before: Floats, cell_weight: Floats, after: Floats, other_groups: Floats = NO_WEIGHT
    ) -> Spread:
        """Return the noise in one sum per cell."""
        n_before = np.arange(self.shape[1])
        first, last = (np.asarray(weight, dtype=float) for weight in (before, after))
        n_after = len(n_before) - 1 - n_before
        sums = [n_before * first**k + cell_weight**k + n_after * last**k for k in _POWERS]
        return self._shared(sums, other_groups)

    def within(self, ranges: CellRanges) -> Spread:
        """Return the noise in sums with one weight inside a range of cells and one outside."""
        n_inside = ranges.stops - ranges.starts
        n_outside = self.shape[1] - n_inside
        within, beyond = (
            np.asarray(weight, dtype=float) for weight in (ranges.inside, ranges.outside)
        )
        sums = [n_inside * within**k + n_outside * beyond**k for k in _POWERS]
        return self._shared(sums, ranges.other_groups)

    def _shared(self, sums: Sequence[Floats], other_groups: Floats) -> Spread:
        """Adjust sums of powers of the weights for the public total."""
        n_others = (self.shape[0] - 1) * self.shape[1]
        first, second, third, fourth = (
            power_sum + n_others * other_groups**power
            for power_sum, power in zip(sums, _POWERS, strict=True)
        )
        if self.release.rows is None:
            return Spread(second, fourth)
        counts = len(self._balanced)
        mean = first / counts
        fourths = fourth - 4 * mean * third + 6 * mean**2 * second - 3 * counts * mean**4
        return Spread(second - counts * mean**2, fourths)
