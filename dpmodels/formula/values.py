"""What an expression in a formula is: a real, a truth, a category, a basis or a constant.

Each value carries its public range and a row-wise evaluation. The range comes from the codebook by
interval arithmetic; no evaluation ever looks at two rows together.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np

from dpmodels.errors import FormulaError, shorten
from dpmodels.levels import Level
from dpmodels.typing import Floats

Columns = Mapping[str, Floats]
"""Converted columns: numbers as they are, categories as level codes; NaN is missing."""

Evaluate = Callable[[Columns], Floats]

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

    ``variable`` names the column where the number is a variable as it stands, held in its bounds;
    ``step`` is what it goes by from its lower bound, 0 where it takes any value.
    """

    code: str
    lower: float
    upper: float
    evaluate: Evaluate = field(repr=False)
    variable: str | None = None
    step: float = 0.0

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

    ``contrast`` is a patsy contrast or None for the default (treatment).
    """

    code: str
    levels: tuple[Level, ...]
    evaluate: Evaluate = field(repr=False)
    contrast: object = None

    def listed(self) -> str:
        """Return the levels as text fit for an error message."""
        return shorten(repr(list(self.levels)), 200)


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
            raise FormulaError(f"{value.code!r} has several columns; it stands alone as a factor")
    raise FormulaError(f"{value.code} is not a number")


def number(value: Value, what: str) -> float:
    """Read a constant number written in the formula."""
    if isinstance(value, Constant) and isinstance(value.value, float):
        return value.value
    raise FormulaError(f"{what} must be a number written in the formula, not {value.code!r}")


def whole(value: Value, what: str, least: int, most: int) -> int:
    """Read a constant whole number between two limits."""
    given = number(value, what)
    if not (math.isfinite(given) and given == int(given) and least <= given <= most):
        raise FormulaError(
            f"{what} is {value.code}; expected a whole number from {least} to {most}"
        )
    return int(given)


def increasing(value: Value, what: str, least: int) -> tuple[float, ...]:
    """Read a constant list of strictly increasing numbers."""
    given = value.value if isinstance(value, Constant) else None
    if isinstance(given, float):
        given = (given,)
    if not isinstance(given, tuple) or any(isinstance(one, str) for one in given):
        raise FormulaError(
            f"{what} must be a list of numbers written in the formula, for example [20, 40, 60], "
            f"not {value.code!r}: numbers found in the data would leak"
        )
    numbers = tuple(float(one) for one in given)
    if len(numbers) < least or any(a >= b for a, b in pairwise(numbers)):
        raise FormulaError(f"{what} is {value.code}; expected at least {least}, increasing")
    return numbers
