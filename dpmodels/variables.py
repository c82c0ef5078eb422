"""Variables: a number with public bounds, or a category with public levels."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Final, cast

import numpy as np

from dpmodels.arguments import real
from dpmodels.errors import CodebookError, FrameError, shorten
from dpmodels.levels import Level, as_number, require_distinct
from dpmodels.outside import require_text

_WHOLE = 1e-6  # What a number of steps may be off in floats: a choice.

FORM: Final = (
    'expected {"age": {"range": [0, 100]}, "sex": {"levels": ["F", "M"]}}, '
    'each entry with optional "label", "unit" and "step"'
)


@dataclass(frozen=True)
class Numeric:
    """A number between two public bounds.

    Parameters
    ----------
    lower, upper : float
        Finite bounds, ``lower < upper``, in the variable's own unit. Values outside are clipped to
        them.
    label, unit : str, optional
        What the variable is and what it is measured in, for printing.
    step : float, default 0
        What values are rounded to, from the lower bound on: 1 for whole numbers, 0 for none.

    Raises
    ------
    CodebookError
        If a bound is not finite, the bounds are equal or reversed, or no steps lead from one on.

    Examples
    --------
    >>> import dpmodels as dp
    >>> dp.Numeric(0, 100, label="age at interview", unit="years").describe()
    '0 to 100'
    >>> dp.Numeric(0, 15, step=1, label="visits to a doctor").describe()
    '0 to 15 by 1'
    """

    lower: float
    upper: float
    label: str = ""
    unit: str = ""
    step: float = 0.0

    def __post_init__(self) -> None:
        for side in ("lower", "upper"):
            object.__setattr__(self, side, _bound(side, getattr(self, side)))
        if not self.lower < self.upper:
            raise CodebookError(
                f"bounds ({self.lower!r}, {self.upper!r}) are equal or reversed; "
                "the lower bound comes first and is smaller, for example (0, 100)"
            )
        _check_texts(self.label, self.unit)
        object.__setattr__(self, "step", _step(self.lower, self.upper, self.step))

    def describe(self) -> str:
        """Return the public range as text."""
        steps = f" by {self.step:,.10g}" if self.step else ""
        return f"{self.lower:,.10g} to {self.upper:,.10g}{steps}"


@dataclass(frozen=True)
class Categorical:
    """A category with public levels; the first is the reference level.

    Parameters
    ----------
    levels : sequence of str, int, float or bool
        At least two, all different, in order.
    label : str, optional
        What the variable is, for printing.

    Raises
    ------
    CodebookError
        If there are fewer than two levels, a level occurs twice or is not a plain value, or two
        levels cannot be told apart where software makes floating-point numbers of them: ``1`` and
        ``"01"``, or whole numbers from 2**53 up that are one in float64.

    Examples
    --------
    >>> import dpmodels as dp
    >>> dp.Categorical(["north", "south"], label="region").describe()
    'north | south'
    """

    levels: tuple[Level, ...]
    label: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "levels", tuple(_level(level) for level in self.levels))
        listed = shorten(repr(list(self.levels)), 200)
        texts = {str(level) for level in self.levels}
        if min(len(set(self.levels)), len(texts)) < len(self.levels):
            raise CodebookError(f"levels {listed} repeat a value; list each level once")
        require_distinct(self.levels, listed)
        if len(self.levels) < 2:
            raise CodebookError(
                f"levels {listed}: a category needs at least two levels; "
                "list every level the variable may take, present in the data or not"
            )
        _check_texts(self.label)

    def describe(self) -> str:
        """Return the public levels as text."""
        return " | ".join(str(level) for level in self.levels)


Variable = Numeric | Categorical


def _bound(side: str, declared: Any) -> float:
    bound = real(declared)
    if math.isnan(bound):
        raise CodebookError(
            f"{side} bound {shorten(repr(declared))} is not a finite number; "
            "declare a variable's range as (lower, upper), for example (0, 100)"
        )
    return bound


def _step(lower: float, upper: float, declared: Any) -> float:
    step = real(declared)
    steps = (upper - lower) / step if step > 0 else 0.0
    if step != 0 and not (1 <= steps <= 2**40 and abs(steps - round(steps)) <= _WHOLE):
        raise CodebookError(
            f"step {shorten(repr(declared))} does not lead from {lower!r} to {upper!r} in a whole "
            "number of steps; whole numbers are declared as dp.Numeric(0, 15, step=1)"
        )
    return (upper - lower) / round(steps) if step else 0.0


def _level(declared: Any) -> Level:
    level = declared.item() if isinstance(declared, np.generic) else declared
    if not isinstance(level, str | int | float) or level != level:
        raise CodebookError(
            f"level {shorten(repr(level))} is not a string, a number or a truth value; "
            'declare levels as a list, for example ["F", "M"]'
        )
    if isinstance(level, str):
        check_writable("level", level)
    elif as_number(level) != level:
        raise CodebookError(
            f"level {shorten(repr(level))} is no number of double precision, in which numbers "
            "are compared: declare the levels as strings, and give the column as text"
        )
    return level


def check_writable(what: str, text: str) -> None:
    """Refuse half of a surrogate pair, which no table could print and no file hold."""
    try:
        text.encode()
        require_text(text, what)
    except UnicodeEncodeError:
        raise CodebookError(
            f"{what} {shorten(ascii(text))} holds half a surrogate pair, which is no character: "
            "write it with whole characters, and read files as UTF-8"
        ) from None
    except FrameError as error:
        raise CodebookError(str(error)) from None


def _check_texts(*texts: object) -> None:
    for text in texts:
        if not isinstance(text, str):
            raise CodebookError(f"label or unit {shorten(repr(text))} is not a string")
        check_writable("label or unit", text)


def as_variable(name: str, declared: Any) -> Variable:
    """Read one declaration: a tuple is a range, a list is a set of levels."""
    try:
        match declared:
            case Numeric() | Categorical():
                return declared
            case tuple() if len(declared) == 2:
                return Numeric(*declared)
            case list():
                return Categorical(tuple(declared))
            case range():
                return Categorical(tuple(declared))
    except CodebookError as error:
        raise CodebookError(f"variable {name!r}: {error}") from None
    raise CodebookError(
        f"variable {name!r} is declared as {shorten(repr(declared), 200)}; "
        'expected bounds as a tuple, (0, 100), or levels as a list, ["F", "M"]'
    )


def to_plain(variable: Variable) -> dict[str, Any]:
    """Return one variable as JSON values; empty labels and units are left out."""
    entry: dict[str, Any]
    if isinstance(variable, Numeric):
        entry = {"range": [variable.lower, variable.upper], "unit": variable.unit}
        entry["step"] = variable.step or ""
    else:
        entry = {"levels": list(variable.levels)}
    entry["label"] = variable.label
    return {key: value for key, value in entry.items() if value != ""}


def from_plain(name: str, entry: Any) -> Variable:
    """Read one variable from JSON values."""
    try:
        match entry:
            case {"range": [lower, upper], **rest} if set(rest) <= {"unit", "label", "step"}:
                return Numeric(lower, upper, **cast("dict[str, Any]", rest))
            case {"levels": [*levels], **rest} if set(rest) <= {"label"}:
                return Categorical(tuple(levels), **cast("dict[str, str]", rest))
    except CodebookError as error:
        raise CodebookError(f"variable {name!r}: {error}") from None
    raise CodebookError(f"variable {name!r} is declared as {shorten(repr(entry), 200)}; {FORM}")
