"""The sum of squares of the rows, about the origin or about their mean, and how far a row moves it.

Written for rows ``x`` of the unit ball, ``N`` of them complete, and ``S`` the sum of ``x xᵀ`` over
these: the scatter is ``S``, or about the mean ``S_c = S - t tᵀ/N`` with ``t`` the sum of the rows.
``Δ`` is the difference that one row makes, ``λ₊ ≥ 0 ≥ λ₋`` are its two eigenvalues that may not be
zero. For a frame ``V`` of orthonormal columns ``tr(Vᵀ Δ V)`` lies in ``[λ₋, λ₊]``.

*About the origin.* A row more: ``Δ = x xᵀ``, ``λ₊ ≤ 1``. A row replaced: ``Δ = x xᵀ - y yᵀ``,
``λ₊ ≤ 1``, ``λ₋ ≥ -1``, ``‖Δ‖_F ≤ √2``.

*About the mean.* Let ``m`` be the mean of the ``n - 1`` other rows. A row ``x`` adds
``(1 - 1/n)(x - m)(x - m)ᵀ`` to their scatter, at most 4 along one direction. A row replaced
therefore makes ``Δ = (1 - 1/n)(a aᵀ - b bᵀ)`` with ``a = x - m``, ``b = y - m``.

1.  ``λ₊ - λ₋ ≤ 3√3``. The two eigenvalues of ``a aᵀ - b bᵀ`` have the sum
    ``|a|² - |b|²`` and the product ``⟨a, b⟩² - |a|²|b|²``, so the square of their difference is
    ``(|a|² + |b|²)² - 4⟨a, b⟩² = |a - b|²|a + b|²``. Here ``|a - b| = |x - y| = 2 sin t`` for some
    t, then ``|x + y| ≤ 2 cos t`` and ``|a + b| ≤ 2 cos t + 2``; ``4 sin t (1 + cos t)`` is largest
    at t = 60°, where it is ``3√3``. It is reached, for many rows, by ``m = -u`` and ``x`` and
    ``y`` at 60° on either side of the unit vector ``u``.
2.  ``‖Δ‖_F ≤ 4``. ``F = ‖a aᵀ - b bᵀ‖²_F = (|s|²|e|² + ⟨s, e⟩²)/2`` with
    ``e = x - y``, ``s = x + y - 2m`` is convex in ``m``: let ``|m| = 1``. With α and β the angles
    of ``a`` and ``b`` to ``-m``, rows in the ball mean ``|a| ≤ 2 cos α`` and ``|b| ≤ 2 cos β``.
    ``F = g² + h² - 2gh cos²φ``, φ the angle between them, is convex in ``g = |a|²`` and in
    ``h = |b|²``: its largest value is at a corner, 16 or less where one is 0. Else, if
    ``α + β ≥ 90°``, ``g + h ≤ 4(cos²α + cos²β) ≤ 4`` and ``F ≤ (g + h)²``. If not, ``φ ≤ α + β``
    gives with ``p = cos(α + β)``, ``q = cos(α - β) ≥ p``
    ``F/16 ≤ (1 - p²)(1 + p²/2 + pq - q²/2)``, which falls in q, so ``F/16 ≤ 1 - p⁴``.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpmodels.mechanisms.protocol import Facts
from dpmodels.noise.lattice import Lattice
from dpmodels.statistics import Statistic
from dpmodels.typing import Floats


class Scatter(NamedTuple):
    """The exact answer in floating point; not released."""

    # Shape (columns, columns): in units of the squared radius of the ball that holds the rows.
    matrix: Floats
    complete: int  # Number of complete rows
    rows: int  # Number of rows read


def second_moment(statistic: Statistic, lattice: Lattice, *, centred: bool) -> Scatter:
    """Form the scatter of the rows, exactly up to one rounding of each entry.

    About the mean it is zero without rows.
    """
    exact, rows = statistic.cross()
    unit = int(lattice.radius)
    complete = int(exact[0, 0]) // unit**2
    second: NDArray[Any] = exact[1:, 1:]
    if centred:
        total = exact[0, 1:] // unit
        second = (complete * second - np.multiply.outer(total, total)) / max(complete, 1)
    return Scatter(second.astype(np.float64) / lattice.radius**2, complete, rows)


def largest_row(facts: Facts) -> float:
    """Return the most that one row more can add along a direction; no eigenvalue is larger."""
    return 4.0 if facts.centred else 1.0


def scatter_range(facts: Facts) -> float:
    """Return the length of the interval that ``tr(Vᵀ Δ V)`` lies in, over all frames V."""
    if not facts.adjacency.n_public:
        return largest_row(facts)
    return 3 * math.sqrt(3) if facts.centred else 2.0


def scatter_norm(facts: Facts) -> float:
    """Return the largest Frobenius norm of ``Δ``."""
    if facts.centred:
        return 4.0
    return math.sqrt(2) if facts.adjacency.n_public else 1.0


def wanted(facts: Facts) -> int:
    """Return the number of directions that are asked for."""
    return facts.components or facts.columns
