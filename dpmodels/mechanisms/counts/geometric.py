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

import math
from dataclasses import dataclass
from typing import ClassVar

from dpmodels.design.cells import PrivateCells
from dpmodels.mechanisms.add_noise import ROUND_UP, laplace_multipliers
from dpmodels.mechanisms.count_plan import (
    LEAST_SCALE,
    CountFacts,
    CountPlan,
    counts_released,
    units_of,
)
from dpmodels.noise import Entropy, discrete_laplace, discrete_laplace_variance
from dpmodels.privacy import Guarantee, LaplaceEvent
from dpmodels.released import Card, CountsRelease
from dpmodels.statistics import Statistic
from dpmodels.statistics.counts import count_sensitivity, counts


@dataclass(frozen=True)
class Geometric:
    """Geometric mechanism for counts.

    Examples
    --------
    >>> from dpmodels.mechanisms.count_plan import CountFacts
    >>> from dpmodels.privacy import PureDP, adjacency
    >>> plan = Geometric().plan(CountFacts(1, 7, False, adjacency("replace")), PureDP(1.0))
    >>> round(plan.scale, 6), plan.whole
    (2.0, 1)
    """

    card: ClassVar[Card] = Card(
        name="geometric",
        theorem="eps-DP, and rho-zCDP as releases of sensitivity 1",
        sensitivity="L1, 2 a table (a row may change its group) or 1",
        noise="discrete Laplace, one scale",
        numerics="exact lattice",
        source="Ghosh, Roughgarden and Sundararajan (2009)",
    )

    def plan(self, facts: CountFacts, guarantee: Guarantee) -> CountPlan:
        """Calibrate the noise; BudgetError if it is beyond what is meaningful."""
        changed = round(count_sensitivity(facts.adjacency, facts.tables, 1))
        multiplier = laplace_multipliers(guarantee, (1.0,) * changed)[0]
        rows = multiplier * ROUND_UP
        finest = units_of(rows)
        whole = finest if facts.divided else 1
        scale = max(rows * whole, LEAST_SCALE)
        noise_sd = math.sqrt(discrete_laplace_variance(scale)) / whole
        events = (LaplaceEvent(multiplier, count=changed),)
        return CountPlan(guarantee, events, facts, whole, scale, noise_sd)

    def measure(self, private: PrivateCells, plan: CountPlan) -> Statistic:
        """Compute the exact counts."""
        return counts(private, plan.whole, count_public=plan.facts.adjacency.n_public)

    def release(self, statistic: Statistic, plan: CountPlan, entropy: Entropy) -> CountsRelease:
        """Add the planned noise to the exact counts."""
        exact, rows = statistic.cross()
        noise = discrete_laplace(plan.scale, exact.size, entropy)
        return counts_released(self.card, plan, exact, noise, rows, "laplace")
