"""What of a result is a column beside others: numbers by row, and numbers of the whole."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import singledispatch
from typing import Any, Final

import numpy as np
import pandas as pd

from dpmodels.errors import ArgumentError, said, shorten
from dpmodels.released import CoefficientsRelease
from dpmodels.results.base import Result, release_row
from dpmodels.results.call import INTERCEPT, CoefficientsCall
from dpmodels.results.estimates import exponentiated
from dpmodels.results.glm import GLMResult
from dpmodels.results.groups import GroupedResult, TTestResult, VarResult
from dpmodels.results.lm import LMResult
from dpmodels.results.multinomial import MultinomialResult
from dpmodels.results.quantile import QuantileResult
from dpmodels.results.survey import SurveyResult
from dpmodels.results.survey_fit import SurveyFitResult
from dpmodels.results.svm import SVMResult
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
    """One column: what a result says of each row.

    Attributes
    ----------
    result : Result
        What it is of.
    kind : str
        The model in a word or two.
    response : str
        What is explained or described; empty where nothing is.
    part : str
        What its rows are.
    cells : DataFrame
        By row `NUMBERS`, nan where one is missing; ``open``, words in the place of numbers; and
        ``spread``, to whose second digit an estimate is printed.
    whole : mapping
        Numbers of the whole with their noise sds, nan where that is not known and 0 without noise.
    component : str
        Which part of the result it is, where that has several columns.
    link : str
        What the exponential of its coefficients is; empty where that is nothing.
    form : {"number", "date", "step"}
        How estimates are printed.
    digits : int
        Significant digits of an estimate without a known error.
    note : str
        What has to be known of it.
    head, above, number
        What stands over it, and which of the results it is of.
    """

    result: Result
    kind: str
    response: str
    part: str
    cells: pd.DataFrame
    whole: Mapping[str, tuple[Any, float]]
    component: str = ""
    link: str = ""
    form: str = "number"
    digits: int = 3
    note: str = ""
    head: str = ""
    above: str = ""
    number: int = 0
    exponential: bool = False

    @property
    def model(self) -> str:
        """What its result is called."""
        return self.above if self.component else self.head

    def exponentiated(self) -> Column:
        """Return the same in ratios; errors by the delta method, tests as they were."""
        if not self.link:
            return self
        own = exponentiated(self.cells)
        for name in ("std_error", "noise_sd", "spread"):
            own[name] *= own["estimate"]
        return replace(self, cells=own, kind=f"{self.kind}, {self.link}", exponential=True)


@singledispatch
def columns_of(result: object, level: float) -> tuple[Column, ...]:
    """Return the columns of a result with intervals of a level; ArgumentError where it has none."""
    raise ArgumentError(
        f"a {type(result).__name__} has no column to stand beside others; results that have are "
        f"{ACCEPTED}"
    )


def cells_of(
    rows: Sequence[str], numbers: Mapping[str, object], told: Any = True, why: str = NOT_IDENTIFIED
) -> pd.DataFrame:
    """Return numbers by row, and words where they tell nothing."""
    index = pd.Index(np.array(rows, dtype=object), name="term")
    given = {name: np.asarray(own, dtype=np.float64) for name, own in numbers.items()}
    table = pd.DataFrame(given, index=index).reindex(columns=[*NUMBERS, "spread"])
    errors = table["std_error"].where(np.isfinite(table["std_error"]), table["noise_sd"])
    table["spread"] = table["spread"].fillna(errors)
    known = np.broadcast_to(np.asarray(told, dtype=bool), len(table)) & np.isfinite(
        table["estimate"].to_numpy()
    )
    table.loc[~known] = np.nan
    return table.assign(open=np.where(known, "", why))


def whole_of(result: Result, **sds: float) -> dict[str, tuple[object, float]]:
    """Return what glance() says besides the release, with noise sds where they are known."""
    line = result.glance().iloc[0].to_dict()
    of_release = release_row(result.release)
    own = {str(name): value for name, value in line.items() if name not in of_release}
    public = 0.0 if result.release.rows is not None else math.nan
    return {
        name: (own[name], sds.get(name, public if name == "nobs" else math.nan)) for name in own
    }


def _numbers(fit: Result, level: float) -> Any:
    return fit.estimates.tidy(level)[list(NUMBERS)]


@columns_of.register
def _linear(fit: LMResult, level: float) -> tuple[Column, ...]:
    table = fit.tidy()
    sd, share = fit.release.noise.count, fit.linear.rsquared[1]
    counted = 0.0 if fit.model.weights else sd
    return (
        Column(
            fit,
            "WLS" if fit.model.weights else "OLS",
            fit.linear.response,
            COEFFICIENTS,
            cells_of(list(table["term"]), _numbers(fit, level), fit.identified),
            whole_of(fit, nobs=counted, r_squared=share, adj_r_squared=share),
        ),
    )


LINKED: Final = {"binomial": ("logit", "odds ratios"), "poisson": ("Poisson", "rate ratios")}


@columns_of.register
def _generalised(fit: GLMResult, level: float) -> tuple[Column, ...]:
    kind, link = LINKED[fit.call.family]
    table, note = fit.tidy(), ""
    known, digits = fit.identified.to_numpy(), 3
    if known.any():
        numbers = _numbers(fit, level)
    else:
        numbers, note = _as_released(fit, table), fit.why_not
        if fit.release.curvature is None:
            known, digits = np.ones_like(known), 1
            note = f"as released, pulled by a ridge, without standard errors: {note}"
    cells = cells_of(list(table["term"]), numbers, known)
    return (
        Column(
            fit,
            kind,
            _modelled(fit.call),
            COEFFICIENTS,
            cells,
            whole_of(fit),
            link=link,
            digits=digits,
            note=note,
        ),
    )


@columns_of.register
def _by_level(fit: MultinomialResult, level: float) -> tuple[Column, ...]:
    """Return a column for each level against the reference."""
    table, known, note = fit.tidy(), fit.linear.identified, fit.why_not
    numbers = _numbers(fit, level)
    bought = known.any() or fit.release.curvature is not None
    if not bought:
        known, note = np.ones_like(known), f"as released, without standard errors: {note}"
    reference, *others = fit.classes
    response = LEVEL.sub(r"\g<factor>", fit.call.response)
    of_levels = f"levels of {response} against {reference}"
    note = f"{of_levels}; {note}" if note else of_levels
    columns = []
    for own in others:
        at = (table["y_level"] == own).to_numpy()
        of = {name: np.asarray(values)[at] for name, values in numbers.items()}
        columns.append(
            Column(
                fit,
                "multinomial logit",
                f"{own} against {reference}",
                COEFFICIENTS,
                cells_of(list(fit.call.names), of, known[at]),
                whole_of(fit),
                component=own,
                link="relative risk ratios",
                digits=3 if bought else 1,
                note=note,
            )
        )
    return tuple(columns)


def _as_released(fit: GLMResult | SVMResult, table: pd.DataFrame) -> dict[str, object]:
    held = fit.call.held_in(fit.release.ball)
    noise = released_noise(held, fit.release)
    return {"estimate": table["estimate"], **({} if noise is None else {"noise_sd": noise})}


def _modelled(call: Any) -> str:
    """Return the response, and which of its levels is modelled where they are no 0 and 1."""
    level = LEVEL.fullmatch(call.response)
    if level is None or not call.levels:
        return str(call.response)
    plain = level["level"] in ("1", "1.0", "True")
    return level["factor"] if plain else f"{level['factor']}[{level['level']}]"


@columns_of.register
def _vectors(fit: SVMResult, level: float) -> tuple[Column, ...]:
    table = fit.tidy()
    cells = cells_of(list(table["term"]), _as_released(fit, table))
    note = "coefficients of a classifier, pulled towards 0 by a ridge; they have no standard errors"
    return (
        Column(
            fit, "SVM", _modelled(fit.call), COEFFICIENTS, cells, whole_of(fit), digits=1, note=note
        ),
    )


@columns_of.register
def _answers_fit(fit: SurveyFitResult, level: float) -> tuple[Column, ...]:
    table = fit.tidy()
    cells = cells_of(list(table["term"]), _numbers(fit, level), np.isfinite(fit.bse))
    kind = "logit of answers"
    return (
        Column(
            fit, kind, _modelled(fit.call), COEFFICIENTS, cells, whole_of(fit), link="odds ratios"
        ),
    )


def _grouped(fit: Any) -> str:
    by = ", ".join(fit._facts.factors)
    return f"Groups: {by}" if by else "Groups"


def _labels(fit: Any) -> list[str]:
    return list(fit._facts.labels) if fit._facts.factors else ["all rows"]


@columns_of.register
def _means(fit: GroupedResult, level: float) -> tuple[Column, ...]:
    kind = "variance" if isinstance(fit, VarResult) else "mean"
    cells = cells_of(_labels(fit), _numbers(fit, level), why=LOST)
    form = "date" if fit._facts.date and kind == "mean" else "number"
    return (Column(fit, kind, fit._facts.measured, _grouped(fit), cells, whole_of(fit), form=form),)


@columns_of.register
def _t_test(fit: TTestResult, level: float) -> tuple[Column, ...]:
    cells = cells_of([fit.term], _numbers(fit, level), why=LOST)
    part = f"Differences: {fit._facts.factors[0]}" if fit._facts.factors else "Groups"
    return (Column(fit, "t-test", fit._facts.measured, part, cells, whole_of(fit)),)


@columns_of.register
def _quantiles(fit: QuantileResult, level: float) -> tuple[Column, ...]:
    facts, table = fit._facts, fit.tidy()
    shares = [f"{100 * prob:g}%" for prob in fit.probs]
    rows = [f"{own}, {at}" for own in facts.labels for at in shares] if facts.factors else shares
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
    return (
        Column(fit, "quantile", facts.measured, part, cells, whole_of(fit), form=form, note=note),
    )


@columns_of.register
def _shares(fit: SurveyResult, level: float) -> tuple[Column, ...]:
    cells = cells_of(fit._facts.labels, _numbers(fit, level), why=LOST)
    response = " + ".join(fit._facts.factors)
    return (
        Column(
            fit, "share", response, f"Levels: {', '.join(fit._facts.factors)}", cells, whole_of(fit)
        ),
    )


# Rows of results side by side: merged in the order seen, chosen by name, and put in words.

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
    """Return names in the order first seen, an intercept first, each by what it is a product of.

    Products in another order are the same; the value holds all the ways a name is written.
    """
    written: dict[tuple[str, ...], dict[str, None]] = {}
    for names in columns:
        for name in names:
            written.setdefault(tuple(sorted(factors(name))), {})[name] = None
    found = {next(iter(own)): tuple(own) for own in written.values()}
    first = {INTERCEPT: found.pop(INTERCEPT)} if INTERCEPT in found else {}
    return {**first, **found}


def chosen(names: Sequence[str], keep: Sequence[str], drop: Sequence[str]) -> list[str]:
    """Return the names that are kept, in the order of `keep`, less those dropped.

    ArgumentError where a pattern is no regular expression or meets no name.
    """
    kept = list(names)
    if keep:
        kept = list(dict.fromkeys(name for own in keep for name in _met("keep", own, names)))
    gone = {name for own in drop for name in _met("drop", own, names)}
    left = [name for name in kept if name not in gone]
    if not left:
        raise ArgumentError("keep= and drop= leave no row: keep more, or drop less")
    return left


def _met(word: str, pattern: str, names: Sequence[str]) -> list[str]:
    """Return the one name that is the pattern, or else those it is found in."""
    if pattern in names:
        return [pattern]
    try:
        found = [name for name in names if re.search(pattern, name)]
    except re.error as error:
        raise ArgumentError(
            f"{word}={said(pattern)} is no row and no regular expression ({error}); write one of "
            f"{shorten(', '.join(names), 200)}"
        ) from None
    if not found:
        raise ArgumentError(
            f"{word}={said(pattern)} meets no row; the rows are {shorten(', '.join(names), 200)}"
        )
    return found


def worded(term: str, words: Mapping[str, str]) -> str:
    """Put a name in words: of itself, or of the variables that it is made of.

    >>> told = {"age": "Age", "sex": "Sex"}
    >>> worded("age:sex[F]", told), worded("log(age)", told), worded("agent", told)
    ('Age × Sex: F', 'log(Age)', 'agent')
    """
    return words[term] if term in words else TIMES.join(_word(own, words) for own in factors(term))


def _word(factor: str, words: Mapping[str, str]) -> str:
    level = LEVEL.fullmatch(factor)
    if factor in words or not words:
        return words.get(factor, factor)
    if level and level["factor"] in words:
        return f"{words[level['factor']]}: {level['level']}"
    longest = sorted(map(re.escape, words), key=len, reverse=True)
    known = re.compile(rf"(?<![\w.])(?:{'|'.join(longest)})(?![\w.])")
    return known.sub(lambda own: words[own[0]], factor)


# Coefficients as a mechanism released them, and the noise that is theirs alone.


def released_noise(call: CoefficientsCall, release: CoefficientsRelease) -> Floats | None:
    """Return the noise sds of coefficients about those that the ridge gives these rows.

    In own units, shape (coefficients,); None where the noise has no known law by itself.
    """
    if release.gradient is not None or math.isnan(release.coefficient_sd):
        return None
    return np.asarray(np.linalg.norm(call.matrix, axis=1) * release.coefficient_sd)
