"""Parts of a date: its year, its month and its day of the week, with exact ranges."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from dpmodels.errors import FormulaError
from dpmodels.formula.values import Category, Columns, Real, Value
from dpmodels.typing import Floats

MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
WEEKDAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")


def year(code: str, args: Sequence[Value], options: Mapping[str, Value]) -> Real:
    """Build the year of a date, a whole number."""
    x = _date(code, args, options)
    lower, upper = _years(np.array([x.lower, x.upper])).tolist()
    return Real(code, lower, upper, lambda columns: _part(x, columns, _years), step=1.0)


def month(code: str, args: Sequence[Value], options: Mapping[str, Value]) -> Category:
    """Build the month of a date, a category of 1 to 12 that is printed by name."""
    return _cyclic(code, _date(code, args, options), _months, MONTHS)


def weekday(code: str, args: Sequence[Value], options: Mapping[str, Value]) -> Category:
    """Build the day of the week, a category of 1 (Monday) to 7 that is printed by name."""
    return _cyclic(code, _date(code, args, options), _weekdays, WEEKDAYS)


def _date(code: str, args: Sequence[Value], options: Mapping[str, Value]) -> Real:
    if len(args) != 1 or options:
        raise FormulaError(f"{code!r}: expected exactly one argument")
    (x,) = args
    if not isinstance(x, Real) or not x.date:
        raise FormulaError(
            f"{code!r}: {x.code} is not a date; declare it as one, for example "
            'dp.Date("2001-01-01", "2020-12-31")'
        )
    return x


def _cyclic(
    code: str, x: Real, part: Callable[[Floats], Floats], names: tuple[str, ...]
) -> Category:
    """Build a category of the parts that some day of the range has."""
    # 12 months from any day on hold all months, and all days of the week.
    days = np.arange(x.lower, min(x.upper, x.lower + 366) + 1)
    reached = np.unique(part(days)).astype(np.intp)
    if len(reached) < 2:
        raise FormulaError(
            f"{code!r} is {names[reached[0]]} on each day of the declared range; leave it out"
        )
    return Category(
        code,
        tuple(names[one] for one in reached),
        lambda columns: _part(x, columns, lambda found: np.searchsorted(reached, part(found))),
        written=tuple(int(one) + 1 for one in reached),
        ordered=True,
    )


def _part(x: Real, columns: Columns, part: Callable[[Floats], NDArray[np.generic]]) -> Floats:
    """Return a part of each day, nan where it is missing."""
    days = x.evaluate(columns)
    missing = np.isnan(days)
    return np.where(missing, np.nan, part(np.where(missing, x.lower, days)))


def _in(days: Floats, unit: str) -> Floats:
    return np.floor(days).astype("datetime64[D]").astype(f"datetime64[{unit}]").astype(np.float64)


def _years(days: Floats) -> Floats:
    return _in(days, "Y") + 1970


def _months(days: Floats) -> Floats:
    return _in(days, "M") % 12


def _weekdays(days: Floats) -> Floats:
    # 1970-01-01 was a Thursday.
    return (np.floor(days) + 3) % 7
