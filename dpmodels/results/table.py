"""The results of private counts: by declared levels, and of states and transitions."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Final

import numpy as np
import pandas as pd

from dpmodels.errors import ArgumentError, NotAvailable
from dpmodels.formula.survival import periods
from dpmodels.inference.independence import Independence, independence, share_effects
from dpmodels.inference.proportions import count_interval, share_interval
from dpmodels.postprocess.protocol import whole
from dpmodels.privacy import MarkovChain, Pufferfish, Quilt
from dpmodels.released import CountsRelease
from dpmodels.report import signif
from dpmodels.results.base import checked_level
from dpmodels.results.call import joined
from dpmodels.results.count_tables import (
    Counted,
    OneTable,
    counted,
    described_line,
    interval_frame,
    require_factors,
    shares_within,
)
from dpmodels.results.estimate_table import EstimateTable, count_table
from dpmodels.typing import Axes, DataArray, Floats, Numbers
from dpmodels.verbs import documented

# What results of one table of counts by declared levels have in common.


@dataclass(frozen=True, repr=False, eq=False)
class CountedResult(OneTable):
    """Counts by cell: released values and public facts only."""

    release: CountsRelease

    if TYPE_CHECKING:

        def proportions(self) -> DataArray:
            """Return shares of the complete, by cell."""

    @cached_property
    def _counted(self) -> Counted:
        return counted(self.call, self.release)

    @cached_property
    def _whole(self) -> Numbers:
        """All counts, the incomplete last."""
        counted = self._counted
        return whole(np.append(counted.parts[:, 0], counted.incomplete), self.release.rows)

    @property
    def counts(self) -> DataArray:
        """Consistent counts: whole, not negative, adding up; a dimension a factor."""
        return self._facts.by_cell(self._whole[:-1], "count")

    @property
    def released(self) -> DataArray:
        """Unbiased counts with independent noise, except for the public total."""
        return self._facts.by_cell(self._counted.parts[:, 0], "released")

    @property
    def ncomplete(self) -> float:
        """Number of all that are complete: the sum of `counts`."""
        return float(self._whole[:-1].sum())

    def noise_sd(self, cells: int = 1) -> float:
        """Return the noise standard deviation of a sum of released counts.

        Parameters
        ----------
        cells : int
            How many cells are added up.
        """
        noise = self._counted.noise
        return float(noise.sd * np.sqrt((noise.weights(np.ones(cells)) ** 2).sum()))

    def _estimates(self) -> EstimateTable:
        return count_table(
            self,
            self._facts.index,
            self._whole[:-1],
            noise_sd=self.noise_sd(),
            further={"released": self._counted.parts[:, 0]},
            labels=self._facts.variable,
        )

    def _noise_int(self, level: float) -> pd.DataFrame:
        counts, noise = self._counted.parts[:, 0], self._counted.noise
        return interval_frame(self._facts, count_interval(counts, noise, level))


@dataclass(frozen=True, repr=False, eq=False)
class TableResult(CountedResult):
    """Private counts by declared levels: released values and public facts only.

    Notes
    -----
    `counts` are whole, not negative and, with the incomplete rows, add up to
    the public number of rows; margins are their sums. `released` are unbiased
    and may be negative: intervals and the test are made
    from them. :meth:`noise_int` is of counts, :meth:`conf_int` of shares of the
    complete rows, by cell; :meth:`tidy` has both as counts, and the shares in
    ``proportion, proportion_low, proportion_high``.
    """

    @property
    def by_level(self) -> Numbers:
        """Consistent counts of shape (groups, levels of the last factor)."""
        return self._whole[:-1].reshape(-1, self._facts.shape[-1])

    @property
    def nincomplete(self) -> float:
        """Number of rows with a missing or unlisted level, not negative."""
        return float(self._whole[-1])

    def margins(self, factors: str | Iterable[str]) -> DataArray:
        """Return the counts of some of the factors alone.

        Parameters
        ----------
        factors : str or iterable of str
            Those to keep.

        Raises
        ------
        ArgumentError
            If one is not a factor of the table.
        """
        selected = require_factors(self._facts.factors, factors)
        return self.counts.sum([name for name in self._facts.factors if name not in selected])

    def proportions(self, within: str | Iterable[str] = ()) -> DataArray:
        """Return shares of the complete rows, or of those of each level of some factors.

        nan where there are no rows to divide.

        Parameters
        ----------
        within : str or iterable of str
            Factors within whose levels shares add up to 1; R's `margin`.

        Raises
        ------
        ArgumentError
            If one is not a factor of the table.
        """
        return shares_within(self.counts, require_factors(self._facts.factors, within))

    def _conf_int(self, level: float) -> pd.DataFrame:
        parts, noise = self._counted.sampled
        return interval_frame(self._facts, share_interval(parts[:, 0], noise, level))

    def chi2_test(self) -> Independence:
        """Test whether two factors or more are independent, allowing for the noise.

        ``statistic, pvalue, df``; levels with too few rows for the noise are pooled, their
        positions are in ``pooled``, by factor. nan with a reason where fewer than two levels of a
        factor are left.
        """
        if len(self._facts.factors) < 2:
            raise NotAvailable(
                "a test of independence needs two factors or more; the table has one"
            )
        return self._independence

    @cached_property
    def _independence(self) -> Independence:
        return self._tested(self._facts.shape)

    def _tested(self, shape: tuple[int, ...]) -> Independence:
        parts, noise = self._counted.sampled
        return independence(parts[:, 0].reshape(shape), noise)

    def glance(self) -> pd.DataFrame:
        """Return one row about the whole release, with the test where there is one."""
        row = super().glance()
        if len(self._facts.factors) < 2:
            return row
        test = self.chi2_test()
        return row.assign(statistic=test.statistic, df=test.df, p_value=test.pvalue)

    @documented
    def plot(self, ax: Axes | None = None, level: float = 0.95, *, caption: bool = True) -> Axes:
        """Draw the share of each cell, with its noise and its confidence interval.

        Notes
        -----
        Shares of all complete rows. Levels of the last of several factors stand beside each other,
        if they are 6 or fewer. The ends of noise intervals are those of the counts over the
        released number of complete rows, whose own noise is left out.
        """
        from dpmodels.plots.heat import SERIES_SHOWN, shares

        facts, level = self._facts, checked_level(level)
        total = max(self.ncomplete, 1.0)
        noise = self.noise_int(level).to_numpy() / total
        rows, series, factors = facts.labels, [""], facts.factors
        if len(factors) > 1 and facts.shape[-1] <= SERIES_SHOWN:
            series = [f"{factors[-1]}: {level}" for level in facts.levels[-1]]
            rows, factors = joined(facts.groups.index), factors[:-1]
        return shares(
            self.counts.to_numpy().reshape(-1, len(series)) / total,
            noise.reshape(-1, len(series), 2),
            self.conf_int(level).to_numpy().reshape(-1, len(series), 2),
            rows=rows,
            series=series,
            title="Share of complete rows",
            across=" / ".join(factors),
            level=level,
            **self._picture(ax, caption),
        )

    def _line(self) -> dict[str, object]:
        return described_line(self.release, self.ncomplete, self._facts.cells)

    def _size(self) -> str:
        return f"{self._facts.cells} cells"


# The result of private counts of states in series whose states depend on each other.

# A choice: probabilities to stay that a curve is drawn at, and the largest of them.
_POINTS: Final = 40
_MOST_STAY: Final = 0.99


@dataclass(frozen=True, repr=False, eq=False)
class StatesResult(CountedResult):
    """Private counts of states over all persons and times: released values and public facts only.

    Parameters
    ----------
    time : str
        The variable of the time.

    Notes
    -----
    The guarantee is Pufferfish privacy of each state, under the class of chains that was
    assumed; it is not differential privacy. `counts` are whole, not negative and, with the times
    without a state, add up to the places that persons have; `released` are unbiased and may be
    negative: intervals are made from them. :meth:`noise_int` is of counts and rests on the
    noise alone, :meth:`conf_int` of the long-run shares, with the dependence of the class.
    """

    time: str

    @property
    def budget(self) -> Pufferfish:
        """What is guaranteed."""
        guarantee = self.release.guarantee
        assert isinstance(guarantee, Pufferfish)
        return guarantee

    @property
    def chain(self) -> MarkovChain:
        """The assumed class of chains."""
        return self.budget.model

    @cached_property
    def steps(self) -> int:
        """How many times each person has."""
        return len(periods(self.time, None, self.call.codebook))

    @property
    def quilt(self) -> Quilt:
        """The quilt of the time that needs most noise."""
        quilt = self.release.quilt
        assert quilt is not None
        return quilt

    def proportions(self) -> DataArray:
        """Return shares of the times with a state; nan if no time has one."""
        return shares_within(self.counts)

    @property
    def scales(self) -> pd.DataFrame:
        """The noise of a count in this release, and under alternatives, one a row.

        ``"each time by itself"`` is valid for independent states alone; ``"all times together"`` is
        group privacy of a whole series. Columns: ``scale`` of the Laplace noise in times, ``ratio``
        to the first.
        """
        sigma = np.array([1 / self.budget.eps, self.quilt.scale, self.steps / self.budget.eps])
        names = ["each time by itself", "quilt", "all times together"]
        return pd.DataFrame({"scale": 2 * sigma, "ratio": sigma / sigma[0]}, index=names)

    def _conf_int(self, level: float) -> pd.DataFrame:
        counted, intervals = self._counted, np.empty((2, self._facts.cells))
        for state, effect in enumerate(self._sampling_effect.tolist()):
            counts, noise = counted.parts[:, 0] / effect, counted.noise.divided(effect)
            intervals[:, state] = [ends[state] for ends in share_interval(counts, noise, level)]
        return interval_frame(self._facts, (intervals[0], intervals[1]))

    def _noise_int(self, level: float) -> pd.DataFrame:
        return super()._noise_int(level).clip(upper=self.nobs)

    def _estimates(self) -> EstimateTable:
        return replace(super()._estimates(), unit="times")

    @cached_property
    def _sampling_effect(self) -> Floats:
        try:
            return share_effects(self.chain, self.steps)
        except ArgumentError as error:
            raise NotAvailable(f"conf_int() is not available: {error}") from None

    @property
    def kept(self) -> Floats | None:
        """The stationary shares of the class, by level; None where there may be several."""
        return None if self.chain.reducible else self.chain.stationary

    def plot(self, *, ax: Axes | None = None, caption: bool = True) -> Axes:
        """Draw the count of each state with its noise interval."""
        from dpmodels.plots.bars import Panel, one_panel

        ends = self.noise_int()
        reach = ((ends["upper"] - ends["lower"]) / 2).to_numpy()
        panel = Panel("times, with 95% noise intervals", self._whole[:-1], reach)
        return one_panel(panel, self._facts.labels, **self._picture(ax, caption))

    def plot_scale(self, *, ax: Axes | None = None, caption: bool = True) -> Axes:
        """Draw the noise against the probability that a symmetric chain stays in its state.

        At the eps and the number of times of this release, with the class that was assumed.
        """
        from dpmodels.plots.heat import scales

        k = len(self.chain.states)
        stays = np.linspace(1 / k, _MOST_STAY, _POINTS)
        start = self.chain.initial if isinstance(self.chain.initial, str) else "any"
        guarantees = [
            Pufferfish(self.budget.eps, MarkovChain(self.chain.states, None, (s, s), start))
            for s in stays.tolist()
        ]
        levels = {str(name): float(scale) for name, scale in self.scales["scale"].items()}
        scale = levels.pop("quilt")
        return scales(
            stays,
            np.array([2 * guarantee.active(self.steps).scale for guarantee in guarantees]),
            levels,
            ("probability to stay, of symmetric chains", "noise scale of a count, in times"),
            within=self.chain.stay,
            mark=("this release", scale),
            **self._picture(ax, caption),
        )

    def _reading(self) -> str:
        if self.simulated:
            return super()._reading()
        max_factor = signif(math.exp(self.budget.eps), 3)
        return (
            "Reading: for anyone whose prior is in the class, this release changes the odds of "
            f"one state against another, of any person at any {self.time}, by a factor of "
            f"{max_factor} at the most."
        )

    def _line(self) -> dict[str, object]:
        line = described_line(self.release, self.ncomplete, self._facts.cells)
        quilt = {"scale": 2 * self.quilt.scale, "influence": self.quilt.influence}
        return {**line, "nobs": self.nobs, "ntimes": self.steps, **quilt}

    @property
    def nobs(self) -> float:
        """Number of times over all persons, with a state or without."""
        return float(self.release.rows or 0)

    def _size(self) -> str:
        return f"{self._facts.cells} states"
