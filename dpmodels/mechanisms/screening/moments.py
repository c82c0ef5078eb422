"""Noisy sums of all columns with a response, at once.

Theorem
    Noisy sums of the response and, given them, of all m columns compose: ε-differentially private
    with discrete Laplace, ρ-zCDP with discrete Gaussian noise. Nothing is chosen, so p-values that
    count the noise in are those of all hypotheses, and any procedure may be used on them.
Sensitivity
    As for peeling: products move by ``1 + |c|`` or ``2 (1 + |c|)``, scatters by 4, each column's.
Noise
    Independent discrete Laplace or discrete Gaussian on the products and the scatters of all
    columns; its sd grows with m, or with √m.
Numerics
    exact: integer sums, integer noise of exact law.
Source
    Dwork, McSherry, Nissim, Smith (2006), "Calibrating noise to sensitivity in private data
    analysis", TCC; Bun, Steinke (2016), "Concentrated differential privacy", TCC.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from dpmodels.design import PrivateDesign
from dpmodels.mechanisms.screening_plan import (
    ScreenFacts,
    ScreenPlan,
    noised_response,
    screen_plan,
    valued,
)
from dpmodels.noise import Entropy
from dpmodels.privacy import Guarantee
from dpmodels.released import MechanismInfo, ScreenedRelease
from dpmodels.statistics import Statistic
from dpmodels.statistics.associations import associations


@dataclass(frozen=True)
class ScreenMoments:
    """Noise on the covariances of all columns with the response.

    Examples
    --------
    >>> from dpmodels.privacy import PureDP, adjacency
    >>> facts = ScreenFacts(8, 4, "two-sided", adjacency("replace"))
    >>> ScreenMoments().plan(facts, PureDP(1.0)).chosen
    8
    """

    info: ClassVar[MechanismInfo] = MechanismInfo(
        name="moments",
        theorem="eps-DP or zCDP: noisy sums of all columns",
        sensitivity="products 1 + |c| or 2(1 + |c|), scatters 4, by column",
        noise="discrete Laplace or Gaussian",
        numerics="exact lattice",
        source="Dwork, McSherry, Nissim and Smith (2006); Bun and Steinke (2016)",
    )

    def plan(self, facts: ScreenFacts, guarantee: Guarantee) -> ScreenPlan:
        """Calibrate the noise to a guarantee; BudgetError where it is beyond meaning."""
        return screen_plan(facts, guarantee, with_draws=False)

    def measure(self, design: PrivateDesign, plan: ScreenPlan) -> Statistic:
        """Sum columns and their products with the response."""
        return associations(design, plan.lattice, count_public=plan.facts.adjacency.n_public)

    def release(self, statistic: Statistic, plan: ScreenPlan, entropy: Entropy) -> ScreenedRelease:
        """Release the response, then the sums of all columns."""
        exact, n_rows = statistic.cross()
        response = noised_response(exact, plan, entropy)
        chosen = np.arange(plan.facts.columns)
        return valued(self.info, exact, n_rows, plan, response, chosen, entropy)
