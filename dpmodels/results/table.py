"""The result of private counts by declared levels."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pandas as pd
import xarray as xr

from dpmodels.errors import ArgumentError, NotAvailable, said
from dpmodels.inference.independence import Independence, independence
from dpmodels.inference.shares import share_interval
from dpmodels.results.counted import CountedResult
from dpmodels.results.described import described_line, interval_frame
from dpmodels.typing import Integers


@dataclass(frozen=True, repr=False, eq=False)
class TableResult(CountedResult):
    """Private counts by declared levels: released values and public facts only.

    Notes
    -----
    `counts` are whole, not negative and, with the incomplete rows, add up to
    the public number of rows; margins are their sums. `released` are unbiased
    and may be negative: intervals and the test are made
    from them. :meth:`noise_int` is of counts, :meth:`conf_int` of shares of the
    complete rows, by cell.
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

    def _line(self) -> dict[str, Any]:
        return described_line(self.release, self.ncomplete, self._facts.cells)

    @property
    def _size(self) -> str:
        return f"{self._facts.cells} cells"
