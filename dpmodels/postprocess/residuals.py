"""Tables by their orthogonal residual components.

A table over the variables of a term S is the sum over all ``A ⊆ S`` of its components: the table
over A less the mean along each of its axes, spread evenly over the cells of the other variables.
A component sums to 0 along each of its axes, and components of different A are orthogonal. So
tables made of the same components agree in all shared margins, and independent noise in components
gives a covariance in closed form.

*Theorem.* Let each cell of a table over T have independent noise of variance ``v``. The component
of ``A ⊆ T`` then has the covariance ``v Π_{j∈T∖A} n_j · ⊗_{i∈A} (I − J/n_i)``, n_i the number of
levels, and components of different A are uncorrelated. So for several such tables with independent
noise the best linear unbiased estimate of every margin is made of the means of the components,
weighted by ``1/(v Π_{j∈T∖A} n_j)``: generalised least squares.

*Proof.* With ``C = I − J/n`` and sums along the other axes, the component is ``⊗_A C ⊗_{T∖A} 1ᵀ``
times the table, and its covariance with that of B has the factor ``C J = 0`` for each variable in
exactly one of A and B. The covariances of one component in several tables are multiples of one
matrix, so the theorem of Gauss and Markov gives weights by precision.

Source: Xiao, Y., He, G., Zhang, D. and Kifer, D. (2023), "An Optimal and Scalable Matrix Mechanism
for Noisy Marginals under Convex Loss Functions", NeurIPS, for the components.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from dpmodels.typing import Floats, Integers, Numbers

# Term: increasing indices of the variables of a margin or of a component.
Scalar = TypeVar("Scalar", bound=np.generic)
Term = tuple[int, ...]
Sizes = Sequence[int]


def subsets(term: Term) -> list[Term]:
    """Return all subsets of a term by size, from () to the term itself."""
    return [part for size in range(len(term) + 1) for part in combinations(term, size)]


def components(terms: Iterable[Term]) -> tuple[Term, ...]:
    """Return the components of the margins of some terms, the smaller first.

    >>> components([(0, 1), (1, 2)])
    ((), (0,), (1,), (2,), (0, 1), (1, 2))
    """
    found = {part for term in terms for part in subsets(term)}
    return tuple(sorted(found, key=lambda part: (len(part), part)))


def largest(terms: Iterable[Term]) -> tuple[Term, ...]:
    """Return the terms that are not contained in another.

    >>> largest([(0,), (0, 1), (2,)])
    ((2,), (0, 1))
    """
    ordered_terms = sorted(set(terms), key=lambda term: (len(term), term))
    inside = {part for term in ordered_terms for part in subsets(term)[:-1]}
    return tuple(term for term in ordered_terms if term not in inside)


def cells(term: Term, sizes: Sizes) -> int:
    """Return the number of cells of the table of a term; 1 for ()."""
    return math.prod(sizes[i] for i in term)


def shape(term: Term, sizes: Sizes) -> tuple[int, ...]:
    """Return the numbers of levels of a term's variables."""
    return tuple(sizes[i] for i in term)


def summed(table: Numbers, term: Term, part: Term) -> Numbers:
    """Return the margin of a part of a term's variables."""
    return np.asarray(table.sum(axis=tuple(k for k, i in enumerate(term) if i not in part)))


def centred(table: Numbers) -> Numbers:
    """Return a table less its mean along each axis, times the number of cells.

    For integers the result is an exact integer.

    >>> centred(np.array([[3, 0], [1, 0]]))
    array([[ 2, -2],
           [-2,  2]])
    """
    table = np.asarray(table)  # NumPy turns a table without axes into a number
    for axis, size in enumerate(table.shape):
        table = table * size - table.sum(axis=axis, keepdims=True)
    return table


def rebuilt(term: Term, parts: Mapping[Term, Floats], sizes: Sizes) -> Floats:
    """Return the table of a term from those of its components that are in `parts`.

    If some are missing it is the table of smallest norm with the margins of the others.
    """
    table = np.zeros(shape(term, sizes))
    for part in filter(parts.__contains__, subsets(term)):
        component = parts[part].reshape([sizes[i] if i in part else 1 for i in term])
        table += component / (cells(term, sizes) / cells(part, sizes))
    return table


def precisions(sds: Mapping[Term, float], sizes: Sizes) -> dict[Term, dict[Term, float]]:
    """Return by component the weights of the tables in it, given their noise sds per cell."""
    raw: dict[Term, dict[Term, float]] = {part: {} for part in components(sds)}
    for term, sd in sds.items():
        for part in subsets(term):
            raw[part][term] = cells(part, sizes) / (sd**2 * cells(term, sizes))
    totals = {part: math.fsum(weights.values()) for part, weights in raw.items()}
    return {
        part: {term: weight / totals[part] for term, weight in weights.items()}
        for part, weights in raw.items()
    }


def least_squares(
    tables: Mapping[Term, Floats], sds: Mapping[Term, float], sizes: Sizes
) -> dict[Term, Floats]:
    """Return the components of noisy tables that least squares fits to all of them."""
    parts = {}
    for part, weights in precisions(sds, sizes).items():
        weighted = [weight * summed(tables[term], term, part) for term, weight in weights.items()]
        parts[part] = centred(np.sum(weighted, axis=0)) / cells(part, sizes)
    return parts


def fitted_variances(sds: Mapping[Term, float], sizes: Sizes) -> dict[Term, float]:
    """Return for each weighted component the noise variance of a cell before centring."""
    return {
        part: math.fsum(
            (weight * sds[term]) ** 2 * cells(term, sizes) / cells(part, sizes)
            for term, weight in weights.items()
        )
        for part, weights in precisions(sds, sizes).items()
    }


def crossed(factors: Iterable[Floats]) -> Floats:
    """Return the Kronecker product of matrices; of no matrices the 1 by 1 identity."""
    product: Floats = np.ones((1, 1))
    for factor in factors:
        product = np.asarray(np.kron(product, factor), dtype=np.float64)
    return product


def unlike(part: Term, sizes: Sizes) -> float:
    """Return the squared length of what one row adds to a component."""
    return math.prod(1 - 1 / sizes[i] for i in part)


def split(
    values: NDArray[Scalar], parts: Iterable[Term], sizes: Sizes
) -> dict[Term, NDArray[Scalar]]:
    """Return the components that are concatenated in one vector."""
    listed = tuple(parts)
    tables = np.split(values, np.cumsum([cells(part, sizes) for part in listed], dtype=np.intp))
    pairs = zip(listed, tables, strict=False)
    return {part: table.reshape(shape(part, sizes)) for part, table in pairs}


# Integer tables that are consistent with given margins, at no privacy cost.

# Largest table that is made consistent; larger ones take many seconds: a choice.
MOST_CELLS = 10_000
# With more rows the linear program cannot resolve a single one.
MOST_ROWS = 10**9
# Rounds of the two projections, and their tolerance in rows before counts are rounded.
ROUNDS, NEAR = 200, 1e-3


def agreeing(table: Floats, lines: Integers, columns: Integers) -> Integers:
    """Return nonnegative integer counts near a table, with the given margins.

    *Theorem.* If both margins are nonnegative integers with the same sum, such counts exist, and
    the linear program finds them. *Proof.* Row sum times column sum over the total is a fractional
    solution. The constraints are those of a transportation problem, whose vertices are integer.

    The nearest fractional counts come first; then the integer counts that minimise the squared
    distance to them, interpolated linearly between integers.
    """
    from scipy.optimize import linprog
    from scipy.sparse import coo_array, hstack

    target = fitted(table, lines.astype(np.float64), columns.astype(np.float64))
    floor = np.floor(target)
    left = (target - floor).ravel()
    # Cost in squared distance of a step up by one, further up, or down.
    cost = np.concatenate([1 - 2 * left, 3 - 2 * left, 1 + 2 * left])
    upper = np.concatenate([np.ones(left.size), np.full(left.size, np.inf), floor.ravel()])
    positions = np.arange(left.size)
    line, column = np.divmod(positions, table.shape[1])
    equations = np.concatenate([line, table.shape[0] + column])
    sums = coo_array((np.ones(2 * left.size), (equations, np.tile(positions, 2)))).tocsr()
    needed = np.concatenate([lines - floor.sum(axis=1), columns - floor.sum(axis=0)])
    solution = linprog(  # type: ignore[call-overload]
        cost,
        A_eq=hstack([sums, sums, -sums]),
        b_eq=needed,
        bounds=np.column_stack([np.zeros(upper.size), upper]),
        method="highs-ds",
    )
    up, further_up, down = np.rint(solution.x).reshape(3, *table.shape)
    return np.asarray(floor + up + further_up - down).astype(np.int64)


def fitted(table: Floats, lines: Floats, columns: Floats) -> Floats:
    """Return approximately the nearest nonnegative counts with the given margins.

    They are ``max(table + a + b, 0)``, a by row and b by column: a and b in turn fit their sums,
    which is coordinate ascent on the concave dual function.
    """
    down = np.zeros((1, table.shape[1]))
    for _ in range(ROUNDS):
        across = _shifts(table + down, lines)[:, None]
        down = _shifts((table + across).T, columns)[None, :]
        counts = np.maximum(table + across + down, 0.0)
        if np.abs(counts.sum(axis=1) - lines).max() < NEAR:
            break
    return np.asarray(counts)


def _shifts(lines: Floats, sums: Floats) -> Floats:
    """Return the shift of each row at which its positive parts have the given sum."""
    falling = -np.sort(-lines, axis=1)
    excess = (falling.cumsum(axis=1) - sums[:, None]) / np.arange(1, lines.shape[1] + 1)
    last = np.maximum((falling > excess).sum(axis=1) - 1, 0)
    return -np.asarray(excess[np.arange(len(lines)), last])
