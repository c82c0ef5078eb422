"""Noisy counts of the blocks of a plane, and of its cells.

Theorem
    A row adds 1 to one block of each level, or to the incomplete rows: counts of h tables, as
    :mod:`~dpmodels.mechanisms.counts.tree` has them. So the release is ε-differentially private
    for Laplace noise, ρ-zCDP for Gaussian noise, which at (ε, δ) has the exact trade-off of the
    Gaussian mechanism.
Sensitivity
    Of all counts together: L1 norm h, 2h where a row is replaced; L2 norm √h, √(2h)
    (:func:`dpmodels.statistics.counts.count_sensitivity`). All are reached. The number of all rows
    is not among them: it costs nothing where it is public.
Noise
    Independent on every block, and on the number of incomplete rows: discrete Laplace for a pure
    budget, else of the two laws that which leaves sums over rectangles less variance. The side of
    a block is what is best for the mean rectangle
    (:func:`dpmodels.postprocess.plane.rectangle_counts`); one level is counts of the cells alone.
Numerics
    exact: integer counts of cells, whose sums over blocks are integers, integer noise of exact
    law, then a division.
Source
    Qardaji, Yang, Li (2013), "Understanding hierarchical methods for differentially private
    histograms", VLDB. Hay, Rastogi, Miklau, Suciu (2010), "Boosting the accuracy of differentially
    private histograms through consistency", VLDB.
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
from dpmodels.postprocess.plane import best_side, block_sizes, plane, rectangle_counts
from dpmodels.privacy import Guarantee
from dpmodels.released import MechanismInfo, SumsRelease
from dpmodels.statistics import Statistic
from dpmodels.statistics.counts import counts

# No axis has more cells.
WIDEST = 2**24


@dataclass(frozen=True)
class Grid:
    """Blocks of counts in a plane, made to agree by least squares.

    Parameters
    ----------
    side : int, optional
        Blocks along each axis that a block has under it, 2 or more; by default what is best for
        the mean rectangle.

    Examples
    --------
    >>> from dpmodels.privacy import PureDP, adjacency
    >>> facts = CountFacts(1, 256 * 256 + 1, False, adjacency("replace"), (1, 256, 256))
    >>> plan = Grid().plan(facts, PureDP(1.0))
    >>> plan.events[0].count, round(plan.scale, 6)
    (4, 4.0)
    """

    side: int | None = None

    info: ClassVar[MechanismInfo] = MechanismInfo(
        name="grid",
        theorem="eps-DP, rho-zCDP or (eps, delta)-DP, as counts in so many tables as levels",
        sensitivity="L1, 2 a level (a row may change its blocks) or 1, or L2, its root",
        noise="discrete Laplace, or discrete Gaussian where that is less",
        numerics="exact lattice",
        source="Qardaji, Yang and Li (2013); Hay, Rastogi, Miklau and Suciu (2010)",
    )

    def __post_init__(self) -> None:
        if self.side is not None:
            integer("side", self.side, 2, WIDEST, "; or leave it out")

    def plan(self, facts: CountFacts, guarantee: Guarantee) -> CountPlan:
        """Calibrate the noise; BudgetError if it is beyond what is meaningful."""
        return quieter_plan(facts, guarantee, partial(self._levels, facts))

    def measure(self, private: PrivateCells, plan: CountPlan) -> Statistic:
        """Compute the exact counts of the cells."""
        return counts(private, 1, count_public=plan.facts.adjacency.n_public)

    def release(self, statistic: Statistic, plan: CountPlan, entropy: Entropy) -> SumsRelease:
        """Add the planned noise to the counts of all blocks."""
        exact, n_rows = statistic.cross()
        shape = plan.facts.shape
        side = self.side_of(plan)
        blocks = plane(shape[1:], side)
        cells = exact[:-1].reshape(shape[0], -1).astype(np.int64)[:, blocks.order]
        nodes = np.concatenate(blocks.hierarchy.sums(cells), axis=-1).ravel()
        sums = np.append(nodes, int(exact[-1]))
        return noised_sums(self.info, plan, sums, n_rows, entropy, fanout=side)

    def side_of(self, plan: CountPlan) -> int:
        """Return the side of the blocks of a plan."""
        return self._side(plan.facts, squared=law_of(plan) == "laplace")

    def _levels(self, facts: CountFacts, squared: bool) -> tuple[int, float]:
        cells, side = facts.shape[1:], self._side(facts, squared=squared)
        return len(block_sizes(cells, side)), rectangle_counts(cells, side)

    def _side(self, facts: CountFacts, *, squared: bool) -> int:
        return self.side or best_side(facts.shape[1:], squared=squared)
