"""The public bins of a histogram, and the positions of requested ranges among them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import NamedTuple

import numpy as np

from dpmodels.arguments import finite, lists_values
from dpmodels.dates import day_of, text_of_day
from dpmodels.errors import ArgumentError, quoted, shorten
from dpmodels.formula.functions import (
    beside,
    by_whole_numbers,
    clipped_ends,
    interval_names,
    whole_names,
)
from dpmodels.formula.values import Real
from dpmodels.inference.proportions import (
    SumNoise,
    Sums,
    part_interval,
    quantile_bins,
    sum_interval,
)
from dpmodels.postprocess.ordered import within
from dpmodels.postprocess.plane import BLOCK, PlaneCounts, plane
from dpmodels.postprocess.pooled_counts import FinalRuns, final_runs
from dpmodels.postprocess.protocol import NO_WEIGHT, CellRanges, OrderedCounts, Spread
from dpmodels.released import CountsRelease, RunsRelease, SumsRelease
from dpmodels.typing import Floats, Integers, Numbers, TableColumns

# Bin names round edges to a hundredth of the narrowest bin: within half of that, edges match.
SAME = 0.005


class Ranges(NamedTuple):
    """Ranges of the variable, shape (ranges,): start and stop, in bins from the first.

    A fractional position is inside a bin.
    """

    start: Floats
    stop: Floats

    def sums(self, counts: Numbers) -> Floats:
        """Return sums of counts, shape (bins,), over them, evenly within a bin."""
        running = np.append(0.0, np.cumsum(counts))
        at = np.arange(len(running))
        return np.asarray(np.interp(self.stop, at, running) - np.interp(self.start, at, running))

    @property
    def aligned(self) -> bool:
        """Whether all of them end at breaks."""
        return bool((self.start % 1 == 0).all() and (self.stop % 1 == 0).all())

    @property
    def whole(self) -> tuple[Integers, Integers]:
        """Their ends as whole numbers, where they are aligned."""
        return self.start.astype(np.int64), self.stop.astype(np.int64)

    @property
    def inner(self) -> Ranges:
        """The whole bins that are in them."""
        start = np.ceil(self.start)
        return Ranges(start, np.maximum(np.floor(self.stop), start))

    @property
    def outer(self) -> Ranges:
        """The bins that they touch."""
        return Ranges(np.floor(self.start), np.ceil(self.stop))

    def of_runs(self, runs: FinalRuns) -> list[tuple[Floats, Spread]]:
        """Return the sums of the runs that are in them, then of those they touch."""
        starts = runs.starts
        inner = starts.searchsorted(self.start), starts.searchsorted(self.stop, "right") - 1
        outer = starts.searchsorted(self.start, "right") - 1, starts.searchsorted(self.stop)
        return [runs.between(*inner), runs.between(*outer)]

    def spread(self, counts: OrderedCounts, inside: Floats, outside: Floats) -> Spread:
        """Return the noise in sums of the bins inside and the others of a group, with weights.

        Of ranges that are aligned.
        """
        return within(counts, CellRanges(*self.whole, inside, outside))


class Bins(NamedTuple):
    """Bins between rising ends; of whole numbers and of days these are half a step beside them."""

    breaks: Floats
    number: Real

    @property
    def whole(self) -> bool:
        """Whether bins contain whole numbers or days."""
        return by_whole_numbers(self.number) and bool((self.breaks % 1 == 0.5).all())

    @property
    def ends(self) -> tuple[Numbers, Numbers]:
        """Ends of the bins; of whole numbers and days the first and the last in each."""
        low, high = clipped_ends(self.breaks) if self.whole else (self.breaks[:-1], self.breaks[1:])
        return self.shown(low), self.shown(high)

    def shown(self, values: Floats) -> Numbers:
        """Return values of the variable for printing: whole numbers, days as dates."""
        if not self.whole or np.isnan(values).any():
            return values
        if not self.number.date:
            return np.rint(values).astype(np.int64)
        # pandas has no unit of days, and its nanoseconds do not cover all years.
        return np.rint(values).astype(np.int64).astype("datetime64[D]").astype("datetime64[s]")

    def at(self, places: Floats) -> Floats:
        """Return the values of the variable at places."""
        return np.interp(places, np.arange(len(self.breaks)), self.breaks)

    def inside(self, places: Floats) -> Numbers:
        """Return the values at places; of whole numbers and days those that lie there."""
        values = self.at(places)
        return self.shown(np.ceil(values - 0.5)) if self.whole else values

    def runs(self, n_runs: int) -> Ranges:
        """Return all bins in at most so many runs of equal size, but the last."""
        bins = len(self.breaks) - 1
        start = np.arange(0, bins, -(-bins // n_runs))
        return Ranges(start.astype(float), np.append(start[1:], bins).astype(float))

    def parts(self, n_runs: int) -> Ranges:
        """Return all bins in so many runs of nearly equal size, or each by itself."""
        bins = len(self.breaks) - 1
        ends = np.linspace(0, bins, min(n_runs, bins) + 1).astype(int).astype(float)
        return Ranges(ends[:-1], ends[1:])

    def names(self, runs: Ranges) -> tuple[str, ...]:
        """Name runs of bins as bins are named."""
        ends = self.at(np.append(runs.start, runs.stop[-1])).tolist()
        return whole_names(ends, date=self.number.date) if self.whole else interval_names(ends)

    def written(self, ranges: Ranges) -> tuple[Numbers, Numbers]:
        """Return the ends of ranges for printing."""
        beside_low, beside_high = (0.5, -0.5) if self.whole else (0.0, 0.0)
        low, high = self.at(ranges.start) + beside_low, self.at(ranges.stop) + beside_high
        return self.shown(low), self.shown(high)

    def ranges(self, lo: object, hi: object) -> Ranges:
        """Return ranges; ArgumentError for ends that are reversed or outside the breaks."""
        pairs = _pairs(self._values("lo", lo), self._values("hi", hi))
        for low, high in pairs:
            self._require(low, high)
        ends = np.array([beside(pair) if self.whole else pair for pair in pairs])
        if (ends[:, 0] >= ends[:, 1]).any():
            what = "day" if self.number.date else "whole number"
            raise ArgumentError(
                f"between(): one of the ranges contains no {what if self.whole else 'number'}"
            )
        low, high = ends.T
        start, stop = self._place(low), self._place(high)
        narrow = start == stop
        start[narrow], stop[narrow] = self._exact(low[narrow]), self._exact(high[narrow])
        if (start >= stop).any():
            raise ArgumentError(f"between(): one of the ranges is outside the bins{self._reach}")
        return Ranges(start, stop)

    def _values(self, name: str, values: object) -> list[float]:
        every = values if lists_values(values) else [values]
        return [self._value(name, value) for value in every]

    def _value(self, name: str, value: object) -> float:
        if not self.number.date:
            return finite(name, value, self._reach)
        day = day_of(value)
        if np.isnan(day):
            raise ArgumentError(f"{name}={quoted(value)}: expected a day{self._reach}")
        return day

    @property
    def _reach(self) -> str:
        """Return the range of the bins as text."""
        low, high = (edges[place] for edges, place in zip(self.ends, (0, -1), strict=True))
        if self.whole and self.number.date:
            low, high = text_of_day(self.breaks[0] + 0.5), text_of_day(self.breaks[-1] - 0.5)
        return f"; the bins of {shorten(self.number.code)!r} reach from {low} to {high}"

    def _require(self, low: float, high: float) -> None:
        first, last = clipped_ends(self.breaks) if self.whole else (self.breaks, self.breaks)
        slack = SAME * float(np.diff(self.breaks).min())
        text = f"between({low:.10g}, {high:.10g})"
        if self.number.date:
            text = f'between("{text_of_day(low)}", "{text_of_day(high)}")'
        if low > high or (low == high and not self.whole):
            raise ArgumentError(f"{text}: the range has no width; write its lower end first")
        if low < first[0] - slack or high > last[-1] + slack:
            raise ArgumentError(f"{text}: part of the range is outside the bins{self._reach}")

    def _exact(self, values: Floats) -> Floats:
        return np.interp(values, self.breaks, np.arange(len(self.breaks)))

    def _place(self, values: Floats) -> Floats:
        """Return positions; a value within rounding of an edge is moved to it."""
        position = self._exact(values)
        nearest = np.rint(position)
        distance = np.abs(values - self.breaks[nearest.astype(int)])
        is_same = distance <= SAME * np.diff(self.breaks).min()
        return np.asarray(np.where(is_same, nearest, position))


def _pairs(lo: list[float], hi: list[float]) -> list[tuple[float, float]]:
    if not lo or not hi or (len(lo) != len(hi) and 1 not in (len(lo), len(hi))):
        raise ArgumentError(
            f"between(): {len(lo)} lower and {len(hi)} upper ends; write as many of one as of the "
            "other, or one for all"
        )
    n = max(len(lo), len(hi))
    return list(zip(lo * (n // len(lo)), hi * (n // len(hi)), strict=True))


# Requested rectangles of a plane's cells.

# A choice: weights of cells in memory at once.
AT_ONCE = 2_000_000


class Rectangles(NamedTuple):
    """Rectangles, as many as there are ranges along each axis, in a plane of so many bins."""

    first: Ranges
    second: Ranges
    bins: tuple[int, int]

    def _sides(self) -> tuple[Floats, Floats]:
        """Return which part of each bin is in each, shape (rectangles, bins), along each axis."""
        first, second = (
            np.clip(ranges.stop[:, None] - np.arange(size), 0.0, 1.0)
            - np.clip(ranges.start[:, None] - np.arange(size), 0.0, 1.0)
            for ranges, size in zip((self.first, self.second), self.bins, strict=True)
        )
        return first, second

    def sums(self, counts: Numbers) -> Floats:
        """Return sums of counts, row by row, over them, evenly within a cell."""
        along, across = self._sides()
        return np.asarray(((along @ counts.reshape(self.bins)) * across).sum(axis=1))

    @property
    def aligned(self) -> bool:
        """Whether all of them end at breaks."""
        return self.first.aligned and self.second.aligned

    @property
    def inner(self) -> Rectangles:
        """The whole cells that are in them."""
        return Rectangles(self.first.inner, self.second.inner, self.bins)

    @property
    def outer(self) -> Rectangles:
        """The cells that they touch."""
        return Rectangles(self.first.outer, self.second.outer, self.bins)

    def of_runs(self, runs: FinalRuns) -> list[tuple[Floats, Spread]]:
        """Return the sums of the runs that are in them, then of those they touch."""
        order = plane(self.bins, BLOCK).order
        columns = np.diff(runs.running)
        parts: list[list[Floats]] = [[], []]
        for _, fractions in self._some():
            ordered_fractions = fractions[:, order]
            for side, at in enumerate((np.minimum, np.maximum)):
                fraction = at.reduceat(ordered_fractions, runs.starts[:-1], axis=1)
                parts[side].append((fraction >= 1.0 if side == 0 else fraction > 0) @ columns.T)
        sides = (np.concatenate(side).T for side in parts)
        return [(side[0], Spread(*side[1:])) for side in sides]

    def spread(self, counts: OrderedCounts, inside: Floats, outside: Floats) -> Spread:
        """Return the noise in sums of the cells inside and the others of a group, with weights."""
        n = len(self.first.start)
        inside_weight = np.broadcast_to(inside, n)[:, None]
        outside_weight = np.broadcast_to(outside, n)[:, None]
        spreads, difference = [], inside_weight - outside_weight
        for block, fractions in self._some():
            spreads.append(counts.spread(outside_weight[block] + difference[block] * fractions))
        return Spread(*map(np.concatenate, zip(*spreads, strict=True)))

    def _some(self) -> Iterator[tuple[slice, Floats]]:
        """Yield the fractions of cells in the rectangles, in blocks that fit in memory."""
        along, across = self._sides()
        cells = self.bins[0] * self.bins[1]
        step = max(AT_ONCE // cells, 1)
        for start in range(0, len(along), step):
            block = slice(start, start + step)
            yield block, (along[block, :, None] * across[block, None, :]).reshape(-1, cells)


def _around(low: Floats, estimate: Floats, high: Floats) -> tuple[Floats, Floats]:
    """Return intervals that contain the estimate, which is pooled from more counts than they are.

    Wider ones cover no less.
    """
    return np.fmin(low, estimate), np.fmax(high, estimate)


def _fractions(counts: Numbers, total: float) -> Floats:
    return counts / total if total > 0 else np.full(np.shape(counts), np.nan)


def _of_runs(spread: Spread, whole: Sequence[float]) -> Sums:
    """Return the noise in sums of runs and of all others, from theirs and that of all."""

    def of(inside: Floats, outside: Floats) -> Spread:
        powers = zip(spread, whole, (2, 4), strict=True)
        return Spread(*(inside**k * part + outside**k * (sums - part) for part, sums, k in powers))

    return of


# One group's ordered cell counts, with intervals of sums, shares and quantiles.

# A choice: the smallest step above the lower end of a bin, as a fraction of it.
NEXT = 1e-6
# Stands for a count of 0.
TINY = 1e-300


@dataclass(frozen=True, eq=False)
class OrderedGroup:
    """The cells of one group: unbiased counts, integer counts, and their noise.

    Where cells were pooled intervals are made of the runs that were counted: from the lower end for
    those inside a range to the upper end for those it touches.
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
        return self.counts.along(NO_WEIGHT, np.ones(()), NO_WEIGHT)

    @property
    def noise_sd(self) -> Floats:
        """Noise standard deviation of each cell."""
        return np.asarray(self._noise.sd * np.sqrt(self._single.squares))

    def noise_interval(self, level: float) -> tuple[Floats, Floats]:
        """Return noise intervals of the cells."""
        if self.runs is not None:
            low, high = (sum_interval(*sums, self._noise, level) for sums in self._each(self.runs))
            return _around(low[0], self.cells, high[1])
        return sum_interval(self.cells, self._single, self._noise, level)

    def half_width(self, level: float) -> float:
        """Return half the length of the longest noise interval of a cell."""
        ends = sum_interval(np.zeros(len(self.cells)), self._single, self._noise, level)
        return float(ends[1].max())

    def share_interval(self, level: float) -> tuple[Floats, Floats]:
        """Return confidence intervals of the cells' shares of the rows of all groups."""
        total_count = float(self.counts.cells.sum())
        if self.runs is not None and isinstance(self.release, RunsRelease):
            groups = range(self.release.shape[0])
            every = [final_runs(self.release, group).running[:, -1] for group in groups]
            total, *whole = np.sum(every, axis=0)
            low, high = (
                self._shares(sums, float(total), _of_runs(spread, whole), level)
                for sums, spread in self._each(self.runs)
            )
            return _around(low[0], _fractions(self.cells, total_count), high[1])

        def of(inside: Floats, outside: Floats) -> Spread:
            return self.counts.along(outside, inside, outside, outside)

        return self._shares(self.cells, total_count, of, level)

    def ranges(self, ranges: Ranges | Rectangles, level: float) -> TableColumns:
        """Return counts, shares and intervals of ranges, each of shape (ranges,).

        An interval reaches from the lower end of that of the bins inside to the upper end of that
        of the bins that the range touches, which are the same where it ends at breaks; the noise is
        that of the latter.
        """
        count, total = ranges.sums(self.whole), float(self.whole.sum())
        columns = {
            "count": count,
            "released": ranges.sums(self.cells),
            "proportion": _fractions(count, total),
        }
        if self.runs is not None:
            low, high = (
                self._ends_of(sums, _of_runs(spread, self.runs.whole), level)
                for sums, spread in ranges.of_runs(self.runs)
            )
            sums = columns["released"]
            noisy = _around(low[1], sums, high[2])
            sampled = _around(low[3], _fractions(sums, float(self.cells.sum())), high[4])
            low = (*low[:1], noisy[0], *low[2:3], sampled[0])
            high = (np.full(len(count), np.nan), high[1], noisy[1], high[3], sampled[1])
        else:
            high = low = self._bounds(ranges.outer, level)
            if not ranges.aligned:
                low = self._bounds(ranges.inner, level)
        columns |= {"noise_sd": high[0], "noise_low": low[1], "noise_high": high[2]}
        return columns | {"conf_low": low[3], "conf_high": high[4]}

    def _bounds(self, ranges: Ranges | Rectangles, level: float) -> tuple[Floats, ...]:

        return self._ends_of(ranges.sums(self.cells), partial(ranges.spread, self.counts), level)

    def _ends_of(self, sums: Floats, of: Sums, level: float) -> tuple[Floats, ...]:
        spread = of(np.ones(()), NO_WEIGHT)
        noisy = sum_interval(sums, spread, self._noise, level)
        shares = self._shares(sums, self._total, of, level)
        return (self._noise.sd * np.sqrt(spread.squares), *noisy, *shares)

    def _each(self, runs: FinalRuns) -> list[tuple[Floats, Spread]]:
        """Return the sums of the runs that each cell is, then of those it is in."""
        at = np.arange(len(self.cells), dtype=np.float64)
        if isinstance(self.counts, PlaneCounts):
            at = self.counts.blocks.place.ravel().astype(np.float64)
        return Ranges(at, at + 1).of_runs(runs)

    @property
    def _total(self) -> float:
        return float(self.cells.sum() if self.runs is None else self.runs.running[0, -1])

    @cached_property
    def runs(self) -> FinalRuns | None:
        """The runs that intervals are made of, where cells were pooled."""
        if not isinstance(self.release, RunsRelease):
            return None
        return final_runs(self.release, self.group)

    def _shares(self, sums: Floats, total: float, of: Sums, level: float) -> tuple[Floats, Floats]:
        effect = self.release.adjacency.design_effect
        noise = self._noise.divided(effect)
        return part_interval(sums / effect, total / effect, of, noise, level, sampling=True)

    def running(self, level: float) -> TableColumns:
        """Return the shares of the cells up to each, and their intervals, shape (cells,)."""
        counts = self.whole
        shares = _fractions(np.cumsum(counts), float(counts.sum()))
        if self.runs is None:
            inner = outer = self._running_ends(np.cumsum(self.cells), self._upto, level)
        else:
            upto = Ranges(np.zeros(len(counts)), np.arange(1.0, len(counts) + 1))
            inner, outer = (
                self._running_ends(sums, _of_runs(spread, self.runs.whole), level)
                for sums, spread in upto.of_runs(self.runs)
            )
        noisy, sampled = ((low, high) for (low, _), (_, high) in zip(inner, outer, strict=True))
        if self.runs is not None:
            noisy, sampled = (_around(low, shares, high) for low, high in (noisy, sampled))
        # All rows are up to the last cell, whatever the noise.
        noisy[0][-1] = sampled[0][-1] = 1.0
        ends = dict(zip(("noise_low", "noise_high"), noisy, strict=True))
        return {"cdf": shares} | ends | dict(zip(("conf_low", "conf_high"), sampled, strict=True))

    def _running_ends(
        self, sums: Floats, of: Sums, level: float
    ) -> tuple[tuple[Floats, Floats], tuple[Floats, Floats]]:
        noisy = part_interval(sums, self._total, of, self._noise, level, sampling=False)
        return noisy, self._shares(sums, self._total, of, level)

    def _upto(self, inside: Floats, outside: Floats) -> Spread:
        return self.counts.along(inside, inside, outside)

    def quantile(self, prob: float) -> float:
        """Return the place of a quantile of the whole counts; nan where there is no row."""
        running = np.cumsum(self.whole)
        if running[-1] == 0:
            return float("nan")
        rank = prob * running[-1]
        cell = int(np.searchsorted(running, rank))
        cell = max(cell, int(np.flatnonzero(self.whole)[0]))
        inside = (rank - running[cell] + self.whole[cell]) / max(float(self.whole[cell]), TINY)
        return cell + float(np.clip(inside, NEXT, 1.0))

    def quantile_ranges(self, prob: float, level: float) -> tuple[tuple[float, float], ...]:
        """Return between which places the quantile of these rows is, then the population's."""
        weights = np.asarray(1 - prob), np.asarray(-prob)
        if self.runs is None:
            stops = np.arange(len(self.cells) + 1)
            running, spread = np.cumsum(self.cells), self._upto(*weights)
        else:
            stops, (running, *powers) = self.runs.starts, self.runs.running[:, 1:]
            spread = _of_runs(Spread(*powers), self.runs.whole)(*weights)
        intervals = []
        for sampling, effect in ((False, 1), (True, self.release.adjacency.design_effect)):
            noise = self._noise.divided(effect)
            first, last = quantile_bins(
                running / effect, prob, lambda *_: spread, noise, level, sampling=sampling
            )
            intervals.append((float(stops[first]), float(stops[last + 1])))
        return tuple(intervals)
