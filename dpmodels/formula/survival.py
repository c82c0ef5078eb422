"""Times until an event: a left side ``Surv(time, event)``, and a curve for each group."""

from __future__ import annotations

import ast
import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dpmodels.arguments import finite, lists_values
from dpmodels.codebook import Codebook
from dpmodels.errors import ArgumentError, FormulaError, shorten
from dpmodels.formula.coding import checked_codebook, code_terms
from dpmodels.formula.expression import check_removed, compile_factor
from dpmodels.formula.functions import by_whole_numbers
from dpmodels.formula.parse import ParsedFormula, parsed_formula, syntax, variables_in
from dpmodels.formula.sides import Sides, grouping
from dpmodels.formula.tally import Tally, binned
from dpmodels.formula.values import Category, Columns, Evaluate, Real, Truth
from dpmodels.typing import Floats

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
        sizes = tuple(len(group.levels) for group in self.groups)
        positions = np.indices(sizes).reshape(len(sizes), -1)
        codes = {
            group.code: place.astype(float)
            for group, place in zip(self.groups, positions, strict=True)
        }
        blocks = code_terms(parsed, self.codebook)
        coded = np.empty((positions.shape[1], sum(len(block.names) for block in blocks)), order="F")
        columns = (
            column
            for block in blocks
            for column in replace(block, factors=tuple(map(_by_group, block.factors))).coded(codes)
        )
        for at, column in enumerate(columns):
            coded[:, at] = column
        return tuple(name for block in blocks for name in block.names), coded

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
        return Tally((*self.groups, self.event, self._with_beyond(cut))), ends

    def _with_beyond(self, cut: Category) -> Category:
        how, name = self.event.evaluate, str(self.time.variable)

        def when(columns: Columns) -> Floats:
            followed = (columns[name] >= self.time.upper) & (how(columns) == 0)
            return np.where(followed, float(len(cut.levels)), cut.evaluate(columns))

        return replace(cut, levels=(*cut.levels, BEYOND), evaluate=when)

    def breaks(self, ends: tuple[float, ...]) -> Floats:
        """Return the breaks between the intervals of a result with these ends."""
        return np.array(self.tally((self.time.lower, *ends))[1])


def _by_group(factor: Any) -> Any:
    """Return a factor that is evaluated at the positions of its levels, by its code."""
    code = factor.code
    if isinstance(factor, Real):
        origin = factor.lower
        return replace(factor, variable=None, evaluate=lambda codes: codes[code] + origin)
    return replace(factor, evaluate=lambda codes: codes[code])


def parse_survival(formula: str, codebook: Codebook | None) -> Survival:
    """Compile a formula whose left side is ``Surv(time, event)``.

    >>> import dpmodels as dp
    >>> cb = dp.codebook(days=dp.Integer(0, 90), died=["no", "yes"], arm=["a", "b"])
    >>> spec = parse_survival("Surv(days, died) ~ arm", cb)
    >>> spec.time.code, spec.event.code, [group.code for group in spec.groups]
    ('days', 'died', ['arm'])
    """
    book = checked_codebook(codebook)
    parsed = parsed_formula(formula, book)
    check_removed(parsed, book)
    time, event = _left(parsed)
    codes = tuple(dict.fromkeys(code for term in parsed.predictors for code in term))
    if not codes and not parsed.intercept:
        raise FormulaError(
            f"formula {shorten(parsed.text)!r} has no group and no intercept; {_WRITE}"
        )
    when = _time(time, book)
    how = _ending(event, book, when)
    groups = tuple(grouping(compile_factor(code, book)) for code in codes)
    used = {name for code in (time, event, *codes) for name in variables_in(code)}
    overlap = {when.code, how.code} & {group.code for group in groups}
    if overlap or when.code == how.code:
        repeated = min(overlap) if overlap else when.code
        raise FormulaError(
            f"formula {shorten(parsed.text)!r} names {repeated!r} twice: the time, the event and "
            "the groups are different variables; write each once"
        )
    variables = book.select(name for name in book if name in used)
    return Survival(" ".join(formula.split()), variables, when, how, groups)


def _left(parsed: ParsedFormula) -> tuple[str, str]:
    """Return the texts of the time and of the event."""
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


def _ending(code: str, book: Codebook, time: Real) -> Category:
    """Return whether a row's time ended by the event, within the declared range."""
    happened, name = _event_indicator(code, book), time.variable

    above = np.greater_equal if time.step else np.greater

    def ending(columns: Columns) -> Floats:
        outcome = happened(columns)
        return np.where(above(columns[str(name)], time.upper) & (outcome == 1), 0.0, outcome)

    return Category(code, ENDINGS, ending)


def _event_indicator(code: str, book: Codebook) -> Evaluate:
    """Return a function that is 1 if the event occurred, else 0."""
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
