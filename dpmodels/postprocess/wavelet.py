"""Counts of ordered cells as Haar wavelets: a total, and differences of neighbouring sums.

Cells are joined in pairs, level by level; with an odd number one stays unpaired. So there is one
difference less than there are cells, and with the total they determine all counts.

*Theorem.* If the sum over a node is S, and that of its first child less that of its second d, the
children have ``(S + d) / 2`` and ``(S - d) / 2``. In a sum of cells let A be the weight of a node:
for a cell its own, else the mean of its children's. Then d has half the difference of the
children's weights, and the total has the weight of the top node.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dpmodels.postprocess.hierarchy import Hierarchy, line, whole_cells
from dpmodels.postprocess.protocol import NO_WEIGHT, CellRanges, Spread, whole
from dpmodels.released import SumsRelease
from dpmodels.typing import Flags, Floats, Indices, Integers, Numbers, Scalars

# Children per node in the tree used to round counts to integers: a choice.
CHILDREN = 4


def pairs(cells: int) -> tuple[Hierarchy, tuple[Indices, ...]]:
    """Return the nodes above cells, and by level the first child of each pair or single child."""
    hierarchy = line(cells, 2)
    return hierarchy, (np.zeros(1, dtype=np.intp), *hierarchy.starts)


def wavelets(cells: Numbers) -> Scalars:
    """Return the total, then differences level by level; cells are on the last axis.

    >>> wavelets(np.array([5, 1, 2, 0])).tolist()
    [8, 4, 4, 2]
    """
    hierarchy, starts = pairs(cells.shape[-1])
    coefficients = [cells.sum(axis=-1, keepdims=True)]
    for counts, first in zip(hierarchy.sums(cells), starts, strict=True):
        pair_starts = first[_paired(first, counts.shape[-1])]
        coefficients.append(counts[..., pair_starts] - counts[..., pair_starts + 1])
    return np.concatenate(coefficients, axis=-1)


def from_wavelets(values: Floats, total: Floats) -> Floats:
    """Return the cells with the differences of `values` and the totals `total`, shape (...,)."""
    hierarchy, starts = pairs(values.shape[-1])
    above, position = total[..., None], 1
    for first, size in zip(starts, hierarchy.sizes, strict=True):
        paired = _paired(first, size)
        differences = values[..., position : position + int(paired.sum())]
        position += differences.shape[-1]
        below = np.repeat(above, 1 + paired, axis=-1)
        pair_starts = first[paired]
        below[..., pair_starts] = (above[..., paired] + differences) / 2
        below[..., pair_starts + 1] = (above[..., paired] - differences) / 2
        above = below
    return np.asarray(above)


def _paired(first: Indices, size: int) -> Flags:
    return np.asarray(np.diff(first, append=size) == 2)


@dataclass(frozen=True, eq=False)
class WaveletCounts:
    """Counts from a noisy total and noisy differences, with the noise distribution of sums."""

    release: SumsRelease

    unlawful = ""

    @cached_property
    def _totals(self) -> Floats:
        """Totals of the groups, then the incomplete rows; consistent with a public total."""
        n_groups, n_cells = self.release.shape
        values, n_rows = self.release.values, self.release.rows
        totals = np.append(values[:-1].reshape(n_groups, n_cells)[:, 0], values[-1])
        return totals if n_rows is None else totals + (n_rows - totals.sum()) / len(totals)

    @cached_property
    def cells(self) -> Floats:
        """Shape (groups, cells)."""
        values = self.release.values[:-1].reshape(self.release.shape)
        return from_wavelets(values, self._totals[:-1])

    @property
    def incomplete(self) -> float:
        """Number of incomplete rows."""
        return float(self._totals[-1])

    @cached_property
    def whole(self) -> Integers:
        """Integer counts by group, the incomplete rows last."""
        hierarchy = line(self.release.shape[1], CHILDREN)
        totals = whole(self._totals, self.release.rows)
        cells = whole_cells(hierarchy, hierarchy.sums(self.cells), totals[:-1])
        return np.append(cells.ravel(), totals[-1])

    def spread(self, weights: Floats, other_groups: Floats = NO_WEIGHT) -> Spread:
        """Return the noise in sums of the cells of one group."""
        node_weights: Floats = np.asarray(weights, dtype=float)
        noise = Spread(np.zeros(node_weights.shape[:-1]), np.zeros(node_weights.shape[:-1]))
        for first in reversed(pairs(self.release.shape[1])[1]):
            last = np.append(first[1:], node_weights.shape[-1]) - 1
            halves = (node_weights[..., first] - node_weights[..., last]) / 2
            noise = noise.plus((halves**2).sum(axis=-1), np.square(halves**2).sum(axis=-1))
            node_weights = (node_weights[..., first] + node_weights[..., last]) / 2
        return self._with_totals(noise, node_weights[..., 0], other_groups)

    def along(
        self, before: Floats, cell_weight: Floats, after: Floats, other_groups: Floats = NO_WEIGHT
    ) -> Spread:
        """Return the noise in one sum per cell."""
        hierarchy, starts = pairs(self.release.shape[1])
        at = np.arange(hierarchy.cells)
        weight: Floats = cell_weight + np.zeros(hierarchy.cells)
        noise = Spread(np.zeros(hierarchy.cells), np.zeros(hierarchy.cells))
        for first, size in reversed(list(zip(starts, hierarchy.sizes, strict=True))):
            parent = np.searchsorted(first, at, side="right") - 1
            paired = _paired(first, size)[parent]
            sibling_weight = np.where(at == first[parent], after, before)
            halves = np.where(paired, (weight - sibling_weight) / 2, 0.0)
            noise = noise.plus(halves**2, np.square(halves**2))
            weight, at = weight - halves, parent
        return self._with_totals(noise, weight, other_groups)

    def within(self, ranges: CellRanges) -> Spread:
        """Return the noise in sums with one weight inside a range of cells and one outside."""
        starts, stops, inside, outside, other_groups = ranges
        hierarchy, firsts = pairs(self.release.shape[1])
        ends = np.stack([starts, stops - 1])
        weights: Floats = inside + np.zeros(ends.shape)
        noise = Spread(np.zeros(ends.shape[1:]), np.zeros(ends.shape[1:]))
        for first, size in reversed(list(zip(firsts, hierarchy.sizes, strict=True))):
            above = np.searchsorted(first, ends, side="right") - 1
            paired, leads = _paired(first, size)[above], ends == first[above]
            distinct = ends[0] != ends[1]
            # The sibling after the range's first node is inside, as is the one before its last.
            beside = np.stack([leads[0] & distinct, ~leads[1] & distinct])
            joined = (above[0] == above[1]) & distinct
            sibling_weight = np.where(joined, weights[::-1], np.where(beside, inside, outside))
            halves = np.where(paired, (weights - sibling_weight) / 2, 0.0)
            weights = weights - halves
            halves[1] *= distinct & ~joined
            noise = noise.plus((halves**2).sum(axis=0), np.square(halves**2).sum(axis=0))
            ends = above
        return self._with_totals(noise, weights[0], other_groups)

    def _with_totals(self, noise: Spread, weight: Floats, other_groups: Floats) -> Spread:
        n_others = self.release.shape[0] - 1
        adjustment = (weight + n_others * other_groups) / (n_others + 2)
        if self.release.rows is None:
            adjustment = NO_WEIGHT
        squares, fourths = (
            (weight - adjustment) ** power
            + n_others * (other_groups - adjustment) ** power
            + adjustment**power
            for power in (2, 4)
        )
        return noise.plus(squares, fourths)


def mean_variances(cells: int) -> tuple[float, float]:
    """Return the variances of the mean range and of a cell, for noise of variance 1.

    Approximate, as if the number of cells were a power of 2. A node has a quarter of its parent's
    variance plus a quarter of that of a difference. As in
    :func:`dpmodels.postprocess.hierarchy.range_counts`, the mean range has twice the variance of a
    sum up to a random edge, less that of the mean of such sums.

    >>> [round(variance, 2) for variance in mean_variances(4096)]
    [2.03, 0.33]
    """
    levels = noisy_levels(cells) - 1
    weight = weight2 = 1.0
    prefix_variance, steps, cell, size = 0.0, 0.0, 1.0, 2.0
    for _ in range(levels):
        prefix_variance += (weight2 + 1 - 2 * weight + weight2) / 8
        weight, weight2 = (1 + 2 * weight) / 4, (1 + 2 * weight + 2 * weight2) / 8
        steps += size / (16 * cells)
        cell, size = (cell + 1) / 4, 2 * size
    return 2 * (prefix_variance + weight2 - steps - 1 / 4), cell


def noisy_levels(cells: int) -> int:
    """Return how many released numbers a row changes: the total, and one difference per level.

    >>> noisy_levels(4096), noisy_levels(5)
    (13, 4)
    """
    return 1 + len(pairs(cells)[1])
