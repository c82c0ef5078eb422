"""Gaussian noise on the augmented moments, in isometric coordinates.

Theorem
    The release is (ε, δ)-differentially private with the exact trade-off of the Gaussian mechanism
    at multiplier σ/Δ, or ρ-zCDP with ρ = Δ²/(2σ²), for either adjacency. A matrix is written as
    ``svec(S) = (S_ii, √2 S_ij)``, so that ``‖svec(S)‖₂ = ‖S‖_F`` and noise of scale σ in every
    coordinate has variance σ² on the diagonal and σ²/2 off it.
Sensitivity
    Δ of :func:`dpmodels.statistics.moment_sensitivity`, an inequality between integers: rows are
    integer vectors of norm at most ``2**bits``, and their moments are summed exactly.
Noise
    Independent discrete Gaussians on the same integers, of scale σ times the squared lattice
    radius for the diagonal, σ/√2 off it, σ/w₀ and σ/w₁ for the count and the sum of the rows.
    Every scale is at least 2²⁰ steps, where the discrete law's δ(ε) exceeds the continuous one's
    by less than 10⁻¹¹ of itself (the error of a Riemann sum, of order σ⁻²), which the
    calibration's margin covers; the zCDP guarantee needs no such step. With ``fourth`` moments,
    a second release about the released mean has 7 % of the budget, and both compose as
    ``1/m² = Σ 1/m_j²`` (Theorem 66).
Numerics
    exact: integer statistic, integer noise of exact law, then a division.
Source
    Dwork, Talwar, Thakurta, Zhang (2014), "Analyze Gauss", STOC, for Gaussian noise on the second
    moment; the isometric coordinates halve the variance off the diagonal at the same guarantee.
    Balle, Wang (2018) for the calibration. Canonne, Kamath, Steinke (2020), "The discrete Gaussian
    for differential privacy", NeurIPS, for the noise.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from dpmodels.arguments import boolean
from dpmodels.design import PrivateDesign
from dpmodels.mechanisms.add_noise import (
    LAPLACE,
    ROUND_UP,
    SMALLEST_SCALE,
    gaussian_scales,
    hand_over,
    laplace_multipliers,
    laplace_scales,
    lattice_for,
    noised_moments,
)
from dpmodels.mechanisms.protocol import Facts, Plan
from dpmodels.mechanisms.tails import FOURTH, TAIL_SHARES, fourth_scale, tails_about_mean
from dpmodels.noise import Entropy
from dpmodels.privacy import (
    GaussianEvent,
    Guarantee,
    LaplaceEvent,
    gaussian_multiplier,
    split_gaussian,
)
from dpmodels.released import MechanismInfo, MomentsRelease
from dpmodels.statistics import Passes, Statistic, moments
from dpmodels.statistics.statistic import measured_as


@dataclass(frozen=True)
class Gauss:
    """Gaussian mechanism for a covariance, second moment and mean.

    Parameters
    ----------
    fourth : bool
        Whether 7 % of the budget buys fourth moments, for short confidence intervals: the noise of
        the moments is 1.04 times as large, and the rows are read twice. Needs the mean.

    Examples
    --------
    >>> from dpmodels.mechanisms import Facts, Gauss
    >>> from dpmodels.privacy import ZCDP, adjacency
    >>> plan = Gauss().plan(Facts(3, adjacency("replace"), centred=False), ZCDP(0.5))
    >>> round(plan.steps.diagonal / plan.lattice.radius**2, 3)
    1.414
    """

    info: ClassVar[MechanismInfo] = MechanismInfo(
        name="gauss",
        theorem="(eps, delta)-DP or rho-zCDP, exact Gaussian trade-off",
        sensitivity="L2 in isometric coordinates, sqrt(2)(1 + w^2/2) or sqrt(1 + w^2 + v^2)",
        noise="discrete Gaussian, variance s^2 on the diagonal and s^2/2 off it",
        numerics="exact lattice",
        source="Dwork et al. (2014) in isometric coordinates",
    )

    fourth: bool = False

    def __post_init__(self) -> None:
        boolean("fourth", self.fourth)

    @property
    def passes(self) -> str:
        """Whether the rows are read once, or more often."""
        return "many" if self.fourth else "one"

    def plan(self, facts: Facts, guarantee: Guarantee) -> Plan:
        """Calibrate the noise; BudgetError for a pure guarantee: Gaussian noise gives none."""
        multiplier = gaussian_multiplier(guarantee)
        if not self.fourth or not facts.centred or facts.unit:
            lattice, steps = gaussian_scales(facts, multiplier)
            return Plan(guarantee, (GaussianEvent(multiplier),), lattice, facts, steps)
        share = TAIL_SHARES[FOURTH]
        both = split_gaussian(multiplier * ROUND_UP, (1 - share, share))
        lattice, steps = lattice_for(*gaussian_scales(facts, both[0]), both[1], SMALLEST_SCALE)
        scales = {FOURTH: fourth_scale(both[1], lattice.radius)}
        events = tuple(map(GaussianEvent, both))
        return Plan(guarantee, events, lattice, facts, steps, scales)

    def measure(self, design: PrivateDesign, plan: Plan) -> Statistic:
        """Compute the exact augmented moments, or prepare to read the rows twice."""
        n_public = plan.facts.adjacency.n_public
        if FOURTH in plan.scales:
            return Passes((design,), plan.lattice, count_public=n_public)
        return moments(design, plan.lattice, count_public=n_public)

    def release(self, statistic: Statistic, plan: Plan, entropy: Entropy) -> MomentsRelease:
        """Add the planned noise to the exact moments, and to fourth moments about their mean."""
        if FOURTH not in plan.scales:
            exact, n_rows = statistic.cross()
            return hand_over(self.info, plan, noised_moments(exact, plan, entropy), n_rows)
        passes = measured_as(Passes, statistic, "moments")
        exact, n_rows = passes.measured(moments).cross()
        noisy = noised_moments(exact, plan, entropy)
        tails = tails_about_mean(passes, noisy, plan, entropy)
        return replace(hand_over(self.info, plan, noisy, n_rows), tails=tails)


@dataclass(frozen=True)
class Laplace:
    """Laplace mechanism for a covariance, second moment and mean.

    Laplace noise on the augmented moments, the second moment on and above the diagonal.

    Theorem
        The release is ε-differentially private with ε = Δ/b, for either adjacency, and so ε²/2-zCDP
        (Bun and Steinke 2016). An (ε, δ) guarantee leaves its δ unused.
    Sensitivity
        Δ of :func:`dpmodels.statistics.moments.absolute_sensitivity`, proved there: with d columns
        and the upper triangle alone a row adds at most (d + 1)/2, and two complete rows differ by
        at most the smaller of d/√2 + 1 and √(d(d + 3)/2), where d + 1 is twice a row's own. Reached
        to 5 % by four clusters of coordinates, ``√(2/d) (cos t, sin t)`` at t = π/8 and quarter
        turns from it, which give (d + 1)/√2. It is an inequality between reals, hence holds for the
        integers that stand for them.
    Noise
        Independent discrete Laplace noise of scale b times the squared lattice radius on and above
        the diagonal, b/w₀ and b/w₁ for the count and the sum of the rows, with the weights of
        ``absolute_weights``. Every scale is at least 2¹⁰ steps, where the standard deviation is √2
        times the scale to 10⁻⁷.
    Numerics
        exact: integer statistic, integer noise of exact law, then a division.
    Source
        Dwork, McSherry, Nissim, Smith (2006), "Calibrating noise to sensitivity in private data
        analysis", TCC. Ghosh, Roughgarden, Sundararajan (2009), "Universally utility-maximizing
        privacy mechanisms", STOC, for the discrete law.

    Examples
    --------
    >>> from dpmodels.mechanisms import Facts
    >>> from dpmodels.privacy import PureDP, adjacency
    >>> plan = Laplace().plan(Facts(2, adjacency("replace"), centred=False), PureDP(1.0))
    >>> round(plan.steps.diagonal / plan.lattice.radius**2, 3)
    2.236
    """

    info: ClassVar[MechanismInfo] = MechanismInfo(
        name="laplace",
        theorem="eps-DP, eps^2/2-zCDP",
        sensitivity="L1 on and above the diagonal, min(d/sqrt(2) + 1, sqrt(d(d + 3)/2)) or "
        "(d + 1)/2, with count and mean along",
        noise="discrete Laplace, one scale on and above the diagonal",
        numerics="exact lattice",
        source="Dwork et al. (2006)",
    )

    def plan(self, facts: Facts, guarantee: Guarantee) -> Plan:
        """Calibrate the noise to a guarantee. BudgetError if the noise leaves no useful lattice."""
        (multiplier,) = laplace_multipliers(guarantee)
        lattice, steps = laplace_scales(facts, multiplier)
        return Plan(guarantee, (LaplaceEvent(multiplier),), lattice, facts, steps)

    def measure(self, design: PrivateDesign, plan: Plan) -> Statistic:
        """Compute the exact augmented moments."""
        return moments(design, plan.lattice, count_public=plan.facts.adjacency.n_public)

    def release(self, statistic: Statistic, plan: Plan, entropy: Entropy) -> MomentsRelease:
        """Add the planned noise to the exact moments."""
        exact, n_rows = statistic.cross()
        return hand_over(self.info, plan, noised_moments(exact, plan, entropy, LAPLACE), n_rows)
