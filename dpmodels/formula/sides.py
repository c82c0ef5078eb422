"""Both sides of a descriptive formula: what is measured, and what rows are grouped by."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from dpmodels.codebook import Codebook
from dpmodels.errors import FormulaError, shorten
from dpmodels.formula.coding import checked_codebook
from dpmodels.formula.expression import as_category, check_removed, compile_factor
from dpmodels.formula.parse import Term, parse, variables_in
from dpmodels.formula.values import Category, Columns, Real, Truth, Varying
from dpmodels.typing import Floats


@dataclass(frozen=True)
class Sides:
    """The factors of a formula by side, whatever the operators between them.

    Numbers, comparisons and categories in order of first mention.
    """

    text: str
    codebook: Codebook
    left: tuple[Varying, ...]
    right: tuple[Varying, ...]


def sides(formula: str, codebook: Codebook | None) -> Sides:
    """Split a formula at ``~`` and compile its factors.

    >>> import dpmodels as dp
    >>> cb = dp.codebook(income=(0, 250_000), sex=["F", "M"])
    >>> both = sides("income ~ sex", cb)
    >>> [one.code for one in both.left], [one.code for one in both.right]
    (['income'], ['sex'])
    """
    book = checked_codebook(codebook)
    parsed = parse(formula, book)
    check_removed(parsed, book)
    left, right = _codes(parsed.response), _codes(parsed.predictors)
    used = {name for code in (*left, *right) for name in variables_in(code)}
    return Sides(
        parsed.text,
        book.select(name for name in book if name in used),
        tuple(compile_factor(code, book) for code in left),
        tuple(compile_factor(code, book) for code in right),
    )


def _codes(terms: Iterable[Term]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(code for term in terms for code in term))


def grouping(value: Varying) -> Category:
    """Read a value as what rows are grouped by."""
    return as_category(value, value.code)


def measured(value: Varying) -> Real:
    """Read a value as what is measured: a number, or the indicator of a second level.

    A category of more than two levels, or of several columns, is refused.
    """
    match value:
        case Real():
            return value
        case Truth():
            return Real(value.code, 0.0, 1.0, value.evaluate, step=1.0)
        case Category(levels=levels) if len(levels) == 2:
            return Real(f"{value.code} = {levels[1]}", 0.0, 1.0, value.evaluate, step=1.0)
        case Category():
            raise FormulaError(
                f"{shorten(value.code)!r} is a category of {len(value.levels)} levels and has no "
                f"mean; compare it with one, {shorten(value.code)} == {value.levels[0]!r}, or "
                "count its levels with dp_table"
            )
    raise FormulaError(f"{shorten(value.code)!r} has several columns; write one number")


def one_measured(both: Sides, verb: str) -> tuple[Real, tuple[Category, ...]]:
    """Return the number a formula is about and the factors it is grouped by.

    ``y ~ groups``, or ``~ y`` for all rows together; `verb` asks, for the message.
    """
    if len(both.left) == 1:
        return measured(both.left[0]), tuple(map(grouping, both.right))
    if not both.left and len(both.right) == 1:
        return measured(both.right[0]), ()
    raise FormulaError(
        f"formula {shorten(both.text)!r}: {verb} takes one variable, by groups or not; write "
        "'y ~ group' or '~ y'"
    )


def positions(value: Real, columns: Columns) -> Floats:
    """Return where in its public range each row's number lies, from 0 to 1, nan if missing."""
    width = value.upper - value.lower
    if not width > 0:
        return np.asarray(0.0 * np.sign(value.evaluate(columns)))
    return np.asarray(np.clip((value.evaluate(columns) - value.lower) / width, 0.0, 1.0))
