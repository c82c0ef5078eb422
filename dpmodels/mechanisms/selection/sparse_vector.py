"""The sparse vector technique: what is above a threshold, one candidate after the other.

Theorem
    The names of the first c candidates whose noisy scores are above a noisy threshold are
    ε-differentially private, in the public order of the candidates; then nothing more is looked at.
    ε²/2-zCDP follows, by which an (ε, δ) guarantee may leave values more.
Sensitivity
    One row moves every score by Δ at most, half of the length of the interval of its changes; all
    of it where scores are monotone.
Noise
    The threshold has one draw of discrete Laplace noise of scale Δ/ε₁ for all candidates, each
    score its own, of scale 2cΔ/ε₂, cΔ/ε₂ where scores are monotone, with ε = ε₁ + ε₂ such that the
    variance of their difference is least. Candidates that are not named cost nothing.
    *Proof*: :func:`dpmodels.mechanisms.clipping_radius.sparse_scales`.
Numerics
    exact: integer scores and noise of exact law, then comparisons.
Source
    Lyu, Su, Li (2017), "Understanding the sparse vector technique for differential privacy",
    PVLDB, Algorithm 1 alone: other published forms are not private.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from dpmodels.errors import ArgumentError, BudgetError
from dpmodels.mechanisms.clipping_radius import sparse_scales
from dpmodels.mechanisms.protocol import LEAST_SCALE
from dpmodels.mechanisms.selection_plan import (
    SelectionFacts,
    SelectionPlan,
    drawing_plan,
    selected,
)
from dpmodels.noise import Entropy, discrete_laplace
from dpmodels.privacy import Guarantee, PureEvent
from dpmodels.released import MechanismInfo, SelectionRelease
from dpmodels.statistics import Statistic

# Of each name. With less, noise on scores of the widest change, 2**40, would not fit 64 bits.
LEAST_EPS = 2.0**-12


@dataclass(frozen=True)
class SparseVector:
    """The first scores above a threshold, by name alone.

    Examples
    --------
    >>> from dpmodels.mechanisms.selection_plan import LevelScore
    >>> from dpmodels.privacy import PureDP, adjacency
    >>> facts = SelectionFacts(LevelScore(9), 2, 100.0, 0.0, adjacency("replace"))
    >>> print(round(SparseVector().plan(facts, PureDP(1.0)).eps, 6))
    1.0
    """

    info: ClassVar[MechanismInfo] = MechanismInfo(
        name="sparse_vector",
        theorem="eps-DP, however many candidates are below the threshold",
        sensitivity="of every score: half of the range of the changes, all of it if monotone",
        noise="discrete Laplace on the threshold and on every score",
        numerics="exact lattice",
        source="Lyu, Su and Li (2017), Algorithm 1",
    )

    def plan(self, facts: SelectionFacts, guarantee: Guarantee) -> SelectionPlan:
        """Divide the budget; ArgumentError without a threshold, BudgetError if it is too small."""
        if facts.threshold is None:
            raise ArgumentError(
                "mechanism='sparse_vector' names the candidates above a threshold; write "
                "threshold= instead of k=, or mechanism='auto'"
            )
        selection = drawing_plan(facts, guarantee, 1, PureEvent)
        if selection.eps < LEAST_EPS * facts.max_chosen:
            raise BudgetError(
                f"the budget leaves eps = {selection.eps:.2g} for a search for "
                f"{facts.max_chosen:,} names, too little to find any; give a larger eps, or a "
                "smaller most="
            )
        return selection

    def measure(self, private: object, plan: SelectionPlan) -> Statistic:
        """Compute the exact scores."""
        return plan.facts.score.measure(private, plan.facts)

    def release(
        self, statistic: Statistic, plan: SelectionPlan, entropy: Entropy
    ) -> SelectionRelease:
        """Name the first candidates above the threshold."""
        exact, n_rows = statistic.cross()
        facts = plan.facts
        ranked = facts.score.ranked(exact, facts, plan.bought, entropy)
        change = ranked.width if ranked.monotone else ranked.width // 2
        scales = sparse_scales(plan.eps, monotone=ranked.monotone, answers=facts.max_chosen)
        threshold_scale, score_scale = (max(change * scale, LEAST_SCALE) for scale in scales)
        assert ranked.threshold is not None
        threshold = ranked.threshold + int(discrete_laplace(threshold_scale, 1, entropy)[0])
        noise = discrete_laplace(score_scale, len(ranked.scores), entropy).astype(object)
        places = np.flatnonzero(ranked.scores + noise >= threshold)[: facts.max_chosen]
        return selected(
            self.info, plan, exact, n_rows, ranked, places, score_scale / ranked.unit, entropy
        )
