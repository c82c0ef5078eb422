"""Released numbers of rows by length, and the radius of a ball that follows from them."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from dpmodels.mechanisms.add_noise import Law
from dpmodels.typing import Floats

# Radii are told apart by 19 %, and bounds may be thousands of times too wide: choices.
PER_OCTAVE, OCTAVES = 4, 14
FRACTIONS: Floats = 2.0 ** (-np.arange(PER_OCTAVE * OCTAVES, -1, -1) / PER_OCTAVE)
# So many cells together are held against noise, a few rows being spread over many; and how often
# noise alone may be taken for rows: choices.
WIDTHS = (1, 2, 4, 8)
FALSE_ALARM = 1e-3


def faintest(law: Law, scale: float) -> float:
    """Return the number of rows that is told from noise in one cell."""
    return scale * law.beyond(FALSE_ALARM / (len(WIDTHS) * FRACTIONS.size))


class Lengths(NamedTuple):
    """Released numbers of rows by length, up to each radius; noise of `sd` in each of them."""

    radii: Floats
    counts: Floats
    sd: float
    faint: float  # See `faintest`

    @property
    def last(self) -> int:
        """The last cell in which rows are told from noise, -1 where there is none."""
        last, ends = -1, np.append(0.0, np.cumsum(self.counts))
        for width in WIDTHS:
            told = np.flatnonzero(ends[width:] - ends[:-width] > self.faint * math.sqrt(width))
            if told.size and told[-1] > last:
                last = int(told[-1]) + width - 1
        return last

    @property
    def told(self) -> Floats:
        """Numbers of rows up to the last cell where there are any, none of them negative."""
        counts = np.where(np.arange(self.counts.size) <= self.last, self.counts, 0.0)
        longer = np.maximum.accumulate(np.append(0.0, np.cumsum(counts[::-1])))
        return np.diff(longer)[::-1]

    def radius(self, noise: float) -> float:
        """Return where noise and what is cut off the sum of the rows are least.

        `noise` is that of the sum for a radius of 1. The largest radius where no row is told of.
        """
        told = self.told
        if not told.any():
            return float(self.radii[-1])
        cut = np.maximum(self.radii - self.radii[:, None], 0.0) @ told
        return float(self.radii[np.argmin(np.hypot(noise * self.radii, cut))])

    def squares(self, part: float = 1.0) -> Floats:
        """Return for each radius the sum of the squared lengths of rows held within part of it."""
        return np.asarray(np.minimum(self.radii, part * self.radii[:, None]) ** 2 @ self.told)

    def beyond(self, radius: float) -> tuple[float, float]:
        """Return the share of the rows that are longer than one of the radii, and its noise."""
        rows, longer = max(float(self.counts.sum()), 1.0), self.radii > radius
        return float(self.counts[longer].sum()) / rows, self.sd * math.sqrt(longer.sum()) / rows
