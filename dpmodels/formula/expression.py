"""One factor of a formula, from text to a value: a closed language, never Python's eval.

The text is parsed to Python's syntax tree; every node that is not listed here is refused by name,
with what to write instead.
"""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import reduce

import numpy as np

from dpmodels.dates import Date
from dpmodels.errors import FormulaError, UnknownVariable, did_you_mean, shorten
from dpmodels.formula.functions import FUNCTIONS, INSTEAD, by_whole_numbers, positive, power
from dpmodels.formula.parse import ParsedFormula, folded, names_in, quoted_name, syntax, text_of
from dpmodels.formula.values import (
    Category,
    Clipped,
    Column,
    Columns,
    Constant,
    Evaluate,
    Real,
    Truth,
    Value,
    Varying,
    as_real,
    as_truth,
    in_days,
    number,
    numbers,
)
from dpmodels.typing import Floats
from dpmodels.variables import Categorical, Numeric
from dpmodels.variables import Variable as Declared

Book = Mapping[str, Declared]

CONTRASTS = ("Treatment", "Sum", "Poly", "Helmert", "Diff")

# A choice: fewer whole numbers than this are read as levels.
MOST_NUMBERS = 1_000


def compile_factor(code: str, book: Book) -> Varying:
    """Turn the text of a factor into a value with its public range."""
    tree = syntax(code)
    try:
        value = _compile(tree, book)
    except RecursionError:
        raise FormulaError(f"{shorten(code)!r} in the formula is nested too deeply") from None
    if isinstance(value, Constant) or not names_in(tree):
        raise FormulaError(
            f"{shorten(code)!r} in the formula is a constant; terms are made of variables"
        )
    return value


def check_removed(parsed: ParsedFormula, book: Book) -> None:
    """Check terms that were subtracted against the same grammar."""
    for code in parsed.removed:
        compile_factor(code, book)


def _compile(node: ast.expr, book: Book) -> Value:
    match node:
        case ast.Constant():
            return _constant(node)
        case ast.List() | ast.Tuple():
            return _list(node, node.elts, book)
        case ast.Name():
            return _variable(node.id, book)
        case ast.Call():
            return _call(node, book)
        case ast.UnaryOp():
            return _unary(node, book)
        case ast.BinOp(op=ast.BitAnd() | ast.BitOr()):
            return _logical(node, book)
        case ast.BinOp():
            return _arithmetic(node, book)
        case ast.Compare():
            return _comparison(node, book)
    raise FormulaError(f"{text_of(node)!r} in the formula is {_REFUSED.get(type(node), _UNKNOWN)}")


_UNKNOWN = (
    "not allowed; a formula may have variables, numbers, arithmetic, comparisons and the functions "
    + ", ".join(sorted(FUNCTIONS))
)
_REFUSED: dict[type[ast.expr], str] = {
    ast.Attribute: "attribute access, which is not allowed: it could reach the data as a whole. "
    "Write row-wise expressions of codebook variables",
    ast.Subscript: "indexing, which is not allowed: a formula describes one row at a time",
    ast.Lambda: "a lambda, which is not allowed; use arithmetic and the listed functions",
    ast.BoolOp: "'and'/'or'; write (a > 1) & (b < 2) or (a > 1) | (b < 2)",
    ast.IfExp: "'if ... else'; write ifelse(cond, a, b)",
}


def _constant(node: ast.Constant) -> Constant:
    value = node.value
    if isinstance(value, bool | int | float):
        try:
            if math.isfinite(float(value)):
                return Constant(text_of(node), float(value))
        except OverflowError:
            pass
        raise FormulaError(f"{text_of(node)!r} in the formula is too large a number")
    if isinstance(value, str):
        return Constant(text_of(node), value)
    raise FormulaError(f"{text_of(node)!r} in the formula is neither a number nor a level")


def _list(node: ast.expr, elements: Sequence[ast.expr], book: Book) -> Constant:
    items = [_compile(item, book) for item in elements]
    plain = [item.value for item in items if isinstance(item, Constant)]
    if len(plain) != len(items) or any(isinstance(value, tuple) for value in plain):
        raise FormulaError(f"{text_of(node)!r} in the formula: a list has only numbers and levels")
    return Constant(text_of(node), tuple(v for v in plain if not isinstance(v, tuple)))


def _variable(name: str, book: Book) -> Value:
    match book.get(name):
        case Numeric() as declared:
            return _number(name, declared)
        case Date(days=(first, last)):
            day_range = Numeric(first, last, step=1)
            return replace(_number(name, day_range), date=True)
        case Categorical(levels=levels, labels=labels, ordered=ordered) as declared:
            written = levels if labels else ()
            level_labels = declared.shown_levels
            return Category(name, level_labels, Column(name), None, written, ordered)
    if name in getattr(book, "identifiers", ()):
        raise UnknownVariable(
            f"{shorten(name)!r} is declared as dp.Identifier(), which formulas cannot use: name "
            "another column, or declare bounds or levels instead",
            name,
        )
    entry = (
        f"{name}=(lower, upper)"
        if name.isidentifier() and name == folded(name)
        else f"{{{name!r}: (lower, upper)}}"
    )
    raise UnknownVariable(
        f"variable {shorten(name)!r} is not in the codebook{_hint(name, book)} Declare it with "
        f'public bounds or levels: dp.codebook({shorten(entry)}) or =["a", "b"]',
        name,
    )


def _number(name: str, declared: Numeric) -> Real:
    lower, upper = float(declared.lower), float(declared.upper)
    evaluate = Clipped(name, lower, upper)
    return Real(name, lower, upper, evaluate, variable=name, step=declared.step)


def _hint(name: str, book: Book) -> str:
    """Suggest a similar name, in code points if it looks the same."""
    alike = next((candidate for candidate in book if folded(candidate) == folded(name)), None)
    if alike is not None:
        return (
            f"; {alike!r} is, which looks alike but is {alike!a} and not {name!a} (as Python "
            "spells keyword arguments): write the one that the data have."
        )
    if name in ("TRUE", "FALSE"):
        return f"; R's {name} is {name.capitalize()} here."
    categories = (variable for variable in book.values() if isinstance(variable, Categorical))
    if any(name in (*variable.levels, *variable.shown_levels) for variable in categories):
        return f"; a level is written in quotes: {name!r}."
    return f"{did_you_mean(name, book)}."


def _call(node: ast.Call, book: Book) -> Value:
    quoted = quoted_name(node)
    if quoted is not None:
        return _variable(quoted, book)
    if isinstance(node.func, ast.Attribute):
        raise FormulaError(
            f"{text_of(node.func)!r} in the formula is attribute access, which is not allowed; "
            f"{_instead(node.func.attr)}"
        )
    if not isinstance(node.func, ast.Name):
        raise FormulaError(
            f"{text_of(node.func)!r} in the formula is {_REFUSED.get(type(node.func), _UNKNOWN)}"
        )
    name = node.func.id
    if any(isinstance(arg, ast.Starred) for arg in node.args) or any(
        word.arg is None for word in node.keywords
    ):
        raise FormulaError(f"{text_of(node)!r} in the formula: * and ** are not allowed in a call")
    if name == "C":
        return _contrast(node, book)
    if name == "c" and not node.keywords:
        return _list(node, node.args, book)
    if name not in FUNCTIONS:
        raise FormulaError(
            f"function {shorten(name)!r} is not allowed in a formula"
            f"{did_you_mean(name, FUNCTIONS)}; {_instead(name)}"
        )
    args = [_compile(arg, book) for arg in node.args]
    options = {str(word.arg): _compile(word.value, book) for word in node.keywords}
    return FUNCTIONS[name](text_of(node), args, options)


def _instead(name: str) -> str:
    if name in FUNCTIONS:
        return f"write {name}()"
    return INSTEAD.get(name, "the functions are " + ", ".join(sorted(FUNCTIONS)))


def _contrast(node: ast.Call, book: Book) -> Category:
    code = text_of(node)
    if not 1 <= len(node.args) <= 2 or node.keywords:
        raise FormulaError(
            f"{code!r}: expected C(variable) or C(variable, contrast); levels are declared in "
            "the codebook"
        )
    value = as_category(_compile(node.args[0], book), code)
    contrast = _contrast_object(node.args[1], value, book) if len(node.args) == 2 else None
    return replace(value, code=code, contrast=contrast)


def _contrast_object(node: ast.expr, value: Category, book: Book) -> object:
    """Build a patsy contrast from ``Sum``, ``Sum()`` or ``Treatment("level")``."""
    import patsy

    name, args = (node.func, node.args) if isinstance(node, ast.Call) else (node, [])
    words = node.keywords if isinstance(node, ast.Call) else []
    args = args + [word.value for word in words if word.arg == "reference"]
    if (
        not isinstance(name, ast.Name)
        or name.id not in CONTRASTS
        or any(word.arg != "reference" for word in words)
        or len(args) > (name.id == "Treatment")
    ):
        raise FormulaError(
            f"contrast {text_of(node)!r}: expected one of {', '.join(CONTRASTS)}, "
            'or Treatment("reference level")'
        )
    if not args:
        return getattr(patsy, name.id)()
    place = value.place(_compile(args[0], book), text_of(node))
    return patsy.Treatment(reference=value.levels[place])


def as_category(value: Value, code: str) -> Category:
    """Read a value as a category: categories, comparisons and a few whole numbers are."""
    match value:
        case Truth():
            return Category(value.code, (False, True), value.evaluate)
        case Category():
            return value
        case Real(date=True):
            raise FormulaError(
                f"{shorten(code)!r}: {value.code} is a date; take C(year({value.code})), "
                f"month({value.code}) or weekday({value.code}), or cut it at public days: "
                f"cut({value.code}, ['2001-01-01', '2010-01-01', '2020-12-31'])"
            )
        case Real() if by_whole_numbers(value) and value.upper - value.lower < MOST_NUMBERS:
            levels = tuple(range(int(value.lower), int(value.upper) + 1))
            first = value.lower
            return Category(
                value.code, levels, lambda cols: np.rint(value.evaluate(cols) - first), ordered=True
            )
    raise FormulaError(
        f"{shorten(code)!r}: {value.code} is a number; declare it as a list of levels in the "
        f"codebook, or cut it at public breaks: cut({value.code}, [0, 10, 20])"
    )


def _unary(node: ast.UnaryOp, book: Book) -> Value:
    operand = _compile(node.operand, book)
    code = text_of(node)
    if isinstance(node.op, ast.Invert | ast.Not):
        holds = as_truth(operand)
        return Truth(code, lambda columns: 1.0 - holds.evaluate(columns))
    sign = -1.0 if isinstance(node.op, ast.USub) else 1.0
    if isinstance(operand, Constant):
        return Constant(code, sign * number(operand, repr(code)))
    x = as_real(operand)
    ends = sorted((sign * x.lower, sign * x.upper))
    return Real(code, ends[0], ends[1], lambda columns: sign * x.evaluate(columns))


def _logical(node: ast.BinOp, book: Book) -> Truth:
    """Combine conditions as in R: one that decides does so even if the other is missing."""
    is_or = isinstance(node.op, ast.BitOr)
    hint = (
        "; groups after '|' are for descriptive verbs, dp_summary('~ a + b | group'), and fixed "
        "effects for dp_lm"
    )
    if isinstance(node.left, ast.Constant):
        hint = "; (1 | group) is not available: fixed effects of groups are dp_lm('y ~ x | group')"
    left, right = (
        as_truth(_compile(side, book), hint if is_or else "") for side in (node.left, node.right)
    )
    decides = 1.0 if is_or else 0.0

    def holds(columns: Columns) -> Floats:
        a, b = left.evaluate(columns), right.evaluate(columns)
        return np.where((a == decides) | (b == decides), decides, a * b)

    return Truth(text_of(node), holds)


_PLAIN: dict[type[ast.operator], Callable[..., Floats]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
}


def _arithmetic(node: ast.BinOp, book: Book) -> Value:
    code = text_of(node)
    left, right = _compile(node.left, book), _compile(node.right, book)
    if isinstance(node.op, ast.Sub):
        left, right = in_days(left, right), in_days(right, left)
    if isinstance(node.op, ast.Pow):
        raised = power(code, as_real(left), number(right, f"{code!r}: the exponent"))
        return Constant(code, raised.lower) if isinstance(left, Constant) else raised
    apply = _PLAIN.get(type(node.op))
    if apply is None:
        raise FormulaError(
            f"{code!r} in the formula: the operators are + - * / ** and comparisons; a power is "
            "written I(x ** 2)"
        )
    a, b = as_real(left), as_real(right)
    if isinstance(node.op, ast.Div) and b.lower <= 0.0 <= b.upper:
        advice = f"keep it away from 0, for example ({positive(b)} + 1)"
        advice = "divide by another number" if isinstance(right, Constant) else advice
        raise FormulaError(
            f"{code!r}: {b.code} reaches 0 within the declared ranges, so the quotient is not "
            f"bounded; {advice}"
        )
    with np.errstate(over="ignore"):
        ends = [
            float(apply(np.float64(x), np.float64(y)))
            for x in (a.lower, a.upper)
            for y in (b.lower, b.upper)
        ]
    if isinstance(left, Constant) and isinstance(right, Constant):
        return Constant(code, ends[0])
    return Real(code, min(ends), max(ends), lambda cols: apply(a.evaluate(cols), b.evaluate(cols)))


def _comparison(node: ast.Compare, book: Book) -> Truth:
    code = text_of(node)
    if len(node.ops) != 1 or not isinstance(node.ops[0], COMPARED):
        raise FormulaError(
            f"{code!r} in the formula: compare two values at a time with < <= > >= == != or in, "
            "and join with &, for example (a > 1) & (a < 5)"
        )
    left, right = _compile(node.left, book), _compile(node.comparators[0], book)
    return compared(code, node.ops[0], left, right)


# Comparisons: of numbers, of days with ISO text, of a category with its levels, and with lists.

_COMPARE: dict[type[ast.cmpop], Callable[..., Floats]] = {
    ast.Lt: np.less,
    ast.LtE: np.less_equal,
    ast.Gt: np.greater,
    ast.GtE: np.greater_equal,
    ast.Eq: np.equal,
    ast.NotEq: np.not_equal,
}
COMPARED = (*_COMPARE, ast.In, ast.NotIn)


def compared(code: str, op: ast.cmpop, left: Value, right: Value) -> Truth:
    """Compare two values by one of the operators `COMPARED`."""
    if isinstance(op, ast.In | ast.NotIn):
        return _membership(code, left, right, isinstance(op, ast.In))
    if isinstance(left, Category) or isinstance(right, Category):
        factor, level = (left, right) if isinstance(left, Category) else (right, left)
        assert isinstance(factor, Category)
        if not isinstance(level, Constant):
            raise FormulaError(f"{code!r}: a category is compared with one of its levels")
        level_code = factor.place(level, code)
        if not (factor.ordered or isinstance(op, ast.Eq | ast.NotEq)):
            raise FormulaError(
                f"{code!r}: the levels of {factor.code} have no declared order; compare with one "
                "of them by == or !=, or declare dp.Categorical(..., ordered=True)"
            )
        compare = _COMPARE[type(op)]
        if factor is left:
            return _comparison_truth(
                code, lambda codes: compare(codes, level_code), factor.evaluate
            )
        return _comparison_truth(code, lambda codes: compare(level_code, codes), factor.evaluate)
    for day, operand in ((left, right), (right, left)):
        is_number = isinstance(operand, Constant) and not isinstance(operand.value, str)
        if isinstance(day, Real) and day.date and is_number:
            raise FormulaError(
                f"{code!r}: {day.code} is a date; compare it with a date: write "
                f'{day.code} >= "2010-01-01", or year({day.code}) >= 2010'
            )
    a, b = as_real(in_days(left, right)), as_real(in_days(right, left))
    return _comparison_truth(code, _COMPARE[type(op)], a.evaluate, b.evaluate)


def _comparison_truth(code: str, compare: Callable[..., Floats], *sides: Evaluate) -> Truth:
    def holds(columns: Columns) -> Floats:
        numbers = [side(columns) for side in sides]
        missing = reduce(np.logical_or, map(np.isnan, numbers))
        return np.where(missing, np.nan, compare(*numbers))

    return Truth(code, holds)


def _membership(code: str, left: Value, right: Value, among: bool) -> Truth:
    """Return whether a value is one of a list, ``x in [1, 2]``."""
    if not isinstance(right, Constant):
        raise FormulaError(
            f"{code!r}: 'in' takes a list written in the formula, "
            'for example region in ["north", "east"]'
        )
    if isinstance(left, Category):
        levels = right.value if isinstance(right.value, tuple) else (right.value,)
        targets = [float(left.place(Constant(repr(level), level), code)) for level in levels]
        operand: Truth | Category | Real = left
    else:
        operand = as_real(left)
        constant = in_days(right, operand)
        assert isinstance(constant, Constant)
        targets = list(numbers(constant, code))
    return _comparison_truth(
        code, lambda values: np.isin(values, targets) == among, operand.evaluate
    )
