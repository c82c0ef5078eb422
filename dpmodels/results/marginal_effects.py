"""Average effects of variables on the expected response of public rows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import pandas as pd

from dpmodels.errors import ArgumentError
from dpmodels.formula.parse import quote
from dpmodels.formula.values import Columns
from dpmodels.results.fitted import Fitted
from dpmodels.results.hypotheses import tested
from dpmodels.results.public_rows import bounds
from dpmodels.results.variables import levels_of
from dpmodels.typing import Floats

# Of a number's range: half the step of a difference quotient, between rounding and bending.
STEP = 1e-5
NO_ROWS = (
    "effects are averages over rows, and a fit keeps none: write margins(newdata) with public "
    "ones, or emmeans() and contrasts() for an even grid of levels"
)


class Effect(NamedTuple):
    """An effect, and its derivatives by the coefficients, shape (coefficients,)."""

    term: str
    contrast: str
    estimate: float
    slope: Floats


def margins(model: Fitted, columns: Columns, variables: list[str], level: float) -> pd.DataFrame:
    """Return one row an effect: average of rows, tests and intervals by the delta method.

    An interval is as long as, and as lopsided as, that of the combination of coefficients which the
    effect is to first order.
    """
    columns = _complete(model, columns)
    found = [effect for name in variables for effect in _effects(model, columns, name)]
    slopes = np.array([effect.slope for effect in found])
    values = np.array([effect.estimate for effect in found])
    named = {
        "term": [effect.term for effect in found],
        "contrast": [effect.contrast for effect in found],
    }
    return pd.DataFrame({**named, **tested(model.law, slopes, values, level, "none")})


def _complete(model: Fitted, columns: Columns) -> Columns:
    """Keep rows that are complete and inside; there has to be one."""
    known = np.isfinite(model.coder.coded(columns)).all(axis=0)
    if not known.any():
        raise ArgumentError(
            "newdata= has no complete row within the codebook's bounds and levels to average over"
        )
    return {name: own[known] for name, own in columns.items()}


def _effects(model: Fitted, columns: Columns, name: str) -> Iterator[Effect]:
    """Yield differences of levels from the first, or the slope of a number."""
    levels = levels_of(model.coder.design, name)
    if levels is None:
        yield Effect(quote(name), "dY/dX", *_rate(model, columns, name))
        return
    (first, code), *others = levels.items()
    base, slope = _mean(model, columns, name, code)
    for level, own in others:
        mean, towards = _mean(model, columns, name, own)
        yield Effect(quote(name), f"{level} - {first}", mean - base, towards - slope)


def _mean(model: Fitted, columns: Columns, name: str, code: float) -> tuple[float, Floats]:
    """Return the mean response were all rows of one level, and its derivatives."""
    rows = model.rows({**columns, name: np.full_like(columns[name], code)})
    eta = rows @ model.law.params
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
    eta, along = rows @ params, rates @ params
    slope = model.link.slope(eta)
    towards = (model.link.bend(eta) * along) @ rows + slope @ rates
    return float((slope * along).mean()), towards / len(rows)
