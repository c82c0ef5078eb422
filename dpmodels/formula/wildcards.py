"""Wildcards: functions that stand for variables of the codebook by their names."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from typing import Final

from dpmodels.errors import FormulaError, shorten

WILDCARDS: Final[Mapping[str, Callable[[str, str], bool]]] = {
    "starts_with": str.startswith,
    "ends_with": str.endswith,
    "contains": str.__contains__,
}


def wildcard(node: ast.expr, names: tuple[str, ...]) -> list[str] | None:
    """Return those of the names that an expression stands for, None if it is no wildcard.

    >>> wildcard(ast.parse('starts_with("inc_")', mode="eval").body, ("inc_a", "age", "inc_b"))
    ['inc_a', 'inc_b']
    """
    match node:
        case ast.Call(func=ast.Name(id=choose), args=args, keywords=words) if choose in WILDCARDS:
            pass
        case _:
            return None
    written = shorten(ast.unparse(node), 200)
    match (*args, *words):
        case (ast.Constant(value=str() as text),) if text:
            found = [name for name in names if WILDCARDS[choose](name, text)]
        case _:
            raise FormulaError(f"{written!r}: expected a text, such as {choose}('inc_')")
    if not found:
        raise FormulaError(
            f"{written!r} stands for no variable of the codebook that is left; its names are "
            "compared letter by letter"
        )
    return found
