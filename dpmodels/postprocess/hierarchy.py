"""Counts of cells and of the nodes above them, made to agree: least squares, and its variances.

The cells of a table stand in an order; nodes hold runs of them, level by level. A release has a
noisy count for every node of every level, all with noise of one variance, which is 1 here.

*Theorem.* Let a node's own count have the variance 1 and those of its children, each the best
that can be made of what is below it, the variances ``u_c``, with the sum U. The best of its own
count and of theirs has the variance ``u = U / (1 + U)`` and is ``(U y + sum z_c) / (1 + U)``
(up), since noise is independent. Given the best count h of a node, the best ones of its children
are ``z_c + (u_c / U) (h - sum z_c)`` (down), with errors that are independent of that of h. So
least squares takes two passes, and so does the variance of a sum of cells with weights a: with
``A = sum a_c u_c / U`` a node stands in it with weight A, and its children add ``sum u_c (a_c -
A)²``.

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
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpmodels.noise.sums import half_width
from dpmodels.typing import Floats, Integers

# How much more variance of ranges is taken for fewer levels: a choice.
WIDER = 1.1


@dataclass(frozen=True, eq=False)
class Hierarchy:
    """The nodes above cells in an order.

    `starts` has for every level but the lowest, the top one first, at which node of the level below
    the children of each of its nodes start; none is without a child.
    """

    cells: int
    starts: tuple[NDArray[np.intp], ...] = ()

    @property
    def sizes(self) -> tuple[int, ...]:
        """Numbers of nodes, the top level first; the lowest are the cells."""
        return (*map(len, self.starts), self.cells)

    def sums(self, cells: NDArray[Any]) -> tuple[NDArray[Any], ...]:
        """Return the counts of all levels, of cells on the last axis."""
        levels = [cells]
        for starts in reversed(self.starts):
            levels.append(np.add.reduceat(levels[-1], starts, axis=-1))
        return tuple(reversed(levels))

    @cached_property
    def variances(self) -> tuple[Floats, ...]:
        """Of the best counts made of what is at a node and below it, level by level."""
        levels: list[Floats] = [np.ones(self.cells)]
        for starts in reversed(self.starts):
            below = np.add.reduceat(levels[-1], starts)
            levels.append(below / (1 + below))
        return tuple(reversed(levels))

    @property
    def whole_variance(self) -> float:
        """Of the best count of all cells together, whose own was not released."""
        return float(self.variances[0].sum())

    def spread(self, above: NDArray[Any], level: int) -> NDArray[Any]:
        """Give every node of a level what its parent has."""
        starts = self.starts[level - 1]
        children = np.diff(starts, append=self.sizes[level])
        return np.repeat(above, children, axis=-1)

    def upward(self, noisy: Sequence[Floats]) -> tuple[Floats, ...]:
        """Return the best counts of what is at a node and below it, level by level."""
        levels = [noisy[-1]]
        for level in range(len(self.starts) - 1, -1, -1):
            starts = self.starts[level]
            below = np.add.reduceat(self.variances[level + 1], starts)
            counts = np.add.reduceat(levels[-1], starts, axis=-1)
            levels.append((below * noisy[level] + counts) / (1 + below))
        return tuple(reversed(levels))

    def downward(self, up: Sequence[Floats], total: Floats) -> tuple[Floats, ...]:
        """Return the best counts of all levels, given those of all cells together, shape (...,)."""
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
        """Return the weights that the nodes' own counts have in a sum of cells by least squares.

        Of all nodes in rows, the top level first; `weights` have the shape (cells,).
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
    """Put nodes above cells in a row, of as many children each as there are, up to `fanout`.

    >>> line(10, 4).sizes, [starts.tolist() for starts in line(10, 4).starts]
    ((3, 10), [[0, 3, 6]])
    """
    starts: list[NDArray[np.intp]] = []
    below = cells
    while below > fanout:
        nodes = -(-below // fanout)
        starts.append(np.arange(nodes, dtype=np.intp) * below // nodes)
        below = nodes
    return Hierarchy(cells, tuple(reversed(starts)))


def levels_of(cells: int, fanout: int) -> int:
    """Return how many levels cells in a row have."""
    levels = 1
    while cells > fanout:
        cells, levels = -(-cells // fanout), levels + 1
    return levels


def best_fanout(cells: int, *, squared: bool) -> int:
    """Return how many children a node should have, for little mean variance of a range.

    The variance of a count grows with the square of the number of levels where `squared`, as that
    of Laplace noise does, else with the number. Of those with at most a tenth more than the least
    it is the widest: with fewer levels single cells have less noise.

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
    """Return how many counts the mean range has the variance of, by least squares.

    For cells alone a third of them. Else two ends are drawn at random, one child of a node as
    likely as the other: the mean variance of the difference of two sums up to there is twice that
    of one, less the variance of their mean, which weighs the cells in equal steps. Above a child
    of weight w, of which k of b siblings come before, is a node of weight ``(k + w) / b``, and the
    level adds ``u (k + w² - (k + w)² / b)``. With as many children everywhere this is about half
    of what it is without least squares [2]_; for uneven trees it was within 8 % of the mean.

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


class Agreeing(NamedTuple):
    """Counts of groups of cells and of what is in none, by least squares."""

    levels: tuple[Floats, ...]  # of each group, shape (groups, nodes), the cells last
    incomplete: float

    @property
    def cells(self) -> Floats:
        """Shape (groups, cells)."""
        return self.levels[-1]


def agreeing(
    hierarchy: Hierarchy, noisy: Sequence[Floats], incomplete: float, total: float | None
) -> Agreeing:
    """Make counts of nodes agree with each other, and with a public total of all rows.

    `noisy` are of all levels, shape (groups, nodes).
    """
    up = hierarchy.upward(noisy)
    groups = up[0].sum(axis=-1)
    if total is not None:
        variance = hierarchy.whole_variance
        adjustment = (total - groups.sum() - incomplete) / (len(groups) * variance + 1)
        groups, incomplete = groups + adjustment * variance, incomplete + adjustment
    return Agreeing(hierarchy.downward(up, groups), float(incomplete))


def whole_cells(hierarchy: Hierarchy, levels: Sequence[Floats], totals: Integers) -> Integers:
    """Return whole counts of cells that are not negative, near the counts of every level.

    From the top down: the children of a node get what is nearest to their counts, not negative
    and of the node's own sum; rounding is of running sums. So a sum over many cells stays near
    those of the nodes that make it up, where cutting every cell at 0 would add up its bias.
    `levels` have the shape (groups, nodes), `totals` (groups,).
    """
    first = np.zeros(1, dtype=np.intp)
    above = np.asarray(totals, dtype=np.int64)[:, None]
    return shared_out(above, (first, *hierarchy.starts), levels)


def shared_out(
    above: Integers, starts: Sequence[NDArray[np.intp]], levels: Sequence[Floats]
) -> Integers:
    """Share whole counts of the nodes of one level out, down the levels below it."""
    for first, counts in zip(starts, levels, strict=True):
        above = _shared(np.asarray(counts), above, first)
    return above


def _shared(counts: Floats, above: Integers, starts: NDArray[np.intp]) -> Integers:
    """Share whole counts of nodes out between their children."""
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
    """Return how the sums of the first 1, 2, ... cells vary, each of shape (cells,).

    With what weight all cells together stand in them, and what is added to the variance: that is
    the weight's square times that of all cells together, and what is added.
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
        added = (
            added
            + before * (1 - above) ** 2
            + node_variance * (weight - above) ** 2
            + rest * above**2
        )
        weight, at = above, parent
    return weight, added


def split_levels(hierarchy: Hierarchy, values: Floats, groups: int) -> list[Floats]:
    """Return the counts of all levels, shape (groups, nodes), of those of each group in a row."""
    edges = np.cumsum([0, *hierarchy.sizes])
    by_group = values.reshape(groups, -1)
    return [by_group[:, start:end] for start, end in pairwise(edges.tolist())]


# Quantiles and their intervals from noisy counts of the cells that divide a range.
#
# With S the rows counted below an end of a cell and N all of them, ``S - p N`` is a sum of counts
# of weights ``1 - p`` below and ``-p`` above, the same whether N is known or not. It is below 0
# where the end lies under the quantile p, but for noise of known law and sampling of variance ``N p
# (1 - p)`` of rows that are no kin. No density enters: what is said holds on atoms and gaps alike.
#
# .. [1] Woodruff, R. S. (1952). "Confidence intervals for medians and other position measures."
#    Journal of the American Statistical Association 47(260), 635-646.


def rising(values: Floats) -> Floats:
    """Return what rises nearest to values that should: halfway between two that enclose them."""
    above, below = np.maximum.accumulate(values), np.minimum.accumulate(values[::-1])[::-1]
    return np.asarray((above + below) / 2)


@dataclass(frozen=True)
class NoisyCells:
    """Counts of cells side by side, made of noisy ones with independent noise of one law."""

    counts: Floats  # shape (cells,)
    law: str  # "laplace" or "gaussian"
    noise_sd: float
    rows: float  # How many there may be at most
    effect: int = 1  # Rows that sampling takes for one, as they may be one person's
    # Of whose nodes' noisy counts least squares made them; None if each is a noisy count itself.
    hierarchy: Hierarchy | None = None

    @cached_property
    def _nodes(self) -> Hierarchy:
        return self.hierarchy or Hierarchy(len(self.counts))

    @cached_property
    def _prefixes(self) -> tuple[Floats, Floats]:
        """Of the sums below each end, what :func:`prefix_variances` says."""
        total_weight, added = prefix_variances(self._nodes)
        return np.append(0.0, total_weight), np.append(0.0, added)

    @property
    def total(self) -> float:
        """Estimated number of rows."""
        return min(max(float(self.counts.sum()), 0.0), self.rows)

    @property
    def total_sd(self) -> float:
        """Standard deviation of the noise in their sum."""
        return self.noise_sd * math.sqrt(self._nodes.whole_variance)

    def excess(self, prob: float) -> Floats:
        """Return the rows below each end above those that a quantile wants, shape (cells + 1,)."""
        below = np.concatenate([[0.0], np.cumsum(self.counts)])
        return np.asarray(below - prob * below[-1])

    def excess_sd(self, prob: float) -> Floats:
        """Return the standard deviation of the noise in each of them."""
        total_weight, added = self._prefixes
        variance = (total_weight - prob) ** 2 * self._nodes.whole_variance + added
        # What the last end has at a share of 1 is none, but for rounding.
        return np.asarray(self.noise_sd * np.sqrt(np.maximum(variance, 0.0)))

    def rank_sd(self, prob: float) -> float:
        """Return that of the noise in the rank of a quantile, in rows."""
        return float(self.excess_sd(prob)[self._under(prob)])

    def _under(self, prob: float) -> int:
        """Return how many cells lie below a quantile, about."""
        return min(max(round(prob * len(self.counts)), 1), len(self.counts) - 1)

    def quantile(self, prob: float) -> tuple[int, float]:
        """Return the cell of a quantile, and which share of the cell lies below it."""
        excess = rising(self.excess(prob))
        cell = int(np.searchsorted(excess[1:-1], 0.0))
        low, high = excess[cell : cell + 2]
        return cell, float(np.clip(-low / (high - low), 0.0, 1.0)) if high > low else 0.5

    def interval(self, prob: float, level: float) -> tuple[int, int]:
        """Return the first and the last cell that may hold the population's quantile.

        A cell is left out on the lower side where every end up to its upper one has too few rows
        below, on the upper side where every end from its lower one on has too many. The quantile is
        missed only if the end next to it is, so no more often than stated wherever cells were cut.
        """
        excess, noise = self.excess(prob), self.excess_sd(prob)
        sampling = math.sqrt(self.effect * self.total * prob * (1 - prob))
        under = self._under(prob)
        weights = self._nodes.noise_weights(
            np.where(np.arange(len(self.counts)) < under, 1 - prob, -prob)
        )
        reach = half_width(self.law, weights, self.noise_sd, sampling, level)
        spread = np.hypot(noise, sampling)
        away = reach / spread[under] * spread
        maybe_below = np.flatnonzero(excess[1:] + away[1:] >= 0)
        maybe_above = np.flatnonzero(excess[:-1] - away[:-1] <= 0)
        first = int(maybe_below[0]) if len(maybe_below) else len(self.counts) - 1
        last = int(maybe_above[-1]) if len(maybe_above) else 0
        return min(first, last), max(first, last)
