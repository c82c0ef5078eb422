"""The public bins of a histogram, and where ranges that somebody asks for lie among them."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpmodels.arguments import finite, several
from dpmodels.dates import day_of, text_of_day
from dpmodels.errors import ArgumentError, said, shorten
from dpmodels.formula.bins import (
    beside,
    by_whole_numbers,
    held,
    interval_names,
    whole_names,
)
from dpmodels.formula.values import Real
from dpmodels.postprocess.ordered import within
from dpmodels.postprocess.protocol import OrderedCounts, Spread
from dpmodels.typing import Floats, Integers

# Names of bins have their ends to a hundredth of the narrowest: so near is the same end.
SAME = 0.005


class Ranges(NamedTuple):
    """Ranges of the variable, shape (ranges,): where they start and end, in bins from the first.

    A place between two whole numbers is inside a bin.
    """

    start: Floats
    stop: Floats

    def sums(self, counts: NDArray[Any]) -> Floats:
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

    def spread(self, counts: OrderedCounts, inside: Floats, outside: Floats) -> Spread:
        """Return the noise in sums of the bins inside and the others of a group, with weights.

        Of ranges that are aligned.
        """
        return within(counts, *self.whole, inside, outside)


class Bins(NamedTuple):
    """Bins between rising ends; of whole numbers and of days these are half a step beside them."""

    breaks: Floats
    number: Real

    @property
    def whole(self) -> bool:
        """Whether bins hold whole numbers, or days."""
        return by_whole_numbers(self.number) and bool((self.breaks % 1 == 0.5).all())

    @property
    def ends(self) -> tuple[NDArray[Any], NDArray[Any]]:
        """Ends of the bins; of whole numbers and days the first and the last in each."""
        low, high = held(self.breaks) if self.whole else (self.breaks[:-1], self.breaks[1:])
        return self.shown(low), self.shown(high)

    def shown(self, values: Floats) -> NDArray[Any]:
        """Return values of the variable as they are written: whole numbers, days as dates."""
        if not self.whole or np.isnan(values).any():
            return values
        if not self.number.date:
            return np.rint(values).astype(np.int64)
        # pandas knows no days, and its nanoseconds are not enough for all years.
        return np.rint(values).astype(np.int64).astype("datetime64[D]").astype("datetime64[s]")

    def at(self, places: Floats) -> Floats:
        """Return the values of the variable at places."""
        return np.interp(places, np.arange(len(self.breaks)), self.breaks)

    def inside(self, places: Floats) -> NDArray[Any]:
        """Return the values at places; of whole numbers and days those that lie there."""
        values = self.at(places)
        return self.shown(np.ceil(values - 0.5)) if self.whole else values

    def runs(self, most: int) -> Ranges:
        """Return all bins in at most so many runs of equal size, but the last."""
        bins = len(self.breaks) - 1
        start = np.arange(0, bins, -(-bins // most))
        return Ranges(start.astype(float), np.append(start[1:], bins).astype(float))

    def parts(self, many: int) -> Ranges:
        """Return all bins in so many runs of nearly equal size, or each by itself."""
        bins = len(self.breaks) - 1
        ends = np.linspace(0, bins, min(many, bins) + 1).astype(int).astype(float)
        return Ranges(ends[:-1], ends[1:])

    def names(self, runs: Ranges) -> tuple[str, ...]:
        """Name runs of bins as bins are named."""
        ends = self.at(np.append(runs.start, runs.stop[-1])).tolist()
        return whole_names(ends, date=self.number.date) if self.whole else interval_names(ends)

    def written(self, ranges: Ranges) -> tuple[NDArray[Any], NDArray[Any]]:
        """Return the ends of ranges as they are written."""
        beside_low, beside_high = (0.5, -0.5) if self.whole else (0.0, 0.0)
        low, high = self.at(ranges.start) + beside_low, self.at(ranges.stop) + beside_high
        return self.shown(low), self.shown(high)

    def ranges(self, lo: object, hi: object) -> Ranges:
        """Find ranges; ArgumentError for what is none within the breaks, its lower end first."""
        pairs = _pairs(self._values("lo", lo), self._values("hi", hi))
        for low, high in pairs:
            self._require(low, high)
        ends = np.array([beside(pair) if self.whole else pair for pair in pairs])
        if (ends[:, 0] >= ends[:, 1]).any():
            raise ArgumentError(f"between(): no {self._what} is in one of the ranges")
        low, high = ends.T
        start, stop = self._place(low), self._place(high)
        narrow = start == stop
        start[narrow], stop[narrow] = self._exact(low[narrow]), self._exact(high[narrow])
        if (start >= stop).any():
            raise ArgumentError(f"between(): one of the ranges is outside the bins{self._reach}")
        return Ranges(start, stop)

    @property
    def _what(self) -> str:
        return ("day" if self.number.date else "whole number") if self.whole else "number"

    def _values(self, name: str, given: object) -> list[float]:
        return [self._value(name, one) for one in (given if several(given) else [given])]

    def _value(self, name: str, given: object) -> float:
        if not self.number.date:
            return finite(name, given, self._reach)
        day = day_of(given)
        if np.isnan(day):
            raise ArgumentError(f"{name}={said(given)}: expected a day{self._reach}")
        return day

    @property
    def _reach(self) -> str:
        """Say how far the bins reach."""
        low, high = (own[place] for own, place in zip(self.ends, (0, -1), strict=True))
        if self.whole and self.number.date:
            low, high = text_of_day(self.breaks[0] + 0.5), text_of_day(self.breaks[-1] - 0.5)
        return f"; the bins of {shorten(self.number.code)!r} reach from {low} to {high}"

    def _require(self, low: float, high: float) -> None:
        first, last = held(self.breaks) if self.whole else (self.breaks, self.breaks)
        slack = SAME * float(np.diff(self.breaks).min())
        written = f"between({low:.10g}, {high:.10g})"
        if self.number.date:
            written = f'between("{text_of_day(low)}", "{text_of_day(high)}")'
        if low > high or (low == high and not self.whole):
            raise ArgumentError(f"{written}: the range has no width; write its lower end first")
        if low < first[0] - slack or high > last[-1] + slack:
            raise ArgumentError(
                f"{written}: part of it is in no bin, where rows were not counted{self._reach}"
            )

    def _exact(self, values: Floats) -> Floats:
        return np.interp(values, self.breaks, np.arange(len(self.breaks)))

    def _place(self, values: Floats) -> Floats:
        """Return places; what is as near to an end as the names of bins are is that end."""
        own = self._exact(values)
        near = np.rint(own)
        same = np.abs(values - self.breaks[near.astype(int)]) <= SAME * np.diff(self.breaks).min()
        return np.asarray(np.where(same, near, own))


def _pairs(lo: list[float], hi: list[float]) -> list[tuple[float, float]]:
    if not lo or not hi or (len(lo) != len(hi) and 1 not in (len(lo), len(hi))):
        raise ArgumentError(
            f"between(): {len(lo)} lower and {len(hi)} upper ends; write as many of one as of the "
            "other, or one for all"
        )
    many = max(len(lo), len(hi))
    return list(zip(lo * (many // len(lo)), hi * (many // len(hi)), strict=True))
