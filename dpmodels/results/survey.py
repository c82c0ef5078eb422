"""Results of randomised answers: estimated proportions, and a logistic regression."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property, reduce
from typing import Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

from dpmodels.arguments import real
from dpmodels.errors import ArgumentError, NotAvailable
from dpmodels.inference import response
from dpmodels.inference.links import LOGIT, Link
from dpmodels.inference.sandwich import NormalLaw
from dpmodels.postprocess.protocol import whole
from dpmodels.released import AnswersFitRelease, AnswersRelease
from dpmodels.results.base import per_row
from dpmodels.results.call import CoefficientsCall, TableCall
from dpmodels.results.coefficient_model import CoefficientModel
from dpmodels.results.count_tables import OneTable, interval_frame, require_factors
from dpmodels.results.derived_table import Estimates
from dpmodels.results.estimate_table import EstimateTable, table_of_estimates
from dpmodels.results.public_rows import PublicRows
from dpmodels.typing import Axes, Coder, DataArray, Floats
from dpmodels.verbs import documented

# How far from 1 the sum of a user's shares may be, for rounding.
DIGITS = 1e-6


@dataclass(frozen=True, repr=False, eq=False)
class SurveyResult(OneTable):
    """Shares of the truth behind randomised answers: released answers and public facts only.

    Notes
    -----
    `estimate` is unbiased and may lie outside 0 and 1 where noise is large; `likeliest` does not.
    Errors allow for weights and strata, as in a survey. :meth:`noise_int` covers the shares of
    these respondents' true answers, :meth:`conf_int` the population's; both are of shares among
    complete answers, clipped to 0 and 1. The population's of one question are Wilson's intervals
    for the answers, transformed by the device, also within levels that were not randomised; of
    several, and of rows that were randomised whole, estimate ± 1.96 standard errors. Noise
    intervals are normal ones.
    """

    release: AnswersRelease

    @property
    def rowwise(self) -> bool:
        """Whether whole rows were randomised, incomplete ones too, and not single questions."""
        return len(self.release.channels[0].law) > self._facts.cells

    @cached_property
    def _read(self) -> response.ReadAnswers:
        kind = response.ReadBits if self.release.unary else response.ReadAnswers
        return kind(self.release, self.release.adjacency.design_effect)

    @cached_property
    def _complete_cells(self) -> Floats:
        """The selector of complete answers' cells among all, shape (cells, truths)."""
        return np.eye(self._facts.cells, len(self._read.truths))

    def _shares(self, of: Floats, within: Floats | None = None) -> response.Shares:
        base = np.ones_like(of) if within is None else within
        return self._read.shares(of @ self._complete_cells, base @ self._complete_cells)

    @cached_property
    def _cells(self) -> response.Shares:
        return self._shares(np.eye(self._facts.cells))

    @property
    def estimate(self) -> DataArray:
        """Unbiased shares of complete answers; a dimension a question."""
        return self._facts.by_cell(self._cells.values, "estimate")

    @property
    def likeliest(self) -> DataArray:
        """Maximum-likelihood shares: not negative, with the sum 1; of bits the nearest ones.

        nan if the iteration for more than two levels did not converge, and where no answer is
        likely to be complete.
        """
        shares = self._complete_cells @ self._read.likeliest
        total = shares.sum()
        return self._facts.by_cell(shares / (total if total > 0 else np.nan), "likeliest")

    @property
    def counts(self) -> DataArray:
        """Estimated numbers of respondents: whole, not negative, adding up."""
        read = self._read
        truths = read.truths * read.complete
        return self._facts.by_cell(whole(truths, read.complete)[: self._facts.cells], "count")

    @property
    def ncomplete(self) -> float:
        """Number of complete answers: estimated where whole rows were randomised."""
        return float(self.counts.sum()) if self.rowwise else float(self._read.complete)

    @property
    def nincomplete(self) -> float:
        """Number of respondents, or rows, with an answer missing."""
        if self.rowwise:
            return self._read.complete - self.ncomplete
        return float(self.release.incomplete)

    @property
    def eps(self) -> float:
        """What all answers of one respondent cost together."""
        return math.fsum(channel.eps for channel in self.release.channels)

    def within(self, factors: str | Iterable[str]) -> pd.DataFrame:
        """Return shares within each level of some questions, with their errors.

        Parameters
        ----------
        factors : str or iterable of str
            Within whose levels shares add up to 1; R's `margin`.

        Returns
        -------
        DataFrame
            As :meth:`tidy`, a row a combination of all levels.

        Raises
        ------
        ArgumentError
            If one is not in the table, or all are.
        """
        conditions = require_factors(self._facts.factors, factors)
        if len(conditions) == len(self._facts.factors):
            raise ArgumentError("within=: all questions are named; leave at least one out")
        base = self._summed(conditions)
        shares = self._shares(np.eye(len(base.T)), base.T @ base)
        free = tuple(name for name in self._facts.factors if name not in conditions)
        return self._table(shares, self._facts.index, free, conditions)

    def margin(self, factors: str | Iterable[str]) -> pd.DataFrame:
        """Return the shares of some questions alone, as :meth:`tidy`; arguments of `within`."""
        variables = require_factors(self._facts.factors, factors)
        dimensions = zip(self._facts.factors, self._facts.levels, strict=True)
        levels = tuple(of for name, of in dimensions if name in variables)
        facts = TableCall(variables, levels)
        return self._table(self._shares(self._summed(variables)), facts.index, variables)

    def _summed(self, factors: tuple[str, ...]) -> Floats:
        """Return the matrix that sums cells over other questions, shape (summed cells, cells)."""
        facts = self._facts
        matrices = [
            np.eye(size) if name in factors else np.ones((1, size))
            for name, size in zip(facts.factors, facts.shape, strict=True)
        ]
        return reduce(lambda left, right: np.asarray(np.kron(left, right)), matrices)

    def _share_interval(
        self,
        shares: response.Shares,
        level: float,
        factors: tuple[str, ...],
        conditions: tuple[str, ...] = (),
    ) -> tuple[Floats, Floats]:
        """Return intervals: Wilson's of one question, among all or within levels not randomised."""
        if self.rowwise or len(factors) != 1:
            return shares.interval(level)
        channels = dict(zip(self._facts.factors, self.release.channels, strict=True))
        if any(channels[name].how for name in conditions):
            return shares.interval(level)
        return shares.score_interval(level, channels[factors[0]].truth)

    def _table(
        self,
        shares: response.Shares,
        index: pd.Index,
        factors: tuple[str, ...],
        conditions: tuple[str, ...] = (),
    ) -> pd.DataFrame:
        noise = shares.noise_interval(0.95)
        interval = self._share_interval(shares, 0.95, factors, conditions)
        values = {
            "answers": shares.answers,
            "estimate": shares.values,
            "std_error": np.sqrt(shares.variance),
            "noise_sd": np.sqrt(shares.noise),
            "private_share": shares.private,
            "noise_low": noise[0],
            "noise_high": noise[1],
            "conf_low": interval[0],
            "conf_high": interval[1],
            "design_effect": shares.design_effect,
        }
        return pd.DataFrame(values, index=index).reset_index()

    def _interval(self, level: float, *, population: bool) -> pd.DataFrame:
        ends = self._cells.noise_interval(level)
        if population:
            ends = self._share_interval(self._cells, level, self._facts.factors)
        return interval_frame(self._facts, ends)

    def independence(self) -> response.AnswersTest:
        """Test whether the true answers of two questions or more are independent.

        For equal weights, Pearson's chi-square on the randomised answers: independent devices
        preserve independence. Else Wald's, on the estimated shares with their covariance. ``kept``
        is the part of the respondents that would give as much information without devices.

        Raises
        ------
        NotAvailable
            If the table has one question.
        """
        if len(self._facts.shape) < 2:
            raise NotAvailable(
                "a test of independence needs two questions or more; the table has one"
            )
        return self._independence

    @cached_property
    def _independence(self) -> response.AnswersTest:
        facts, read = self._facts, self._read
        if self.rowwise or not read.simple:
            channels = self.release.channels
            truths = [read.likeliest] if self.rowwise else self._likeliest_margins
            efficiency = math.prod(map(response.kept_information, channels, truths))
            values, covariance = self._cells.values, read.covariance(self._cells.lines)
            return response.independence_of_shares(values, covariance, facts.shape, efficiency)
        table, margins = self.release.values.reshape(facts.shape), self._likeliest_margins
        return response.independence_of_answers(table, self.release.channels, margins)

    @property
    def _likeliest_margins(self) -> list[Floats]:
        shares, dims = self.likeliest, self.likeliest.dims
        others = ([dim for dim in dims if dim != question] for question in dims)
        return [shares.sum(summed).to_numpy() for summed in others]

    def goodness_of_fit(
        self, shares: Mapping[object, float] | Iterable[float]
    ) -> response.AnswersTest:
        """Test whether the true answers have given public shares.

        Parameters
        ----------
        shares : mapping or sequence
            One a level, above 0 and with the sum 1.

        Returns
        -------
        AnswersTest
            Pearson's chi-square on the answers, or Wald's where respondents differ in weight.

        Raises
        ------
        NotAvailable
            If the table has several questions, or answers with a bit for each level.
        ArgumentError
            If they are not such shares.
        """
        facts, read = self._facts, self._read
        if len(facts.shape) > 1:
            raise NotAvailable("goodness_of_fit() needs a table of one question; see margin()")
        if self.release.unary:
            raise NotAvailable(
                "goodness_of_fit() is not available for answers with a bit for each level, whose "
                "joint distribution is not in the table"
            )
        expected = _public_shares(shares, facts.levels[0])
        efficiency = response.kept_information(self.release.channels[0], read.likeliest)
        if self.rowwise or not read.simple:
            difference, covariance = (
                self._cells.values - expected,
                read.covariance(self._cells.lines),
            )
            return response.wald(difference, covariance, len(expected) - 1, efficiency)
        return response.fit_of_answers(self.release.values[0], read.given @ expected, efficiency)

    def _estimates(self) -> EstimateTable:
        facts = self._facts
        table = self._table(self._cells, facts.index, facts.factors)
        numbers = table[["estimate", "std_error", "noise_sd"]]
        further = {"answers": table["answers"], "likeliest": self.likeliest.to_numpy().ravel()}
        further |= {name: table[name] for name in ("private_share", "design_effect")}
        label = facts.variable
        return table_of_estimates(self, facts.index, further=further, labels=label, **numbers)

    def glance(self) -> pd.DataFrame:
        """Return one row about the whole table, with the test where there is one."""
        row = super().glance()
        if len(self._facts.factors) < 2:
            return row
        test = self.independence()
        return row.assign(statistic=test.statistic, df=test.df, p_value=test.pvalue)

    def _line(self) -> dict[str, object]:
        sizes = {"nobs": self.nobs, "ncomplete": self.ncomplete, "ngroups": self._facts.cells}
        return {**sizes, "local_eps": self.eps}

    @documented
    def plot(self, level: float = 0.95, ax: Axes | None = None, *, caption: bool = True) -> Axes:
        """Draw the shares of all cells with both intervals."""
        values, labels, title = self._cells.values, self._facts.labels, "Share of complete answers"
        return self._draw_intervals(values, ax, level, caption, labels=labels, title=title)

    def _size(self) -> str:
        return f"{self._facts.cells} cells"


def _public_shares(shares: object, levels: tuple[object, ...]) -> Floats:
    values = [shares.get(level) for level in levels] if isinstance(shares, Mapping) else shares
    numbers = [real(value) for value in values] if isinstance(values, Iterable) else []
    probabilities = np.array(numbers)
    is_whole = (probabilities > 0).all() and abs(probabilities.sum() - 1) < DIGITS
    if len(probabilities) != len(levels) or not is_whole:
        raise ArgumentError(
            f"shares=: expected one above 0 for each of the {len(levels)} levels, with the sum 1"
        )
    return probabilities


@dataclass(frozen=True, repr=False)
class SurveyFitResult(CoefficientModel):
    """A logistic regression of the truth behind randomised answers.

    Notes
    -----
    Coefficients solve the corrected score or, with ``method="likelihood"``, maximise the likelihood
    of the randomised answers; errors are robust (sandwich), within strata where there are some.
    :meth:`noise_int` is about logistic regression of these respondents' true answers; of the
    likelihood only if the model is correct, since otherwise the two fits weight respondents
    differently. :meth:`conf_int` is about the population's. nan where not identified.
    """

    call: CoefficientsCall
    release: AnswersFitRelease
    coder: Coder | None = field(default=None, repr=False)

    @property
    def params(self) -> pd.Series[float]:
        """Coefficients of the coded columns in their own units."""
        return self._series(self.release.coefficients, "params")

    @property
    def identified(self) -> bool:
        """Whether the answers identify all coefficients."""
        return bool(np.isfinite(self.release.covariance).all())

    @property
    def bse(self) -> pd.Series[float]:
        """Standard errors for the population: sampling and privacy noise, robust."""
        return self._series(_roots(self.release.covariance), "bse")

    @property
    def bse_noise(self) -> pd.Series[float]:
        """Standard deviations of what the device adds."""
        return self._series(_roots(self.release.noise_covariance), "bse_noise")

    @property
    def tvalues(self) -> pd.Series[float]:
        """Coefficients in standard errors."""
        return (self.params / self.bse).rename("tvalues")

    @property
    def pvalues(self) -> pd.Series[float]:
        """Two-sided p-values for a coefficient of 0."""
        return self._series(2 * ndtr(-np.abs(self.tvalues.to_numpy())), "pvalues")

    @property
    def llf(self) -> float:
        """Logarithm of the answers' probability; of weighted ones a pseudo-likelihood.

        Only ``method="likelihood"`` maximises it.
        """
        return self.release.log_likelihood

    @property
    def llnull(self) -> float:
        """The same with a constant alone."""
        return self.release.log_likelihood_null

    @property
    def pseudo_rsquared(self) -> float:
        """McFadden's: 1 less the ratio of the log-likelihood to that of a constant."""
        return 1 - self.llf / self.llnull if self.llnull < 0 else math.nan

    @property
    def classes(self) -> tuple[str, ...]:
        """The two levels of the response, the modelled one last."""
        return self.call.levels

    @property
    def ncomplete(self) -> float:
        """The number of respondents in the fit."""
        return float(self.release.complete)

    def cov_params(self) -> pd.DataFrame:
        """Return the covariance of the coefficients about the population's."""
        index = pd.Index(self.call.names, name="term")
        return pd.DataFrame(self.release.covariance, index, list(self.call.names))

    def _interval(self, level: float, *, population: bool) -> pd.DataFrame:
        sds = self.bse if population else self.bse_noise
        half = float(ndtri((1 + level) / 2)) * sds
        return pd.DataFrame({"lower": self.params - half, "upper": self.params + half})

    def _estimates(self) -> EstimateTable:
        names, identified = self.call.names, np.isfinite(self.bse)
        index = pd.Index(names, name="term")
        return table_of_estimates(self, index, labels=names, identified=identified)

    def ratios(self, level: float = 0.95) -> Estimates:
        """Return odds ratios with their intervals at a level: coefficients exponentiated."""
        return self._ratios(level)

    def _line(self) -> dict[str, object]:
        sizes = {"nobs": self.nobs, "ncomplete": self.ncomplete, "nterms": len(self.call.names)}
        facts = {"local_eps": self.release.channel.eps, "llf": self.llf, "llnull": self.llnull}
        return {**sizes, **facts}

    def plot(
        self,
        level: float = 0.95,
        ax: Axes | None = None,
        *,
        standardize: Literal["range"] | None = None,
        exponentiate: bool = False,
        caption: bool = True,
    ) -> Axes:
        """Draw the coefficients, or odds ratios, as :func:`dp.coefplot` does."""
        from dpmodels.results.coefficient_plot import coefplot

        return coefplot(
            self,
            standardize=standardize,
            exponentiate=exponentiate,
            level=level,
            ax=ax,
            caption=caption,
        )

    def _response(self, rows: PublicRows) -> Floats:
        return self._link.mean(rows.linear(self.release.coefficients))

    @property
    def _link(self) -> Link:
        return LOGIT

    @property
    def _expected(self) -> str:
        return f"P({self.call.levels[1]})"

    scores, fittedvalues, resid = per_row("predict(newdata)")

    def _law(self, method: str) -> NormalLaw:
        if not self.identified:
            raise NotAvailable(
                f"{method} is not available: the answers do not identify all coefficients"
            )
        return NormalLaw(self.call.names, self.release.coefficients, self.release.covariance)

    def _series(self, values: NDArray[np.floating], name: str) -> pd.Series[float]:
        return pd.Series(values, index=pd.Index(self.call.names, name="term"), name=name)

    def _size(self) -> str:
        return f"{len(self.call.names)} coefficients"


def _roots(covariance: Floats) -> Floats:
    return np.sqrt(np.maximum(np.diagonal(covariance), 0.0))
