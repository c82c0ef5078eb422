"""The allow-list: every function a formula may call, with its interval arithmetic.

A function is row-wise and its range follows from its arguments' ranges. What is not in the table
:data:`FUNCTIONS` cannot be called.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import reduce
from itertools import pairwise

import numpy as np
from numpy.polynomial import legendre
from numpy.typing import NDArray

from dpmodels.dates import text_of_day
from dpmodels.errors import FormulaError
from dpmodels.formula.values import (
    Basis,
    Binned,
    Category,
    Columns,
    Constant,
    Real,
    Truth,
    Value,
    as_real,
    as_truth,
    in_days,
    increasing,
    number,
    whole_number,
)
from dpmodels.typing import Floats

# Parts of a date: its year, its month and its day of the week, with exact ranges.

MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
WEEKDAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")


def year(code: str, args: Sequence[Value], options: Mapping[str, Value]) -> Real:
    """Build the year of a date, a whole number."""
    x = _date(code, args, options)
    lower, upper = _years(np.array([x.lower, x.upper])).tolist()
    return Real(code, lower, upper, lambda columns: _part(x, columns, _years), step=1.0)


def month(code: str, args: Sequence[Value], options: Mapping[str, Value]) -> Category:
    """Build the month of a date, a category of 1 to 12 that is printed by name."""
    return _cyclic(code, _date(code, args, options), lambda days: _in(days, "M") % 12, MONTHS)


def weekday(code: str, args: Sequence[Value], options: Mapping[str, Value]) -> Category:
    """Build the day of the week, a category of 1 (Monday) to 7 that is printed by name."""
    # 1970-01-01 was a Thursday.
    days = _date(code, args, options)
    return _cyclic(code, days, lambda days: (np.floor(days) + 3) % 7, WEEKDAYS)


def _date(code: str, args: Sequence[Value], options: Mapping[str, Value]) -> Real:
    x = _only(code, args, options)
    if not isinstance(x, Real) or not x.date:
        raise FormulaError(
            f"{code!r}: {x.code} is not a date; declare it as one, for example "
            'dp.Date("2001-01-01", "2020-12-31")'
        )
    return x


def _cyclic(
    code: str, x: Real, part: Callable[[Floats], Floats], names: tuple[str, ...]
) -> Category:
    # Any 12 months have all months and all days of the week.
    days = np.arange(x.lower, min(x.upper, x.lower + 366) + 1)
    indices = np.unique(part(days)).astype(np.intp)
    if len(indices) < 2:
        raise FormulaError(
            f"{code!r} is {names[indices[0]]} on each day of the declared range; leave it out"
        )
    return Category(
        code,
        tuple(names[index] for index in indices),
        lambda columns: _part(x, columns, lambda days: np.searchsorted(indices, part(days))),
        written=tuple(int(index) + 1 for index in indices),
        ordered=True,
    )


def _part(x: Real, columns: Columns, part: Callable[[Floats], NDArray[np.generic]]) -> Floats:
    days = x.evaluate(columns)
    missing = np.isnan(days)
    return np.where(missing, np.nan, part(np.where(missing, x.lower, days)))


def _in(days: Floats, unit: str) -> Floats:
    return np.floor(days).astype("datetime64[D]").astype(f"datetime64[{unit}]").astype(np.float64)


def _years(days: Floats) -> Floats:
    return _in(days, "Y") + 1970


Builder = Callable[[str, Sequence[Value], Mapping[str, Value]], Value]


def clipped_real(x: Real) -> Real:
    """Return ``x`` clipped to its range: libraries do not round monotonically."""
    return Real(
        x.code, x.lower, x.upper, lambda columns: np.clip(x.evaluate(columns), x.lower, x.upper)
    )


def _increasing_function(function: Callable[..., Floats], lowest: float, instead: str) -> Builder:
    """Build an increasing function whose argument must stay above ``lowest``."""

    def build(code: str, args: Sequence[Value], options: Mapping[str, Value]) -> Value:
        x = as_real(_only(code, args, options))
        closed = function is np.sqrt
        if not (x.lower >= lowest if closed else x.lower > lowest):
            raise FormulaError(
                f"{code!r}: {x.code} reaches {x.lower:g} within the declared ranges, where the "
                f"function is not bounded or not defined; {instead}"
            )
        with np.errstate(over="ignore"):
            lower, upper = float(function(x.lower)), float(function(x.upper))
        return clipped_real(Real(code, lower, upper, lambda columns: function(x.evaluate(columns))))

    return build


def _only(code: str, args: Sequence[Value], options: Mapping[str, Value]) -> Value:
    if len(args) != 1 or options:
        raise FormulaError(f"{code!r}: expected exactly one argument")
    return args[0]


def _bind(
    code: str,
    args: Sequence[Value],
    options: Mapping[str, Value],
    names: Sequence[str],
    required: int,
) -> dict[str, Value]:
    bound = dict(zip(names, args, strict=False))
    unknown = [name for name in options if name not in names]
    repeated = [name for name in options if name in bound]
    missing = [name for name in names[:required] if name not in bound and name not in options]
    if len(args) > len(names) or unknown or repeated or missing:
        raise FormulaError(f"{code!r}: expected the arguments ({', '.join(names)})")
    return {**bound, **options}


def _identity(code: str, args: Sequence[Value], options: Mapping[str, Value]) -> Value:
    value = _only(code, args, options)
    if isinstance(value, Truth):
        return Truth(code, value.evaluate)
    x = as_real(value)
    return Real(code, x.lower, x.upper, x.evaluate)


def _absolute(code: str, args: Sequence[Value], options: Mapping[str, Value]) -> Value:
    x = as_real(_only(code, args, options))
    ends = (abs(x.lower), abs(x.upper))
    lower = 0.0 if x.lower <= 0.0 <= x.upper else min(ends)
    return Real(code, lower, max(ends), lambda columns: np.abs(x.evaluate(columns)))


def power(code: str, x: Real, exponent: float) -> Real:
    """Return ``x ** exponent`` for a constant exponent, with its range."""
    if not 0 < abs(exponent) <= 20:
        raise FormulaError(
            f"{code!r}: the exponent is {exponent:g}; expected a number from -20 to 20, not 0"
        )
    if exponent < 0 and x.lower <= 0.0 <= x.upper:
        raise FormulaError(
            f"{code!r}: {x.code} reaches 0 within the declared ranges, where a negative power "
            f"is not bounded; keep it away from 0, for example ({positive(x)} + 1)"
        )
    if exponent != int(exponent) and x.lower < 0:
        raise FormulaError(
            f"{code!r}: {x.code} may be negative, which has no fractional power; use a whole "
            "exponent, abs(), or declare a lower bound of at least 0"
        )
    with np.errstate(over="ignore"):
        ends = [float(np.power(bound, exponent)) for bound in (x.lower, x.upper)]
    if exponent > 0 and x.lower < 0.0 < x.upper:
        ends.append(0.0)
    return clipped_real(
        Real(code, min(ends), max(ends), lambda cols: np.power(x.evaluate(cols), exponent))
    )


def positive(x: Real) -> str:
    """Return the text of a non-negative expression of ``x``, for advice to add a constant."""
    return f"abs({x.code})" if x.lower < 0 else x.code


def _power_call(code: str, args: Sequence[Value], options: Mapping[str, Value]) -> Value:
    arguments = _bind(code, args, options, ("x", "p"), 2)
    return power(code, as_real(arguments["x"]), number(arguments["p"], f"{code!r}: the exponent"))


def _clip(code: str, args: Sequence[Value], options: Mapping[str, Value]) -> Value:
    arguments = _bind(code, args, options, ("x", "lo", "hi"), 3)
    x = as_real(arguments["x"])
    low, high = (number(in_days(arguments[name], x), f"{code!r}: {name}") for name in ("lo", "hi"))
    if not low < high:
        raise FormulaError(f"{code!r}: lo must be smaller than hi")
    bounds = (min(max(x.lower, low), high), min(max(x.upper, low), high))
    clipped = Real(code, *bounds, lambda columns: np.clip(x.evaluate(columns), low, high))
    return replace(clipped, date=x.date, step=x.step) if x.date else clipped


def _cut(code: str, args: Sequence[Value], options: Mapping[str, Value]) -> Value:
    arguments = _bind(code, args, options, ("x", "breaks"), 2)
    x = as_real(arguments["x"])
    breaks = np.array(increasing(in_days(arguments["breaks"], x), f"{code!r}: breaks", 3))
    edges = [text_of_day(edge) if x.date else _short(edge) for edge in breaks]
    levels = tuple(f"({a}, {b}]" for a, b in itertools.pairwise(edges))
    levels = ("[" + levels[0][1:], *levels[1:])
    return Category(code, levels, in_bins(x, breaks))


def _short(number: float) -> str:
    """Return a number in its usual short form if that is exact."""
    text = f"{number:g}"
    return text if float(text) == number else repr(float(number))


def _polynomial(code: str, args: Sequence[Value], options: Mapping[str, Value]) -> Value:
    """Legendre polynomials over the public range: orthogonal there, each in [-1, 1]."""
    if "raw" in options:
        raise FormulaError(
            f"{code!r}: raw= is not available; raw powers are terms of their own, x + I(x ** 2)"
        )
    arguments = _bind(code, args, options, ("x", "degree"), 2)
    x = as_real(arguments["x"])
    degree = whole_number(arguments["degree"], f"{code!r}: degree", 1, 10)
    middle, half = (x.upper + x.lower) / 2, ((x.upper - x.lower) / 2) or 1.0
    corners = np.array(list(itertools.product((-1.0, 1.0), repeat=degree)))

    def columns_of(columns: Columns) -> Floats:
        unit = np.clip((x.evaluate(columns) - middle) / half, -1.0, 1.0)
        return np.asarray(legendre.legvander(unit, degree).T[1:])

    return Basis(code, corners, columns_of)


def _spline(code: str, args: Sequence[Value], options: Mapping[str, Value]) -> Value:
    """B-splines on public knots; a row is non-negative and sums to at most one."""
    for name in ("df", "lower_bound", "upper_bound"):
        if name in options:
            raise FormulaError(
                f"{code!r}: {name}= is not available; knots at data quantiles would leak and the "
                "boundary is the declared range. Write knots=, for example bs(x, knots=[30, 50])"
            )
    arguments = _bind(code, args, options, ("x", "knots", "degree"), 2)
    from scipy.interpolate import BSpline  # Slow to import

    x = as_real(arguments["x"])
    inner = increasing(arguments["knots"], f"{code!r}: knots", 1)
    degree = whole_number(arguments.get("degree", Constant("3", 3.0)), f"{code!r}: degree", 0, 10)
    if not x.lower < inner[0] <= inner[-1] < x.upper:
        raise FormulaError(
            f"{code!r}: knots must lie strictly inside the range of {x.code}, "
            f"{x.lower:g} to {x.upper:g}"
        )
    knots = np.array([x.lower] * (degree + 1) + list(inner) + [x.upper] * (degree + 1))
    count = len(inner) + degree
    hull = np.vstack([np.zeros(count), np.eye(count)])

    def columns_of(columns: Columns) -> Floats:
        values = np.clip(x.evaluate(columns), x.lower, x.upper)
        missing = np.isnan(values)
        filled = np.where(missing, x.lower, values)
        basis = BSpline.design_matrix(filled, knots, degree).toarray().T[1:]
        return np.where(missing, np.nan, basis)

    return Basis(code, hull, columns_of)


def _ifelse(code: str, args: Sequence[Value], options: Mapping[str, Value]) -> Value:
    arguments = _bind(code, args, options, ("cond", "a", "b"), 3)
    condition = as_truth(arguments["cond"])
    a, b = as_real(arguments["a"]), as_real(arguments["b"])

    def choose(columns: Columns) -> Floats:
        holds = condition.evaluate(columns)
        chosen = np.where(holds == 1.0, a.evaluate(columns), b.evaluate(columns))
        return np.where(np.isnan(holds), np.nan, chosen)

    return Real(code, min(a.lower, b.lower), max(a.upper, b.upper), choose)


def _row_wise(choose: Callable[..., Floats], ends: Callable[..., float]) -> Builder:
    def build(code: str, args: Sequence[Value], options: Mapping[str, Value]) -> Value:
        if len(args) < 2 or options:
            raise FormulaError(f"{code!r}: expected two numbers or more, such as pmin(x, 10)")
        numbers = [as_real(value) for value in args]
        lower, upper = ends(x.lower for x in numbers), ends(x.upper for x in numbers)
        return Real(
            code, lower, upper, lambda cols: reduce(choose, (x.evaluate(cols) for x in numbers))
        )

    return build


def _wave(function: Callable[..., Floats], highest: float) -> Builder:
    """Build a function of period 2π that is 1 at `highest`, and -1 half a period on."""

    def build(code: str, args: Sequence[Value], options: Mapping[str, Value]) -> Value:
        x = as_real(_only(code, args, options))
        ends = [float(function(x.lower)), float(function(x.upper))]
        ends += [sign for sign, at in ((1.0, highest), (-1.0, highest + math.pi)) if _meets(x, at)]
        return clipped_real(
            Real(code, min(ends), max(ends), lambda cols: function(x.evaluate(cols)))
        )

    return build


def _meets(x: Real, at: float) -> bool:
    """Whether a range may contain `at` plus multiples of 2π; errs towards True."""
    slack = 1e-12 * (1.0 + abs(x.lower) + abs(x.upper))
    first = math.ceil((x.lower - slack - at) / math.tau)
    return first * math.tau + at <= x.upper + slack


def _is_missing(code: str, args: Sequence[Value], options: Mapping[str, Value]) -> Value:
    value = _only(code, args, options)
    if isinstance(value, Constant | Basis):
        raise FormulaError(
            f"{code!r}: {value.code!r} is not a variable or an expression of variables"
        )
    return Truth(code, lambda columns: np.isnan(value.evaluate(columns)).astype(np.float64))


FUNCTIONS: dict[str, Builder] = {
    "I": _identity,
    "abs": _absolute,
    "bs": _spline,
    "clip": _clip,
    "cos": _wave(np.cos, 0.0),
    "cut": _cut,
    "exp": _increasing_function(np.exp, -math.inf, "declare narrower bounds"),
    "ifelse": _ifelse,
    "is_missing": _is_missing,
    "log": _increasing_function(
        np.log, 0.0, "write log1p(x) or log(x + 1), or declare a positive lower bound"
    ),
    "log10": _increasing_function(np.log10, 0.0, "add a positive constant inside"),
    "log1p": _increasing_function(np.log1p, -1.0, "declare a lower bound above -1"),
    "log2": _increasing_function(np.log2, 0.0, "add a positive constant inside"),
    "month": month,
    "pmax": _row_wise(np.maximum, max),
    "pmin": _row_wise(np.minimum, min),
    "poly": _polynomial,
    "pow": _power_call,
    "sin": _wave(np.sin, math.pi / 2),
    "sqrt": _increasing_function(np.sqrt, 0.0, "declare a lower bound of at least 0"),
    "weekday": weekday,
    "year": year,
}

INSTEAD: dict[str, str] = {
    "center": "dp_pca centres with the private mean (center=True); in a formula subtract a "
    "public constant, for example I(x - 50)",
    "scale": "use the verb's scale=, or divide by a public constant, for example I(x / 10)",
    "standardize": "use the verb's center= and scale=",
    "mean": "statistics of the data cannot enter a formula; subtract a public constant",
    "min": "the smallest of several numbers of a row is pmin(x, y); bounds are declared",
    "max": "the largest of several numbers of a row is pmax(x, y); bounds are declared",
    "ln": "the natural logarithm is log(x)",
    "tan": "it is not bounded; use sin(x) and cos(x)",
    "offset": "it stands by itself on the right-hand side of dp_lm or dp_glm; elsewhere write "
    "I(y - x)",
    "Surv": "it is the left side of dp_survfit('Surv(time, event) ~ group', ...)",
    "starts_with": "it stands for variables, each a term: write it by itself, outside a function",
    "ends_with": "it stands for variables, each a term: write it by itself, outside a function",
    "contains": "it stands for variables, each a term: write it by itself, outside a function",
    "matches": 'write starts_with("a"), ends_with("b") or contains("c")',
    "isna": "write is_missing(x)",
    "is_na": "write is_missing(x)",
    "ns": "use bs(x, knots=[...]) with public knots",
    "cr": "use bs(x, knots=[...]) with public knots",
    "cc": "use bs(x, knots=[...]) with public knots",
    "te": "use the interaction of two bs() terms",
    "relevel": "write C(x, Treatment('reference level'))",
    "cbind": "a formula has one response; dp_summary('a + b ~ group') describes several variables",
    "lag": "it compares rows with each other; declare the earlier value as a variable of its own",
    "s": "use bs(x, knots=[...]) with public knots",
    "rank": "ranks compare rows with each other; use cut(x, breaks)",
}


# Bins of whole numbers and of days: their values and their names.


def by_whole_numbers(number: Real) -> bool:
    """Whether a number takes only whole values; days are whole numbers."""
    return number.step == 1.0 and number.lower == math.floor(number.lower)


def equal_parts(number: Real, max_bins: int) -> tuple[float, ...]:
    """Return the edges of at most `max_bins` bins of equally many values; the last may have fewer.

    Edges lie half a step beside the values.

    >>> equal_parts(Real("k", 0.0, 6.0, lambda columns: columns["k"], step=1.0), 3)
    (-0.5, 2.5, 5.5, 6.5)
    """
    starts = np.array(starts_of_parts(number, max_bins))
    return (*(starts + number.lower - 0.5).tolist(), number.upper + 0.5)


def starts_of_parts(number: Real, max_bins: int) -> range:
    """Return the first values of the bins of :func:`equal_parts`, less the lower bound."""
    n_values = int(number.upper - number.lower) + 1
    return range(0, n_values, math.ceil(n_values / max_bins))


def beside(ends: Sequence[float]) -> tuple[float, ...]:
    """Return edges half a step beside whole numbers; all bins but the first are open below.

    >>> beside([0, 2, 5.5])
    (-0.5, 2.5, 5.5)
    """
    return (math.ceil(ends[0]) - 0.5, *(math.floor(end) + 0.5 for end in ends[1:]))


def clipped_ends(ends: Floats) -> tuple[Floats, Floats]:
    """Return the first and the last whole number of each bin."""
    return ends[:-1] + 0.5, ends[1:] - 0.5


def whole_names(ends: Sequence[float], *, date: bool) -> tuple[str, ...]:
    """Name bins by their whole numbers or days.

    >>> whole_names([-0.5, 0.5, 3.5], date=False)
    ('0', '1 to 3')
    """
    text = text_of_day if date else "{:.0f}".format
    bins = [(low + 0.5, high - 0.5) for low, high in pairwise(ends)]
    return tuple(text(low) if low == high else f"{text(low)} to {text(high)}" for low, high in bins)


def interval_names(ends: Sequence[float]) -> tuple[str, ...]:
    """Name bins by their edges, to a hundredth of the narrowest.

    >>> interval_names([0, 18, 40.5, 100])
    ('[0, 18]', '(18, 40.5]', '(40.5, 100]')
    """
    exact = np.array(ends)
    decimal_exponent = math.floor(math.log10(float(np.diff(exact).min()))) - 2
    # Rounding is exact as long as powers of ten are.
    rounded = (
        np.round(exact, -decimal_exponent)
        if abs(decimal_exponent) <= 22
        else [round(end, -decimal_exponent) for end in ends]
    )
    rounded_edges = np.asarray(rounded) + 0.0
    is_plain = (rounded_edges == 0) | (
        (np.abs(rounded_edges) >= 1e-4) & (np.abs(rounded_edges) < 1e9)
    )
    texts = [
        repr(end).removesuffix(".0") if plain else repr(end)
        for end, plain in zip(rounded_edges.tolist(), is_plain.tolist(), strict=True)
    ]
    names = [f"({low}, {high}]" for low, high in pairwise(texts)]
    return ("[" + names[0][1:], *names[1:])


def in_bins(number: Real, breaks: Floats) -> Binned:
    """Return a function for the bin of each row, nan outside; all but the first are open below."""
    return Binned(number.evaluate, tuple(breaks.tolist()))
