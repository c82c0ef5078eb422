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
from typing import NamedTuple

import numpy as np

from dpmodels import arguments
from dpmodels.mechanisms import add_noise
from dpmodels.mechanisms.protocol import Facts, Plan, release_terms
from dpmodels.noise import Entropy
from dpmodels.noise.lattice import Lattice, choose_lattice
from dpmodels.privacy import GaussianEvent, LaplaceEvent
from dpmodels.released import MechanismInfo, MomentNoise, SubspaceRelease
from dpmodels.statistics import Statistic
from dpmodels.typing import Floats, Scalars


class Scatter(NamedTuple):
    """The exact answer in floating point; not released."""

    # Shape (columns, columns): in units of the squared radius of the ball that holds the rows.
    matrix: Floats
    complete: int  # Number of complete rows
    rows: int  # Number of rows read


def scatter_of_rows(statistic: Statistic, lattice: Lattice, *, centred: bool) -> Scatter:
    """Form the scatter of the rows, exactly up to one rounding of each entry.

    About the mean it is zero without rows.
    """
    exact, n_rows = statistic.cross()
    unit = int(lattice.radius)
    complete = int(exact[0, 0]) // unit**2
    second: Scalars = exact[1:, 1:]
    if centred:
        total = exact[0, 1:] // unit
        second = (complete * second - np.multiply.outer(total, total)) / max(complete, 1)
    return Scatter(second.astype(np.float64) / lattice.radius**2, complete, n_rows)


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


# The axes of a released space: the scatter inside it is bought, its eigenvectors order the space.
#
# With ``V`` released already, the k × k matrix ``Vᵀ Δ V`` is no larger than the difference ``Δ`` of
# the scatters of neighbours: bought whole, with Gaussian noise in isometric coordinates, it costs
# what its diagonal costs. The number of complete rows goes along with weight 1. Let ``r`` be the
# most that a row adds along a direction, 1 or 4 about the mean.
#
# *L2.* Two complete rows: ``‖Δ‖_F``, √2, 1 or 4. A complete row against none: ``√(r² + 1)``, which
# is no more than √2 about the origin.
#
# *L1, on and above the diagonal.* A row ``y`` in ``k`` coordinates of squared length at most r adds
# entries of the sum ``(‖y‖₁² + ‖y‖₂²)/2 ≤ r(k + 1)/2``, and 1 to the count. Two complete rows: by
# Cauchy and Schwarz ``Σ_{i≤j} |M_ij| ≤ ‖M‖_F √(k + k(k - 1)/4)``.


def axes_sensitivity(facts: Facts, norm: int) -> float:
    """Return how far a row moves the scatter inside a released space and the count.

    Norm 1 is of the entries on and above the diagonal, 2 in isometric coordinates.
    """
    size, max_row, between = wanted(facts), largest_row(facts), scatter_norm(facts)
    alone = math.hypot(max_row, 1)
    if norm == 1:
        alone = max_row * (size + 1) / 2 + 1
        between *= math.sqrt(size * (size + 3)) / 2
    return max(alone, between) if facts.adjacency.n_public else alone


def axes_noise(
    facts: Facts, event: GaussianEvent | LaplaceEvent, extra_scale: float = 0.0
) -> add_noise.Scaled:
    """Return the noise that an event stands for.

    `extra_scale` is a further scale that the lattice is to hold, in units of the ball.

    Rounding to the lattice moves two neighbours' entries apart by one step. BudgetError if the
    noise leaves no useful lattice.
    """
    size, laplace = wanted(facts), isinstance(event, LaplaceEvent)
    sensitivity = axes_sensitivity(facts, 1 if laplace else 2)
    rounding = size * (size + 1) / 2 if laplace else size
    # Laplace noise has the longer tail, and needs a few bits of room.
    lattice = choose_lattice(facts.columns, max(8 * event.multiplier * sensitivity, extra_scale))
    steps = event.multiplier * (sensitivity * lattice.radius**2 + rounding) * add_noise.ROUND_UP
    diagonal = max(steps, add_noise.SMALLEST_SCALE)
    off = max(steps if laplace else steps / math.sqrt(2), add_noise.SMALLEST_SCALE)
    return add_noise.Scaled(lattice, MomentNoise(diagonal, math.nan, diagonal, off))


def checked_purchase(eigenvals: object, share: object) -> None:
    """Refuse invalid options for the purchase of axes."""
    arguments.option("eigenvals", eigenvals, ("private", None))
    arguments.fraction("share", share, ", the eigenvalues' part of the budget; write share=0.2")


def hand_over_frame(
    info: MechanismInfo,
    plan: Plan,
    frame: Floats,
    exact: Scatter,
    entropy: Entropy,
    *,
    ordered: bool,
    limit: str = "",
    expected_loss: float = math.nan,
) -> SubspaceRelease:
    """Make the release of a frame, with its axes where the plan has noise for them.

    `frame`, shape (columns, components), is orthonormal and released; `exact` is read only where
    the plan's steps say that the axes are bought, its last event with what noise.
    """
    count, variances, noise_sd = math.nan, None, math.nan
    if not math.isnan(plan.steps.diagonal):
        law = add_noise.event_law(plan.events[-1])
        noisy = add_noise.noised_moments(_inside(exact, frame, plan.lattice), plan, entropy, law)
        values, turn = np.linalg.eigh(noisy.second)
        frame, variances = frame @ turn[:, ::-1], values[::-1].copy()
        count, noise_sd = noisy.count, noisy.noise.diagonal
    return SubspaceRelease(
        frame=frame,
        variances=variances,
        variance_sd=noise_sd,
        count=count,
        ordered=ordered or variances is not None,
        limit=limit,
        expected_loss=expected_loss,
        **release_terms(info, plan, exact.rows),
    )


def _inside(exact: Scatter, frame: Floats, lattice: Lattice) -> Scalars:
    """Round count and scatter inside the space to integers, as moments are."""
    unit = lattice.radius**2
    compressed = frame.T @ exact.matrix @ frame
    integers: Scalars = np.zeros((len(compressed) + 1,) * 2, dtype=object)
    integers[0, 0] = exact.complete * int(unit)
    rounded = [[round(value) for value in row] for row in (compressed * unit).tolist()]
    integers[1:, 1:] = np.array(rounded, dtype=object)
    return integers
