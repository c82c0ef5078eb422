"""Times until an event, ``Surv(time, event)`` with a curve for each group, and periods of time."""

from __future__ import annotations

import ast
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, Literal

import numpy as np

from dpmodels.arguments import finite, lists_values
from dpmodels.codebook import Codebook
from dpmodels.dates import Date, day_of, text_of_day
from dpmodels.errors import ArgumentError, FormulaError, quoted, shorten
from dpmodels.formula.coding import code_terms, known_formula, used_codebook
from dpmodels.formula.expression import compile_factor
from dpmodels.formula.functions import by_whole_numbers, whole_names
from dpmodels.formula.parse import ParsedFormula, parsed_formula, quote, syntax
from dpmodels.formula.sides import Sides, grouping
from dpmodels.formula.tally import MAX_CELLS, Tally, binned, coded_levels
from dpmodels.formula.values import Category, Columns, Evaluate, Real, Truth
from dpmodels.levels import Level
from dpmodels.typing import Array, Floats
from dpmodels.variables import Variable

# A choice: the noise of a curve takes the square of their number in memory.
MOST_INTERVALS = 1_000
ENDINGS = ("censored", "event")
# In parts of an interval.
ROUNDING = 1e-9
BEYOND = "followed to the end"
_WRITE = "write 'Surv(time, event) ~ group', or '~ 1' for one curve"


@dataclass(frozen=True)
class Survival:
    """Public facts of times until an event, by groups or not.

    `event` is how a row's time ended, one of the two `ENDINGS`. Times above the declared range are
    censored at its end. So are times at the end if time has a step: larger values are clipped to
    it.
    """

    text: str
    codebook: Codebook
    time: Real
    event: Category
    groups: tuple[Category, ...]

    @property
    def sides(self) -> Sides:
        """The described factors and the groups."""
        return Sides(self.text, self.codebook, (self.time, self.event), self.groups)

    @property
    def grid(self) -> Real:
        """The times at which events count: before the declared end if time has a step."""
        return replace(self.time, upper=self.time.upper - self.time.step)

    def coded_groups(self) -> tuple[tuple[str, ...], Floats]:
        """Return the names of the coded terms, and their values, shape (groups, columns)."""
        parsed = replace(parsed_formula(self.text, self.codebook), intercept=True)
        blocks = code_terms(parsed, self.codebook)
        names = tuple(name for block in blocks for name in block.names)
        return names, coded_levels(blocks, self.groups)

    def tally(self, breaks: object) -> tuple[Tally, tuple[float, ...]]:
        """Return the table of groups, endings and intervals of time, and the ends of the latter.

        The intervals cover the declared range: its ends are added where breaks do not reach them.
        One more is for rows that were followed to the end without the event.
        """
        cut, ends = binned(self.grid, _covering(self.time, self.grid, breaks))
        if len(cut.levels) > MOST_INTERVALS:
            raise FormulaError(
                f"breaks= makes {len(cut.levels):,} intervals of {self.time.code!r}; write at most "
                f"{MOST_INTERVALS:,}, such as breaks=100"
            )
        how, name = self.event.evaluate, str(self.time.variable)

        def when(columns: Columns) -> Floats:
            followed = (columns[name] >= self.time.upper) & (how(columns) == 0)
            return np.where(followed, float(len(cut.levels)), cut.evaluate(columns))

        followed_up = replace(cut, levels=(*cut.levels, BEYOND), evaluate=when)
        return Tally((*self.groups, self.event, followed_up)), ends

    def breaks(self, ends: tuple[float, ...]) -> Floats:
        """Return the breaks between the intervals of a result with these ends."""
        return np.array(self.tally((self.time.lower, *ends))[1])


def parse_survival(formula: str, codebook: Codebook | None) -> Survival:
    """Compile a formula whose left side is ``Surv(time, event)``.

    >>> import dpmodels as dp
    >>> cb = dp.codebook(days=dp.Integer(0, 90), died=["no", "yes"], arm=["a", "b"])
    >>> spec = parse_survival("Surv(days, died) ~ arm", cb)
    >>> spec.time.code, spec.event.code, [group.code for group in spec.groups]
    ('days', 'died', ['arm'])
    """
    parsed, book = known_formula(formula, codebook)
    time, event = _left(parsed)
    codes = parsed.codes
    if not codes and not parsed.intercept:
        raise FormulaError(
            f"formula {shorten(parsed.text)!r} has no group and no intercept; {_WRITE}"
        )
    when = _time(time, book)
    # Whether a row's time ended by the event, within the declared range.
    happened, name, last = _event_indicator(event, book), when.variable, when.upper
    above = np.greater_equal if when.step else np.greater

    def ending(columns: Columns) -> Floats:
        outcome = happened(columns)
        return np.where(above(columns[str(name)], last) & (outcome == 1), 0.0, outcome)

    how = Category(event, ENDINGS, ending)
    groups = tuple(grouping(compile_factor(code, book)) for code in codes)
    overlap = {when.code, how.code} & {group.code for group in groups}
    if overlap or when.code == how.code:
        repeated = min(overlap) if overlap else when.code
        raise FormulaError(
            f"formula {shorten(parsed.text)!r} names {repeated!r} twice: the time, the event and "
            "the groups are different variables; write each once"
        )
    variables = used_codebook((time, event, *codes), book)
    return Survival(" ".join(formula.split()), variables, when, how, groups)


def _left(parsed: ParsedFormula) -> tuple[str, str]:
    codes = [code for term in parsed.response for code in term]
    match syntax(codes[0]) if len(codes) == 1 else None:
        case ast.Call(func=ast.Name(id="Surv"), args=[time, event], keywords=[]):
            return ast.unparse(time), ast.unparse(event)
        case ast.Call(func=ast.Name(id="Surv")) as call:
            raise FormulaError(
                f"{shorten(ast.unparse(call))!r}: Surv has two arguments, the time until the event "
                f"or until a row was last seen, and whether it was the event; {_WRITE}. Late entry "
                "and interval censoring are not supported"
            )
    raise FormulaError(
        f"formula {shorten(parsed.text)!r}: the left side of dp_survfit is Surv(time, event); "
        f"{_WRITE}"
    )


def _time(code: str, book: Codebook) -> Real:
    """Return the time, a variable without a transformation that is not negative."""
    value = compile_factor(code, book)
    if not isinstance(value, Real) or value.variable is None or value.date:
        raise FormulaError(
            f"{shorten(code)!r} in Surv() is not a declared number. Write the time since a row's "
            "own start as a variable without a transformation, such as days=dp.Integer(0, 3650)"
        )
    if value.step and value.upper - value.lower < 3 * value.step:
        raise FormulaError(
            f"{shorten(code)!r} in Surv() is declared with fewer than four values; declare it up "
            "to the end of the follow-up"
        )
    if value.lower < 0:
        raise FormulaError(
            f"{shorten(code)!r} in Surv() is declared from {value.lower:g} on: the time since a "
            "row's own start is not negative; declare it from 0 on"
        )
    return value


def _event_indicator(code: str, book: Codebook) -> Evaluate:
    match compile_factor(code, book):
        case Truth(evaluate=evaluate):
            return evaluate
        case Category(levels=levels, evaluate=evaluate) if len(levels) == 2:
            return evaluate
        case Category(levels=levels):
            raise FormulaError(
                f"the event {shorten(code)!r} in Surv() is a category of {len(levels)} levels; "
                f"write which of them it is, Surv(time, {shorten(code)} == {levels[-1]!r})"
            )
        case Real(lower=0.0, upper=1.0, variable=str() as name):
            return lambda columns: np.where(
                (columns[name] == 0) | (columns[name] == 1), columns[name], np.nan
            )
        case Real():
            raise FormulaError(
                f"the event {shorten(code)!r} in Surv() is a number; declare it from 0 to 1 or as "
                f"two levels, the event the second, or write Surv(time, {shorten(code)} == 2)"
            )
    raise FormulaError(f"the event {shorten(code)!r} in Surv() has several columns; write one")


def _covering(time: Real, grid: Real, breaks: object) -> object:
    """Extend breaks to the ends of the grid if they do not reach them."""
    if not lists_values(breaks):
        return breaks
    edges = [finite("breaks", edge) for edge in breaks]
    if edges and not time.lower <= min(edges) <= max(edges) <= time.upper:
        raise ArgumentError(
            f"breaks={shorten(repr(edges))}: {time.code!r} is declared from {time.lower:g} to "
            f"{time.upper:g}; write ends within that"
        )
    first = [time.lower] if edges and edges[0] > time.lower else []
    clipped = list(dict.fromkeys(min(edge, grid.upper) for edge in edges))
    last = [grid.upper] if clipped and clipped[-1] < grid.upper else []
    return [*first, *clipped, *last]


def even_breaks(time: Real, number: int) -> int | tuple[float, ...]:
    """Return breaks for about so many intervals, which end at whole numbers if the range does.

    >>> even_breaks(Real("t", 0.0, 10.0, lambda columns: columns["t"]), 4)
    (0.0, 3.0, 6.0, 9.0, 10.0)
    """
    length = time.upper - time.lower
    if time.step or not (time.lower.is_integer() and time.upper.is_integer()):
        return number
    width = math.ceil(length / number) if length > number else 1 / round(number / length)
    inner = time.lower + width * np.arange(math.ceil(length / width - ROUNDING))
    return (*inner.tolist(), time.upper)


def one_value(time: Real, breaks: Floats) -> Floats:
    """Return 1.0 for intervals of one whole number, else 0.0, shape (intervals,)."""
    return np.asarray((np.diff(breaks) == 1.0) & by_whole_numbers(time), dtype=float)


def last_times(time: Real, breaks: Floats) -> Floats:
    """Return the last time of each interval."""
    return np.asarray(breaks[1:] - 0.5 if by_whole_numbers(time) else breaks[1:])


# Periods of time between public ends: days, weeks and months, whole numbers, ordered levels.

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
    if isinstance(by, int | np.integer) and not isinstance(by, bool) and by >= 1:
        return _stepped(value, value.lower, int(by))
    units = ", ".join(map(repr, CALENDAR)) + ", or " if value.date else ""
    kind = "days" if value.date else "values"
    raise ArgumentError(f"by={quoted(by)}: expected {units}a whole number of {kind} from 1 up")


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
