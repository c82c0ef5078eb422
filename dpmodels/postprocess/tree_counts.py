"""Counts of ordered cells from the noisy counts of the nodes of a tree.

*Theorem.* Let z be the best estimate of a node's count from the node and all below it, U the sum of
the variances of its children's z, h the best estimate from all noisy counts. In a sum of cells h
has the weight A of :mod:`dpmodels.postprocess.hierarchy`; let B be the weight of z. Then the node's
noisy count has the weight ``B U / (1 + U)``, and z of a child ``(a - A) + B / (1 + U)``, by the
definitions of z and h. Noisy counts are independent, so sums of squares and of fourth powers of all
weights follow from the top down; below a node whose cells all have the same weight they are ``B²``
and ``B⁴`` times those of z.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from dpmodels.postprocess.hierarchy import (
    ConsistentCounts,
    Hierarchy,
    agreeing,
    line,
    split_levels,
    whole_cells,
)
from dpmodels.postprocess.protocol import NO_WEIGHT, CellRanges, Spread, whole
from dpmodels.released import SumsRelease
from dpmodels.typing import Floats, Indices, Integers


class _Level(NamedTuple):
    at: Indices  # index of the node
    weight: Floats  # of its best estimate
    before: Floats  # sum of the variances of the siblings before it
    after: Floats
    before4: Floats  # the same for fourth powers
    after4: Floats


@dataclass(frozen=True, eq=False)
class TreeCounts:
    """Least-squares counts, with the exact noise distribution of any sum of them."""

    release: SumsRelease
    above: Hierarchy | None = None  # The nodes; by default those above cells in a row

    unlawful = ""

    @cached_property
    def _hierarchy(self) -> Hierarchy:
        if self.above is not None:
            return self.above
        return line(self.release.shape[1], self.release.fanout)

    @cached_property
    def _consistent(self) -> ConsistentCounts:
        values, groups = self.release.values, self.release.shape[0]
        noisy = split_levels(self._hierarchy, values[:-1], groups)
        return agreeing(self._hierarchy, noisy, float(values[-1]), self.release.rows)

    @property
    def cells(self) -> Floats:
        """Shape (groups, cells)."""
        return self._consistent.cells

    @property
    def incomplete(self) -> float:
        """Number of incomplete rows."""
        return self._consistent.incomplete

    @cached_property
    def whole(self) -> Integers:
        """Integer counts by group, the incomplete rows last."""
        levels = self._consistent.levels
        sums = np.append(levels[0].sum(axis=1), self.incomplete)
        totals = whole(sums, self.release.rows)
        return np.append(whole_cells(self._hierarchy, levels, totals[:-1]).ravel(), totals[-1])

    def spread(self, weights: Floats, other_groups: Floats = NO_WEIGHT) -> Spread:
        """Return the noise in sums of the cells of one group."""
        hierarchy = self._hierarchy
        levels: list[Floats] = [np.asarray(weights, dtype=float)]
        for starts, variance in zip(
            reversed(hierarchy.starts), reversed(hierarchy.variances), strict=False
        ):
            summed = np.add.reduceat(levels[-1] * variance, starts, axis=-1)
            levels.append(summed / np.add.reduceat(variance, starts))
        levels.reverse()
        top = hierarchy.variances[0]
        total_weight = (levels[0] * top).sum(axis=-1) / top.sum()
        noise, net_weight = self._elsewhere(total_weight, other_groups)
        node_weight = levels[0] - (total_weight - net_weight)[..., None]
        for level, starts in enumerate(hierarchy.starts):
            below = np.add.reduceat(hierarchy.variances[level + 1], starts)
            noise = _added(noise, node_weight * below / (1 + below))
            excess = node_weight / (1 + below) - levels[level]
            node_weight = levels[level + 1] + hierarchy.spread(excess, level + 1)
        return _added(noise, node_weight)

    def along(
        self, before: Floats, cell_weight: Floats, after: Floats, other_groups: Floats = NO_WEIGHT
    ) -> Spread:
        """Return the noise in one sum per cell."""
        hierarchy = self._hierarchy
        path, weight = self._upward(before, cell_weight, after)
        noise, net_weight = self._elsewhere(weight, other_groups)
        excess = net_weight - weight
        for depth, level in enumerate(path):
            first, last = (np.square(side + excess) for side in (before, after))
            node_weight = level.weight + excess
            noise = Spread(
                noise.squares + first * level.before + last * level.after,
                noise.fourths + first * first * level.before4 + last * last * level.after4,
            )
            noisy, excess = node_weight, node_weight
            if depth < len(hierarchy.starts):
                starts = hierarchy.starts[depth]
                below = np.add.reduceat(hierarchy.variances[depth + 1], starts)[level.at]
                noisy = node_weight * below / (1 + below)
                excess = node_weight / (1 + below) - level.weight
            noisy = np.square(noisy)
            noise = noise.plus(noisy, noisy * noisy)
        return noise

    def within(self, ranges: CellRanges) -> Spread:
        """Return the noise in sums with one weight inside a range of cells and one outside."""
        starts, stops, inside, outside, other_groups = ranges
        path, part = upward(self._hierarchy, self._fourths, starts, stops)
        weight = np.asarray(outside + (inside - outside) * part)
        noise, net_weight = self._elsewhere(weight, other_groups)
        return downward(self._hierarchy, path, net_weight - weight, noise, inside, outside)

    def _upward(
        self, before: Floats, cell_weight: Floats, after: Floats
    ) -> tuple[tuple[_Level, ...], Floats]:
        """Return the paths of all cells, from the top, and the weights of the total."""
        hierarchy = self._hierarchy
        at = np.arange(hierarchy.cells)
        weight: Floats = cell_weight + np.zeros(hierarchy.cells)
        tops = (np.zeros(1, dtype=np.intp), *hierarchy.starts)
        levels: list[_Level] = []
        for starts, variance, fourth in reversed(
            list(zip(tops, hierarchy.variances, self._fourths, strict=True))
        ):
            parent = np.searchsorted(starts, at, side="right") - 1
            sides, sides4 = (_beside(values, starts, parent, at) for values in (variance, fourth))
            levels.append(_Level(at, weight, *sides, *sides4))
            summed = before * sides[0] + weight * variance[at] + after * sides[1]
            weight, at = summed / (sides[0] + variance[at] + sides[1]), parent
        return tuple(reversed(levels)), weight

    @cached_property
    def _fourths(self) -> tuple[Floats, ...]:
        """Sums of fourth powers of the noise weights in each node's z, level by level."""
        hierarchy = self._hierarchy
        levels: list[Floats] = [np.ones(hierarchy.cells)]
        for starts, variance in zip(
            reversed(hierarchy.starts), reversed(hierarchy.variances), strict=False
        ):
            below = np.add.reduceat(variance, starts)
            summed = np.add.reduceat(levels[-1], starts)
            levels.append((below**4 + summed) / (1 + below) ** 4)
        return tuple(reversed(levels))

    def _elsewhere(self, weight: Floats, other_groups: Floats) -> tuple[Spread, Floats]:
        """Return the noise from outside the group, and the net weight of the group's total.

        A public total adjusts all groups and the incomplete rows in proportion to their variances.
        """
        variance, n_others = self._hierarchy.whole_variance, self.release.shape[0] - 1
        adjustment = NO_WEIGHT
        if self.release.rows is not None:
            total = (weight + n_others * other_groups) * variance
            adjustment = total / ((n_others + 1) * variance + 1)
        fourth = float(self._fourths[0].sum())
        elsewhere, incomplete = np.square(other_groups - adjustment), np.square(adjustment)
        squares = n_others * elsewhere * variance + incomplete
        fourths = n_others * elsewhere**2 * fourth + incomplete**2
        return Spread(squares, fourths), weight - adjustment


def _added(noise: Spread, weights: Floats) -> Spread:
    squares = np.square(weights)
    return noise.plus(squares.sum(axis=-1), (squares * squares).sum(axis=-1))


def _beside(values: Floats, starts: Indices, parent: Indices, at: Indices) -> tuple[Floats, Floats]:
    """Return sums over the siblings before a node, and over those after it."""
    running = np.concatenate([[0.0], np.cumsum(values)])
    edges = np.append(starts[1:], len(values))
    return running[at] - running[starts[parent]], running[edges[parent]] - running[at + 1]


# The noise in sums over many runs of cells at once, for counts from the nodes of a tree.
#
# At each level a run has at most two end nodes, those of its first and its last cell; every other
# node lies entirely inside or outside the run, and sums below it are the same for all nodes of a
# level. The theorems are those above and of :mod:`dpmodels.postprocess.hierarchy`.


class Beside(NamedTuple):
    """Sums over the siblings of the end nodes, of variances or of fourth powers."""

    left: Floats  # Before the first node, outside the run
    first: Floats  # Between both nodes, or after the first where parents differ: in the run
    last: Floats  # Before the last node, where parents differ: in the run
    right: Floats  # After the last node, outside the run


class Ends(NamedTuple):
    """The end nodes of runs at one level, and the weights there."""

    first: Indices
    last: Indices
    weight: Floats  # Of the best estimate of the first
    weight_last: Floats
    beside: Beside  # Sums of variances
    fourths: Beside  # Sums of fourth powers


def upward(
    hierarchy: Hierarchy, fourths: Sequence[Floats], starts: Integers, stops: Integers
) -> tuple[tuple[Ends, ...], Floats]:
    """Return the ends of runs at all levels, from the top, and the weights of the total.

    A run has the cells from `starts` up to but excluding `stops`; `fourths` are by level the sums
    of fourth powers that correspond to the variances.
    """
    first, last = np.asarray(starts), np.asarray(stops) - 1
    weight, weight_last = np.ones(first.shape), np.ones(first.shape)
    tops = (np.zeros(1, dtype=np.intp), *hierarchy.starts)
    levels: list[Ends] = []
    for begin, variance, fourth in reversed(
        list(zip(tops, hierarchy.variances, fourths, strict=True))
    ):
        above, above_last = (np.searchsorted(begin, at, side="right") - 1 for at in (first, last))
        beside, beside4 = (
            _tree_runs_beside(values, begin, (first, last), (above, above_last))
            for values in (variance, fourth)
        )
        levels.append(Ends(first, last, weight, weight_last, beside, beside4))
        summed, summed_last = weight * variance[first], weight_last * variance[last]
        below = np.add.reduceat(variance, begin)
        joined, distinct = above == above_last, first != last
        above_weight = (summed + beside.first + joined * distinct * summed_last) / below[above]
        above_weight_last = (summed_last + beside.last) / below[above_last]
        weight, weight_last = above_weight, np.where(joined, above_weight, above_weight_last)
        first, last = above, above_last
    return tuple(reversed(levels)), weight


def downward(
    hierarchy: Hierarchy,
    path: Sequence[Ends],
    excess: Floats,
    noise: Spread,
    inside: Floats | float = 1.0,
    outside: Floats | float = 0.0,
) -> Spread:
    """Add the noise of all nodes to `noise`, which comes from other groups.

    `excess` is the net weight of the total less its weight in the sum; the cells of a run have the
    weight `inside`, all others `outside`.
    """
    excess_last = excess
    for depth, level in enumerate(path):
        before, after = outside + excess, outside + excess_last
        sides = Beside(before, inside + excess, inside + excess_last, after)
        weight, weight_last = (
            outside + (inside - outside) * fraction
            for fraction in (level.weight, level.weight_last)
        )
        node_weight, node_weight_last = weight + excess, weight_last + excess_last
        noisy, noisy_last = node_weight, node_weight_last
        if depth < len(hierarchy.starts):
            below = np.add.reduceat(hierarchy.variances[depth + 1], hierarchy.starts[depth])
            below_first, below_last = below[level.first], below[level.last]
            noisy = node_weight * below_first / (1 + below_first)
            excess = node_weight / (1 + below_first) - weight
            noisy_last = node_weight_last * below_last / (1 + below_last)
            excess_last = node_weight_last / (1 + below_last) - weight_last
        end_weights = np.stack([noisy, (level.first != level.last) * noisy_last])
        noise = Spread(
            noise.squares + _weighed(level.beside, sides, 2) + (end_weights**2).sum(axis=0),
            noise.fourths + _weighed(level.fourths, sides, 4) + (end_weights**4).sum(axis=0),
        )
    return noise


def _tree_runs_beside(
    values: Floats, begin: Indices, nodes: tuple[Indices, Indices], above: tuple[Indices, Indices]
) -> Beside:
    running = np.concatenate([[0.0], np.cumsum(values)])
    edges = np.append(begin[1:], len(values))
    (first, last), (parent, parent_last) = nodes, above
    joined = parent == parent_last
    after = np.where(joined, np.maximum(last, first + 1), edges[parent])
    before = np.where(joined, last, begin[parent_last])
    return Beside(
        running[first] - running[begin[parent]],
        running[after] - running[first + 1],
        running[last] - running[before],
        running[edges[parent_last]] - running[last + 1],
    )


def _weighed(sums: Beside, weights: Beside, power: int) -> Floats:
    parts = [values * weight**power for values, weight in zip(sums, weights, strict=True)]
    return np.asarray(np.sum(parts, axis=0))
