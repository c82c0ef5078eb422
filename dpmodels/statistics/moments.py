"""Exact augmented moments of the rows, and how far one row moves them.

How many rows, their sum, their sum of squares; every release of them with noise rests on the
inequalities proved here.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import Final, NamedTuple

import numpy as np

from dpmodels.design import PrivateDesign
from dpmodels.noise.lattice import Lattice, products, to_lattice
from dpmodels.privacy import Adjacency
from dpmodels.statistics.statistic import Statistic, additive, fingerprint, summed
from dpmodels.typing import Floats, Integers, Objects

# Products of a block, as often as it counts, are below 2**59; 2**3 of them stay below 2**62.
BLOCKS_PER_CARRY = 8
_NAME: Final = "augmented moments"


@additive
def moments(design: PrivateDesign, lattice: Lattice) -> Statistic:
    """Sum ``z zᵀ`` over the rows exactly, with ``z = (2**bits, x)`` on the lattice.

    Every partial sum of a block's product is an integer below 2**53.

    Entry (0, 0) of the integers, shape (columns + 1, columns + 1), is the number of complete rows
    times ``4**bits``, the rest of row 0 the sum of the rows times ``2**bits``; an incomplete row
    adds zero. They are the same for any chunking, order or number of threads.
    """
    total: Objects = np.zeros((lattice.columns + 1,) * 2, dtype=object)
    n_rows, rows = 0, design
    if (in_database := design.summed(lattice)) is not None:
        total, n_rows, rows = in_database
    by_block = rows.blocks(products, lattice)
    total, n_added = added(total, by_block)
    words = {"lattice": repr(lattice)}
    basis = partial(fingerprint, design, words)
    return Statistic(_NAME, total, n_rows + n_added, basis)


def added(total: Objects, products: Iterable[tuple[Integers, int]]) -> tuple[Objects, int]:
    """Add products of blocks, in Python integers where 64 bits might not hold them, and rows."""
    pending, n_rows = np.zeros(total.shape, dtype=np.int64), 0
    for block, (product, count) in enumerate(products, start=1):
        pending += product.astype(np.int64, copy=False)
        n_rows += count
        if block % BLOCKS_PER_CARRY == 0:
            total = total + pending
            pending[:] = 0
    return np.asarray(total + pending), n_rows


def is_moments(statistic: Statistic) -> bool:
    """Whether a statistic is that of :func:`moments`."""
    return statistic.name == _NAME


@dataclass(frozen=True)
class MomentWeights:
    """Weights of the parts of the moments, relative to the second moment's 1."""

    count: float  # Weight of the number of complete rows
    mean: float  # Weight of the sum of the rows; 0 where it is not released


def moment_weights(adjacency: Adjacency, *, centred: bool) -> MomentWeights:
    """Choose the weights: what the mean and the count cost the second moment.

    A mean weight of √½ is the constant 1/2 in front of each row. Under ``replace`` the count may
    then weigh as much as ``2(1 + mean²/2)² - 1 - mean²`` allows at no cost, since two complete
    rows differ in everything but the count. Under ``add-remove`` a count weight of 1/2 costs 8 to
    12 % of the noise scale.
    """
    mean = math.sqrt(0.5) if centred else 0.0
    if adjacency.n_public:
        return MomentWeights(math.sqrt(2 * (1 + mean**2 / 2) ** 2 - 1 - mean**2), mean)
    return MomentWeights(0.5, mean)


def moment_sensitivity(adjacency: Adjacency, weights: MomentWeights) -> float:
    """Return the L2 sensitivity of the weighted moments in isometric coordinates.

    A row ``x`` of the unit ball adds ``a(x) = (w₀, w₁ x, svec(x xᵀ))``, an incomplete row adds 0,
    and ``‖svec(S)‖₂ = ‖S‖_F``.

    *Add or remove one row*: ``‖a(x)‖² ≤ w₀² + w₁² + 1``.

    *Replace one row*: against an incomplete row the same; between complete rows
    ``‖a(x) - a(y)‖² = w₁²(‖x‖² + ‖y‖² - 2t) + ‖x‖⁴ + ‖y‖⁴ - 2t²`` with ``t = ⟨x, y⟩``, which
    increases in both norms, so ``≤ 2w₁²(1 - t) + 2 - 2t² ≤ 2(1 + w₁²/2)²``, attained at
    ``t = -w₁²/2`` for ``w₁² ≤ 2``. For larger weights of the mean the maximum is at ``t = -1``,
    opposite rows, and is ``4w₁²``.
    """
    alone = weights.count**2 + weights.mean**2 + 1
    if not adjacency.n_public:
        return math.sqrt(alone)
    square = weights.mean**2
    between = 2 * (1 + square / 2) ** 2 if square <= 2 else 4 * square
    return math.sqrt(max(alone, between))


def absolute_weights(adjacency: Adjacency, columns: int, *, centred: bool) -> MomentWeights:
    """Choose the weights for noise that is paid in L1 norm.

    With ``s = (columns + 1)/2``, the L1 norm of a row's square, the weights
    ``w₁ = (s/4)^⅓ / √columns`` and ``w₀ = (s/4)^⅓ / columns^⅔`` minimise the error of a covariance
    matrix whose mean has a norm of about √⅛ and whose second moment one of about ½, in units of
    the ball; the mean costs 12 to 25 % of the noise scale for 4 to 20 columns. Under ``replace``
    the count weighs more where that is free.
    """
    share = ((columns + 1) / 8) ** (1 / 3)
    mean = share / math.sqrt(columns) if centred else 0.0
    count = share / columns ** (2 / 3)
    if adjacency.n_public:
        weights = MomentWeights(0.0, mean)
        count = max(count, absolute_between(columns, mean) - _absolute_alone(columns, weights))
    return MomentWeights(count, mean)


def absolute_sensitivity(adjacency: Adjacency, columns: int, weights: MomentWeights) -> float:
    """Return the L1 sensitivity of the weighted moments, second moment on and above the diagonal.

    Write d for `columns`, ``u(S) = Σ_{i≤j} |S_ij|``, and let a row ``x`` of the unit ball add
    ``(w₀, w₁ x, x xᵀ)``, an incomplete row 0.

    *Alone* a row adds ``w₀ + w₁‖x‖₁ + (‖x‖₁² + ‖x‖₂²)/2``, at most ``w₀ + w₁√d + (d + 1)/2``,
    attained by equal coordinates. That is all under ``add-remove``, and under ``replace`` against
    an incomplete row.

    *Between complete rows* let ``t = ⟨x, y⟩`` and ``D = x xᵀ - y yᵀ``. For fixed t the three
    bounds below increase in both norms, so take unit rows:
    ``‖x - y‖₁ ≤ √d ‖x - y‖₂ = √(2d(1 - t))``; ``‖D‖_F² = 2(1 - t²)``; and
    ``Σ|D_ii| = Σ|x_i + y_i||x_i - y_i| ≤ ‖x + y‖‖x - y‖ = 2√(1 - t²)``. Hence
    ``u(D) ≤ k√(1 - t²)`` with the smaller of two constants: ``u(D) = (Σ_ij|D_ij| + Σ|D_ii|)/2``
    gives ``k = d/√2 + 1``, and Cauchy's inequality for ``Σ|D_ii| + Σ_{i<j} √½ · √2|D_ij|`` gives
    ``k = √(d(d + 3)/2)``; ``k = 1`` for one column, where ``|x² - y²| ≤ √(1 - x²y²)``. With
    ``a = w₁√d`` and t = cos 2φ the sum of both parts is at most ``2 sin φ (a + k cos φ)``, largest
    at ``cos φ = (√(a² + 8k²) - a)/4k``.

    Of the second moment alone the search over all sign patterns finds k to be exact for d = 1 and
    2, and 2 to 5 % above the truth for 3 to 16. ``d + 1``, twice a row's own norm, is up to 41 %
    above it.
    """
    alone = _absolute_alone(columns, weights)
    if not adjacency.n_public:
        return alone
    return max(alone, absolute_between(columns, weights.mean))


def _absolute_alone(columns: int, weights: MomentWeights) -> float:
    return weights.count + weights.mean * math.sqrt(columns) + (columns + 1) / 2


def absolute_between(columns: int, mean: float) -> float:
    """Return the most that two complete rows differ by, the mean with a weight."""
    constant = min(columns / math.sqrt(2) + 1, math.sqrt(columns * (columns + 3) / 2))
    constant = constant if columns > 1 else 1.0
    linear = mean * math.sqrt(columns)
    cosine = (math.sqrt(linear**2 + 8 * constant**2) - linear) / (4 * constant)
    return 2 * math.sqrt(1 - cosine**2) * (linear + constant * cosine)


def eigenvalue_sensitivity(adjacency: Adjacency, norm: int) -> float:
    """Return the L1 or L2 sensitivity of the falling eigenvalues of the second moment.

    For either norm the eigenvalues of two symmetric matrices differ by no more than those of their
    difference do from 0. That difference is one ``x xᵀ``, or two of opposite sign: singular values
    at most 1, one or two of them. Attained by ``x ⊥ y`` along eigenvectors of all other rows.

    Source: Mirsky, L. (1960). "Symmetric gauge functions and unitarily invariant norms." Quarterly
    Journal of Mathematics 11, 50-59. For the L2 norm: Hoffman, A. J. and Wielandt, H. W. (1953).
    "The variation of the spectrum of a normal matrix." Duke Mathematical Journal 20, 37-39.
    """
    changed = 2 if adjacency.n_public else 1
    return float(changed ** (1 / norm))


# Exact counts of rows by their length, and the exact sum of the rows.


@additive
def norm_counts(design: PrivateDesign, lattice: Lattice, limits: tuple[int, ...]) -> Statistic:
    """Count complete rows by the cell that their integer norm lies in.

    Cell k is of squared norms above ``limits[k - 1]`` and up to ``limits[k]``,
    the last of all above; an incomplete row is in none. A row adds 1 to one cell
    at most, so the L2 sensitivity is √2 when a row is replaced, 1 when it is
    added or removed; the L1 sensitivity 2 and 1.
    """
    edges = np.array(limits, dtype=np.float64)

    def counted(block: Floats, squares: Floats) -> Integers:
        return numbers_by_cell(squares[block[0] > 0], edges)

    words = {"limits": str(limits)}
    return summed("rows by length", counted, design, lattice, words, with_norms=True)


class MomentsByLength(Statistic):
    """Exact numbers of rows by length, and moments in a ball that may be chosen by them.

    The integers are those of :func:`norm_counts`. `longer` are the integer rows of a squared norm
    above `shortest`, which are clipped when the ball is chosen; `shorter` is the sum of the others.
    """

    __slots__ = ("_longer", "_shorter", "_shortest")

    def __init__(
        self, by_length: Objects, n_rows: int, shorter: Objects, longer: Floats, shortest: int
    ) -> None:
        super().__init__("moments and rows by length", by_length, n_rows)
        self._shorter, self._longer, self._shortest = shorter, longer, shortest

    def inner(self, lattice: Lattice, fraction: float) -> Lattice | None:
        """Return the lattice of a ball of a fraction of the radius; None if it is too small."""
        norm = math.ceil(lattice.steps * fraction + math.sqrt(lattice.columns) / 2)
        return (
            replace(lattice, inner=norm) if self._shortest <= norm**2 <= lattice.radius**2 else None
        )

    def within(self, inner: Lattice) -> Objects:
        """Sum ``z zᵀ`` over the rows exactly, ``z = (inner.radius, x)`` with x clipped to it.

        docs/theory.md, Theorem 104.
        """
        rows, ones = self._longer.copy(), np.ones(inner.columns)
        to_lattice(rows[1:], ones / inner.steps, 0 * ones, inner)
        starts = range(0, rows.shape[1], inner.block_rows)
        blocks = (rows[:, at : at + inner.block_rows] for at in starts)
        total, _ = added(self._shorter, ((products(block), block.shape[1]) for block in blocks))
        for line in (total[0], total[:, 0]):
            line[:] = line // 2**inner.bits * inner.inner
        return total


def moments_by_length(
    design: PrivateDesign,
    lattice: Lattice,
    limits: tuple[int, ...],
    shortest: int,
) -> MomentsByLength:
    """Read rows once, of which none counts several times, for a ball chosen by their lengths."""
    edges, longer = np.array(limits, dtype=np.float64), [np.zeros((lattice.columns + 1, 0))]
    by_length = np.zeros(len(limits) + 1, dtype=np.int64)

    def divided(block: Floats, squares: Floats) -> tuple[Integers, Integers, Floats]:
        rows = block[:, squares > shortest]
        counts = numbers_by_cell(squares[block[0] > 0], edges)
        return counts, products(block) - products(rows), rows

    def sums() -> Iterator[tuple[Integers, int]]:
        for (counts, product, rows), count in design.blocks(divided, lattice, with_norms=True):
            np.add(by_length, counts, out=by_length)
            longer.append(rows)
            yield product, count

    shorter, n_rows = added(np.zeros((lattice.columns + 1,) * 2, dtype=object), sums())
    rows = np.concatenate(longer, axis=1)
    return MomentsByLength(by_length.astype(object), n_rows, shorter, rows, shortest)


@additive
def row_sums(design: PrivateDesign, lattice: Lattice) -> Statistic:
    """Sum ``(2**bits, x)`` over the rows exactly; an incomplete row adds zero.

    Sensitivity: that of :func:`dpmodels.mechanisms.add_noise.gaussian_count`.
    """

    def added(block: Floats) -> Integers:
        return np.asarray((block @ np.ones(block.shape[1])).astype(np.int64))

    return summed("sums of rows", added, design, lattice, {})


# Cells of values between limits, found by the leading bits of each value.

# Bits of a float below its exponent and the first six of its digits.
_TRAILING_BITS: Final = 46
# A choice: a table of so many entries stays in a processor's cache.
_MOST_ENTRIES: Final = 2**12


class _CellTable(NamedTuple):
    """By the leading bits of a value, from `first` on: the cell up to a limit with these bits."""

    first: int
    cell: Integers  # Shape (entries,): how many limits have smaller leading bits
    limit: Floats  # Shape (entries,): the limit with these bits, infinite where there is none


def numbers_by_cell(values: Floats, limits: Floats | tuple[float, ...]) -> Integers:
    """Count values up to each limit and above that before, then those above all, and nan."""
    return np.bincount(cells_of(values, limits), minlength=len(limits) + 1)


def cells_of(values: Floats, limits: Floats | tuple[float, ...]) -> Integers:
    """Return for each value how many limits, which ascend, are below it; all of them for nan.

    Values, nan too, have no sign: floats from 0 on are in the order of their bits. Where no two
    limits have the same leading bits one comparison is enough, in a quarter of the time of a search
    or of sorting the values.
    """
    table = _cell_table(tuple(np.asarray(limits, dtype=np.float64).tolist()))
    if table is None:
        return np.asarray(np.searchsorted(limits, values))
    entries = (values.view(np.int64) >> _TRAILING_BITS) - table.first
    cells = table.cell.take(entries, mode="clip")
    cells += values > table.limit.take(entries, mode="clip")
    return cells


@lru_cache(maxsize=64)
def _cell_table(limits: tuple[float, ...]) -> _CellTable | None:
    """Return the table of positive limits; None where leading bits do not tell them apart."""
    if not limits or min(limits) <= 0:
        return None
    leading = np.array(limits).view(np.int64) >> _TRAILING_BITS
    size = int(leading[-1] - leading[0]) + 2
    if size > _MOST_ENTRIES or (np.diff(leading) <= 0).any():
        return None
    limit = np.full(size, np.inf)
    limit[leading - leading[0]] = limits
    entries = leading[0] + np.arange(size)
    return _CellTable(int(leading[0]), np.searchsorted(leading, entries), limit)
