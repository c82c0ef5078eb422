"""The exponential mechanism, one candidate after the other.

Theorem
    One draw has a privacy loss in an interval of length ε: it is ε-differentially private and
    ε²/8-zCDP. So k of them, each among those that are left, are kε-private and kε²/8-zCDP.
    An (ε, δ) guarantee is met by the sum of the ε, by those of the draws beside Gaussian noise in
    all else, or by zCDP, whichever leaves the draws most.
Sensitivity
    All scores of a neighbour differ from a table's by numbers in an interval of length r: 1 for
    counts of rows under ``add-remove``, which only rise, 2 under ``replace``.
Noise
    A candidate is drawn with probability proportional to ``exp((ε/r) s_j)``: the logarithm of its
    ratio to a neighbour's is (ε/r) times the change of s_j, less a constant. All draws together
    have the law of the k largest of ``s_j + G_j`` in their order, with independent Gumbel noise of
    scale r/ε (Durfee and Rogers 2019).
Numerics
    exact: integer scores, and draws of the exact probabilities.
Source
    McSherry, Talwar (2007), "Mechanism design via differential privacy", FOCS. Durfee, Rogers
    (2019), "Practical differentially private top-k selection with pay-what-you-get composition",
    NeurIPS. Cesar, Rogers (2021), "Bounding, concentrating, and truncating", ALT, for ε²/8.
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
from dpmodels.noise.finite import draw_ranked
from dpmodels.privacy import BoundedRangeEvent, Guarantee
from dpmodels.released import MechanismInfo, SelectionRelease
from dpmodels.statistics import Statistic


@dataclass(frozen=True)
class Peeling:
    """Peeling by the exponential mechanism; of one candidate it is that mechanism.

    Examples
    --------
    >>> from dpmodels.mechanisms.selection_plan import LevelScore
    >>> from dpmodels.privacy import ZCDP, adjacency
    >>> facts = SelectionFacts(LevelScore(9), 2, None, 0.0, adjacency("replace"))
    >>> print(round(Peeling().plan(facts, ZCDP(0.25)).eps, 6))
    1.0
    """

    info: ClassVar[MechanismInfo] = MechanismInfo(
        name="peeling",
        theorem="eps-DP or eps^2/8-zCDP for each draw (bounded range), which compose",
        sensitivity="range of the scores' changes: 1 of counts, 2 where a row is replaced",
        noise="as Gumbel noise on every score",
        numerics="exact lattice",
        source="McSherry and Talwar (2007); Durfee and Rogers (2019)",
    )

    def plan(self, facts: SelectionFacts, guarantee: Guarantee) -> SelectionPlan:
        """Divide the budget; ArgumentError with a threshold."""
        require_number(self.info.name, facts)
        return drawing_plan(facts, guarantee, facts.max_chosen, BoundedRangeEvent)

    def measure(self, private: object, plan: SelectionPlan) -> Statistic:
        """Compute the exact scores."""
        return plan.facts.score.measure(private, plan.facts)

    def release(
        self, statistic: Statistic, plan: SelectionPlan, entropy: Entropy
    ) -> SelectionRelease:
        """Draw the candidates."""
        return drawn(self.info, plan, statistic, draw_ranked, entropy)
