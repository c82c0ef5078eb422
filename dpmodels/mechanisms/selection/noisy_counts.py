"""Noise on the counts of all levels; only the names of the largest are released.

Theorem
    The noisy counts of all levels are private as those of `geometric` and `gaussian` are, and the
    names are a function of them: ε-differentially private for Δ independent releases that are each
    ε/Δ-private, or as Gaussian noise is.
Sensitivity
    A row is counted in one level: Δ of :func:`dpmodels.statistics.counts.count_sensitivity`, 1
    where a row is added or removed and 2 where it is replaced, or its root in L2 norm; however many
    levels are named. That is why it serves better than draws, each of which has a part of the
    budget alone, where several are named.
Noise
    Independent discrete Laplace noise on every count, or discrete Gaussian where so many counts
    have less in the farthest of them. The counts rank the levels or are compared with a
    threshold. They are not released, as the largest are biased upwards.
Numerics
    exact: integer counts, integer noise of exact law, then comparisons.
Source
    Dwork and Roth (2014), "The algorithmic foundations of differential privacy", Section 3.3.
    Bhaskar, Laxman, Smith, Thakurta (2010), "Discovering frequent patterns in sensitive data", KDD.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from dpmodels.design.cells import PrivateCells
from dpmodels.errors import ArgumentError
from dpmodels.mechanisms.add_noise import GAUSSIAN, LAPLACE
from dpmodels.mechanisms.count_noise import gaussian_plan, laplace_plan, law_of, noised_units
from dpmodels.mechanisms.ledger_price import at_equal_price
from dpmodels.mechanisms.protocol import CountFacts, CountPlan
from dpmodels.mechanisms.selection_plan import (
    BoughtCounts,
    LevelScore,
    SelectionFacts,
    SelectionPlan,
    selected,
)
from dpmodels.noise import Entropy
from dpmodels.privacy import ZCDP, Guarantee, PureDP
from dpmodels.privacy.compose import divide
from dpmodels.released import MechanismInfo, SelectionRelease
from dpmodels.statistics import Statistic

Law = Callable[[CountFacts, Guarantee], CountPlan]


@dataclass(frozen=True)
class NoisyCounts:
    """The largest of noisy counts, by name alone.

    Examples
    --------
    >>> from dpmodels.mechanisms.selection_plan import LevelScore
    >>> from dpmodels.privacy import PureDP, adjacency
    >>> facts = SelectionFacts(LevelScore(9), 2, None, 0.0, adjacency("replace"))
    >>> print(round(NoisyCounts().plan(facts, PureDP(1.0)).noise.scale, 6))
    2.0
    """

    info: ClassVar[MechanismInfo] = MechanismInfo(
        name="noisy_counts",
        theorem="eps-DP, rho-zCDP or (eps, delta)-DP, as noisy counts of all levels",
        sensitivity="L1, 2 (a row may change its level) or 1, or L2, its root",
        noise="discrete Laplace, or discrete Gaussian where that goes less far",
        numerics="exact lattice",
        source="Dwork and Roth (2014), Section 3.3",
    )

    def plan(self, facts: SelectionFacts, guarantee: Guarantee) -> SelectionPlan:
        """Calibrate the noise of all counts; ArgumentError unless scores are counts of levels."""
        score = facts.score
        if not isinstance(score, LevelScore):
            raise ArgumentError(
                "mechanism='noisy_counts', whose noise sites can add, ranks the levels of one "
                "variable: write '~ town', dp.dp_fdr to test columns, or mechanism='peeling' for "
                "columns of one table"
            )
        laws = [laplace_plan] if isinstance(guarantee, PureDP) else [laplace_plan, gaussian_plan]
        plans = [_planned(facts, guarantee, score, law) for law in laws]
        priced = at_equal_price([reach(plan) for plan in plans], plans)
        return plans[priced.index(min(priced))]

    def measure(self, private: PrivateCells, plan: SelectionPlan) -> Statistic:
        """Count the rows of all levels."""
        return plan.facts.score.measure(private, plan.facts)

    def release(
        self, statistic: Statistic, plan: SelectionPlan, entropy: Entropy
    ) -> SelectionRelease:
        """Add noise to all counts, and name the largest of them."""
        exact, n_rows = statistic.cross()
        facts, noise = plan.facts, plan.noise
        assert noise is not None
        ranked = facts.score.ranked(exact, facts, plan.bought, entropy)
        noisy, _ = noised_units(noise, ranked.scores, entropy)
        places = np.argsort(-noisy, kind="stable")[: facts.max_chosen]
        if ranked.threshold is not None:
            places = places[noisy[places] >= ranked.threshold]
        scale = noise.scale / noise.units_per_row
        return selected(self.info, plan, exact, n_rows, ranked, places, scale, entropy)


def _planned(
    facts: SelectionFacts, guarantee: Guarantee, score: LevelScore, law: Law
) -> SelectionPlan:
    """Divide a budget between all counts and those of what is named, all with noise of one law."""
    gaussian = law is gaussian_plan
    total = guarantee if gaussian or isinstance(guarantee, ZCDP) else PureDP(guarantee.eps)
    valued = score.valued_with(facts)
    all_facts = CountFacts(1, score.size, False, facts.adjacency)
    if valued is None:
        noise = law(all_facts, total)
        return SelectionPlan(guarantee, noise.events, facts, 0.0, BoughtCounts(None), noise)
    ranking, values = divide(total, (1 - facts.share, facts.share), (gaussian, gaussian))
    noise, value_noise = law(all_facts, ranking), law(valued, values)
    events = (*noise.events, *value_noise.events)
    return SelectionPlan(guarantee, events, facts, 0.0, BoughtCounts(value_noise), noise)


def reach(plan: SelectionPlan) -> float:
    """Return what the noise of one of all counts exceeds once, on average, in rows."""
    noise = plan.noise
    assert noise is not None
    law = GAUSSIAN if law_of(noise) == "gaussian" else LAPLACE
    return noise.scale / noise.units_per_row * law.beyond(1 / (2 * plan.facts.score.size))
