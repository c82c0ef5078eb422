"""Levels that were merged into "Other": a formula coded by the levels that are left."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Final

import numpy as np

from dpmodels.codebook import Codebook
from dpmodels.errors import FrameError
from dpmodels.formula.coding import Block, Factor
from dpmodels.formula.parse import quote, variables_in
from dpmodels.formula.response import TwoSided, of_blocks
from dpmodels.formula.values import Category, Columns
from dpmodels.typing import Floats
from dpmodels.variables import Categorical

OTHER: Final = "Other"
# A choice: the part of the budget that buys the numbers of rows by level.
COUNTS_SHARE: Final = 0.05
# Variables and the levels of each, as printed, that are merged.
Merged = tuple[tuple[str, tuple[str, ...]], ...]


def lumpable(sides: TwoSided) -> dict[str, Category]:
    """Return the factors whose levels may be merged, by variable.

    Variables that the terms name by themselves and nowhere inside an expression, where a level may
    be meant; with a third level, so that two can be merged.
    """
    factors = {
        factor.code: factor
        for block in sides.terms.blocks
        for factor in block.factors
        if isinstance(factor, Category)
    }
    codes = {factor.code for block in sides.terms.blocks for factor in block.factors}
    codes |= {factor.code for block in sides.response.blocks for factor in block.factors}
    return {
        name: factors[quote(name)]
        for name in sides.terms.codebook
        if quote(name) in factors
        and len(factors[quote(name)].levels) > 2
        and sum(name in variables_in(code) for code in codes) == 1
    }


def small_levels(levels: tuple[str, ...], counts: Floats, minimum: float) -> tuple[str, ...]:
    """Return the levels to merge: those counted less than `minimum`, if there are two.

    The level with the largest count stays, and a declared level "Other" is one of those merged.

    >>> small_levels(("a", "b", "c", "d"), np.array([90.0, 3.0, 50.0, -2.0]), 10)
    ('b', 'd')
    >>> small_levels(("a", "b", "c"), np.array([4.0, 3.0, 2.0]), 10)
    ('b', 'c')
    >>> small_levels(("a", "b", "c"), np.array([40.0, 30.0, 2.0]), 10)
    ()
    """
    largest = levels[int(np.argmax(counts))]
    small = [
        level
        for level, count in zip(levels, counts.tolist(), strict=True)
        if level != largest and (count < minimum or level == OTHER)
    ]
    return tuple(small) if len(small) > 1 else ()


def merged_book(book: Codebook, sides: TwoSided, merged: Merged) -> Codebook:
    """Return the codebook of the levels that are left, "Other" the last.

    FrameError for levels that the formula does not have, in a file.
    """
    factors, changed = lumpable(sides), dict(book)
    for name, levels in merged:
        printed = tuple(map(str, factors[name].levels)) if name in factors else ()
        if not 1 < len(set(levels)) < len(printed) or not set(levels) <= set(printed):
            raise FrameError(f"release.lumped: {name!a} does not have such levels to merge")
        left = tuple(level for level in printed if level not in levels and level != OTHER)
        changed[name] = Categorical((*left, OTHER), book[name].label)
    return Codebook(changed)


def lumped_sides(merged_sides: TwoSided, written: TwoSided, merged: Merged) -> TwoSided:
    """Let a formula coded by the levels that are left read rows of all declared levels."""
    codes: dict[str, Floats] = {}
    for name, levels in merged:
        printed = tuple(map(str, lumpable(written)[name].levels))
        left = [level for level in printed if level not in levels and level != OTHER]
        codes[name] = np.array([left.index(x) if x in left else len(left) for x in printed], float)
    terms = merged_sides.terms
    blocks = tuple(
        replace(block, factors=tuple(_reading(factor, codes) for factor in block.factors))
        for block in terms.blocks
    )
    return replace(merged_sides, terms=of_blocks(terms.formula, written.terms.codebook, blocks))


def _reading(factor: Factor, codes: Mapping[str, Floats]) -> Factor:
    """Return a factor that merges the levels of the columns that it reads."""
    evaluate: Callable[[Columns], Floats] = factor.evaluate
    if not isinstance(factor, Category) or not any(quote(name) == factor.code for name in codes):
        return factor
    name = next(name for name in codes if quote(name) == factor.code)

    def merging(columns: Columns) -> Floats:
        column = columns[name]
        missing = np.isnan(column)
        places = codes[name][np.where(missing, 0, column).astype(np.intp)]
        return evaluate({**columns, name: np.where(missing, np.nan, places)})

    return replace(factor, evaluate=merging)


def level_blocks(sides: TwoSided) -> tuple[Block, ...]:
    """Return the indicators of all levels of the factors that may be merged."""
    return tuple(
        Block(tuple(map(str, x.levels)), (x,), (np.eye(len(x.levels)),), (name,))
        for name, x in lumpable(sides).items()
    )
