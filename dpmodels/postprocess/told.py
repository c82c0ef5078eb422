"""Where in a plane counts are told from noise, each place as finely as its rows allow."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpmodels.typing import Floats


class Blocks(NamedTuple):
    """Larger blocks of a plane: where each starts along both axes, in the finest ones."""

    starts: tuple[NDArray[np.intp], ...]
    finest: tuple[int, ...]  # how many finest blocks there are
    width: float  # what the noise in the count of one stays within

    def sums(self, values: Floats) -> Floats:
        """Return sums over the blocks."""
        for axis, own in enumerate(self.starts):
            values = np.add.reduceat(values, own, axis=axis)
        return values

    def within(self, values: Floats) -> Floats:
        """Give every finest block what the block has that it is in."""
        for axis, (own, size) in enumerate(zip(self.starts, self.finest, strict=True)):
            values = np.repeat(values, np.diff(own, append=size), axis=axis)
        return values


def told_density(counts: Floats, sizes: Floats, levels: Iterable[Blocks]) -> Floats:
    """Return counts by size of the finest blocks that are told, elsewhere of larger ones.

    `levels` begin with the finest blocks themselves. What is told at one level is taken out of the
    counts and the sizes of the next, with its noise; nan where nothing is told at any.
    """
    density = np.full(counts.shape, np.nan)
    left, room, noise = counts.copy(), sizes.astype(float), np.zeros(counts.shape)
    for own in levels:
        sums, sizes_left, beside = map(own.sums, (left, room, noise))
        told = (sums > np.sqrt(own.width**2 + beside)) & (sizes_left > 0)
        each = np.divide(sums, sizes_left, out=np.full(sums.shape, np.nan), where=told)
        painted = own.within(each)
        here = np.isnan(density) & ~np.isnan(painted)
        density[here] = painted[here]
        shared = own.width**2 / np.maximum(own.sums(here.astype(float)), 1.0)
        noise[here], left[here], room[here] = own.within(shared)[here], 0.0, 0.0
    return density
