"""Exact sums of columns and of their products with a response, and their sensitivities.

Rows lie in a box: each column is in units of its own public half-range, so that its noise does not
grow with the number of columns.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from dpmodels.design import PrivateDesign
from dpmodels.noise.lattice import Lattice
from dpmodels.privacy import Adjacency
from dpmodels.statistics.statistic import Statistic, additive, summed
from dpmodels.typing import Floats, Integers, Numbers, Objects, Scalars

# Bits of a half-range, up to one less: a choice. The noise fits 64 bits for any number of columns.
BITS = 14
# A centre is rounded to this part of a lattice step: with many rows whole steps would be coarser
# than the noise.
FINE = 2**10
# Lines of the exact integers: sums, sums of squares, sums of products with the response.
SUMS, SQUARES, PRODUCTS = range(3)


def box_lattice(columns: int) -> Lattice:
    """Return the lattice of rows in a box, the response among their columns."""
    return Lattice(BITS + math.floor(math.log2(columns) / 2), columns)


def reach(lattice: Lattice) -> int:
    """Return the number of integers in a half-range, the largest size of a coordinate."""
    return math.floor(lattice.steps / math.sqrt(lattice.columns))


@additive
def associations(design: PrivateDesign, lattice: Lattice) -> Statistic:
    """Sum rows ``z = (1, x, y)`` of a box, their squares and their products with y, exactly.

    The design is as of :func:`dpmodels.design.regression.box_design`: integers of a column are at
    most `reach` in size and are clipped there once more.

    The integers, shape (3, columns + 1), are ``Σ z``, ``Σ z²`` and ``Σ z y``: the first column has
    the number n of complete rows, n again and ``Σ y``; then come those of each x, last those of y.
    An incomplete row adds zero. No product of two x is made. Sums over a block are integers below
    2**53; they are the same for any chunking, order or number of threads.
    """

    def lines(z: Floats) -> Floats:
        return np.stack([z.sum(axis=1), np.einsum("ij,ij->i", z, z), z @ z[-1]])

    return box_sums("associations", lines, design, lattice)


def box_sums(
    name: str,
    of_rows: Callable[[Floats], Floats],
    design: PrivateDesign,
    lattice: Lattice,
) -> Statistic:
    """Sum lines of numbers over blocks of rows ``z = (1, x, y)``, clipped to the box.

    An incomplete row is zero. Sums over a block are integers below 2**53.
    """
    limit = reach(lattice)

    def of_block(block: Floats) -> Integers:
        z = np.clip(block, -limit, limit)
        z[0] = block[0] > 0
        return of_rows(z).astype(np.int64)

    return summed(name, of_block, design, lattice, {})


def centred_products(exact: Objects, centre: int) -> Scalars:
    """Return ``S_j = Σ x_j (y - c)`` for each x, exactly, in parts of lattice steps.

    `centre` is c, a released or public whole number of parts, at most ``reach * FINE`` from 0.

    It is n times the covariance, and beside it ``n x̄_j (ȳ - c)``: at most as many half-ranges as
    the noise of the sum of y that c was made of.
    """
    return np.asarray(FINE * exact[PRODUCTS, 1:-1] - centre * exact[SUMS, 1:-1])


def centred_squares(exact: Objects, centres: Numbers) -> Objects:
    """Return ``Σ (x_j - c_j)²`` for each x, exactly, about whole numbers of lattice steps.

    That is the scatter about its mean, and beside it ``n (x̄_j - c_j)²``. Given the centres it adds
    over disjoint rows.
    """
    sums = exact[SUMS, 1:-1]
    return np.asarray(exact[SQUARES, 1:-1] - 2 * centres * sums + centres**2 * exact[SUMS, 0])


def product_change(adjacency: Adjacency, limit: int, centre: int) -> int:
    """Return how far one row moves each ``S_j``, and each ``|S_j|``, in the same parts.

    With integers from ``-R`` to R (`limit`) and c (`centre`) within them,
    ``|x (y - c)| <= R (R + |c|)``. That is all under ``add-remove``, and under ``replace`` against
    an incomplete row; between complete rows it is twice that, reached by y at the end away from c
    and x that goes from one end to the other. All columns together can move by so much each, some
    up and some down, so the interval that a row moves the vector in is twice as long.
    """
    return (2 if adjacency.n_public else 1) * limit * (FINE * limit + abs(centre))


def mean_change(adjacency: Adjacency, limit: int, norm: int) -> float:
    """Return the L1 or L2 sensitivity of ``(Σ y, R n)``, by which the mean of y is released.

    A row adds ``(y, R)`` or nothing: ``2 R`` in L1 and ``√2 R`` in L2 norm. Between complete rows
    n stays and ``Σ y`` moves by ``2 R`` at most.
    """
    return 2.0 * limit if adjacency.n_public or norm == 1 else math.sqrt(2) * limit


def spread_change(adjacency: Adjacency, limit: int, norm: int) -> float:
    """Return the L1 or L2 sensitivity of ``(R² n, R Σ y, Σ y²)``, by which y is described.

    In units of R² a row adds ``(1, t, t²)`` or nothing: at most 3 in L1 and √3 in L2 norm. Between
    complete rows, with ``d = |t - t'|`` and ``|t + t'| <= 2 - d``, the L1 norm is at most
    ``d (3 - d) <= 9/4`` and the squared L2 norm at most ``d² (1 + (2 - d)²)``, which rises to 4 at
    opposite ends.
    """
    if norm == 1:
        return 3.0 * limit**2
    return (2.0 if adjacency.n_public else math.sqrt(3)) * limit**2


def scatters(exact: Objects) -> Objects:
    """Return ``⌊Σ (x_j - x̄_j)²⌋`` for each x, exactly; 0 where there is no row.

    One row moves each by at most ``4 R²``. One more row raises the sum by
    ``(x - x̄)² n/(n + 1) <= 4 R²``, so replacing a row moves it by a difference of two such
    numbers, and rounding down to integers does not increase that.
    """
    n_rows = max(int(exact[SUMS, 0]), 1)
    return np.asarray((n_rows * exact[SQUARES, 1:-1] - exact[SUMS, 1:-1] ** 2) // n_rows)


# Exact products of all columns, and of columns with residuals of a released fit.
#
# Rows lie in the box above.

# Coefficients are rounded to multiples of 1/PARTS, which is less than their noise.
PARTS = 2**20


@additive
def products(design: PrivateDesign, lattice: Lattice) -> Statistic:
    """Sum ``z zᵀ`` over rows ``z = (1, x, y)`` of a box, exactly; shape (columns + 1, columns + 1).

    The design and the blocks are as for :func:`dpmodels.statistics.associations.associations`.
    """
    return box_sums("products", lambda z: z @ z.T, design, lattice)


@dataclass(frozen=True)
class ReleasedFit:
    """Coefficients that were released: ``r = y - a - Σ b_s x_s``, in parts of a lattice step."""

    centre: int  # a
    places: tuple[int, ...] = ()  # Of the columns, from 0
    slopes: tuple[int, ...] = ()  # b_s

    @property
    def stretch(self) -> int:
        """The parts of a half-range that r can be away from ``-a``: those of y and of each x."""
        return PARTS + sum(map(abs, self.slopes))

    def longest(self, limit: int) -> int:
        """Return the largest ``|r|`` of any row of the box, in parts."""
        return abs(self.centre) + self.stretch * limit


def residual_products(exact: Objects, fit: ReleasedFit) -> Scalars:
    """Return ``S_j = Σ x_j r`` for each x, exactly, in parts."""
    residual_sums: Objects = PARTS * exact[-1, 1:-1] - fit.centre * exact[0, 1:-1]
    for place, slope in zip(fit.places, fit.slopes, strict=True):
        residual_sums = residual_sums - slope * exact[place + 1, 1:-1]
    return residual_sums


def residual_change(adjacency: Adjacency, limit: int, fit: ReleasedFit) -> int:
    """Return how far one row moves each ``S_j``, and each ``|S_j|``, in parts.

    A row adds ``x_j r`` to it, or nothing where it is incomplete, and ``|x_j r| <= R Q`` with the
    largest residual Q of the box (`longest`), which is a function of released numbers. That is all
    under ``add-remove``, and twice that under ``replace``. All columns together can move by so
    much each, some up and some down.
    """
    return (2 if adjacency.n_public else 1) * limit * fit.longest(limit)


def residual_scatter(exact: Scalars, fit: ReleasedFit, place: int) -> int:
    """Return ``⌊Σ (x - x̄)(r - r̄) / stretch⌋`` of one column, exactly; 0 where there is no row.

    x is in an interval of half-length R, ``r / stretch`` too, whatever the row. So one row moves it
    by ``4 R²`` at most, as it does ``Σ (x - x̄)(y - ȳ)``, for either adjacency.
    """
    n_rows = max(int(exact[0, 0]), 1)
    centred = n_rows * exact[place + 1] - exact[0, place + 1] * exact[0]
    scatter = PARTS * centred[-1]
    for position, slope in zip(fit.places, fit.slopes, strict=True):
        scatter -= slope * centred[position + 1]
    return int(scatter // (n_rows * fit.stretch))


# Logarithms of p-values of z-tests in steps of a grid, and how far one row moves them.

# Steps of the grid in a natural logarithm: a choice.
STEPS = 2**32
# Bits of logarithms before they are rounded: they err by less than 2**-90 steps.
_BITS = 160


def log_levels(sums: Scalars, scale: float, p_min: float, sides: int) -> Integers:
    """Return ``log max(p, ν)`` in whole steps, where ``p = sides Φ̄(sum/scale)``.

    `sums`, shape (tests,), are whole numbers, not below 0 for two `sides`; `p_min` is ν.
    """
    import mpmath

    levels = []
    with mpmath.workprec(_BITS):
        root, floor = mpmath.sqrt(2) * scale, mpmath.mpf(p_min)
        for value in sums.tolist():
            p = mpmath.erfc(value / root) * sides / 2
            levels.append(int(mpmath.nint(STEPS * mpmath.log(max(p, floor)))))
    return np.array(levels, dtype=np.int64)


def log_change(change: int, scale: float, p_min: float, sides: int) -> int:
    """Return how many steps a level moves at most where its sum moves by `change`.

    ``h(t) = -log Φ̄(t)`` is convex, as Φ̄ is log-concave, and rises. So of all t and t + d that of
    the largest ``min(h(t + d), h(z)) - min(h(t), h(z))`` has ``t + d = z``, with z where p is ν:
    before, both ends are less steep, and beyond, only the lower one still moves. For two sides
    both are from 0 on, so there t is 0 where z is less than d. Rounded, levels differ by at most
    one step more, so by no more than the whole number above but where floats err: one more step
    covers that.
    """
    import mpmath

    with mpmath.workprec(_BITS):
        root, floor = mpmath.sqrt(2), mpmath.mpf(p_min)
        start = root * mpmath.erfinv(1 - 2 * floor / sides) - mpmath.mpf(change) / scale
        if sides == 2:
            start = max(start, mpmath.mpf(0))
        log_ratio = mpmath.log(mpmath.erfc(start / root) * sides / 2 / floor)
        return int(mpmath.ceil(STEPS * log_ratio)) + 1
