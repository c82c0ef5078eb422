"""From a release of cells in an order to their counts, by which sums were released."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from dpmodels.postprocess.flat_counts import FlatCounts
from dpmodels.postprocess.protocol import OrderedCounts
from dpmodels.postprocess.tree_counts import TreeCounts
from dpmodels.released import CountsRelease, SumsRelease

SUMS: Final[Mapping[str, Callable[[SumsRelease], OrderedCounts]]] = {
    "tree": TreeCounts,
}


def ordered(release: CountsRelease | SumsRelease, shape: tuple[int, ...]) -> OrderedCounts:
    """Return the counts of a table of so many groups and cells."""
    if isinstance(release, CountsRelease):
        return FlatCounts(release, shape)
    return SUMS[release.sums](release)
