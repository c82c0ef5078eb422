"""Fixed effects: the factors behind ``|`` of a regression, ``y ~ x | firm + year``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Final

from dpmodels.errors import FormulaError, UnknownVariable, shorten
from dpmodels.formula.coding import Design
from dpmodels.formula.expression import as_category, compile_factor
from dpmodels.formula.parse import ParsedFormula, check_size, parsed_formula, variables_in
from dpmodels.formula.sides import marks
from dpmodels.formula.values import Category, Truth
from dpmodels.typing import Floats
from dpmodels.variables import Variable

# A choice: more levels than rows of a large survey can carry at any usual budget.
MOST_LEVELS: Final = 300
_WRITE: Final = "write 'y ~ x | firm' or 'y ~ x | firm + year'"


def split_fixed(formula: str, book: Mapping[str, Variable]) -> tuple[str, tuple[str, ...]]:
    """Return a formula without its fixed effects, and the factors that these are.

    >>> import dpmodels as dp
    >>> split_fixed("y ~ x | firm", dp.codebook(y=(0, 1), x=(0, 1), firm=["a", "b"]))
    ('y ~ x', ('firm',))
    """
    check_size(formula)
    separators = [position for position in marks(formula) if formula[position] == "|"]
    if not separators:
        return formula, ()
    before, behind = formula[: separators[0]], formula[separators[0] + 1 :]
    if len(separators) > 1 or "~" in [behind[position] for position in marks(behind)]:
        raise FormulaError(
            f"formula {shorten(formula)!r}: expected fixed effects behind one '|', {_WRITE}; "
            'clusters are person= with vcov="cluster", and a condition stands in I(a | b)'
        )
    if not before.partition("~")[2].strip(" 01+-"):
        raise FormulaError(
            f"formula {shorten(formula)!r} has fixed effects and no term: name a variable before "
            "'|', or write dp_mean('y ~ firm') for means by level"
        )
    parsed = parsed_formula(f"~ {behind}" if behind.strip() else "~ 1", ())
    if not parsed.predictors:
        raise FormulaError(
            f"formula {shorten(formula)!r} names no fixed effect after '|'; {_WRITE}"
        )
    if parsed.removed or not parsed.intercept or any(len(term) > 1 for term in parsed.predictors):
        raise FormulaError(
            f"{shorten(behind.strip())!r} behind '|': expected single factors joined by '+', "
            f"{_WRITE}"
        )
    fixed = tuple(code for (code,) in parsed.predictors)
    sizes = [len(_levels(code, book)) for code in fixed]
    if sum(sizes) > MOST_LEVELS:
        raise FormulaError(
            f"{shorten(behind.strip())!r} behind '|' has {sum(sizes):,} levels; at most "
            f"{MOST_LEVELS} are fitted, as each is a column with noise: declare groups of levels"
        )
    return before.strip(), fixed


def _levels(code: str, book: Mapping[str, Variable]) -> tuple[object, ...]:
    """Return the levels of a fixed effect, or say what to declare."""
    try:
        value = compile_factor(code, book)
    except UnknownVariable:
        (name, *_) = (name for name in variables_in(code) if name not in book)
        raise UnknownVariable(
            f"fixed effect {shorten(name)!r} has no declared levels: declare them in the "
            f'codebook, dp.codebook({name if name.isidentifier() else "firm"}=["a", "b"])'
        ) from None
    if isinstance(value, Truth):
        value = as_category(value, code)
    if isinstance(value, Category):
        return value.levels
    text = shorten(code)
    declare = f"declare them, {text}=[1, 2, 3], or write C({text}) if it is a whole number"
    raise FormulaError(
        f"fixed effect {text!r} is a number, which has no levels: "
        + (declare if code.isidentifier() else "name a factor, or cut a number at public breaks")
    )


def with_fixed(parsed: ParsedFormula, fixed: Iterable[str]) -> ParsedFormula:
    """Add fixed effects to the terms, with the constant that they contain."""
    names = tuple(fixed)
    if not names:
        return parsed
    for code in names:
        if (code,) in parsed.predictors:
            raise FormulaError(
                f"{shorten(code)!r} is a term and a fixed effect; leave it out before '|'"
            )
    return replace(
        parsed,
        text=f"{parsed.text} | {' + '.join(names)}",
        predictors=(*parsed.predictors, *((code,) for code in names)),
        intercept=True,
    )


def levels_of_fixed(design: Design, code: str) -> tuple[tuple[object, ...], Floats]:
    """Return the levels of a fixed effect, and its columns at each, shape (levels, columns)."""
    block = next(block for block in design.blocks if block.term == (code,))
    (factor,), (contrast,) = block.factors, block.contrasts
    assert isinstance(factor, Category)
    assert contrast is not None
    return factor.levels, contrast
