"""Consistent counts of cells and of the nodes above them by least squares, with variances.

The cells of a table are ordered; each node covers a run of them, level by level. A release has a
noisy count for every node of every level, all with the same noise variance, 1 here.

*Theorem.* Let a node's noisy count y have the variance 1, and let the best estimates z_c of its
children from all below them have the variances ``u_c``, with the sum U. The best combination of
both is ``(U y + sum z_c) / (1 + U)``, with the variance ``u = U / (1 + U)`` (up), since noise is
independent. Given the best estimate h of a node, those of its children are ``z_c + (u_c / U) (h -
sum z_c)`` (down), with errors independent of that of h. So least squares takes two passes, and so
does the variance of a sum of cells with weights a: with ``A = sum a_c u_c / U`` a node has the
weight A, and its children add ``sum u_c (a_c - A)²``.

.. [1] Hay, M., Rastogi, V., Miklau, G. and Suciu, D. (2010). "Boosting the accuracy of
   differentially private histograms through consistency." VLDB.
.. [2] Qardaji, W., Yang, W. and Li, N. (2013). "Understanding hierarchical methods for
   differentially private histograms." VLDB.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from dpmodels.noise.sums import half_width
from dpmodels.typing import Floats, Indices, Integers, Numbers

# Factor of range variance accepted in exchange for fewer levels: a choice.
WIDER = 1.1


@dataclass(frozen=True, eq=False)
class Hierarchy:
    """The nodes above ordered cells.

    `starts` gives for every level except the lowest, the top one first, the index in the level
    below of the first child of each node; every node has a child.
    """

    cells: int
    starts: tuple[Indices, ...] = ()

    @property
    def sizes(self) -> tuple[int, ...]:
        """Numbers of nodes by level, the top first; the lowest level are the cells."""
        return (*map(len, self.starts), self.cells)

    def sums(self, cells: Numbers) -> tuple[Numbers, ...]:
        """Return the counts of all levels; cells are on the last axis."""
        levels = [cells]
        for starts in reversed(self.starts):
            levels.append(np.add.reduceat(levels[-1], starts, axis=-1))
        return tuple(reversed(levels))

    @cached_property
    def variances(self) -> tuple[Floats, ...]:
        """Variances of the best estimates from each node and all below it, level by level."""
        levels: list[Floats] = [np.ones(self.cells)]
        for starts in reversed(self.starts):
            below = np.add.reduceat(levels[-1], starts)
            levels.append(below / (1 + below))
        return tuple(reversed(levels))

    @property
    def whole_variance(self) -> float:
        """Variance of the best estimate of the total, which was not released itself."""
        return float(self.variances[0].sum())

    def spread(self, above: Numbers, level: int) -> Numbers:
        """Return for every node of a level the value of its parent."""
        starts = self.starts[level - 1]
        children = np.diff(starts, append=self.sizes[level])
        return np.repeat(above, children, axis=-1)

    def upward(self, noisy: Sequence[Floats]) -> tuple[Floats, ...]:
        """Return the best estimates from each node and all below it, level by level."""
        levels = [noisy[-1]]
        for level in range(len(self.starts) - 1, -1, -1):
            starts = self.starts[level]
            below = np.add.reduceat(self.variances[level + 1], starts)
            counts = np.add.reduceat(levels[-1], starts, axis=-1)
            levels.append((below * noisy[level] + counts) / (1 + below))
        return tuple(reversed(levels))

    def downward(self, up: Sequence[Floats], total: Floats) -> tuple[Floats, ...]:
        """Return the best estimates of all levels given the totals, shape (...,)."""
        top, variance = up[0], self.variances[0]
        gap = (total - top.sum(axis=-1))[..., None]
        levels = [top + gap * variance / variance.sum()]
        for level in range(1, len(up)):
            starts, variance = self.starts[level - 1], self.variances[level]
            gap = levels[-1] - np.add.reduceat(up[level], starts, axis=-1)
            share = gap / np.add.reduceat(variance, starts)
            levels.append(up[level] + self.spread(share, level) * variance)
        return tuple(levels)

    def noise_weights(self, weights: Floats) -> Floats:
        """Return the weights of the nodes' noisy counts in a least-squares sum of cells.

        In one array, the top level first; `weights` have the shape (cells,).
        """
        node_weights = [np.asarray(weights, dtype=float)]
        for level in range(len(self.starts), 0, -1):
            starts, variance = self.starts[level - 1], self.variances[level]
            summed = np.add.reduceat(node_weights[-1] * variance, starts)
            node_weights.append(summed / np.add.reduceat(variance, starts))
        node_weights.reverse()
        noise_weights, carried = [], node_weights[0]
        for level, starts in enumerate(self.starts):
            below = np.add.reduceat(self.variances[level + 1], starts)
            noise_weights.append(carried * below / (1 + below))
            difference = node_weights[level + 1] - self.spread(node_weights[level], level + 1)
            carried = difference + self.spread(carried / (1 + below), level + 1)
        return np.concatenate([*noise_weights, carried])


def line(cells: int, fanout: int) -> Hierarchy:
    """Build the nodes above cells in a row, with up to `fanout` children each.

    >>> line(10, 4).sizes, [starts.tolist() for starts in line(10, 4).starts]
    ((3, 10), [[0, 3, 6]])
    """
    starts: list[Indices] = []
    below = cells
    while below > fanout:
        nodes = -(-below // fanout)
        starts.append(np.arange(nodes, dtype=np.intp) * below // nodes)
        below = nodes
    return Hierarchy(cells, tuple(reversed(starts)))


def levels_of(cells: int, fanout: int) -> int:
    """Return the number of levels above cells in a row, the cells included."""
    levels = 1
    while cells > fanout:
        cells, levels = -(-cells // fanout), levels + 1
    return levels


def best_fanout(cells: int, *, squared: bool) -> int:
    """Return the number of children of a node for a small mean variance of a range.

    The variance of a count grows with the square of the number of levels if `squared`, as for
    Laplace noise, else with the number. Returns the widest within a tenth of the smallest mean
    variance: with fewer levels single cells have less noise.

    >>> best_fanout(4096, squared=True), best_fanout(4096, squared=False)
    (16, 6)
    """
    power = 2 if squared else 1
    mean_variances: dict[int, float] = {}
    for levels in range(1, max(cells.bit_length(), 1) + 1):
        fanout = max(math.ceil(round(cells ** (1 / levels), 9)), 2)
        mean_variances[fanout] = range_counts(cells, fanout) * levels_of(cells, fanout) ** power
    smallest = min(mean_variances.values())
    return max(fanout for fanout, mean in mean_variances.items() if mean <= WIDER * smallest)


def range_counts(cells: int, fanout: int) -> float:
    """Return the mean variance of a range by least squares, in units of one count's variance.

    Without upper levels about a third of the number of cells. Otherwise two edges are drawn at
    random, each child of a node equally likely: the mean variance of the difference of two prefix
    sums is twice that of one, less the variance of their mean, which weighs the cells in equal
    steps. The parent of a child of weight w, with k of its b siblings before it, has the weight
    ``(k + w) / b``, and the level adds ``u (k + w² - (k + w)² / b)``. With equally many children
    everywhere this is about half of the value without least squares [2]_; for uneven trees it was
    within 8 % of the mean.

    >>> round(range_counts(4096, 16), 1), round(range_counts(4096, 4096), 1)
    (14.6, 1366.0)
    """
    levels = levels_of(cells, fanout)
    if levels == 1:
        return (cells + 2) / 3
    children = float(cells ** (1 / levels))
    before, before2 = (children - 1) / 2, (children - 1) * (2 * children - 1) / 6
    weight = weight2 = variance = size = 1.0
    prefix_variance = steps = 0.0
    for _ in range(levels):
        above2 = (before2 + 2 * before * weight + weight2) / children**2
        prefix_variance += variance * (before + weight2 - children * above2)
        steps += variance * size * (children**2 - 1) / (12 * cells)
        weight, weight2 = (before + weight) / children, above2
        below = children * variance
        variance, size = below / (1 + below), size * children
    return 2 * (prefix_variance + weight2 * below - steps - below / 4)


class ConsistentCounts(NamedTuple):
    """Least-squares counts of groups of cells and of the incomplete rows."""

    levels: tuple[Floats, ...]  # each of shape (groups, nodes), the cells last
    incomplete: float

    @property
    def cells(self) -> Floats:
        """Shape (groups, cells)."""
        return self.levels[-1]


def agreeing(
    hierarchy: Hierarchy, noisy: Sequence[Floats], incomplete: float, total: float | None
) -> ConsistentCounts:
    """Make counts of nodes consistent with each other and with a public total of all rows.

    `noisy` are the counts of all levels, each of shape (groups, nodes).
    """
    up = hierarchy.upward(noisy)
    groups = up[0].sum(axis=-1)
    if total is not None:
        variance = hierarchy.whole_variance
        adjustment = (total - groups.sum() - incomplete) / (len(groups) * variance + 1)
        groups, incomplete = groups + adjustment * variance, incomplete + adjustment
    return ConsistentCounts(hierarchy.downward(up, groups), float(incomplete))


def whole_cells(hierarchy: Hierarchy, levels: Sequence[Floats], totals: Integers) -> Integers:
    """Return nonnegative integer counts of cells, near the counts of every level.

    From the top down: the children of a node get the nearest nonnegative counts with the node's
    sum; running sums are rounded. So a sum over many cells stays near those of the nodes that make
    it up, where truncating every cell at 0 would accumulate bias. `levels` have the shape (groups,
    nodes), `totals` (groups,).
    """
    first = np.zeros(1, dtype=np.intp)
    above = np.asarray(totals, dtype=np.int64)[:, None]
    return distribute(above, (first, *hierarchy.starts), levels)


def distribute(above: Integers, starts: Sequence[Indices], levels: Sequence[Floats]) -> Integers:
    """Distribute integer counts of the nodes of one level down the levels below it."""
    for first, counts in zip(starts, levels, strict=True):
        above = _distribute_level(np.asarray(counts), above, first)
    return above


def _distribute_level(counts: Floats, above: Integers, starts: Indices) -> Integers:
    """Distribute integer counts of nodes over their children."""
    groups, size = counts.shape
    children = np.diff(starts, append=size)
    widest = int(children.max())
    position = np.arange(widest)
    is_child = position < children[:, None]
    child = np.minimum(starts[:, None] + position, size - 1)
    padded = np.where(is_child, counts[:, child], -np.inf).reshape(-1, widest)
    totals = above.reshape(-1).astype(float)
    falling = -np.sort(-padded, axis=1)
    summed = np.cumsum(np.where(np.isfinite(falling), falling, 0.0), axis=1)
    excess = (summed - totals[:, None]) / (position + 1)
    last = np.maximum((falling > excess).sum(axis=1) - 1, 0)
    shift = excess[np.arange(len(last)), last]
    projected = np.maximum(padded - shift[:, None], 0.0)
    running = np.rint(np.cumsum(projected, axis=1))
    running[:, -1] = totals
    running = np.minimum(np.maximum.accumulate(running, axis=1), totals[:, None])
    integers: Integers = np.diff(running, axis=1, prepend=0.0).astype(np.int64)
    return integers.reshape(groups, len(starts), widest)[:, is_child]


def prefix_variances(hierarchy: Hierarchy) -> tuple[Floats, Floats]:
    """Return the variances of the sums of the first 1, 2, ... cells, in two parts.

    The weight w of the total in each sum and an added variance, each of shape (cells,): the
    variance is w² times that of the total, plus the added one.
    """
    weight, added = np.ones(hierarchy.cells), np.zeros(hierarchy.cells)
    at = np.arange(hierarchy.cells)
    tops = (np.zeros(1, dtype=np.intp), *hierarchy.starts)
    for starts, variance in reversed(list(zip(tops, hierarchy.variances, strict=True))):
        parent = np.searchsorted(starts, at, side="right") - 1
        running = np.concatenate([[0.0], np.cumsum(variance)])
        first = running[starts[parent]]
        edges = np.append(starts[1:], len(variance))
        before, all_of = running[at] - first, running[edges[parent]] - first
        node_variance = variance[at]
        above = (before + weight * node_variance) / all_of
        rest = all_of - before - node_variance
        added = added + before * (1 - above) ** 2 + node_variance * (weight - above) ** 2
        added += rest * above**2
        weight, at = above, parent
    return weight, added


def split_levels(hierarchy: Hierarchy, values: Floats, groups: int) -> list[Floats]:
    """Split values by group into the counts of all levels, each of shape (groups, nodes)."""
    edges = np.cumsum([0, *hierarchy.sizes])
    by_group = values.reshape(groups, -1)
    return [by_group[:, start:end] for start, end in pairwise(edges.tolist())]


# Quantiles and their intervals from noisy counts of the cells that divide a range.
#
# With S the rows counted below an edge of a cell and N all rows, ``S - p N`` is a sum of counts
# with weights ``1 - p`` below and ``-p`` above, whether N is known or not. It is negative where the
# edge lies below the quantile p, except for noise of known distribution and sampling variance ``N p
# (1 - p)`` of independent rows. No density enters, so results hold for atoms and gaps too.
#
# .. [1] Woodruff, R. S. (1952). "Confidence intervals for medians and other position measures."
#    Journal of the American Statistical Association 47(260), 635-646.


def rising(values: Floats) -> Floats:
    """Return a nondecreasing fit to values: the mean of the running maximum and minimum."""
    above, below = np.maximum.accumulate(values), np.minimum.accumulate(values[::-1])[::-1]
    return np.asarray((above + below) / 2)


@dataclass(frozen=True)
class NoisyCells:
    """Counts of adjacent cells, from noisy counts with independent, identical noise."""

    counts: Floats  # shape (cells,)
    law: str  # "laplace" or "gaussian"
    noise_sd: float
    rows: float  # Upper bound on the number of rows
    effect: int = 1  # Design effect: rows per independent unit, such as a person
    # The hierarchy whose noisy counts were combined; None if each count is a noisy count itself.
    hierarchy: Hierarchy | None = None

    @cached_property
    def _nodes(self) -> Hierarchy:
        return self.hierarchy or Hierarchy(len(self.counts))

    @cached_property
    def _prefixes(self) -> tuple[Floats, Floats]:
        """The parts of :func:`prefix_variances` for the sum below each edge."""
        total_weight, added = prefix_variances(self._nodes)
        return np.append(0.0, total_weight), np.append(0.0, added)

    @property
    def total(self) -> float:
        """Estimated number of rows."""
        return min(max(float(self.counts.sum()), 0.0), self.rows)

    @property
    def total_sd(self) -> float:
        """Noise standard deviation of `total`."""
        return self.noise_sd * math.sqrt(self._nodes.whole_variance)

    def excess(self, prob: float) -> Floats:
        """Return the rows below each edge less the quantile's rank, shape (cells + 1,)."""
        below = np.concatenate([[0.0], np.cumsum(self.counts)])
        return np.asarray(below - prob * below[-1])

    def excess_sd(self, prob: float) -> Floats:
        """Return the noise standard deviation of each entry of :meth:`excess`."""
        total_weight, added = self._prefixes
        variance = (total_weight - prob) ** 2 * self._nodes.whole_variance + added
        # At the last edge the variance for prob 1 is 0, up to rounding.
        return np.asarray(self.noise_sd * np.sqrt(np.maximum(variance, 0.0)))

    def rank_sd(self, prob: float) -> float:
        """Return the noise standard deviation of the rank of a quantile, in rows."""
        return float(self.excess_sd(prob)[self._under(prob)])

    def _under(self, prob: float) -> int:
        return min(max(round(prob * len(self.counts)), 1), len(self.counts) - 1)

    def quantile(self, prob: float) -> tuple[int, float]:
        """Return the cell of a quantile, and the fraction of the cell below it."""
        excess = rising(self.excess(prob))
        cell = int(np.searchsorted(excess[1:-1], 0.0))
        low, high = excess[cell : cell + 2]
        return cell, float(np.clip(-low / (high - low), 0.0, 1.0)) if high > low else 0.5

    def interval(self, prob: float, level: float) -> tuple[int, int]:
        """Return the first and the last cell of an interval for the population's quantile.

        A cell is excluded below if every edge up to its upper one has too few rows below, above if
        every edge from its lower one has too many. The quantile is missed only if the edge next to
        it is, so the coverage holds for any cells.
        """
        excess, noise = self.excess(prob), self.excess_sd(prob)
        sampling = math.sqrt(self.effect * self.total * prob * (1 - prob))
        under = self._under(prob)
        sides = np.where(np.arange(len(self.counts)) < under, 1 - prob, -prob)
        weights = self._nodes.noise_weights(sides)
        reach = half_width(self.law, weights, self.noise_sd, sampling, level)
        spread = np.hypot(noise, sampling)
        away = reach / spread[under] * spread
        maybe_below = np.flatnonzero(excess[1:] + away[1:] >= 0)
        maybe_above = np.flatnonzero(excess[:-1] - away[:-1] <= 0)
        first = int(maybe_below[0]) if len(maybe_below) else len(self.counts) - 1
        last = int(maybe_above[-1]) if len(maybe_above) else 0
        return min(first, last), max(first, last)
