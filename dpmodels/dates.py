"""A day between public days; days as numbers since 1970-01-01, and as text."""

from __future__ import annotations

import math
import re
import sys
from dataclasses import dataclass
from datetime import date, datetime, time
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from dpmodels.arguments import checked_fields
from dpmodels.errors import CodebookError, shorten
from dpmodels.levels import Level, check_texts, missing_codes, said_missing, sequence
from dpmodels.typing import Floats

EPOCH: Final = date(1970, 1, 1).toordinal()
FIRST_DAY: Final = float(date.min.toordinal() - EPOCH)
LAST_DAY: Final = float(date.max.toordinal() - EPOCH)
_TICKS_PER_SECOND: Final = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
_TICKS_PER_MICROSECOND: Final = {"ns": 10**3, "ps": 10**6, "fs": 10**9, "as": 10**12}
_DAYS_OF_ZONES: Final = 2  # More than the clocks of a zone are from UTC


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
        if type.__subclasscheck__(date, kind) and not _is_misread(value):
            return float(date.toordinal(value) - EPOCH)
    except Exception:
        return math.nan
    return math.nan


def days_of_times(times: NDArray[np.generic]) -> Floats:
    """Return the days of numpy's times, of any shape, rounded down.

    nan where missing, or outside the years 1 to 9999, which text does not spell.
    """
    days = _in_microseconds(times).astype("datetime64[D]")
    numbers = days.astype(np.int64).astype(np.float64)
    is_day = ~np.isnat(days) & (numbers >= FIRST_DAY) & (numbers <= LAST_DAY)
    return np.where(is_day, numbers, np.nan)


def _unit(times: NDArray[np.generic]) -> str:
    return np.datetime_data(times.dtype.str)[0]


def _in_microseconds(times: NDArray[np.generic]) -> NDArray[np.generic]:
    """Round finer times down to microseconds; leave others.

    numpy overflows at the first times that nanoseconds hold, and refuses some finer units.
    """
    unit = _unit(times)
    if unit not in _TICKS_PER_MICROSECOND:
        return times
    ticks = times.astype(f"datetime64[{unit}]").astype(np.int64) // _TICKS_PER_MICROSECOND[unit]
    return np.where(np.isnat(times), np.datetime64("NaT", "us"), ticks.astype("datetime64[us]"))


def is_on_clocks(instants: NDArray[np.generic]) -> NDArray[np.bool_]:
    """Whether times of UTC are times of the clocks of any zone, near the years 1 to 9999.

    Libraries raise errors, or begin anew in the year 1677, where the time of a zone does not fit in
    64 bits.
    """
    per_day = 86_400 * _TICKS_PER_SECOND[_unit(instants)]
    ticks = instants.astype(np.int64)
    days = ticks / per_day
    fits = np.abs(days) < (2**63 - 1) / per_day - _DAYS_OF_ZONES
    near = (days > FIRST_DAY - _DAYS_OF_ZONES) & (days < LAST_DAY + _DAYS_OF_ZONES)
    return np.asarray(fits & near)


# Days, times of a day, and times of a clock, as readers of text files recognise them.
_TIME: Final = re.compile(
    r"\d{4}-\d\d-\d\d([T ]\d\d(:\d\d(:\d\d(\.\d+)?)?)?(Z|[+-]\d\d:?\d\d)?)?"
    r"|\d\d:\d\d(:\d\d(\.\d+)?)?",
    re.ASCII,
)


def time_text(cell: object) -> str:
    """Return the shortest ISO text of a date or time, or of text that spells one.

    Empty for other cells. Midnight is the date alone, seconds are left out where they are 0, and
    times with a zone are those of its clocks. Methods of foreign classes are not called.

    >>> time_text("2020-01-02 05:06:00"), time_text(date(2020, 1, 2)), time_text("12:30:15")
    ('2020-01-02T05:06', '2020-01-02', '12:30:15')
    """
    kind = type(cell)
    value: Any = cell
    try:
        if type.__subclasscheck__(str, kind):
            text = str.__str__(value)
            if not _TIME.fullmatch(text):
                return ""
            if text[2] == ":":
                return _clock(time.fromisoformat(text))
            return _moment(datetime.fromisoformat(text))
        if type.__subclasscheck__(np.datetime64, kind):
            return time_texts(np.asarray([value]))[0]
        if type.__subclasscheck__(time, kind):
            return _clock(value)
        if type.__subclasscheck__(datetime, kind):
            return "" if _is_misread(value) else _moment(value)
        if type.__subclasscheck__(date, kind):
            return date.isoformat(value)
    except Exception:
        return ""
    return ""


def time_texts(times: NDArray[np.generic]) -> list[str]:
    """Return the texts of numpy's times, shape (n,), empty where missing."""
    is_time = ~np.isnan(days_of_times(times))
    texts = np.full(len(times), "", dtype=object)
    moments = _in_microseconds(times[is_time]).astype("M8[us]").tolist()
    texts[is_time] = [_moment(value) for value in moments]
    return list(texts)


def _moment(value: datetime) -> str:
    clock, day = _clock(datetime.time(value)), date.isoformat(datetime.date(value))
    return day if clock == "00:00" else f"{day}T{clock}"


def _clock(value: time) -> str:
    fields = (time.hour, time.minute, time.second, time.microsecond)
    hour, minute, second, microsecond = (field.__get__(value) for field in fields)
    is_whole = not (second or microsecond)
    return time(hour, minute, second, microsecond).isoformat("minutes" if is_whole else "auto")


def _is_misread(cell: object) -> bool:
    """Whether a cell of pandas has fields of a datetime that are not its own.

    A missing time stands in the year 1, and one outside the years 1 to 9999 about the year 1970.
    """
    pandas = sys.modules.get("pandas")
    if pandas is None or cell is pandas.NaT:
        return pandas is not None
    is_timestamp = type.__subclasscheck__(pandas.Timestamp, type(cell))
    return is_timestamp and pandas.Timestamp.year.__get__(cell) != date.year.__get__(cell)


def text_of_day(day: float) -> str:
    """Return a day of the years 1 to 9999 as ISO text.

    >>> text_of_day(31.0)
    '1970-02-01'
    """
    return date.fromordinal(round(day) + EPOCH).isoformat()


@checked_fields("dp.Date")
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
            declared = getattr(self, side)
            day = day_of(declared)
            if not FIRST_DAY <= day <= LAST_DAY:
                raise CodebookError(
                    f"{side} bound {shorten(repr(declared))} is not a day of the years 1 to 9999; "
                    'declare days as dp.Date("2001-01-01", "2020-12-31")'
                )
            object.__setattr__(self, side, date.fromordinal(round(day) + EPOCH))
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


def _iso(code: object) -> object:
    day = day_of(code)
    return code if isinstance(code, str) or math.isnan(day) else text_of_day(day)
