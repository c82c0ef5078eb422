"""Isometric Gaussian noise, and the nearest matrix that a second moment can be.

Theorem
    As for `Gauss`: the exact trade-off of the Gaussian mechanism at multiplier σ/Δ. The projection
    is post-processing.
Sensitivity
    Δ of :func:`dpmodels.statistics.moment_sensitivity`, an inequality between integers.
Noise
    Independent discrete Gaussians in isometric coordinates, at least 2²⁰ steps: variance σ² on the
    diagonal of the second moment and σ²/2 off it. The noisy matrix is released with that law, and
    next to it the nearest positive semidefinite matrix, whose trace is at most the number of rows
    where that is public. The matrix before noise lies in that convex set, so the projection is
    never farther from it than the noisy matrix is.
Numerics
    exact: integer statistic, integer noise of exact law; everything else comes after the release.
Source
    Nikolov, Talwar, Zhang (2013), "The geometry of differential privacy: the sparse and
    approximate cases", STOC, for the projection. Dwork, Talwar, Thakurta, Zhang (2014), "Analyze
    Gauss", STOC, for Gaussian noise on the second moment.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from dpmodels.design import PrivateDesign
from dpmodels.mechanisms.add_noise import gaussian_scales, hand_over, noised_moments, trace_cap
from dpmodels.mechanisms.protocol import Facts, Plan
from dpmodels.noise import Entropy
from dpmodels.postprocess.denoise import nearest_psd
from dpmodels.privacy import GaussianEvent, Guarantee, gaussian_multiplier
from dpmodels.released import MechanismInfo, MomentsRelease
from dpmodels.statistics import Statistic, moments


@dataclass(frozen=True)
class Projection:
    """Gaussian mechanism followed by one projection.

    Examples
    --------
    >>> from dpmodels.mechanisms import Facts
    >>> from dpmodels.privacy import ZCDP, adjacency
    >>> plan = Projection().plan(Facts(3, adjacency("replace"), centred=False), ZCDP(0.5))
    >>> round(plan.steps.diagonal / plan.lattice.radius**2, 3)
    1.414
    """

    info: ClassVar[MechanismInfo] = MechanismInfo(
        name="projection",
        theorem="(eps, delta)-DP or rho-zCDP, exact Gaussian trade-off",
        sensitivity="L2 in isometric coordinates, sqrt(2)(1 + w^2/2) or sqrt(1 + w^2 + v^2)",
        noise="discrete Gaussian, variance s^2 on the diagonal and s^2/2 off it",
        numerics="exact lattice",
        source="Nikolov, Talwar, Zhang (2013)",
    )

    def plan(self, facts: Facts, guarantee: Guarantee) -> Plan:
        """Calibrate the noise; BudgetError for a pure guarantee: Gaussian noise gives none."""
        multiplier = gaussian_multiplier(guarantee)
        lattice, steps = gaussian_scales(facts, multiplier)
        return Plan(guarantee, (GaussianEvent(multiplier),), lattice, facts, steps)

    def measure(self, design: PrivateDesign, plan: Plan) -> Statistic:
        """Compute the exact augmented moments."""
        return moments(design, plan.lattice, count_public=plan.facts.adjacency.n_public)

    def release(self, statistic: Statistic, plan: Plan, entropy: Entropy) -> MomentsRelease:
        """Add the planned noise and project."""
        exact, n_rows = statistic.cross()
        noisy = noised_moments(exact, plan, entropy)
        estimate = nearest_psd(noisy.second, trace_cap(plan.facts, n_rows))
        return hand_over(self.info, plan, noisy, n_rows, estimate)
