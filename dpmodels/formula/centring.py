"""Numbers centred inside products: public designs, and the map back to the columns as written.

With ``u = x - c`` for each number x that a product contains, a coded column of the design as
written is a combination of the centred ones: ``col_c = B col + b``, where every lower-order column
that B needs is in the model. Coefficients follow exactly: ``β = Bᵀβ_c``, ``β₀ = β₀_c + b · β_c``.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np

from dpmodels.formula.coding import Block, Design, Factor, of_blocks
from dpmodels.formula.response import TwoSided
from dpmodels.formula.values import Columns, Real
from dpmodels.typing import Floats

# The codes of numbers as in the formula, and the public points that are subtracted from them.
Centres = tuple[tuple[str, float], ...]


@dataclass(frozen=True)
class ProductMap:
    """The map ``col_c = B col + b`` from coded columns to centred ones.

    `matrix` is B, shape (terms, terms), `shift` is b, shape (terms,).
    """

    matrix: Floats
    shift: Floats

    def of_coefficients(self, intercept: bool) -> Floats:
        """Return what takes coefficients of the centred columns to those of the written ones."""
        if not intercept:
            return self.matrix.T
        size = len(self.shift) + 1
        matrix = np.eye(size)
        matrix[1:, 1:] = self.matrix.T
        matrix[0, 1:] = self.shift
        return matrix


def product_centres(sides: TwoSided, proposed: Centres | None = None) -> Centres:
    """Return the numbers inside products whose lower-order terms are in the model, and centres.

    A centre is the middle of the number's public range, or the point within it that is `proposed`.
    A number stays as it is where a product with it lacks a lower-order term: centred, it would be
    another model.
    """
    numbers = _numbers_in_products(sides.terms)
    if proposed is None:
        middles = ((code, (x.lower + x.upper) / 2) for code, x in numbers.items())
        proposed = tuple((code, middle) for code, middle in middles if middle != 0)
    centres = tuple(
        (code, point)
        for code, point in proposed
        if code in numbers and numbers[code].lower <= point <= numbers[code].upper
    )
    while centres:
        lacking = _lacking(sides.terms, centres, sides.intercept)
        if not lacking:
            return centres
        centres = tuple((code, middle) for code, middle in centres if code not in lacking)
    return ()


def _numbers_in_products(terms: Design) -> dict[str, Real]:
    return {
        factor.code: factor
        for block in terms.blocks
        if len(block.factors) > 1
        for factor in block.factors
        if isinstance(factor, Real)
    }


def centred_sides(sides: TwoSided, centres: Centres) -> TwoSided:
    """Return both sides with these numbers centred wherever the terms contain them."""
    if not centres:
        return sides
    points, terms = dict(centres), sides.terms
    blocks = tuple(
        replace(block, factors=tuple(_centred(factor, points) for factor in block.factors))
        for block in terms.blocks
    )
    return replace(sides, terms=of_blocks(terms.formula, terms.codebook, blocks))


def product_map(sides: TwoSided, centres: Centres) -> ProductMap | None:
    """Return the map from columns as written to centred ones; None without centres."""
    if not centres:
        return None
    terms = sides.terms
    matrix, shift = np.eye(len(terms.names)), np.zeros(len(terms.names))
    columns = dict(_slices(terms.blocks))
    for at, _, weight, combination in _expansions(terms, centres, sides.intercept):
        assert combination is not None, "product_centres() keeps numbers whose terms are there"
        matrix[columns[at]] += weight * combination[:, 1:]
        shift[columns[at]] += weight * combination[:, 0]
    return ProductMap(matrix, shift)


def _centred(factor: Factor, points: dict[str, float]) -> Factor:
    if not isinstance(factor, Real) or factor.code not in points:
        return factor
    point, evaluate = points[factor.code], factor.evaluate

    def less(columns: Columns) -> Floats:
        return np.asarray(evaluate(columns) - point)

    lower, upper = factor.lower - point, factor.upper - point
    return replace(factor, lower=lower, upper=upper, evaluate=less, variable=None)


def _slices(blocks: Iterable[Block]) -> Iterator[tuple[int, slice]]:
    start = 0
    for at, block in enumerate(blocks):
        yield at, slice(start, start + len(block.names))
        start += len(block.names)


def _lacking(terms: Design, centres: Centres, intercept: bool) -> frozenset[str]:
    """Return the numbers of products, some of whose lower-order columns the model lacks."""
    return frozenset(
        code
        for _, codes, _, combination in _expansions(terms, centres, intercept)
        if combination is None
        for code in codes
    )


def _expansions(
    terms: Design, centres: Centres, intercept: bool
) -> Iterator[tuple[int, tuple[str, ...], float, Floats | None]]:
    """Expand the centred columns: block, subtracted numbers, weight, and the lower-order columns.

    These are combinations of the constant and the columns as written, shape (columns, 1 + terms);
    None where the model does not contain them.
    """
    points = dict(centres)
    for at, block in enumerate(terms.blocks):
        codes = [factor.code for factor in block.factors if factor.code in points]
        for number in range(1, len(codes) + 1):
            for removed in combinations(codes, number):
                weight = math.prod(-points[code] for code in removed)
                rest = [pair for pair in _factors(block) if pair[0].code not in removed]
                yield at, removed, weight, _combination(rest, terms, intercept)


Coded = tuple[Factor, Floats | None]


def _factors(block: Block) -> list[Coded]:
    return list(zip(block.factors, block.contrasts, strict=True))


def _combination(target: Sequence[Coded], terms: Design, intercept: bool) -> Floats | None:
    """Return columns of coded factors as combinations of the constant and the model's columns."""
    size = 1 + len(terms.names)
    if not target:
        return np.eye(1, size) if intercept else None
    for at, columns in _slices(terms.blocks):
        if _same(_factors(terms.blocks[at]), target):
            return np.eye(columns.stop - columns.start, size, k=1 + columns.start)
    return None


def _same(left: Sequence[Coded], right: Sequence[Coded]) -> bool:
    return len(left) == len(right) and all(
        a.code == b.code and (p is q or (p is not None and q is not None and np.array_equal(p, q)))
        for (a, p), (b, q) in zip(left, right, strict=True)
    )
