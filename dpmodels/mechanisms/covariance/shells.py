"""Gaussian noise on the increments between public clipping radii, in proportion to each.

Theorem
    The release is (ε, δ)-differentially private with the exact trade-off of the Gaussian
    mechanism, or ρ-zCDP, for either adjacency. The parts, each in units of its own noise, are one
    vector of L2 sensitivity 1/multiplier; the estimate is post-processing.
Sensitivity
    With S_r the second moment of the rows clipped to radius r, the increments are S_1 - S_½, S_½ -
    S_¼ and S_¼, or with ⅛ for ¼ beyond 16 columns: what one row adds has norm 1 - ¼, ¼ - 1/16 and
    1/16 at most. Each has its trace as one more coordinate. The bound, and what rounding adds to
    it, is proved at :func:`dpmodels.statistics.clipped.increment_sensitivity`, that of the
    count and the sum of the rows at :func:`dpmodels.mechanisms.add_noise.gaussian_count`.
Noise
    Independent discrete Gaussians on the integers of each increment, of scale σ on the diagonal,
    σ/√2 off it, σ/w for the trace of weight w, in proportion to its sensitivity. The increments
    take 0.5, 0.3 and 0.2 of the budget from the outside in, after 2 % for the count, or 15 % for
    the count and the sum. No scale is below 2²⁰ steps. The released second moment is the sum of
    the increments: its variance on the diagonal is the sum of theirs, half of that off it.
Numerics
    exact: integer statistic, integer noise of exact law; the division to real numbers and the
    estimate come after the release.
Source
    This package. Where rows are shorter than the public bound, the inner increments have little
    noise, and hold the shape of the outer ones, which is predicted from them; only the remainder
    is denoised. Clipping to a smaller radius for less noise is of Dong, Liang, Yi (2022),
    "Differentially private covariance revisited", NeurIPS. Canonne, Kamath, Steinke (2020), "The
    discrete Gaussian for differential privacy", NeurIPS, for the noise.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from dpmodels.design import PrivateDesign
from dpmodels.mechanisms.add_noise import hand_over
from dpmodels.mechanisms.clipping_shells import accumulated, shell_noise, shells
from dpmodels.mechanisms.protocol import Facts, Plan
from dpmodels.noise import Entropy
from dpmodels.postprocess import denoise_values
from dpmodels.privacy import GaussianEvent, Guarantee, gaussian_multiplier
from dpmodels.released import MechanismInfo, MomentsRelease
from dpmodels.statistics import Statistic, clipped_moments


@dataclass(frozen=True)
class Shells:
    """Increments of the second moment between clipping radii.

    Parameters
    ----------
    denoise : {"auto", "invariant", "spiked", "psd"} or None, default "auto"
        How the estimate is made of them; None shrinks nothing.

    Examples
    --------
    >>> from dpmodels.mechanisms import Facts
    >>> from dpmodels.privacy import ZCDP, adjacency
    >>> plan = Shells().plan(Facts(3, adjacency("replace"), centred=False), ZCDP(0.5))
    >>> round(plan.steps.diagonal / plan.lattice.radius**2, 2)
    1.6
    """

    denoise: str | None = "auto"

    info: ClassVar[MechanismInfo] = MechanismInfo(
        name="shells",
        theorem="(eps, delta)-DP or rho-zCDP, exact Gaussian trade-off",
        sensitivity="L2 in isometric coordinates, sqrt(2)(r^2 - r'^2) for radii r > r'",
        noise="discrete Gaussian on each increment, in proportion to its sensitivity",
        numerics="exact lattice",
        source="increments between clipping radii; this package",
    )

    def plan(self, facts: Facts, guarantee: Guarantee) -> Plan:
        """Calibrate the noise to a guarantee.

        ArgumentError for an unknown word for `denoise`. BudgetError for a pure guarantee, which
        Gaussian noise does not give.
        """
        denoise_values(np.zeros(1), 0.0, self.denoise)
        multiplier = gaussian_multiplier(guarantee)
        lattice, steps, scales = shell_noise(facts, multiplier)
        return Plan(guarantee, (GaussianEvent(multiplier),), lattice, facts, steps, scales)

    def measure(self, design: PrivateDesign, plan: Plan) -> Statistic:
        """Compute the exact moments clipped to each radius."""
        public, last = plan.facts.adjacency.n_public, shells(plan.facts.columns)[-1]
        return clipped_moments(design, plan.lattice, last, count_public=public)

    def release(self, statistic: Statistic, plan: Plan, entropy: Entropy) -> MomentsRelease:
        """Add the planned noise to every increment, and sum them up."""
        moments, estimate, n_rows = accumulated(statistic, plan, entropy, self.denoise)
        return hand_over(self.info, plan, moments, n_rows, estimate)
