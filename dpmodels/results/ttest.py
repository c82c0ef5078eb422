"""The result of a private t-test."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pandas as pd

from dpmodels.inference.differences import Difference, difference
from dpmodels.outside import Quantity
from dpmodels.released import CountsRelease
from dpmodels.results.base import Derivation, checked_level
from dpmodels.results.call import DescribedCall, TableCall
from dpmodels.results.discoveries import Tested
from dpmodels.results.estimate_table import EstimateTable, estimate_table, unit_of
from dpmodels.results.groups import MeanResult

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True, repr=False)
class TTestResult(Tested):
    """A private t-test: released values and public facts only.

    Parameters
    ----------
    mu : float
        The difference, or the mean of one group, that is tested.

    Notes
    -----
    The difference is the first level's mean less the second's. Its standard
    error holds noise and sampling, with unequal variances; the p-value is that
    of the law of both together. Intervals have one row, of the name `term`.
    """

    call: DescribedCall
    release: CountsRelease
    mu: Quantity

    @property
    def _facts(self) -> TableCall:
        return self.means._facts

    @cached_property
    def means(self) -> MeanResult:
        """The means of the groups, from the same release."""
        return self._derive(MeanResult, "mean")

    derivations: ClassVar = {"mean": lambda self: Derivation(self.call, MeanResult)}

    @cached_property
    def _difference(self) -> Difference:
        """On the range from 0 to 1."""
        facts, moments = self._facts, self.means._moments
        if facts.factors:
            return difference(moments, self.mu / facts.width)
        return difference(moments, (self.mu - facts.lower) / facts.width)

    @property
    def term(self) -> str:
        """What is tested: ``"first - second"``, or ``"mean"`` of one group."""
        facts = self._facts
        return " - ".join(facts.labels) if facts.factors else "mean"

    @property
    def params(self) -> float:
        """The difference of the means, or the mean; nan where lost in noise."""
        return self.mu + self._facts.width * self._difference.estimate

    @property
    def bse_noise(self) -> float:
        """Standard deviation of the privacy noise in it."""
        return self._facts.width * self._difference.noise_sd

    @property
    def bse(self) -> float:
        """Its standard error: noise and sampling."""
        own = self._difference
        return self._facts.width * float(np.hypot(own.noise_sd, own.sampling_sd))

    @property
    def tvalue(self) -> float:
        """Distance from `mu` in standard errors; nan where lost in noise."""
        return (self.params - self.mu) / self.bse if self.bse > 0 else float("nan")

    @property
    def pvalue(self) -> float:
        """Two-sided p-value of `mu`; nan where lost in noise."""
        return self._difference.pvalue

    @property
    def pvalues(self) -> pd.Series[float]:
        """The same, under the name of what is tested."""
        return pd.Series([self.pvalue], pd.Index([self.term], name="term"), name="pvalues")

    def _noise_int(self, level: float) -> pd.DataFrame:
        return self._interval(level, population=False)

    def _conf_int(self, level: float) -> pd.DataFrame:
        return self._interval(level, population=True)

    def _interval(self, level: float, *, population: bool) -> pd.DataFrame:
        facts = self._facts
        ends = np.array(self._difference.interval(level, population=population))
        least, most = (-facts.width, facts.width) if facts.factors else (facts.lower, facts.upper)
        held = np.clip(self.mu + facts.width * ends, least, most)
        index = pd.Index([self.term], name="term")
        return pd.DataFrame(held[None, :], index=index, columns=["lower", "upper"])

    def _estimates(self) -> EstimateTable:
        index, tests = pd.Index([self.term], name="term"), [self._facts.variable]
        unit = unit_of(self.call.codebook, self._facts.variable)
        return estimate_table(self, index, labels=tests, unit=unit, statistic=self.tvalue)

    def plot(self, ax: Axes | None = None, level: float = 0.95, *, caption: bool = True) -> Axes:
        """Draw the difference, or the mean, with both intervals and what it is held against.

        Words are those of :meth:`MeanResult.plot`, which draws the means: ``means.plot()``.
        """
        from dpmodels.plots.coefficients import Intervals, coefficients

        ends = (own.to_numpy() for own in (self.noise_int(level), self.conf_int(level)))
        return coefficients(
            [Intervals("", np.array([self.params]), *ends)],
            labels=[self.term],
            title=f"{'Difference in means' if self._facts.factors else 'Mean'} "
            f"of {self._facts.measured}",
            level=checked_level(level),
            at=self.mu,
            lost="too few rows",
            across=" / ".join(self._facts.factors),
            ax=ax,
            stamp=self.stamp,
            caption=self._caption(shown=caption),
        )

    def glance(self) -> pd.DataFrame:
        """Return one row about the whole release, with the test."""
        return super().glance().assign(statistic=self.tvalue, p_value=self.pvalue)

    def _line(self) -> dict[str, Any]:
        return self.means._line()
