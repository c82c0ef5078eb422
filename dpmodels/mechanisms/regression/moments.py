"""One release of the exact moments of rows (1, x, y), for least squares.

Theorem
    For an (ε, δ) or zCDP guarantee as for ``gauss``, for a pure one as for ``laplace``: the
    moments of the coded rows, the response among them, are released once, and the model is
    post-processing. So is every other model on the same columns.
Sensitivity
    Δ of :func:`dpmodels.statistics.moment_sensitivity` in isometric coordinates, or of
    ``absolute_sensitivity`` in L1. A row of weight q adds q times what it adds without, 0 ≤ q ≤ 1;
    the norm of the difference of two rows is convex in both weights, so largest at weights 0 and
    1, where it is that of complete and incomplete rows.
Noise
    Independent discrete Gaussians, of variance s² on the diagonal and s²/2 off it, or discrete
    Laplace noise of one scale; in the number of rows and their sum by the weights of the
    sensitivity.
Numerics
    exact: integer statistic, integer noise of exact law, then a division.
Source
    Dwork, Talwar, Thakurta, Zhang (2014), "Analyze Gauss", STOC, and Wang (2018), "Revisiting
    differentially private linear regression", UAI, for sufficient statistics; the isometric
    coordinates and the joint release of X'X, X'y and y'y replace a split of the budget between
    them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from dpmodels.design import PrivateDesign
from dpmodels.mechanisms.add_noise import (
    GAUSSIAN,
    LAPLACE,
    gaussian_scales,
    hand_over,
    laplace_multipliers,
    laplace_scales,
    noised_moments,
)
from dpmodels.mechanisms.protocol import Facts, Plan
from dpmodels.noise import Entropy
from dpmodels.privacy import GaussianEvent, Guarantee, LaplaceEvent, PureDP, gaussian_multiplier
from dpmodels.released import MechanismInfo, MomentsRelease
from dpmodels.statistics import Statistic, moments


@dataclass(frozen=True)
class Moments:
    """Joint noisy moments of terms and response.

    Examples
    --------
    >>> from dpmodels.mechanisms import Facts
    >>> from dpmodels.privacy import ZCDP, PureDP, adjacency
    >>> facts = Facts(3, adjacency("replace"), centred=True)
    >>> plan = Moments().plan(facts, ZCDP(0.5))
    >>> round(plan.steps.off / plan.lattice.radius**2, 3)
    1.25
    >>> Moments().plan(facts, PureDP(1.0)).events
    (LaplaceEvent(multiplier=1.000000000001, count=1),)
    """

    info: ClassVar[MechanismInfo] = MechanismInfo(
        name="moments",
        theorem="(eps, delta)-DP or rho-zCDP, exact Gaussian trade-off; eps-DP with Laplace noise",
        sensitivity="L2 in isometric coordinates, or L1, of the moments of (1, x, y)",
        noise="discrete Gaussian, variance s^2 on the diagonal and s^2/2 off it; or Laplace",
        numerics="exact lattice",
        source="Dwork et al. (2014), Wang (2018), in isometric coordinates",
    )

    def plan(self, facts: Facts, guarantee: Guarantee) -> Plan:
        """Calibrate the noise to a guarantee. BudgetError if the noise leaves no useful lattice."""
        if isinstance(guarantee, PureDP):
            (multiplier,) = laplace_multipliers(guarantee)
            lattice, steps = laplace_scales(facts, multiplier)
            return Plan(guarantee, (LaplaceEvent(multiplier),), lattice, facts, steps)
        multiplier = gaussian_multiplier(guarantee)
        lattice, steps = gaussian_scales(facts, multiplier)
        return Plan(guarantee, (GaussianEvent(multiplier),), lattice, facts, steps)

    def measure(self, design: PrivateDesign, plan: Plan) -> Statistic:
        """Compute the exact augmented moments."""
        return moments(design, plan.lattice, count_public=plan.facts.adjacency.n_public)

    def release(self, statistic: Statistic, plan: Plan, entropy: Entropy) -> MomentsRelease:
        """Add the planned noise to the exact moments."""
        exact, rows = statistic.cross()
        law = LAPLACE if isinstance(plan.events[0], LaplaceEvent) else GAUSSIAN
        return hand_over(self.info, plan, noised_moments(exact, plan, entropy, law), rows)
