"""One group's counts of cells in an order, with the intervals of what is made of them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from dpmodels.inference.ordered import (
    SumNoise,
    Sums,
    part_interval,
    quantile_bins,
    sum_interval,
)
from dpmodels.postprocess.protocol import NO_WEIGHT, OrderedCounts, Spread
from dpmodels.released import CountsRelease, RunsRelease, SumsRelease
from dpmodels.results.bins import Ranges
from dpmodels.results.rectangles import Rectangles
from dpmodels.typing import Floats, Integers

# Of a bin, what is above its lower end: a choice.
NEXT = 1e-6

Columns = dict[str, Any]


@dataclass(frozen=True, eq=False)
class OrderedGroup:
    """The cells of one group: unbiased, whole, and what is known of their noise.

    Where the noise of sums has no known law intervals are nan.
    """

    counts: OrderedCounts
    release: CountsRelease | SumsRelease | RunsRelease
    group: int

    @property
    def cells(self) -> Floats:
        """Unbiased counts, shape (cells,)."""
        return np.asarray(self.counts.cells[self.group])

    @property
    def whole(self) -> Integers:
        """Whole counts, shape (cells,)."""
        return np.asarray(self.counts.whole[:-1].reshape(self.counts.cells.shape)[self.group])

    @property
    def _noise(self) -> SumNoise:
        return SumNoise(self.release.law, self.release.noise_sd, self.release.step)

    @cached_property
    def _single(self) -> Spread:
        """The noise of each cell."""
        return self.counts.along(NO_WEIGHT, np.ones(()), NO_WEIGHT)

    @property
    def noise_sd(self) -> Floats:
        """Noise standard deviation of each cell."""
        return np.asarray(self._noise.sd * np.sqrt(self._single.squares))

    def noise_interval(self, level: float) -> tuple[Floats, Floats]:
        """Return noise intervals of the cells."""
        return sum_interval(self.cells, self._single, self._noise, level)

    def half_width(self, level: float) -> float:
        """Return half the length of the longest noise interval of a cell."""
        ends = sum_interval(np.zeros(len(self.cells)), self._single, self._noise, level)
        return float(ends[1].max())

    def share_interval(self, level: float) -> tuple[Floats, Floats]:
        """Return confidence intervals of the cells' shares of the rows of all groups."""

        def of(inside: Floats, outside: Floats) -> Spread:
            return self.counts.along(outside, inside, outside, outside)

        return self._shares(self.cells, float(self.counts.cells.sum()), of, level)

    def ranges(self, own: Ranges | Rectangles, level: float) -> Columns:
        """Return counts, shares and intervals of ranges, each of shape (ranges,).

        An interval reaches from the lower end of that of the bins inside to the upper end of that
        of the bins that the range touches, which are the same where it ends at breaks; the noise is
        that of the latter.
        """
        count, total = own.sums(self.whole), float(self.whole.sum())
        columns = {
            "count": count,
            "released": own.sums(self.cells),
            "proportion": count / total if total > 0 else np.full(len(count), np.nan),
        }
        if self.counts.unlawful:
            names = ("noise_sd", "noise_low", "noise_high", "conf_low", "conf_high")
            return columns | {name: np.full(len(count), np.nan) for name in names}
        high = low = self._bounds(own.outer, level)
        if not own.aligned:
            low = self._bounds(own.inner, level)
        ends = {
            "noise_low": low[1],
            "noise_high": high[2],
            "conf_low": low[3],
            "conf_high": high[4],
        }
        return columns | {"noise_sd": high[0]} | ends

    def _bounds(self, own: Ranges | Rectangles, level: float) -> tuple[Floats, ...]:
        """Return noise sds, and ends of the intervals of sums and of the population's shares."""
        sums = own.sums(self.cells)

        def of(inside: Floats, outside: Floats) -> Spread:
            return own.spread(self.counts, inside, outside)

        spread = of(np.ones(()), NO_WEIGHT)
        noisy = sum_interval(sums, spread, self._noise, level)
        shares = self._shares(sums, float(self.cells.sum()), of, level)
        return (self._noise.sd * np.sqrt(spread.squares), *noisy, *shares)

    def _shares(self, sums: Floats, total: float, of: Sums, level: float) -> tuple[Floats, Floats]:
        """Return confidence intervals, with rows that may be one person's taken for one."""
        effect = self.release.adjacency.design_effect
        noise = self._noise.divided(effect)
        return part_interval(sums / effect, total / effect, of, noise, level, sampling=True)

    def running(self, level: float) -> Columns:
        """Return the shares of the cells up to each, and their intervals, shape (cells,)."""
        whole = self.whole
        shares = np.cumsum(whole) / whole.sum() if whole.sum() else np.full(len(whole), np.nan)
        columns: Columns = {"cdf": shares}
        if self.counts.unlawful:
            names = ("noise_low", "noise_high", "conf_low", "conf_high")
            return columns | {name: np.full(len(whole), np.nan) for name in names}
        sums, total = np.cumsum(self.cells), float(self.cells.sum())
        noisy = part_interval(sums, total, self._upto, self._noise, level, sampling=False)
        sampled = self._shares(sums, total, self._upto, level)
        # All rows are up to the last cell, whatever the noise.
        noisy[0][-1] = sampled[0][-1] = 1.0
        ends = dict(zip(("noise_low", "noise_high"), noisy, strict=True))
        return columns | ends | dict(zip(("conf_low", "conf_high"), sampled, strict=True))

    def _upto(self, inside: Floats, outside: Floats) -> Spread:
        return self.counts.along(inside, inside, outside)

    def quantile(self, prob: float) -> float:
        """Return the place of a quantile of the whole counts; nan where there is no row."""
        running = np.cumsum(self.whole)
        if running[-1] == 0:
            return float("nan")
        wanted = prob * running[-1]
        cell = int(np.searchsorted(running, wanted))
        cell = max(cell, int(np.flatnonzero(self.whole)[0]))
        inside = (wanted - running[cell] + self.whole[cell]) / max(int(self.whole[cell]), 1)
        return cell + float(np.clip(inside, NEXT, 1.0))

    def quantile_ranges(self, prob: float, level: float) -> tuple[tuple[float, float], ...]:
        """Return between which places the quantile of these rows is, then the population's."""
        if self.counts.unlawful:
            return ((float("nan"),) * 2,) * 2
        running, spread = np.cumsum(self.cells), self._upto(np.asarray(1 - prob), np.asarray(-prob))
        found = []
        for sampling, effect in ((False, 1), (True, self.release.adjacency.design_effect)):
            noise = self._noise.divided(effect)
            first, last = quantile_bins(
                running / effect, prob, lambda *weights: spread, noise, level, sampling=sampling
            )
            found.append((float(first), float(last + 1)))
        return tuple(found)
