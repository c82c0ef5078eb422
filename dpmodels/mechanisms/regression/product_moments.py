"""The covariance of products of columns, as it would be if their factors were independent.

A function of released means and variances of the factors alone. It is where the rounds of
``scores`` start: whitened by it, a product is counted from the released means of its factors.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from functools import reduce
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpmodels.design import Scaling
from dpmodels.formula import Block
from dpmodels.formula.values import Category, Real
from dpmodels.typing import Floats

# A choice: combinations of values of the factors of two terms up to which they are compared.
LARGEST_GRID = 20_000
# Of a variance: the least of it that is not explained by other columns.
SMALLEST = 1e-6


class Factors(NamedTuple):
    """Values of factors and their probabilities, by code: levels, or two values of a number."""

    values: dict[str, Floats]
    probabilities: dict[str, Floats]


def put_products(
    covariance: Floats,
    blocks: Sequence[Block],
    public: Scaling,
    mean: Floats,
    shares: Mapping[int, Floats],
) -> None:
    """Write the covariances of products with all columns, in scaled units, in place.

    `covariance` has the released variances of all columns and, of each factor, the covariances
    of its levels; `mean` are the released means, `shares` those of a factor's levels by its first
    column. Blocks with a factor that is not a term by itself stay as they are. The result is
    positive definite.
    """
    columns = list(_columns(blocks))
    factors = _factors(zip(blocks, columns, strict=True), covariance, public, mean, shares)
    known = [
        at
        for at, block in enumerate(blocks)
        if all(factor.code in factors.values for factor in block.factors)
    ]
    if all(len(blocks[at].factors) == 1 for at in known):
        return
    implied = covariance.copy()
    for number, at in enumerate(known):
        for beside in known[: number + 1]:
            shared = _covariance(blocks[at], blocks[beside], factors)
            if shared is None:
                return
            unit = np.outer(public.scale[columns[at]], public.scale[columns[beside]])
            implied[columns[at], columns[beside]] = shared / unit
            implied[columns[beside], columns[at]] = (shared / unit).T
    covariance[:] = implied
    # A sum of a covariance and a small diagonal: no eigenvalue is 0.
    covariance[np.diag_indices(len(covariance))] *= 1 + SMALLEST


def _columns(blocks: Iterable[Block]) -> Iterable[slice]:
    start = 0
    for block in blocks:
        yield slice(start, start + len(block.names))
        start += len(block.names)


def _factors(
    blocks: Iterable[tuple[Block, slice]],
    covariance: Floats,
    public: Scaling,
    mean: Floats,
    shares: Mapping[int, Floats],
) -> Factors:
    """Return the factors that are terms by themselves, with their released distributions."""
    values, probabilities = {}, {}
    for block, columns in blocks:
        factor, at = block.factors[0], columns.start
        if len(block.factors) > 1:
            continue
        if isinstance(factor, Real):
            middle = public.centre[at] + public.scale[at] * mean[at]
            sd = public.scale[at] * math.sqrt(covariance[at, at])
            values[factor.code] = np.array([middle - sd, middle + sd])
            probabilities[factor.code] = np.full(2, 0.5)
        elif isinstance(factor, Category) and at in shares:
            values[factor.code] = np.arange(len(shares[at]))
            probabilities[factor.code] = shares[at]
    return Factors(values, probabilities)


def _covariance(left: Block, right: Block, factors: Factors) -> Floats | None:
    codes = list(dict.fromkeys(factor.code for factor in (*left.factors, *right.factors)))
    sizes = [len(factors.values[code]) for code in codes]
    if math.prod(sizes) > LARGEST_GRID:
        return None
    grid = np.indices(sizes).reshape(len(sizes), -1)
    places = dict(zip(codes, grid, strict=True))
    weight = math.prod(factors.probabilities[code][places[code]] for code in codes)
    a, b = (_on_grid(block, factors, places) for block in (left, right))
    a = a - weight @ a
    return np.asarray((a.T * weight) @ b)


def _on_grid(block: Block, factors: Factors, places: Mapping[str, NDArray[np.int_]]) -> Floats:
    """Return the columns of a block at combinations of its factors' values, by columns."""
    parts = []
    for factor, contrast in zip(block.factors, block.contrasts, strict=True):
        values = factors.values[factor.code][places[factor.code]]
        parts.append(values[:, None] if contrast is None else contrast[values.astype(np.intp)])
    # The first factor varies fastest.
    return np.asarray(
        reduce(lambda x, y: (y[:, :, None] * x[:, None, :]).reshape(len(x), -1), parts)
    )
