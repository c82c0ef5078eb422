"""Exact sums by which columns are held against one response, and how far one row moves them.

Rows lie in a box: each column in units of its own public half-range, whatever the others are, so
that no column pays for their number.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpmodels.design import PrivateDesign
from dpmodels.noise.lattice import Lattice
from dpmodels.privacy import Adjacency
from dpmodels.statistics.statistic import Statistic, additive, fingerprint
from dpmodels.typing import Floats, Integers

# Bits of a half-range, up to one less: a choice. However many the columns, the noise has the same
# room in 64 bits.
BITS = 14
# Parts of a lattice step that a centre is a multiple of: rounded to steps it would be away from the
# mean by more than noise is, where rows are many.
FINE = 2**10
# Lines of the exact integers: sums, sums of squares, sums of products with the response.
SUMS, SQUARES, PRODUCTS = range(3)


def box_lattice(columns: int) -> Lattice:
    """Return the lattice of rows in a box, the response among their columns."""
    return Lattice(BITS + math.floor(math.log2(columns) / 2), columns)


def reach(lattice: Lattice) -> int:
    """Return how many integers a half-range has: a column's are at most so many from 0."""
    return math.floor(lattice.steps / math.sqrt(lattice.columns))


@additive
def associations(design: PrivateDesign, lattice: Lattice, *, count_public: bool) -> Statistic:
    """Sum rows ``z = (1, x, y)`` of a box, their squares and their products with y, exactly.

    The design is as of :func:`dpmodels.design.regression.box_design`: integers of a column are at
    most `reach` from 0 and are held there once more.

    The integers, shape (3, columns + 1), are ``Σ z``, ``Σ z²`` and ``Σ z y``: the first column has
    the number n of complete rows, n again and ``Σ y``; then come those of each x, last those of y.
    An incomplete row adds zero. No product of two x is made. Sums over a block are integers below
    2**53; they are the same for any chunking, order or number of threads.
    """

    def lines(z: Floats) -> Floats:
        return np.stack([z.sum(axis=1), np.einsum("ij,ij->i", z, z), z @ z[-1]])

    return box_sums("associations", 3, lines, design, lattice, count_public=count_public)


def box_sums(
    name: str,
    lines: int,
    summed: Callable[[Floats], Floats],
    design: PrivateDesign,
    lattice: Lattice,
    *,
    count_public: bool,
) -> Statistic:
    """Sum so many lines of numbers over blocks of rows ``z = (1, x, y)``, held in the box.

    An incomplete row has zeros. What is summed of a block are integers below 2**53.
    """
    most = reach(lattice)

    def of_block(block: Floats) -> Integers:
        z = np.clip(block, -most, most)
        z[0] = block[0] > 0
        return summed(z).astype(np.int64)

    total: NDArray[Any] = np.zeros((lines, lattice.columns + 1), dtype=object)
    rows = 0
    for block, count in design.blocks(of_block, lattice, count_public=count_public):
        total = total + block
        rows += count
    facts = {**design.facts, "lattice": repr(lattice)}
    return Statistic(name, total, rows, fingerprint(facts, count_public=count_public))


def centred_products(exact: NDArray[Any], centre: int) -> NDArray[Any]:
    """Return ``S_j = Σ x_j (y - c)`` for each x, exactly, in parts of lattice steps.

    `centre` is c, a released or public whole number of parts, at most ``reach * FINE`` from 0.

    It is n times the covariance, and beside it ``n x̄_j (ȳ - c)``: at most as many half-ranges as
    the noise of the sum of y that c was made of.
    """
    products: NDArray[Any] = FINE * exact[PRODUCTS, 1:-1] - centre * exact[SUMS, 1:-1]
    return products


def product_change(adjacency: Adjacency, most: int, centre: int) -> int:
    """Return how far one row moves each ``S_j``, and each ``|S_j|``, in the same parts.

    With integers from ``-R`` to R (`most`) and c (`centre`) within them,
    ``|x (y - c)| <= R (R + |c|)``. That is all under ``add-remove``, and under ``replace`` against
    an incomplete row; between complete rows it is twice that, reached by y at the end away from c
    and x that goes from one end to the other. All columns together can move by so much each, some
    up and some down, so the interval that a row moves the vector in is twice as long.
    """
    return (2 if adjacency.n_public else 1) * most * (FINE * most + abs(centre))


def mean_change(adjacency: Adjacency, most: int, norm: int) -> float:
    """Return the L1 or L2 sensitivity of ``(Σ y, R n)``, by which the mean of y is released.

    A row adds ``(y, R)`` or nothing: ``2 R`` in L1 and ``√2 R`` in L2 norm. Between complete rows
    n stays and ``Σ y`` moves by ``2 R`` at most.
    """
    return 2.0 * most if adjacency.n_public or norm == 1 else math.sqrt(2) * most


def spread_change(adjacency: Adjacency, most: int, norm: int) -> float:
    """Return the L1 or L2 sensitivity of ``(R² n, R Σ y, Σ y²)``, by which y is described.

    In units of R² a row adds ``(1, t, t²)`` or nothing: at most 3 in L1 and √3 in L2 norm. Between
    complete rows, with ``d = |t - t'|`` and ``|t + t'| <= 2 - d``, the L1 norm is at most
    ``d (3 - d) <= 9/4`` and the squared L2 norm at most ``d² (1 + (2 - d)²)``, which rises to 4 at
    opposite ends.
    """
    if norm == 1:
        return 3.0 * most**2
    return (2.0 if adjacency.n_public else math.sqrt(3)) * most**2


def scatters(exact: NDArray[Any]) -> NDArray[Any]:
    """Return ``⌊Σ (x_j - x̄_j)²⌋`` for each x, exactly; 0 where there is no row.

    One row moves each by at most ``4 R²``. One more row raises the sum by
    ``(x - x̄)² n/(n + 1) <= 4 R²``, so one row replaced moves it by a difference of two such
    numbers; and integers below numbers so far apart are no farther.
    """
    rows = max(int(exact[SUMS, 0]), 1)
    found: NDArray[Any] = (rows * exact[SQUARES, 1:-1] - exact[SUMS, 1:-1] ** 2) // rows
    return found
