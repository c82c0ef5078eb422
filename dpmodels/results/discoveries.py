"""The results of private searches: columns associated with a response, largest candidates."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Literal, NamedTuple

import numpy as np
import pandas as pd

from dpmodels.arguments import boolean, fraction, option
from dpmodels.errors import NotAvailable
from dpmodels.external_files import Amount, one_of
from dpmodels.inference.proportions import Noise, count_interval
from dpmodels.inference.screening_tests import (
    METHODS,
    Correlations,
    Logarithms,
    above_next,
    adjusted,
    associated_correlations,
    correlations,
    cut_offs,
    gains,
    mirrored,
    mirrored_p_values,
    noisy_p_values,
    p_values,
)
from dpmodels.released import PValuesRelease, ScreenedRelease, SelectionRelease
from dpmodels.results.base import Printed, Result
from dpmodels.results.call import INTERCEPT, ScreenCall, caption_of, joined
from dpmodels.results.count_tables import OneTable
from dpmodels.results.estimate_table import EstimateTable, table_of_estimates
from dpmodels.typing import Axes, Floats, TableColumns
from dpmodels.verbs import documented

# A choice: probability that bounds on sums of squares fail, over q by the number of hypotheses.
FAILING = 0.05


@dataclass(frozen=True, repr=False, eq=False)
class FDRResult(Result):
    """Private tests of many columns at a false discovery rate: released values and public facts.

    Parameters
    ----------
    q : float
        The requested level.
    method : {"bh", "by"}
        Benjamini-Hochberg, or Benjamini-Yekutieli for any dependence.

    Notes
    -----
    :meth:`noise_int` covers the correlation of a selected column with the response in these rows:
    its noise is fresh, so selection does not bias it. The noise of the denominators is included to
    first order.
    """

    call: ScreenCall
    release: ScreenedRelease | PValuesRelease
    q: Amount
    method: Annotated[str, one_of(*METHODS)]

    _no_intervals = (
        "intervals of a population's correlations are not computed; tidy() has p-values, and "
        "noise_int() intervals of these rows' correlations"
    )

    @property
    def names(self) -> tuple[str, ...]:
        """The selected columns, in order of selection."""
        return tuple(self.call.names[int(place)] for place in self.release.chosen)

    @property
    def hypotheses(self) -> int:
        """How many columns there are."""
        return len(self.call.names)

    @cached_property
    def pvalues(self) -> pd.Series[float]:
        """P-values of no association by selected column, allowing for noise and sampling."""
        if isinstance(self.release, PValuesRelease):
            values = noisy_p_values(self.release, self.q)
        else:
            of = mirrored_p_values if self.mirrored else p_values
            values = of(self.release, self.call.alternative, self.least)
        index = pd.Index(self.names, dtype=object, name="hypothesis")
        return pd.Series(values, index, name="p_value")

    @property
    def least(self) -> float:
        """The lower bound on p-values: the error probability of the bounds on noise in variances.

        A twentieth of the threshold of the smallest p-value.
        """
        return FAILING * self.q / self.hypotheses

    @property
    def params(self) -> pd.Series[float]:
        """Noisy correlations with the response; nan where a column's variance is lost in noise.

        With the mechanism ``"dp_bh"`` noisy logarithms of p-values, cut off at that of
        ``q/(2 m)``.
        """
        return pd.Series(self._values.values, self.pvalues.index, name=self.valued)

    @property
    def bse_noise(self) -> pd.Series[float]:
        """Standard deviations of the privacy noise in them."""
        return pd.Series(self._values.sd(1.0), self.pvalues.index, name="noise_sd")

    def fdr(self, q: float = 0.1, method: Literal["bh", "by"] = "bh") -> Discoveries:
        """Step up at another level, or by the other method, as the method of other results does.

        Columns that were not selected count as p-values of 1.
        """
        return discoveries(self, self.pvalues, q, method, self.hypotheses)

    @cached_property
    def discoveries(self) -> Discoveries:
        """The rejections at `q` by `method`, or by the rule of the mechanism ``"adapt"``."""
        result = self.fdr(self.q, "by" if self.method == "by" else "bh")
        return replace(result, method="adapt") if self.mirrored else result

    @property
    def mirrored(self) -> bool:
        """Whether false discoveries are estimated from the opposite tail."""
        return self.release.info.name == "adapt"

    @property
    def valued(self) -> str:
        """What is released of a column: its ``correlation``, or the ``log_p`` of its test."""
        return "log_p" if isinstance(self.release, PValuesRelease) else "correlation"

    @property
    def rejected(self) -> list[str]:
        """The columns that are associated with the response, smallest p-value first."""
        return self.discoveries.rejected

    def _estimates(self) -> EstimateTable:
        table = self.discoveries.tidy().set_index("hypothesis")
        names, further = table.index, dict(table[["p_adjusted", "rejected"]])
        estimates = table_of_estimates(
            self,
            names,
            further=further,
            labels=names,
            p_value=table["p_value"],
            estimate=self.params[names],
            noise_sd=self.bse_noise[names],
        )
        return replace(estimates, noise=lambda level: self.noise_int(level).loc[names])

    @documented
    def plot(self, ax: Axes | None = None, *, caption: bool = True) -> Axes:
        """Draw sorted p-values, on a scale of -log10, with the line of their thresholds."""
        return self.discoveries.plot(ax, caption=caption)

    def _noise_int(self, level: float) -> pd.DataFrame:
        law = "laplace" if isinstance(self.release, PValuesRelease) else self.release.law
        low, high = self._values.interval(1.0, law, level)
        return pd.DataFrame({"lower": low, "upper": high}, self.pvalues.index)

    @cached_property
    def _values(self) -> Correlations | Logarithms:
        if isinstance(self.release, PValuesRelease):
            return Logarithms(self.release.logs, self.release.log_sd)
        return correlations(self.release)

    def _line(self) -> dict[str, object]:
        sizes = {"nobs": self.nobs, "nhypotheses": self.hypotheses, "nlooked": len(self.names)}
        rule = {"q": self.q, "method": self.discoveries.method}
        return {**sizes, "nrejected": len(self.rejected), **rule}

    def _size(self) -> str:
        return f"{len(self.names)} of {self.hypotheses} columns"


# Hypotheses that are rejected at a false discovery rate, for any p-values.


@dataclass(frozen=True, repr=False, eq=False)
class Discoveries(Printed):
    """Rejections at a false discovery rate: post-processing of a result's p-values.

    Parameters
    ----------
    formula : str
        Of the result.
    names : tuple of str
        The hypotheses that have p-values.
    p_values : ndarray, shape (tests,)
        nan where a hypothesis cannot be tested, which counts as a p-value of 1.
    hypotheses : int
        How many there are, those without p-values among them.
    q : float
        The level.
    method : {"bh", "by", "adapt"}
        Benjamini-Hochberg, Benjamini-Yekutieli for any dependence, or by p-values near 1.
    stamp : str or None
        The warning on tables and pictures of a simulation.
    caption : str or None
        The caption of pictures.
    """

    formula: str
    names: tuple[str, ...]
    p_values: Floats
    hypotheses: int
    q: float
    method: str
    stamp: str | None = None
    caption: str | None = None

    @property
    def rejected(self) -> list[str]:
        """The hypotheses that are rejected, smallest p-value first."""
        table = self.tidy()
        return [str(name) for name in table["hypothesis"][table["rejected"]]]

    def tidy(self) -> pd.DataFrame:
        """Return one row a tested hypothesis, smallest p-value first.

        ``hypothesis, p_value, p_adjusted, rejected``.
        """
        if self.method == "adapt":
            values = mirrored(self.p_values)
        else:
            values = adjusted(self.p_values, self.hypotheses, self.method)
        columns = {"hypothesis": self.names, "p_value": self.p_values, "p_adjusted": values}
        table = pd.DataFrame({**columns, "rejected": values <= self.q})
        return table.sort_values("p_value", kind="stable", ignore_index=True)

    @documented
    def plot(self, ax: Axes | None = None, *, caption: bool = True) -> Axes:
        """Draw sorted p-values, on a scale of -log10, with their thresholds."""
        from dpmodels.plots.curves import step_up

        table = self.tidy().dropna()
        rejected = table["rejected"].to_numpy()
        if self.method == "adapt":
            lines = np.full(len(table), table["p_value"][rejected].max() if rejected.any() else 0.5)
        else:
            lines = cut_offs(self.hypotheses, self.q, self.method)
        return step_up(
            table["p_value"].to_numpy(),
            rejected,
            lines,
            ax=ax,
            stamp=self.stamp,
            caption=self.caption if boolean("caption", caption) else None,
        )

    def __repr__(self) -> str:
        return (
            f"<Discoveries of {self.formula!r}: {len(self.rejected)} of {self.hypotheses} "
            f"rejected at a false discovery rate of {self.q:g}>"
        )


class Tested(Result):
    """A result that has p-values of several hypotheses."""

    if TYPE_CHECKING:

        @property
        def pvalues(self) -> pd.Series[float]:
            """P-values by hypothesis."""

    def fdr(self, q: float = 0.1, method: Literal["bh", "by"] = "bh") -> Discoveries:
        """Reject hypotheses at a false discovery rate: post-processing of the p-values.

        An intercept is not a hypothesis; one without a p-value is not rejected, but counts.

        Parameters
        ----------
        q : float
            The expected share of true null hypotheses among those rejected, in (0, 1).
        method : {"bh", "by"}
            Benjamini-Hochberg, for independent or positively dependent tests, or
            Benjamini-Yekutieli for any dependence.

        Raises
        ------
        ArgumentError
            If `q` is not between 0 and 1, or the method not known.
        """
        return discoveries(self, self.pvalues, q, method)


def discoveries(
    result: Result, p_values: pd.Series[float], q: float, method: str, hypotheses: int | None = None
) -> Discoveries:
    """Step up over the p-values of a result, except that of an intercept.

    `hypotheses` is how many there are, where some have no p-value.
    """
    level, how = fraction("q", q, ", such as 0.1"), option("method", method, tuple(METHODS))
    tested = p_values[p_values.index != INTERCEPT]
    return Discoveries(
        result.call.formula,
        tuple(map(str, tested.index)),
        np.asarray(tested, dtype=np.float64),
        len(tested) if hypotheses is None else hypotheses,
        level,
        how,
        result.stamp,
        caption_of(result.release),
    )


# The largest of many candidates, and values of them with fresh noise.

NO_VALUES = (
    "no values were bought, and those of the ranking are not released, as selection biases them: "
    "write values=True"
)


COUNT, GAIN = "count", "gain"


class Valued(NamedTuple):
    """Values of the selected candidates, shape (selected,)."""

    values: Floats
    sds: Floats
    variances: Floats  # Of the noise that no two of them share


@dataclass(frozen=True, repr=False, eq=False)
class SelectResult(OneTable):
    """The candidates with the largest scores: released values and public facts only.

    Parameters
    ----------
    score : {"count", "correlation", "z", "gain"}
        The score of the ranking.
    n_requested : int
        The requested number; a maximum, where there is a threshold.
    threshold : float or None
        What the scores of the selected exceed, up to noise.
    share : float
        The fraction of the budget for values; 0 without values.

    Notes
    -----
    The noise of `values` is independent of the ranking: given the selection they are unbiased for
    these rows. :meth:`noise_int` covers the values of these rows, each by itself. Nothing was
    released about candidates that are not selected.
    """

    release: SelectionRelease
    score: Annotated[str, one_of(COUNT, "correlation", "z", GAIN)]
    n_requested: int
    threshold: float | None
    share: float

    @property
    def index(self) -> pd.Index:
        """Labels of the selected candidates."""
        return self._facts.index.take(list(self.release.places))

    @property
    def selected(self) -> tuple[object, ...]:
        """The selected candidates, in order: levels, tuples of levels, or coded columns."""
        return tuple(self.index.to_list())

    @property
    def ncandidates(self) -> int:
        """The number of candidates, which is public."""
        return self._facts.cells

    @property
    def values(self) -> pd.Series[float]:
        """Counts, correlations, z or gains of the selected, with fresh noise of sd `noise_sd`.

        A gain is the share of the response's sum of squares about its mean that the released
        coefficient of a column explains, after those selected before it. nan where the spread of
        the column, or of the response, is not distinguished from 0.
        """
        return pd.Series(self._valued.values, self.index, name=self.score)

    @property
    def noise_sd(self) -> pd.Series[float]:
        """Standard deviation of the noise in each of `values`; of a ratio to first order."""
        return pd.Series(self._valued.sds, self.index, name="noise_sd")

    def above_next(self) -> pd.Series[float]:
        """Return the probability that each value is above the next one, by size.

        From the fresh values and their noise alone, which is taken as normal in correlations; nan
        for the last, as no later candidate was released.
        """
        valued = self._valued
        law = self.release.law if self.score == COUNT else "gaussian"
        sizes = valued.values if self.score in (COUNT, GAIN) else np.abs(valued.values)
        return pd.Series(above_next(sizes, valued.variances, law), self.index, name="above_next")

    @cached_property
    def _valued(self) -> Valued:
        release = self.release
        if release.values is None:
            raise NotAvailable(f"values are not available: {NO_VALUES}")
        if self.score == COUNT:
            sds = np.full(len(release.values), release.noise_sd)
            return Valued(release.values, sds, sds**2)
        correlations, factor = self._correlations, self._factor
        sds = factor * correlations.sd(release.noise_sd)
        variances = factor**2 * correlations.own_variance(release.noise_sd)
        return Valued(factor * correlations.values, sds, variances)

    @cached_property
    def _correlations(self) -> Correlations:
        release = self.release
        assert release.values is not None
        assert release.scatters is not None
        assert release.response is not None
        scales, sd = (release.scatters, release.response), release.noise_sd
        if release.slopes is not None:
            return gains(release.values, *scales, release.slopes, sd)
        return associated_correlations(release.values, *scales, sd)

    def cumulative(self) -> pd.DataFrame:
        """Return R² of the released fit, column by column, and the sd of the noise in it.

        The sum of the gains so far, shape (selected, 2). NotAvailable for what was not ranked by
        gain, or where no values were bought.
        """
        if self.score != GAIN:
            raise NotAvailable(
                "cumulative() needs columns ranked by gain, and these are ranked by "
                f"{self.score}: write score='gain'"
            )
        values = self.values.cumsum()
        sds = self._correlations.summed_sd(self.release.noise_sd)
        return pd.DataFrame({"r_squared": values, "noise_sd": sds}, index=self.index)

    @property
    def _factor(self) -> float:
        """What a correlation is multiplied by: for z the root of the effective number of rows."""
        if self.score != "z":
            return 1.0
        release = self.release
        return math.sqrt(max(release.count or 0.0, 0.0) / release.adjacency.design_effect)

    def _noise_int(self, level: float) -> pd.DataFrame:
        release, valued = self.release, self._valued
        if self.score == COUNT:
            noise = Noise(release.law, release.noise_sd, 0, release.step)
            ends = count_interval(valued.values, noise, level)
        else:
            interval = self._correlations.interval(release.noise_sd, release.law, level)
            ends = (self._factor * interval[0], self._factor * interval[1])
        return pd.DataFrame({"lower": ends[0], "upper": ends[1]}, index=self.index)

    _no_intervals = (
        "the candidates were selected on the same rows, so their sampling errors are not the "
        "usual ones: write noise_int(), or estimate the selected candidates on other rows"
    )

    def _estimates(self) -> EstimateTable:
        index, further = self.index, {}
        numbers: TableColumns = {"estimate": np.nan}
        if self.release.values is not None:
            numbers = {"estimate": self._valued.values, "noise_sd": self._valued.sds}
            further = {"above_next": self.above_next()}
            if self.score == GAIN:
                further["r_squared"] = self.cumulative()["r_squared"]
        ranked = index.to_frame(index=False)
        ranked.insert(0, "place", np.arange(1, len(index) + 1))
        about = [self._facts.variable] * len(index) if self.score == COUNT else list(index)
        return table_of_estimates(
            self, pd.MultiIndex.from_frame(ranked), further=further, labels=about, **numbers
        )

    def _line(self) -> dict[str, object]:
        sizes = {"ncandidates": self.ncandidates, "nselected": len(self.release.places)}
        return {"nobs": self.nobs, **sizes}

    @documented
    def plot(self, ax: Axes | None = None, *, caption: bool = True) -> Axes:
        """Draw a bar for each selected candidate, best first, with 95 % noise intervals.

        Raises
        ------
        NotAvailable
            If no values were bought, none exceeds its noise, or nothing was above the threshold.
        """
        from dpmodels.plots.bars import ranked

        values, ends, facts = self._valued.values, self.noise_int(), self._facts
        if len(values) and np.isnan(values).all():
            raise NotAvailable("plot() is not available: no value exceeds its noise")
        what = " x ".join(facts.factors) if self.score == COUNT else f"terms with {facts.measured}"
        return ranked(
            [f"{place}. {name}" for place, name in enumerate(joined(self.index), start=1)],
            values,
            (ends["lower"].to_numpy(), ends["upper"].to_numpy()),
            f"{self.score} of {what}, noisy",
            empty="nothing was above the threshold",
            **self._picture(ax, caption),
        )

    def _size(self) -> str:
        return f"{len(self.release.places)} of {self.ncandidates}"
