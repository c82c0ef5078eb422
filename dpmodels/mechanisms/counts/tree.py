"""Noisy counts of the nodes of a tree above cells that stand in an order.

Theorem
    A row adds 1 to one node of each level, or to the incomplete rows: counts of h tables. So the
    release is what :mod:`~dpmodels.mechanisms.counts.geometric` and
    :mod:`~dpmodels.mechanisms.counts.geometric` are for h tables: ε-differentially private for
    Laplace noise, ρ-zCDP for Gaussian noise, which at (ε, δ) has the exact trade-off of the
    Gaussian mechanism.
Sensitivity
    Of all counts together: L1 norm h, 2h where a row is replaced; L2 norm √h, √(2h)
    (:func:`dpmodels.statistics.counts.count_sensitivity`). All are reached. The number of all rows
    is not among them: it costs nothing where it is public.
Noise
    Independent on every node, and on the number of incomplete rows: discrete Laplace for a pure
    budget, else of the two laws that which leaves sums over ranges less variance. A node has as
    many children as are best for the mean range.
Numerics
    exact: integer counts of cells, whose sums over nodes are integers, integer noise of exact law,
    then a division.
Source
    Hay, Rastogi, Miklau, Suciu (2010), "Boosting the accuracy of differentially private histograms
    through consistency", VLDB. Qardaji, Yang, Li (2013), "Understanding hierarchical methods for
    differentially private histograms", VLDB, for the number of children.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import ClassVar

import numpy as np

from dpmodels.arguments import integer
from dpmodels.design.cells import PrivateCells
from dpmodels.mechanisms.count_noise import law_of, noised_sums, quieter_plan
from dpmodels.mechanisms.protocol import CountFacts, CountPlan
from dpmodels.noise import Entropy
from dpmodels.postprocess.hierarchy import Hierarchy, best_fanout, levels_of, line, range_counts
from dpmodels.privacy import Guarantee
from dpmodels.released import MechanismInfo, SumsRelease
from dpmodels.statistics import Statistic
from dpmodels.statistics.counts import counts

# No table has more cells.
WIDEST = 2**24


@dataclass(frozen=True)
class Tree:
    """Tree of counts, made to agree by least squares.

    Parameters
    ----------
    fanout : int, optional
        Children of a node, 2 or more; by default what is best for the mean range.

    Examples
    --------
    >>> from dpmodels.privacy import PureDP, adjacency
    >>> facts = CountFacts(1, 4097, False, adjacency("replace"), (1, 4096))
    >>> plan = Tree().plan(facts, PureDP(1.0))
    >>> plan.events[0].count, round(plan.scale, 6)
    (6, 6.0)
    """

    fanout: int | None = None

    info: ClassVar[MechanismInfo] = MechanismInfo(
        name="tree",
        theorem="eps-DP, rho-zCDP or (eps, delta)-DP, as counts in so many tables as levels",
        sensitivity="L1, 2 a level (a row may change its nodes) or 1, or L2, its root",
        noise="discrete Laplace, or discrete Gaussian where that is less",
        numerics="exact lattice",
        source="Hay, Rastogi, Miklau and Suciu (2010); Qardaji, Yang and Li (2013)",
    )

    def __post_init__(self) -> None:
        if self.fanout is not None:
            integer("fanout", self.fanout, 2, WIDEST, "; or leave it out")

    def plan(self, facts: CountFacts, guarantee: Guarantee) -> CountPlan:
        """Calibrate the noise; BudgetError if it is beyond what is meaningful."""
        return quieter_plan(facts, guarantee, partial(self._levels, facts))

    def measure(self, private: PrivateCells, plan: CountPlan) -> Statistic:
        """Compute the exact counts of the cells."""
        return counts(private, 1, count_public=plan.facts.adjacency.n_public)

    def release(self, statistic: Statistic, plan: CountPlan, entropy: Entropy) -> SumsRelease:
        """Add the planned noise to the counts of all nodes."""
        exact, n_rows = statistic.cross()
        hierarchy, fanout = self.above(plan)
        cells = exact[:-1].reshape(plan.facts.shape[0], -1)
        nodes = np.concatenate(hierarchy.sums(cells), axis=-1).ravel()
        sums = np.append(nodes, exact[-1])
        return noised_sums(self.info, plan, sums, n_rows, entropy, fanout=fanout)

    def _levels(self, facts: CountFacts, squared: bool) -> tuple[int, float]:
        cells, fanout = facts.shape[1], self._fanout(facts, squared=squared)
        return levels_of(cells, fanout), range_counts(cells, fanout)

    def _fanout(self, facts: CountFacts, *, squared: bool) -> int:
        return self.fanout or best_fanout(facts.shape[1], squared=squared)

    def above(self, plan: CountPlan) -> tuple[Hierarchy, int]:
        """Return the nodes that a plan is for, and how many children each has at most."""
        fanout = self._fanout(plan.facts, squared=law_of(plan) == "laplace")
        return line(plan.facts.shape[1], fanout), fanout
