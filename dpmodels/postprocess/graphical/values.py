"""What is known of a number within its coarse cells: its values, and how others change with it.

Other columns have means that are lines in the number within each cell, of the slope that cells
beside it have. So sums of products of two numbers are those of their values ``f*`` over the
released tables, and cells do not shrink slopes (Theorem 84). That slopes may bend in the cells at
both ends is part of the noise (Theorem 115). In integrals a number has two points in each cell,
with the mean, the variance and the third moment of the fine cells (Gauss's rule).

Rows beyond the range that is clear of the noise are read as at its end, but for the tail that
:func:`dpmodels.postprocess.ranges.excess_beyond` estimates: a point with the excess and its square.
It has the rows that released tables have in its cell (Theorem 106), and its error is part of the
noise. Where these have more rows there than such a tail, these are read at distances that the
counts beyond do not contradict, of a scale up to the length of the range. Else the number of rows
beyond is that of the tail, combined with the difference of released rows and counts (Theorem 117).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from dpmodels.postprocess.graphical.histograms import CLEAR_SDS, SMALLEST_SD, Histogram, summed
from dpmodels.postprocess.ranges import (
    Beyond,
    CellNoise,
    Outside,
    excess_beyond,
    shape_before,
    threshold_before,
)
from dpmodels.typing import Floats, Integers

# The shape of a tail, the rows beyond it over their noise sd where the shape is less, and the
# fraction of rows at a bound, from which the laws of a tail may be wrong: choices, by simulated
# tables.
HEAVY_SHAPE, UNEXPLAINED_SDS, AT_BOUND = 0.35, 1.5, 2 / 3
# The error of where the rows of a fine cell lie, if next to none are beside it, over that of any
# place in the cell alike: a choice, by simulated tables.
UNEVEN = 0.2
# How many sds of noise the farthest that a mean may be from its estimate is at least.
MEAN_SDS = 1.96
# What has a row less where a point has one more: all points of a cell, or those of rows at its end.
OF_CELL, AT_END = -1, -2


@dataclass(frozen=True, eq=False)
class CellValues:
    """Values of a number within coarse cells, by point, by cell, or by count."""

    points: Floats  # What rows are read as
    cell: Integers  # The coarse cell of each point, not decreasing
    weights: Floats  # Rows of each point over those of its cell
    noise: Floats  # Noise sd of each weight
    source: Integers  # Which count the noise of a point is of
    references: Integers  # The point that has a row less where this has one more, or as above
    rows: Floats  # Released rows of the cells, positive
    # By how many noise sds a count may be too large: a tail that the counts before it do not
    # contradict by all of it, others by any number.
    largest: Floats
    at_end: Floats  # The part of a row more in the cell that is read as this point, or beyond

    def means(self, function: Floats) -> Floats:
        """Return the means by cell of a function by point, the last axis."""
        return np.clip(self._sums(function), *self.limits(function))

    def limits(self, function: Floats) -> tuple[Floats, Floats]:
        """Return the least and the largest value by cell of a function by point."""
        low, high = (
            bound.reduceat(function, self._starts, axis=-1) for bound in (np.minimum, np.maximum)
        )
        return low, high

    @cached_property
    def _starts(self) -> Integers:
        return np.flatnonzero(np.diff(self.cell, prepend=-1))

    def _sums(self, function: Floats) -> Floats:
        return np.asarray(np.add.reduceat(self.weights * function, self._starts, axis=-1))

    @cached_property
    def away(self) -> Floats:
        """Points less the mean of their cell."""
        return self.points - self.means(self.points)[self.cell]

    @cached_property
    def slopes(self) -> Floats:
        """``P(c) D_cb/P(b)`` of Theorem 84, shape (cells c, cells b)."""
        return self._by_means(lambda at: np.asarray(np.gradient(np.eye(len(at)), at, axis=0)))

    @cached_property
    def bends(self) -> Floats:
        """What `slopes` at both ends lack of those of quadratics, which they have inside."""
        return self._by_means(_bends)

    def _by_means(self, slopes_at: Callable[[Floats], Floats]) -> Floats:
        means = self.means(self.points)
        n_cells = len(means)
        order = np.argsort(means, kind="stable")
        if n_cells < 2 or not np.diff(means[order]).min() > 0 or not self.away.any():
            return np.zeros((n_cells, n_cells))
        slopes = np.empty((n_cells, n_cells))
        slopes[np.ix_(order, order)] = slopes_at(means[order])
        return (self.rows * self._shrunk)[:, None] * slopes / self.rows

    @cached_property
    def _shrunk(self) -> Floats:
        """By cell, the most that its variance can be over what noisy counts give, at most 1."""
        low, high = self.limits(self.away)
        limit, size = -low * high, np.abs(self._sums(self.away**2))
        fractions: Floats = np.divide(limit, size, out=np.ones_like(limit), where=size > limit)
        return fractions

    def effective(self, function: Floats) -> Floats:
        """Return the values f* by cell of a function by point, the last axis."""
        return np.asarray(self.means(function) + self._sums(self.away * function) @ self.slopes)

    @cached_property
    def two_points(self) -> tuple[tuple[Floats, Floats], Floats]:
        """Two points with the moments of each cell, and the fraction of its rows at the first."""
        square, cube = (self.means(self.away**power) for power in (2, 3))
        sd, (lowest, highest) = np.sqrt(np.maximum(square, 0.0)), self.limits(self.away)
        skewness = np.divide(cube, sd**3, out=np.zeros_like(sd), where=sd > 0)
        low = np.maximum(sd * (skewness - np.sqrt(skewness**2 + 4)) / 2, lowest)
        high = np.divide(sd**2, -low, out=np.zeros_like(sd), where=low < 0)
        high, means = np.minimum(high, highest), self.means(self.points)
        fraction = np.divide(high, high - low, out=np.ones_like(high), where=high > low)
        return (means + low, means + high), fraction

    @cached_property
    def nodes(self) -> tuple[Floats, Floats]:
        """Two points in each cell, and the rows that have them by those of the cells.

        Shapes (2 cells,) and (2 cells, cells); of cells with one point each these.
        """
        means = self.means(self.points)
        if not self.away.any():
            return means, np.eye(len(means))
        points, fraction = self.two_points
        away, weights = np.stack(points) - means, np.stack([fraction, 1 - fraction])
        spread = np.eye(len(means)) + away[:, :, None] * self.slopes
        return np.concatenate(points), (weights[:, :, None] * spread).reshape(-1, len(means))

    def by_sums(self, sums: Floats, slopes: Floats) -> Floats:
        """Return how sums of a function of points move by the noise of each count.

        `sums`, shape (points, k), are those that the function has at each point over the rows of
        its cell, `slopes` what these change by as the number grows by 1; shape (counts, k).
        """
        turned = self.means(slopes.T).T[self.cell]
        shifts = self._less_reference(self.points[:, None]) * turned
        return self._by_count(self._less_reference(sums + self.away[:, None] * slopes) - shifts)

    def by_bends(self, bends: Floats) -> Floats:
        """Return how sums of a function move by the bends, which are by point, by cell."""
        return self._sums((self.away[:, None] * bends).T).T

    def at_points(self, sums: Floats, of_points: Floats, points: Floats, cell: Integers) -> Floats:
        """Return by how much more sums move with a row at other points than with one of its cell.

        `sums` has both arguments of :meth:`by_sums`, `of_points` those at these points of cells.
        """
        (of_cells, slopes), (of_others, other_slopes) = sums, of_points
        means = self.means((of_cells + self.away[:, None] * slopes).T).T[cell]
        away = (points - self.means(self.points)[cell])[:, None]
        moved = of_others + away * (other_slopes - self.means(slopes.T).T[cell]) - means
        return np.asarray(moved / self.rows[cell][:, None])

    @cached_property
    def at_ends(self) -> CellValues:
        """The same values, whose noise is a row more in each cell, less its mean.

        Released rows of a cell that are not in the range are read as at its end. Values with these
        rows move by more than the mean of the cell, which the noise of tables counts.
        """
        return replace(
            self,
            noise=self.at_end / self.rows[self.cell],
            source=self.cell,
            references=np.full(len(self.points), OF_CELL),
            largest=np.full(len(self.rows), np.inf),
        )

    def _by_count(self, by_point: Floats) -> Floats:
        total = np.zeros((len(self.largest), by_point.shape[1]))
        np.add.at(total, self.source, by_point)
        return total

    def _less_reference(self, function: Floats) -> Floats:
        ends = np.add.reduceat(self.at_end[:, None] * function, self._starts, axis=0)[self.cell]
        means, references = self.means(function.T).T[self.cell], self.references[:, None]
        is_other = [references == OF_CELL, references == AT_END]
        replaced = np.select(is_other, [means, ends], function[self.references])
        return np.asarray(self.noise[:, None] * (function - replaced))


def _bends(means: Floats) -> Floats:
    """Return the slopes at both ends of quadratics through three means, less those through two."""
    bends = np.zeros((len(means), len(means)))
    for order in (slice(None), slice(None, None, -1)) if len(means) > 2 else ():
        gap, before = -np.diff(means[order][:3])
        differences = np.array([1 / gap, -1 / gap - 1 / before, 1 / before])
        bends[order, order][0, :3] = gap / (gap + before) * differences
    return bends


def values_of_levels(levels: Floats) -> CellValues:
    """Return values of cells with one point each."""
    n_cells = len(levels)
    ones, positions = np.ones(n_cells), np.arange(n_cells)
    return CellValues(
        points=levels,
        cell=positions,
        weights=ones,
        noise=np.zeros(n_cells),
        source=positions,
        references=np.full(n_cells, OF_CELL),
        rows=ones,
        largest=np.full(n_cells, np.inf),
        at_end=np.zeros(n_cells),
    )


def values_of_histogram(histogram: Histogram) -> CellValues:
    """Return values of coarse cells from noisy counts of their fine cells, and tails beyond."""
    n_counts, is_clear = len(histogram.counts), ~histogram.is_hidden[histogram.cell]
    sds = np.where(is_clear & histogram.is_occupied, histogram.sd / 2, 0.0)
    by_count = (histogram.cell, histogram.weights / 2, sds, np.arange(n_counts))
    # A line each of points, cells, rows, noise sds, sources, references, and parts at the end.
    read = np.array([np.concatenate(histogram.points), *(np.tile(of, 2) for of in by_count)])
    read = np.append(read, [np.full(2 * n_counts, OF_CELL), np.zeros(2 * n_counts)], axis=0)
    largest = [np.inf] * n_counts
    for end in _ends(histogram):
        if is_clear[end.nearest]:
            read, limit = _with_tail(read, histogram, end, len(largest))
            largest.append(limit)
    for hidden in np.flatnonzero(histogram.is_hidden):
        # The mean of a hidden cell may be anywhere in it: an end of it stands for all of its rows.
        points, of_cell = read[0], np.flatnonzero(read[1] == hidden)
        low, high = of_cell[np.argmin(points[of_cell])], of_cell[np.argmax(points[of_cell])]
        read[[3, 4, 5], high] = read[2, of_cell].sum() / math.sqrt(12), len(largest), low
        largest.append(np.inf)
    # Where rows lie in a fine cell is not known if next to none are beside it.
    steep, zeros = histogram.steep, np.zeros(len(histogram.steep))
    sds, sources = UNEVEN / 2 * histogram.positive[steep], len(largest) + np.arange(len(steep))
    places = read[0, steep + n_counts], histogram.cell[steep]
    read = np.append(read, [*places, zeros, sds, sources, steep, zeros], axis=1)
    order = np.argsort(read[1], kind="stable")
    points, _, rows, sds, _, _, at_end = read[:, order]
    cell, source, references = read[[1, 4, 5]][:, order].astype(np.intp)
    references = np.append(np.argsort(order), [AT_END, OF_CELL])[references]
    totals, inside = histogram.sums(histogram.weights), histogram.step / 2
    values = CellValues(
        np.clip(points, histogram.edges[0] + inside, histogram.edges[-1] - inside),
        cell,
        rows / totals[cell],
        sds / totals[cell],
        source,
        np.where(references == np.arange(len(order)), OF_CELL, references),
        np.maximum(totals, max(CLEAR_SDS * histogram.sd, 1.0)),
        np.append(largest, np.full(len(steep), np.inf)),
        at_end,
    )
    return replace(values, noise=values.noise * _bounded(histogram, values)[values.source])


def _with_tail(read: Floats, histogram: Histogram, end: _End, source: int) -> tuple[Floats, float]:
    """Return the points with those of an end cell as Theorem 117 has them.

    And by how many noise sds what is beyond the end may be too large.
    """
    beyond, at, k = end.beyond, read.shape[1], histogram.cell[end.nearest]
    points, cell, rows, sds, _, references, at_end = read = read.copy()
    inside, is_beside = np.flatnonzero((cell == k) & (sds > 0)), cell == k
    middle = float(points[inside].mean())
    outside = histogram.outside[int(end.side > 0), end.nearest]
    away, part, error = end.side * (end.at - middle), 0.0, 0.0
    is_only = len(set(histogram.cell[np.subtract(histogram.range, (0, 1))])) == 1
    if histogram.rows is not None and not (end.is_uncertain or is_only):
        variance = max(histogram.sd, SMALLEST_SD) ** 2 * len(inside) / 2
        excess = (outside - beyond.number) ** 2 - variance - histogram.rows_sd**2
        error = math.sqrt(max(excess, beyond.number_sd**2))
        part = max(variance - error * beyond.sd / away, 0.0) / (variance + error**2)
    shift, tail_rows = part * (outside - beyond.number), beyond.total / beyond.distance
    in_tail = min(tail_rows / end.rows_beyond, 1.0)
    in_range = part * (1 - min(beyond.number / end.rows_beyond, 1.0))
    rows[[end.nearest, end.nearest + len(histogram.counts)]] -= outside / 2
    rows[inside] += shift / len(inside)
    references[is_beside], at_end[is_beside] = AT_END, 0.0
    at_end[inside] = in_range / len(inside)
    farther = end.at + end.side * beyond.distance
    at_points = (
        (end.at, k, outside - shift - tail_rows, part * error, source, at + 2),
        (farther, k, tail_rows, beyond.sd / beyond.distance, source, at),
        (middle, k, 0.0, 0.0, source, OF_CELL),
    )
    columns = np.append(np.transpose(at_points), [[1 - in_range - in_tail, in_tail, 0.0]], axis=0)
    sd = beyond.sd + part * away * error
    is_bounded = sd > 0 and not end.is_uncertain
    limit = (beyond.total + part * away * beyond.number) / sd if is_bounded else math.inf
    return np.append(read, columns, axis=1), limit


def _bounded(histogram: Histogram, values: CellValues) -> Floats:
    """Return factors of the noise by count, at which 1.96 sds of each mean are possible at all.

    Rows of a cell lie in its part of the range: its mean errs by no more than the farther end.
    """
    places = np.arange(len(histogram.counts))
    first, last = (
        bound.reduceat(np.where(histogram.is_occupied, places, other), histogram.ends[:-1])
        for bound, other in ((np.minimum, places[-1]), (np.maximum, 0))
    )
    means = values.means(values.points)
    farthest = np.maximum(means - histogram.edges[first], histogram.edges[last + 1] - means)
    moves = values.by_sums(values.points[:, None], np.zeros((len(values.points), 1)))
    sds = np.sqrt(histogram.sums(moves[: len(places), 0] ** 2))
    factors = np.ones(len(values.largest))
    limits = np.divide(farthest, MEAN_SDS * sds, out=np.ones_like(sds), where=sds > 0)
    factors[: len(places)] = np.clip(limits, 0.0, 1.0)[histogram.cell]
    return factors


class _End(NamedTuple):
    """An end of the range: a number, the occupied cell beside it, and what lies beyond.

    That is in proportion to `rows_beyond` the range, or an edge before it.
    """

    at: float
    nearest: int
    side: int
    beyond: Beyond
    rows_beyond: float
    is_uncertain: bool


def uncertain_cells(histogram: Histogram) -> tuple[int, ...]:
    """Return the coarse cells with a tail that may be longer than its stated error allows for.

    Either the counts before the end of the range fall so slowly that heavier tails than those of
    the laws may follow, or more rows are beyond it than the laws have, or most rows are at a bound.
    """
    counts = histogram.counts
    cells = {int(histogram.cell[k]) for k in (0, -1) if counts[k] > AT_BOUND * counts.sum()}
    ends = (end for end in _ends(histogram) if end.is_uncertain)
    return tuple(sorted(cells | {int(histogram.cell[end.nearest]) for end in ends}))


def tail_cells(histogram: Histogram) -> tuple[int, ...]:
    """Return the coarse cells with an end of the range inside the bounds."""
    return tuple(sorted({int(histogram.cell[end.nearest]) for end in _ends(histogram)}))


def _ends(histogram: Histogram) -> list[_End]:
    low, high = histogram.range
    span = float(histogram.edges[high] - histogram.edges[low])
    groups = histogram.groups or tuple(range(len(histogram.edges)))
    counts, sd = summed(histogram.counts, histogram.sd, groups)
    edges, noise = histogram.edges[list(groups)], CellNoise("gaussian", max(sd, SMALLEST_SD))
    first = histogram.ends[histogram.cell[low]]
    last = histogram.ends[histogram.cell[high - 1] + 1]
    sides = [(-1, low, low)] * (low > first) + [(1, high, high - 1)] * (high < last)
    ends = []
    for side, place, nearest in sides:
        at = float(histogram.edges[place])
        tail = (side * edges[::side], counts[::side], noise, side * at)
        beyond, outside = excess_beyond(*tail), float(histogram.outside[int(side > 0), nearest])
        is_beside = histogram.is_occupied & (histogram.cell == histogram.cell[nearest])
        outside_sd = max(histogram.sd, SMALLEST_SD) * math.sqrt(is_beside.sum())
        is_heavy = shape_before(*tail) > HEAVY_SHAPE
        allowed = 0.0 if is_heavy else UNEXPLAINED_SDS * outside_sd
        is_explained, released = outside - beyond.rows <= allowed, None
        if not is_explained:
            released = Outside(outside, outside_sd, side * at, span)
        elif histogram.rows is not None:
            released = _rows_of(histogram, nearest, side, threshold_before(*tail))
        if released is not None:
            beyond = excess_beyond(*tail, released)
        n_beyond = max(released.rows, outside_sd) if released else math.inf
        ends.append(_End(at, nearest, side, beyond, n_beyond, is_heavy or not is_explained))
    return ends


def _rows_of(histogram: Histogram, nearest: int, side: int, start: float) -> Outside:
    """Return the released rows of an end cell beyond its inner edge, or a start of laws in it.

    Fine counts between these are taken off: their noise is not that of the counts beyond.
    """
    assert histogram.rows is not None
    cell = int(histogram.cell[nearest])
    inner = side * float(histogram.edges[histogram.ends[cell + (side < 0)]])
    outer = side * (histogram.edges[1:] if side > 0 else histogram.edges[:-1])
    is_before = (histogram.cell == cell) & (outer <= start)
    rows = float(histogram.rows[cell] - histogram.counts[is_before].sum())
    sd = math.hypot(histogram.rows_sd, histogram.sd * math.sqrt(is_before.sum()))
    return Outside(rows, max(sd, SMALLEST_SD), max(inner, start), is_light=histogram.is_light)
