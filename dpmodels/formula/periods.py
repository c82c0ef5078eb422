"""Periods of time between public ends: days, weeks and months, whole numbers, ordered levels."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

import numpy as np

from dpmodels.dates import Date, day_of, text_of_day
from dpmodels.errors import ArgumentError, FormulaError, quoted, shorten
from dpmodels.formula.expression import compile_factor
from dpmodels.formula.functions import by_whole_numbers, whole_names
from dpmodels.formula.parse import quote
from dpmodels.formula.tally import MAX_CELLS
from dpmodels.formula.values import Category, Columns, Real
from dpmodels.levels import Level
from dpmodels.typing import Array, Floats
from dpmodels.variables import Variable

MONTHS: Final = {"month": 1, "quarter": 3, "year": 12}
CALENDAR: Final = ("day", "week", *MONTHS)
_WEEK: Final = 7
_LISTED: Final = 6  # A choice: more are not listed in an error
# 1970-01-01 was a Thursday, weeks begin on Mondays.
_MONDAY: Final = -3
_DECLARE: Final = (
    'expected a variable with an order in time: dp.Date("2024-01-01", "2024-12-31"), dp.Integer(1, '
    '52) or dp.Categorical(["low", "high"], ordered=True)'
)


@dataclass(frozen=True, eq=False)
class Periods:
    """Consecutive periods in order."""

    factor: Category  # The period of a row; its levels are their names
    ends: Floats  # The first value of each, and what comes after the last
    of: Literal["days", "numbers", "levels"]  # What values are: days are since 1970-01-01

    def __len__(self) -> int:
        return len(self.ends) - 1

    @property
    def times(self) -> Array:
        """When each begins: a time of whole seconds, a number or a level."""
        if self.of == "days":
            # pandas has no unit of days, and nanoseconds do not cover all years.
            return self.ends[:-1].astype("datetime64[D]").astype("datetime64[s]")
        if self.of == "numbers":
            return self.ends[:-1].astype(np.int64)
        return np.array(self.factor.levels, dtype=object)

    def start(self, value: object) -> int:
        """Return the period that begins with a value; ArgumentError where none does."""
        return self._place("start", value, self.ends[:-1])

    def stop(self, value: object) -> int:
        """Return one more than the period that ends with a value, itself in it."""
        return 1 + self._place("end", value, self.ends[1:] - 1)

    def _place(self, argument: str, value: object, candidates: Floats) -> int:
        boundaries: list[Any] = candidates.tolist()
        if self.of == "levels":
            boundaries = list(self.factor.levels)
        plain = value.item() if isinstance(value, np.number) else value
        boundary = day_of(value) if self.of == "days" else plain
        if (
            not isinstance(boundary, Level)
            or isinstance(boundary, bool)
            or boundary not in boundaries
        ):
            text = text_of_day if self.of == "days" else "{:.0f}".format
            texts = [entry if self.of == "levels" else text(entry) for entry in boundaries]
            listed = texts if len(texts) <= _LISTED else [*texts[:2], "...", texts[-1]]
            verb = "begins" if argument == "start" else "ends"
            raise ArgumentError(
                f"{argument}={quoted(value)}: no period {verb} there; expected one of "
                f"{', '.join(map(str, listed))}"
            )
        return boundaries.index(boundary)


def periods(time: object, by: object, book: Mapping[str, Variable]) -> Periods:
    """Return the periods of a variable, of `by` values each or by the calendar.

    CodebookError for a variable that is not declared, FormulaError for one without an order,
    ArgumentError for invalid periods. No row is read.
    """
    if not isinstance(time, str):
        raise ArgumentError(f"time={quoted(time)}: {_DECLARE}, by its name")
    value = compile_factor(quote(time), book)
    match value:
        case Category(ordered=True, levels=levels, evaluate=evaluate):
            if by is not None:
                raise ArgumentError(
                    f"by={quoted(by)}: the levels of {shorten(time)!r} are the periods; write no "
                    "by="
                )
            ends = np.arange(len(levels) + 1.0)
            return Periods(Category(value.code, levels, evaluate), ends, "levels")
        case Real() if by_whole_numbers(value):
            ends = _ends(value, by)
        case _:
            raise FormulaError(f"time={shorten(time)!r} has no order: {_DECLARE}")
    if len(ends) < 3:
        raise ArgumentError(
            f"by={quoted(by)}: {shorten(time)!r} has one period only; take shorter periods, or "
            "count with dp_table"
        )
    name, dated = time, isinstance(book[time], Date)

    def place(columns: Columns) -> Floats:
        at = columns[name]
        inside = (at >= ends[0]) & (at < ends[-1])
        return np.where(inside, np.searchsorted(ends, at, side="right") - 1.0, np.nan)

    names = _names(ends, by, dated=dated)
    return Periods(Category(value.code, names, place), ends, "days" if dated else "numbers")


def _ends(value: Real, by: object) -> Floats:
    """Return the first value of each period, and what comes after the last."""
    by = ("day" if value.date else 1) if by is None else by
    if value.date and isinstance(by, str) and by in CALENDAR:
        return _calendar(value, by)
    if isinstance(by, int | np.integer) and not isinstance(by, bool) and by >= 1:
        return _stepped(value, value.lower, int(by))
    units = ", ".join(map(repr, CALENDAR)) + ", or " if value.date else ""
    kind = "days" if value.date else "values"
    raise ArgumentError(f"by={quoted(by)}: expected {units}a whole number of {kind} from 1 up")


def _calendar(value: Real, by: str) -> Floats:
    if by == "day":
        return _stepped(value, value.lower, 1)
    if by == "week":
        return _stepped(value, (value.lower - _MONDAY) // _WEEK * _WEEK + _MONDAY, _WEEK)
    first, last = (
        np.array([value.lower, value.upper])
        .astype("datetime64[D]")
        .astype("datetime64[M]")
        .astype(np.int64)
    )
    width = MONTHS[by]
    months = np.arange(first // width * width, last + 1, width).astype("datetime64[M]")
    starts = months.astype("datetime64[D]").astype(np.float64)
    return np.append(np.maximum(starts, value.lower), value.upper + 1)


def _stepped(value: Real, first: float, width: int) -> Floats:
    n_periods = (value.upper - first) // width + 1
    if n_periods > MAX_CELLS:
        raise ArgumentError(
            f"{shorten(value.code)!r} has {n_periods:,.0f} periods; at most {MAX_CELLS:,} are "
            "counted: declare narrower bounds, or take longer periods by="
        )
    starts = np.arange(n_periods) * width + first
    return np.append(np.maximum(starts, value.lower), value.upper + 1)


def _names(ends: Floats, by: object, *, dated: bool) -> tuple[Level, ...]:
    """Name periods: days by the first, months and years as in ISO 8601, numbers by their values."""
    firsts = ends[:-1].tolist()
    if not dated:
        one_each = bool((np.diff(ends) == 1).all())
        return (
            tuple(map(int, firsts)) if one_each else whole_names((ends - 0.5).tolist(), date=False)
        )
    texts = np.datetime_as_string(ends[:-1].astype("datetime64[D]")).tolist()
    match by:
        case "month":
            return tuple(text[:-3] for text in texts)
        case "quarter":
            return tuple(f"{text[:-6]}Q{(int(text[-5:-3]) + 2) // 3}" for text in texts)
        case "year":
            return tuple(text[:-6] for text in texts)
    return tuple(texts)
