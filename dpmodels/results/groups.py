"""The results of private means, variances and t-tests by group."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import TYPE_CHECKING, ClassVar, Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dpmodels.arguments import option
from dpmodels.errors import NotAvailable
from dpmodels.external_files import Quantity
from dpmodels.inference.means import Difference, GroupMoments, difference, equal_means
from dpmodels.inference.sampled import SampledMoments, Totals
from dpmodels.inference.screening_tests import ADJUSTMENTS, adjusted_pvalues, simultaneous
from dpmodels.postprocess.ranges import FALLING_SHAPE, HEAVY_SHAPE
from dpmodels.released import CountsRelease, HeldIn
from dpmodels.results import count_tables
from dpmodels.results.base import Derivation, Result, checked_level
from dpmodels.results.call import DescribedCall, TableCall
from dpmodels.results.coefficient_model import in_unit
from dpmodels.results.derived_table import Estimates
from dpmodels.results.discoveries import Tested
from dpmodels.results.estimate_table import (
    EstimateTable,
    axis_title,
    product_unit,
    table_of_estimates,
    unit_of,
)
from dpmodels.typing import Axes, Floats
from dpmodels.verbs import documented

WELCH: Final = (
    "{}: Welch's test, with unequal variances. It allows for privacy noise, whose variance is "
    "known, so df may exceed the number of rows."
)
NO_DESIGN: Final = "the rows have no survey design: write design=dp.design(weights=..., ...)"


@dataclass(frozen=True, repr=False)
class GroupedResult(Result):
    """One number a group with two errors: what means and variances have in common.

    Notes
    -----
    A group whose number of rows is not distinguished from 0 has nan as its estimate.
    """

    call: DescribedCall
    release: CountsRelease

    @cached_property
    def _facts(self) -> TableCall:
        return self.call.tables[0].held_in(self.release.held)

    @cached_property
    def _counted(self) -> count_tables.Counted:
        return count_tables.counted(self.call, self.release)

    @cached_property
    def _moments(self) -> GroupMoments:
        return self._counted.moments

    def _series(self, values: object, name: str) -> pd.Series[float]:
        return pd.Series(values, index=self._facts.index, name=name)

    if TYPE_CHECKING:

        @property
        def params(self) -> pd.Series[float]:
            """The estimates by group."""

        def _sds(self) -> tuple[Floats, Floats]:
            """Return the sds by privacy noise and by sampling, each of shape (groups,)."""

        def _ends(self, level: float, *, population: bool) -> tuple[Floats, Floats]:
            """Return the ends of intervals, each of shape (groups,)."""

    @property
    def sd(self) -> pd.Series[float]:
        """Standard deviations, from the same release."""
        return self._series(self._facts.width * np.sqrt(self._moments.variances), "sd")

    @property
    def bse_noise(self) -> pd.Series[float]:
        """Standard deviation of the privacy noise in `params`; in variances to first order."""
        return self._series(self._sds()[0], "bse_noise")

    @property
    def bse_sampling(self) -> pd.Series[float]:
        """Standard error of `params` by sampling alone."""
        return self._series(self._sds()[1], "bse_sampling")

    @property
    def bse(self) -> pd.Series[float]:
        """Standard error of `params` as estimates of the population's: noise and sampling."""
        return self._series(np.hypot(*self._sds()), "bse")

    @property
    def counts(self) -> pd.Series[float]:
        """Released number of complete rows; noise sd `count_noise_sd`."""
        return self._series(self._moments.sizes * self._counted.per_count, "count")

    @property
    def count_noise_sd(self) -> float:
        """Standard deviation of the privacy noise in each of `counts`."""
        return self._moments.size_sd * self._counted.per_count

    @property
    def _of_group(self) -> Floats:
        """How many times as many complete rows there are as in each group."""
        counts = np.maximum(self._moments.counts, 1.0)
        return np.asarray(np.maximum(counts.sum(), 1.0) / counts)

    @property
    def design(self) -> pd.DataFrame:
        """Under a survey design by group: deff, effective n, degrees of freedom, and the cap.

        ``weight`` is the sum of capped weights, ``capped`` the share of it that was cut off,
        ``shift`` what the cap moved the estimates by, each with its error.

        Raises
        ------
        NotAvailable
            Without a survey design.
        """
        moments = self._moments
        if not isinstance(moments, SampledMoments):
            raise NotAvailable(NO_DESIGN)
        return count_tables.design_frame(moments, self._shifts(), self._counted.cap, self._facts)

    def _shifts(self) -> tuple[Floats, Floats]:
        """Return what the cap moved the estimates by, and the errors of that."""
        moments, width = self._moments, self._facts.width
        assert isinstance(moments, SampledMoments)
        return width * moments.shift, width * moments.shift_sd

    def _interval(self, level: float, *, population: bool) -> pd.DataFrame:
        return count_tables.interval_frame(self._facts, self._ends(level, population=population))

    def _estimates(self) -> EstimateTable:
        facts, further = self._facts, {"count": self.counts, "sd": self.sd}
        label, unit = facts.variable, self._unit
        return table_of_estimates(self, facts.index, further=further, labels=label, unit=unit)

    @property
    def _unit(self) -> str:
        return unit_of(self.call.codebook, self._facts.variable)

    @documented
    def plot(self, ax: Axes | None = None, level: float = 0.95, *, caption: bool = True) -> Axes:
        """Draw the estimates by group, with both intervals."""
        facts = self._facts
        title = axis_title(f"{self._called} of {facts.measured}", self.call.codebook)
        axes = self._draw_intervals(
            self.params,
            ax,
            level,
            caption,
            labels=facts.labels,
            title=title,
            at=None,
            lost="too few rows",
            across=" / ".join(facts.factors),
        )
        if facts.date and self._dated:
            axes.xaxis_date()
        return axes

    # The name of `params`, and whether they are dates where the measured variable is.
    _called: ClassVar[str]
    _dated: ClassVar[bool] = False

    def _line(self) -> dict[str, object]:
        complete = float(self.counts.sum())
        return count_tables.described_line(self.release, complete, self._facts.cells)

    def _size(self) -> str:
        return f"{self._facts.cells} groups"


@dataclass(frozen=True, repr=False)
class MeanResult(GroupedResult):
    """Private means by group: released values and public facts only.

    Notes
    -----
    All is in the unit of the measured number and indexed by group. A group whose number of rows is
    not distinguished from 0 has nan as its mean, and the whole range as its intervals.
    :meth:`conf_int` gives Fieller's intervals, which are valid where the number of rows is noisy.
    Their sampling part is normal, by the central limit theorem. No interval covers clipping to the
    declared bounds. Where the rows were clipped to a range that was found first, ``release.held``,
    the means are those of the clipped rows, and intervals are extended by what a tail that goes on
    as it falls before the end would add.
    """

    _called = "Mean"
    _dated = True

    @property
    def params(self) -> pd.Series[float]:
        """Means."""
        return self._series(self._facts.lower + self._facts.width * self._moments.means, "mean")

    def _sds(self) -> tuple[Floats, Floats]:
        width, moments = self._facts.width, self._moments
        return width * moments.mean_noise_sd, width * moments.mean_sampling_sd

    def _ends(self, level: float, *, population: bool) -> tuple[Floats, Floats]:
        facts, declared, tail = self._facts, self.call.tables[0], self.release.held
        low, high = self._moments.mean_interval(level, population=population)
        low, high = facts.lower + facts.width * low, facts.lower + facts.width * high
        if tail is None:
            return low, high
        low, high = low - self._of_group * tail.below, high + self._of_group * tail.above
        return np.maximum(low, declared.lower), np.minimum(high, declared.upper)

    @property
    def has_heavy_tail(self) -> bool:
        """Whether few rows beyond a released range may determine a mean.

        Intervals may cover less than 95 % then. False without a released range.
        """
        low, high = self._ends(0.95, population=True)
        added = 0.0 if (tail := self.release.held) is None else tail.below + tail.above
        return _is_heavy(tail, 2 * self._of_group * added > high - low)

    def contrasts(self, *, adjust: str = "holm", level: float = 0.95) -> Estimates:
        """Return the differences of the means of all pairs of groups.

        Parameters
        ----------
        adjust : {"holm", "bonferroni", "sidak", "none"}
            How p-values and intervals allow for the number of pairs.
        level : float
            Coverage of all intervals together, in (0, 1), or of each with ``"none"``.

        Returns
        -------
        Estimates
            ``contrast, estimate, std_error, statistic, p_value, conf_low, conf_high``:
            errors of noise and sampling, with unequal variances, as of ``dp.dp_ttest``.
            nan where a mean is lost in noise.

        Raises
        ------
        NotAvailable
            If there is one group alone, or very many.
        """
        how, coverage = option("adjust", adjust, tuple(ADJUSTMENTS)), checked_level(level)
        table = pairs_of_means(self._moments, self._facts, how, coverage)
        pairs = f"{len(table)} pairs: {ADJUSTMENTS[how]}." if len(table) > 1 else ""
        variances = "Unequal variances; errors of sampling and noise."
        clipped = "" if self.release.held is None else "Means of the clipped rows are compared."
        notes = (" ".join(filter(None, (pairs, variances, clipped))),)
        unit = unit_of(self.call.codebook, self._facts.variable)
        title = f"Contrasts of {self._facts.variable}: differences of means{in_unit(unit)}"
        return Estimates(self, title, table, notes, coverage, test="t")

    def anova(self) -> Estimates:
        """Test whether all groups have equal means: one-way, by Welch's test, allowing for noise.

        Returns
        -------
        Estimates
            One row, ``term, statistic, df, df_resid, p_value, ngroups``: an F, or the t of two
            groups; nan where fewer than two groups are distinguished from empty ones.

        Raises
        ------
        NotAvailable
            If there is one group alone.
        """
        if not self._facts.factors:
            raise NotAvailable("anova() compares groups: write 'y ~ group'")
        table, test, reason = one_spec(self._moments, self._facts)
        notes = tuple(filter(None, (f"Not tested: {reason}" if reason else "", WELCH.format(test))))
        title = f"Equality of means of {self._facts.variable}"
        return Estimates(self, title, table, notes, test=test)


class WithMeans(GroupedResult):
    """Numbers by group that stand beside the means."""

    @property
    def mean(self) -> pd.Series[float]:
        """Means, from the same release."""
        return self._series(self._facts.lower + self._facts.width * self._moments.means, "mean")


@dataclass(frozen=True, repr=False)
class VarResult(WithMeans):
    """Private variances by group: released values and public facts only.

    Notes
    -----
    In squared units of the measured number, with divisor n - 1. A group whose number of rows is not
    distinguished from 0 has nan as its variance. :meth:`conf_int` does not assume normal rows: the
    sampling error comes from the private fourth moment. As without privacy, thousands of rows are
    needed where the number is very skewed. Intervals are extended for a cut tail as those of means.
    """

    _called = "Variance"

    @property
    def _unit(self) -> str:
        return product_unit(super()._unit, super()._unit)

    @property
    def params(self) -> pd.Series[float]:
        """Variances, not below 0."""
        return self._series(self._facts.width**2 * self._moments.variances, "variance")

    def _sds(self) -> tuple[Floats, Floats]:
        square, moments = self._facts.width**2, self._moments
        return square * moments.variance_noise_sd, square * moments.variance_sampling_sd

    def _shifts(self) -> tuple[Floats, Floats]:
        square, moments = self._facts.width**2, self._moments
        assert isinstance(moments, SampledMoments)
        return square * moments.variance_shift, square * moments.variance_shift_sd

    def _ends(self, level: float, *, population: bool) -> tuple[Floats, Floats]:
        square = self._facts.width**2
        low, high = self._moments.variance_interval(level, population=population)
        largest = np.maximum(self.call.tables[0].width ** 2 / 4, square * high)
        return square * low, np.minimum(square * high + self._cut_off, largest)

    @property
    def _cut_off(self) -> Floats:
        """What a tail beyond a released range may add to variances; 0 without such a range."""
        facts, tail = self._facts, self.release.held
        if tail is None:
            return np.zeros_like(self._of_group)
        # Of x beyond the end h: (x - m)² - (h - m)² = (x - h)² + 2(h - m)(x - h), m the mean.
        means = np.nan_to_num(np.asarray(self.mean), nan=(facts.lower + facts.upper) / 2)
        cut = tail.below_square + 2 * (means - facts.lower) * tail.below
        cut = cut + tail.above_square + 2 * (facts.upper - means) * tail.above
        return np.asarray(self._of_group * cut)

    @property
    def has_heavy_tail(self) -> bool:
        """Whether few rows beyond a released range may determine a variance, as in means."""
        low, high = self._ends(0.95, population=True)
        is_most = self._cut_off > np.maximum(self.params, (high - low) / 2)
        return _is_heavy(self.release.held, is_most)


def _is_heavy(tail: HeldIn | None, is_most: NDArray[np.bool_]) -> bool:
    """Whether a tail is heavy by its shape, or may be where its allowance is most of an error."""
    limit = FALLING_SHAPE if np.any(is_most) else HEAVY_SHAPE
    return tail is not None and tail.shape > limit


@dataclass(frozen=True, repr=False)
class TotalResult(WithMeans):
    """Private totals by group: released values and public facts only.

    Notes
    -----
    In the unit of the measured number. Under a survey design they are Horvitz-Thompson estimates of
    the totals of the population; without one each row has the weight 1. All groups have a total,
    whether or not noise hides their numbers of rows.
    """

    _called = "Total"

    @cached_property
    def _totals(self) -> Totals:
        facts = self._facts
        return Totals(self._moments, facts.lower, facts.width, self._counted.per_count)

    @property
    def params(self) -> pd.Series[float]:
        """Totals."""
        return self._series(self._totals.estimates, "total")

    def _sds(self) -> tuple[Floats, Floats]:
        return self._totals.noise_sd, self._totals.sampling_sd

    def _shifts(self) -> tuple[Floats, Floats]:
        return self._totals.shift, self._totals.shift_sd

    def _ends(self, level: float, *, population: bool) -> tuple[Floats, Floats]:
        low, high = self._totals.interval(level, population=population)
        tail, n_rows = self.release.held, max(float(self.counts.sum()), 0.0)
        if tail is not None:
            low, high = low - n_rows * tail.below, high + n_rows * tail.above
        return low, high


# Comparisons of group means: post-processing of one release.

# A choice: each pair is a search for a p-value and for the ends of an interval.
MOST_PAIRS = 1_000


def pairs_of_means(
    moments: GroupMoments, facts: TableCall, adjust: str, level: float
) -> pd.DataFrame:
    """Return one row a pair of groups, the first less the second."""
    labels, width = facts.labels, facts.width
    pairs = list(combinations(range(len(labels)), 2))
    if not 0 < len(pairs) <= MOST_PAIRS:
        raise NotAvailable(
            f"contrasts() compares up to {MOST_PAIRS:,} pairs of groups, and there are "
            f"{len(pairs):,}: write 'y ~ group' with a factor of fewer levels, but at least 2"
        )
    pair_level = simultaneous(level, len(pairs), adjust)
    rows = []
    for pair in pairs:
        contrast = difference(moments, pair=pair)
        error = float(np.hypot(contrast.noise_sd, contrast.sampling_sd))
        ends = np.full(2, np.nan)
        if contrast.known:
            ends = np.array(contrast.interval(pair_level, population=True))
        name = f"{labels[pair[0]]} - {labels[pair[1]]}"
        tests = (contrast.estimate / error, contrast.pvalue)
        rows.append((name, width * contrast.estimate, width * error, *tests, *(width * ends)))
    columns = ["contrast", "estimate", "std_error", "statistic", "p_value"]
    table = pd.DataFrame(rows, columns=[*columns, "conf_low", "conf_high"])
    table.loc[table["estimate"].isna(), "std_error"] = np.nan
    return table.assign(p_value=adjusted_pvalues(table["p_value"].to_numpy(), adjust))


def one_spec(moments: GroupMoments, facts: TableCall) -> tuple[pd.DataFrame, str, str]:
    """Return the test of equal means as one row, its statistic, and the reason if missing."""
    test = equal_means(moments)
    line = {"term": ":".join(facts.factors), "statistic": test.statistic, "df": test.df}
    line |= {"df_resid": test.df_resid, "p_value": test.pvalue, "ngroups": test.groups}
    return pd.DataFrame([line]), "t" if test.groups == 2 else "F", test.reason


# The result of a private t-test.


@dataclass(frozen=True, repr=False)
class TTestResult(Tested):
    """A private t-test: released values and public facts only.

    Parameters
    ----------
    mu : float
        The difference, or the mean of one group, that is tested.

    Notes
    -----
    The difference is the first level's mean less the second's. Its standard error allows for noise
    and sampling, with unequal variances; the p-value uses their joint distribution. Where the rows
    were clipped to a range that was found first, means of the clipped rows are compared. Intervals
    have one row, named `term`.
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
        contrast = self._difference
        return self._facts.width * float(np.hypot(contrast.noise_sd, contrast.sampling_sd))

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

    def _interval(self, level: float, *, population: bool) -> pd.DataFrame:
        facts = self._facts
        ends = np.array(self._difference.interval(level, population=population))
        lower, upper = (-facts.width, facts.width) if facts.factors else (facts.lower, facts.upper)
        clipped = np.clip(self.mu + facts.width * ends, lower, upper)
        index = pd.Index([self.term], name="term")
        return pd.DataFrame(clipped[None, :], index=index, columns=["lower", "upper"])

    def _estimates(self) -> EstimateTable:
        index, tests = pd.Index([self.term], name="term"), [self._facts.variable]
        unit = unit_of(self.call.codebook, self._facts.variable)
        return table_of_estimates(self, index, labels=tests, unit=unit, statistic=self.tvalue)

    def plot(self, ax: Axes | None = None, level: float = 0.95, *, caption: bool = True) -> Axes:
        """Draw the difference, or the mean, with both intervals and the tested value.

        Parameters are those of :meth:`MeanResult.plot`; ``means.plot()`` draws the means.
        """
        named = "Difference in means" if self._facts.factors else "Mean"
        title = axis_title(f"{named} of {self._facts.measured}", self.call.codebook)
        return self._draw_intervals(
            [self.params],
            ax,
            level,
            caption,
            labels=[self.term],
            title=title,
            at=self.mu,
            lost="too few rows",
            across=" / ".join(self._facts.factors),
        )

    def glance(self) -> pd.DataFrame:
        """Return one row about the whole release, with the test."""
        return super().glance().assign(statistic=self.tvalue, p_value=self.pvalue)

    def _line(self) -> dict[str, object]:
        return self.means._line()
