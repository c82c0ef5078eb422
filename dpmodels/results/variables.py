"""How variables enter a model: as numbers, or as levels that are compared."""

from __future__ import annotations

from collections.abc import Sequence

from dpmodels.errors import ArgumentError, FormulaError, said, shorten
from dpmodels.formula import Design
from dpmodels.formula.parse import quote, variables_in
from dpmodels.formula.values import Category
from dpmodels.variables import Categorical, Numeric


def levels_of(design: Design, name: str) -> dict[object, float] | None:
    """Return the levels of a variable with what stands for each in a column, None of a number.

    Whole numbers that enter as ``C(x)`` alone have levels.
    """
    declared = design.codebook[name]
    if isinstance(declared, Categorical):
        return {level: float(code) for code, level in enumerate(declared.shown_levels)}
    whole = isinstance(declared, Numeric) and all(
        _is_levels(factor, name) for factor in _factors(design, name)
    )
    if not whole:
        return None
    (own, *_) = (factor for factor in _factors(design, name) if isinstance(factor, Category))
    return {level: float(level) for level in own.levels}


def in_steps(design: Design, name: str) -> bool:
    """Whether a number enters in steps, as by ``cut(x, ...)`` or ``x > 3``."""
    return levels_of(design, name) is None and any(
        isinstance(factor, Category) for factor in _factors(design, name)
    )


def _factors(design: Design, name: str) -> list[object]:
    """Return the factors that a variable is in."""
    return [
        factor
        for block in design.blocks
        for factor in block.factors
        if name in variables_in(factor.code)
    ]


def _is_levels(factor: object, name: str) -> bool:
    """Whether a factor is a variable's whole numbers as levels."""
    if not isinstance(factor, Category) or not factor.code.startswith("C("):
        return False
    return all(type(level) is int for level in factor.levels) and quote(name) in factor.code


def variables_named(design: Design, names: str | Sequence[str]) -> list[str]:
    """Return the variables that names mean: their own, those of a factor, or of ``a:b``."""
    parts = names.split(":") if isinstance(names, str) else list(names)
    found = [_variable(design, part) for part in parts]
    if not found or len(set(found)) < len(found):
        raise ArgumentError(f"{said(names)}: expected each variable once, such as 'sex'")
    return found


def _variable(design: Design, part: object) -> str:
    text = part.strip() if isinstance(part, str) else ""
    known = {quote(name): name for name in design.variables} | {
        name: name for name in design.variables
    }
    if text in known:
        return known[text]
    try:
        read = variables_in(text)
    except FormulaError:
        read = ()
    written = {factor.code for block in design.blocks for factor in block.factors}
    if text in written and len(read) == 1:
        return read[0]
    raise ArgumentError(
        f"{said(part)} is no variable of the terms: write one of "
        f"{shorten(', '.join(design.variables), 120)}"
    )
