"""Permute-and-flip, one candidate after the other.

Theorem
    One draw is ε-differentially private; k of them, each among those that are left, are kε-private,
    and kε²/2-zCDP.
    An (ε, δ) guarantee is met by the sum of the ε, by those of the draws beside Gaussian noise in
    all else, or by zCDP, whichever leaves the draws most.
Sensitivity
    All scores of a neighbour differ from a table's by numbers in an interval of length r: 1 for
    counts of rows under ``add-remove``, which only rise, 2 under ``replace``.
Noise
    Candidates take turns in a random order, and the first is drawn whose coin shows heads, which it
    does with probability ``exp(-(ε/r) (max s - s_j))``. That is the law of the largest of
    ``s_j + E_j``, with independent exponential E_j of mean r/ε (Ding et al. 2021).
    *Proof of ε*, by that law. A constant that is added to all scores changes nothing, so let the
    neighbour's scores s' lie between s and s + r. Fix the noise of all but j: it wins where its own
    reaches t, the largest of the others less s_j; of s' that is t' <= t + r. As ``P(E >= t')`` is
    at least ``exp(-ε) P(E >= t)``, j is drawn with at least exp(-ε) times the probability; and s
    and s' may change places.
    The expected error is never above that of the exponential mechanism of the same ε, and up to
    half of it.
Numerics
    exact: integer scores, and coins of the exact probabilities.
Source
    McKenna and Sheldon (2020), "Permute-and-flip: a new mechanism for differentially private
    selection", NeurIPS. Ding, Kifer, Sayed Mohammad, Steinke, Wang, Xiao, Zhang (2021), "The
    permute-and-flip mechanism is identical to report-noisy-max with exponential noise",
    arXiv:2105.07260.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from dpmodels.mechanisms.selection_plan import (
    SelectionFacts,
    SelectionPlan,
    drawing_plan,
    drawn,
    require_number,
)
from dpmodels.noise import Entropy
from dpmodels.noise.finite import draw_flipped
from dpmodels.privacy import Guarantee, PureEvent
from dpmodels.released import MechanismInfo, SelectionRelease
from dpmodels.statistics import Statistic


@dataclass(frozen=True)
class PermuteAndFlip:
    """Permute-and-flip.

    Examples
    --------
    >>> from dpmodels.mechanisms.selection_plan import LevelScore
    >>> from dpmodels.privacy import PureDP, adjacency
    >>> facts = SelectionFacts(LevelScore(9), 2, None, 0.0, adjacency("replace"))
    >>> print(round(PermuteAndFlip().plan(facts, PureDP(1.0)).eps, 6))
    0.5
    """

    info: ClassVar[MechanismInfo] = MechanismInfo(
        name="permute_and_flip",
        theorem="eps-DP for each draw, which compose",
        sensitivity="range of the scores' changes: 1 of counts, 2 where a row is replaced",
        noise="coins, as exponential noise on every score",
        numerics="exact lattice",
        source="McKenna and Sheldon (2020)",
    )

    def plan(self, facts: SelectionFacts, guarantee: Guarantee) -> SelectionPlan:
        """Divide the budget; ArgumentError with a threshold."""
        require_number(self.info.name, facts)
        return drawing_plan(facts, guarantee, facts.max_chosen, PureEvent)

    def measure(self, private: object, plan: SelectionPlan) -> Statistic:
        """Compute the exact scores."""
        return plan.facts.score.measure(private, plan.facts)

    def release(
        self, statistic: Statistic, plan: SelectionPlan, entropy: Entropy
    ) -> SelectionRelease:
        """Draw the candidates."""
        return drawn(self.info, plan, statistic, draw_flipped, entropy)
