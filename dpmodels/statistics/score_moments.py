"""Exact moments of rows in coordinates of terms and residual, and sums of the scores of units."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from dpmodels.design import PrivateDesign
from dpmodels.noise.lattice import MAX_BITS, Lattice, lengths, on_lattice, products
from dpmodels.statistics import passes
from dpmodels.statistics.gradient import GradientScore
from dpmodels.statistics.moments import cells_of, numbers_by_cell
from dpmodels.statistics.statistic import Statistic, additive, digest_of, fingerprint, summed
from dpmodels.typing import Flags, Floats, Indices, Integers, Numbers

# Halves of the squared unit length, a little less for the rounding of a row to the lattice.
_HALF = math.sqrt(0.5) * (1 - 2.0**-40)


class ColumnPowers(NamedTuple):
    """The public map from a scaled row x to what its means and variances are read from.

    Entry k is ``linear[k] u + square[k] u² - middle[k]`` of ``u = (x[column[k]] - centre[k])``, in
    units of the ball that holds all of them.
    """

    column: Integers
    centre: Floats
    linear: Floats
    square: Floats
    middle: Floats


@additive
def power_sums(
    design: PrivateDesign,
    lattice: Lattice,
    powers: ColumnPowers,
    finer: Lattice,
) -> Statistic:
    """Sum ``(w 2**bits, w q)`` over rows of weight w, q the row's powers on the lattice `finer`.

    The integers of a row are a function of public facts and that row alone, the first at most
    ``finer.radius`` and not less than the norm of the others; an incomplete row adds zero. Such
    vectors are a cone cut off at its base: two of them differ most at the tip and the base, where
    w is 0 or 1. Sensitivity: that of :func:`dpmodels.mechanisms.add_noise.gaussian_count`.
    """
    unit = design.scaling.row_norm / lattice.steps
    # A row is near the surface only where this entry is.
    line = int(np.flatnonzero(powers.linear)[-1])
    square_bound = _largest_squares(design, unit, powers, finer.steps, line)

    def of_block(block: Floats) -> Integers:
        complete, ones = block[0] > 0, np.ones(block.shape[1])
        if (complete & (block[0] != lattice.radius)).any():
            q, count = _weighted_powers(block, lattice, unit, powers, finer)
        else:
            q = _powers(block[1:], unit, powers, finer.steps)
            largest = max(q[line].max(initial=0.0), -q[line].min(initial=0.0))
            is_inside = square_bound + largest**2 < _shortest(1.0, len(q), finer) ** 2
            candidates = np.arange(0) if is_inside else _near_surface(q, 1.0, finer)
            if 2 * len(candidates) > block.shape[1]:  # Not worth a copy
                q = on_lattice(_held_powers(block[1:], unit, powers), finer)
            elif len(candidates):
                q[:, candidates] = on_lattice(
                    _held_powers(block[1:, candidates], unit, powers), finer
                )
            _empty(q, complete)
            count = np.count_nonzero(complete) * finer.radius
        return np.append(count, q @ ones).astype(np.int64)

    words = {"powers": digest_of(np.stack(powers))}
    return summed("sums of powers", of_block, design, lattice, words)


def _weighted_powers(
    block: Floats, lattice: Lattice, unit: float, powers: ColumnPowers, finer: Lattice
) -> tuple[Floats, float]:
    """Return powers of rows times their weights on the lattice, and what the rows count."""
    root = block[0] / lattice.radius
    complete = root > 0
    q = _held_powers(block[1:], unit / np.where(complete, root, 1.0), powers) * root**2
    squares = np.empty_like(root)
    on_lattice(q, finer, squares)
    _empty(q, complete)
    # No norm is above the radius.
    count = np.maximum(np.rint(root**2 * finer.radius), np.ceil(np.sqrt(squares * complete)))
    return q, float(count.sum())


def _held_powers(rows: Floats, scale: Floats | float, powers: ColumnPowers) -> Floats:
    """Return the entries of the map, of rows that are brought to its ball."""
    q = _powers(rows, scale, powers)
    q /= np.maximum(_norms(q), 1.0)
    return q


def _powers(
    rows: Floats, scale: Floats | float, powers: ColumnPowers, steps: float | None = None
) -> Floats:
    """Return the entries of the map, shape (entries, rows), of rows that are multiplied by `scale`.

    Line by line, a number of a processor's nearest cache at a time; with `steps` rounded to them.
    """
    q, u = np.empty((len(powers.column), rows.shape[1])), np.empty(rows.shape[1])
    at = None
    maps = [numbers.tolist() for numbers in powers]
    for line, column, centre, linear, square, middle in zip(q, *maps, strict=True):
        if at != (at := (column, centre)):
            np.multiply(rows[column], scale, out=u)
            if centre:
                np.subtract(u, centre, out=u)
        if square:
            np.multiply(u, u, out=line)
            line *= square
            if linear:
                line += u * linear
        else:
            np.multiply(u, linear, out=line)
        if middle:
            line -= middle
        if steps is not None:
            line *= steps
            np.rint(line, out=line)
    return q


def _largest_squares(
    design: PrivateDesign, unit: float, powers: ColumnPowers, steps: float, line: int
) -> float:
    """Return a bound of the sum of squared entries in steps, of all but one line.

    An entry is largest in size where u is at an end of its column, or u² is 0.
    """
    public, scaling = design.public, design.scaling
    if scaling.unit:
        return math.inf
    ends = (np.stack([public.lower, public.upper]) - scaling.centre) / scaling.scale
    ends = np.stack([np.minimum(ends[0], 0.0) - unit, np.maximum(ends[1], 0.0) + unit])
    u = ends[:, powers.column] - powers.centre
    square = np.abs(u**2 * powers.square - powers.middle).max(axis=0)
    entries = np.abs(u * powers.linear).max(axis=0) + np.maximum(square, np.abs(powers.middle))
    return float(np.square(np.delete(entries, line) * steps + 1).sum())


def _shortest(radius: float, n_lines: int, lattice: Lattice) -> float:
    """Return the norm from which on rounded rows may have been longer than a radius.

    Rounding moves them by `√lines / 2` steps at most.
    """
    shortest = radius * lattice.steps * (1 - 2.0**-30) - math.sqrt(n_lines) / 2 * (1 + 2.0**-20)
    return max(shortest, 0.0)


def _near_surface(rows: Floats, radius: float, lattice: Lattice) -> Indices:
    """Return the positions of rounded rows that may be longer than a radius before rounding."""
    with np.errstate(over="ignore"):
        squares = np.einsum("ij,ij->j", rows, rows)
    return np.flatnonzero(~(squares < _shortest(radius, len(rows), lattice) ** 2))


@additive
def score_moments(
    design: PrivateDesign,
    lattice: Lattice,
    transform: Floats,
    finer: Lattice,
) -> Statistic:
    """Sum ``v vᵀ`` over complete rows exactly, v a row's score coordinates on the lattice `finer`.

    `transform`, T of shape (columns + 1, columns + 1), is finite and a function of released values
    and public facts; the row is ``a = (1, x)`` with x in the unit ball. ``v = (w t, w e cut to
    ±√½)`` with ``(t, e) = T a``, e its last entry, and ``w = min(1, √½ / ‖t‖)``: both parts have a
    squared norm of at most ½. On the lattice v is an integer vector of norm at most
    ``finer.radius``, and a function of T and that row alone; an incomplete row adds zero.

    Sensitivity, in Frobenius norm and units of the squared radius: 1 for a row more, √2 for a row
    replaced, as the inner product of two squares is not negative.
    """
    matrix = passes.turn(transform, lattice, lattice.bits)

    def of_block(block: Floats) -> Integers:
        return products(_held(block, matrix, finer))

    words = {"transform": digest_of(transform)}
    return summed("moments of scores", of_block, design, lattice, words)


@additive
def residual_sizes(
    design: PrivateDesign,
    lattice: Lattice,
    transform: Floats,
    finer: Lattice,
) -> Statistic:
    """Sum ``|v_e| v_t`` over complete rows exactly, v a row's score coordinates ``(v_t, v_e)``.

    See :func:`score_moments` for v and `transform`. Both parts of v have a squared norm of at most
    half the squared radius of `finer`, so their product, an integer vector, has a norm of at most
    half the squared radius. L2 sensitivity, in units of the squared radius: ½ for a row more, 1 for
    a row replaced.
    """
    matrix = passes.turn(transform, lattice, lattice.bits)

    def of_block(block: Floats) -> Integers:
        rows = _held(block, matrix, finer)
        return np.asarray((rows[:-1] @ np.abs(rows[-1])).astype(np.int64))

    words = {"transform": digest_of(transform)}
    return summed("sizes of residuals", of_block, design, lattice, words)


@additive
def score_lengths(
    design: PrivateDesign,
    lattice: Lattice,
    transform: Floats,
    lengths: tuple[float, ...],
    residuals: tuple[float, ...],
) -> Statistic:
    """Count complete rows by the length of ``t``, and by e and its sign, ``(t, e) = T (1, x)``.

    `transform` is as for :func:`score_moments`; `lengths` and `residuals` are limits of cells, the
    last of which has none. The integers are the numbers of rows by length of t, then by positive e,
    then by ``-e`` of all others: each cell has values up to its limit and above that before. A row
    adds 1 to one cell by length and to one by residual: the L2 sensitivity is 2 when a row is
    replaced, √2 when it is added or removed.
    """
    matrix = passes.turn(transform, lattice, lattice.bits)

    def counted(block: Floats) -> Integers:
        complete = block[0] > 0
        rows = matrix.times(block if complete.all() else block[:, complete])
        e, size = rows[-1], len(residuals) + 1
        cells = cells_of(np.abs(e), residuals)
        cells += size * (e <= 0)
        by_residual = np.bincount(cells, minlength=2 * size)
        return np.concatenate([numbers_by_cell(_norms(rows[:-1]), lengths), by_residual])

    words = {
        "lengths": str(lengths),
        "residuals": str(residuals),
        "transform": digest_of(transform),
    }
    return summed("rows by the length of scores", counted, design, lattice, words)


def _norms(rows: Floats) -> Floats:
    """Return the norms of rows, shape (rows,), however long: their squares may overflow."""
    norms = lengths(rows)
    if np.isfinite(norms).all():
        return norms
    _, halvings = np.frexp(np.abs(rows).max(axis=0, initial=0.0))
    halvings = np.maximum(halvings, 0)
    return np.asarray(np.ldexp(lengths(np.ldexp(rows, -halvings)), halvings))


def _held(block: Floats, matrix: passes.Turn, finer: Lattice) -> Floats:
    """Return rows in score coordinates on the lattice, shape (columns + 1, rows).

    The product is exact; what follows is one correctly rounded operation on each number, and the
    integer norm is checked once more. Only terms that may be too long are looked at before they are
    rounded: of n + 1 lines others are in the ball, as
    ``(s √½)² + (s √½ + ½)² <= (s + √(n + 1) / 2)²`` for s steps.
    """
    rows = matrix.times(block)
    np.clip(rows[-1], -_HALF, _HALF, out=rows[-1])
    rows *= finer.steps
    np.rint(rows, out=rows)
    candidates = np.arange(rows.shape[1])
    if matrix.scaled is not None:  # Products are finite
        candidates = _near_surface(rows[:-1], _HALF, finer)
    if candidates.size:
        those = matrix.times(block[:, candidates])
        those *= _HALF / np.maximum(_norms(those[:-1]), _HALF)
        np.clip(those[-1], -_HALF, _HALF, out=those[-1])
        rows[:, candidates] = on_lattice(those, finer)
    _empty(rows, block[0] != 0)
    return rows


def _empty(rows: Floats, complete: Flags) -> None:
    """Let incomplete rows be all zeros."""
    if not complete.all():
        rows[:, ~complete] = 0.0


class UnitScores(Statistic):
    """The score of each unit of capped rows, times the root of its stratum's factor.

    A unit's score is the sum over its places of those of its rows, over the number of places that
    it may take: a function of released values and of that unit. Factors are released, and those
    roots at most 1.
    """

    __slots__ = ("_scores", "_strata", "factors")

    def __init__(
        self,
        design: PrivateDesign,
        lattice: Lattice,
        score: passes.Score | GradientScore,
        n_places: int,
    ) -> None:
        basis = fingerprint(design)
        basis = basis.also({"score": score.digest})
        size, words = len(score.regressors), 1 + (lattice.bits > MAX_BITS)
        vectors = (
            score.function(lattice) if words == 1 else passes.two_words(score.function(lattice))
        )
        integers, n_rows = passes.person_totals(design, lattice, vectors, size * words)
        totals = integers[:size].astype(np.float64)
        if words == 2:
            totals += integers[size:] / passes.PARTS
        super().__init__("scores of units", np.zeros(0, dtype=object), n_rows, basis)
        sampled, strata = design.rows.terms.sampled, design.rows.unit_strata()
        assert sampled is not None
        roots = np.sqrt(np.array(sampled.factors or (1.0,)))
        roots /= roots.max()
        self.factors = roots[strata] if sampled.factors else np.ones(len(strata))
        scores = np.zeros((len(totals), len(strata)))
        scores[:, : totals.shape[1]] = totals / (passes.PARTS * n_places)
        self._scores, self._strata = scores * self.factors, strata

    def by_length(self, limits: Floats) -> Numbers:
        """Count units by the cell of the length of their score; longer ones are in the last.

        Cells end at `limits`. A unit adds 1 to one cell, so the L2 sensitivity is √2 where it is
        replaced, 1 where it is added or removed; in absolute values 2 and 1.
        """
        # Each operation is on the numbers of one unit.
        lengths = np.sqrt((self._scores**2).sum(axis=0))
        cells = np.minimum(np.searchsorted(limits, lengths), len(limits) - 1)
        return np.bincount(cells, minlength=len(limits)).astype(object)

    def squares(
        self, longest: float, finer: Lattice, marks: tuple[float, ...], least: float, levels: int
    ) -> Numbers:
        """Sum ``z zᵀ`` over units, z of marks and the score clipped to `longest`, on a lattice.

        The first mark is ``marks[0] * least`` of the radius over the unit's factor, `least` being
        the smallest factor; ``marks[1]``, if there, stands at the place of the unit's stratum.
        """
        first = np.floor(marks[0] * least * finer.radius / self.factors)
        lines = [first]
        if len(marks) > 1:
            size = math.floor(marks[1] * finer.radius)
            lines.extend((self._strata == np.arange(levels)[:, None]) * size)
        return passes.squares_of_totals(
            self._scores / longest, finer, np.stack(lines).astype(np.int64)
        )
