"""Variables: a number with public bounds, a date, or a category with public levels."""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from dpmodels.arguments import checked_fields, real
from dpmodels.dates import Date, day_of
from dpmodels.errors import CodebookError, shorten
from dpmodels.levels import (
    Level,
    as_level,
    as_number,
    check_apart,
    check_levels,
    check_texts,
    level_labels,
    missing_codes,
    said_missing,
    sequence,
)

_WHOLE = 1e-6  # What a number of steps may be off in floats: a choice.

FORM: Final = (
    'expected {"age": {"range": [0, 100]}, "sex": {"levels": ["F", "M"]}}, each entry with '
    'optional "type", "label", "unit", "step", "missing", "labels" and "ordered"'
)


_ANY: Final = {"label", "missing"}
_UNIT: Final = _ANY | {"unit"}


@checked_fields("dp.Numeric")
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
    missing : sequence of float or str, optional
        Codes that stand for a missing value, within the bounds or not.

    Raises
    ------
    CodebookError
        If a bound is not finite, the bounds are equal or reversed, their distance is not a number
        of steps, or a missing code is not a plain value.

    Examples
    --------
    >>> import dpmodels as dp
    >>> dp.Numeric(0, 100, label="age at interview", unit="years").describe()
    '0 to 100'
    >>> dp.Numeric(0, 15, step=1, label="visits to a doctor", missing=[-9]).describe()
    '0 to 15 by 1; missing: -9'
    """

    lower: float
    upper: float
    label: str = ""
    unit: str = ""
    step: float = 0.0
    missing: tuple[Level, ...] = ()

    def __post_init__(self) -> None:
        for side in ("lower", "upper"):
            declared = getattr(self, side)
            bound = real(declared)
            if math.isnan(bound):
                days = (
                    ', or of days ("2001-01-01", "2020-12-31"); levels are a list, ["low", "high"]'
                )
                raise CodebookError(
                    f"{side} bound {shorten(repr(declared))} is not a finite number; declare a "
                    "variable's range as (lower, upper), for example (0, 100)"
                    f"{days * isinstance(declared, str)}"
                )
            object.__setattr__(self, side, bound)
        if not self.lower < self.upper:
            raise CodebookError(
                f"bounds ({self.lower!r}, {self.upper!r}) are equal or reversed; "
                "the lower bound comes first and is smaller, for example (0, 100)"
            )
        check_texts(self.label, self.unit)
        step = real(self.step)
        steps = (self.upper - self.lower) / step if step > 0 else 0.0
        if step != 0 and not (1 <= steps <= 2**40 and abs(steps - round(steps)) <= _WHOLE):
            raise CodebookError(
                f"step {shorten(repr(self.step))} does not lead from {self.lower!r} to "
                f"{self.upper!r} in a whole number of steps; whole numbers are declared as "
                "dp.Numeric(0, 15, step=1)"
            )
        exact_step = (self.upper - self.lower) / round(steps) if step else 0.0
        object.__setattr__(self, "step", exact_step)
        object.__setattr__(self, "missing", missing_codes(self.missing))

    def describe(self) -> str:
        """Return the public range and the missing codes as text."""
        steps = f" by {self.step:,.10g}" if self.step else ""
        within = [self.lower <= as_number(code) <= self.upper for code in self.missing]
        return (
            f"{self.lower:,.10g} to {self.upper:,.10g}{steps}{said_missing(self.missing, within)}"
        )


@checked_fields("dp.Integer")
@dataclass(frozen=True)
class Integer(Numeric):
    """A whole number between two public bounds, printed as such.

    Parameters
    ----------
    lower, upper : int
        Whole bounds, ``lower < upper``. Values are rounded to the nearest whole number.
    label, unit, missing : optional
        As for :class:`Numeric`.

    Raises
    ------
    CodebookError
        As for :class:`Numeric`, and if a bound is not whole.

    Examples
    --------
    >>> import dpmodels as dp
    >>> dp.Integer(0, 15, label="visits to a doctor", missing=[-9]).describe()
    '0 to 15; missing: -9'
    """

    step: float = field(default=1.0, init=False, repr=False)
    missing: tuple[Level, ...] = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        for side in ("lower", "upper"):
            bound = getattr(self, side)
            if bound != int(bound):
                raise CodebookError(
                    f"{side} bound {bound!r} of a whole number is not whole; write for example "
                    "dp.Integer(0, 15), or dp.Numeric(0.5, 15) for any number"
                )
            object.__setattr__(self, side, int(bound))

    def describe(self) -> str:
        """Return the public range and the missing codes as text."""
        within = [self.lower <= as_number(code) <= self.upper for code in self.missing]
        return f"{self.lower:,} to {self.upper:,}{said_missing(self.missing, within)}"


@checked_fields("dp.Categorical")
@dataclass(frozen=True)
class Categorical:
    """A category with public levels; the first is the reference level.

    Parameters
    ----------
    levels : sequence of str, int, float or bool, or mapping
        At least two, all different, in order. A mapping gives each its label:
        ``{1: "low", 2: "high"}``.
    label : str, optional
        What the variable is, for printing.
    labels : sequence of str or mapping, optional
        What is printed for the levels, all different: one for each, or a mapping of some.
    missing : sequence of str, int, float or bool, optional
        Codes that stand for a missing value; none of them is a level.
    ordered : bool, default False
        Whether the levels rise in the order they are listed, and may be compared by ``<``. How
        they are coded does not change.

    Raises
    ------
    CodebookError
        If there are fewer than two levels, a level or label occurs twice or is not a plain value,
        a missing code is a level, or two levels are equal once software reads them as
        floating-point numbers: ``1`` and ``"01"``, or whole numbers from 2**53 up that are one in
        float64.

    Examples
    --------
    >>> import dpmodels as dp
    >>> dp.Categorical(["north", "south"], label="region").describe()
    'north | south'
    >>> educ = dp.Categorical({1: "low", 2: "high"}, ordered=True, missing=[9])
    >>> educ.describe(), educ.shown(2)
    ('1 = low < 2 = high; missing: 9', 'high')
    """

    levels: tuple[Level, ...]
    label: str = ""
    labels: tuple[str, ...] = ()
    missing: tuple[Level, ...] = ()
    ordered: bool = False

    def __post_init__(self) -> None:
        labels = _labels_argument(self.levels, self.labels)
        levels = tuple(as_level(level) for level in sequence("levels", self.levels))
        object.__setattr__(self, "levels", levels)
        check_levels(levels)
        object.__setattr__(self, "labels", level_labels(levels, labels))
        object.__setattr__(self, "missing", missing_codes(self.missing))
        check_apart(levels, self.missing)
        if not isinstance(self.ordered, bool):
            raise CodebookError(
                f"ordered={shorten(repr(self.ordered))}: expected True where the levels rise in "
                "the order they are listed, or False"
            )
        check_texts(self.label)

    @property
    def shown_levels(self) -> tuple[Level, ...]:
        """What is printed for each level: its label, or the level itself."""
        return self.labels or self.levels

    def shown(self, level: Level) -> Level:
        """Return what is printed for a level: its label, or the level itself."""
        return self.shown_levels[self.levels.index(level)]

    def describe(self) -> str:
        """Return the public levels, their labels and the missing codes as text."""
        pairs = zip(self.levels, self.shown_levels, strict=True)
        texts = [str(a) if str(a) == str(b) else f"{a} = {b}" for a, b in pairs]
        return (" < " if self.ordered else " | ").join(texts) + said_missing(self.missing)


def _labels_argument(levels: object, labels: object) -> object:
    if not isinstance(levels, Mapping):
        return labels
    if labels:
        raise CodebookError(
            "levels are a mapping to their labels, and labels= is given too; write one of them"
        )
    return levels


@checked_fields("dp.Boolean")
@dataclass(frozen=True)
class Boolean(Categorical):
    """True or False; the level False is the reference.

    Parameters
    ----------
    label, missing : optional
        As for :class:`Categorical`.

    Notes
    -----
    Cells may be truth values, the numbers 0 and 1, or the text ``true`` and ``false`` as Python, R
    and SQL write it.

    Examples
    --------
    >>> import dpmodels as dp
    >>> dp.Boolean(label="ever smoked").describe()
    'False | True'
    """

    levels: tuple[Level, ...] = field(default=(False, True), init=False, repr=False)
    label: str = ""
    labels: tuple[str, ...] = field(default=(), init=False, repr=False)
    missing: tuple[Level, ...] = ()
    ordered: bool = field(default=False, init=False, repr=False)


Variable = Numeric | Date | Categorical


def kind(variable: Variable) -> str:
    """Return the type of a variable as a word.

    >>> kind(Integer(0, 15)), kind(Categorical(["low", "high"], ordered=True))
    ('integer', 'ordered')
    """
    match variable:
        case Integer():
            return "integer"
        case Numeric():
            return "numeric"
        case Date():
            return "date"
        case Boolean():
            return "boolean"
    return "ordered" if variable.ordered else "categorical"


def as_variable(name: str, declared: object) -> Variable:
    """Read a declaration: a tuple is a range; a list, dict, bool or pandas' dtype are levels."""
    try:
        match declared:
            case Numeric() | Date() | Categorical():
                return declared
            case tuple() if len(declared) == 2:
                numbers = all(isinstance(end, int | float) for end in declared)
                days = not numbers and not any(math.isnan(day_of(end)) for end in declared)
                return Date(*declared) if days else Numeric(*declared)
            case list() | range():
                return Categorical(tuple(declared))
            case dict() if _are_labels(declared):
                return Categorical(declared)  # type: ignore[arg-type]
            case type() if declared in (bool, Boolean):
                return Boolean()
        pandas = sys.modules.get("pandas")
        if pandas is not None and isinstance(declared, pandas.CategoricalDtype):
            if declared.categories is None:
                raise CodebookError("a CategoricalDtype without categories: write them, as a list")
            return Categorical(tuple(declared.categories), ordered=bool(declared.ordered))
    except CodebookError as error:
        raise CodebookError(f"variable {name!r}: {error}") from None
    raise CodebookError(
        f"variable {name!r} is declared as {shorten(repr(declared), 200)}; "
        'expected bounds as a tuple, (0, 100), or levels as a list, ["F", "M"], '
        'with their labels, {1: "low", 2: "high"}, or bool'
    )


def _are_labels(declared: dict[object, object]) -> bool:
    """Whether a dict has labels of levels, and is not an entry of a codebook's file."""
    texts = all(isinstance(label, str) for label in declared.values())
    return texts and not {"type", "range", "levels"} & set(declared)


def to_plain(variable: Variable) -> dict[str, object]:
    """Return one variable as JSON values; what is not declared is left out."""
    entry: dict[str, object] = {}
    match variable:
        case Boolean():
            entry = {"type": "boolean"}
        case Categorical():
            entry = {"levels": list(variable.levels), "labels": list(variable.labels)}
            entry["ordered"] = variable.ordered
        case Date():
            entry = {"type": "date", "range": [str(variable.lower), str(variable.upper)]}
        case Integer():
            entry = {"type": "integer", "range": [variable.lower, variable.upper]}
            entry["unit"] = variable.unit
        case Numeric():
            entry = {"range": [variable.lower, variable.upper], "unit": variable.unit}
            entry["step"] = variable.step
    entry |= {"label": variable.label, "missing": list(variable.missing)}
    return {key: value for key, value in entry.items() if value}


def from_plain(name: str, entry: object) -> Variable:
    """Read one variable from JSON values."""
    try:
        match entry:
            case {"type": "boolean", **rest} if set(rest) <= _ANY:
                return Boolean(**_words(rest))
            case {"type": "date", "range": [lower, upper], **rest} if set(rest) <= _ANY:
                return Date(lower, upper, **_words(rest))
            case {"type": "integer", "range": [lower, upper], **rest} if set(rest) <= _UNIT:
                return Integer(lower, upper, **_words(rest))
            case {"range": [lower, upper], **rest} if set(rest) <= _UNIT | {"step"}:
                return Numeric(lower, upper, **_words(rest))
            case {"levels": [*levels], **rest} if set(rest) <= _ANY | {"labels", "ordered"}:
                return Categorical(tuple(levels), **_words(rest))
    except CodebookError as error:
        raise CodebookError(f"variable {name!r}: {error}") from None
    raise CodebookError(f"variable {name!r} is declared as {shorten(repr(entry), 200)}; {FORM}")


def _words(rest: dict[Any, Any]) -> dict[str, Any]:
    return rest
