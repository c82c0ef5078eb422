"""How variables enter a model: as numbers, or as levels that are compared."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dpmodels.errors import ArgumentError, FormulaError, said, shorten
from dpmodels.formula import Design
from dpmodels.formula.expression import compile_factor
from dpmodels.formula.parse import quote, variables_in
from dpmodels.formula.values import Category, Truth
from dpmodels.variables import Categorical, Numeric


def levels_of(design: Design, name: str) -> dict[object, float] | None:
    """Return the levels of a variable with what stands for each in a column, None of a number.

    Whole numbers that enter as ``C(x)`` alone have levels.
    """
    declared = design.codebook[name]
    if isinstance(declared, Categorical):
        return {level: float(code) for code, level in enumerate(declared.shown_levels)}
    factors = _factors(design, name)
    written = [own for code, own in factors.items() if code.startswith("C(")]
    levels = [own for own in written if _are_whole(own)]
    if not isinstance(declared, Numeric) or len(levels) < len(factors):
        return None
    return {level: float(level) for level in levels[0].levels}


def in_steps(design: Design, name: str) -> bool:
    """Whether a number enters in steps, as by ``cut(x, ...)`` or ``x > 3``."""
    return levels_of(design, name) is None and any(
        isinstance(factor, Category | Truth) for factor in _factors(design, name).values()
    )


def _factors(design: Design, name: str) -> dict[str, Any]:
    """Return the factors that a variable is in, by how they are written."""
    written = dict.fromkeys(code for block in design.blocks for code in block.term)
    return {
        code: compile_factor(code, design.codebook)
        for code in written
        if name in variables_in(code)
    }


def _are_whole(factor: Category) -> bool:
    """Whether levels are a variable's whole numbers."""
    return all(type(level) is int for level in factor.levels)


def variables_named(design: Design, names: str | Sequence[str]) -> list[str]:
    """Return the variables that names mean: their own, those of a factor, or of ``a:b``."""
    if not isinstance(names, str | Sequence):
        raise ArgumentError(f"{said(names)}: expected names of variables, such as 'sex'")
    parts = _parts(design, names) if isinstance(names, str) else list(names)
    found = [_variable(design, part) for part in parts]
    if not found or len(set(found)) < len(found):
        raise ArgumentError(f"{said(names)}: expected each variable once, such as 'sex'")
    return found


def _parts(design: Design, names: str) -> list[str]:
    return [names] if names in design.variables else names.split(":")


def _variable(design: Design, part: object) -> str:
    known = {quote(name): name for name in design.variables} | {
        name: name for name in design.variables
    }
    text = part if isinstance(part, str) else ""
    text = text if text in known else text.strip()
    if text in known:
        return known[text]
    try:
        read = variables_in(text)
    except FormulaError:
        read = ()
    written = {code for block in design.blocks for code in block.term}
    if text in written and len(read) == 1:
        return read[0]
    raise ArgumentError(
        f"{said(part)} is no variable of the terms: write one of "
        f"{shorten(', '.join(design.variables), 120)}"
    )
