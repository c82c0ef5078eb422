"""Discrete Laplace noise on counts.

Theorem
    The release is dominated by Δ independent releases that are each 1/b-differentially private,
    for either adjacency. So it is ε-differentially private with ε = Δ/b, and ρ-zCDP with ρ =
    Δ/(2b²), which is ε²/(2Δ) (Bun and Steinke 2016, Proposition 1.4). An (ε, δ) guarantee leaves
    its δ unused.
Sensitivity
    Δ of :func:`dpmodels.statistics.counts.count_sensitivity` in L1 norm: 1 a table where a row is
    added or removed, 2 where it is replaced, since it may leave one declared group and enter
    another. Both are reached. In each table the counts that rise do so by 1 altogether, and those
    that fall likewise: these are the Δ releases, each on counts of its own.
Noise
    Independent discrete Laplace noise of scale b on every count, on the integers themselves where
    rows are counted whole; where a row is divided between the parts of its cell, on units of which
    a row has up to 2⁴⁰.
Numerics
    exact: integer statistic, integer noise of exact law, then a division.
Source
    Ghosh, Roughgarden, Sundararajan (2009), "Universally utility-maximizing privacy mechanisms",
    STOC. Dwork, McSherry, Nissim, Smith (2006), "Calibrating noise to sensitivity in private data
    analysis", TCC.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from dpmodels.mechanisms.count_noise import gaussian_plan, laplace_plan, noised_counts
from dpmodels.mechanisms.measures import OfParts
from dpmodels.mechanisms.protocol import CountFacts, CountPlan
from dpmodels.noise import Entropy
from dpmodels.privacy import Guarantee
from dpmodels.released import CountsRelease, MechanismInfo
from dpmodels.statistics import Statistic


class _NoisyCounts(OfParts):
    info: ClassVar[MechanismInfo]

    def release(self, statistic: Statistic, plan: CountPlan, entropy: Entropy) -> CountsRelease:
        """Add the planned noise to the exact counts."""
        exact, n_rows = statistic.cross()
        return noised_counts(self.info, plan, exact, n_rows, entropy)


@dataclass(frozen=True)
class Geometric(_NoisyCounts):
    """Geometric mechanism for counts.

    Examples
    --------
    >>> from dpmodels.mechanisms.protocol import CountFacts
    >>> from dpmodels.privacy import PureDP, adjacency
    >>> plan = Geometric().plan(CountFacts(1, 7, False, adjacency("replace")), PureDP(1.0))
    >>> round(plan.scale, 6), plan.units_per_row
    (2.0, 1)
    """

    info: ClassVar[MechanismInfo] = MechanismInfo(
        name="geometric",
        theorem="eps-DP, and rho-zCDP as releases of sensitivity 1",
        sensitivity="L1, 2 a table (a row may change its group) or 1",
        noise="discrete Laplace, one scale",
        numerics="exact lattice",
        source="Ghosh, Roughgarden and Sundararajan (2009)",
    )

    def plan(self, facts: CountFacts, guarantee: Guarantee) -> CountPlan:
        """Calibrate the noise; BudgetError if it is beyond what is meaningful."""
        return laplace_plan(facts, guarantee)


@dataclass(frozen=True)
class Gaussian(_NoisyCounts):
    """Gaussian mechanism for counts.

    Discrete Gaussian noise on counts.

    Theorem
        The release is (ε, δ)-differentially private with the exact trade-off of the Gaussian
        mechanism at multiplier σ/Δ, or ρ-zCDP with ρ = Δ²/(2σ²), for either adjacency.
    Sensitivity
        Δ of :func:`dpmodels.statistics.counts.count_sensitivity` in L2 norm: the root of the number
        of tables where a row is added or removed, √2 times that where it is replaced, since it may
        leave one declared group and enter another. Both are reached.
    Noise
        Independent discrete Gaussians of scale σ on every count, in units of which a row has up to
        2⁴⁰. Every scale is at least 2²⁰ units, where the discrete law's δ(ε) exceeds the continuous
        one's by less than 10⁻¹¹ of itself, which the calibration's margin covers; the zCDP
        guarantee needs no such step.
    Numerics
        exact: integer statistic, integer noise of exact law, then a division.
    Source
        Canonne, Kamath, Steinke (2020), "The discrete Gaussian for differential privacy", NeurIPS,
        for the noise. Balle, Wang (2018) for the calibration.

    Examples
    --------
    >>> from dpmodels.mechanisms.protocol import CountFacts
    >>> from dpmodels.privacy import ZCDP, adjacency
    >>> plan = Gaussian().plan(CountFacts(1, 7, False, adjacency("replace")), ZCDP(0.5))
    >>> round(plan.noise_sd, 6)
    1.414214
    """

    info: ClassVar[MechanismInfo] = MechanismInfo(
        name="gaussian",
        theorem="(eps, delta)-DP or rho-zCDP, exact Gaussian trade-off",
        sensitivity="L2, sqrt(2) (a row may change its group) or 1, times the root of the tables",
        noise="discrete Gaussian, one scale",
        numerics="exact lattice",
        source="Canonne, Kamath and Steinke (2020)",
    )

    def plan(self, facts: CountFacts, guarantee: Guarantee) -> CountPlan:
        """Calibrate the noise to a guarantee.

        BudgetError for a pure guarantee, which Gaussian noise does not give, or if the noise is
        beyond what is meaningful.
        """
        return gaussian_plan(facts, guarantee)
