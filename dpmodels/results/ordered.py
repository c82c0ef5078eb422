"""One group's counts of cells in an order, with the intervals of what is made of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpmodels.inference.ordered import (
    SumNoise,
    Sums,
    part_interval,
    quantile_bins,
    sum_interval,
)
from dpmodels.postprocess.protocol import OrderedCounts, Spread
from dpmodels.released import CountsRelease, SumsRelease
from dpmodels.results.bins import Ranges
from dpmodels.typing import Floats, Integers

# Weights of cells in ranges that are held at once: a choice.
AT_ONCE = 2_000_000

Columns = dict[str, Any]


@dataclass(frozen=True, eq=False)
class OrderedGroup:
    """The cells of one group: unbiased, whole, and what is known of their noise.

    Where the noise of sums has no known law intervals are nan.
    """

    counts: OrderedCounts
    release: CountsRelease | SumsRelease
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

    def noise_interval(self, level: float) -> tuple[Floats, Floats]:
        """Return noise intervals of the cells."""
        one = self.counts.along(np.zeros(()), np.ones(()), np.zeros(()))
        return sum_interval(self.cells, one, self._noise, level)

    def share_interval(self, level: float) -> tuple[Floats, Floats]:
        """Return confidence intervals of the cells' shares of the rows of all groups."""

        def of(inside: Floats, outside: Floats) -> Spread:
            return self.counts.along(outside, inside, outside, outside)

        return self._shares(self.cells, float(self.counts.cells.sum()), of, level)

    def ranges(self, own: Ranges, level: float) -> Columns:
        """Return counts, shares and intervals of ranges, each of shape (ranges,).

        An interval reaches from the lower end of that of the bins inside to the upper end of that
        of the bins that the range touches, which are the same where it ends at breaks.
        """
        parts = [self._some(some, level) for some in _in_turn(own, len(self.cells))]
        return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}

    def _some(self, own: Ranges, level: float) -> Columns:
        cells = len(self.cells)
        weights = own.weights(cells)
        inner, outer = own.inner.weights(cells), own.outer.weights(cells)
        count, total = weights @ self.whole, float(self.whole.sum())
        columns = {
            "count": count,
            "released": weights @ self.cells,
            "proportion": count / total if total > 0 else np.full(len(count), np.nan),
        }
        if self.counts.unlawful:
            names = ("noise_sd", "noise_low", "noise_high", "conf_low", "conf_high")
            return columns | {name: np.full(len(count), np.nan) for name in names}
        low, high = (self._bounds(one, level) for one in (inner, outer))
        sd = self._noise.sd * np.sqrt(self.counts.spread(weights).squares)
        ends = {
            "noise_low": low[0],
            "noise_high": high[1],
            "conf_low": low[2],
            "conf_high": high[3],
        }
        return columns | {"noise_sd": sd} | ends

    def _bounds(self, weights: Floats, level: float) -> tuple[Floats, Floats, Floats, Floats]:
        """Return the ends of the noise intervals of sums, and of confidence intervals of shares."""
        sums = weights @ self.cells

        def of(inside: Floats, outside: Floats) -> Spread:
            return self.counts.spread(outside[..., None] + (inside - outside)[..., None] * weights)

        noisy = sum_interval(sums, self.counts.spread(weights), self._noise, level)
        return (*noisy, *self._shares(sums, float(self.cells.sum()), of, level))

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
        return cell + float(np.clip(inside, 0.0, 1.0))

    def quantile_range(self, prob: float, level: float, *, sampling: bool) -> tuple[float, float]:
        """Return the places between which the quantile of these rows, or the population's, is."""
        if self.counts.unlawful:
            return float("nan"), float("nan")
        effect = self.release.adjacency.design_effect if sampling else 1
        running, noise = np.cumsum(self.cells) / effect, self._noise.divided(effect)
        first, last = quantile_bins(running, prob, self._upto, noise, level, sampling=sampling)
        return float(first), float(last + 1)


def _in_turn(own: Ranges, cells: int) -> Iterator[Ranges]:
    """Yield ranges, so many that their weights can be held."""
    many = max(AT_ONCE // cells, 1)
    for first in range(0, len(own.start), many):
        yield Ranges(own.start[first : first + many], own.stop[first : first + many])
