"""Nodes above the cells of a plane: each has blocks of b by b nodes below it, level by level.

Cells are ordered such that the children of every node are adjacent, so a
:class:`~dpmodels.postprocess.hierarchy.Hierarchy` applies to the plane.

*Theorem.* Let the blocks of one level have equally many cells. In the least-squares sum over a
rectangle a block has as weight a the fraction of its cells inside, a product of two fractions, one
along each axis. A node with B children, whose best estimates have the variance u each, adds ``u
(sum a_c² - B A²)`` to the variance of the sum, A the mean of the a_c. So with S the sum of ``E a²``
over the blocks of a level, over all rectangles, the mean rectangle has the variance

    u_1 S_1 + sum over levels l > 1 of u_l (S_l - B_l S_(l-1)),

and S is a product of two sums over ranges of one axis, which are exact.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from dpmodels.postprocess.flat_counts import FlatCounts
from dpmodels.postprocess.hierarchy import Hierarchy
from dpmodels.postprocess.pooled_counts import PooledCounts
from dpmodels.postprocess.protocol import NO_WEIGHT, OrderedCounts, Spread
from dpmodels.postprocess.tree_counts import TreeCounts
from dpmodels.released import CountsRelease, RunsRelease, SumsRelease
from dpmodels.typing import Floats, Indices, Integers

Sizes = tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Plane:
    """The nodes above cells in rows and columns; `place` is the position of each cell."""

    hierarchy: Hierarchy
    place: Indices  # shape (rows, columns)

    @property
    def order(self) -> Indices:
        """The cell, counted row by row, at each position."""
        return np.argsort(self.place.ravel())


def plane(shape: Sizes, side: int) -> Plane:
    """Build the nodes above cells in a plane, with about `side` by `side` children each.

    >>> plane((4, 4), 2).place.tolist()
    [[0, 1, 4, 5], [2, 3, 6, 7], [8, 9, 12, 13], [10, 11, 14, 15]]
    """
    levels = block_sizes(shape, side)
    place = np.arange(math.prod(levels[0]), dtype=np.intp).reshape(levels[0])
    starts: list[Indices] = []
    for above, below in pairwise(levels):
        first, width = zip(*map(_blocks, above, below), strict=True)
        children = np.empty(place.size, dtype=np.intp)
        children[place] = width[0][:, None] * width[1]
        began = np.cumsum(children) - children
        parent = [np.repeat(np.arange(len(sizes)), sizes) for sizes in width]
        row, column = (
            np.arange(size) - first_cell[block]
            for size, first_cell, block in zip(below, first, parent, strict=True)
        )
        within = row[:, None] * width[1][parent[1]] + column
        place = began[place[np.ix_(*parent)]] + within
        starts.append(began)
    return Plane(Hierarchy(math.prod(shape), tuple(starts)), place)


def block_sizes(shape: Sizes, side: int) -> tuple[Sizes, ...]:
    """Return the number of blocks of each level along each axis, the top level first.

    >>> block_sizes((16, 6), 4)
    ((4, 2), (16, 6))
    """
    levels = [shape]
    while max(levels[-1]) > side:
        levels.append(tuple(-(-n_blocks // side) for n_blocks in levels[-1]))
    return tuple(reversed(levels))


def block_starts(shape: Sizes, side: int, level: int) -> tuple[Indices, ...]:
    """Return the cell of each axis at which the blocks of a level start.

    >>> [starts.tolist() for starts in block_starts((16, 6), 4, 0)]
    [[0, 4, 8, 12], [0, 3]]
    """
    starts = tuple(np.arange(n_cells, dtype=np.intp) for n_cells in shape)
    levels = block_sizes(shape, side)[level:]
    for above, below in reversed(list(pairwise(levels))):
        firsts = (_blocks(*sizes)[0] for sizes in zip(above, below, strict=True))
        starts = tuple(of_axis[first] for of_axis, first in zip(starts, firsts, strict=True))
    return starts


def _blocks(above: int, below: int) -> tuple[Indices, Indices]:
    starts = np.arange(above, dtype=np.intp) * below // above
    return starts, np.diff(starts, append=below)


def best_side(shape: Sizes, *, squared: bool) -> int:
    """Return the side of the blocks with the smallest mean variance of a rectangle.

    The variance of a count grows with the square of the number of levels if `squared`, as for
    Laplace noise, else with the number.

    >>> best_side((256, 256), squared=True), best_side((2048, 2048), squared=True)
    (16, 13)
    """
    longest, power = max(shape), 2 if squared else 1
    roots = (longest ** (1 / height) for height in range(1, longest.bit_length()))
    sides = {max(math.ceil(round(root, 9)), 2) for root in roots}
    candidates = [
        (rectangle_counts(shape, side) * float(len(block_sizes(shape, side))) ** power, side)
        for side in sides or {2}
    ]
    return int(min(candidates)[1])


@lru_cache(maxsize=256)
def rectangle_counts(shape: Sizes, side: int) -> float:
    """Return the mean variance of a rectangle by least squares, in units of one count's variance.

    Exact if all blocks of a level have equally many cells.

    >>> rectangle_counts((4, 4), 4)  # without blocks: the mean number of cells of a rectangle
    4.0
    """
    levels = block_sizes(shape, side)
    sums = [math.prod(map(_mean_squares, shape, n_blocks)) for n_blocks in levels]
    children = [math.prod(below) / math.prod(above) for above, below in pairwise(levels)]
    variances = [1.0]
    for n_children in reversed(children):
        variances.append(n_children * variances[-1] / (1 + n_children * variances[-1]))
    variances.reverse()
    terms = zip(variances[1:], sums[1:], children, sums, strict=False)
    return float(variances[0] * sums[0] + sum(u * (s - b * a) for u, s, b, a in terms))


@lru_cache(maxsize=256)
def _mean_squares(cells: int, blocks: int) -> float:
    """Return the sum over blocks of an axis of the mean squared fraction inside a range of cells.

    The mean is over all ranges; ``(i + 1) (cells - j)`` of them contain both cells i <= j.
    """
    starts, width = _blocks(blocks, cells)
    at = np.arange(cells, dtype=float)
    running = np.concatenate([[0.0], np.cumsum(at + 1)])
    before = running[:-1] - np.repeat(running[starts], width)
    pairs: Floats = (2 * before + at + 1) * (cells - at)
    squares = np.add.reduceat(pairs, starts) / width.astype(float) ** 2
    return float(squares.sum()) / (cells * (cells + 1) / 2)


# Counts of the cells of a plane, row by row.

# Side, in cells, of the blocks used to round noisy counts to integers: a choice.
SIDE = 4
# Side of the blocks in whose order runs are halved.
BLOCK = 2


@dataclass(frozen=True, eq=False)
class PlaneCounts:
    """Counts by group and cell, the last variable fastest."""

    block_counts: OrderedCounts  # in the order of the plane's blocks
    blocks: Plane

    @property
    def unlawful(self) -> str:
        """Why the noise distribution of sums is unknown; empty if it is known."""
        return self.block_counts.unlawful

    @cached_property
    def _place(self) -> Indices:
        return self.blocks.place.ravel()

    @cached_property
    def _order(self) -> Indices:
        return self.blocks.order

    @cached_property
    def cells(self) -> Floats:
        """Shape (groups, cells)."""
        return self.block_counts.cells[:, self._place]

    @property
    def incomplete(self) -> float:
        """Number of incomplete rows."""
        return self.block_counts.incomplete

    @cached_property
    def whole(self) -> Integers:
        """Integer counts by group, the incomplete rows last."""
        counts = self.block_counts.whole
        cells = counts[:-1].reshape(-1, len(self._place))[:, self._place]
        return np.append(cells.ravel(), counts[-1])

    def spread(self, weights: Floats, other_groups: Floats = NO_WEIGHT) -> Spread:
        """Return the noise in sums of the cells of one group."""
        in_blocks = np.asarray(weights, dtype=float)[..., self._order]
        return self.block_counts.spread(in_blocks, other_groups)

    def along(
        self, before: Floats, cell_weight: Floats, after: Floats, other_groups: Floats = NO_WEIGHT
    ) -> Spread:
        """Return the noise in one sum per cell, in which all other cells have the same weight."""
        assert np.array_equal(before, after), "a plane has no cells before a cell and after it"
        arrays = map(np.asarray, (before, cell_weight, other_groups))
        # In the order of the blocks, unless one number stands for all cells.
        rest, cell, beside = (array[self._order] if array.ndim else array for array in arrays)
        noise = self.block_counts.along(rest, cell, rest, beside)
        return Spread(noise.squares[self._place], noise.fourths[self._place])


def plane_counts(
    release: CountsRelease | SumsRelease | RunsRelease, shape: tuple[int, ...] | None = None
) -> PlaneCounts:
    """Return the counts of a release with `shape` groups, rows and columns."""
    if isinstance(release, RunsRelease):
        groups, *sides = release.shape
        flat = replace(release, shape=(groups, math.prod(sides)))
        return PlaneCounts(PooledCounts(flat), plane(tuple(sides), BLOCK))
    if isinstance(release, SumsRelease):
        blocks = plane(release.shape[1:], release.fanout)
        return PlaneCounts(TreeCounts(release, blocks.hierarchy), blocks)
    groups, *sides = shape or ()
    blocks = plane(tuple(sides), SIDE)
    cells = release.values[:-1].reshape(groups, -1)[:, blocks.order]
    reordered = replace(release, values=np.append(cells.ravel(), release.values[-1]))
    return PlaneCounts(FlatCounts(reordered, cells.shape, blocks.hierarchy), blocks)


# Density of counts over a plane, at the finest resolution at which counts exceed their noise.


class Blocks(NamedTuple):
    """Blocks of a plane, as groups of its finest blocks."""

    starts: tuple[Indices, ...]  # first finest block of each, along both axes
    finest: tuple[int, ...]  # number of finest blocks along each axis
    width: float  # bound on the noise in the count of one block

    def sums(self, values: Floats) -> Floats:
        """Return sums over the blocks."""
        for axis, starts in enumerate(self.starts):
            values = np.add.reduceat(values, starts, axis=axis)
        return values

    def within(self, values: Floats) -> Floats:
        """Return for every finest block the value of the block that contains it."""
        for axis, (starts, size) in enumerate(zip(self.starts, self.finest, strict=True)):
            values = np.repeat(values, np.diff(starts, append=size), axis=axis)
        return values


def detected_density(counts: Floats, sizes: Floats, levels: Iterable[Blocks]) -> Floats:
    """Return count divided by size for the finest blocks whose counts exceed their noise.

    `levels` begin with the finest blocks. Blocks detected at one level are removed from the counts
    and sizes of the next, coarser one, which inherits their noise; nan where no level detects any.
    """
    density = np.full(counts.shape, np.nan)
    counts_left, free_sizes, noise = counts.copy(), sizes.astype(float), np.zeros(counts.shape)
    for blocks in levels:
        sums, sizes_left, beside = map(blocks.sums, (counts_left, free_sizes, noise))
        detected = (sums > np.sqrt(blocks.width**2 + beside)) & (sizes_left > 0)
        block_density = np.divide(sums, sizes_left, out=np.full(sums.shape, np.nan), where=detected)
        painted = blocks.within(block_density)
        is_new = np.isnan(density) & ~np.isnan(painted)
        density[is_new] = painted[is_new]
        shared = blocks.width**2 / np.maximum(blocks.sums(is_new.astype(float)), 1.0)
        noise[is_new] = blocks.within(shared)[is_new]
        counts_left[is_new] = free_sizes[is_new] = 0.0
    return density
