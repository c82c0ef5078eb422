"""Results as columns of a table: estimates by row, and statistics of the whole result."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import singledispatch
from typing import Any, Final

import numpy as np
import pandas as pd

from dpmodels.errors import ArgumentError, quoted, shorten
from dpmodels.released import CoefficientsRelease, CountsRelease
from dpmodels.results.base import Result
from dpmodels.results.bounds import QuantileResult
from dpmodels.results.call import INTERCEPT, CoefficientsCall, release_row
from dpmodels.results.classifiers import MultinomialResult, SVMResult
from dpmodels.results.derived_table import exponentiated
from dpmodels.results.glm import GLMResult
from dpmodels.results.groups import GroupedResult, TTestResult, VarResult
from dpmodels.results.lm import LMResult
from dpmodels.results.survey import SurveyFitResult, SurveyResult
from dpmodels.typing import Floats

# The numbers of a cell, under the names of tidy().
NUMBERS: Final = (
    *("estimate", "std_error", "noise_sd", "statistic", "p_value"),
    *("noise_low", "noise_high", "conf_low", "conf_high"),
)
NOT_IDENTIFIED: Final = "not identified"
LOST: Final = "lost in noise"
COEFFICIENTS: Final = "Coefficients"
ACCEPTED: Final = (
    "linear, logistic and Poisson regressions, support vector machines, means, variances, t-tests, "
    "quantiles, surveys, correlations and principal components"
)


@dataclass(frozen=True, eq=False)
class Column:
    """One column: the estimates of a result by row."""

    result: Result
    kind: str  # The name of the model
    response: str  # The response or the described variable; empty without one
    part: str  # What its rows are
    # By row `NUMBERS`, nan where one is missing; ``open``, text printed instead of numbers; and
    # ``spread``, to whose second digit an estimate is printed.
    cells: pd.DataFrame
    # Statistics of the whole result with their noise sds: nan if not known, 0 without noise.
    stats: Mapping[str, tuple[Any, float]]
    component: str = ""  # Which part of the result it is, where that has several columns
    link: str = ""  # The name of its exponentiated coefficients; empty without one
    form: str = "number"  # How estimates are printed: "number", "date" or "step"
    digits: int = 3  # Significant digits of an estimate without a known error
    note: str = ""  # A note printed below the table
    head: str = ""
    above: str = ""  # The spanner above the heading
    number: int = 0  # The index of its result
    exponential: bool = False

    @property
    def model(self) -> str:
        """The name of its result."""
        return self.above if self.component else self.head

    def exponentiated(self) -> Column:
        """Return the column as ratios, with delta-method errors and unchanged tests."""
        if not self.link:
            return self
        cells = exponentiated(self.cells)
        for name in ("std_error", "noise_sd", "spread"):
            cells[name] *= cells["estimate"]
        return replace(self, cells=cells, kind=f"{self.kind}, {self.link}", exponential=True)


@singledispatch
def columns_of(result: object, level: float) -> tuple[Column, ...]:
    """Return the columns of a result with intervals of a level; ArgumentError where it has none."""
    raise ArgumentError(
        f"an object of type {type(result).__name__} cannot be a column of a table; expected "
        f"{ACCEPTED}"
    )


def cells_of(
    names: Sequence[str],
    numbers: Mapping[str, object],
    identified: object = True,
    why: str = NOT_IDENTIFIED,
) -> pd.DataFrame:
    """Return numbers by row, and the reason where they are not identified."""
    index = pd.Index(np.array(names, dtype=object), name="term")
    arrays = {name: np.asarray(values, dtype=np.float64) for name, values in numbers.items()}
    columns = {name: np.broadcast_to(values, len(names)) for name, values in arrays.items()}
    table = pd.DataFrame(columns, index=index).reindex(columns=[*NUMBERS, "spread"])
    errors = table["std_error"].where(np.isfinite(table["std_error"]), table["noise_sd"])
    table["spread"] = table["spread"].fillna(errors)
    has_estimate = np.isfinite(table["estimate"].to_numpy())
    is_identified = has_estimate & np.asarray(identified, dtype=bool)
    table.loc[~is_identified] = np.nan
    return table.assign(open=np.where(is_identified, "", why))


def stats_of(result: Result, **sds: float) -> dict[str, tuple[object, float]]:
    """Return the columns of glance() besides the release, with noise sds where known."""
    line = result.glance().iloc[0].to_dict()
    of_release = release_row(result.release)
    sds = {"nobs": 0.0 if result.release.rows is not None else math.nan, **sds}
    stats = {str(name): value for name, value in line.items() if name not in of_release}
    return {name: (value, sds.get(name, math.nan)) for name, value in stats.items()}


def one_column(
    fit: Result, kind: str, response: str, part: str, cells: pd.DataFrame, **facts: Any
) -> tuple[Column, ...]:
    """Return a column with the statistics of the whole result."""
    return (Column(fit, kind, response, part, cells, stats_of(fit), **facts),)


def _numbers(fit: Result, level: float) -> Any:
    return fit.estimates.tidy(level)[list(NUMBERS)]


@columns_of.register
def _linear(fit: LMResult, level: float) -> tuple[Column, ...]:
    table = fit.tidy()
    sd, rsquared_sd = fit.release.noise.count, fit.linear.rsquared[1]
    is_weighted = fit.model.weights is not None or fit.model.sampled
    count_sd = 0.0 if is_weighted else sd
    kind = "WLS" if is_weighted else "OLS"
    cells = cells_of(list(table["term"]), _numbers(fit, level), fit.identified)
    stats = stats_of(fit, nobs=count_sd, r_squared=rsquared_sd, adj_r_squared=rsquared_sd)
    return (Column(fit, kind, fit.linear.response, COEFFICIENTS, cells, stats),)


LINKED: Final = {
    "binomial": ("logit", "odds ratios"),
    "poisson": ("Poisson", "rate ratios"),
    "ordinal": ("ordinal logit", "odds ratios"),
}


def _bought(release: object) -> bool:
    return getattr(release, "curvature", ()) is not None


@columns_of.register
def _generalised(fit: GLMResult, level: float) -> tuple[Column, ...]:
    kind, link = LINKED[fit.call.family]
    table, identified, digits = fit.tidy(), fit.identified.to_numpy(), 3
    numbers, note = _numbers(fit, level), fit.why_not
    if not identified.any() and not isinstance(fit.release, CountsRelease):
        numbers = _as_released(fit, table)
        if not _bought(fit.release):
            identified, digits = np.ones_like(identified), 1
            note = f"as released, shrunk by a ridge, without standard errors: {note}"
    cells = cells_of(list(table["term"]), numbers, identified)
    facts = {"link": link, "digits": digits, "note": note}
    return one_column(fit, kind, _modelled(fit.call), COEFFICIENTS, cells, **facts)


@columns_of.register
def _by_level(fit: MultinomialResult, level: float) -> tuple[Column, ...]:
    table, identified, note = fit.tidy(), fit.linear.identified, fit.why_not
    numbers = _numbers(fit, level)
    has_errors = identified.any() or _bought(fit.release)
    if not has_errors:
        identified, note = np.ones_like(identified), f"as released, without standard errors: {note}"
    reference, *outcomes = fit.classes
    response = LEVEL.sub(r"\g<factor>", fit.call.response)
    of_levels = f"levels of {response} against {reference}"
    note = f"{of_levels}; {note}" if note else of_levels
    facts = {"link": "relative risk ratios", "digits": 3 if has_errors else 1, "note": note}
    columns = list[Column]()
    for outcome in outcomes:
        in_level = (table["y_level"] == outcome).to_numpy()
        level_numbers = {name: np.asarray(values)[in_level] for name, values in numbers.items()}
        cells = cells_of(list(fit.call.names), level_numbers, identified[in_level])
        modelled = f"{outcome} against {reference}"
        columns += one_column(
            fit, "multinomial logit", modelled, COEFFICIENTS, cells, component=outcome, **facts
        )
    return tuple(columns)


def _as_released(fit: GLMResult | SVMResult, table: pd.DataFrame) -> dict[str, object]:
    call = fit.call.held_in(fit.release.ball)
    noise = released_noise(call, fit.release)
    return {"estimate": table["estimate"], **({} if noise is None else {"noise_sd": noise})}


def _modelled(call: CoefficientsCall) -> str:
    level = LEVEL.fullmatch(call.response)
    if level is None or not call.levels:
        return str(call.response)
    is_plain = level["level"] in ("1", "1.0", "True")
    return level["factor"] if is_plain else f"{level['factor']}[{level['level']}]"


@columns_of.register
def _vectors(fit: SVMResult, level: float) -> tuple[Column, ...]:
    table = fit.tidy()
    cells = cells_of(list(table["term"]), _as_released(fit, table))
    note = "coefficients of a classifier, shrunk towards 0 by a ridge; they have no standard errors"
    response = _modelled(fit.call)
    return one_column(fit, "SVM", response, COEFFICIENTS, cells, digits=1, note=note)


@columns_of.register
def _answers_fit(fit: SurveyFitResult, level: float) -> tuple[Column, ...]:
    table = fit.tidy()
    cells = cells_of(list(table["term"]), _numbers(fit, level), np.isfinite(fit.bse))
    kind, response = "logit of answers", _modelled(fit.call)
    return one_column(fit, kind, response, COEFFICIENTS, cells, link="odds ratios")


@columns_of.register
def _means(fit: GroupedResult, level: float) -> tuple[Column, ...]:
    kind = "variance" if isinstance(fit, VarResult) else "mean"
    facts = fit._facts
    labels, by = (facts.labels if facts.factors else ["all rows"]), ", ".join(facts.factors)
    cells = cells_of(labels, _numbers(fit, level), why=LOST)
    form = "date" if facts.date and kind == "mean" else "number"
    part = f"Groups: {by}" if by else "Groups"
    return one_column(fit, kind, facts.measured, part, cells, form=form)


@columns_of.register
def _t_test(fit: TTestResult, level: float) -> tuple[Column, ...]:
    cells = cells_of([fit.term], _numbers(fit, level), why=LOST)
    part = f"Differences: {fit._facts.factors[0]}" if fit._facts.factors else "Groups"
    return one_column(fit, "t-test", fit._facts.measured, part, cells)


@columns_of.register
def _quantiles(fit: QuantileResult, level: float) -> tuple[Column, ...]:
    facts, table = fit._facts, fit.tidy()
    percentages = [f"{100 * prob:g}%" for prob in fit.probs]
    rows = percentages
    if facts.factors:
        rows = [f"{label}, {percent}" for label in facts.labels for percent in percentages]
    numbers = {"estimate": table["estimate"]}
    spread = np.abs(table["estimate"]) / 10
    if fit.level is not None:
        spread = np.minimum(spread, (table["conf_high"] - table["conf_low"]) / 4)
    if fit.level == level:
        numbers |= {"conf_low": table["conf_low"], "conf_high": table["conf_high"]}
    cells = cells_of(rows, {**numbers, "spread": spread}, why=LOST)
    form = "date" if facts.date else "number" if facts.step is None else "step"
    part = f"Quantiles: {', '.join(facts.factors)}" if facts.factors else "Quantiles"
    note = 'quantiles have intervals instead of standard errors: statistic="conf_int"'
    return one_column(fit, "quantile", facts.measured, part, cells, form=form, note=note)


@columns_of.register
def _shares(fit: SurveyResult, level: float) -> tuple[Column, ...]:
    cells = cells_of(fit._facts.labels, _numbers(fit, level), why=LOST)
    factors = fit._facts.factors
    part = f"Levels: {', '.join(factors)}"
    return one_column(fit, "share", " + ".join(factors), part, cells)


# Rows of the table: merged in order of appearance, chosen by pattern, and labelled.

TIMES: Final = " × "
LEVEL: Final = re.compile(r"(?P<factor>.+?)\[(?:T\.)?(?P<level>.*)\]", re.DOTALL)


def factors(term: str) -> tuple[str, ...]:
    """Split a coefficient's name at the colons outside brackets and quotes.

    >>> factors("age:sex[F]"), factors("when[10:30]")
    (('age', 'sex[F]'), ('when[10:30]',))
    """
    parts, depth, quoted = [""], 0, ""
    for character in term:
        if quoted or character in "\"'":
            quoted = "" if character == quoted else quoted or character
        depth += 0 if quoted else (character in "([{") - (character in ")]}")
        if character == ":" and not depth and not quoted:
            parts.append("")
        else:
            parts[-1] += character
    return tuple(parts)


def merged(columns: Iterable[Sequence[str]]) -> dict[str, tuple[str, ...]]:
    """Return names in order of appearance, an intercept first, with their spellings.

    Products of the same factors in another order are the same name.
    """
    spellings: dict[tuple[str, ...], dict[str, None]] = {}
    for names in columns:
        for name in names:
            spellings.setdefault(tuple(sorted(factors(name))), {})[name] = None
    merged_names = {next(iter(variants)): tuple(variants) for variants in spellings.values()}
    first = {INTERCEPT: merged_names.pop(INTERCEPT)} if INTERCEPT in merged_names else {}
    return {**first, **merged_names}


def chosen(names: Sequence[str], keep: Sequence[str], drop: Sequence[str]) -> list[str]:
    """Return the names that match `keep`, in its order, less those that match `drop`.

    ArgumentError where a pattern is not a regular expression or matches no name.
    """
    matches = (name for pattern in keep for name in _met("keep", pattern, names))
    selected = list(dict.fromkeys(matches)) if keep else list(names)
    dropped = {name for pattern in drop for name in _met("drop", pattern, names)}
    remaining = [name for name in selected if name not in dropped]
    if not remaining:
        raise ArgumentError("keep= and drop= leave no row: keep more, or drop less")
    return remaining


def _met(argument: str, pattern: str, names: Sequence[str]) -> list[str]:
    """Return the name equal to the pattern, or else those that it matches."""
    if pattern in names:
        return [pattern]
    try:
        matches = [name for name in names if re.search(pattern, name)]
    except re.error as error:
        raise ArgumentError(
            f"{argument}={quoted(pattern)} is not a row or a regular expression ({error}); write "
            f"one of {shorten(', '.join(names), 200)}"
        ) from None
    if not matches:
        raise ArgumentError(
            f"{argument}={quoted(pattern)} matches no row; the rows are "
            f"{shorten(', '.join(names), 200)}"
        )
    return matches


def worded(term: str, words: Mapping[str, str]) -> str:
    """Return the label of a name, or a name with the labels of its variables.

    >>> labels = {"age": "Age", "sex": "Sex"}
    >>> worded("age:sex[F]", labels), worded("log(age)", labels), worded("agent", labels)
    ('Age × Sex: F', 'log(Age)', 'agent')
    """
    if term in words:
        return words[term]
    return TIMES.join(_word(factor, words) for factor in factors(term))


def _word(factor: str, words: Mapping[str, str]) -> str:
    level = LEVEL.fullmatch(factor)
    if factor in words or not words:
        return words.get(factor, factor)
    if level and level["factor"] in words:
        return f"{words[level['factor']]}: {level['level']}"
    longest = sorted(map(re.escape, words), key=len, reverse=True)
    names_pattern = re.compile(rf"(?<![\w.])(?:{'|'.join(longest)})(?![\w.])")
    return names_pattern.sub(lambda match: words[match[0]], factor)


# Released coefficients and their noise.


def released_noise(call: CoefficientsCall, release: CoefficientsRelease) -> Floats | None:
    """Return the noise sds of released coefficients about the ridge estimate on these rows.

    In own units, shape (coefficients,); None without a known distribution of the noise.
    """
    if release.gradient is not None or math.isnan(release.coefficient_sd):
        return None
    return np.asarray(np.linalg.norm(call.matrix, axis=1) * release.coefficient_sd)
