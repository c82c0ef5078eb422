"""Comparisons: of numbers, of days with ISO text, of a category with its levels, and with lists."""

from __future__ import annotations

import ast
from collections.abc import Callable
from functools import reduce

import numpy as np

from dpmodels.errors import FormulaError
from dpmodels.formula.values import (
    Category,
    Columns,
    Constant,
    Evaluate,
    Real,
    Truth,
    Value,
    as_real,
    in_days,
    numbers,
)
from dpmodels.typing import Floats

_COMPARE: dict[type[ast.cmpop], Callable[..., Floats]] = {
    ast.Lt: np.less,
    ast.LtE: np.less_equal,
    ast.Gt: np.greater,
    ast.GtE: np.greater_equal,
    ast.Eq: np.equal,
    ast.NotEq: np.not_equal,
}
COMPARED = (*_COMPARE, ast.In, ast.NotIn)


def compared(code: str, op: ast.cmpop, left: Value, right: Value) -> Truth:
    """Compare two values by one of the operators `COMPARED`."""
    if isinstance(op, ast.In | ast.NotIn):
        return _membership(code, left, right, isinstance(op, ast.In))
    if isinstance(left, Category) or isinstance(right, Category):
        return _level_comparison(code, op, left, right)
    for day, other in ((left, right), (right, left)):
        if isinstance(day, Real) and day.date and isinstance(other, Constant):
            _require_day(code, day, other)
    a, b = as_real(in_days(left, right)), as_real(in_days(right, left))
    return _told(code, _COMPARE[type(op)], a.evaluate, b.evaluate)


def _require_day(code: str, day: Real, other: Constant) -> None:
    if not isinstance(other.value, str):
        raise FormulaError(
            f"{code!r}: {day.code} is a date and is compared with one: write "
            f'{day.code} >= "2010-01-01", or year({day.code}) >= 2010'
        )


def _told(code: str, compare: Callable[..., Floats], *sides: Evaluate) -> Truth:
    """Return whether a comparison of numbers holds, nan where one of them is missing."""

    def holds(columns: Columns) -> Floats:
        numbers = [side(columns) for side in sides]
        missing = reduce(np.logical_or, map(np.isnan, numbers))
        return np.where(missing, np.nan, compare(*numbers))

    return Truth(code, holds)


def _level_comparison(code: str, op: ast.cmpop, left: Value, right: Value) -> Truth:
    factor, other = (left, right) if isinstance(left, Category) else (right, left)
    assert isinstance(factor, Category)
    if not isinstance(other, Constant):
        raise FormulaError(f"{code!r}: a category is compared with one of its levels")
    wanted = factor.place(other, code)
    if not (factor.ordered or isinstance(op, ast.Eq | ast.NotEq)):
        raise FormulaError(
            f"{code!r}: the levels of {factor.code} have no declared order; compare with one of "
            "them by == or !=, or declare dp.Categorical(..., ordered=True)"
        )
    compare = _COMPARE[type(op)]
    if factor is left:
        return _told(code, lambda codes: compare(codes, wanted), factor.evaluate)
    return _told(code, lambda codes: compare(wanted, codes), factor.evaluate)


def _membership(code: str, left: Value, right: Value, among: bool) -> Truth:
    """Return whether a value is one of a list, ``x in [1, 2]``."""
    if not isinstance(right, Constant):
        raise FormulaError(
            f"{code!r}: what a value is looked for in is a list written in the formula, "
            'for example region in ["north", "east"]'
        )
    if isinstance(left, Category):
        held = right.value if isinstance(right.value, tuple) else (right.value,)
        wanted = [float(left.place(Constant(repr(one), one), code)) for one in held]
        own: Truth | Category | Real = left
    else:
        own = as_real(left)
        listed = in_days(right, own)
        assert isinstance(listed, Constant)
        wanted = list(numbers(listed, code))
    return _told(code, lambda values: np.isin(values, wanted) == among, own.evaluate)
