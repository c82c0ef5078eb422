"""The result of private counts over time."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dpmodels.arguments import integer
from dpmodels.errors import ArgumentError, quoted
from dpmodels.formula.survival import Periods, periods
from dpmodels.inference.proportions import SumNoise, rate_interval, sum_interval
from dpmodels.postprocess.ordered import ordered, within
from dpmodels.postprocess.protocol import NO_WEIGHT, CellRanges, OrderedCounts, Spread
from dpmodels.released import SumsRelease
from dpmodels.results.base import checked_level
from dpmodels.results.count_tables import OneTable, described_line, place_of
from dpmodels.results.estimate_table import EstimateTable, table_of_estimates
from dpmodels.typing import Axes, DataArray, Floats, Integers, Numbers
from dpmodels.verbs import documented

_ONE: Final[Floats] = np.ones(())


@dataclass(frozen=True, repr=False, eq=False)
class SeriesResult(OneTable):
    """Private counts over time: released values and public facts only.

    Parameters
    ----------
    time : str
        The variable of the time.
    by : str, int or None
        The requested period.

    Notes
    -----
    `counts` are whole and not negative, `totals` their running sums; `released` are unbiased and
    may be negative: intervals are made from them. :meth:`between` has the errors of sums over
    periods. :meth:`noise_int` and :meth:`conf_int` are of counts by period. The second is of the
    expected number of events of a Poisson process.
    """

    release: SumsRelease
    time: str
    by: str | int | None

    @cached_property
    def _ordered(self) -> OrderedCounts:
        return ordered(self.release, self.release.shape)

    @cached_property
    def _whole(self) -> Integers:
        """Shape (groups, periods)."""
        return self._ordered.whole[:-1].reshape(self.release.shape)

    @cached_property
    def periods(self) -> Periods:
        """When each period begins and ends."""
        return periods(self.time, self.by, self.call.codebook)

    def _labelled(self, values: Numbers, name: str) -> DataArray:
        array = self._facts.by_cell(values, name)
        return array.assign_coords({self._facts.factors[-1]: self.periods.times})

    @property
    def counts(self) -> DataArray:
        """Counts by period: whole, not negative; a dimension for each factor, time the last."""
        return self._labelled(self._whole, "count")

    @property
    def totals(self) -> DataArray:
        """Running totals: of each period and all before it, whole and never falling."""
        return self._labelled(np.cumsum(self._whole, axis=1), "total")

    @property
    def released(self) -> DataArray:
        """Unbiased counts by period."""
        return self._labelled(self._ordered.cells, "released")

    @property
    def ncomplete(self) -> float:
        """Number of events counted: the sum of `counts`."""
        return float(self._whole.sum())

    @property
    def nincomplete(self) -> float:
        """Number of rows that are not counted, not negative."""
        return float(self._ordered.whole[-1])

    @documented
    def between(self, start: object, end: object, level: float = 0.95) -> pd.DataFrame:
        """Return the number of events from the start of one period to the end of another.

        Parameters
        ----------
        start, end : date, str or int
            The first and the last day, number or level, both counted: such that a
            period begins and one ends.

        Returns
        -------
        DataFrame
            A row for each group: ``count, released, noise_sd`` and the ends
            ``noise_low, noise_high, conf_low, conf_high`` of both intervals, in
            events.

        Raises
        ------
        ArgumentError
            If no period begins or ends there, or the end comes before the start.
        """
        first, stop = self.periods.start(start), self.periods.stop(end)
        if stop <= first:
            raise ArgumentError(
                f"start={quoted(start)}, end={quoted(end)}: the end is before the start; write the "
                "start first"
            )
        return self._summed(np.array([first]), np.array([stop]), level).droplevel(-1)

    @documented
    def window(self, periods: int, level: float = 0.95) -> pd.DataFrame:
        """Return the numbers of events in every run of so many periods.

        Parameters
        ----------
        periods : int
            How many, from 1 to all.

        Returns
        -------
        DataFrame
            A row for each group and run, under its last period; columns are those
            of :meth:`between`.

        Raises
        ------
        ArgumentError
            If there are not so many periods.
        """
        width = integer("periods", periods, 1, len(self.periods), ", the number of all periods")
        stops = np.arange(width, len(self.periods) + 1)
        return self._summed(stops - width, stops, level)

    @documented
    def running(self, level: float = 0.95) -> pd.DataFrame:
        """Return the running totals, a row for each group and period, with their intervals.

        Returns
        -------
        DataFrame
            Columns are those of :meth:`between`.
        """
        stops = np.arange(1, len(self.periods) + 1)
        return self._summed(np.zeros_like(stops), stops, level)

    def _summed(self, starts: Integers, stops: Integers, level: float) -> pd.DataFrame:
        checked_level(level)
        spread = within(self._ordered, CellRanges(starts, stops, _ONE, NO_WEIGHT))
        ends = np.stack([starts, stops])
        padded = (np.pad(values, ((0, 0), (1, 0))) for values in (self._ordered.cells, self._whole))
        released, counts = (
            np.diff(np.cumsum(values, axis=1)[:, ends], axis=1).ravel() for values in padded
        )
        n_groups = len(released) // len(starts)
        spreads = Spread(*(np.tile(part, n_groups) for part in spread))
        noise = SumNoise(self.release.law, self.release.noise_sd, self.release.step)
        low, high = sum_interval(released, spreads, noise, level)
        effect = self.release.adjacency.design_effect
        conf_low, conf_high = rate_interval(released, spreads, noise, effect, level)
        columns = {"count": counts, "released": released}
        columns["noise_sd"] = noise.sd * np.sqrt(spreads.squares)
        columns |= {"noise_low": low, "noise_high": high}
        columns |= {"conf_low": conf_low, "conf_high": conf_high}
        return pd.DataFrame(columns, index=self._index(self.periods.times[stops - 1]))

    def _index(self, times: NDArray[np.generic]) -> pd.MultiIndex:
        groups, time = self._facts.groups, self._facts.factors[-1]
        levels, names = groups.levels or (("(all)",),), groups.factors or ["group"]
        return pd.MultiIndex.from_product([*levels, times], names=[*names, time])

    def _interval(self, level: float, *, population: bool) -> pd.DataFrame:
        table, kind = self.window(1, level), "conf" if population else "noise"
        columns = {f"{kind}_low": "lower", f"{kind}_high": "upper"}
        return table[list(columns)].rename(columns=columns)

    def _estimates(self) -> EstimateTable:
        table = self.window(1)
        totals = self.running()[["count", "released", "noise_sd", "noise_low", "noise_high"]]
        totals.columns = ["total", *(f"total_{name}" for name in totals.columns[1:])]
        index, effect = self._index(self.periods.times), self.release.adjacency.design_effect
        return table_of_estimates(
            self,
            index if self._facts.groups.factors else index.droplevel("group"),
            further={"released": table["released"], **totals},
            labels=self._facts.factors[-1],
            unit=self._unit,
            estimate=table["count"],
            noise_sd=table["noise_sd"],
            std_error=np.sqrt(table["noise_sd"] ** 2 + effect * table["count"]),
        )

    def _line(self) -> dict[str, object]:
        line = described_line(self.release, self.ncomplete, self._facts.groups.cells)
        return {**line, "nperiods": len(self.periods)}

    def _size(self) -> str:
        return f"{len(self.periods)} periods"

    @documented
    def plot(
        self,
        ax: Axes | None = None,
        group: object = None,
        periods: int = 1,
        level: float = 0.95,
        *,
        caption: bool = True,
    ) -> Axes:
        """Draw the counts of every run of so many periods, with the band of their noise.

        Parameters
        ----------
        group : level or tuple of levels, optional
            Which group; needed where there are any.
        periods : int
            How many periods are added up at each.
        level : float
            Coverage of the band, in (0, 1), at each time by itself.

        Raises
        ------
        ArgumentError
            If the group is not one of the declared ones, or there are not so many
            periods.
        """
        what = self._unit if periods == 1 else f"{self._unit} in {periods} periods"
        return self._plot_band(self.window(periods, level), group, ax, what, caption)

    def plot_totals(
        self,
        ax: Axes | None = None,
        group: object = None,
        level: float = 0.95,
        *,
        caption: bool = True,
    ) -> Axes:
        """Draw the running totals with the band of their noise; parameters as in :meth:`plot`."""
        what = f"{self._unit}, running total"
        return self._plot_band(self.running(level), group, ax, what, caption)

    @property
    def _unit(self) -> str:
        return "persons" if self.release.adjacency.counts_persons else "events"

    def _plot_band(
        self, table: pd.DataFrame, group: object, ax: Axes | None, what: str, caption: bool
    ) -> Axes:
        from dpmodels.plots.curves import band

        place, size = place_of(self._facts, group), len(table) // self._facts.groups.cells
        rows = table.iloc[place * size : (place + 1) * size]
        name = self._facts.factors[-1]
        return band(
            rows.index.get_level_values(-1).to_numpy(),
            np.maximum(rows["released"].to_numpy(), 0.0),
            rows[["noise_low", "noise_high"]].to_numpy(),
            (name if group is None else f"{name}, {group}", what),
            **self._picture(ax, caption),
        )
