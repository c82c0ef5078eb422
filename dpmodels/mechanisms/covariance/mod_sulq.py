"""Gaussian noise on and above the diagonal with the calibration of MOD-SULQ.

Theorem
    The release is (ε, δ)-differentially private. The second moment's noise scale is the published
    one, with α = ε and d columns, for the sum over the rows, in which n cancels:

        nβ = (d + 1)/α · √(2 ln((d² + d)/(δ 2√(2π)))) + 1/√α.

    The number of rows and, where a mean is wanted, their sum are released along with it. The exact
    trade-off of the Gaussian mechanism at the joint multiplier of all three holds, and is what is
    charged: it is below what was asked, as the published scale is larger than it needs to be.
Sensitivity
    ``1/m² = max (‖Δ upper triangle‖²/σ² + Δcount²/σ₀² + ‖Δsum‖²/σ₁²)`` is at most ``Δ²/σ²`` of
    :func:`dpmodels.statistics.moment_sensitivity` at the weights ``σ/σ₀`` and ``σ/σ₁``.
Noise
    Independent discrete Gaussians. σ is the larger of nβ and what the exact trade-off asks of a
    joint release; σ₀ and σ₁ are what it asks. At ε = 1 and δ = 10⁻⁶ the published scale is 6 (5
    columns), 54 (50) and 111 (100) times what the second moment alone needs, and more for larger
    δ. Only for ε of 10⁴ and more is nothing left in it for the count and the mean.
Numerics
    exact: integer statistic, integer noise of exact law, then a division.
Source
    Chaudhuri, Sarwate, Sinha (2012), "Near-optimal differentially private principal components",
    NeurIPS, algorithm MOD-SULQ. Balle, Wang (2018) for what is charged.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import ClassVar

from dpmodels.design import PrivateDesign
from dpmodels.errors import BudgetError
from dpmodels.mechanisms.add_noise import (
    ROUND_UP,
    SMALLEST_SCALE,
    gaussian_scales,
    hand_over,
    lattice_for,
    noised_moments,
)
from dpmodels.mechanisms.protocol import Facts, Plan
from dpmodels.noise import Entropy
from dpmodels.noise.lattice import Lattice
from dpmodels.privacy import ApproxDP, GaussianEvent, Guarantee, gaussian_multiplier
from dpmodels.released import MechanismInfo, MomentNoise, MomentsRelease
from dpmodels.statistics import MomentWeights, Statistic, moment_sensitivity, moments


def published_scale(columns: int, guarantee: ApproxDP) -> float:
    """Return nβ, the published noise scale of the sum of ``x xᵀ`` over rows in the unit ball.

    Where δ is so large that the logarithm is negative it counts as zero.
    """
    size = (columns**2 + columns) / (guarantee.delta * 2 * math.sqrt(2 * math.pi))
    first = (columns + 1) / guarantee.eps * math.sqrt(2 * math.log(max(size, 1.0)))
    return first + 1 / math.sqrt(guarantee.eps)


@dataclass(frozen=True)
class ModSulq:
    """MOD-SULQ as published, for comparison; `Gauss` needs far less noise.

    Examples
    --------
    >>> from dpmodels.mechanisms import Facts
    >>> from dpmodels.privacy import adjacency
    >>> guarantee = ApproxDP(eps=1.0, delta=0.05)
    >>> plan = ModSulq().plan(Facts(10, adjacency("replace"), centred=False), guarantee)
    >>> round(plan.steps.off / plan.lattice.radius**2, 3)
    39.371
    """

    info: ClassVar[MechanismInfo] = MechanismInfo(
        name="mod_sulq",
        theorem="(eps, delta)-DP, charged at the exact Gaussian trade-off",
        sensitivity="L2 on and above the diagonal, with count and mean along",
        noise="discrete Gaussian, the published scale on and above the diagonal",
        numerics="exact lattice",
        source="Chaudhuri, Sarwate, Sinha (2012)",
    )

    def plan(self, facts: Facts, guarantee: Guarantee) -> Plan:
        """Calibrate the noise to a guarantee.

        BudgetError for other guarantees than (eps, delta), which the published scale is a function
        of; if the noise leaves no useful lattice.
        """
        if not isinstance(guarantee, ApproxDP):
            raise BudgetError(
                f"mechanism='mod_sulq' needs eps and delta, not {guarantee.describe()}; write "
                "eps=1.0, delta=1e-6, or mechanism='gauss'"
            )
        fine = gaussian_scales(facts, gaussian_multiplier(guarantee))
        exact_sigma = fine.steps.diagonal / fine.lattice.radius**2
        # One part in 10^12 covers the rounding of every product here.
        sigma = max(published_scale(facts.columns, guarantee) * ROUND_UP, exact_sigma)
        lattice, riders = lattice_for(*fine, sigma, SMALLEST_SCALE)
        scale = max(sigma * lattice.radius**2, SMALLEST_SCALE)
        steps = replace(riders, diagonal=scale, off=scale)
        event = GaussianEvent(_joint(facts, lattice, steps))
        return Plan(guarantee, (event,), lattice, facts, steps)

    def measure(self, design: PrivateDesign, plan: Plan) -> Statistic:
        """Compute the exact augmented moments."""
        return moments(design, plan.lattice, count_public=plan.facts.adjacency.n_public)

    def release(self, statistic: Statistic, plan: Plan, entropy: Entropy) -> MomentsRelease:
        """Add the planned noise to the exact moments."""
        exact, n_rows = statistic.cross()
        return hand_over(self.info, plan, noised_moments(exact, plan, entropy), n_rows)


def _joint(facts: Facts, lattice: Lattice, steps: MomentNoise) -> float:
    """Return the multiplier of all parts together, rounded down."""
    mean = steps.diagonal / steps.mean if facts.centred else 0.0
    weights = MomentWeights(steps.diagonal / steps.count, mean)
    sigma = steps.diagonal / lattice.radius**2
    return sigma / moment_sensitivity(facts.adjacency, weights) * (1 - 1e-13)
