"""The results of tables, histograms and quantiles of the population under a survey design."""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import ClassVar

import numpy as np
import pandas as pd

from dpmodels.inference.independence import Independence, degrees, not_identified
from dpmodels.inference.means import Interval
from dpmodels.inference.proportions import DETECTION_SDS, Sums
from dpmodels.inference.sampled_cells import Runs, SampledCells
from dpmodels.postprocess.flat_counts import FlatCounts
from dpmodels.postprocess.protocol import OrderedCounts, consistent, rising
from dpmodels.released import CountsRelease, QuantilesRelease
from dpmodels.released.terms import Released
from dpmodels.results.base import Derivation
from dpmodels.results.bins import OrderedGroup, Ranges, Rectangles
from dpmodels.results.bounds import QuantileResult
from dpmodels.results.call import TableCall
from dpmodels.results.count_tables import counted, interval_frame, sampled_cells
from dpmodels.results.estimate_table import EstimateTable
from dpmodels.results.hist import HistResult
from dpmodels.results.table import TableResult
from dpmodels.typing import DataArray, Floats, Numbers

NO_TEST = (
    "a table under a survey design has no test of independence; compare shares by dp_mean or "
    "dp_ttest of an indicator."
)


@dataclass(frozen=True, repr=False, eq=False)
class WeightedTableResult(TableResult):
    """Private totals of the population by declared levels, under a survey design.

    Notes
    -----
    `released` are unbiased Horvitz-Thompson totals, `counts` the nearest that are not negative,
    with the same sum. :meth:`noise_int` is of totals, :meth:`conf_int` of shares of the population;
    :meth:`tidy` has both as totals, and the shares in ``proportion`` to ``proportion_high``.
    """

    @cached_property
    def _cells(self) -> SampledCells:
        return sampled_cells(self.call, self.release)

    @property
    def _cap(self) -> float:
        return self._counted.cap

    @property
    def _totals(self) -> Floats:
        return self._cap * self._cells.sizes

    @cached_property
    def _whole(self) -> Floats:
        return np.append(consistent(self._totals), np.nan)

    @property
    def released(self) -> DataArray:
        """Unbiased totals, which may be negative."""
        return self._facts.by_cell(self._totals, "released")

    @property
    def design(self) -> pd.DataFrame:
        """By cell: weight, deff, effective n and df of its share, and the cap.

        ``capped`` is the share of the weight that was cut off, ``shift`` what the cap had moved the
        totals by, each with its error. nan for the design effect of sampling units.
        """
        cells, cap, totals = self._cells, self._cap, self._cells.totals
        weight = np.where(cells.sizes > 0, cells.sizes, np.nan)
        columns = {
            "weight": self._totals,
            "deff": cells.design_effect,
            "effective_n": cells.n_units / cells.design_effect,
            "df": np.full(len(weight), cells.n_units - cells.n_strata),
            "cap": np.full(len(weight), cap),
            "capped": -totals.shift / weight,
            "capped_sd": totals.shift_sd / weight,
            "shift": cap * totals.shift,
            "shift_sd": cap * totals.shift_sd,
        }
        return pd.DataFrame(columns, index=self._facts.index)

    def noise_sd(self, cells: int = 1) -> float:
        """Return the noise standard deviation of a sum of totals, the largest of one cell's.

        Parameters
        ----------
        cells : int
            How many cells are added up.
        """
        return self._cap * float(self._cells.totals.noise_sd.max()) * float(np.sqrt(cells))

    def _noise_int(self, level: float) -> pd.DataFrame:
        return self._total_int(level, population=False)

    def _total_int(self, level: float, *, population: bool = True) -> pd.DataFrame:
        ends = self._cells.interval(self._cells.single, level, population=population)
        return interval_frame(self._facts, ends) * self._cap

    def _conf_int(self, level: float) -> pd.DataFrame:
        ends = self._cells.share_interval(self._cells.single, level, population=True)
        return interval_frame(self._facts, ends)

    def _estimates(self) -> EstimateTable:
        return _with_errors(super()._estimates(), self)

    def _tested(self, shape: tuple[int, ...]) -> Independence:
        return not_identified(degrees(shape), NO_TEST)


def _with_errors(table: EstimateTable, fit: WeightedTableResult) -> EstimateTable:
    """Return a table of counts with the errors of totals under a design."""
    cells, cap = fit._cells, fit._cap
    errors = np.sqrt(cells.totals.noise_sd**2 + cells.totals.sampling)
    sds = {"noise_sd": cap * cells.totals.noise_sd, "std_error": cap * errors}
    numbers = {**table.numbers, **sds}
    further = {**table.further, "released": fit._totals, "deff": cells.design_effect}
    return replace(table, numbers=numbers, further=further, total=fit._total_int, unit="")


@dataclass(frozen=True, eq=False)
class WeightedCounts(FlatCounts):
    """Totals of ordered cells: not negative, by the nearest nondecreasing running totals."""

    totals: Floats = field(kw_only=True)  # shape (groups, cells)

    @property
    def cells(self) -> Floats:
        """Shape (groups, cells)."""
        return self.totals

    @cached_property
    def whole(self) -> Numbers:
        """Totals that are not negative, by group; the weight of incomplete rows is not known."""
        running = rising(np.cumsum(self.totals, axis=1))
        return np.append(np.diff(running, axis=1, prepend=0.0), np.nan)


@dataclass(frozen=True, eq=False)
class WeightedGroup(OrderedGroup):
    """The totals of the ordered cells of one group."""

    weighted: SampledCells
    cap: float

    def _runs(self, ranges: Ranges) -> Runs:
        size = len(self.cells)
        start, stop = (self.group * size + end for end in ranges.whole)
        first = np.full(len(start), self.group * size)
        return Runs(start, stop, first, first + size)

    @cached_property
    def _each_bin(self) -> Ranges:
        at = np.arange(len(self.cells), dtype=float)
        return Ranges(at, at + 1)

    @property
    def noise_sd(self) -> Floats:
        """Noise standard deviation of each cell."""
        return self.cap * self.weighted.total_errors(self._runs(self._each_bin)).noise_sd

    def _bounds(self, ranges: Ranges | Rectangles, level: float) -> tuple[Floats, ...]:
        assert isinstance(ranges, Ranges)
        runs, cells = self._runs(ranges), self.weighted
        sd = self.cap * cells.total_errors(runs).noise_sd
        noise = (self.cap * end for end in cells.interval(runs, level, population=False))
        return (sd, *noise, *cells.share_interval(runs, level, population=True))

    @property
    def _running(self) -> Runs:
        return self._runs(Ranges(np.zeros(len(self.cells)), self._each_bin.stop))

    def _running_ends(self, sums: Floats, of: Sums, level: float) -> tuple[Interval, Interval]:
        runs = self._running
        noisy, sampled = (
            self.weighted.share_interval(runs, level, population=population)
            for population in (False, True)
        )
        return noisy, sampled

    def rank_sd(self, prob: float) -> float:
        """Return the largest noise standard deviation of the weight up to a quantile."""
        weights = np.full(len(self.cells), 1 - prob), np.full(len(self.cells), -prob)
        return self.cap * float(self.weighted.errors(self._running, *weights).noise_sd.max())

    def quantile_ranges(self, prob: float, level: float) -> tuple[tuple[float, float], ...]:
        """Return between which places the quantile of these rows is, then the population's."""
        return tuple(
            self.weighted.quantile_places(prob, self._running, level, population=population)
            for population in (False, True)
        )


@dataclass(frozen=True, repr=False, eq=False)
class WeightedHistResult(HistResult):
    """A private histogram of the population under a survey design.

    Notes
    -----
    As :class:`HistResult`, with totals of weights instead of numbers of rows. Where a sampling unit
    has several rows the sampling errors of sums of bins are not known: those of single bins of a
    histogram without groups are.
    """

    @property
    def table(self) -> WeightedTableResult:
        """The totals as a table."""
        return self._derive(WeightedTableResult, "table")

    derivations: ClassVar = {"table": lambda self: Derivation(self.call, WeightedTableResult)}

    @cached_property
    def ordered(self) -> OrderedCounts:
        """Totals by group and bin as arrays."""
        totals = self.table._totals.reshape(self._shape)
        return WeightedCounts(self.table.release, self._shape, totals=totals)

    def group(self, place: int) -> WeightedGroup:
        """Return the totals of one group, by its place among the levels."""
        table = self.table
        return WeightedGroup(self.ordered, self.release, place, table._cells, table._cap)

    @property
    def design(self) -> pd.DataFrame:
        """What the design did to each bin, as of a table."""
        return self.table.design

    def half(self, level: float = 0.95) -> float:
        """Return half the length of the longest noise interval of a bin."""
        cells = self.table._cells
        return self.table._cap * float(cells.widths(cells.totals, level, population=False).max())

    def _estimates(self) -> EstimateTable:
        return _with_errors(super()._estimates(), self.table)


@dataclass(frozen=True, repr=False)
class WeightedQuantileResult(QuantileResult):
    """Private quantiles of the population under a survey design.

    Parameters
    ----------
    ends : (ndarray, ndarray)
        Ends of the public cells, on the declared range from 0 to 1.
    """

    release: CountsRelease  # type: ignore[assignment]
    ends: tuple[Floats, Floats]

    @property
    def _facts(self) -> TableCall:
        table = self.call.tables[0]
        return replace(table, factors=table.factors[:-1], levels=table.levels[:-1], sampled=None)

    @cached_property
    def _groups(self) -> list[WeightedGroup]:
        release, shape = self.release, (self._facts.cells, self.grid)
        sampled = self.call.tables[0].sampled
        is_running = sampled is not None and sampled.units
        cells = sampled_cells(self.call, release, running=is_running)
        cap = counted(self.call, release).cap
        counts = WeightedCounts(release, shape, totals=cap * cells.sizes.reshape(shape))
        return [WeightedGroup(counts, release, at, cells, cap) for at in range(shape[0])]

    @cached_property
    def _quantiles(self) -> QuantilesRelease:
        release, groups, shape = self.release, self._groups, (self._facts.cells, self.grid)
        cells, cap = groups[0].weighted, groups[0].cap
        totals = groups[0].counts.cells.sum(axis=1)
        first = np.arange(shape[0]) * self.grid
        total = cells.total_errors(Runs(first, first + self.grid, first, first + self.grid))
        lost = totals <= DETECTION_SDS * cap * total.noise_sd
        values = [[self._quantile(group, prob) for prob in self.probs] for group in groups]
        rank_sds = [[group.rank_sd(prob) for prob in self.probs] for group in groups]
        return QuantilesRelease(
            values=np.where(lost[:, None, None], np.nan, values),
            drawn=np.where(lost[:, None], np.nan, self.probs),
            counts=totals,
            count_sd=cap * total.noise_sd,
            rank_sd=np.array(rank_sds),
            **{field.name: getattr(release, field.name) for field in fields(Released)},
        )

    def _quantile(self, group: WeightedGroup, prob: float) -> tuple[float, float, float]:
        lower, upper = self.ends
        place = group.quantile(prob)
        if np.isnan(place):
            return np.nan, np.nan, np.nan
        at = int(np.ceil(place)) - 1
        estimate = lower[at] + (place - at) * (upper[at] - lower[at])
        if self.level is None:
            return estimate, np.nan, np.nan
        first, last = group.quantile_ranges(prob, self.level)[1]
        return estimate, lower[int(first)], upper[int(last) - 1]
