"""Variables and terms of a release of margins, by name or formula."""

from __future__ import annotations

import re
from collections.abc import Sequence

from dpmodels.codebook import Codebook
from dpmodels.errors import ArgumentError, FormulaError, said, shorten
from dpmodels.formula.expression import as_category, compile_factor
from dpmodels.formula.parse import parse


def named_terms(
    book: Codebook, factors: Sequence[str], formula: str
) -> tuple[tuple[str, ...], ...]:
    """Return the terms of a formula on released variables."""
    parsed = parse(formula, factors)
    if parsed.response or not parsed.predictors:
        raise FormulaError(
            f"formula {shorten(parsed.text)!r}: expected terms without a left side, such as "
            f"'~ {shorten('*'.join(factors[:2]))}'"
        )
    return tuple(
        tuple(_released(as_category(compile_factor(one, book), one).code, factors) for one in term)
        for term in parsed.predictors
    )


def named_factors(
    book: Codebook, factors: Sequence[str], given: tuple[str, ...]
) -> tuple[str, ...]:
    """Return released variables, each named once, or those of one formula or term."""
    (one,) = given if len(given) == 1 else ("",)
    if isinstance(one, str) and one not in factors and re.search("[~:]", one):
        terms = named_terms(book, factors, one if "~" in one else f"~ {one}")
        return tuple(dict.fromkeys(one for term in terms for one in term))
    if not given:
        raise ArgumentError(f"no variable is named; write one or more of {_listed(factors)}")
    named = tuple(_released(one, factors) for one in given)
    twice = next((one for one in named if named.count(one) > 1), None)
    if twice is not None:
        raise ArgumentError(f"{said(twice)} is named twice; write each variable once")
    return named


def _released(name: object, factors: Sequence[str]) -> str:
    if not isinstance(name, str) or name not in factors:
        raise ArgumentError(
            f"{said(name)} is in no margin; write one or more of {_listed(factors)}, "
            "each by itself, or a term of them"
        )
    return name


def _listed(factors: Sequence[str]) -> str:
    return shorten(", ".join(map(repr, factors)))
