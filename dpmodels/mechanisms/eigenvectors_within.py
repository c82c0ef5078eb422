"""The axes of a released space: the scatter inside it is bought, its eigenvectors order the space.

With ``V`` released already, the k × k matrix ``Vᵀ Δ V`` is no larger than the difference ``Δ`` of
the scatters of neighbours (:mod:`dpmodels.mechanisms.second_moment`): bought whole, with Gaussian
noise in isometric coordinates, it costs what its diagonal costs. The number of complete rows goes
along with weight 1. Let ``r`` be the most that a row adds along a direction, 1 or 4 about the
mean.

*L2.* Two complete rows: ``‖Δ‖_F``, √2, 1 or 4. A complete row against none: ``√(r² + 1)``, which
is no more than √2 about the origin.

*L1, on and above the diagonal.* A row ``y`` in ``k`` coordinates of squared length at most r adds
entries of the sum ``(‖y‖₁² + ‖y‖₂²)/2 ≤ r(k + 1)/2``, and 1 to the count. Two complete rows: by
Cauchy and Schwarz ``Σ_{i≤j} |M_ij| ≤ ‖M‖_F √(k + k(k - 1)/4)``.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpmodels import arguments
from dpmodels.mechanisms.add_noise import (
    GAUSSIAN,
    LAPLACE,
    ROUND_UP,
    SMALLEST_SCALE,
    noised_moments,
)
from dpmodels.mechanisms.protocol import Facts, Plan
from dpmodels.mechanisms.release_terms import release_terms
from dpmodels.mechanisms.second_moment import Scatter, largest_row, scatter_norm, wanted
from dpmodels.noise import Entropy
from dpmodels.noise.lattice import Lattice, choose_lattice
from dpmodels.privacy import GaussianEvent, LaplaceEvent
from dpmodels.released import Card, MomentNoise, SubspaceRelease
from dpmodels.typing import Floats


class AxesNoise(NamedTuple):
    """A lattice, and the scales of the noise on it in lattice steps."""

    lattice: Lattice
    steps: MomentNoise


def axes_sensitivity(facts: Facts, norm: int) -> float:
    """Return how far a row moves the scatter inside a released space and the count.

    Norm 1 is of the entries on and above the diagonal, 2 in isometric coordinates.
    """
    size, most, between = wanted(facts), largest_row(facts), scatter_norm(facts)
    alone = math.hypot(most, 1)
    if norm == 1:
        alone = most * (size + 1) / 2 + 1
        between *= math.sqrt(size * (size + 3)) / 2
    return max(alone, between) if facts.adjacency.n_public else alone


def axes_noise(facts: Facts, event: GaussianEvent | LaplaceEvent, other: float = 0.0) -> AxesNoise:
    """Return the noise that an event stands for.

    `other` is a further scale that the lattice is to hold, in units of the ball.

    Rounding to the lattice moves two neighbours' entries apart by one step. BudgetError if the
    noise leaves no useful lattice.
    """
    size, laplace = wanted(facts), isinstance(event, LaplaceEvent)
    sensitivity = axes_sensitivity(facts, 1 if laplace else 2)
    rounding = size * (size + 1) / 2 if laplace else size
    # Laplace noise has the longer tail, and needs a few bits of room.
    lattice = choose_lattice(facts.columns, max(8 * event.multiplier * sensitivity, other))
    steps = event.multiplier * (sensitivity * lattice.radius**2 + rounding) * ROUND_UP
    diagonal = max(steps, SMALLEST_SCALE)
    off = max(steps if laplace else steps / math.sqrt(2), SMALLEST_SCALE)
    return AxesNoise(lattice, MomentNoise(diagonal, math.nan, diagonal, off))


def checked_eigenvals(eigenvals: object) -> None:
    """Refuse, with an ArgumentError, what is neither None nor "private"."""
    arguments.word("eigenvals", eigenvals, ("private", None))


def checked_purchase(eigenvals: object, share: object) -> None:
    """Refuse options that do not say whether, and for what share, the axes are bought."""
    checked_eigenvals(eigenvals)
    arguments.share("share", share, ", the eigenvalues' part of the budget; write share=0.2")


def hand_over_frame(
    card: Card,
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
        law = LAPLACE if isinstance(plan.events[-1], LaplaceEvent) else GAUSSIAN
        noisy = noised_moments(_inside(exact, frame, plan.lattice), plan, entropy, law)
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
        **release_terms(card, plan, exact.rows),
    )


def _inside(exact: Scatter, frame: Floats, lattice: Lattice) -> NDArray[Any]:
    """Round count and scatter inside the space to integers, as moments are."""
    unit = lattice.radius**2
    compressed = frame.T @ exact.matrix @ frame
    whole: NDArray[Any] = np.zeros((len(compressed) + 1,) * 2, dtype=object)
    whole[0, 0] = exact.complete * int(unit)
    rounded = [[round(value) for value in row] for row in (compressed * unit).tolist()]
    whole[1:, 1:] = np.array(rounded, dtype=object)
    return whole
