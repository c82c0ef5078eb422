"""The integer lattice on which statistics are exact.

A row of the unit ball is rounded to integers of Euclidean norm at most ``2**bits``. Sums of
products over a block of at most ``2**(53 - 2 * bits)`` rows are then integers below ``2**53``:
float64 arithmetic on them is exact whatever the order, the threads or fused operations.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from dpmodels.errors import BudgetError
from dpmodels.typing import Flags, Floats, Integers

if TYPE_CHECKING:
    from threadpoolctl import ThreadpoolController

# So that 8192 rows are a block of exact sums.
MAX_BITS = 20
# Of scores beside almost no noise: products are summed in two words of 20 bits.
FINE_BITS = 40
# A choice: on a coarser lattice rounding would show beside any row.
MIN_BITS = 8


@dataclass(frozen=True)
class Lattice:
    """Integers that stand for a row of the unit ball."""

    bits: int  # A row's integer norm is at most ``2**bits``
    columns: int  # Length of a row
    inner: int = field(default=0, repr=False)  # The largest norm, where it is less than that

    @property
    def radius(self) -> float:
        """Largest integer norm of a row, ``2**bits`` or less."""
        return float(self.inner or 2**self.bits)

    @property
    def steps(self) -> float:
        """Lattice steps in the unit length: rounding moves a row by at most sqrt(columns)/2."""
        return self.radius - math.sqrt(self.columns) / 2

    @property
    def block_rows(self) -> int:
        """Most rows whose sum of products, of words where there are two, is exact in float64."""
        return int(min(2 ** (53 - 2 * self.bits), 8192)) if self.bits <= MAX_BITS else 2048


def choose_lattice(columns: int, sigma: float) -> Lattice:
    """Return the finest lattice on which noise of scale ``sigma`` fits 64-bit integers.

    `sigma` is the largest noise scale, in units of the squared unit length. BudgetError if the
    noise is so large that no useful lattice is left.
    """
    spare = 57 - math.log2(max(sigma, 1.0))
    bits = min(MAX_BITS, math.floor(spare / 2))
    if bits < MIN_BITS:
        raise BudgetError(
            f"the budget asks for noise {sigma:.2g} times a whole row's influence, beyond what is "
            "meaningful; give a larger eps, delta or rho"
        )
    return Lattice(bits, columns)


def to_lattice(
    columns: Floats | Sequence[Floats],
    factor: Floats,
    shift: Floats,
    lattice: Lattice,
    out: Floats | None = None,
    squares: Floats | None = None,
    ends: Sequence[Floats] = (),
    extremes: Floats | None = None,
) -> Flags:
    """Round ``factor * columns - shift``, in units of the ball's radius, to the lattice.

    `columns`, each of shape (rows,), are any numbers; the integers go to `out`, shape (columns,
    rows), or overwrite the array `columns` where it is None; `factor` and `shift`, of shape
    (columns,), are public and finite and bring declared rows into the unit ball. With `ends`, lower
    and upper ones, columns are clipped first, and `extremes`, shape (2, columns), gets the smallest
    and the largest number of each before that, scaled. False comes back, shape (rows,), where a row
    had a nan; it is all zeros now. Squared norms go to `squares`, shape (rows,), as whole numbers.

    On return every row is a vector of integers of norm at most ``lattice.radius``, whatever the
    input: a longer row is shrunk towards zero, and the integer norm, exact in float64 below 2**53,
    is checked again. The integers are a function of the row alone, whatever stands beside it: each
    step is one correctly rounded operation on each number, up to the sum of squares. That is exact
    where it is at most the squared radius, and otherwise larger in any order, which is all it is
    asked; by how much a longer row is shrunk follows from :func:`lengths`. On a lattice of more
    than :data:`MAX_BITS` squares are those of :func:`lengths`, and the norm is at most
    ``(1 + columns 2**-52)`` radii, which the rounding up of a scale of noise covers.
    """
    rows = np.asarray(columns) if out is None else out
    factor, shift, limit = factor * lattice.steps, shift * lattice.steps, lattice.radius**2
    is_inside = multiply_columns(columns, factor, rows, ends, extremes, shift)
    if is_inside and squares is None and lattice.bits <= MAX_BITS:
        # No row is longer than the farthest corner (docs/theory.md, Theorem 100).
        corners = np.rint(np.stack(ends) * factor - shift)
        if np.square(corners).max(axis=0).sum() <= limit:
            return np.ones(rows.shape[1], dtype=np.bool_)
    norms = _squared_norms(rows, lattice, squares)
    if (norms <= limit).all():
        return np.ones(len(norms), dtype=np.bool_)
    complete: Flags = ~np.isnan(norms)
    if not complete.all():
        rows[:, ~complete] = norms[~complete] = 0.0
    longer = norms > limit
    if longer.any():
        clipped = rows[:, longer]
        clipped *= lattice.radius * (1 - 2.0**-40) / lengths(clipped)
        np.trunc(clipped, out=clipped)
        norms[longer] = _squared_norms(clipped, lattice)
        outside = ~(norms[longer] <= limit)
        clipped[:, outside] = 0.0
        norms[longer] = np.where(outside, 0.0, norms[longer])
        rows[:, longer] = clipped
    return complete


def on_lattice(rows: Floats, lattice: Lattice, squares: Floats | None = None) -> Floats:
    """Round rows, in units of the ball's radius, to the lattice in place, and return them."""
    ones = np.ones(len(rows))
    to_lattice(rows, ones, 0 * ones, lattice, squares=squares)
    return rows


# Products with small matrices: a choice of rows that a processor's nearest cache holds, and of most
# lines of a part of a symmetric product, on processors for which OpenBLAS has kernels for them.
_CHUNK = 256
FEW_LINES = 16
_SMALL_KERNELS = frozenset({"SkylakeX", "Cooperlake", "SapphireRapids"})


def products(rows: Floats) -> Integers:
    """Return ``rows rowsᵀ`` of a block of integers, exact in any order."""
    if not _has_small_kernels():
        return np.asarray((rows @ rows.T).astype(np.int64))
    size, (chunks, rest) = len(rows), _in_chunks(rows)
    total = np.empty((size, size), dtype=np.int64)
    step = -(-size // max(2, -(-size // FEW_LINES)))
    for start in range(0, size, step):
        # One line more than they are: not asked as a product of an array with itself.
        lines, onwards = slice(start, start + step), slice(max(start - 1, 0), None)
        part = (chunks[:, lines] @ chunks[:, onwards].transpose(0, 2, 1)).sum(axis=0)
        part += rest[lines] @ rest[onwards].T
        total[lines, onwards], total[onwards, lines] = part, part.T
    return total


def transformed(matrix: Floats, rows: Floats, out: Floats | None = None) -> Floats:
    """Return the product of a matrix with rows, shape (lines, rows), where any order is exact."""
    out = empty_lines(len(matrix), rows.shape[1]) if out is None else out
    if _has_small_kernels():
        for part, product in zip(_in_chunks(rows), _in_chunks(out), strict=True):
            np.matmul(matrix, part, out=product)
        return out
    return np.asarray(np.matmul(matrix, rows, out=out))


def _in_chunks(rows: Floats) -> tuple[Floats, Floats]:
    """Return views of rows in chunks, shape (chunks, lines, :data:`_CHUNK`), and of the rest."""
    n_chunks = rows.shape[1] // _CHUNK
    divisible, rest = np.split(rows, [n_chunks * _CHUNK], axis=1)
    return divisible.reshape(len(rows), n_chunks, _CHUNK).transpose(1, 0, 2), rest


def empty_lines(n_lines: int, n_rows: int) -> Floats:
    """Return an array whose lines each begin in a line of a processor's cache, of 64 bytes."""
    length = -(-n_rows // 8) * 8
    numbers = np.empty(n_lines * length + 8)
    start = -(numbers.__array_interface__["data"][0] // numbers.itemsize) % 8
    return numbers[start : start + n_lines * length].reshape(n_lines, length)[:, :n_rows]


def _squared_norms(rows: Floats, lattice: Lattice, out: Floats | None = None) -> Floats:
    if lattice.bits <= MAX_BITS:
        return np.asarray(np.einsum("ij,ij->j", rows, rows, out=out))
    return np.asarray(np.square(lengths(rows), out=out))


def multiply_columns(
    columns: Floats | Sequence[Floats],
    factor: Floats,
    out: Floats,
    ends: Sequence[Floats] = (),
    extremes: Floats | None = None,
    shift: Floats | None = None,
) -> bool:
    """Write each column times its factor into a line of `out`, which may be the columns.

    With `ends` and positive factors columns are clipped first (docs/theory.md, Theorem 100), and
    True comes back if none had to be or had a nan. See :func:`to_lattice` for `extremes`. With a
    `shift` lines are rounded, less their shift. Line by line, since a processor's cache holds one.
    """
    is_inside = bool(ends)
    extremes = np.empty((2, len(out))) if extremes is None else extremes
    with np.errstate(over="ignore", invalid="ignore"):
        lower, upper = (end * factor for end in ends or (factor, factor))
        for at, (column, by, line) in enumerate(zip(columns, factor.tolist(), out, strict=True)):
            np.multiply(column, by, out=line)
            if ends:
                low, high = lower[at], upper[at]
                extremes[0, at] = smallest = np.minimum.reduce(line, initial=np.inf)
                extremes[1, at] = largest = np.maximum.reduce(line, initial=-np.inf)
                if not (smallest >= low and largest <= high):
                    is_inside = False
                    np.clip(line, low, high, out=line)
            if shift is not None:
                if shift[at]:
                    np.subtract(line, shift[at], out=line)
                np.rint(line, out=line)
    return is_inside


def lengths(rows: Floats) -> Floats:
    """Return the Euclidean norm of each row, the same bits for a row wherever it stands.

    `rows` has shape (columns, rows), the answer (rows,): infinite where squares overflow, nan
    where a row has a nan.

    Squares are added column by column, one correctly rounded operation on all rows at a time. Sums
    along an axis, of products too, may take another order where there are few rows, and may be
    fused in a block but not at its end.
    """
    squares, square = np.zeros(rows.shape[1]), np.empty(rows.shape[1])
    with np.errstate(over="ignore"):
        for column in rows:
            squares += np.multiply(column, column, out=square)
    return np.sqrt(squares)


# One thread for the linear algebra library, where threads of ours are faster or bits matter.


def one_blas_thread() -> AbstractContextManager[object]:
    """Hold BLAS to one thread inside a ``with`` statement."""
    limit: AbstractContextManager[object] = _libraries().limit(limits=1, user_api="blas")
    return limit


@cache
def _has_small_kernels() -> bool:
    """Whether OpenBLAS has kernels for small matrices on this processor."""
    libraries = _libraries().lib_controllers
    return any(getattr(library, "architecture", "") in _SMALL_KERNELS for library in libraries)


@cache
def _libraries() -> ThreadpoolController:
    """Find the libraries that are loaded, once: a search takes longer than a small table."""
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()
