"""Descriptive formulas: the variables that they describe, and the groups of rows."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from dpmodels.codebook import Codebook
from dpmodels.errors import ArgumentError, FormulaError, quoted, shorten
from dpmodels.formula.coding import checked_codebook, used_codebook
from dpmodels.formula.expression import as_category, check_removed, compile_factor
from dpmodels.formula.parse import Term, check_size, parsed_formula, quote, variables_in
from dpmodels.formula.values import Category, Columns, Evaluate, Real, Truth, Varying
from dpmodels.typing import Floats

# Strings, which are skipped, and what opens, closes or stands between the parts of a formula.
_MARK = re.compile(r"""'(?:\\.|[^'\\])*'|"(?:\\.|[^"\\])*"|[(\[{]|[)\]}]|[|~]""")
_DOT = re.compile(r"\s*\.(?!\w)")


@dataclass(frozen=True)
class Sides:
    """The factors of a formula by what they are for, whatever the operators between them.

    Numbers, comparisons and categories in order of first mention. What is described may be named on
    the right alone, or on the left of ``~`` or of ``|``, with what rows are grouped by behind it.
    `terms` are those of each side as they are written, products as such.
    """

    text: str
    codebook: Codebook
    described: tuple[Varying, ...]
    groups: tuple[Category, ...]
    terms: tuple[tuple[Term, ...], ...] = ()


def parse_sides(formula: str, codebook: Codebook | None) -> Sides:
    """Separate what a formula describes from what it groups by, and compile its factors.

    >>> import dpmodels as dp
    >>> cb = dp.codebook(age=(0, 100), income=(0, 250_000), sex=["F", "M"])
    >>> for formula in ("age + income ~ sex", "~ age + income | sex", "~ . | sex"):
    ...     both = parse_sides(formula, cb)
    ...     print([one.code for one in both.described], [one.code for one in both.groups])
    ['age', 'income'] ['sex']
    ['age', 'income'] ['sex']
    ['age', 'income'] ['sex']
    """
    book = checked_codebook(codebook)
    terms = _parts(formula, book)
    left, right = map(_codes, terms)
    described = tuple(compile_factor(code, book) for code in left)
    groups = tuple(compile_factor(code, book) for code in right)
    text = " ".join(formula.split())
    repeated = {value.code for value in described} & {value.code for value in groups}
    if repeated:
        raise FormulaError(
            f"formula {shorten(text)!r} has {min(repeated)!r} on both sides: rows are either "
            "grouped by it or described; leave it out on one side"
        )
    numbers = [value.code for value in groups if isinstance(value, Real)]
    if numbers and not described:
        raise FormulaError(
            f"formula {shorten(text)!r} groups rows by {shorten(numbers[0])!r}, which is a number "
            f"and has no levels; write cut({shorten(numbers[0])}, [0, 10, 20]), with public breaks"
        )
    if numbers and not any(isinstance(value, Real) for value in described):
        first, last = (
            shorten(" + ".join(value.code for value in values)) for values in (groups, described)
        )
        raise FormulaError(
            f"formula {shorten(text)!r} groups rows by {shorten(numbers[0])!r}, which is a number "
            f"and has no levels; what is described comes first: write '{first} ~ {last}' or "
            f"'~ {first} | {last}'"
        )
    return Sides(
        text,
        used_codebook((*left, *right), book),
        described,
        tuple(map(grouping, groups)),
        terms,
    )


def _parts(formula: str, book: Codebook) -> tuple[tuple[Term, ...], tuple[Term, ...]]:
    check_size(formula)
    separators = marks(formula)
    start = separators.pop(0) + 1 if separators and not formula[: separators[0]].strip() else 0
    if len(separators) > 1:
        raise FormulaError(
            f"formula {shorten(formula)!r} names groups in more than one place; write all of them "
            "after '~', 'y ~ a + b', or after '|', '~ y | a + b'"
        )
    end = separators[0] if separators else len(formula)
    before, behind = formula[start:end], formula[end + 1 :]
    # A dot stands for the variables that the left side leaves.
    groups_are_response = formula[end : end + 1] == "|" or bool(behind and _DOT.match(before))
    if groups_are_response and not behind.strip():
        raise FormulaError(
            f"formula {shorten(formula)!r} names no group after '|'; write '~ y | group', or "
            "'~ y' for all rows together"
        )
    parsed = parsed_formula(f"{behind} ~ {before}" if groups_are_response else formula, book)
    check_removed(parsed, book)
    left, right = parsed.response, parsed.predictors
    return (right, left) if groups_are_response or not left else (left, right)


def marks(formula: str) -> list[int]:
    """Return where ``~`` and ``|`` stand outside brackets and strings."""
    depth, positions = 0, []
    for match in _MARK.finditer(formula):
        depth += (match[0] in "([{") - (match[0] in ")]}")
        if match[0] in "|~" and not depth:
            positions.append(match.start())
    return positions


def named(formula: str, names: Iterable[str]) -> tuple[str, tuple[str, ...]]:
    """Return a formula's text and the variables that its right-hand side names, nothing else.

    They need not be declared; `names` are what ``.`` stands for.

    >>> named("~ town + Q('place of birth')", ())
    ("~ town + Q('place of birth')", ('town', 'place of birth'))
    """
    parsed = parsed_formula(formula, names)
    codes = _codes(parsed.predictors)
    variables = tuple(name for code in codes for name in variables_in(code))
    are_plain_names = [quote(name) for name in variables] == list(codes)
    if (
        parsed.response
        or not codes
        or not are_plain_names
        or any(len(t) > 1 for t in parsed.predictors)
    ):
        raise FormulaError(
            f"formula {shorten(parsed.text)!r}: levels are released for single columns; write only "
            "their names, '~ a + b'"
        )
    return parsed.text, variables


def _codes(terms: Iterable[Term]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(code for term in terms for code in term))


def grouping(value: Varying) -> Category:
    """Read a value as a factor that groups rows."""
    return as_category(value, value.code)


def measured(value: Varying) -> Real:
    """Read a value as a measured number: a number, or the indicator of a second level.

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


def one_measured(parsed: Sides, verb: str) -> tuple[Real, tuple[Category, ...]]:
    """Return the number a formula is about and the factors it is grouped by.

    `verb` is the name for the message.
    """
    if len(parsed.described) == 1:
        return measured(parsed.described[0]), parsed.groups
    raise FormulaError(
        f"formula {shorten(parsed.text)!r}: {verb} takes one variable, by groups or not; write "
        "'y ~ group', '~ y | group' or '~ y'. dp_summary describes several, 'a + b ~ group'"
    )


def positions(value: Real, columns: Columns, *, is_within: bool = True) -> Floats:
    """Return where in its public range each number lies, nan if missing; `is_within` it, 0 to 1."""
    width = value.upper - value.lower
    if not width > 0:
        return np.asarray(0.0 * np.sign(value.evaluate(columns)))
    raw = (value.evaluate(columns) - value.lower) / width
    return np.asarray(np.clip(raw, 0.0, 1.0) if is_within else raw)


# A subset: the rows for which a condition in the language of formulas holds.


@dataclass(frozen=True)
class Subset:
    """Which rows count, by their own values; a row with a missing condition does not."""

    text: str
    codebook: Codebook  # Declarations of the variables in it
    evaluate: Evaluate = field(repr=False, compare=False)

    def holds(self, columns: Columns) -> NDArray[np.bool_]:
        """Return whether each row counts."""
        return np.asarray(self.evaluate(columns) == 1.0)


def subset(text: object, codebook: Codebook) -> Subset | None:
    """Compile the argument ``subset=`` of a verb; None if it is left out.

    FormulaError, CodebookError or ArgumentError if it is not a condition on a row.

    >>> import dpmodels as dp
    >>> adults = subset("age >= 25", dp.codebook(age=(0, 100)))
    >>> adults.holds({"age": np.array([20.0, 30.0, np.nan])}).tolist()
    [False, True, False]
    """
    if text is None:
        return None
    if not isinstance(text, str) or not text.strip():
        raise ArgumentError(
            f"subset={quoted(text)}: expected a condition on the variables of a row, such as "
            'subset="age >= 25" or subset="(region == \'north\') & (age < 65)"'
        )
    book = checked_codebook(codebook)
    try:
        value = compile_factor(text.strip(), book)
    except FormulaError as error:
        raise FormulaError(f"subset={shorten(text)!r}: {error}") from None
    match value:
        case Truth() | Category(levels=(False, True)):
            return Subset(text.strip(), used_codebook((text.strip(),), book), value.evaluate)
    raise FormulaError(
        f"subset={shorten(text)!r} is not a condition on a row: write a comparison, such as "
        'subset="age >= 25" or subset="region == \'north\'"'
    )
