"""Sets of linear queries on the cells of a table, answered for all cells at once.

A workload is a matrix W, which is never formed: ``image(e)`` is a vector of the same norm as W e,
computed in about linear time. For all ranges of n cells with prefix sums ``P_0, ..., P_n`` it is
``sqrt(n + 1) (P - mean P)``, since ``sum_{i<j} (P_j - P_i)² = (n + 1) sum P² - (sum P)²``. Several
axes are transformed one after the other: for a Kronecker product of matrices ``W_i``, any ``T_i``
with ``T_iᵀ T_i = W_iᵀ W_i`` give a product of the same norm.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import combinations, product
from typing import Final

import numpy as np

from dpmodels.errors import ArgumentError
from dpmodels.typing import Floats, Integers

Domain = tuple[int, ...]

RANDOM: Final = 2_000
# Seed of random ranges, the same in all studies.
_SEED: Final = 12


@dataclass(frozen=True)
class Workload:
    """Queries on the cells of a table of one domain."""

    about: str
    queries: int
    image: Callable[
        [Floats], Floats
    ]  # linear map of errors by cell, to the norm of all queries' errors

    def error(self, image: Floats, scale: float) -> float:
        """Return the scaled average error of a query: ``|W e| / (queries * scale)``."""
        return float(np.linalg.norm(image)) / (self.queries * scale)


def identity(domain: Domain) -> Workload:
    """All cells."""
    return Workload("every cell", math.prod(domain), np.ravel)


def prefix(domain: Domain) -> Workload:
    """All ranges that begin at the first cell; for two axes, boxes at the first corner."""
    return Workload("ranges from the first cell on", math.prod(domain), _prefixes)


def ranges(domain: Domain) -> Workload:
    """All ranges of cells; for two axes, all boxes."""
    queries = math.prod(n * (n + 1) // 2 for n in domain)
    return Workload("all ranges of cells", queries, _ranges)


def random_ranges(domain: Domain) -> Workload:
    """2,000 ranges of cells, or boxes, with bounds drawn once for all studies."""
    rng = np.random.default_rng(_SEED)
    ends = [np.sort(rng.integers(0, n, size=(2, RANDOM)), axis=0) for n in domain]
    lows, highs = tuple(low for low, _ in ends), tuple(last + 1 for _, last in ends)
    image = partial(_boxes, lows=lows, highs=highs)
    return Workload(f"{RANDOM:,} random ranges of cells", RANDOM, image)


def margins(axes: int) -> list[tuple[int, ...]]:
    """Return the axes of all marginals of one and of two variables."""
    return [subset for size in (1, 2) for subset in combinations(range(axes), size)]


def marginals(domain: Domain) -> Workload:
    """All marginals of one and of two variables."""
    if len(domain) < 2:
        raise ArgumentError(
            'error="marginals": a table of one variable has no marginals; write error="identity"'
        )
    subsets = margins(len(domain))
    queries = sum(math.prod(domain[axis] for axis in axes) for axes in subsets)
    complements = [
        tuple(axis for axis in range(len(domain)) if axis not in axes) for axes in subsets
    ]
    return Workload(
        "marginals of one and two variables", queries, partial(_summed, over=complements)
    )


WORKLOADS: Final[Mapping[str, Callable[[Domain], Workload]]] = {
    "prefix": prefix,
    "ranges": ranges,
    "random": random_ranges,
    "identity": identity,
    "marginals": marginals,
}


def _prefixes(error: Floats) -> Floats:
    for axis in range(error.ndim):
        error = error.cumsum(axis=axis)
    return error.ravel()


def _ranges(error: Floats) -> Floats:
    for axis, cells in enumerate(error.shape):
        sums = np.insert(error.cumsum(axis=axis), 0, 0.0, axis=axis)
        error = math.sqrt(cells + 1) * (sums - sums.mean(axis=axis, keepdims=True))
    return error.ravel()


def _boxes(error: Floats, lows: tuple[Integers, ...], highs: tuple[Integers, ...]) -> Floats:
    """Sum over boxes from prefix sums at their corners."""
    for axis in range(error.ndim):
        error = np.insert(error.cumsum(axis=axis), 0, 0.0, axis=axis)
    total = np.zeros(len(lows[0]))
    for corner in product((0, 1), repeat=error.ndim):
        ends = zip(corner, lows, highs, strict=True)
        total += (-1) ** corner.count(0) * error[tuple(hi if at else lo for at, lo, hi in ends)]
    return total


def _summed(error: Floats, over: list[tuple[int, ...]]) -> Floats:
    return np.concatenate([error.sum(axis=axes).ravel() for axes in over])
