"""The result of a private t-test."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from dpmodels.inference.differences import Difference, difference
from dpmodels.outside import Quantity
from dpmodels.released import CountsRelease
from dpmodels.results.arguments import checked_level
from dpmodels.results.described import described_glance
from dpmodels.results.described_call import DescribedCall
from dpmodels.results.held import Held
from dpmodels.results.mean import MeanResult

if TYPE_CHECKING:
    from dpmodels.results.summary import Summary


@dataclass(frozen=True, repr=False)
class TTestResult(Held):
    """A private t-test: released values and public facts only.

    Parameters
    ----------
    call : DescribedCall
        What was asked.
    release : CountsRelease
        What was released: the sums of the powers 0, 1 and 2 by group.
    mu : float
        The difference, or the mean of one group, that is tested.

    Notes
    -----
    The difference is the first level's mean less the second's. Its standard
    error holds noise and sampling, with unequal variances; the p-value is that
    of the law of both together.
    """

    call: DescribedCall
    release: CountsRelease
    mu: Quantity

    @cached_property
    def means(self) -> MeanResult:
        """The means of the groups, from the same release."""
        return MeanResult(self.call, self.release)

    @cached_property
    def _difference(self) -> Difference:
        """On the range from 0 to 1."""
        facts, moments = self.call.tables[0], self.means._moments
        if facts.factors:
            return difference(moments, self.mu / facts.width)
        return difference(moments, (self.mu - facts.lower) / facts.width)

    @property
    def _origin(self) -> float:
        """What is added to the estimate of the difference to print it."""
        return self.mu

    @property
    def params(self) -> float:
        """The difference of the means, or the mean; nan where lost in noise."""
        return self._origin + self.call.tables[0].width * self._difference.estimate

    @property
    def bse_noise(self) -> float:
        """Standard deviation of the privacy noise in it."""
        return self.call.tables[0].width * self._difference.noise_sd

    @property
    def bse(self) -> float:
        """Its standard error: noise and sampling."""
        own = self._difference
        return self.call.tables[0].width * float(np.hypot(own.noise_sd, own.sampling_sd))

    @property
    def tvalue(self) -> float:
        """Distance from `mu` in standard errors; nan where lost in noise."""
        return (self.params - self.mu) / self.bse if self.bse > 0 else float("nan")

    @property
    def pvalue(self) -> float:
        """Two-sided p-value of `mu`; nan where lost in noise."""
        return self._difference.pvalue

    @property
    def nobs(self) -> float:
        """Number of rows: the public one, nan where it is private."""
        return self.means.nobs

    def noise_int(self, level: float = 0.95) -> tuple[float, float]:
        """Return an interval for the value on these rows: privacy noise only.

        Parameters
        ----------
        level : float
            Coverage, in (0, 1).
        """
        return self._interval(level, population=False)

    def conf_int(self, level: float = 0.95) -> tuple[float, float]:
        """Return an interval for the population: noise and sampling.

        Parameters
        ----------
        level : float
            Coverage, in (0, 1).
        """
        return self._interval(level, population=True)

    def _interval(self, level: float, *, population: bool) -> tuple[float, float]:
        facts = self.call.tables[0]
        low, high = self._difference.interval(checked_level(level), population=population)
        least, most = (-facts.width, facts.width) if facts.factors else (facts.lower, facts.upper)
        ends = (self._origin + facts.width * end for end in (low, high))
        low, high = (min(max(end, least), most) for end in ends)
        return low, high

    def tidy(self) -> pd.DataFrame:
        """Return one row: estimate, its errors, test and 95 % intervals."""
        noise, population = self.noise_int(), self.conf_int()
        row = {
            "estimate": self.params,
            "std_error": self.bse,
            "noise_sd": self.bse_noise,
            "statistic": self.tvalue,
            "p_value": self.pvalue,
            "noise_low": noise[0],
            "noise_high": noise[1],
            "conf_low": population[0],
            "conf_high": population[1],
        }
        return pd.DataFrame([row])

    def glance(self) -> pd.DataFrame:
        """Return one row about the whole release, with the test."""
        complete, groups = float(self.means.counts.sum()), self.call.tables[0].cells
        row = described_glance(self.call, self.release, complete, groups)
        return row.assign(statistic=self.tvalue, p_value=self.pvalue)

    def summary(self) -> Summary:
        """Return the printed report."""
        from dpmodels.results.summary import Summary
        from dpmodels.results.ttest_report import ttest_report

        return Summary(ttest_report(self))

    def __repr__(self) -> str:
        return f"<TTestResult {self.call.formula!r}: {self.release.guarantee.describe()}>"
