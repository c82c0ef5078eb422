"""The result of private survival curves."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd
from scipy.special import ndtr

from dpmodels.arguments import between, lists_values
from dpmodels.errors import ArgumentError, NotAvailable, quoted
from dpmodels.external_files import Quantity
from dpmodels.inference.survival import LogRank
from dpmodels.released import CountsRelease, SumsRelease
from dpmodels.results.base import Result, checked_level
from dpmodels.results.call import DescribedCall, TableCall
from dpmodels.results.count_tables import by_group, described_line, place_of
from dpmodels.results.derived_table import Estimates, ratios_where
from dpmodels.results.estimate_table import EstimateTable, axis_title, table_of_estimates
from dpmodels.results.survival_curve import NUMBERS, SurvivalCounts, differing
from dpmodels.typing import Axes, Floats, TableColumns
from dpmodels.verbs import documented

# A choice: curves that a picture can show distinctly.
MAX_CURVES = 6


@dataclass(frozen=True, repr=False, eq=False)
class SurvfitResult(Result):
    """Private survival curves: released values and public facts only.

    Parameters
    ----------
    ends : tuple of float
        Public ends of the intervals of time, each but the first open at its lower end.

    Notes
    -----
    Curves are estimated at the ends of the intervals, as long as the rows at risk exceed their
    noise. Their counts are whole and consistent: the products of ``1 - n_event / n_risk`` are the
    estimates, where an interval has one value; where it has several, half of those censored in it
    are taken off its ``n_risk`` (the actuarial convention). :meth:`noise_int` is about the curve of
    these rows without noise, :meth:`conf_int` about the population's: it allows for Greenwood's
    sampling error and for the noise. Both hold for any order of times within intervals.
    """

    call: DescribedCall
    release: CountsRelease | SumsRelease
    ends: tuple[Quantity, ...]

    @cached_property
    def counted(self) -> SurvivalCounts:
        """The counts as arrays, by group."""
        return SurvivalCounts(self.call, self.release, self.ends)

    @property
    def _grouped(self) -> TableCall:
        return self.counted.timed

    @property
    def times(self) -> Floats:
        """Last times of the intervals, shape (intervals,)."""
        return self.counted.times

    @property
    def strata(self) -> list[str]:
        """The names of the curves, as in R; empty for a single curve of all rows."""
        return self.counted.strata

    @property
    def ncurves(self) -> int:
        """How many curves there are, one a group."""
        return self.counted.shape[0] // 2

    @property
    def ncomplete(self) -> float:
        """Number of complete rows, unbiased but not below 0."""
        return max(float(self.counted.cells.sum()), 0.0)

    def _estimates(self) -> EstimateTable:
        table = self._table(0.95)
        index = pd.MultiIndex.from_frame(table[["strata", "time"][not self.strata :]])
        further = dict(table[["n_risk", "n_event", "n_censor", "order_low", "order_high"]])
        numbers = table[["estimate", "std_error", "noise_sd"]]
        return table_of_estimates(self, index, further=further, **numbers)

    @documented
    def at(self, times: object, *, group: object = None, level: float = 0.95) -> pd.DataFrame:
        """Return the rows of :meth:`tidy` at some times.

        Parameters
        ----------
        times : float or sequence of float
            Ends of intervals of the grid, in the unit of the time.

        Returns
        -------
        DataFrame
            A row a curve and time; nan where the curve has ended before.

        Raises
        ------
        ArgumentError
            If a time is not the end of an interval.
        """
        checked_level(level)
        every = times if lists_values(times) else [times]
        positions = [self.counted.place(time) for time in every]

        def columns(place: int) -> TableColumns:
            rows = pd.DataFrame(self.counted.curves[place].columns(level)).reindex(positions)
            return dict(rows.assign(time=self.times[positions]))

        return by_group(self._grouped, group, columns)

    @documented
    def hazard(self, *, group: object = None, level: float = 0.95) -> pd.DataFrame:
        """Return hazards by interval, and cumulative ones (Nelson and Aalen's) with intervals.

        Returns
        -------
        DataFrame
            ``hazard`` is the share of the rows at risk in an interval that had the event in it,
            with its ``hazard_noise_sd``; ``cumhaz`` their running sum, with ``noise_sd`` and both
            intervals.
        """
        checked_level(level)
        return by_group(
            self._grouped, group, lambda place: self.counted.curves[place].hazards(level)
        )

    @documented
    def quantile(
        self,
        probs: float | Iterable[float] = (0.25, 0.5, 0.75),
        *,
        group: object = None,
        level: float = 0.95,
    ) -> pd.DataFrame:
        """Return quantiles of the time: when survival comes to ``1 - prob``.

        Parameters
        ----------
        probs : float or sequence of float
            In [0, 1], or an ArgumentError; 0.5 is the median.

        Returns
        -------
        DataFrame
            A row a prob: ``estimate``, nan where the curve ends above, evenly within an interval
            of several values; ``conf_low, conf_high`` for the population's and ``noise_low,
            noise_high`` for that of these rows, which end where intervals do, or at inf where it
            may be beyond the curve.
        """
        checked_level(level)
        values = list(probs) if lists_values(probs) else [probs]
        probabilities = [between("probs", prob, 0, 1, ", such as 0.5") for prob in values]

        def columns(place: int) -> TableColumns:
            curve = self.counted.curves[place]
            return dict(pd.DataFrame([curve.quantile(prob, level) for prob in probabilities]))

        return by_group(self._grouped, group, columns)

    @documented
    def mean(
        self, upto: float | None = None, *, group: object = None, level: float = 0.95
    ) -> pd.DataFrame:
        """Return restricted means: the area below each curve up to a time.

        Parameters
        ----------
        upto : float, optional
            An end of an interval, else an ArgumentError; by default the last that all curves reach.

        Returns
        -------
        DataFrame
            ``upto, estimate, std_error`` in the unit of the time, and both intervals, for any order
            of times; nan for a curve that has ended before.
        """
        checked_level(level)
        curves = (
            self.counted.curves
            if group is None
            else (self.counted.curves[place_of(self._grouped, group)],)
        )
        ends = [curve.end for curve in curves if curve.end]
        last = min(ends, default=0) - 1 if upto is None else self.counted.place(upto)

        def columns(place: int) -> TableColumns:
            curve, numbers = self.counted.curves[place], dict.fromkeys(("upto", *NUMBERS), np.nan)
            if 0 <= last < curve.end:
                numbers = curve.mean(last, level)
            return {name: [value] for name, value in numbers.items()}

        return by_group(self._grouped, group, columns)

    def difference(
        self, time: float, groups: tuple[object, object] | None = None, *, level: float = 0.95
    ) -> pd.DataFrame:
        """Return how much larger a share of one group is beyond a time than of another.

        Parameters
        ----------
        time : float
            An end of an interval.
        groups : pair of level or of tuple of levels, optional
            Which two; by default the two that there are. The difference is first less second.
        level : float
            Coverage of both intervals, in (0, 1).

        Returns
        -------
        DataFrame
            One row: ``estimate, std_error``, and both intervals, by Newcombe's method; nan where
            one of them has ended before.

        Raises
        ------
        ArgumentError, NotAvailable
            If `time` is not the end of an interval, or the groups are not two of the declared ones.
        """
        checked_level(level)
        self._require_curves("difference() is not available: it compares two curves")
        place = self.counted.place(time)
        first, second = (self.counted.curves[index] for index in self._pair(groups))
        row: dict[str, object] = {"time": self.times[place]}
        if place >= min(first.end, second.end):
            return pd.DataFrame([row | dict.fromkeys(NUMBERS, np.nan)])
        return pd.DataFrame([row | differing(first, second, place, level)])

    def _pair(self, groups: object) -> tuple[int, int]:
        if groups is None and self.ncurves == 2:
            return 0, 1
        if not isinstance(groups, tuple | list) or len(groups) != 2:
            raise ArgumentError(
                f"groups={quoted(groups)}: the result has {self.ncurves} curves; write the pair of "
                "groups to compare, as they are declared: groups=(first, second)"
            )
        first, second = (place_of(self._grouped, group) for group in groups)
        if first == second:
            raise ArgumentError(
                f"groups={quoted(groups)}: the two groups are the same; write two different groups"
            )
        return first, second

    def _require_curves(self, problem: str) -> None:
        if self.ncurves < 2:
            raise NotAvailable(f"{problem}, and there is one; write 'Surv(time, event) ~ group'")

    def logrank(self) -> LogRank:
        """Test that all curves are equal (the log-rank test), allowing for the noise.

        Returns
        -------
        LogRank
            ``statistic, df, pvalue``, and by group events ``observed`` and ``expected``. The
            statistic is the least over all orders of times within intervals: on coarse grids the
            test has little power. Over the intervals in which the rows at risk of all groups exceed
            their noise; NotAvailable without any, or with one curve.
        """
        self._require_curves("logrank() is not available: it compares curves")
        test = self.counted.log_rank()
        if test is None:
            raise NotAvailable(
                "logrank() is not available: the rows at risk do not exceed their noise; write a "
                "larger eps, fewer breaks or fewer groups"
            )
        return test

    @documented
    def coxph(self, level: float = 0.95, *, exponentiate: bool = False) -> Estimates:
        """Fit proportional hazards to the groups' counts: Cox's regression on grouped times.

        Parameters
        ----------
        exponentiate : bool, default False
            Whether hazard ratios are returned, and not their logarithms.

        Returns
        -------
        Estimates
            ``term``, then `estimate`, `std_error` of the logarithm, `noise_sd`, `statistic`,
            `p_value` and both intervals. Terms are coded as in a regression: ``sex + arm`` has
            their main effects, ``sex * arm`` a product, and whole numbers are linear.

        Raises
        ------
        NotAvailable
            Without groups.

        Notes
        -----
        Nothing is charged. Rows are compared within intervals of time, by their cumulative hazards
        as in the complementary log-log model of Prentice and Gloeckler: where hazards are
        proportional, the ratios are those of exact times, if few rows are censored in an interval:
        the actuarial convention may be off on coarse grids. Each group is followed as
        long as its curve. Standard errors are Lin and Wei's robust ones with the noise of the
        counts; they do not assume proportional hazards.

        References
        ----------
        .. [1] Cox, D. R. (1972). "Regression models and life-tables." JRSS B 34(2), 187-220.
        .. [2] Prentice, R. L. and Gloeckler, L. A. (1978). "Regression analysis of grouped survival
           data with application to breast cancer data." Biometrics 34(1), 57-67.
        .. [3] Lin, D. Y. and Wei, L. J. (1989). "The robust inference for the Cox proportional
           hazards model." JASA 84(408), 1074-1078.
        """
        checked_level(level)
        if not self.strata:
            raise NotAvailable(
                "coxph() is not available: it compares groups, and there is one curve; write "
                "'Surv(time, event) ~ group'"
            )
        names, model = self.counted.proportional()
        sums, estimate = self.counted.sums, model.coefficients
        noise_sd = sums.sd * np.sqrt(model.spread.squares)
        std_error = np.hypot(noise_sd, model.sampling_sd)
        table = pd.DataFrame({"term": names, "estimate": estimate, "std_error": std_error})
        table = table.assign(noise_sd=noise_sd, statistic=estimate / std_error)
        table["p_value"] = 2 * ndtr(-table["statistic"].abs())
        for kind, sampling_sd in (("noise", 0 * model.sampling_sd), ("conf", model.sampling_sd)):
            width = sums.widths(model.spread, sampling_sd, level)
            table[f"{kind}_low"], table[f"{kind}_high"] = estimate - width, estimate + width
        table["identified"] = np.isfinite(estimate)
        title = "Hazard ratios" if exponentiate else "Proportional hazards: log hazard ratios"
        notes = (
            f"std err{' of the logarithm' * exponentiate}: robust, with the noise of the counts; "
            "noise: for the fit of these rows without noise.",
        )
        return Estimates(self, title, ratios_where(exponentiate, table), notes, level, exponentiate)

    def _table(self, level: float) -> pd.DataFrame:
        frames = [pd.DataFrame(curve.columns(level)) for curve in self.counted.curves]
        if not self.strata:
            return frames[0]
        labelled = zip(frames, self.strata, strict=True)
        return pd.concat([frame.assign(strata=name) for frame, name in labelled], ignore_index=True)

    def _interval(self, level: float, *, population: bool) -> pd.DataFrame:
        table, kind = self._table(level), "conf" if population else "noise"
        index = ["strata", "time"] if self.strata else ["time"]
        names = {f"{kind}_low": "lower", f"{kind}_high": "upper"}
        return table.set_index(index)[list(names)].rename(columns=names)

    def table(self, level: float = 0.95) -> pd.DataFrame:
        """Return one row a curve: rows, events, the median and the restricted mean.

        Returns
        -------
        DataFrame
            ``records`` and ``events``, unbiased but not below 0, over the whole grid; ``end``, the
            last time of the curve; ``rmean`` up to the time ``upto`` that all curves reach, with
            its standard error; ``median`` with its confidence interval.
        """
        median = self.quantile(0.5, level=level)
        mean = self.mean(level=level)
        columns = {
            "records": np.maximum(self.counted.cells.sum(axis=(1, 2)), 0.0),
            "events": np.maximum(self.counted.cells[:, 1].sum(axis=-1), 0.0),
            "end": [
                curve.identified_times[-1] if curve.end else np.nan for curve in self.counted.curves
            ],
            "upto": mean["upto"].to_numpy(),
            "rmean": mean["estimate"].to_numpy(),
            "rmean_std_error": mean["std_error"].to_numpy(),
            "median": median["estimate"].to_numpy(),
            "conf_low": median["conf_low"].to_numpy(),
            "conf_high": median["conf_high"].to_numpy(),
        }
        return pd.DataFrame(columns, index=pd.Index(self.strata or ["(all)"], name="strata"))

    def _line(self) -> dict[str, object]:
        line = described_line(self.release, self.ncomplete, self.ncurves)
        summary = self.table()
        line |= {"records": summary["records"].sum(), "events": summary["events"].sum()}
        if self.ncurves == 1:
            return {**line, **{name: summary[name].iloc[0] for name in summary.columns[2:]}}
        try:
            test = self.logrank()
        except NotAvailable:
            return line
        return {**line, "statistic": test.statistic, "df": test.df, "p_value": test.pvalue}

    def _size(self) -> str:
        curves = "1 curve" if self.ncurves == 1 else f"{self.ncurves} curves"
        return f"{curves}, {len(self.times)} intervals"

    @documented
    def plot(
        self,
        ax: Axes | None = None,
        group: object = None,
        level: float = 0.95,
        *,
        risk: bool = False,
        caption: bool = True,
    ) -> Axes:
        """Draw the curves with the band of their noise and that for the population.

        Parameters
        ----------
        group : level or tuple of levels, optional
            Which group; all of them, at most six, by default.
        level : float
            Coverage of the bands, in (0, 1), at each time by itself.
        risk : bool, default False
            Whether the numbers at risk stand below.

        Raises
        ------
        ArgumentError
            If the group is not a declared one, or there are more than six and none is named.
        """
        from dpmodels.plots.curves import Drawn, survival_curves

        if group is None and self.ncurves > MAX_CURVES:
            raise ArgumentError(
                f"plot(): a picture shows at most {MAX_CURVES} curves, and there are "
                f"{self.ncurves}; write group= for one of them"
            )
        positions = range(self.ncurves) if group is None else [place_of(self._grouped, group)]
        names, level = self.strata or [""], checked_level(level)
        curves = [
            Drawn(names[place], self.counted.curves[place].columns(level)) for place in positions
        ]
        label = axis_title(self.counted.spec.time.code, self.call.codebook)
        steps = not self.counted.halved.any()
        picture = self._picture(ax, caption)
        return survival_curves(curves, label, steps=steps, risk=risk, **picture)
