"""From a release of cells in an order to their counts, by which sums were released."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

from dpmodels.postprocess.flat_counts import FlatCounts
from dpmodels.postprocess.hierarchy import line
from dpmodels.postprocess.protocol import OrderedCounts
from dpmodels.postprocess.tree_counts import TreeCounts
from dpmodels.postprocess.wavelet import WaveletCounts
from dpmodels.released import CountsRelease, SumsRelease


class Sums(NamedTuple):
    """A kind of sums: how many of a group there are, by cells and fan-out, and what reads them."""

    numbers: Callable[[int, int], int]
    counts: Callable[[SumsRelease], OrderedCounts]


SUMS: Final[Mapping[str, Sums]] = {
    "tree": Sums(lambda cells, fanout: sum(line(cells, fanout).sizes), TreeCounts),
    "wavelet": Sums(lambda cells, fanout: cells, WaveletCounts),
}


def ordered(release: CountsRelease | SumsRelease, shape: tuple[int, ...]) -> OrderedCounts:
    """Return the counts of a table of so many groups and cells."""
    if isinstance(release, CountsRelease):
        return FlatCounts(release, shape)
    return SUMS[release.sums].counts(release)


def numbers(release: SumsRelease) -> int:
    """Return how many numbers a release of such a shape has, the incomplete rows among them."""
    groups, cells = release.shape
    return groups * SUMS[release.sums].numbers(cells, release.fanout) + 1
