"""Survival curves by group, with the intervals of what is estimated from them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final, NamedTuple

import numpy as np

from dpmodels.arguments import finite
from dpmodels.errors import ArgumentError, quoted
from dpmodels.formula.survival import Survival, last_times, one_value, parse_survival
from dpmodels.inference import survival
from dpmodels.inference.proportions import SumNoise
from dpmodels.postprocess.ordered import ordered
from dpmodels.postprocess.survival import Followed, at_risk, followed, identified
from dpmodels.released import CountsRelease, SumsRelease
from dpmodels.results.call import DescribedCall, TableCall
from dpmodels.typing import Floats, TableColumns

# The tolerance for shares that differ by rounding.
ROUNDING: Final = 1e-12
# The columns of one estimate.
NUMBERS: Final = (
    *("estimate", "std_error", "conf_low", "conf_high"),
    *("noise_sd", "noise_low", "noise_high"),
)


@dataclass(frozen=True, eq=False)
class Curve:
    """The counts of one group, as long as the rows at risk exceed their noise.

    `cells`, shape (2, intervals + 1), are unbiased counts of censored rows and of events, the last
    of those followed to the end; `times` the last ones of all intervals, and `effect` the design
    effect.
    """

    cells: Floats
    times: Floats
    halved: Floats
    noise: survival.Noise
    sums: SumNoise
    effect: int

    @cached_property
    def risk_sds(self) -> Floats:
        """Noise standard deviation of the rows at risk, shape (intervals + 1,)."""
        squares = self.noise(survival.risk_weights(self.cells.shape[1])).squares
        return np.asarray(self.sums.sd * np.sqrt(squares))

    @cached_property
    def end(self) -> int:
        """How many intervals the curve is identified for."""
        return identified(at_risk(self.cells)[:-1], self.risk_sds[:-1])

    def upto(self, end: int) -> Followed:
        """Return whole counts of so many intervals, identified or not."""
        return followed(self.cells, self.risk_sds, self.halved, end)

    @cached_property
    def counts(self) -> Followed:
        """Whole counts of the identified intervals."""
        return self.upto(self.end)

    @property
    def identified_times(self) -> Floats:
        """Last times of the identified intervals."""
        return self.times[: self.end]

    @cached_property
    def weights(self) -> Floats:
        """Derivatives of the curve by the counts."""
        return survival.survival_weights(self.counts, self.cells.shape[1])

    @cached_property
    def survival(self) -> survival.NoisyShares:
        """The curve at the ends of the identified intervals."""
        counts = self.counts
        effective = counts.effective / self.effect
        return survival.NoisyShares(counts.survival, self.noise(self.weights), self.sums, effective)

    @cached_property
    def orders(self) -> tuple[Curve, Curve]:
        """The curve if rows censored within intervals left at their start, and at their end."""
        if not self.halved.any():
            return self, self
        at_start = np.ceil(self.halved)
        return replace(self, halved=at_start), replace(self, halved=np.zeros_like(at_start))

    def intervals(self, level: float) -> dict[str, tuple[Floats, Floats]]:
        """Return intervals of survival that hold for any order of times within intervals."""
        lowest, highest = (curve.survival for curve in self.orders)
        return {
            "conf": (lowest.interval(level)[0], highest.interval(level)[1]),
            "noise": (lowest.noise_interval(level)[0], highest.noise_interval(level)[1]),
        }

    def columns(self, level: float) -> TableColumns:
        """Return the curve as columns of a table."""
        counts, curve, intervals = self.counts, self.survival, self.intervals(level)
        (conf_low, conf_high), (noise_low, noise_high) = intervals["conf"], intervals["noise"]
        return {
            "time": self.identified_times,
            "n_risk": counts.risk,
            "n_event": counts.events,
            "n_censor": counts.censored,
            "estimate": counts.survival,
            "std_error": curve.std_error,
            "conf_low": conf_low,
            "conf_high": conf_high,
            "noise_sd": curve.noise_sd,
            "noise_low": noise_low,
            "noise_high": noise_high,
            "order_low": counts.unordered[0],
            "order_high": counts.unordered[1],
        }

    def hazards(self, level: float) -> TableColumns:
        """Return hazards by interval and their running sums, Nelson and Aalen's."""
        counts = self.counts
        weights = survival.hazard_weights(counts, self.cells.shape[1])
        lowest, highest = (curve.cumulative(level) for curve in reversed(self.orders))
        return {
            "time": self.identified_times,
            "hazard": counts.hazard,
            "hazard_noise_sd": self.sums.sd * np.sqrt(self.noise(weights).squares),
            "cumhaz": np.cumsum(counts.hazard),
            "conf_low": lowest["conf"][0],
            "conf_high": highest["conf"][1],
            "noise_sd": self.sums.sd * np.sqrt(self.noise(np.cumsum(weights, axis=0)).squares),
            "noise_low": lowest["noise"][0],
            "noise_high": highest["noise"][1],
        }

    def cumulative(self, level: float) -> dict[str, tuple[Floats, Floats]]:
        """Return both intervals of the running sums of hazards."""
        counts = self.counts
        exposed, total = np.maximum(counts.exposed, 0.5), np.cumsum(counts.hazard)
        squares = np.cumsum(counts.hazard / exposed)
        effective = np.divide(total, squares, out=exposed.copy(), where=squares > 0) / self.effect
        weights = np.cumsum(survival.hazard_weights(counts, self.cells.shape[1]), axis=0)
        spread = self.noise(weights)
        width = self.sums.widths(spread, np.zeros(()), level)
        return {
            "conf": survival.cumulative_interval(total, spread, self.sums, effective, level),
            "noise": (np.maximum(total - width, 0.0), total + width),
        }

    def quantile(self, prob: float, level: float) -> TableColumns:
        """Return when survival is ``1 - prob`` first, with both intervals."""
        left = 1 - prob
        columns: TableColumns = {"prob": prob, "estimate": self._crossed(left)}
        for name, (low, high) in self.intervals(level).items():
            columns[f"{name}_low"], columns[f"{name}_high"] = self._reached(low, high, left)
        return columns

    def _crossed(self, left: float) -> float:
        """Return the time when the curve reaches `left`, nan where it does not.

        Within an interval of several values it falls linearly, at a single value at once.
        """
        place = _first(self.counts.survival, left)
        if place == self.end:
            return np.nan
        before = 1.0 if place == 0 else float(self.counts.survival[place - 1])
        start, stop = np.append(0.0, self.times)[place : place + 2].tolist()
        fallen = before - float(self.counts.survival[place])
        if not self.halved[place] or not fallen > 0:
            return float(stop)
        return float(start + (stop - start) * (before - left) / fallen)

    def _reached(self, low: Floats, high: Floats, left: float) -> tuple[float, float]:
        """Return the ends of the intervals that a quantile may be in; inf where it may be later.

        An interval is left out where survival is above `left` at its end, or not above it at its
        start, by more than noise and sampling explain.
        """
        first = _first(low, left)
        later = np.flatnonzero(high > left)
        last = int(later[-1]) + 1 if later.size else 0
        begins = first < self.end and not self.halved[first]
        begin = float(np.append(0.0, self.times)[first + begins])
        return begin, float(self.times[last]) if last < self.end else np.inf

    def mean(self, upto: int, level: float) -> TableColumns:
        """Return the mean time up to the end of an interval; its ends fall at once and at last."""
        lowest, highest = self.orders
        estimate = self.area(upto, 1 - self.halved, level)
        low = lowest.area(upto, np.where(self.halved > 0, 0.0, 1.0), level)
        high = highest.area(upto, np.ones_like(self.halved), level)
        last_time = float(self.times[upto])
        return {
            "upto": last_time,
            "estimate": estimate.value,
            "std_error": float(np.hypot(estimate.noise_sd, estimate.sampling_sd)),
            "conf_low": max(low.value - low.conf_width, 0.0),
            "conf_high": min(high.value + high.conf_width, last_time),
            "noise_sd": estimate.noise_sd,
            "noise_low": max(low.value - low.noise_width, 0.0),
            "noise_high": min(high.value + high.noise_width, last_time),
        }

    def area(self, upto: int, before: Floats, level: float) -> Area:
        """Return the area below the curve up to the end of an interval.

        `before` is the fraction of each interval in which survival is that at its start; in the
        rest it is that at its end.
        """
        counts, size = self.counts, upto + 1
        widths, before = np.diff(self.times[:size], prepend=0.0), before[:size]
        parts = widths * (1 - before) + np.append((widths * before)[1:], 0.0)
        value = widths[0] * before[0] + float(parts @ counts.survival[:size])
        spread = self.noise(np.tensordot(parts, self.weights[:size], axes=1)[None])
        left = np.cumsum((parts * counts.survival[:size])[::-1])[::-1]
        steps = np.diff(counts.greenwood[:size], prepend=0.0)
        has_variance = np.isfinite(steps) & (left > 0)
        sampled = self.effect * float((left[has_variance] ** 2 * steps[has_variance]).sum())
        noise_sd, sampling_sd = float(self.sums.sd * np.sqrt(spread.squares[0])), np.sqrt(sampled)
        noise_width, conf_width = (
            float(self.sums.widths(spread, np.asarray(sd), level)[0]) for sd in (0.0, sampling_sd)
        )
        return Area(value, noise_sd, float(sampling_sd), noise_width, conf_width)


class Area(NamedTuple):
    """An area below a curve, its errors and the half-widths of both intervals."""

    value: float
    noise_sd: float
    sampling_sd: float
    noise_width: float
    conf_width: float


def _first(curve: Floats, left: float) -> int:
    """Return the first place where a curve is at `left` or below, or their number."""
    return int(np.argmax(np.append(curve <= left + ROUNDING, True)))


def differing(first: Curve, second: Curve, place: int, level: float) -> TableColumns:
    """Return the difference of two curves at the end of an interval, with both intervals.

    By Newcombe's method, from those of the curves; `noise` includes the correlation that a public
    number of rows causes, and widens them by it.

    .. [1] Newcombe, R. G. (1998). "Interval estimation for the difference between independent
       proportions." Statistics in Medicine 17(8), 873-890.
    """
    first_share, second_share = (float(curve.counts.survival[place]) for curve in (first, second))
    joint = np.concatenate([first.weights[place], -second.weights[place]])[None]
    noise = first.sums.sd * float(np.sqrt(first.noise(joint).squares[0]))
    errors = np.array([curve.survival.std_error[place] for curve in (first, second)])
    noises = np.array([curve.survival.noise_sd[place] for curve in (first, second)])
    error = float(np.sqrt(max((errors**2).sum() - (noises**2).sum(), 0.0) + noise**2))
    row = {"estimate": first_share - second_share}
    row |= {"std_error": error, "noise_sd": noise}
    (lowest, highest), (other_lowest, other_highest) = (
        [float(order.counts.survival[place]) for order in curve.orders] for curve in (first, second)
    )
    intervals, other_intervals = first.intervals(level), second.intervals(level)
    for name, total_sd, sds in (("conf", error, errors), ("noise", noise, noises)):
        independent_sd = float(np.sqrt((sds**2).sum()))
        wider = total_sd / independent_sd if independent_sd > 0 else 1.0
        (low, high), (other_low, other_high) = (
            [float(end[place]) for end in interval[name]]
            for interval in (intervals, other_intervals)
        )
        below = wider * np.hypot(lowest - low, other_high - other_highest)
        above = wider * np.hypot(high - highest, other_lowest - other_low)
        row[f"{name}_low"] = max(lowest - other_highest - below, -1.0)
        row[f"{name}_high"] = min(highest - other_lowest + above, 1.0)
    return {key: row[key] for key in NUMBERS}


# Released counts of times until an event, as survival curves by group.


@dataclass(frozen=True, eq=False)
class SurvivalCounts:
    """Counts by group, ending and interval, with the noise in all sums of them."""

    call: DescribedCall
    release: CountsRelease | SumsRelease
    ends: tuple[float, ...]

    @property
    def _facts(self) -> TableCall:
        return self.call.tables[0]

    @property
    def _groups(self) -> TableCall:
        return TableCall(self._facts.factors[:-2], self._facts.levels[:-2])

    @property
    def timed(self) -> TableCall:
        """The table of groups and times, without the endings."""
        groups, facts = self._groups, self._facts
        return TableCall((*groups.factors, facts.factors[-1]), (*groups.levels, facts.levels[-1]))

    @property
    def shape(self) -> tuple[int, int]:
        """Rows of counts, one a group and ending, and cells: the intervals and one beyond."""
        cells = self._facts.shape[-1]
        return self._facts.cells // cells, cells

    @cached_property
    def spec(self) -> Survival:
        """The time, the event and the groups, as the formula names them."""
        return parse_survival(self.call.formula, self.call.codebook)

    @cached_property
    def breaks(self) -> Floats:
        """Where intervals begin and end; of whole numbers half a step beside them."""
        return self.spec.breaks(self.ends)

    @cached_property
    def times(self) -> Floats:
        """Last times of the intervals, shape (intervals,)."""
        return last_times(self.spec.time, self.breaks)

    def place(self, time: object) -> int:
        """Return which interval a time is the end of, or raise ArgumentError."""
        value = finite("time", time)
        nearest = int(np.argmin(np.abs(self.times - value)))
        if abs(self.times[nearest] - value) > 1e-9 * max(1.0, abs(value)):
            raise ArgumentError(
                f"time={quoted(time)} is within an interval, where survival is not estimated: "
                f"write one of its ends, such as {self.times[nearest]:.10g}, or a fit with breaks= "
                "there"
            )
        return nearest

    @cached_property
    def halved(self) -> Floats:
        """The fraction of the rows censored in an interval that is not at risk in it."""
        return np.asarray((1 - one_value(self.spec.time, self.breaks)) / 2)

    @cached_property
    def cells(self) -> Floats:
        """Unbiased counts, shape (groups, endings, cells)."""
        return ordered(self.release, self.shape).cells.reshape(-1, 2, self.shape[1])

    @cached_property
    def noise(self) -> survival.Noise:
        """The noise in sums of cells of any groups."""
        unadjusted, is_public = replace(self.release, rows=None), self.release.rows is not None
        spread = ordered(unadjusted, self.shape).spread
        return survival.joint_noise(spread, *self.shape, public=is_public)

    @property
    def sums(self) -> SumNoise:
        """The noise of each released sum."""
        return SumNoise(self.release.law, self.release.noise_sd, self.release.step)

    @property
    def noise_sd(self) -> float:
        """Noise standard deviation of the number of complete rows."""
        return float(self._sds(np.ones((1, *self.shape)))[0])

    def _sds(self, weights: Floats) -> Floats:
        return np.asarray(self.sums.sd * np.sqrt(self.noise(weights).squares))

    @cached_property
    def curves(self) -> tuple[Curve, ...]:
        """The curve of each group."""
        effect = self.release.adjacency.design_effect
        common = (self.times, self.halved, self.noise, self.sums, effect)
        return tuple(Curve(cells, *common) for cells in self.cells)

    def proportional(self) -> tuple[tuple[str, ...], survival.HazardRatios]:
        """Return the names of the terms, and a model of proportional hazards by them."""
        names, terms = self.spec.coded_groups()
        ends = np.array([curve.end for curve in self.curves])
        times = survival.GroupedTimes(terms, self.cells, self.halved, ends)
        effect = self.release.adjacency.design_effect
        return names, survival.hazard_ratios(times, self.noise, self.sums, effect)

    @property
    def strata(self) -> list[str]:
        """The names of the curves, as in R; empty for a single curve of all rows."""
        groups = self._groups
        if not groups.factors:
            return []
        frame = groups.index.to_frame(index=False)
        parts = [[f"{name}={level}" for level in frame[name]] for name in groups.factors]
        return [", ".join(names) for names in zip(*parts, strict=True)]

    def log_rank(self) -> survival.LogRank | None:
        """Test that all curves are equal, as long as all rows at risk exceed their noise."""
        n_groups, n_cells = self.shape[0] // 2, self.shape[1]
        sds = self._sds(np.tile(survival.risk_weights(n_cells), (1, n_groups, 1)))
        end = identified(at_risk(self.cells.sum(axis=0))[:-1], sds[:-1])
        if not end:
            return None
        effect = self.release.adjacency.design_effect
        fitted = [curve.upto(end) for curve in self.curves]
        return survival.log_rank(self.cells[:, 1], fitted, self.noise, self.sums.sd, effect)
