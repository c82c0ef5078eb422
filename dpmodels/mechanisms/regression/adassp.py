"""Noisy moments of rows (1, x, y), and a ridge by a private smallest eigenvalue.

Theorem
    (ε, δ)-differentially private with the exact trade-off of two Gaussian releases composed, or
    ρ-zCDP: the smallest eigenvalue of X'X, and the moments of ``gauss``.
Sensitivity
    X'X of rows ``(1, x)`` of squared norm at most 2 gains one such row or loses one or both: its
    smallest eigenvalue moves by at most 2, for either adjacency (Weyl), and by one lattice step
    more for the rounding. The moments: Δ of :func:`dpmodels.statistics.moment_sensitivity`. Rows
    with weights are no longer.
Noise
    Independent discrete Gaussians on the squared lattice, at least 2²⁰ steps. The noisy moments
    are released with their law, and with them an estimate that has the ridge
    ``λ = max(0, s √(d log(2d²/0.05)) - λ_min)`` on the d terms: s the noise of an entry, λ_min the
    noisy eigenvalue less 1.64 of its noise sds.
Numerics
    idealised: the eigenvalue of the exact integers is computed in floating point; the error, some
    10⁻¹⁶ of the number of rows where one row moves it by 2, is not accounted for. The moments are
    exact.
Source
    Wang (2018), "Revisiting differentially private linear regression: optimal and adaptive
    prediction and estimation in unbounded domain", UAI, AdaSSP; X'X and X'y together in isometric
    coordinates in place of a third of the budget each, and no ridge on the constant.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from dpmodels.design import PrivateDesign
from dpmodels.mechanisms.add_noise import (
    ROUND_UP,
    SMALLEST_SCALE,
    NoisyMoments,
    add_noise,
    checked_share,
    gaussian_scales,
    hand_over,
    lattice_for,
    noised_moments,
)
from dpmodels.mechanisms.protocol import Facts, Plan
from dpmodels.noise import Entropy
from dpmodels.privacy import GaussianEvent, Guarantee, gaussian_multiplier, split_gaussian
from dpmodels.released import MechanismInfo, MomentsRelease
from dpmodels.statistics import Statistic, moments
from dpmodels.typing import Floats

SMALLEST = "smallest eigenvalue"
# Of the smallest eigenvalue of X'X of rows (1, x), x in the unit ball.
SENSITIVITY = 2.0
# Chance that the noise exceeds the ridge (Wang 2018), and the 95 % quantile of a normal.
CHANCE = 0.05
QUANTILE = 1.6449


@dataclass(frozen=True)
class AdaSSP:
    """Adaptive ridge regression.

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
        checked_share(self.share)

    def plan(self, facts: Facts, guarantee: Guarantee) -> Plan:
        """Calibrate both parts; BudgetError for a pure guarantee: Gaussian noise gives none."""
        # Rounding of the split is covered by a few parts in 10^15.
        multiplier = gaussian_multiplier(guarantee) * (1 + 1e-14)
        smallest, rest = split_gaussian(multiplier, (self.share, 1 - self.share))
        scaled = gaussian_scales(facts, rest)
        lattice, steps = lattice_for(*scaled, smallest * SENSITIVITY, SMALLEST_SCALE)
        scale = smallest * (SENSITIVITY * lattice.radius**2 + 1) * ROUND_UP
        events = (GaussianEvent(smallest), GaussianEvent(rest))
        scales = {SMALLEST: max(scale, SMALLEST_SCALE)}
        return Plan(guarantee, events, lattice, facts, steps, scales)

    def measure(self, design: PrivateDesign, plan: Plan) -> Statistic:
        """Compute the exact augmented moments."""
        return moments(design, plan.lattice, count_public=plan.facts.adjacency.n_public)

    def release(self, statistic: Statistic, plan: Plan, entropy: Entropy) -> MomentsRelease:
        """Add noise to the moments and to the smallest eigenvalue; put the ridge on."""
        exact, rows = statistic.cross()
        noisy = noised_moments(exact, plan, entropy)
        own = _noised_smallest(exact, plan, entropy)
        return hand_over(self.info, plan, noisy, rows, _with_ridge(noisy, own, plan))


def _noised_smallest(exact: NDArray[np.generic], plan: Plan, entropy: Entropy) -> float:
    """Release the smallest eigenvalue of the moments of the constant and the terms."""
    value = float(np.linalg.eigvalsh(exact[:-1, :-1].astype(np.float64))[0])
    whole = np.array([round(value)], dtype=object)
    released = add_noise(whole, plan.scales[SMALLEST], entropy)
    return float(released[0]) / plan.lattice.radius**2


def _with_ridge(noisy: NoisyMoments, smallest: float, plan: Plan) -> Floats:
    """Return the released second moment with the ridge on its terms."""
    terms = len(noisy.second) - 1
    if not terms:
        return noisy.second
    least = smallest - QUANTILE * plan.scales[SMALLEST] / plan.lattice.radius**2
    most = noisy.noise.off * math.sqrt(terms * math.log(2 * terms**2 / CHANCE))
    ridge = np.full(terms + 1, max(0.0, most - max(least, 0.0)))
    ridge[-1] = 0.0
    return np.asarray(noisy.second + np.diag(ridge))
