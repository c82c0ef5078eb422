"""Laplace noise on the augmented moments, the second moment on and above the diagonal.

Theorem
    The release is ε-differentially private with ε = Δ/b, for either adjacency, and so ε²/2-zCDP
    (Bun and Steinke 2016). An (ε, δ) guarantee leaves its δ unused.
Sensitivity
    Δ of :func:`dpmodels.statistics.moments.absolute_sensitivity`, proved there: with d columns
    and the upper triangle alone a row adds at most (d + 1)/2, and two complete rows differ by at
    most the smaller of d/√2 + 1 and √(d(d + 3)/2), where d + 1 is twice a row's own. Reached to 5
    % by four clusters of coordinates, ``√(2/d) (cos t, sin t)`` at t = π/8 and quarter turns from
    it, which give (d + 1)/√2. It is an inequality between reals, hence holds for the integers that
    stand for them.
Noise
    Independent discrete Laplace noise of scale b times the squared lattice radius on and above the
    diagonal, b/w₀ and b/w₁ for the count and the sum of the rows, with the weights of
    ``absolute_weights``. Every scale is at least 2¹⁰ steps, where the standard deviation is √2
    times the scale to 10⁻⁷.
Numerics
    exact: integer statistic, integer noise of exact law, then a division.
Source
    Dwork, McSherry, Nissim, Smith (2006), "Calibrating noise to sensitivity in private data
    analysis", TCC. Ghosh, Roughgarden, Sundararajan (2009), "Universally utility-maximizing
    privacy mechanisms", STOC, for the discrete law.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from dpmodels.design import PrivateDesign
from dpmodels.mechanisms.add_noise import (
    LAPLACE,
    hand_over,
    laplace_multipliers,
    laplace_scales,
    noised_moments,
)
from dpmodels.mechanisms.protocol import Facts, Plan
from dpmodels.noise import Entropy
from dpmodels.privacy import Guarantee, LaplaceEvent
from dpmodels.released import Card, MomentsRelease
from dpmodels.statistics import Statistic, moments


@dataclass(frozen=True)
class Laplace:
    """Laplace mechanism for a covariance, second moment and mean.

    Examples
    --------
    >>> from dpmodels.mechanisms import Facts
    >>> from dpmodels.privacy import PureDP, adjacency
    >>> plan = Laplace().plan(Facts(2, adjacency("replace"), centred=False), PureDP(1.0))
    >>> round(plan.steps.diagonal / plan.lattice.radius**2, 3)
    2.236
    """

    card: ClassVar[Card] = Card(
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
        exact, rows = statistic.cross()
        return hand_over(self.card, plan, noised_moments(exact, plan, entropy, LAPLACE), rows)
