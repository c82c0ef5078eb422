"""Counts of the cells of a regression whose terms are categories.

The release, its sensitivity, noise and guarantee are those of ``geometric`` or ``gaussian``
(:mod:`dpmodels.mechanisms.counts.geometric`) for one table, of which a row is in one cell or
incomplete. Coefficients are computed from it afterwards: theorem 61 of ``docs/theory.md``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from dpmodels.design import PrivateDesign
from dpmodels.formula.tally import Tally
from dpmodels.mechanisms.counts import Gaussian, Geometric
from dpmodels.mechanisms.protocol import CountFacts, CountPlan, RegressionFacts
from dpmodels.privacy import Guarantee
from dpmodels.statistics import Statistic


@dataclass(frozen=True)
class Cells:
    """The table, and how the rows of a design are counted in it."""

    tally: Tally
    passes: ClassVar[str] = "one"

    def plan(self, facts: RegressionFacts, guarantee: Guarantee) -> CountPlan:
        """Calibrate the noise of one table; BudgetError if it is beyond what is meaningful."""
        parent: Any = super()
        plan: CountPlan = parent.plan(cell_facts(self.tally, facts), guarantee)
        return plan

    def measure(self, private: PrivateDesign, plan: CountPlan) -> Statistic:
        """Compute the exact counts."""
        parent: Any = super()
        statistic: Statistic = parent.measure(private.counted(self.tally), plan)
        return statistic


class GeometricCells(Cells, Geometric):  # type: ignore[misc]
    """Geometric mechanism for the cells of a regression."""


class GaussianCells(Cells, Gaussian):  # type: ignore[misc]
    """Gaussian mechanism for the cells of a regression."""


def cell_facts(tally: Tally, facts: RegressionFacts) -> CountFacts:
    """Return the public facts of one table that counts whole rows."""
    return CountFacts(1, tally.size, divided=False, adjacency=facts.adjacency)
