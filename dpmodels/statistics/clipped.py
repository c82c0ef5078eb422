"""Exact moments of rows clipped to 1, 1/2, 1/4, ... of the ball, and fourth moments within it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from itertools import pairwise
from typing import Final, NamedTuple

import numpy as np

from dpmodels.design import PrivateDesign
from dpmodels.noise.lattice import Lattice, products
from dpmodels.privacy import Adjacency
from dpmodels.statistics.statistic import Statistic, additive, fingerprint, summed
from dpmodels.typing import Floats, Integers, Numbers, Scalars

# Increments between clipped moments, and how far one row moves them.


def increments(levels: Scalars, chosen: Sequence[int]) -> list[Scalars]:
    """Return what each radius adds to the second moment of the next smaller one.

    Of levels a < b that follow each other in `chosen` it is ``G = 4**(b - a) L_a - L_b``, shape
    (columns, columns); last comes the innermost level itself. Level a over ``4**a`` is the second
    moment S_a clipped to ``2**-a``, so ``S_a - S_b = G / 4**b``.
    """
    second = [levels[level, 1:, 1:] for level in chosen]
    steps = doublings(chosen)[:-1]
    outer = [
        4**step * large - small
        for step, (large, small) in zip(steps, pairwise(second), strict=True)
    ]
    return [*outer, second[-1]]


def doublings(chosen: Sequence[int]) -> list[int]:
    """Return how far each level is from the next; 0 stands for the innermost."""
    return [*(b - a for a, b in pairwise(chosen)), 0]


def increment_norm(lattice: Lattice, step: int) -> float:
    """Bound the main part of what one row adds to an increment, in lattice steps squared.

    See `increment_sensitivity`: ``(4**step - 1) R²``, and R² inside the last.
    """
    return (4.0**step - 1 if step else 1.0) * lattice.radius**2


def increment_slack(lattice: Lattice, step: int) -> float:
    """Bound what rounding at the surface of the ball adds to it; nothing inside the last."""
    if step == 0:
        return 0.0
    return (2 * lattice.radius * math.sqrt(lattice.columns) + lattice.columns) * (1 + 2.0**-15)


def trace_weight(adjacency: Adjacency) -> float:
    """Choose the weight of an increment's trace beside its isometric coordinates.

    Under ``replace`` a weight of 1 is free; under ``add-remove`` one of 1/4 costs 3 % of the noise
    scale.
    """
    return 1.0 if adjacency.n_public else 0.25


def increment_sensitivity(adjacency: Adjacency, lattice: Lattice, step: int) -> float:
    """Return the L2 sensitivity of an increment and its weighted trace.

    The increment is in isometric coordinates, its trace has `trace_weight`; the unit is the
    squared lattice step.

    `step` is how often the radius is halved; 0 for the innermost level itself.

    *One row.* With R the radius of the ball, y a row at the outer level, y' the same row at the
    inner one and ``q = 2**step``, it adds ``g = q² y yᵀ - y' y'ᵀ``. Where q y is in the ball,
    ``y' = q y`` and g = 0. Where y was clipped to the surface already, ``y' = y`` and
    ``g = (q² - 1) y yᵀ``. Else ``y' = R y/‖y‖ + e``, where rounding towards zero gives
    ``|e_i| <= 1 + R 2**-39``, and with ``ŷ = y/‖y‖``

        ``g = (q² - R²/‖y‖²) y yᵀ - R (ŷ eᵀ + e ŷᵀ) - e eᵀ``.

    So ``g = A + B``: A positive of rank one with trace ``a <= Δ = (q² - 1) R²``, as
    ``R/q < ‖y‖ <= R``; and ``‖B‖_F <= 2R‖e‖ + ‖e‖² <= τ``, likewise
    ``|tr B| = |R² - ‖y'‖²| <= τ``, with ``τ = (2R√d + d)(1 + 2**-15)`` for d columns and R up to
    2**20. Inside the last radius ``g = y yᵀ``, Δ = R² and τ = 0.

    *Replace one row*, trace weight 1: between complete rows the main parts differ by
    ``‖A - A'‖_F² + (a - a')² <= a² + a'² + (a - a')² <= 2Δ²``, as the sum is convex in (a, a') and
    at most 2Δ² at the corners of [0, Δ]²; the rest of either row is at most ``√2 τ`` long. In all
    ``√2 (Δ + 2τ)``; against an incomplete row, which adds zero, it is ``√2 (Δ + τ)``.

    *Add or remove one row*, trace weight w: ``√(1 + w²) (Δ + τ)``.
    """
    main, slack = increment_norm(lattice, step), increment_slack(lattice, step)
    if adjacency.n_public:
        return math.sqrt(2) * (main + 2 * slack)
    return math.hypot(1, trace_weight(adjacency)) * (main + slack)


# Sums below this leave room for a few levels, and for the sums of other rows.
FITS_INT64 = 2**56


class Band(NamedTuple):
    """The rows that a sum of products is over."""

    doublings: int  # How often the rows can be doubled inside the ball
    at_surface: bool  # Whether the rows are clipped to the ball's surface


@additive
def clipped_moments(design: PrivateDesign, lattice: Lattice, halvings: int) -> Statistic:
    """Sum ``z zᵀ`` over the rows exactly, clipped at each of several radii.

    Level t is of the rows magnified by ``2**t`` and clipped to the ball: ``z = (2**bits, 2**t x)``
    where that is inside, ``z = (2**bits, u)`` where it is not, with u the row brought to the
    ball's surface and rounded towards zero. Level t over ``4**t`` is the second moment of the rows
    clipped to ``2**-t`` of the ball.

    The integers, shape (halvings + 1, columns + 1, columns + 1), are the same for any chunking,
    order or number of threads, and Python's where 64 bits might not hold them; an incomplete row
    adds zero.

    A row that can be doubled b times inside the ball is ``2**t x`` up to level b and u beyond: two
    sums of products per band hold every level.
    """
    sums: dict[Band, Numbers] = {}
    size, n_rows = lattice.columns + 1, 0
    kind: np.dtype[np.generic] = np.dtype(np.int64)
    for bands, count in design.blocks(lambda block: _by_band(block, lattice, halvings), lattice):
        n_rows += count
        if n_rows * 4**lattice.bits >= FITS_INT64:
            kind = np.dtype(object)
        for band, product in bands.items():
            exact: Numbers = product.astype(kind, copy=False)
            sums[band] = sums[band] + exact if band in sums else exact
    words = {"lattice": repr(lattice), "halvings": str(halvings)}
    basis = partial(fingerprint, design, words)
    return Statistic("clipped moments", _levels(sums, halvings, size, kind), n_rows, basis)


def _by_band(block: Floats, lattice: Lattice, halvings: int) -> dict[Band, Integers]:
    """Sum products over each band of a block; every partial sum is below 2**53."""
    norms = np.einsum("ij,ij->j", block[1:], block[1:])
    limits = lattice.radius**2 / 4.0 ** np.arange(1, halvings + 1)
    bands = (norms <= limits[:, None]).sum(axis=0)
    sums = {}
    for band in np.unique(bands).tolist():
        chosen = bands == band
        rows = block[:, chosen]
        sums[Band(band, at_surface=False)] = products(rows)
        if band < halvings:
            _clip(rows, norms[chosen], lattice)
            sums[Band(band, at_surface=True)] = products(rows)
    return sums


def _clip(rows: Floats, norms: Floats, lattice: Lattice) -> None:
    """Clip integer rows to the ball, in place, rounding towards zero."""
    np.multiply(rows[1:], lattice.radius * (1 - 2.0**-40) / np.sqrt(norms), out=rows[1:])
    np.trunc(rows, out=rows)
    outside = ~(np.einsum("ij,ij->j", rows[1:], rows[1:]) <= lattice.radius**2)
    rows[1:, outside] = 0.0


def _levels(sums: dict[Band, Numbers], halvings: int, size: int, kind: np.dtype) -> Numbers:
    """Assemble the levels; no entry exceeds the number of rows times the squared radius."""
    levels: Numbers = np.zeros((halvings + 1, size, size), dtype=kind)
    inside, outside = levels[0].copy(), levels[0].copy()
    for band, exact in sums.items():
        if not band.at_surface:
            inside += exact
    for level in range(halvings + 1):
        # What each product grows by when the rows are doubled so many times.
        factor = np.full(size, 2**level, dtype=np.int64)
        factor[0] = 1
        levels[level] = inside * np.multiply.outer(factor, factor) + outside
        inside -= sums.get(Band(level, at_surface=False), 0)
        outside += sums.get(Band(level, at_surface=True), 0)
    return levels


# Covers the rounding of a few products of floats.
_ROUND_DOWN: Final = 1 - 1e-12


def square_unit(adjacency: Adjacency, lattice: Lattice, limits: tuple[float, ...]) -> float:
    """Return the unit of squared coordinates in which fourth moments move by ``4**bits`` at most.

    `limits` are public bounds on the absolute coordinates of a row, in units of the ball.

    *Proof.* A row y of integers of norm at most R = ``2**bits`` becomes ``q_i = ⌊g y_i²⌋``, with
    ``y_i²`` no more than ``c_i²``, ``c_i = R min(limit_i, 1)``. It adds ``q qᵀ``: entries that are
    not negative, of Frobenius norm ``|q|² <= g² min(R⁴, Σ c_i⁴)``, as ``Σ q_i <= g R²``. Two rows
    differ by the entrywise maximum of both at most, ``g² Σ c_i⁴``, and, as their inner product is
    not negative, by ``√2 g² R⁴``. So with ``g² = R²/min(√2 R⁴, Σ c_i⁴)`` the sensitivity is R², and
    with R⁴ instead of ``√2 R⁴`` where a row is added or removed. No q_i exceeds R, as neither bound
    is below ``c_i⁴``.
    """
    ball = math.sqrt(2) if adjacency.n_public else 1.0
    box = math.fsum(min(limit, 1.0) ** 4 for limit in limits)
    return _ROUND_DOWN / (lattice.radius * math.sqrt(min(ball, box) or 1.0))


@additive
def fourth_moments(
    design: PrivateDesign,
    lattice: Lattice,
    limits: tuple[float, ...],
    unit: float,
) -> Statistic:
    """Sum ``q qᵀ`` over the rows exactly, q the squared coordinates in a unit.

    An incomplete row adds zero; :func:`square_unit` proves the sensitivity.
    """
    most = (np.minimum(np.array(limits), 1.0) * lattice.radius) ** 2

    def of_block(block: Floats) -> Integers:
        squares = np.floor(np.minimum(block[1:] ** 2, most[:, None]) * unit)
        return products(squares)

    facts = {"limits": str(limits), "unit": repr(unit)}
    return summed("fourth moments", of_block, design, lattice, facts)


@additive
def increments_beyond(
    design: PrivateDesign,
    lattice: Lattice,
    inner: float,
    limits: tuple[float, ...],
    units: int,
) -> Statistic:
    """Sum how much larger the squares of rows are than those of the rows clipped to `inner`.

    `inner` is a fraction of the ball's radius, `limits` are public bounds on the absolute
    coordinates of a row in units of the ball. A row u, clipped to v, adds the largest of
    ``(u_i² - v_i²)/limit_i²`` and ``(|u|² - |v|²)/(1 - inner²)``, a number from 0 to 1, in `units`
    and rounded up. So the sensitivity is `units`, for either adjacency; an incomplete row adds 0.
    """
    most = np.array(limits) ** 2
    most[most == 0] = np.inf
    space = max(1 - inner**2, 0.0) or 1.0

    def counted(block: Floats) -> Integers:
        squares = (block[1:] / lattice.steps) ** 2
        lengths = np.zeros(squares.shape[1])
        for line in squares:
            lengths += line
        excess = np.maximum(lengths - inner**2, 0.0)
        fraction = excess / np.where(lengths > 0, lengths, 1.0)
        largest = np.maximum((squares / most[:, None]).max(axis=0) * fraction, excess / space)
        return np.array(np.ceil(np.minimum(largest, 1.0) * units).sum(), dtype=np.int64).reshape(1)

    facts = {"inner": repr(inner), "limits": str(limits), "units": str(units)}
    return summed("increments beyond a ball", counted, design, lattice, facts)
