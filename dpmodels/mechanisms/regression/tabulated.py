"""Counts of the cells of a regression whose terms are categories.

The release, its sensitivity, noise and guarantee are those of ``geometric`` or ``gaussian``
(:mod:`dpmodels.mechanisms.counts.geometric`) for one table, of which a row is in one cell or
incomplete. Coefficients are computed from it afterwards: theorem 59 of ``docs/theory.md``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from dpmodels.design import PrivateDesign
from dpmodels.formula.tally import Tally
from dpmodels.mechanisms.counts import CountMechanism
from dpmodels.mechanisms.protocol import CountFacts, CountPlan, RegressionFacts
from dpmodels.noise import Entropy
from dpmodels.privacy import Guarantee
from dpmodels.released import CountsRelease, MechanismInfo
from dpmodels.statistics import Statistic


@dataclass(frozen=True)
class CellCounts:
    """A mechanism for counts, applied to the table of a regression."""

    strategy: CountMechanism
    tally: Tally
    passes: ClassVar[str] = "one"

    @property
    def info(self) -> MechanismInfo:
        """What is printed of the mechanism."""
        return self.strategy.info

    def plan(self, facts: RegressionFacts, guarantee: Guarantee) -> CountPlan:
        """Calibrate the noise of one table; BudgetError if it is beyond what is meaningful."""
        return self.strategy.plan(cell_facts(self.tally, facts), guarantee)

    def measure(self, private: PrivateDesign, plan: CountPlan) -> Statistic:
        """Compute the exact counts."""
        return self.strategy.measure(private.counted(self.tally), plan)

    def release(self, statistic: Statistic, plan: CountPlan, entropy: Entropy) -> CountsRelease:
        """Add the planned noise to the exact counts."""
        return self.strategy.release(statistic, plan, entropy)


def cell_facts(tally: Tally, facts: RegressionFacts) -> CountFacts:
    """Return the public facts of one table that counts whole rows."""
    return CountFacts(1, tally.size, divided=False, adjacency=facts.adjacency)
