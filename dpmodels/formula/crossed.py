"""The table of a regression on categories: a cell for each combination of levels."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from dpmodels.errors import FormulaError, shorten
from dpmodels.formula.coding import Design, Factor
from dpmodels.formula.response import TwoSided
from dpmodels.formula.tally import Tally
from dpmodels.formula.values import Category, Columns, Real
from dpmodels.typing import Floats

# Choices: values of a whole number that has a cell for each, and cells of a table.
MOST_VALUES, MOST_CELLS = 20, 10_000


@dataclass(frozen=True)
class Crossed:
    """The terms of an equation with their factors as categories, and the response."""

    terms: Design
    factors: tuple[Category, ...]
    response: Category

    @property
    def cells(self) -> int:
        """Combinations of the levels of all factors and of the response."""
        return math.prod(len(factor.levels) for factor in (*self.factors, self.response))

    @property
    def tally(self) -> Tally:
        """The table, the response varying fastest; FormulaError if it has too many cells."""
        if self.cells > MOST_CELLS:
            raise FormulaError(
                f"{shorten(self.terms.formula)!r} has {self.cells:,} combinations of levels with "
                f'those of the response; mechanism="counts" takes {MOST_CELLS:,}: name fewer '
                "terms, merge levels, or leave mechanism= out"
            )
        return Tally((*self.factors, self.response))

    @property
    def rows(self) -> Floats:
        """The coded terms of each combination of levels, shape (combinations, columns)."""
        sizes = tuple(len(factor.levels) for factor in self.factors)
        positions = np.indices(sizes, np.float64).reshape(len(sizes), math.prod(sizes))
        codes = [factor.code for factor in self.factors]
        blocks = [
            replace(block, factors=tuple(map(_of_position, block.factors)))
            for block in self.terms.blocks
        ]
        coded = np.empty((len(self.terms.names), math.prod(sizes)))
        coding = replace(self.terms, blocks=tuple(blocks))
        coding.evaluate(dict(zip(codes, positions, strict=True)), coded)
        return coded.T


def crossed(equation: TwoSided) -> Crossed | str:
    """Return the table of an equation, or the text of a term that has no levels to count.

    A whole number of at most 20 values has them.

    >>> import dpmodels as dp
    >>> from dpmodels.formula.response import two_sided
    >>> cb = dp.codebook(y=["no", "yes"], sex=["F", "M"], age=(0, 99), child=dp.Integer(0, 3))
    >>> table = crossed(two_sided("y ~ sex + child", cb))
    >>> table.cells, table.rows.shape, crossed(two_sided("y ~ sex + age", cb))
    (16, (8, 2), 'age')
    """
    used = [factor for block in equation.terms.blocks for factor in block.factors]
    categories = {factor.code: _as_levels(factor) for factor in used}
    response = equation.response.blocks[0].factors[0]
    without = [code for code, category in categories.items() if category is None]
    if without or not isinstance(response, Category):
        return [*without, response.code][0]
    return Crossed(equation.terms, tuple(filter(None, categories.values())), response)


def _as_levels(factor: Factor) -> Category | None:
    """Return a factor as a category, None for numbers of many values."""
    if not isinstance(factor, Real) or not factor.step:
        return factor if isinstance(factor, Category) else None
    low, step, n_steps = (
        factor.lower,
        factor.step,
        round((factor.upper - factor.lower) / factor.step),
    )

    def positions(columns: Columns) -> Floats:
        return np.clip(np.rint((factor.evaluate(columns) - low) / step), 0, n_steps)

    levels = tuple((low + step * np.arange(n_steps + 1)).tolist())
    return Category(factor.code, levels, positions) if n_steps < MOST_VALUES else None


def _of_position(factor: Factor) -> Factor:
    """Return a factor that reads the position of its level, under its code."""
    code = factor.code
    if not isinstance(factor, Real):
        return replace(factor, evaluate=lambda columns: columns[code])
    low, step = factor.lower, factor.step
    return replace(factor, variable=None, evaluate=lambda columns: low + step * columns[code])
