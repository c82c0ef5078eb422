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

import math
from dataclasses import dataclass, replace
from typing import ClassVar

from dpmodels import privacy
from dpmodels.arguments import boolean
from dpmodels.design import PrivateDesign
from dpmodels.errors import BudgetError
from dpmodels.mechanisms import add_noise
from dpmodels.mechanisms.clipping_shells import FOURTH, TAIL_SHARES, fourth_scale, tails_about_mean
from dpmodels.mechanisms.measures import OfMoments
from dpmodels.mechanisms.protocol import Facts, Plan
from dpmodels.noise import Entropy
from dpmodels.postprocess.denoise import nearest_psd
from dpmodels.released import MechanismInfo, MomentsRelease
from dpmodels.statistics import MomentWeights, Passes, Statistic, moment_sensitivity, moments
from dpmodels.statistics.statistic import measured_as


class _OneRelease(OfMoments):
    info: ClassVar[MechanismInfo]
    law: ClassVar[add_noise.Law] = add_noise.GAUSSIAN

    def plan(self, facts: Facts, guarantee: privacy.Guarantee) -> Plan:
        """Calibrate the noise; BudgetError for a pure guarantee: Gaussian noise gives none."""
        return add_noise.one_release(facts, guarantee, self.law)

    def release(self, statistic: Statistic, plan: Plan, entropy: Entropy) -> MomentsRelease:
        """Add the planned noise to the exact moments."""
        exact, n_rows = statistic.cross()
        return add_noise.hand_over(
            self.info, plan, add_noise.noised_moments(exact, plan, entropy, self.law), n_rows
        )


@dataclass(frozen=True)
class Gauss(_OneRelease):
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

    def plan(self, facts: Facts, guarantee: privacy.Guarantee) -> Plan:
        """Calibrate the noise; BudgetError for a pure guarantee: Gaussian noise gives none."""
        if not self.fourth or not facts.centred or facts.unit:
            return super().plan(facts, guarantee)
        share, multiplier = TAIL_SHARES[FOURTH], privacy.gaussian_multiplier(guarantee)
        both = privacy.split_gaussian(multiplier * add_noise.ROUND_UP, (1 - share, share))
        lattice, steps = add_noise.lattice_for(
            *add_noise.gaussian_scales(facts, both[0]), both[1], add_noise.SMALLEST_SCALE
        )
        scales = {FOURTH: fourth_scale(both[1], lattice.radius)}
        events = tuple(map(privacy.GaussianEvent, both))
        return Plan(guarantee, events, lattice, facts, steps, scales)

    def measure(self, design: PrivateDesign, plan: Plan) -> Statistic:
        """Compute the exact augmented moments, or prepare to read the rows twice."""
        if FOURTH not in plan.scales:
            return super().measure(design, plan)
        return Passes((design,), plan.lattice)

    def release(self, statistic: Statistic, plan: Plan, entropy: Entropy) -> MomentsRelease:
        """Add the planned noise to the exact moments, and to fourth moments about their mean."""
        if FOURTH not in plan.scales:
            return super().release(statistic, plan, entropy)
        passes = measured_as(Passes, statistic, "moments")
        exact, n_rows = passes.measured(moments).cross()
        noisy = add_noise.noised_moments(exact, plan, entropy)
        tails = tails_about_mean(passes, noisy, plan, entropy)
        return replace(add_noise.hand_over(self.info, plan, noisy, n_rows), tails=tails)


@dataclass(frozen=True)
class Laplace(_OneRelease):
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
    law = add_noise.LAPLACE

    def plan(self, facts: Facts, guarantee: privacy.Guarantee) -> Plan:
        """Calibrate the noise to a guarantee. BudgetError if the noise leaves no useful lattice."""
        return super().plan(facts, guarantee)


@dataclass(frozen=True)
class Projection(_OneRelease):
    """Gaussian mechanism followed by one projection.

    Isometric Gaussian noise, and the nearest matrix that a second moment can be.

    Theorem
        As for `Gauss`: the exact trade-off of the Gaussian mechanism at multiplier σ/Δ. The
        projection is post-processing.
    Sensitivity
        Δ of :func:`dpmodels.statistics.moment_sensitivity`, an inequality between integers.
    Noise
        Independent discrete Gaussians in isometric coordinates, at least 2²⁰ steps: variance σ² on
        the diagonal of the second moment and σ²/2 off it. The noisy matrix is released with that
        law, and next to it the nearest positive semidefinite matrix, whose trace is at most the
        number of rows where that is public. The matrix before noise lies in that convex set, so the
        projection is never farther from it than the noisy matrix is.
    Numerics
        exact: integer statistic, integer noise of exact law; everything else comes after the
        release.
    Source
        Nikolov, Talwar, Zhang (2013), "The geometry of differential privacy: the sparse and
        approximate cases", STOC, for the projection. Dwork, Talwar, Thakurta, Zhang (2014),
        "Analyze Gauss", STOC, for Gaussian noise on the second moment.

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

    def release(self, statistic: Statistic, plan: Plan, entropy: Entropy) -> MomentsRelease:
        """Add the planned noise and project."""
        exact, n_rows = statistic.cross()
        noisy = add_noise.noised_moments(exact, plan, entropy)
        estimate = nearest_psd(noisy.second, add_noise.trace_cap(plan.facts, n_rows))
        return add_noise.hand_over(self.info, plan, noisy, n_rows, estimate)


@dataclass(frozen=True)
class AnalyzeGauss(_OneRelease):
    """Analyze Gauss: one noise scale for all entries of the second moment.

    Independent equal Gaussian noise on and above the diagonal, as published.

    Theorem
        The release is (ε, δ)-differentially private with the exact trade-off of the Gaussian
        mechanism at multiplier σ/Δ, or ρ-zCDP with ρ = Δ²/(2σ²), for either adjacency. The noise on
        and above the diagonal is independent and of one scale σ; the entries below it are copies.
    Sensitivity
        The upper triangle of a symmetric matrix has an L2 norm of at most the Frobenius norm, so Δ
        of :func:`dpmodels.statistics.moment_sensitivity` holds. It is attained: rows ``(a, b)`` and
        ``(b, a)`` differ in the diagonal alone, and their inner product 2ab may be any number in
        [-1, 1]; ``e₁`` and ``e₂`` give √2.
    Noise
        Independent discrete Gaussians of scale σ times the squared lattice radius on and above the
        diagonal, σ/w₀ and σ/w₁ for the count and the sum of the rows, with the weights of
        ``moment_weights``; every scale is at least 2²⁰ steps. The paper has n known and no mean;
        both ride along here within the same guarantee, and σ is the least that the guarantee allows
        where the paper has a sufficient one. Off the diagonal the variance is twice that of
        isometric noise, which is all that isometric coordinates change.
    Numerics
        exact: integer statistic, integer noise of exact law, then a division.
    Source
        Dwork, Talwar, Thakurta, Zhang (2014), "Analyze Gauss: optimal bounds for privacy-preserving
        principal component analysis", STOC. Balle, Wang (2018) for the calibration.

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

    def plan(self, facts: Facts, guarantee: privacy.Guarantee) -> Plan:
        """Calibrate the noise; BudgetError for a pure guarantee: Gaussian noise gives none."""
        plan = super().plan(facts, guarantee)
        return replace(plan, steps=replace(plan.steps, off=plan.steps.diagonal))


def published_scale(columns: int, guarantee: privacy.ApproxDP) -> float:
    """Return nβ, the published noise scale of the sum of ``x xᵀ`` over rows in the unit ball.

    Where δ is so large that the logarithm is negative it counts as zero.
    """
    size = (columns**2 + columns) / (guarantee.delta * 2 * math.sqrt(2 * math.pi))
    first = (columns + 1) / guarantee.eps * math.sqrt(2 * math.log(max(size, 1.0)))
    return first + 1 / math.sqrt(guarantee.eps)


@dataclass(frozen=True)
class ModSulq(_OneRelease):
    """MOD-SULQ as published, for comparison; `Gauss` needs far less noise.

    Gaussian noise on and above the diagonal with the calibration of MOD-SULQ.

    Theorem
        The release is (ε, δ)-differentially private. The second moment's noise scale is the
        published one, with α = ε and d columns, for the sum over the rows, in which n cancels:

            nβ = (d + 1)/α · √(2 ln((d² + d)/(δ 2√(2π)))) + 1/√α.

        The number of rows and, where a mean is wanted, their sum are released along with it. The
        exact trade-off of the Gaussian mechanism at the joint multiplier of all three holds, and is
        what is charged: it is below what was asked, as the published scale is larger than it needs
        to be.
    Sensitivity
        ``1/m² = max (‖Δ upper triangle‖²/σ² + Δcount²/σ₀² + ‖Δsum‖²/σ₁²)`` is at most ``Δ²/σ²`` of
        :func:`dpmodels.statistics.moment_sensitivity` at the weights ``σ/σ₀`` and ``σ/σ₁``.
    Noise
        Independent discrete Gaussians. σ is the larger of nβ and what the exact trade-off asks of a
        joint release; σ₀ and σ₁ are what it asks. At ε = 1 and δ = 10⁻⁶ the published scale is 6 (5
        columns), 54 (50) and 111 (100) times what the second moment alone needs, and more for
        larger δ. Only for ε of 10⁴ and more is nothing left in it for the count and the mean.
    Numerics
        exact: integer statistic, integer noise of exact law, then a division.
    Source
        Chaudhuri, Sarwate, Sinha (2012), "Near-optimal differentially private principal
        components", NeurIPS, algorithm MOD-SULQ. Balle, Wang (2018) for what is charged.

    Examples
    --------
    >>> from dpmodels.mechanisms import Facts
    >>> from dpmodels.privacy import ApproxDP, adjacency
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

    def plan(self, facts: Facts, guarantee: privacy.Guarantee) -> Plan:
        """Calibrate the noise to a guarantee.

        BudgetError for other guarantees than (eps, delta), which the published scale is a function
        of; if the noise leaves no useful lattice.
        """
        if not isinstance(guarantee, privacy.ApproxDP):
            raise BudgetError(
                f"mechanism='mod_sulq' needs eps and delta, not {guarantee.describe()}; write "
                "eps=1.0, delta=1e-6, or mechanism='gauss'"
            )
        fine = add_noise.gaussian_scales(facts, privacy.gaussian_multiplier(guarantee))
        exact_sigma = fine.steps.diagonal / fine.lattice.radius**2
        # One part in 10^12 covers the rounding of every product here.
        sigma = max(published_scale(facts.columns, guarantee) * add_noise.ROUND_UP, exact_sigma)
        lattice, riders = add_noise.lattice_for(*fine, sigma, add_noise.SMALLEST_SCALE)
        scale = max(sigma * lattice.radius**2, add_noise.SMALLEST_SCALE)
        steps = replace(riders, diagonal=scale, off=scale)
        # The multiplier of all parts together, rounded down.
        mean = steps.diagonal / steps.mean if facts.centred else 0.0
        weights = MomentWeights(steps.diagonal / steps.count, mean)
        sigma = steps.diagonal / lattice.radius**2
        joint = sigma / moment_sensitivity(facts.adjacency, weights) * (1 - 1e-13)
        return Plan(guarantee, (privacy.GaussianEvent(joint),), lattice, facts, steps)
