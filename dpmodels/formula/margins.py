"""The margins that a formula asks for, each term one."""

from __future__ import annotations

import math
from dataclasses import dataclass

from dpmodels.codebook import Codebook
from dpmodels.errors import FormulaError, shorten
from dpmodels.formula.coding import checked_codebook
from dpmodels.formula.expression import as_category, check_removed, compile_factor
from dpmodels.formula.parse import parse, variables_in
from dpmodels.formula.tally import MAX_CELLS
from dpmodels.formula.values import Category


@dataclass(frozen=True)
class Margins:
    """The factors of a formula in order of first mention, and its terms as their places."""

    text: str
    codebook: Codebook
    factors: tuple[Category, ...]
    terms: tuple[tuple[int, ...], ...]

    @property
    def sizes(self) -> tuple[int, ...]:
        """Levels of each factor, with one more for what is missing or unlisted."""
        return tuple(len(factor.levels) + 1 for factor in self.factors)


def margins(formula: str, codebook: Codebook | None) -> Margins:
    """Compile the factors of a formula and tell which of them each margin is of.

    >>> import dpmodels as dp
    >>> cb = dp.codebook(sex=["F", "M"], region=["n", "s", "w"], drug=["no", "yes"])
    >>> asked = margins("~ sex*region + region:drug", cb)
    >>> [factor.code for factor in asked.factors], asked.terms
    (['sex', 'region', 'drug'], ((0,), (1,), (0, 1), (1, 2)))
    """
    book = checked_codebook(codebook)
    parsed = parse(formula, book)
    check_removed(parsed, book)
    text = shorten(parsed.text)
    if parsed.response:
        raise FormulaError(
            f"formula {text!r} has a left side: a margin is of all its variables alike; write "
            "'~ a*b' for the margins of a, of b and of both"
        )
    if not parsed.predictors:
        raise FormulaError(f"formula {text!r} names no variable to count; write '~ a*b + b:c'")
    codes = tuple(dict.fromkeys(code for term in parsed.predictors for code in term))
    factors = tuple(_leveled(as_category(compile_factor(code, book), code)) for code in codes)
    terms = tuple(tuple(sorted(map(codes.index, term))) for term in parsed.predictors)
    used = {name for code in codes for name in variables_in(code)}
    found = Margins(parsed.text, book.select(name for name in book if name in used), factors, terms)
    _check_size(found)
    return found


def _leveled(factor: Category) -> Category:
    if len(factor.levels) < 2:
        raise FormulaError(
            f"{shorten(factor.code)!r} has one level, which tells nothing of a row; leave it out"
        )
    return factor


def _check_size(own: Margins) -> None:
    """Refuse margins of more cells than are counted at once."""
    sizes = own.sizes
    counts = [math.prod(sizes[i] for i in term) for term in own.terms]
    most = max(counts)
    if most > MAX_CELLS:
        term = own.terms[counts.index(most)]
        named = ":".join(own.factors[i].code for i in term)
        raise FormulaError(
            f"{shorten(named)!r} has {most:,} cells, with one level a variable for what is "
            f"missing; at most {MAX_CELLS:,} are counted. Write margins of fewer variables"
        )
    if sum(counts) > MAX_CELLS:
        raise FormulaError(
            f"formula {shorten(own.text)!r} asks for {len(counts):,} margins of {sum(counts):,} "
            f"cells in all; at most {MAX_CELLS:,} are counted. Write fewer margins"
        )
