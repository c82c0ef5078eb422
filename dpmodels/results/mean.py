"""The result of private means by group."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from dpmodels.inference.means import GroupMoments
from dpmodels.released import CountsRelease
from dpmodels.results.arguments import checked_level
from dpmodels.results.described import Counted, counted, described_glance, interval_frame
from dpmodels.results.described_call import DescribedCall, TableFacts
from dpmodels.results.held import Held

if TYPE_CHECKING:
    from dpmodels.results.summary import Summary


@dataclass(frozen=True, repr=False)
class MeanResult(Held):
    """Private means by group: released values and public facts only.

    Parameters
    ----------
    call : DescribedCall
        What was asked.
    release : CountsRelease
        What was released: the sums of the powers 0, 1 and 2 by group.

    Notes
    -----
    All is in the unit of the measured number and indexed by group. A group
    whose rows cannot be told from none has nan for a mean, and the whole
    range for its intervals.
    """

    call: DescribedCall
    release: CountsRelease

    @property
    def _facts(self) -> TableFacts:
        return self.call.tables[0]

    @cached_property
    def _counted(self) -> Counted:
        return counted(self.call, self.release)

    @cached_property
    def _moments(self) -> GroupMoments:
        return self._counted.moments

    def _series(self, values: object, name: str) -> pd.Series[float]:
        return pd.Series(values, index=self._facts.index, name=name)

    # ---- numbers -----------------------------------------------------------------------

    @property
    def params(self) -> pd.Series[float]:
        """Means."""
        return self._series(self._facts.lower + self._facts.width * self._moments.means, "mean")

    @property
    def sd(self) -> pd.Series[float]:
        """Standard deviations, from the same release."""
        return self._series(self._facts.width * np.sqrt(self._moments.variances), "sd")

    @property
    def bse_noise(self) -> pd.Series[float]:
        """Standard deviation of the privacy noise in the means."""
        return self._series(self._facts.width * self._moments.mean_noise_sd, "bse_noise")

    @property
    def bse_sampling(self) -> pd.Series[float]:
        """Standard error of the means by sampling alone."""
        return self._series(self._facts.width * self._moments.mean_sampling_sd, "bse_sampling")

    @property
    def bse(self) -> pd.Series[float]:
        """Standard error of the means as estimates of the population's: noise and sampling."""
        return self._series(np.hypot(self.bse_noise, self.bse_sampling), "bse")

    @property
    def counts(self) -> pd.Series[float]:
        """Released number of complete rows; noise sd `count_noise_sd`."""
        return self._series(self._moments.counts, "count")

    @property
    def count_noise_sd(self) -> float:
        """Standard deviation of the privacy noise in each of `counts`."""
        return self._moments.count_sd

    # ---- intervals ---------------------------------------------------------------------

    def noise_int(self, level: float = 0.95) -> pd.DataFrame:
        """Return intervals for the means of these rows: privacy noise only.

        Parameters
        ----------
        level : float
            Coverage, in (0, 1).

        Returns
        -------
        DataFrame
            ``lower, upper`` by group.
        """
        return self._interval(level, population=False)

    def conf_int(self, level: float = 0.95) -> pd.DataFrame:
        """Return intervals for the population's means: noise and sampling.

        Parameters
        ----------
        level : float
            Coverage, in (0, 1).

        Returns
        -------
        DataFrame
            ``lower, upper`` by group.

        Notes
        -----
        Fieller's intervals: honest where the number of rows is noisy. The
        sampling part is normal, by the central limit theorem. Clipping bias
        is in no interval.
        """
        return self._interval(level, population=True)

    def _interval(self, level: float, *, population: bool) -> pd.DataFrame:
        facts = self._facts
        low, high = self._moments.mean_interval(checked_level(level), population=population)
        return interval_frame(
            facts, (facts.lower + facts.width * low, facts.lower + facts.width * high)
        )

    # ---- tables ------------------------------------------------------------------------

    def tidy(self) -> pd.DataFrame:
        """Return one row a group: counts, means, their errors and 95 % intervals."""
        noise, population = self.noise_int(), self.conf_int()
        values = {
            "count": self.counts,
            "estimate": self.params,
            "sd": self.sd,
            "std_error": self.bse,
            "noise_sd": self.bse_noise,
            "noise_low": noise["lower"],
            "noise_high": noise["upper"],
            "conf_low": population["lower"],
            "conf_high": population["upper"],
        }
        return pd.DataFrame(values).reset_index()

    def glance(self) -> pd.DataFrame:
        """Return one row about the whole release."""
        complete = float(self._moments.counts.sum())
        return described_glance(self.call, self.release, complete, self._facts.cells)

    def summary(self) -> Summary:
        """Return the printed report."""
        from dpmodels.results.mean_report import mean_report
        from dpmodels.results.summary import Summary

        return Summary(mean_report(self))

    def __repr__(self) -> str:
        guarantee = self.release.guarantee.describe()
        return f"<MeanResult {self.call.formula!r}: {self._facts.cells} groups, {guarantee}>"
