"""Estimates derived from a result at no cost: their table and picture, tests of hypotheses."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain
from typing import ClassVar

import numpy as np
import pandas as pd
from scipy.special import chdtrc, ndtr

from dpmodels.arguments import boolean
from dpmodels.errors import ArgumentError, did_you_mean, quoted, shorten
from dpmodels.formula import Design
from dpmodels.formula.parse import quote, requoted, variables_in
from dpmodels.formula.response import levels_of_fixed
from dpmodels.inference.least_squares import CoefficientsLaw
from dpmodels.inference.screening_tests import adjusted_pvalues, simultaneous
from dpmodels.report import Report
from dpmodels.results.base import Printed, Result, checked_level
from dpmodels.results.call import INTERCEPT
from dpmodels.results.estimate_table import EstimateTable, legend
from dpmodels.typing import Axes, Floats
from dpmodels.verbs import documented


@dataclass(frozen=True, repr=False, eq=False)
class Estimates(Printed):
    """Numbers derived from a fit: post-processing at no privacy cost.

    Parameters
    ----------
    fit : Result
        The fit that they are derived from, with its guarantee.
    title : str
        The printed title.
    table : DataFrame
        One row an estimate or a test: columns that name it, then of ``estimate, std_error,
        statistic, df, p_value, conf_low, conf_high`` those that there are.
    notes : tuple of str
        The printed notes.
    level : float
        Coverage of the intervals, in (0, 1).
    ratio : bool
        Whether estimates and intervals are of ratios; standard errors are of their logarithms.
    test : {"z", "t", "F", "chi2"}
        What the statistic is.
    facts : tuple of (str, str)
        Lines of the heading, such as at which values the estimates stand.

    Examples
    --------
    >>> import dpmodels as dp
    >>> from dpmodels.models.lm import dp_lm
    >>> cb = dp.codebook(wage=(0, 100), educ=(0, 20), sex=["F", "M"])
    >>> rows = {"wage": [31, 64] * 500, "educ": [9, 16] * 500, "sex": ["F", "M", "M", "F"] * 250}
    >>> fit = dp_lm("wage ~ educ + sex", rows, codebook=cb, eps=10.0)
    >>> table = fit.anova()
    >>> table.tidy()["term"].tolist(), table.summary().as_markdown().count("Term")
    (['sex', 'educ'], 1)
    """

    fit: Result
    title: str
    table: pd.DataFrame
    notes: tuple[str, ...]
    level: float = 0.95
    ratio: bool = False
    test: str = "z"
    facts: tuple[tuple[str, str], ...] = ()

    @property
    def simulated(self) -> bool:
        """Whether the fit is of a simulation."""
        return self.fit.simulated

    def tidy(self) -> pd.DataFrame:
        """Return the table, with the column names of R's broom."""
        return self.table.copy()

    def _report(self) -> Report:
        return replace(super()._report(), legend=legend(self.fit.call.codebook))

    def _reading(self) -> str:
        return self.fit._reading()

    def __repr__(self) -> str:
        return f"<Estimates {self.title!r} of {self.fit.call.formula!r}: {len(self.table)} rows>"


def exponentiated(table: pd.DataFrame) -> pd.DataFrame:
    """Return a tidy table with exponentials of estimates and ends; errors stay as they are."""
    names = ("estimate", "noise_low", "noise_high", "conf_low", "conf_high")
    table = table.drop(columns="unit", errors="ignore")
    with np.errstate(over="ignore"):
        return table.assign(**{name: np.exp(table[name]) for name in names if name in table})


def ratios_where(exponentiate: bool, table: pd.DataFrame) -> pd.DataFrame:
    """Return a tidy table, exponentiated if requested."""
    return exponentiated(table) if boolean("exponentiate", exponentiate) else table


class DefaultPlot(Result):
    """A result that is drawn as its table of estimates."""

    # The name of the estimates.
    _estimated: ClassVar[str] = "Estimate"

    @property
    def _plotted(self) -> tuple[EstimateTable, str]:
        """The estimates that the picture shows, and what they are."""
        return self.estimates, self._estimated

    @documented
    def plot(self, level: float = 0.95, ax: Axes | None = None, *, caption: bool = True) -> Axes:
        """Draw the estimates, with noise intervals and confidence intervals where available."""
        from dpmodels.plots.coefficients import estimates

        source, title = self._plotted
        table = source.tidy(checked_level(level))
        noise, confidence = (
            table[[f"{kind}_low", f"{kind}_high"]].to_numpy() for kind in ("noise", "conf")
        )
        return estimates(
            table["estimate"].to_numpy(),
            noise,
            confidence,
            labels=[", ".join(map(str, key)) for key in source.keys.itertuples(index=False)],
            title=title,
            level=level,
            **self._picture(ax, caption),
        )


# Tests of linear hypotheses about coefficients, one by one, together and by term.


def t_test(law: CoefficientsLaw, terms: Terms, constraints: object, level: float) -> pd.DataFrame:
    """Return one row a combination."""
    matrix, values, labels = read_constraints(terms, constraints)
    ends = law.intervals(matrix, level)
    z = law.roots(matrix, values)
    table = {
        "estimate": matrix @ law.params,
        "value": values,
        "std_error": law.errors(matrix),
        "statistic": z,
        "p_value": 2 * ndtr(-np.abs(z)),
        "lower": ends[:, 0],
        "upper": ends[:, 1],
    }
    return pd.DataFrame(table, index=pd.Index(labels))


def tested(
    law: CoefficientsLaw, directions: Floats, estimates: Floats, level: float, adjust: str
) -> dict[str, Floats]:
    """Return columns of estimates that are combinations to first order, nan where not identified.

    An interval is that of the combination, about the estimate; p-values and intervals are adjusted
    for their number.
    """
    offset = estimates - directions @ law.params
    z = law.roots(directions, -offset)
    ends = law.intervals(directions, simultaneous(level, len(directions), adjust)) + offset[:, None]
    table = {
        "estimate": estimates,
        "std_error": law.errors(directions),
        "statistic": z,
        "p_value": adjusted_pvalues(2 * ndtr(-np.abs(z)), adjust),
        "conf_low": ends[:, 0],
        "conf_high": ends[:, 1],
    }
    identified = law.identifies(directions)
    return {name: np.where(identified, values, np.nan) for name, values in table.items()}


def wald_test(law: CoefficientsLaw, terms: Terms, constraints: object) -> pd.Series[float]:
    """Return statistic, degrees of freedom and p-value; nan where one is not identified."""
    matrix, values, _ = read_constraints(terms, constraints)
    if np.linalg.matrix_rank(matrix) < len(matrix):
        raise ArgumentError(
            f"constraints: {len(matrix)} of them are linearly dependent; leave out those that "
            "follow from others"
        )
    numbers = [_statistic(law, matrix, values), float(len(matrix))]
    numbers.append(float(chdtrc(numbers[1], numbers[0])))
    return pd.Series(numbers, index=["statistic", "df", "p_value"], name="wald_test")


def anova(law: CoefficientsLaw, terms: Terms, typ: int) -> pd.DataFrame:
    """Return one row a term: ``term, statistic, df, p_value, identified``."""
    rows = []
    for term in terms.columns:
        matrix = terms.matrix(term) if typ == 3 else _marginal(law, terms, term)
        statistic = _statistic(law, matrix, np.zeros(len(matrix)))
        rows.append((term, statistic, len(matrix)))
    table = pd.DataFrame(rows, columns=["term", "statistic", "df"])
    table["p_value"] = chdtrc(table["df"], table["statistic"])
    return table.assign(identified=table["statistic"].notna())


def _statistic(law: CoefficientsLaw, matrix: Floats, values: Floats) -> float:
    if not (np.isfinite(matrix).all() and law.identifies(matrix).all()):
        return math.nan
    return max(law.distance(matrix, values), 0.0)


def _marginal(law: CoefficientsLaw, terms: Terms, term: str) -> Floats:
    """Return the coefficients of a term as they would be without the terms that contain it.

    With V the covariance, t its coefficients and r those of the terms above: ``t - V_tr V_rr⁻¹ r``
    is uncorrelated with r, so it is the generalised least squares estimate of t where r is 0, and
    its Wald statistic that of both less that of r [1]_.

    .. [1] Fox, J. and Weisberg, S. (2019). An R Companion to Applied Regression. Third edition.
    """
    target, above = terms.matrix(term), terms.matrix(*terms.above(term))
    if not len(above):
        return target
    covariance = law.covariance()
    sds = np.sqrt(np.diagonal(above @ covariance @ above.T))
    if not (np.isfinite(sds) & (sds > 0)).all():
        return np.full_like(target, math.nan)
    scaled = above / sds[:, None]
    shared = scaled @ covariance
    shares = np.linalg.lstsq(shared @ scaled.T, shared @ target.T, rcond=None)[0]
    return np.asarray(target - shares.T @ scaled)


# Linear constraints on coefficients, as users write them.


def read_constraints(terms: Terms, constraints: object) -> tuple[Floats, Floats, list[str]]:
    """Return matrix, right-hand sides and labels of linear constraints."""
    names = list(terms.names)
    if isinstance(constraints, list) and any(isinstance(part, str) for part in constraints):
        parsed = [read_constraints(terms, part) for part in constraints]
        matrices, right_sides, labels = zip(*parsed, strict=True)
        return np.vstack(matrices), np.concatenate(right_sides), [*chain(*labels)]
    if isinstance(constraints, str) and constraints not in names:
        constraints = requoted(constraints)
    if not isinstance(constraints, str):
        matrix, values = _numbers(constraints)
    elif constraints not in names and (
        term := terms.named(constraints) or terms.named(quote(constraints))
    ):
        matrix = terms.matrix(term)
        values = np.zeros(len(matrix))
    else:
        matrix, values = _spelt(terms, constraints)
    _require_constraints(matrix, values, names)
    return matrix, values, [_label(names, row) for row in matrix]


def _require_constraints(matrix: Floats, values: Floats, names: list[str]) -> None:
    shaped = matrix.ndim == 2 and matrix.shape[1] == len(names) and len(matrix) == len(values)
    if not (shaped and len(matrix) and np.isfinite(matrix).all() and np.isfinite(values).all()):
        raise ArgumentError(
            f"constraints= of shape {matrix.shape}: expected rows of {len(names)} finite numbers, "
            f"one a coefficient of {shorten(str(names), 120)}, and finite values"
        )
    if not matrix.any(axis=1).all():
        raise ArgumentError("constraints=: one of them names no coefficient; leave it out")


def _label(names: list[str], row: Floats) -> str:
    parts = [
        f"{'-' if c < 0 else '+'} {'' if abs(c) == 1 else f'{abs(c):g}*'}{name}"
        for c, name in zip(row.tolist(), names, strict=True)
        if c
    ]
    text = " ".join(parts)
    return text.removeprefix("+ ") if text.startswith("+") else text.replace("- ", "-", 1)


def _spelt(terms: Terms, constraints: str) -> tuple[Floats, Floats]:
    from patsy import DesignInfo, PatsyError

    names = list(terms.names)
    try:
        parsed = DesignInfo(names).linear_constraint(constraints)
    # IndexError for an empty text.
    except (PatsyError, ValueError, IndexError):
        words = re.findall(r"[^\W\d][\w.\[\]:]*", constraints)
        hints = (did_you_mean(word, names) for word in words if word not in names)
        hint = next(filter(None, hints), "")
        terms_text = f", or one term: {shorten(', '.join(terms.factors), 120)}"
        raise ArgumentError(
            f"constraints={shorten(repr(constraints))} cannot be read{hint}; "
            f"write 'a = 0' or 'a = b, c = 2' with names of {shorten(str(names), 120)}"
            f"{terms_text * bool(terms.factors)}"
        ) from None
    values = np.asarray(parsed.constants, float)[:, 0] + 0.0  # For -0
    return np.asarray(parsed.coefs, float), values


def _numbers(constraints: object) -> tuple[Floats, Floats]:
    left: object = constraints
    right: object = 0.0
    if isinstance(constraints, tuple) and len(constraints) == 2:
        left, right = constraints
    try:
        matrix = np.atleast_2d(np.asarray(left, dtype=np.float64))
        values = np.broadcast_to(np.asarray(right, dtype=np.float64).ravel(), len(matrix))
    except (TypeError, ValueError):
        raise ArgumentError(
            f"constraints={quoted(constraints)}: expected text such as 'a = 0', a matrix of "
            "numbers with one column a coefficient, or that matrix and the values to test"
        ) from None
    return matrix, values


# Which coefficients belong to which term of a formula.


@dataclass(frozen=True)
class Terms:
    """The terms of a right-hand side, and the coefficients that a model has of it."""

    design: Design
    names: tuple[str, ...]  # of all coefficients, the intercept first where there is one
    predictors: int = 1  # linear predictors, each with all of these: one a level of a multinomial

    @cached_property
    def factors(self) -> dict[str, tuple[str, ...]]:
        """The factors of each term by its name, in the order of the coefficients."""
        return {":".join(block.term): block.term for block in self.design.blocks}

    @cached_property
    def columns(self) -> dict[str, tuple[str, ...]]:
        """The coefficients of each term by its name."""
        columns: dict[str, tuple[str, ...]] = {}
        for block in self.design.blocks:
            term = ":".join(block.term)
            columns[term] = (*columns.get(term, ()), *block.names)
        return columns

    def matrix(self, *terms: str) -> Floats:
        """Return selectors of terms' coefficients, one a row, shape (selected, coefficients)."""
        positions = [self.names.index(name) for term in terms for name in self.columns[term]]
        selection = np.eye(len(self.names))[positions]
        return np.asarray(np.kron(np.eye(self.predictors), selection), dtype=np.float64)

    def above(self, term: str) -> list[str]:
        """Return the terms that contain a term: those with all of its factors and more."""
        term_factors = set(self.factors[term])
        return [name for name, factors in self.factors.items() if term_factors < set(factors)]

    def named(self, text: str) -> str | None:
        """Return the term that a name refers to, None without one.

        Either a term, its factors in any order; or a variable with a single main effect, as ``sex``
        where the formula has ``C(sex)``.
        """
        parts = sorted(part.strip() for part in text.split(":"))
        for term, factors in self.factors.items():
            if text == term or parts == sorted(factors):
                return term
        single = {term: factors[0] for term, factors in self.factors.items() if len(factors) == 1}
        named = {term: [*map(quote, variables_in(code))] for term, code in single.items()}
        matches = [term for term, variables in named.items() if variables == [text.strip()]]
        if len(matches) > 1:
            raise ArgumentError(
                f"{shorten(text)!r} is in several terms: write one of {shorten(str(matches), 120)}"
            )
        return matches[0] if matches else None


def fixed_rows(terms: Terms, fixed: Sequence[str]) -> tuple[dict[str, list[object]], Floats]:
    """Return factor and level of each fixed effect, and the combination of coefficients it is.

    The first factor holds the constant; the first level of each other one, which is 0, is left out.
    """
    factors, levels, rows = list[object](), list[object](), list[Floats]()
    for code in fixed:
        names, contrast = levels_of_fixed(terms.design, code)
        selected = contrast @ terms.matrix(code)
        constant = np.eye(len(terms.names))[terms.names.index(INTERCEPT)]
        selected = selected + constant if code == fixed[0] else (selected - selected[0])[1:]
        names = names if code == fixed[0] else names[1:]
        factors += [code] * len(names)
        levels += names
        rows.append(selected)
    return {"factor": factors, "level": levels}, np.vstack(rows)
