"""Increments between clipped moments, and how far one row moves them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from numpy.typing import NDArray

from dpmodels.noise.lattice import Lattice
from dpmodels.privacy import Adjacency


def increments(levels: NDArray[Any], chosen: Sequence[int]) -> list[NDArray[Any]]:
    """Return what each radius adds to the second moment of the next smaller one.

    Of levels a < b that follow each other in `chosen` it is ``G = 4**(b - a) L_a - L_b``, shape
    (columns, columns); last comes the innermost level itself. Level a over ``4**a`` is the second
    moment S_a clipped to ``2**-a``, so ``S_a - S_b = G / 4**b``.
    """
    second = [levels[level, 1:, 1:] for level in chosen]
    steps = doublings(chosen)[:-1]
    outer = [
        4**step * one - other for step, (one, other) in zip(steps, pairwise(second), strict=True)
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
    ``y' = q y`` and g = 0. Where y was held at the surface already, ``y' = y`` and
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
