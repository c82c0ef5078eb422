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

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from dpmodels.mechanisms import add_noise
from dpmodels.mechanisms.add_noise import SMALLEST_SCALE, hand_over
from dpmodels.mechanisms.measures import OfMoments
from dpmodels.mechanisms.protocol import Facts, Plan
from dpmodels.noise import Entropy
from dpmodels.privacy import GaussianEvent, Guarantee, PureDP, gaussian_multiplier, split_gaussian
from dpmodels.released import MechanismInfo, MomentsRelease
from dpmodels.statistics import Statistic
from dpmodels.typing import Floats


@dataclass(frozen=True)
class Moments(OfMoments):
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
        law = add_noise.LAPLACE if isinstance(guarantee, PureDP) else add_noise.GAUSSIAN
        return add_noise.one_release(facts, guarantee, law)

    def release(self, statistic: Statistic, plan: Plan, entropy: Entropy) -> MomentsRelease:
        """Add the planned noise to the exact moments."""
        exact, rows = statistic.cross()
        noisy = add_noise.noised_moments(exact, plan, entropy, add_noise.event_law(plan.events[0]))
        return hand_over(self.info, plan, noisy, rows)


SMALLEST = "smallest eigenvalue"
# Of the smallest eigenvalue of X'X of rows (1, x), x in the unit ball.
SENSITIVITY = 2.0
# Chance that the noise exceeds the ridge (Wang 2018), and the 95 % quantile of a normal.
CHANCE = 0.05
QUANTILE = 1.6449


@dataclass(frozen=True)
class AdaSSP(OfMoments):
    """Adaptive ridge regression.

    Noisy moments of rows (1, x, y), and a ridge by a private smallest eigenvalue.

    Theorem
        (ε, δ)-differentially private with the exact trade-off of two Gaussian releases composed, or
        ρ-zCDP: the smallest eigenvalue of X'X, and the moments of ``gauss``.
    Sensitivity
        X'X of rows ``(1, x)`` of squared norm at most 2 gains one such row or loses one or both:
        its smallest eigenvalue moves by at most 2, for either adjacency (Weyl), and by one lattice
        step more for the rounding. The moments: Δ of
        :func:`dpmodels.statistics.moment_sensitivity`. Rows with weights are no longer.
    Noise
        Independent discrete Gaussians on the squared lattice, at least 2²⁰ steps. The noisy moments
        are released with their law, and with them an estimate that has the ridge ``λ = max(0, s √(d
        log(2d²/0.05)) - λ_min)`` on the d terms: s the noise of an entry, λ_min the noisy
        eigenvalue less 1.64 of its noise sds.
    Numerics
        idealised: the eigenvalue of the exact integers is computed in floating point; the error,
        some 10⁻¹⁶ of the number of rows where one row moves it by 2, is not accounted for. The
        moments are exact.
    Source
        Wang (2018), "Revisiting differentially private linear regression: optimal and adaptive
        prediction and estimation in unbounded domain", UAI, AdaSSP; X'X and X'y together in
        isometric coordinates in place of a third of the budget each, and no ridge on the constant.

    Parameters
    ----------
    share : float
        The smallest eigenvalue's part of the budget ``1/m²``, between 0 and 1.

    Raises
    ------
    ArgumentError
        If `share` lies outside its range.

    Examples
    --------
    >>> from dpmodels.mechanisms import Facts
    >>> from dpmodels.privacy import ZCDP, adjacency
    >>> plan = AdaSSP(share=0.5).plan(Facts(3, adjacency("replace"), centred=True), ZCDP(0.5))
    >>> round(plan.scales["smallest eigenvalue"] / plan.lattice.radius**2, 3)
    2.828
    """

    info: ClassVar[MechanismInfo] = MechanismInfo(
        name="adassp",
        theorem="(eps, delta)-DP or rho-zCDP, two Gaussian releases composed exactly",
        sensitivity="smallest eigenvalue of X'X: 2; moments: L2 in isometric coordinates",
        noise="discrete Gaussian on the eigenvalue and on the moments of (1, x, y)",
        numerics="idealised",
        source="Wang (2018), AdaSSP, in isometric coordinates",
    )

    share: float = 0.2

    def __post_init__(self) -> None:
        add_noise.checked_share(self.share)

    def plan(self, facts: Facts, guarantee: Guarantee) -> Plan:
        """Calibrate both parts; BudgetError for a pure guarantee: Gaussian noise gives none."""
        # Rounding of the split is covered by a few parts in 10^15.
        multiplier = gaussian_multiplier(guarantee) * (1 + 1e-14)
        smallest, rest = split_gaussian(multiplier, (self.share, 1 - self.share))
        scaled = add_noise.gaussian_scales(facts, rest)
        lattice, steps = add_noise.lattice_for(*scaled, smallest * SENSITIVITY, SMALLEST_SCALE)
        scale = smallest * (SENSITIVITY * lattice.radius**2 + 1) * add_noise.ROUND_UP
        events = (GaussianEvent(smallest), GaussianEvent(rest))
        scales = {SMALLEST: max(scale, SMALLEST_SCALE)}
        return Plan(guarantee, events, lattice, facts, steps, scales)

    def release(self, statistic: Statistic, plan: Plan, entropy: Entropy) -> MomentsRelease:
        """Add noise to the moments and to the smallest eigenvalue; put the ridge on."""
        exact, rows = statistic.cross()
        noisy = add_noise.noised_moments(exact, plan, entropy)
        value = float(np.linalg.eigvalsh(exact[:-1, :-1].astype(np.float64))[0])
        whole = np.array([round(value)], dtype=object)
        (released,) = add_noise.add_noise(whole, plan.scales[SMALLEST], entropy)
        smallest = float(released) / plan.lattice.radius**2
        return hand_over(self.info, plan, noisy, rows, _with_ridge(noisy, smallest, plan))


def _with_ridge(noisy: add_noise.NoisyMoments, smallest: float, plan: Plan) -> Floats:
    terms = len(noisy.second) - 1
    if not terms:
        return noisy.second
    least = smallest - QUANTILE * plan.scales[SMALLEST] / plan.lattice.radius**2
    most = noisy.noise.off * math.sqrt(terms * math.log(2 * terms**2 / CHANCE))
    ridge = np.full(terms + 1, max(0.0, most - max(least, 0.0)))
    ridge[-1] = 0.0
    return np.asarray(noisy.second + np.diag(ridge))
