"""Nodes above the cells of a plane: blocks of b by b nodes under each, level by level.

Cells are put in an order in which the children of every node stand together, so that all that is
said of a :class:`~dpmodels.postprocess.hierarchy.Hierarchy` holds for the plane.

*Theorem.* Let the blocks of one level be of equally many cells. By least squares a block stands in
the sum over a rectangle with the share a of its cells that are inside, which is a product of two
shares, one along each axis. A node with B children, whose best counts have the variance u each,
adds ``u (sum a_c² - B A²)`` to the variance of the sum, and A is the mean of the a_c. So with S the
sum of ``E a²`` over the blocks of a level, over all rectangles, the mean rectangle has the variance

    u_1 S_1 + sum over levels l > 1 of u_l (S_l - B_l S_(l-1)),

and S is a product of two sums over ranges of one axis, which are exact.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from dpmodels.postprocess.hierarchy import Hierarchy
from dpmodels.typing import Floats

Sizes = tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Plane:
    """The nodes above cells in rows and columns; `place` is where in the order each cell stands."""

    hierarchy: Hierarchy
    place: NDArray[np.intp]  # shape (rows, columns)

    @property
    def order(self) -> NDArray[np.intp]:
        """Which cell, row by row, stands at each place."""
        return np.argsort(self.place.ravel())


def plane(shape: Sizes, side: int) -> Plane:
    """Put nodes above cells in a plane, of `side` by `side` children each, or nearly so.

    >>> plane((4, 4), 2).place.tolist()
    [[0, 1, 4, 5], [2, 3, 6, 7], [8, 9, 12, 13], [10, 11, 14, 15]]
    """
    levels = block_sizes(shape, side)
    place = np.arange(math.prod(levels[0]), dtype=np.intp).reshape(levels[0])
    starts: list[NDArray[np.intp]] = []
    for above, below in pairwise(levels):
        first, width = zip(*map(_blocks, above, below), strict=True)
        children = np.empty(place.size, dtype=np.intp)
        children[place] = width[0][:, None] * width[1]
        began = np.cumsum(children) - children
        parent = [np.repeat(np.arange(len(own)), own) for own in width]
        row, column = (
            np.arange(size) - own[at] for size, own, at in zip(below, first, parent, strict=True)
        )
        within = row[:, None] * width[1][parent[1]] + column
        place = began[place[np.ix_(*parent)]] + within
        starts.append(began)
    return Plane(Hierarchy(math.prod(shape), tuple(starts)), place)


def block_sizes(shape: Sizes, side: int) -> tuple[Sizes, ...]:
    """Return how many blocks each level has along each axis, the top one first.

    >>> block_sizes((16, 6), 4)
    ((4, 2), (16, 6))
    """
    levels = [shape]
    while max(levels[-1]) > side:
        levels.append(tuple(-(-own // side) for own in levels[-1]))
    return tuple(reversed(levels))


def block_starts(shape: Sizes, side: int, level: int) -> tuple[NDArray[np.intp], ...]:
    """Return at which cell of each axis the blocks of a level start.

    >>> [own.tolist() for own in block_starts((16, 6), 4, 0)]
    [[0, 4, 8, 12], [0, 3]]
    """
    starts = tuple(np.arange(own, dtype=np.intp) for own in shape)
    levels = block_sizes(shape, side)[level:]
    for above, below in reversed(list(pairwise(levels))):
        firsts = (_blocks(*own)[0] for own in zip(above, below, strict=True))
        starts = tuple(own[first] for own, first in zip(starts, firsts, strict=True))
    return starts


def _blocks(above: int, below: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return where the children of each block of an axis start, and how many there are."""
    starts = np.arange(above, dtype=np.intp) * below // above
    return starts, np.diff(starts, append=below)


def best_side(shape: Sizes, *, squared: bool) -> int:
    """Return the side of the blocks for the least mean variance of a rectangle.

    The variance of a count grows with the square of the number of levels where `squared`, as that
    of Laplace noise does, else with the number.

    >>> best_side((256, 256), squared=True), best_side((2048, 2048), squared=True)
    (16, 13)
    """
    longest, power = max(shape), 2 if squared else 1
    sides = {
        max(math.ceil(round(longest ** (1 / h), 9)), 2) for h in range(1, longest.bit_length())
    }
    found = [
        (rectangle_counts(shape, own) * float(len(block_sizes(shape, own))) ** power, own)
        for own in sides or {2}
    ]
    return int(min(found)[1])


@lru_cache(maxsize=256)
def rectangle_counts(shape: Sizes, side: int) -> float:
    """Return how many counts the mean rectangle has the variance of, by least squares.

    Exact where all blocks of a level have equally many cells.

    >>> rectangle_counts((4, 4), 4)  # of cells alone: those of the mean rectangle
    4.0
    """
    levels = block_sizes(shape, side)
    sums = [math.prod(map(_mean_squares, shape, own)) for own in levels]
    children = [math.prod(below) / math.prod(above) for above, below in pairwise(levels)]
    variances = [1.0]
    for own in reversed(children):
        variances.append(own * variances[-1] / (1 + own * variances[-1]))
    variances.reverse()
    each = zip(variances[1:], sums[1:], children, sums, strict=False)
    return float(variances[0] * sums[0] + sum(u * (s - b * a) for u, s, b, a in each))


@lru_cache(maxsize=256)
def _mean_squares(cells: int, blocks: int) -> float:
    """Return the sum over blocks of an axis of the mean squared share inside a range of cells.

    Over all ranges; of these ``(i + 1) (cells - j)`` hold both the cells i <= j.
    """
    starts, width = _blocks(blocks, cells)
    at = np.arange(cells, dtype=float)
    running = np.concatenate([[0.0], np.cumsum(at + 1)])
    before = running[:-1] - np.repeat(running[starts], width)
    pairs: Floats = (2 * before + at + 1) * (cells - at)
    held = np.add.reduceat(pairs, starts) / width.astype(float) ** 2
    return float(held.sum()) / (cells * (cells + 1) / 2)
