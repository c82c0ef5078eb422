"""Which products of two coded columns are always 0, and which are always the same.

A column is a *monomial of a cell* where it is an indicator of levels of its categories, times
numbers: the dummies of treatment coding are, and their products with numbers and with each other.
The product of two such columns is 0 where they name two levels of one category, and otherwise the
monomial of the merged cell: two products of one cell and one monomial are the same function of a
row. A column of another coding is like nothing but itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpmodels.formula.coding import Block
from dpmodels.formula.values import Category
from dpmodels.typing import Floats

Whole = NDArray[np.int_]
# No level of a category; and, of products, the function that is 0.
NONE = -1


@dataclass(frozen=True)
class Cells:
    """Coded columns as multiples of monomials of cells, the constant first.

    `levels`, shape (columns + 1, categories), is the level of each category that a column
    indicates; `numbers`, shape (columns + 1, numbers of a column), which numbers it multiplies, in
    order, 0 for none; `sizes` how many levels each category has; `factor`, shape (columns + 1,),
    the value of the column where monomial and indicator are 1.
    """

    levels: Whole
    numbers: Whole
    sizes: tuple[int, ...]
    factor: Floats

    def products(self, left: Whole, right: Whole) -> Whole:
        """Return which function of a row each product of two columns is, or :data:`NONE`.

        `left` and `right`, shape (products,), are columns, counted with the constant.
        """
        zero = np.zeros(len(left), dtype=bool)
        own = np.zeros(len(left), dtype=np.int_)
        both = np.sort(np.hstack([self.numbers[left], self.numbers[right]]), axis=1)
        for place in both.T:
            own = _told(own, place)
        for level in self.levels.T:
            one, other = level[left], level[right]
            zero |= (one != other) & (one != NONE) & (other != NONE)
            own = _told(own, np.maximum(one, other) + 1)
        return np.where(zero, NONE, own)


def _told(own: Whole, more: Whole) -> Whole:
    """Tell apart what differs in either."""
    merged = own * (int(more.max(initial=0)) + 1) + more
    return np.asarray(np.unique(merged, return_inverse=True)[1])


def cells(blocks: Sequence[Block]) -> Cells:
    """Read the columns of blocks as monomials of cells."""
    categories: dict[str, int] = {}
    numbers: dict[tuple[str, int], int] = {}
    levels: list[dict[int, int]] = [{}]
    atoms: list[list[int]] = [[]]
    scale = [1.0]
    for block in blocks:
        shape = [_columns(*pair) for pair in zip(block.factors, block.contrasts, strict=True)]
        # The first factor varies fastest.
        places = np.unravel_index(np.arange(len(block.names)), shape, order="F")
        for name, *at in zip(block.names, *(place.tolist() for place in places), strict=True):
            cell, own, value = {}, [], 1.0
            for factor, contrast, one in zip(block.factors, block.contrasts, at, strict=True):
                held = np.empty(0) if contrast is None else np.flatnonzero(contrast[:, one])
                if contrast is not None and len(held) == 1:
                    category = categories.setdefault(factor.code, len(categories))
                    cell[category] = int(held[0])
                    value *= float(contrast[held[0], one])
                else:
                    code = factor.code if contrast is None else f"{factor.code} in {name}"
                    own.append(numbers.setdefault((code, one), len(numbers) + 1))
            levels.append(cell)
            atoms.append(own)
            scale.append(value)
    table = np.full((len(levels), len(categories)), NONE)
    for row, cell in enumerate(levels):
        for category, level in cell.items():
            table[row, category] = level
    width = max(map(len, atoms))
    padded = np.array([[0] * (width - len(own)) + sorted(own) for own in atoms], dtype=np.int_)
    sizes = {
        factor.code: len(factor.levels)
        for block in blocks
        for factor in block.factors
        if isinstance(factor, Category)
    }
    known = tuple(sizes[code] for code in categories)
    return Cells(table, padded.reshape(len(atoms), width), known, np.array(scale))


def _columns(factor: object, contrast: Floats | None) -> int:
    if contrast is not None:
        return int(contrast.shape[1])
    vertices = getattr(factor, "vertices", None)
    return 1 if vertices is None else int(vertices.shape[1])
