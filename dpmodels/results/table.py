"""The result of private counts by declared levels."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import pandas as pd

from dpmodels.errors import ArgumentError, NotAvailable, said
from dpmodels.inference.independence import Independence, independence
from dpmodels.inference.shares import share_interval
from dpmodels.results.base import checked_level
from dpmodels.results.counted import CountedResult
from dpmodels.results.described import described_line, interval_frame
from dpmodels.typing import Integers

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.axes import Axes


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
    def by_level(self) -> Integers:
        """Consistent counts of shape (groups, levels of the last factor)."""
        return self._whole[:-1].reshape(-1, self._facts.shape[-1])

    @property
    def nincomplete(self) -> float:
        """Number of rows with a missing or unlisted level, not negative."""
        return float(self._whole[-1])

    def margins(self, factors: str | Iterable[str]) -> xr.DataArray:
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
        others = [one for one in self._facts.factors if one not in self._kept(factors)]
        return self.counts.sum(others)

    def proportions(self, within: str | Iterable[str] = ()) -> xr.DataArray:
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
        own = self.counts
        others = [one for one in self._facts.factors if one not in self._kept(within)]
        total = own.sum(others)
        return (own / total.where(total > 0)).rename("proportion")

    def _kept(self, factors: str | Iterable[str]) -> tuple[str, ...]:
        kept = (factors,) if isinstance(factors, str) else tuple(factors)
        known = self._facts.factors
        for one in kept:
            if one not in known:
                raise ArgumentError(
                    f"factor {said(one)} is not in the table; it has {', '.join(map(repr, known))}"
                )
        return kept

    def _conf_int(self, level: float) -> pd.DataFrame:
        own = self._counted
        parts, noise = own.sampled
        return interval_frame(self._facts, share_interval(parts[:, 0], noise, level))

    def chi2_test(self) -> Independence:
        """Test whether two factors or more are independent, with the noise counted in.

        ``statistic, pvalue, df``; levels with too few rows for the noise are
        taken as one, their places are in ``pooled``, by factor. nan with a
        reason where fewer than two levels of a factor are left.
        """
        if len(self._facts.factors) < 2:
            raise NotAvailable("independence is about two factors or more; the table has one")
        return self._independence

    @cached_property
    def _independence(self) -> Independence:
        return self._tested(self._facts.shape)

    def _tested(self, shape: tuple[int, ...]) -> Independence:
        """Test independence in the table with some of its factors taken as one, by the shape."""
        parts, noise = self._counted.sampled
        return independence(parts[:, 0].reshape(shape), noise)

    def glance(self) -> pd.DataFrame:
        """Return one row about the whole release, with the test where there is one."""
        row = super().glance()
        if len(self._facts.factors) < 2:
            return row
        test = self.chi2_test()
        return row.assign(statistic=test.statistic, df=test.df, p_value=test.pvalue)

    def plot(self, ax: Axes | None = None, level: float = 0.95, *, caption: bool = True) -> Axes:
        """Draw the share of each cell, with its noise and its confidence interval.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.
        level : float
            Coverage of the intervals, in (0, 1).
        caption : bool
            Whether guarantee, neighbours and noise stand under the picture.

        Notes
        -----
        Shares of all complete rows. Levels of the last of several factors stand beside each other,
        if they are 6 or fewer. The ends of noise intervals are those of the counts over the
        released number of complete rows, whose own noise is left out.
        """
        from dpmodels.plots.shares import SERIES_SHOWN, shares

        facts, level = self._facts, checked_level(level)
        total = max(self.ncomplete, 1.0)
        noise = self.noise_int(level).to_numpy() / total
        beside = len(facts.factors) > 1 and facts.shape[-1] <= SERIES_SHOWN
        columns = facts.shape[-1] if beside else 1
        rows = [name.rpartition(" / ")[0] for name in facts.labels[::columns]]
        return shares(
            self.counts.to_numpy().reshape(-1, columns) / total,
            noise.reshape(-1, columns, 2),
            self.conf_int(level).to_numpy().reshape(-1, columns, 2),
            rows=rows if beside else facts.labels,
            series=[f"{facts.factors[-1]}: {one}" for one in facts.levels[-1]] if beside else [""],
            title="Share of complete rows",
            across=" / ".join(facts.factors[: -1 if beside else None]),
            level=level,
            ax=ax,
            stamp=self.stamp,
            caption=self._caption(shown=caption),
        )

    def _line(self) -> dict[str, Any]:
        return described_line(self.release, self.ncomplete, self._facts.cells)

    @property
    def _size(self) -> str:
        return f"{self._facts.cells} cells"
