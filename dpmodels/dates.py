"""A day between public days; days as numbers since 1970-01-01, and as text."""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from dpmodels.errors import CodebookError, shorten
from dpmodels.levels import Level, check_texts, missing_codes, said_missing, sequence
from dpmodels.typing import Floats

EPOCH: Final = date(1970, 1, 1).toordinal()
FIRST_DAY: Final = float(date.min.toordinal() - EPOCH)
LAST_DAY: Final = float(date.max.toordinal() - EPOCH)


def day_of_text(text: str) -> float:
    """Return the day that ISO 8601 text begins with, nan for other text.

    Text of digits alone is not a day, since software may give it as a number.

    >>> day_of_text("1970-02-01"), day_of_text("1970-02-01T23:59"), day_of_text("19700201")
    (31.0, 31.0, nan)
    """
    if text[4:5] != "-":
        return math.nan
    try:
        return float(datetime.fromisoformat(text).toordinal() - EPOCH)
    except ValueError:
        return math.nan


def day_of(cell: object) -> float:
    """Return the day of a date, a time or ISO text; nan for other cells.

    Times with a zone have the day of that zone. Methods of foreign classes are not called.

    >>> from datetime import date
    >>> day_of(date(1970, 1, 2)), day_of("1970-01-02"), day_of(1)
    (1.0, 1.0, nan)
    """
    kind = type(cell)
    value: Any = cell
    try:
        if type.__subclasscheck__(str, kind):
            return day_of_text(str.__str__(value))
        if type.__subclasscheck__(np.datetime64, kind):
            return float(days_of_times(np.asarray(value)))
        # pandas' missing time is of a class of datetimes, and stands in the year 1.
        if type.__subclasscheck__(date, kind) and not _is_nat(value):
            return float(date.toordinal(value) - EPOCH)
    except Exception:
        return math.nan
    return math.nan


def days_of_times(times: NDArray[np.generic]) -> Floats:
    """Return the days of numpy's times, of any shape, rounded down; nan if missing."""
    days = times.astype("datetime64[D]")
    return np.where(np.isnat(days), np.nan, days.astype(np.int64).astype(np.float64))


def _is_nat(cell: object) -> bool:
    pandas = sys.modules.get("pandas")
    return pandas is not None and cell is pandas.NaT


def text_of_day(day: float) -> str:
    """Return a day of the years 1 to 9999 as ISO text.

    >>> text_of_day(31.0)
    '1970-02-01'
    """
    return date.fromordinal(round(day) + EPOCH).isoformat()


@dataclass(frozen=True)
class Date:
    """A day between two public days, both possible.

    Parameters
    ----------
    lower, upper : date, datetime64 or str
        Days of the years 1 to 9999, ``lower < upper``; text in the form ``"2001-12-31"``. Days
        outside are clipped to them.
    label : str, optional
        What the day is of, for printing.
    missing : sequence of str, date or number, optional
        Days or codes that stand for a missing value, within the bounds or not.

    Raises
    ------
    CodebookError
        If a bound is not a day, the bounds are equal or reversed, or a missing code is not a plain
        value.

    Notes
    -----
    Cells may be dates, times (the day they fall on in their own zone) or ISO text. In a formula a
    date is the number of days since 1970-01-01; it is compared with ISO text, and
    ``d - "2001-01-01"`` counts days from there.

    Examples
    --------
    >>> import dpmodels as dp
    >>> dp.Date("2001-01-01", "2020-12-31", label="enrolment").describe()
    '2001-01-01 to 2020-12-31'
    """

    lower: date
    upper: date
    label: str = ""
    missing: tuple[Level, ...] = ()

    def __post_init__(self) -> None:
        for side in ("lower", "upper"):
            object.__setattr__(self, side, _day(side, getattr(self, side)))
        if not self.lower < self.upper:
            raise CodebookError(
                f"days ({str(self.lower)!r}, {str(self.upper)!r}) are equal or reversed; the "
                'first comes first, for example ("2001-01-01", "2020-12-31")'
            )
        check_texts(self.label)
        coded = [_iso(code) for code in sequence("missing", self.missing)]
        object.__setattr__(self, "missing", missing_codes(coded))

    @property
    def days(self) -> tuple[float, float]:
        """The first and the last day, in days since 1970-01-01."""
        return day_of(self.lower), day_of(self.upper)

    def describe(self) -> str:
        """Return the public range and the missing codes as text."""
        first, last = self.days
        within = [first <= day_of(code) <= last for code in self.missing]
        return f"{self.lower} to {self.upper}{said_missing(self.missing, within)}"


def _day(side: str, declared: object) -> date:
    day = day_of(declared)
    if not FIRST_DAY <= day <= LAST_DAY:
        raise CodebookError(
            f"{side} bound {shorten(repr(declared))} is not a day of the years 1 to 9999; declare "
            'days as dp.Date("2001-01-01", "2020-12-31")'
        )
    return date.fromordinal(round(day) + EPOCH)


def _iso(code: object) -> object:
    """Write a date as ISO text, the form of stored codes."""
    day = day_of(code)
    return code if isinstance(code, str) or math.isnan(day) else text_of_day(day)
