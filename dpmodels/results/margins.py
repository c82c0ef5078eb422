"""The result of private margins of one table, and log-linear models of them."""

from __future__ import annotations

import math
import re
from abc import abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from typing import ClassVar

import numpy as np
import pandas as pd
from scipy.special import ndtr, ndtri

from dpmodels.codebook import Codebook
from dpmodels.errors import ArgumentError, FormulaError, FrameError, NotAvailable, quoted, shorten
from dpmodels.formula.expression import as_category, compile_factor
from dpmodels.formula.parse import parsed_formula
from dpmodels.formula.tally import MISSING
from dpmodels.inference.independence import MOST_CELLS, Independence
from dpmodels.inference.margins import LogLinearFit, from_sums, loglinear
from dpmodels.inference.proportions import DETECTION_SDS
from dpmodels.postprocess.residuals import Term, components, crossed
from dpmodels.released import CountsRelease, MarginsRelease
from dpmodels.results.base import Derivation, Result, Tabulated, checked_level
from dpmodels.results.call import INTERCEPT, DescribedCall, TableCall, joined, n_public_rows
from dpmodels.results.estimate_table import (
    EstimateTable,
    counted_as,
    joined_ends,
    table_of_estimates,
)
from dpmodels.results.margin import Margin, ReleasedMargins
from dpmodels.results.synth import table_of_release
from dpmodels.results.synthetic_source import SyntheticSource, columns_of
from dpmodels.results.table import TableResult
from dpmodels.typing import Axes, DataArray, Dataset, Floats
from dpmodels.verbs import documented


@dataclass(frozen=True, repr=False, eq=False)
class MarginTables(Result):
    """Margins one after another, each a table by itself."""

    further: ClassVar[tuple[str, ...]] = ("released", "proportion")

    @property
    @abstractmethod
    def terms(self) -> tuple[str, ...]:
        """The requested margins, as in a formula."""

    @abstractmethod
    def table(self, *factors: str) -> Margin | TableResult:
        """Return one margin."""

    @property
    @abstractmethod
    def _requested(self) -> tuple[TableCall, ...]:
        """Their variables and declared levels."""

    @property
    @abstractmethod
    def _tables(self) -> Sequence[Margin | TableResult]:
        """The margins as tables."""

    def _interval(self, level: float, *, population: bool) -> pd.DataFrame:
        return self._joined(
            table.conf_int(level) if population else table.noise_int(level)
            for table in self._tables
        )

    def _joined(self, frames: Iterable[pd.DataFrame]) -> pd.DataFrame:
        relabelled = [
            frame.set_axis(pd.Index(joined(frame.index), name="level", dtype=object))
            for frame in frames
        ]
        return pd.concat(relabelled, keys=list(self.terms), names=["margin", "level"])

    def _estimates(self) -> EstimateTable:
        tables = [margin.estimates for margin in self._tables]
        tidy = pd.concat([table.tidy() for table in tables], ignore_index=True)
        weighted = isinstance(self.release, CountsRelease)
        estimates = table_of_estimates(
            self,
            self.noise_int().index,
            further={name: tidy[name] for name in self.further},
            labels=[table.variable for table in self._requested for _ in range(table.cells)],
            unit="" if weighted else counted_as(self.release.adjacency),
            estimate=tidy["estimate"],
            std_error=tidy["std_error"],
            noise_sd=tidy["noise_sd"],
        )
        shares = {"proportion": joined_ends(tables, "proportion")}
        return replace(estimates, total=joined_ends(tables, "conf"), further_intervals=shares)

    @documented
    def plot(
        self, *factors: str, ax: Axes | None = None, level: float = 0.95, caption: bool = True
    ) -> Axes:
        """Draw one margin: counts with their noise intervals, or shares under a survey design.

        Parameters
        ----------
        *factors : str
            Its variables, as for :meth:`table`; the first requested one by default.
        level : float
            Coverage of the bars, in (0, 1).

        Raises
        ------
        ArgumentError, FormulaError
            If there is no such margin.
        """
        table = self.table(*factors) if factors else self._tables[0]
        return table.plot(ax, level, caption=caption)

    def _size(self) -> str:
        return f"{len(self._requested)} margins"


@dataclass(frozen=True, repr=False, eq=False)
class MarginsResult(MarginTables):
    """Consistent private margins: released values and public facts only.

    Notes
    -----
    :meth:`table` gives any margin inside the requested ones. Its `released` values are unbiased,
    may be negative, and have the same sums in every margin: intervals and tests use them. `counts`
    are whole and not negative; all of them have the same total, and a variable has the same counts
    in every margin of at most 10,000 cells. Margins of three variables also agree with that of all
    but the last. :meth:`noise_int` is of counts, :meth:`conf_int` of shares of the rows that are
    complete in the margin, by cell.
    """

    call: DescribedCall
    release: MarginsRelease

    @cached_property
    def source(self) -> ReleasedMargins:
        """The released components of all margins."""
        return ReleasedMargins(self.call, self.release)

    @property
    def factors(self) -> tuple[str, ...]:
        """All variables, in order of first mention."""
        return self.source.factors

    @property
    def terms(self) -> tuple[str, ...]:
        """The requested margins, as in a formula."""
        return tuple(":".join(table.factors) for table in self.call.tables)

    def table(self, *factors: str) -> Margin:
        """Return one margin.

        Parameters
        ----------
        *factors : str
            Its variables, or one formula or term, ``"~ a + b"``, ``"a:b"``: any that occur together
            in a requested margin.

        Returns
        -------
        Margin

        Raises
        ------
        ArgumentError, FormulaError
            If there is no such margin.
        """
        names = named_factors(self.call.codebook, self.factors, factors)
        return Margin(self.source, self._inside(names))

    def _inside(self, factors: tuple[str, ...]) -> Term:
        """Return the positions of variables; ArgumentError if no margin has them together."""
        term = tuple(sorted(map(self.factors.index, factors)))
        if not self.source.inside(term):
            raise ArgumentError(
                f"none of {self._size()} has {' and '.join(map(quoted, factors))} together; write "
                f"dp_margins('~ {shorten('*'.join(factors))}', ...), which costs another release"
            )
        return term

    def chi2_test(self, *factors: str, given: str | Iterable[str] = ()) -> Independence:
        """Test whether variables are independent, allowing for the noise.

        Parameters
        ----------
        *factors : str
            Two or more, which occur in a margin together with `given`.
        given : str or iterable of str
            Variables to condition on: the test is of all combinations of their levels at once. A
            combination with too few rows for the noise is left out, with its degrees of freedom.

        Returns
        -------
        Independence
            ``statistic, pvalue, df``, as of :meth:`TableResult.chi2_test`.

        Raises
        ------
        ArgumentError
            If there is no such margin, or there are fewer than two variables.

        Notes
        -----
        Where too few rows are detected above the noise there is no test; the p-value is conditional
        on a test being available. Where Laplace noise allows a test in fewer than one release in
        ten, it may reject at a level of 0.05 in some 0.15 of these.
        """
        conditions = (given,) if isinstance(given, str) else tuple(given)
        variables = named_factors(self.call.codebook, self.factors, factors)
        return self.table(*variables, *conditions).chi2_test(given=conditions)

    def loglin(self, formula: str) -> LogLinear:
        """Fit a log-linear model, with errors that count sampling and noise.

        Parameters
        ----------
        formula : str
            ``"~ a*b + c"``; with each term all terms inside it are in the model, as in R's
            ``loglin``. The variables of each occur together in a requested margin.

        Returns
        -------
        LogLinear

        Raises
        ------
        ArgumentError, FormulaError
            If a term is in no margin.
        NotAvailable
            If noise leaves a margin of the model without rows, or the table of
            its variables has more than 2,000 cells.

        Notes
        -----
        Where one margin has all variables, the model is of the rows that are complete in it. Else
        it is fitted to the margins of its terms, which are sufficient: missing values are then a
        level of their own where their count is detected above 0, and the fit is not tested.
        Coefficients are those of treatment coding, the first level of each variable the base.
        """
        terms = named_terms(self.call.codebook, self.factors, formula)
        for term in terms:
            self._inside(term)
        return loglin(self.source, formula, terms)

    def to_xarray(self) -> Dataset:
        """Return the requested margins, ``count[a:b]``, and unbiased, ``released[a:b]``."""
        import xarray as xr

        tables = list(zip(self.terms, self._tables, strict=True))
        counts = {f"count[{name}]": margin.counts for name, margin in tables}
        released = {f"released[{name}]": margin.released for name, margin in tables}
        return xr.Dataset({**counts, **released})

    def _synth(self, structure: str) -> Derivation:
        if not isinstance(self.release, MarginsRelease):
            raise FrameError("release: expected that of dp_margins")
        columns = columns_of(self.call)
        return table_of_release(SyntheticSource(self.call, self.release, columns), structure)

    derivations: ClassVar = {"synth": _synth}

    @property
    def _requested(self) -> tuple[TableCall, ...]:
        return self.call.tables

    @property
    def _tables(self) -> list[Margin]:
        return [Margin(self.source, term) for term in self.source.terms]

    def _line(self) -> dict[str, object]:
        n_rows = n_public_rows(self.release)
        return {
            "nobs": np.nan if n_rows is None else n_rows,
            "nmargins": len(self.source.terms),
            "ncells": sum(table.cells for table in self.call.tables),
        }


# Variables and terms of a release of margins, by name or formula.


def named_terms(
    book: Codebook, factors: Sequence[str], formula: str
) -> tuple[tuple[str, ...], ...]:
    """Return the terms of a formula on released variables."""
    parsed = parsed_formula(formula, factors)
    if parsed.response or not parsed.predictors:
        raise FormulaError(
            f"formula {shorten(parsed.text)!r}: expected terms without a left side, such as "
            f"'~ {shorten('*'.join(factors[:2]))}'"
        )
    codes = (
        [as_category(compile_factor(factor, book), factor).code for factor in term]
        for term in parsed.predictors
    )
    return tuple(tuple(_released(code, factors) for code in term) for term in codes)


def named_factors(
    book: Codebook, factors: Sequence[str], names: tuple[str, ...]
) -> tuple[str, ...]:
    """Return released variables, each named once, or those of one formula or term."""
    (text,) = names if len(names) == 1 else ("",)
    if isinstance(text, str) and text not in factors and re.search("[~:]", text):
        terms = named_terms(book, factors, text if "~" in text else f"~ {text}")
        return tuple(dict.fromkeys(factor for term in terms for factor in term))
    if not names:
        raise ArgumentError(f"no variable is named; write one or more of {_listed(factors)}")
    variables = tuple(_released(name, factors) for name in names)
    duplicate = next((name for name in variables if variables.count(name) > 1), None)
    if duplicate is not None:
        raise ArgumentError(f"{quoted(duplicate)} is named twice; write each variable once")
    return variables


def _released(name: object, factors: Sequence[str]) -> str:
    if not isinstance(name, str) or name not in factors:
        raise ArgumentError(
            f"{quoted(name)} is in no margin; write one or more of {_listed(factors)}, "
            "each by itself, or a term of them"
        )
    return name


def _listed(factors: Sequence[str]) -> str:
    return shorten(", ".join(map(repr, factors)))


# A log-linear model of one margin of a release.


@dataclass(frozen=True, repr=False, eq=False)
class LogLinear(Tabulated):
    """A log-linear model of private counts: released values and public facts only.

    Parameters
    ----------
    margin : Margin
        The modelled margin.
    formula : str
        The model.
    names : tuple of str
        Of the coefficients.
    model : LogLinearFit
        Coefficients and their covariance, by place.
    shape : tuple of int
        Levels of each variable in the model; one more than declared where missing values are a
        level.

    Notes
    -----
    Standard errors count sampling and noise, `bse_noise` the noise alone. The test of the fit
    counts both; the deviance is that of the noisy counts, and exceeds a chi-square variable by what
    the noise adds. A model fitted to several margins has neither.
    """

    margin: Margin
    formula: str
    names: tuple[str, ...]
    model: LogLinearFit
    shape: tuple[int, ...]

    @cached_property
    def params(self) -> pd.Series[float]:
        """Coefficients of the logarithm of the expected count."""
        return pd.Series(self.model.params, index=list(self.names))

    @property
    def bse(self) -> pd.Series[float]:
        """Standard errors, of sampling and noise."""
        return pd.Series(np.sqrt(np.diagonal(self.model.cov)), index=list(self.names))

    @property
    def bse_noise(self) -> pd.Series[float]:
        """Standard errors of the noise alone: the distance to the coefficients of these rows."""
        return pd.Series(np.sqrt(np.diagonal(self.model.noise_cov)), index=list(self.names))

    @property
    def tvalues(self) -> pd.Series[float]:
        """Coefficients over their standard errors."""
        return self.params / self.bse

    @property
    def pvalues(self) -> pd.Series[float]:
        """Two-sided p-values of coefficients of 0, by the normal distribution."""
        return pd.Series(2 * ndtr(-np.abs(self.tvalues)), index=list(self.names))

    def cov_params(self) -> pd.DataFrame:
        """Return the covariance of the coefficients."""
        return pd.DataFrame(self.model.cov, list(self.names), list(self.names))

    @documented
    def conf_int(self, level: float = 0.95) -> pd.DataFrame:
        """Return intervals of the population's coefficients: noise and sampling."""
        return self._ends(self.bse, level)

    @documented
    def noise_int(self, level: float = 0.95) -> pd.DataFrame:
        """Return intervals of the coefficients of these rows: privacy noise only."""
        return self._ends(self.bse_noise, level)

    def _ends(self, errors: pd.Series[float], level: float) -> pd.DataFrame:
        half = float(ndtri((1 + checked_level(level)) / 2)) * errors
        return pd.DataFrame({"lower": self.params - half, "upper": self.params + half})

    @property
    def df_resid(self) -> int:
        """Cells less coefficients."""
        return self.model.df

    @property
    def deviance(self) -> float:
        """Twice the log-likelihood lost against a coefficient a cell, noise included."""
        return self.model.deviance

    @property
    def fitted(self) -> DataArray:
        """Expected counts of the complete rows, by cell."""
        declared = tuple(map(slice, self.margin.facts.shape))
        values = self.model.fitted.reshape(self.shape)[declared]
        return self.margin.facts.by_cell(values * self.margin.fit.effect, "fitted")

    @property
    def _source(self) -> ReleasedMargins:
        return self.margin.fit

    def _estimates(self) -> EstimateTable:
        return table_of_estimates(self, pd.Index(self.names, name="term"))

    def glance(self) -> pd.DataFrame:
        """Return one row: deviance, and the test of the fit that counts the noise."""
        model = self.model
        row = {"deviance": model.deviance, "df": model.df, "statistic": model.statistic}
        return pd.DataFrame([{**row, "p_value": model.pvalue}])

    def plot(self, ax: Axes | None = None, level: float = 0.95, *, caption: bool = True) -> Axes:
        """Draw the coefficients but the constant with both intervals.

        Parameters are those of :meth:`MeanResult.plot`.
        """
        names = np.array(self.names)
        rows, look = names != INTERCEPT, {"title": "Coefficient (log count)"}
        look["labels"] = names[rows].tolist()
        return self._draw_intervals(self.params, ax, level, caption, rows=rows, **look)

    def __repr__(self) -> str:
        return f"<LogLinear {self.formula!r}: {len(self.names)} coefficients of {self.margin!r}>"


def loglin(source: ReleasedMargins, formula: str, terms: tuple[tuple[str, ...], ...]) -> LogLinear:
    """Fit a log-linear model with the given terms and all terms inside them.

    Fitted to the table of all its variables where a margin has them, of the rows complete in it;
    else to the margins of its terms. Missing values are then a level, except of variables whose
    number of missing values is not distinguished from 0.
    """
    factors = dict.fromkeys(factor for term in terms for factor in term)
    margin = Margin(source, tuple(sorted(map(source.factors.index, factors))))
    parts = components(tuple(sorted(map(source.factors.index, term))) for term in terms)
    sizes = tuple(source.sizes[i] for i in margin.term)
    size = math.prod(sizes)
    if size > MOST_CELLS:
        raise NotAvailable(
            f"the table of {margin.name!r} has {size:,} cells with those of missing values, and "
            f"log-linear models are fitted to {MOST_CELLS:,} at most; leave out variables"
        )
    if source.inside(margin.term):
        names, coded = _coded(margin, parts, margin.facts.shape, margin.facts.shape)
        counts = margin.released.to_numpy().ravel() / source.effect
        model = loglinear(counts, coded, *margin.drawn())
        return LogLinear(margin, " ".join(formula.split()), names, model, margin.facts.shape)
    missing = {i: float(source.unbiased((i,))[-1]) for i in margin.term}
    n_levels = tuple(
        source.sizes[i] - (count < DETECTION_SDS * source.noise.cell_sd((i,)))
        for i, count in missing.items()
    )
    names, summing = _coded(margin, parts, n_levels, sizes)
    cells = np.ix_(*map(np.arange, n_levels))
    rows = np.arange(size).reshape(sizes)[cells].ravel()
    noise = source.noise.divided(source.effect)
    noise_columns, _ = noise.drawn(margin.term, [np.arange(n) for n in sizes])
    sums = summing.T @ source.unbiased(margin.term).ravel() / source.effect
    model = from_sums(sums, summing[rows], summing.T @ noise_columns)
    return LogLinear(margin, " ".join(formula.split()), names, model, n_levels)


def _coded(
    margin: Margin, parts: tuple[Term, ...], n_levels: tuple[int, ...], sizes: tuple[int, ...]
) -> tuple[tuple[str, ...], Floats]:
    """Return names and columns of treatment coding, shape (cells, coefficients).

    `sizes` are the levels of each variable; the first `n_levels` have coefficients.
    """
    names, blocks, facts = list[str](), [], margin.facts
    of_factor = {
        i: [f"{factor}[T.{level}]" for level in (*levels, MISSING)[1:n_used]]
        for i, factor, levels, n_used in zip(
            margin.term, facts.factors, facts.levels, n_levels, strict=True
        )
    }
    for part in parts:
        names += [
            ":".join(labels) or INTERCEPT for labels in product(*(of_factor[i] for i in part))
        ]
        factors = (
            np.eye(size)[:, 1:n_used] if i in part else np.ones((size, 1))
            for i, size, n_used in zip(margin.term, sizes, n_levels, strict=True)
        )
        blocks.append(crossed(factors))
    return tuple(names), np.hstack(blocks)
