"""Independent equal Gaussian noise on and above the diagonal, as published.

Theorem
    The release is (ε, δ)-differentially private with the exact trade-off of the Gaussian mechanism
    at multiplier σ/Δ, or ρ-zCDP with ρ = Δ²/(2σ²), for either adjacency. The noise on and above
    the diagonal is independent and of one scale σ; the entries below it are copies.
Sensitivity
    The upper triangle of a symmetric matrix has an L2 norm of at most the Frobenius norm, so Δ of
    :func:`dpmodels.statistics.moment_sensitivity` holds. It is attained: rows ``(a, b)`` and
    ``(b, a)`` differ in the diagonal alone, and their inner product 2ab may be any number in [-1,
    1]; ``e₁`` and ``e₂`` give √2.
Noise
    Independent discrete Gaussians of scale σ times the squared lattice radius on and above the
    diagonal, σ/w₀ and σ/w₁ for the count and the sum of the rows, with the weights of
    ``moment_weights``; every scale is at least 2²⁰ steps. The paper has n known and no mean; both
    ride along here within the same guarantee, and σ is the least that the guarantee allows where
    the paper has a sufficient one. Off the diagonal the variance is twice that of isometric noise,
    which is all that isometric coordinates change.
Numerics
    exact: integer statistic, integer noise of exact law, then a division.
Source
    Dwork, Talwar, Thakurta, Zhang (2014), "Analyze Gauss: optimal bounds for privacy-preserving
    principal component analysis", STOC. Balle, Wang (2018) for the calibration.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from dpmodels.design import PrivateDesign
from dpmodels.mechanisms.add_noise import gaussian_scales, hand_over, noised_moments
from dpmodels.mechanisms.protocol import Facts, Plan
from dpmodels.noise import Entropy
from dpmodels.privacy import GaussianEvent, Guarantee, gaussian_multiplier
from dpmodels.released import MechanismInfo, MomentsRelease
from dpmodels.statistics import Statistic, moments


@dataclass(frozen=True)
class AnalyzeGauss:
    """Analyze Gauss: one noise scale for all entries of the second moment.

    Examples
    --------
    >>> from dpmodels.mechanisms import Facts
    >>> from dpmodels.privacy import ZCDP, adjacency
    >>> plan = AnalyzeGauss().plan(Facts(3, adjacency("replace"), centred=False), ZCDP(0.5))
    >>> round(plan.steps.off / plan.lattice.radius**2, 3)
    1.414
    """

    info: ClassVar[MechanismInfo] = MechanismInfo(
        name="analyze_gauss",
        theorem="(eps, delta)-DP or rho-zCDP, exact Gaussian trade-off",
        sensitivity="L2 on and above the diagonal, sqrt(2)(1 + w^2/2) or sqrt(1 + w^2 + v^2)",
        noise="discrete Gaussian, variance s^2 on and above the diagonal",
        numerics="exact lattice",
        source="Dwork et al. (2014)",
    )

    def plan(self, facts: Facts, guarantee: Guarantee) -> Plan:
        """Calibrate the noise; BudgetError for a pure guarantee: Gaussian noise gives none."""
        multiplier = gaussian_multiplier(guarantee)
        lattice, steps = gaussian_scales(facts, multiplier)
        steps = replace(steps, off=steps.diagonal)
        return Plan(guarantee, (GaussianEvent(multiplier),), lattice, facts, steps)

    def measure(self, design: PrivateDesign, plan: Plan) -> Statistic:
        """Compute the exact augmented moments."""
        return moments(design, plan.lattice, count_public=plan.facts.adjacency.n_public)

    def release(self, statistic: Statistic, plan: Plan, entropy: Entropy) -> MomentsRelease:
        """Add the planned noise to the exact moments."""
        exact, n_rows = statistic.cross()
        return hand_over(self.info, plan, noised_moments(exact, plan, entropy), n_rows)
