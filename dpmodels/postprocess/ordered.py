"""From a release of ordered cells to their counts, by the kind of released sums."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

import numpy as np

from dpmodels.postprocess.flat_counts import FlatCounts
from dpmodels.postprocess.hierarchy import line
from dpmodels.postprocess.plane import block_sizes, plane_counts
from dpmodels.postprocess.pooled_counts import PooledCounts
from dpmodels.postprocess.protocol import CellRanges, OrderedCounts, RangedCounts, Spread
from dpmodels.postprocess.square_root import RootCounts
from dpmodels.postprocess.tree_counts import TreeCounts
from dpmodels.postprocess.wavelet import WaveletCounts
from dpmodels.released import CountsRelease, RunsRelease, SumsRelease

# Most weights of cells in memory at once: a choice.
AT_ONCE = 2_000_000


class Sums(NamedTuple):
    """A kind of sums: their number per group by cells and fan-out, and the class of counts."""

    numbers: Callable[[tuple[int, ...], int], int]
    counts: Callable[[SumsRelease], OrderedCounts]


SUMS: Final[Mapping[str, Sums]] = {
    "tree": Sums(lambda cells, fanout: sum(line(cells[0], fanout).sizes), TreeCounts),
    "wavelet": Sums(lambda cells, fanout: math.prod(cells), WaveletCounts),
    "grid": Sums(lambda cells, side: sum(map(math.prod, block_sizes(cells, side))), plane_counts),
    "factorisation": Sums(lambda cells, fanout: math.prod(cells), RootCounts),
}


def ordered(
    release: CountsRelease | SumsRelease | RunsRelease, shape: tuple[int, ...]
) -> OrderedCounts:
    """Return the counts of a table; `shape` is the number of groups, then cells by variable."""
    if isinstance(release, CountsRelease):
        return FlatCounts(release, shape) if len(shape) == 2 else plane_counts(release, shape)
    if isinstance(release, RunsRelease):
        return PooledCounts(release) if len(shape) == 2 else plane_counts(release)
    return SUMS[release.sums].counts(release)


def numbers(release: SumsRelease) -> int:
    """Return the number of values in a release, including the incomplete rows."""
    groups, *cells = release.shape
    return groups * SUMS[release.sums].numbers(tuple(cells), release.fanout) + 1


def within(counts: OrderedCounts, ranges: CellRanges) -> Spread:
    """Return the noise in ranges of cells as :class:`RangedCounts` does, for any counts.

    Ranges may be empty here.
    """
    size, empty = counts.cells.shape[1], ranges.stops <= ranges.starts
    starts = np.minimum(ranges.starts, size - 1)
    ranges = ranges._replace(
        starts=starts,
        stops=np.where(empty, starts + 1, ranges.stops),
        inside=np.where(empty, ranges.outside, ranges.inside),
    )
    if isinstance(counts, RangedCounts):
        return counts.within(ranges)
    at, block = np.arange(size), max(AT_ONCE // size, 1)
    arrays = np.broadcast_arrays(*ranges)
    spreads = []
    for first in range(0, len(starts), block):
        start, stop, inside_block, outside_block, groups_block = (
            array[first : first + block, None] for array in arrays
        )
        is_inside = (at >= start) & (at < stop)
        spreads.append(
            counts.spread(np.where(is_inside, inside_block, outside_block), groups_block[:, 0])
        )
    return Spread(*map(np.concatenate, zip(*spreads, strict=True)))
