"""A clipping radius found privately, and Laplace noise on the moments inside it.

Theorem
    The count, the trace and the moments inside the radius are Laplace releases, the search for the
    radius is pure; each may depend on the answers before it. Their ε add up, and their ε²/2 of
    zCDP. An (ε, δ) guarantee leaves its δ unused.
Sensitivity
    As told in ``adaptive.py``: the moments inside the radius found are those of `Laplace`, the
    eigenvalues those of `SeparatePure`.
Noise
    Discrete Laplace, at least 2¹⁰ steps: 2 % of the budget for the count, or 15 % for the count
    and the sum of the rows; of the rest 5 % for the trace, 10 % for the search, 85 % for the
    matrix on and above the diagonal. With ``denoise=None``, the published method, the parts of
    ``adaptive.py``.
Numerics
    exact: integer statistic, integer noise of exact law. With ``denoise=None`` idealised, and the
    release's card says so.
Source
    Dong, Liang, Yi (2022), "Differentially private covariance revisited", NeurIPS, for the radius
    and the choice of the two. Lyu, Su, Li (2017), "Understanding the sparse vector technique for
    differential privacy", PVLDB 10(6), for a search whose proof is sound.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from dpmodels.design import PrivateDesign
from dpmodels.mechanisms.add_noise import (
    LAPLACE,
    ROOM,
    ROUND_UP,
    SMALLEST_LAPLACE,
    laplace_multipliers,
    noised_symmetric,
)
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
from dpmodels.mechanisms.clipping_shells import MOST_BITS
from dpmodels.mechanisms.eigenvalues import EIGENVALUES, eigenvalue_scale
from dpmodels.mechanisms.noisy_count import COUNT_SHARE, CountNoise, laplace_count
from dpmodels.mechanisms.protocol import Facts, Plan
from dpmodels.noise import Entropy
from dpmodels.noise.lattice import Lattice, choose_lattice
from dpmodels.postprocess import denoise, denoise_values
from dpmodels.privacy import Guarantee, LaplaceEvent, PureEvent
from dpmodels.released import Card, MomentNoise, MomentsRelease
from dpmodels.statistics import MomentWeights, Statistic, clipped_moments
from dpmodels.statistics.moments import absolute_sensitivity
from dpmodels.typing import Floats


@dataclass(frozen=True)
class AdaptivePure:
    """Moments inside a privately found radius, with Laplace noise.

    Parameters
    ----------
    denoise : {"auto", "invariant", "spiked", "psd"} or None, default "auto"
        How the noisy matrix is denoised. None is the published method instead.

    Examples
    --------
    >>> from dpmodels.mechanisms import Facts
    >>> from dpmodels.privacy import PureDP, adjacency
    >>> plan = AdaptivePure().plan(Facts(3, adjacency("replace"), centred=False), PureDP(1.0))
    >>> [event.describe() for event in plan.events[1:]]
    ['Laplace, multiplier 20.4082', 'pure, eps 0.098', 'Laplace, multiplier 1.20048']
    """

    denoise: str | None = "auto"

    card: ClassVar[Card] = Card(
        name="adaptive_pure",
        theorem="eps-DP, or zCDP at the sum of all parts' eps^2/2",
        sensitivity="of rows clipped to a privately found radius",
        noise="discrete Laplace",
        numerics="exact lattice",
        source="Dong, Liang, Yi (2022) with Laplace noise, denoised",
    )

    def plan(self, facts: Facts, guarantee: Guarantee) -> Plan:
        """Calibrate all parts of the noise to a guarantee.

        ArgumentError for an unknown word for `denoise`. BudgetError if the noise leaves no useful
        lattice.
        """
        denoise_values(np.zeros(1), 0.0, self.denoise)
        first = COUNT_SHARE[facts.centred]
        own = PUBLISHED_SHARES if self.denoise is None else OWN_SHARES
        shares = (first, *((1 - first) * share for share in own))
        counting, of_trace, searching, whole = laplace_multipliers(guarantee, shares)
        count = laplace_count(facts, 1 / (counting * ROUND_UP))
        lattice = _lattice(facts, count, of_trace, searching, whole)
        scales = reach_scales(facts.adjacency, 1 / searching, lattice)
        scales[TRACE] = _steps(of_trace, lattice)
        scales |= _matrix_scales(facts, lattice, whole)
        mean = _steps(count.total, lattice) if facts.centred else math.nan
        steps = MomentNoise(_steps(count.rows, lattice), mean, math.nan, math.nan)
        # Two halves of a pure budget are no Laplace release, but as private as one.
        matrix = LaplaceEvent(whole) if self.denoise is not None else PureEvent(1 / whole)
        first_parts = LaplaceEvent(counting), LaplaceEvent(of_trace), PureEvent(1 / searching)
        return Plan(guarantee, (*first_parts, matrix), lattice, facts, steps, scales)

    def measure(self, design: PrivateDesign, plan: Plan) -> Statistic:
        """Compute the exact moments clipped to every radius that may be found."""
        public = plan.facts.adjacency.n_public
        return clipped_moments(design, plan.lattice, HALVINGS, count_public=public)

    def release(self, statistic: Statistic, plan: Plan, entropy: Entropy) -> MomentsRelease:
        """Find the radius, add the planned noise inside it, and estimate the moments."""

        def inside(exact: NDArray[Any], trace: float, cap: float | None) -> Floats:
            error = partial(denoised_error, plan, trace, law=LAPLACE)
            level = clipping_radius(exact, error, plan, entropy)
            unit, scale = 4.0**level * plan.lattice.steps**2, plan.scales[OFF]
            noisy = noised_symmetric(exact[level, 1:, 1:], scale, scale, entropy, LAPLACE) / unit
            most = likely_cap(trace, cap, level, plan, LAPLACE)
            return denoise(noisy, LAPLACE.sd * scale / unit, self.denoise, most)

        own = None if self.denoise is None else inside
        return released_inside(self.card, statistic, plan, entropy, own, LAPLACE)


def _steps(scale: float, lattice: Lattice) -> float:
    """Return a scale, given in squared units of the ball, in lattice steps squared."""
    return max(scale * lattice.radius**2 * ROUND_UP, SMALLEST_LAPLACE)


def _alone(facts: Facts) -> float:
    """Return the L1 sensitivity of the second moment on and above the diagonal."""
    return absolute_sensitivity(facts.adjacency, facts.columns, MomentWeights(0.0, 0.0))


def _lattice(facts: Facts, count: CountNoise, trace: float, search: float, whole: float) -> Lattice:
    """Return a lattice on which all noise fits 64-bit integers."""
    searching = max(sparse_scales(1 / search, monotone=not facts.adjacency.n_public))
    total = float(np.nan_to_num(count.total))
    widest = max(count.rows, total, trace, searching, 2 * whole * _alone(facts))
    bits = choose_lattice(facts.columns, ROOM * widest).bits
    return Lattice(min(bits, MOST_BITS), facts.columns)


def _matrix_scales(facts: Facts, lattice: Lattice, whole: float) -> dict[str, float]:
    """Return the noise of one release of a matrix, and of halves for it and its eigenvalues."""
    full, half = (_steps(each * _alone(facts), lattice) for each in (whole, 2 * whole))
    values = eigenvalue_scale(facts.adjacency, lattice, 2 * whole, 1, SMALLEST_LAPLACE)
    return {
        DIAGONAL: full,
        OFF: full,
        HALF_DIAGONAL: half,
        HALF_OFF: half,
        EIGENVALUES: values,
    }
