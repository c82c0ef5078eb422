"""Counts of ordered cells, pooled over runs in which noisy counts show no differences.

The cells are split in halves repeatedly; some nodes have a noisy count. A node is *pooled* if all
its cells have the same count, else it is *cut* into its halves. A pass from the lowest level up
chooses the pools to minimise the sum of squared errors of all noisy counts, each over its variance,
plus `PENALTY` for every cut.

*Lemma.* Let the smallest error of all below a node, as a function of the node's sum T, be ``c + p
(T - z)²``. Pooled halves with ``a T`` each, a their fractions of the cells, add up to the same
form, as do halves that are cut, for which ``1 / p`` is the sum of theirs; a noisy count y of
variance ``1 / i`` adds ``i p / (i + p) (y - z)²`` to c. So each node compares c pooled with c cut.

As the noise goes to 0 every count converges to the exact one: pooling halves that differ costs more
than any penalty. The pools depend on the noise, so the noise distribution of sums is unknown;
intervals are made of the last counts of the runs that were divided no further.

.. [1] Donoho, D. L. (1997). "CART and best-ortho-basis: a connection." Annals of Statistics.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from dpmodels.postprocess.protocol import NO_WEIGHT, Spread, whole
from dpmodels.released import RunsRelease
from dpmodels.typing import Flags, Floats, Integers, Numbers, Scalars

# Penalty of a cut in squared noise sds: halves differ if by more than two sds. A choice.
PENALTY = 4.0


class Fit(NamedTuple):
    """The smallest errors of all below nodes, as functions of their sums T: c + p (T - z)²."""

    c: Floats
    p: Floats
    z: Floats


@dataclass(frozen=True, eq=False)
class PooledCounts:
    """Counts of ordered cells, pooled over runs in which noisy counts show no differences."""

    release: RunsRelease

    @cached_property
    def _halves(self) -> Halves:
        return Halves(self.release.shape[1])

    @cached_property
    def _best(self) -> tuple[tuple[Fit, ...], tuple[Flags, ...]]:
        """Best fits of all nodes, level by level, shape (groups, nodes), and which were cut."""
        *above, (precisions, counts) = zip(*by_node(self.release, self._halves), strict=True)
        pooled = best = Fit(np.zeros_like(counts), precisions, counts)
        fits, cuts = [best], [np.zeros(counts.shape, dtype=bool)]
        for (precision, count), widths in zip(
            reversed(above), reversed(self._halves.widths[1:]), strict=True
        ):
            pooled = _with(_pooled(pooled, widths), precision, count)
            cut = _with(_cut(best, widths), precision, count)
            is_cut = pooled.c > cut.c
            best = Fit(*(np.where(is_cut, *pair) for pair in zip(cut, pooled, strict=True)))
            fits.append(best)
            cuts.append(is_cut)
        return tuple(reversed(fits)), tuple(reversed(cuts))

    @cached_property
    def _sums(self) -> Floats:
        """Numbers of rows by group, the incomplete rows last; consistent with a public total."""
        top = self._best[0][0]
        sums = np.append(top.z[:, 0], self.release.values[-1])
        if self.release.rows is None:
            return sums
        variances = _over(np.ones(1), np.append(top.p[:, 0], self.release.noise_sds[-1] ** -2))
        return np.asarray(sums + (self.release.rows - sums.sum()) * variances / variances.sum())

    @cached_property
    def _shared(self) -> tuple[Floats, int]:
        """Counts of cells, shape (groups, cells), and the number of pooled runs."""
        fits, cuts = self._best
        sums = np.maximum(self._sums[:-1, None], 0.0)
        split = np.ones(sums.shape, dtype=bool)
        pools = 0
        for best, is_cut, widths in zip(fits[1:], cuts[:-1], self._halves.widths[1:], strict=True):
            pools += int((split & ~is_cut).sum())
            split = split & is_cut
            evenly = (sums[..., None] * _shares(widths)).reshape(len(sums), -1)
            sums = np.where(np.repeat(split, 2, axis=1), _shared_out(sums, best), evenly)
            split = np.repeat(split, 2, axis=1) & (widths > 0)
        return sums[:, self._halves.places], pools + int(split.sum())

    @property
    def cells(self) -> Floats:
        """Shape (groups, cells); nonnegative, and equal within a pool."""
        return self._shared[0]

    @property
    def pools(self) -> int:
        """Number of runs that the cells were pooled into."""
        return self._shared[1]

    @property
    def unlawful(self) -> str:
        """Why the noise distribution of sums is unknown: pooling depends on the noise."""
        return (
            f"the bins were pooled into {self.pools:,} runs in which noisy counts show no "
            "differences, so the runs depend on the noise."
        )

    @property
    def incomplete(self) -> float:
        """Number of incomplete rows."""
        return float(self._sums[-1])

    @cached_property
    def whole(self) -> Integers:
        """Integer counts by group, the incomplete rows last: running sums are rounded."""
        sums = np.append(self.cells.sum(axis=1), self.incomplete)
        totals = whole(sums, self.release.rows)
        running = np.minimum(np.rint(np.cumsum(self.cells, axis=1)), totals[:-1, None])
        running[:, -1] = totals[:-1]
        counts = np.diff(running, axis=1, prepend=0.0).astype(np.int64)
        return np.append(counts.ravel(), totals[-1])

    def spread(self, weights: Floats, other_groups: Floats = NO_WEIGHT) -> Spread:
        """Return nan: the noise distribution of sums is unknown."""
        return _unknown(np.shape(weights)[:-1])

    def along(
        self, before: Floats, cell_weight: Floats, after: Floats, other_groups: Floats = NO_WEIGHT
    ) -> Spread:
        """Return nan for one sum per cell."""
        return _unknown(self.release.shape[1:])


class FinalRuns(NamedTuple):
    """The runs of a group that were divided no further, with their last counts.

    What was divided followed from earlier counts, so that given the runs the noise of these is
    independent of them, and that of sums of whole runs has a known law.
    """

    starts: Integers  # first cells, and the number of cells at the end
    running: Floats  # shape (3, runs + 1): counts, squares and fourths of noise below each start

    @property
    def whole(self) -> list[float]:
        """Sums of the squares and of the fourth powers of the noise of all."""
        return list(self.running[1:, -1])

    def between(self, first: Integers, last: Integers) -> tuple[Floats, Spread]:
        """Return the sums of runs from `first` up to but excluding `last`, and their noise."""
        sums, *noise = self.running[:, np.maximum(first, last)] - self.running[:, first]
        return sums, Spread(*noise)


def final_runs(release: RunsRelease, group: int) -> FinalRuns:
    """Return the runs of a group that were divided no further."""
    cells, edges = math.prod(release.shape[1:]), np.cumsum(release.sizes)
    # A step counts nodes, and the next one again those that are not divided; last are the lowest.
    steps = [*range(1, len(edges) - 2, 2), len(edges) - 2]
    runs = [np.arange(edges[step] - release.sizes[step], edges[step]) for step in steps]
    at = np.concatenate(runs)
    ratios = np.repeat(release.noise_sds, release.sizes)[at] / release.noise_sd
    values, starts = release.values[at], release.starts[at]
    order = np.argsort(starts)
    members = order[starts[order] // cells == group]
    columns = np.stack([values[members], ratios[members] ** 2, ratios[members] ** 4])
    running = np.concatenate([np.zeros((3, 1)), np.cumsum(columns, axis=1)], axis=1)
    firsts = np.append(starts[members] - group * cells, cells).astype(np.int64)
    return FinalRuns(firsts, running)


def _unknown(shape: tuple[int, ...]) -> Spread:
    return Spread(np.full(shape, np.nan), np.full(shape, np.nan))


def by_node(release: RunsRelease, halves: Halves) -> tuple[list[Floats], list[Floats]]:
    """Return the noisy counts of all nodes and their precisions, level by level.

    Both have the shape (groups, nodes); repeated counts of a node are averaged by precision, and
    both are 0 for a node without a count.
    """
    groups, cells = release.shape
    shapes = [(groups, 1 << level) for level in range(halves.lowest + 1)]
    precisions, totals = ([np.zeros(shape) for shape in shapes] for _ in range(2))
    edges, first_cells = np.cumsum(release.sizes)[:-1], release.starts.astype(np.int64)
    steps = (np.split(array, edges)[:-1] for array in (release.values, first_cells))
    terms = zip(*steps, release.levels[:-1], release.noise_sds[:-1], strict=True)
    for values, starts, level, noise_sd in terms:
        group, start = np.divmod(starts, cells)
        node = group, halves.node(level, start)
        precisions[level][node] += noise_sd**-2
        totals[level][node] += noise_sd**-2 * values
    counts = [_over(*ratio) for ratio in zip(totals, precisions, strict=True)]
    return precisions, counts


def _over(numerator: Floats, denominator: Floats) -> Floats:
    quotient: Floats = np.zeros(np.broadcast_shapes(numerator.shape, denominator.shape))
    return np.divide(numerator, denominator, out=quotient, where=denominator > 0)


def _halves(values: Scalars) -> Floats:
    return values.reshape(*values.shape[:-1], -1, 2).astype(float)


def _shares(widths: Integers) -> Floats:
    """Return the fractions of the cells of every node in its halves."""
    halves = _halves(widths)
    return _over(halves, halves.sum(axis=-1, keepdims=True))


def _pooled(below: Fit, widths: Integers) -> Fit:
    """Return the fits of nodes whose cells all have the same count."""
    shares = _shares(widths)
    precisions = _halves(below.p) * shares**2
    sums = _over(_halves(below.z), shares)
    p = precisions.sum(axis=-1)
    difference = _over(precisions.prod(axis=-1), p) * np.diff(sums, axis=-1)[..., 0] ** 2
    return Fit(_halves(below.c).sum(axis=-1) + difference, p, _over((precisions * sums).sum(-1), p))


def _cut(below: Fit, widths: Integers) -> Fit:
    """Return the fits of nodes whose halves have separate sums; a single cell has one."""
    real = _halves(widths) > 0
    precisions = _halves(below.p)
    is_identified = ((precisions > 0) | ~real).all(axis=-1)
    variances = _over(np.ones(1), precisions).sum(axis=-1)
    c = _halves(below.c).sum(axis=-1) + PENALTY * real.all(axis=-1)
    return Fit(c, _over(is_identified.astype(float), variances), _halves(below.z).sum(axis=-1))


def _with(fit: Fit, precision: Floats, count: Floats) -> Fit:
    """Return the fits combined with the nodes' noisy counts."""
    p = fit.p + precision
    weight = _over(precision, p)
    return Fit(fit.c + weight * fit.p * (count - fit.z) ** 2, p, fit.z + weight * (count - fit.z))


def _shared_out(sums: Floats, below: Fit) -> Floats:
    """Distribute sums of nodes over their halves, by the fits of these and not below 0."""
    counts, precisions = _halves(below.z), _halves(below.p)
    gap = sums - counts.sum(axis=-1)
    first = counts[..., 0] + gap * _over(precisions[..., 1], precisions.sum(axis=-1))
    first = np.minimum(np.maximum(first, 0.0), sums)
    return np.stack([first, sums - first], axis=-1).reshape(len(sums), -1)


# The nodes of repeated halving of cells in a row.

# Most halvings between counted levels, which gives nodes eight children. In a plane sixteen, and
# below the whole the first level has 256 nodes where there are as many. Choices.
AT_ONCE, AT_ONCE_IN_PLANE, FIRST_IN_PLANE = 3, 4, 8


@dataclass(frozen=True)
class Halves:
    """A row of cells, split in halves level by level.

    Level d has ``2**d`` nodes; those of the lowest have at most one cell, and the cells are spread
    evenly over them.

    >>> Halves(5).lowest, Halves(5).widths[2].tolist(), Halves(4096).counted()
    (3, [2, 1, 1, 1], (0, 3, 6, 9, 12))
    """

    cells: int

    @property
    def lowest(self) -> int:
        """The number of the lowest level."""
        return (self.cells - 1).bit_length()

    @cached_property
    def places(self) -> Integers:
        """Index in the lowest level of each cell."""
        places: Integers = np.arange(self.cells, dtype=np.int64) * 2**self.lowest // self.cells
        return places

    @cached_property
    def widths(self) -> tuple[Integers, ...]:
        """Numbers of cells of all nodes, level by level."""
        return self.sums(np.ones(self.cells, dtype=np.int64))

    @cached_property
    def firsts(self) -> tuple[Integers, ...]:
        """The first cells of all nodes, level by level."""
        return tuple(np.cumsum(widths) - widths for widths in self.widths)

    def node(self, level: int, cells: Integers) -> Integers:
        """Return the node of a level that contains each of the cells."""
        nodes: Integers = self.places[cells] >> (self.lowest - level)
        return nodes

    def sums(self, cells: Numbers) -> tuple[Numbers, ...]:
        """Return the sums of all nodes, level by level; cells are on the last axis."""
        lowest = np.zeros((*cells.shape[:-1], 2**self.lowest), dtype=cells.dtype)
        lowest[..., self.places] = cells
        levels = [lowest]
        for _ in range(self.lowest):
            levels.append(levels[-1][..., ::2] + levels[-1][..., 1::2])
        return tuple(reversed(levels))

    def counted(self, *, whole_known: bool = False, in_plane: bool = False) -> tuple[int, ...]:
        """Return the levels that are counted; without the top one if the total is known."""
        first = min(FIRST_IN_PLANE, self.lowest) if in_plane else 0
        further = self.lowest - first
        steps = -(-further // (AT_ONCE_IN_PLANE if in_plane else AT_ONCE))
        levels = tuple(first + round(step * further / max(steps, 1)) for step in range(steps + 1))
        levels = (0, *levels) if first else levels
        return (levels[1:] or levels) if whole_known else levels
