"""Counts of cells in an order that have noise of their own each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dpmodels.postprocess.hierarchy import Hierarchy, line, shared_out, whole_cells
from dpmodels.postprocess.protocol import NO_WEIGHT, Spread, balanced, whole, whole_running
from dpmodels.released import CountsRelease
from dpmodels.typing import Floats, Integers

# Choices: so many cells of a group, or nodes above them, are made whole at once, more of them from
# the top down, with so many children a node.
AT_ONCE = 16
CHILDREN = 4
_POWERS = (1, 2, 3, 4)


@dataclass(frozen=True, eq=False)
class FlatCounts:
    """Counts with independent noise, but for a public total that they share.

    Whole counts of many cells in a line begin with a few long runs of them, whose running totals
    are made to rise: the true ones do, so that no noise takes these farther away. From there they
    go down by the sums of shorter runs: what cutting at 0 adds to a cell is taken from its
    neighbours, not from all cells alike.
    """

    release: CountsRelease
    shape: tuple[int, ...]  # groups, cells
    above: Hierarchy | None = None  # By which many are made whole where they are in no line

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
        """Of each group in turn, the incomplete rows last."""
        if self.shape[1] <= AT_ONCE:
            return whole(self._balanced, self.release.rows)
        if self.above is not None:
            totals = whole(np.append(self.cells.sum(axis=1), self.incomplete), self.release.rows)
            cells = whole_cells(self.above, self.above.sums(self.cells), totals[:-1])
            return np.append(cells.ravel(), totals[-1])
        hierarchy = line(self.shape[1], CHILDREN)
        levels = hierarchy.sums(self.cells)
        top = max(place for place, size in enumerate(hierarchy.sizes) if size <= AT_ONCE)
        made = whole_running(levels[top], self.incomplete, self.release.rows)
        nodes = made[:-1].reshape(self.shape[0], -1)
        cells = shared_out(nodes, hierarchy.starts[top:], levels[top + 1 :])
        return np.append(cells.ravel(), made[-1])

    def spread(self, weights: Floats, others: Floats = NO_WEIGHT) -> Spread:
        """Return the noise in sums of the cells of one group."""
        own: Floats = np.asarray(weights, dtype=float)
        return self._shared([(own**power).sum(axis=-1) for power in _POWERS], others)

    def along(
        self, before: Floats, own: Floats, after: Floats, others: Floats = NO_WEIGHT
    ) -> Spread:
        """Return the noise in a sum a cell."""
        at = np.arange(self.shape[1])
        first, last = (np.asarray(one, dtype=float) for one in (before, after))
        rest = len(at) - 1 - at
        sums = [at * first**power + own**power + rest * last**power for power in _POWERS]
        return self._shared(sums, others)

    def within(
        self,
        starts: Integers,
        stops: Integers,
        inside: Floats,
        outside: Floats,
        others: Floats = NO_WEIGHT,
    ) -> Spread:
        """Return the noise in ranges of cells, and what is outside them."""
        held = stops - starts
        rest = self.shape[1] - held
        within, beyond = (np.asarray(one, dtype=float) for one in (inside, outside))
        return self._shared([held * within**k + rest * beyond**k for k in _POWERS], others)

    def _shared(self, sums: Sequence[Floats], others: Floats) -> Spread:
        """Take the part of the public total off, of sums of powers of the weights."""
        beside = (self.shape[0] - 1) * self.shape[1]
        one, two, three, four = (
            own + beside * others**power for own, power in zip(sums, _POWERS, strict=True)
        )
        if self.release.rows is None:
            return Spread(two, four)
        counts = len(self._balanced)
        mean = one / counts
        fourths = four - 4 * mean * three + 6 * mean**2 * two - 3 * counts * mean**4
        return Spread(two - counts * mean**2, fourths)
