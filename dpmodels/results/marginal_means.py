"""Expected responses at levels of factors, and marginal effects, over an even grid."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
import pandas as pd

from dpmodels.dates import Date, text_of_day
from dpmodels.errors import ArgumentError, FormulaError, did_you_mean, quoted, shorten
from dpmodels.formula import Design
from dpmodels.formula.coding import RowCoder
from dpmodels.formula.expression import compile_factor
from dpmodels.formula.parse import quote, requoted, variables_in
from dpmodels.formula.values import Category, Columns, Truth
from dpmodels.inference.least_squares import CoefficientsLaw
from dpmodels.inference.links import Link
from dpmodels.results.derived_table import Terms, exponentiated, tested
from dpmodels.results.public_rows import bounds
from dpmodels.typing import Floats, TableColumns
from dpmodels.variables import Categorical, Numeric

# A choice: regressors of a grid that fit in memory.
MAX_REGRESSORS = 20_000_000
# Levels that are tried in place of a reference level that noise hides: a choice.
SEARCHED = 20


class Grid(NamedTuple):
    """Combinations of levels of factors, each averaged evenly over those of the others."""

    keys: pd.DataFrame  # one row a combination
    rows: Floats  # its regressors, shape (combinations, coefficients)
    fixed: dict[str, str]  # the values that variables are fixed at, and where these come from
    averaged: tuple[str, ...]  # factors that are averaged over


def compared(model: Fitted, factors: str | Sequence[str], at: Mapping[str, object] | None) -> Grid:
    """Lay out the combinations of levels that contrasts compare, two at least."""
    cells = grid(model, factors, at)
    if len(cells.rows) < 2:
        raise ArgumentError("contrasts() compares two levels or more; at= fixes all at one")
    return cells


def grid(model: Fitted, factors: str | Sequence[str], at: Mapping[str, object] | None) -> Grid:
    """Lay out the combinations of the levels of factors."""
    design = model.coder.design
    names = variables_named(design, factors)
    at_values = _at_values(model, at)
    values = {name: at_values.get(name) or _usual(model, name) for name in design.variables}
    _require_values(design, names, at_values)
    order = [*names, *(name for name in design.variables if name not in names)]
    shape = [len(values[name]) for name in order]
    if math.prod(shape) * len(model.terms.names) > MAX_REGRESSORS:
        raise ArgumentError(
            f"{math.prod(shape):,} combinations of levels are too many: fix some at one, as "
            f"at={{{order[-1]!r}: ...}}"
        )
    places = np.indices(shape).reshape(len(order), -1)
    columns = {
        name: np.array(list(values[name].values()))[place]
        for name, place in zip(order, places, strict=True)
    }
    cells = math.prod(shape[: len(names)])
    rows = model.rows(columns).reshape(cells, -1, len(model.terms.names)).mean(axis=1)
    first = places[:, :: places.shape[1] // cells]
    keys = {
        name: [list(values[name])[i] for i in place]
        for name, place in zip(names, first, strict=False)
    }
    rest = order[len(names) :]
    fixed = {quote(name): str(*values[name]) for name in rest if len(values[name]) == 1}
    averaged = tuple(quote(name) for name in rest if len(values[name]) > 1)
    return Grid(pd.DataFrame(keys), rows, fixed, averaged)


def _require_values(
    design: Design, factors: Sequence[str], at_values: Mapping[str, object]
) -> None:
    for name in factors:
        if name not in at_values and levels_of(design, name) is None:
            ends = ", ".join(
                _said(design.codebook[name], end) for end in bounds(design.codebook, name)
            )
            raise ArgumentError(
                f"{name!r} is a number: give its values, as at={{{name!r}: [{ends}]}}"
            )


def _usual(model: Fitted, name: str) -> dict[object, float]:
    """Return all levels of a variable, or a number's released mean.

    The middle of its public range where none was released.
    """
    design = model.coder.design
    levels = levels_of(design, name)
    if levels is not None:
        return levels
    low, high = bounds(design.codebook, name)
    value, source = (low + high) / 2, "middle of its range"
    if name in model.means:
        value, source = min(max(model.means[name], low), high), "released mean"
    text = _said(design.codebook[name], value, ".4g").strip("'")
    return {f"{text} ({source})": value}


def _said(variable: object, value: float, form: str = "g") -> str:
    return repr(text_of_day(value)) if isinstance(variable, Date) else f"{value:{form}}"


def _at_values(model: Fitted, at: Mapping[str, object] | None) -> dict[str, dict[object, float]]:
    if at is not None and not isinstance(at, Mapping):
        raise ArgumentError(f"at={quoted(at)}: expected a mapping such as at={{'age': 40}}")
    design, at_values = model.coder.design, {}
    for name, value in (at or {}).items():
        (variable,) = variables_named(design, [name])
        arrays = np.ndarray | np.generic | pd.Series
        plain: object = value.tolist() if isinstance(value, arrays) else value
        values = [plain]
        if isinstance(plain, Sequence) and not isinstance(plain, str):
            values = list(plain)
        blanks = {column: [None] * len(values) for column in design.variables}
        codes = model.coder.read({**blanks, variable: values})[variable]
        low, high = bounds(design.codebook, variable)
        if not len(values) or not ((codes >= low) & (codes <= high)).all():
            raise ArgumentError(
                f"at={{{variable!r}: {shorten(quoted(value))}}}: expected values within the "
                f"codebook, {design.codebook[variable].describe()}"
            )
        at_values[variable] = dict(zip(values, codes.tolist(), strict=True))
    return at_values


def contrasts(
    model: Fitted, cells: Grid, adjust: str, level: float, *, ratio: bool = False
) -> pd.DataFrame:
    """Return one row a pair of combinations: differences of linear predictors, or their ratios.

    First less second, or over it; p-values and intervals are adjusted for the number of pairs.
    """
    first, second = np.triu_indices(len(cells.rows), 1)
    differences = cells.rows[first] - cells.rows[second]
    columns = tested(model.law, differences, differences @ model.law.params, level, adjust)
    labels = [", ".join(map(str, line)) for line in cells.keys.to_numpy().tolist()]
    sign = "/" if ratio else "-"
    pairs = [f"{labels[i]} {sign} {labels[j]}" for i, j in zip(first, second, strict=True)]
    table = pd.DataFrame({"contrast": pairs, **columns})
    return exponentiated(table) if ratio else table


def without_reference(model: Fitted) -> list[str]:
    """Name factors of which no coefficient is identified, though some differences of them are.

    The level that they are compared with is lost in noise, and contrasts of the others are not.
    """
    factors, design = [], model.coder.design
    for name in design.variables:
        term = model.terms.named(quote(name))
        if term is None or model.terms.predictors > 1 or levels_of(design, name) is None:
            continue
        levels = model.terms.matrix(term)
        if model.law.identifies(levels).any():
            continue
        others = (
            np.delete(levels, at, axis=0) - levels[at] for at in range(len(levels))[:SEARCHED]
        )
        if any(model.law.identifies(pairs).any() for pairs in others):
            factors.append(name)
    return factors


def grid_facts(cells: Grid) -> tuple[tuple[str, str], ...]:
    """Return the line of a heading that says at which values variables stand."""
    values = ", ".join(f"{name} = {value}" for name, value in cells.fixed.items())
    return (("At", values),) if values else ()


def grid_notes(cells: Grid, link: Link) -> tuple[str, ...]:
    """Return notes on factors that are averaged over, and on the scale of intervals."""
    averaged = f"Averaged with equal weights over: {', '.join(cells.averaged)}."
    scale = f"Means and intervals of the {link.name} are transformed to the scale of the response."
    return tuple(filter(None, (averaged * bool(cells.averaged), scale * bool(link.ratio))))


# Average effects of variables on the expected response of public rows.

# Half the step of a difference quotient over a number's range: between rounding and curvature.
STEP = 1e-5
NO_ROWS = (
    "effects are averages over rows, and a fit does not keep any: write margins(newdata) with "
    "public ones, or emmeans() and contrasts() for an even grid of levels"
)


class Effect(NamedTuple):
    """An effect, and its derivatives by the coefficients, shape (coefficients,)."""

    term: str
    contrast: str
    estimate: float
    slope: Floats


def margins(model: Fitted, columns: Columns, variables: list[str], level: float) -> pd.DataFrame:
    """Return one row an effect: average of rows, tests and intervals by the delta method.

    An interval has the length and asymmetry of that of the effect's first-order combination of
    coefficients.
    """
    columns = complete_rows(model, columns)
    effects = [effect for name in variables for effect in _effects(model, columns, name)]
    slopes = np.array([effect.slope for effect in effects])
    values = np.array([effect.estimate for effect in effects])
    labels = {
        "term": [effect.term for effect in effects],
        "contrast": [effect.contrast for effect in effects],
    }
    return pd.DataFrame({**labels, **tested(model.law, slopes, values, level, "none")})


def complete_rows(model: Fitted, columns: Columns) -> Columns:
    """Keep rows that are complete and inside; ArgumentError without any."""
    complete = np.isfinite(model.coder.coded(columns)).all(axis=0)
    complete &= np.isfinite(model.coder.offset(columns))
    if not complete.any():
        raise ArgumentError(
            "newdata= has no complete row within the codebook's bounds and levels to average over"
        )
    return {name: values[complete] for name, values in columns.items()}


def _effects(model: Fitted, columns: Columns, name: str) -> Iterator[Effect]:
    """Yield differences of levels from the first, or the slope of a number."""
    levels = levels_of(model.coder.design, name)
    if levels is None:
        yield Effect(quote(name), "dY/dX", *_rate(model, columns, name))
        return
    (first, code), *rest = levels.items()
    base, slope = _mean(model, columns, name, code)
    for level, level_code in rest:
        mean, towards = _mean(model, columns, name, level_code)
        yield Effect(quote(name), f"{level} - {first}", mean - base, towards - slope)


def _mean(model: Fitted, columns: Columns, name: str, code: float) -> tuple[float, Floats]:
    rows = model.rows({**columns, name: np.full_like(columns[name], code)})
    eta = rows @ model.law.params + model.coder.offset(columns)
    return float(model.link.mean(eta).mean()), model.link.slope(eta) @ rows / len(rows)


def _rate(model: Fitted, columns: Columns, name: str) -> tuple[float, Floats]:
    """Return the mean slope of the response in a number, and its derivatives.

    By differences of regressors, which are exact where these are squares or less.
    """
    low, high = bounds(model.coder.design.codebook, name)
    at, step = columns[name], STEP * (high - low)
    up, down = np.minimum(at + step, high), np.maximum(at - step, low)
    ends = [model.rows({**columns, name: end}) for end in (up, down)]
    rates = (ends[0] - ends[1]) / (up - down)[:, None]
    rows, params = model.rows(columns), model.law.params
    eta, along = rows @ params + model.coder.offset(columns), rates @ params
    slope = model.link.slope(eta)
    towards = (model.link.bend(eta) * along) @ rows + slope @ rates
    return float((slope * along).mean()), towards / len(rows)


# How variables enter a model: as numbers, or as levels that are compared.


def levels_of(design: Design, name: str) -> dict[object, float] | None:
    """Return the levels of a variable with their codes in a column, None for a number.

    Whole numbers that enter as ``C(x)`` alone have levels.
    """
    declared = design.codebook[name]
    if isinstance(declared, Categorical):
        return {level: float(code) for code, level in enumerate(declared.shown_levels)}
    factors = _factors(design, name)
    category_factors = [factor for code, factor in factors.items() if code.startswith("C(")]
    levels = [of for of in category_factors if all(type(level) is int for level in of.levels)]
    if not isinstance(declared, Numeric) or len(levels) < len(factors):
        return None
    return {level: float(level) for level in levels[0].levels}


def in_steps(design: Design, name: str) -> bool:
    """Whether a number enters in steps, as by ``cut(x, ...)`` or ``x > 3``."""
    return levels_of(design, name) is None and any(
        isinstance(factor, Category | Truth) for factor in _factors(design, name).values()
    )


def _factors(design: Design, name: str) -> TableColumns:
    codes = dict.fromkeys(code for block in design.blocks for code in block.term)
    return {
        code: compile_factor(code, design.codebook) for code in codes if name in variables_in(code)
    }


def variables_named(design: Design, names: str | Sequence[str]) -> list[str]:
    """Return the variables that names refer to: by name, in a factor, or in ``a:b``."""
    if not isinstance(names, str | Sequence):
        raise ArgumentError(f"{quoted(names)}: expected names of variables, such as 'sex'")
    parts = list(names)
    if isinstance(names, str):
        parts = [names] if names in design.variables else names.split(":")
    variables = [_variable(design, part) for part in parts]
    if not variables or len(set(variables)) < len(variables):
        raise ArgumentError(f"{quoted(names)}: expected each variable once, such as 'sex'")
    return variables


def _variable(design: Design, part: object) -> str:
    by_text = {quote(name): name for name in design.variables} | {
        name: name for name in design.variables
    }
    text = part if isinstance(part, str) else ""
    text = text if text in by_text else requoted(text).strip()
    if text in by_text:
        return by_text[text]
    try:
        used = variables_in(text)
    except FormulaError:
        used = ()
    codes = {code for block in design.blocks for code in block.term}
    if text in codes and len(used) == 1:
        return used[0]
    raise ArgumentError(
        f"{quoted(part)} is not a variable of the terms{did_you_mean(part, design.variables)}: "
        "write one of "
        f"{shorten(', '.join(design.variables), 120)}"
    )


# A fitted model for post-processing: a law, a link, terms, and the coding of rows.


class Fitted(NamedTuple):
    """The parts of a fitted model."""

    law: CoefficientsLaw
    link: Link
    terms: Terms
    coder: RowCoder
    means: Mapping[str, float] = MappingProxyType({})  # released ones of numeric variables

    def rows(self, columns: Columns) -> Floats:
        """Return the regressors of rows, shape (rows, coefficients), nan where incomplete."""
        return self.regressors(self.coder.coded(columns))

    def regressors(self, coded: Floats) -> Floats:
        """Put the intercept before coded columns, shape (columns, rows), and transpose them."""
        n_intercepts = len(self.terms.names) - len(coded)
        return np.vstack([np.ones((n_intercepts, coded.shape[1])), coded]).T
