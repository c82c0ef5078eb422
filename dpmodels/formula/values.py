"""Values of expressions in a formula: a real, a truth, a category, a basis or a constant.

Each value carries its public range and a row-wise evaluation. The range comes from the codebook by
interval arithmetic; no evaluation ever looks at two rows together.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np

from dpmodels.dates import day_of_text
from dpmodels.errors import FormulaError, did_you_mean, shorten
from dpmodels.levels import Level
from dpmodels.typing import Floats

Columns = Mapping[str, Floats]
"""Converted columns: numbers as they are, categories as level codes; NaN is missing."""

Evaluate = Callable[[Columns], Floats]


@dataclass(frozen=True)
class Column:
    """Evaluates to a converted column as it is."""

    name: str

    def __call__(self, columns: Columns) -> Floats:
        """Return the column, shape (rows,)."""
        return columns[self.name]


@dataclass(frozen=True)
class Clipped:
    """Evaluates to a converted column within bounds."""

    name: str
    lower: float
    upper: float

    def __call__(self, columns: Columns) -> Floats:
        """Return the clipped column, shape (rows,)."""
        return np.clip(columns[self.name], self.lower, self.upper)


@dataclass(frozen=True)
class BoundSide:
    """Evaluates to 0 below a first bound, 2 above a last one, and 1 between them."""

    name: str
    lower: float
    upper: float

    def __call__(self, columns: Columns) -> Floats:
        """Return the side of each row, nan if missing, shape (rows,)."""
        values = columns[self.name]
        side = 1.0 + (values > self.upper) - (values < self.lower)
        return np.where(np.isnan(values), np.nan, side)


@dataclass(frozen=True)
class Binned:
    """Evaluates to the bin of a number, nan outside; all but the first are open below."""

    number: Evaluate
    breaks: tuple[float, ...]

    def __call__(self, columns: Columns) -> Floats:
        """Return the bin of each row, shape (rows,)."""
        breaks, values = np.array(self.breaks), self.number(columns)
        cell = np.maximum(np.searchsorted(breaks, values, side="left") - 1.0, 0.0)
        inside = (values >= breaks[0]) & (values <= breaks[-1])
        return np.where(inside, cell, np.nan)


# A choice: squares and products of three such numbers are finite.
LARGEST = 1e100


@dataclass(frozen=True)
class Constant:
    """A number, a string or a list of them, written in the formula."""

    code: str
    value: float | str | tuple[float | str, ...]


@dataclass(frozen=True)
class Real:
    """A number in a public interval; evaluates to shape (rows,).

    ``variable`` names the column if the number is a variable itself, clipped to its bounds;
    ``step`` is the distance of its values from its lower bound on, 0 if it takes any value;
    ``date`` says whether it is a day since 1970-01-01.
    """

    code: str
    lower: float
    upper: float
    evaluate: Evaluate = field(repr=False)
    variable: str | None = None
    step: float = 0.0
    date: bool = False

    def __post_init__(self) -> None:
        for bound in (self.lower, self.upper):
            if not abs(bound) <= LARGEST:
                raise FormulaError(
                    f"{self.code!r} may reach {bound:g} within the declared ranges, which is too "
                    "large to be a bounded column; declare narrower bounds, use clip(x, lo, hi) "
                    "or a function that grows more slowly"
                )


@dataclass(frozen=True)
class Truth:
    """A comparison; evaluates to 0, 1 or NaN, shape (rows,)."""

    code: str
    evaluate: Evaluate = field(repr=False)


@dataclass(frozen=True)
class Category:
    """Public levels; evaluates to level codes 0, 1, ... or NaN, shape (rows,).

    ``levels`` are as printed; ``written`` as declared, if they have labels.
    ``contrast`` is a patsy contrast or None for the default (treatment).
    """

    code: str
    levels: tuple[Level, ...]
    evaluate: Evaluate = field(repr=False)
    contrast: object = None
    written: tuple[Level, ...] = ()
    ordered: bool = False

    def listed(self) -> str:
        """Return the levels as text fit for an error message."""
        return shorten(repr(list(self.written or self.levels)), 200)

    def place(self, level: Value, code: str) -> int:
        """Return which level a formula means, by the level itself or by its label."""
        value = level.value if isinstance(level, Constant) else None
        declared = self.written or self.levels
        if value not in declared and value not in self.levels:
            meant = did_you_mean(value, (*declared, *self.levels))
            raise FormulaError(
                f"{code!r}: {level.code} is not one of the declared levels {self.listed()}{meant}"
            )
        levels = declared if value in declared else self.levels
        index = levels.index(value)
        texts = [list(map(str, level_set)) for level_set in (declared, self.levels)]
        if isinstance(value, str) and any(
            texts.index(value) != index for texts in texts if value in texts
        ):
            raise FormulaError(
                f"{code!r}: {level.code} may be a level of {self.code} or the label of another; "
                "change the level or the label in the codebook"
            )
        return index


@dataclass(frozen=True)
class Basis:
    """Several columns from one variable; evaluates to shape (columns, rows).

    Every row lies in the convex hull of ``vertices``, shape (points, columns).
    """

    code: str
    vertices: Floats = field(repr=False)
    evaluate: Evaluate = field(repr=False)


Varying = Real | Truth | Category | Basis
Value = Constant | Varying


def as_real(value: Value) -> Real:
    """Read a value as a number: constants and truths (0 or 1) are numbers too."""
    match value:
        case Real():
            return value
        case Truth():
            return Real(value.code, 0.0, 1.0, value.evaluate)
        case Constant(value=float() as number):
            return Real(value.code, number, number, lambda columns: np.float64(number))  # type: ignore[arg-type,return-value]
        case Category():
            raise FormulaError(
                f"{value.code!r} is a category and has no arithmetic; compare it with a level, "
                f"for example {value.code} == {value.levels[0]!r}, or enter it as a term"
            )
        case Basis():
            raise FormulaError(
                f"{value.code!r} has several columns; use it only as a factor of its own"
            )
    raise FormulaError(f"{value.code} is not a number")


def as_truth(value: Value, hint: str = "") -> Truth:
    """Read a value as a condition: comparisons are, and categories of False and True."""
    match value:
        case Truth():
            return value
        case Category(levels=(False, True) as levels) if all(
            type(level) is bool for level in levels
        ):
            return Truth(value.code, value.evaluate)
    raise FormulaError(
        f"{value.code!r} in the formula is not a comparison; write for example x > 1{hint}"
    )


def in_days(value: Value, beside: Value) -> Value:
    """Read ISO text beside a date as the days that dates are."""
    if not (isinstance(value, Constant) and isinstance(beside, Real) and beside.date):
        return value
    entries = value.value if isinstance(value.value, tuple) else (value.value,)
    days = tuple(day_of_text(entry) if isinstance(entry, str) else entry for entry in entries)
    if any(day != day for day in days):
        raise FormulaError(
            f"{value.code} beside {beside.code} is not a day; write it as '2001-12-31'"
        )
    return Constant(value.code, days if isinstance(value.value, tuple) else days[0])


def number(value: Value, what: str) -> float:
    """Read a constant number written in the formula."""
    if isinstance(value, Constant) and isinstance(value.value, float):
        return value.value
    raise FormulaError(f"{what} must be a number written in the formula, not {value.code!r}")


def whole_number(value: Value, what: str, minimum: int, maximum: int) -> int:
    """Read a constant whole number between two limits."""
    constant = number(value, what)
    if not (
        math.isfinite(constant) and constant == int(constant) and minimum <= constant <= maximum
    ):
        raise FormulaError(
            f"{what} is {value.code}; expected a whole number from {minimum} to {maximum}"
        )
    return int(constant)


def numbers(value: Value, what: str) -> tuple[float, ...]:
    """Read a constant list of numbers."""
    constants = value.value if isinstance(value, Constant) else None
    if isinstance(constants, float):
        constants = (constants,)
    if not isinstance(constants, tuple) or any(isinstance(constant, str) for constant in constants):
        raise FormulaError(
            f"{what} must be a list of numbers written in the formula, for example [20, 40, 60], "
            f"not {value.code!r}: numbers found in the data would leak"
        )
    return tuple(float(constant) for constant in constants)


def increasing(value: Value, what: str, min_length: int) -> tuple[float, ...]:
    """Read a constant list of strictly increasing numbers."""
    constants = numbers(value, what)
    if len(constants) < min_length or any(a >= b for a, b in pairwise(constants)):
        raise FormulaError(
            f"{what} is {value.code}; expected a list of at least {min_length} public numbers, "
            "increasing"
        )
    return constants
