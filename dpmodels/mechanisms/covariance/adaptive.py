"""A clipping radius found privately, and a release of the moments inside it.

Theorem
    The count, the trace and the moments inside the radius are Gaussian releases, the search for
    the radius is ε₁-differentially private; each may depend on the answers before it. Together
    they satisfy ρ-zCDP with the sum of their ρ, ε₁²/2 for the search, or (ε, δ)-differential
    privacy by the exact curve of their composition.
Sensitivity
    The trace changes by at most 1. What clipping to 2⁻ᵗ takes off the sum of squares changes by at
    most 1, for every t, an inequality between integers:
    :func:`dpmodels.mechanisms.clipping_radius.lost`. Rows magnified by 2ᵗ and held in the ball are
    rows of the ball: the increments between radii inside the one found are those of `Shells`, the
    moments those of `Gauss`, the eigenvalues those of `Separate`.
Noise
    Discrete Gaussian, at least 2²⁰ steps: 2 % of ρ for the count, or 15 % for the count and the
    sum of the rows; of the rest 5 % for the trace, 10 % for the search by discrete Laplace noise,
    85 % for increments between the radius, half and an eighth of it in even parts (up to 16
    columns a quarter, in parts of 0.5, 0.3 and 0.2). With ``denoise=None``, the published method,
    an eighth goes to the trace and to the search each; what is left to one matrix, its noise equal
    on and off the diagonal, or in halves to a matrix for the eigenvectors and to the eigenvalues,
    whichever has the smaller expected error by the released trace; no eigenvalue is negative and
    their sum is at most what clipped rows can have.
Numerics
    exact: integer statistic, integer noise of exact law. With ``denoise=None`` idealised, as the
    eigenvalues are computed in floating point, and the release's card says so.
Source
    Dong, Liang, Yi (2022), "Differentially private covariance revisited", NeurIPS, AdaptiveCov,
    for the radius and the choice of the two. Lyu, Su, Li (2017), "Understanding the sparse vector
    technique for differential privacy", PVLDB 10(6), for a search whose proof is sound. The
    increments inside the radius and what is made of them are this package's.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from dpmodels.design import PrivateDesign
from dpmodels.mechanisms.add_noise import ROOM, ROUND_DOWN, ROUND_UP, SMALLEST_SCALE, in_steps
from dpmodels.mechanisms.clipped_candidates import (
    DIAGONAL,
    HALF_DIAGONAL,
    HALF_OFF,
    OFF,
    OWN_SHARES,
    PUBLISHED_SHARES,
    denoised_error,
    released_inside,
)
from dpmodels.mechanisms.clipping_radius import (
    HALVINGS,
    TRACE,
    clipping_radius,
    likely_cap,
    reach_scales,
    sparse_scales,
)
from dpmodels.mechanisms.clipping_shells import (
    FEW,
    SHARES,
    noised_shells,
    shell_lattice,
    shell_scales,
    shells,
)
from dpmodels.mechanisms.eigenvalues import EIGENVALUES, eigenvalue_scale
from dpmodels.mechanisms.noisy_count import COUNT_SHARE, gaussian_count
from dpmodels.mechanisms.protocol import Facts, Plan
from dpmodels.noise import Entropy
from dpmodels.noise.lattice import Lattice
from dpmodels.postprocess import denoise_values
from dpmodels.postprocess.shells import accumulate
from dpmodels.privacy import (
    ZCDP,
    ApproxDP,
    Event,
    GaussianEvent,
    Guarantee,
    PureEvent,
    gaussian_multiplier,
    split_gaussian,
    total_eps,
)
from dpmodels.released import Card, MomentsRelease
from dpmodels.statistics import Statistic, clipped_moments
from dpmodels.statistics.moments import eigenvalue_sensitivity
from dpmodels.typing import Floats

# The search stops at a relative width of 2**-30.
STEPS = 36
# A choice: increments forgive a radius too large, so the search's noise is kept on that side.
CAUTION = 1.0


@dataclass(frozen=True)
class Adaptive:
    """Moments inside a privately found radius.

    Parameters
    ----------
    denoise : {"auto", "invariant", "spiked", "psd"} or None, default "auto"
        How the estimate is made of increments inside the radius. None is the published method
        instead.

    Examples
    --------
    >>> from dpmodels.mechanisms import Facts
    >>> from dpmodels.privacy import ZCDP, adjacency
    >>> plan = Adaptive().plan(Facts(3, adjacency("replace"), centred=False), ZCDP(0.5))
    >>> [event.describe() for event in plan.events]
    ['Gaussian, multiplier 1.05292', 'pure, eps 0.31305']
    """

    denoise: str | None = "auto"

    card: ClassVar[Card] = Card(
        name="adaptive",
        theorem="rho-zCDP, or (eps, delta)-DP by exact composition",
        sensitivity="of rows clipped to a privately found radius",
        noise="discrete Laplace in the search, then discrete Gaussian",
        numerics="exact lattice",
        source="Dong, Liang, Yi (2022), with increments inside the radius",
    )

    def plan(self, facts: Facts, guarantee: Guarantee) -> Plan:
        """Calibrate all parts of the noise to a guarantee.

        ArgumentError for an unknown word for `denoise`. BudgetError for a pure guarantee, which
        Gaussian noise does not give.
        """
        denoise_values(np.zeros(1), 0.0, self.denoise)
        first = COUNT_SHARE[facts.centred]
        own = PUBLISHED_SHARES if self.denoise is None else OWN_SHARES
        of_trace, searching, of_matrix = ((1 - first) * share for share in own)

        def events(rho: float) -> tuple[GaussianEvent, PureEvent]:
            gaussian = GaussianEvent(math.sqrt(0.5 / (rho * (1 - searching))))
            return gaussian, PureEvent(math.sqrt(2 * rho * searching))

        gaussian, search = events(largest_rho(guarantee, events))
        parts = split_gaussian(gaussian.multiplier * ROUND_UP, (first, of_trace, of_matrix))
        count = gaussian_count(facts, parts[0])
        widest = ROOM * max(sparse_scales(search.eps, monotone=not facts.adjacency.n_public))
        shelled = split_gaussian(parts[2], _shares(facts.columns))
        others = (count.rows, np.nan_to_num(count.total), parts[1], widest)
        lattice = shell_lattice(facts, shelled, *others)
        scales = reach_scales(facts.adjacency, search.eps, lattice)
        scales[TRACE] = max(parts[1] * lattice.radius**2, SMALLEST_SCALE)
        off = 1.0 if self.denoise is None else math.sqrt(0.5)
        scales |= _matrix_scales(facts, lattice, parts[2], off)
        scales |= shell_scales(facts, lattice, shelled)
        steps = in_steps(lattice, (*count, math.nan, math.nan), SMALLEST_SCALE)
        return Plan(guarantee, (gaussian, search), lattice, facts, steps, scales)

    def measure(self, design: PrivateDesign, plan: Plan) -> Statistic:
        """Compute the exact moments clipped to every radius that may be found."""
        last = HALVINGS + shells(plan.facts.columns)[-1]
        public = plan.facts.adjacency.n_public
        return clipped_moments(design, plan.lattice, last, count_public=public)

    def release(self, statistic: Statistic, plan: Plan, entropy: Entropy) -> MomentsRelease:
        """Find the radius, add the planned noise inside it, and estimate the moments."""

        def inside(exact: NDArray[Any], trace: float, cap: float | None) -> Floats:
            level = clipping_radius(
                exact, partial(denoised_error, plan, trace), plan, entropy, CAUTION
            )
            noisy = noised_shells(exact, level, plan, entropy)
            return accumulate(noisy, self.denoise, likely_cap(trace, cap, level, plan))

        own = None if self.denoise is None else inside
        return released_inside(self.card, statistic, plan, entropy, own)


def largest_rho(guarantee: Guarantee, events: Callable[[float], tuple[Event, ...]]) -> float:
    """Return a rho, as large as can be, whose events satisfy a guarantee.

    `events` takes rho and returns events of `total_rho` rho, which cost more where rho is larger.
    BudgetError for a pure guarantee, which Gaussian noise does not give.
    """
    multiplier = gaussian_multiplier(guarantee)
    if isinstance(guarantee, ZCDP):
        # Covers the rounding of the events.
        return guarantee.rho * ROUND_DOWN
    assert isinstance(guarantee, ApproxDP)
    low = high = 0.5 / multiplier**2

    def fits(rho: float) -> bool:
        return total_eps(events(rho), guarantee.delta) <= guarantee.eps

    while not fits(low):
        low /= 2
    while fits(high):
        high *= 2
    for _ in range(STEPS):
        middle = math.sqrt(low * high)
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low


def _shares(columns: int) -> tuple[float, ...]:
    """Return the shares of the increments; their noisy sum is not released here."""
    return SHARES if columns <= FEW else (1.0, 1.0, 1.0)


def _matrix_scales(
    facts: Facts, lattice: Lattice, multiplier: float, off: float
) -> dict[str, float]:
    """Return the noise of one release of a matrix, and of halves for it and its eigenvalues.

    `off` is the scale off the diagonal over that on it, √½ or more: with √½ the guarantee is
    exact, and more noise keeps it.
    """
    sigma = multiplier * eigenvalue_sensitivity(facts.adjacency, 2) * lattice.radius**2 * ROUND_UP
    half = multiplier * math.sqrt(2) * ROUND_UP
    return {
        DIAGONAL: max(sigma, SMALLEST_SCALE),
        OFF: max(off * sigma, SMALLEST_SCALE),
        HALF_DIAGONAL: max(sigma * math.sqrt(2), SMALLEST_SCALE),
        HALF_OFF: max(off * math.sqrt(2) * sigma, SMALLEST_SCALE),
        EIGENVALUES: eigenvalue_scale(facts.adjacency, lattice, half, 2, SMALLEST_SCALE),
    }
