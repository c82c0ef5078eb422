"""Noisy counts of cells that are cut finer, round by round, where the quantiles are.

Theorem
    Each round counts the complete rows in cells that were chosen by the noisy counts of the rounds
    before it and nothing else of the rows. Rounds are composed adaptively: with Laplace noise the
    release is ε-differentially private, ε the sum over rounds, and an (ε, δ) guarantee leaves its δ
    unused; under zCDP the noise is Gaussian and the ρ of the rounds add up.
Sensitivity
    The cells of one round are disjoint, those of all groups together too. A row more or fewer
    changes one count by 1; a row replaced may lower one count by 1 and raise another, in the same
    group or not: L1 norm 2, as two releases of sensitivity 1, and L2 norm √2. However many cells,
    groups and quantiles.
Noise
    Independent discrete Laplace or discrete Gaussian noise on every count of a round. The last
    round, which has most of the budget, gives the quantiles and their intervals
    (:class:`dpmodels.postprocess.hierarchy.NoisyCells`); its noise is independent of its cells. The
    number of rows is not bought: its noise is that of the sum of the counts.
Numerics
    exact: integer counts, integer noise of exact law. Gaussian noise is drawn in units so fine that
    its scale is 2²⁰ of them or more: drawn in rows its δ would exceed that of the continuous law,
    by which a ledger of (ε, δ) prices it.
Source
    Dwork, Rothblum, Vadhan (2010), "Boosting and differential privacy", FOCS, for adaptive rounds.
    Ghosh, Roughgarden, Sundararajan (2009) and Canonne, Kamath, Steinke (2020) for the noise.
    Woodruff (1952), "Confidence intervals for medians and other position measures", JASA.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from dpmodels.mechanisms import quantile_rounds
from dpmodels.mechanisms.measures import OfCells
from dpmodels.mechanisms.quantile_facts import QuantileFacts
from dpmodels.mechanisms.quantile_rounds import RoundsPlan, noisy_cells
from dpmodels.noise import Entropy
from dpmodels.postprocess.hierarchy import Hierarchy, NoisyCells, best_fanout, levels_of, line
from dpmodels.privacy import ZCDP, Guarantee
from dpmodels.released import MechanismInfo, QuantilesRelease
from dpmodels.statistics import Statistic
from dpmodels.typing import Numbers

# Of the budget, by the number of rounds: the last one needs it most. Choices.
SHARES = {1: (1.0,), 2: (0.2, 0.8), 3: (0.1, 0.2, 0.7), 4: (0.05, 0.1, 0.2, 0.65)}
# By how much a round shortens the cells, about.
SHORTENED = 11.0


@dataclass(frozen=True)
class Refined(OfCells):
    """Counts of cells that are cut finer where the quantiles are.

    Examples
    --------
    >>> from dpmodels.mechanisms.quantile_facts import Grid
    >>> from dpmodels.privacy import PureDP, adjacency
    >>> facts = QuantileFacts((0.5,), 4, Grid(16), None, adjacency("replace"))
    >>> [round(scale, 6) for scale in Refined().plan(facts, PureDP(1.0)).scales]
    [2.0]
    """

    info: ClassVar[MechanismInfo] = MechanismInfo(
        name="refined",
        theorem="eps-DP or rho-zCDP, adaptive rounds of counts",
        sensitivity="of each round 2 in L1, sqrt(2) in L2 (a row may change its cell) or 1",
        noise="discrete Laplace, under zCDP discrete Gaussian, one scale a round",
        numerics="exact lattice",
        source="Dwork, Rothblum and Vadhan (2010); Woodruff (1952)",
    )

    def plan(self, facts: QuantileFacts, guarantee: Guarantee) -> RoundsPlan:
        """Calibrate the noise of each round; BudgetError if it is beyond what is meaningful."""
        further = math.log(max(facts.grid.cells / quantile_rounds.FIRST_CELLS, 1.0), SHORTENED)
        shares = SHARES[min(1 + math.ceil(further), len(SHARES))]
        return quantile_rounds.rounds_plan(facts, guarantee, shares, (1,) * len(shares))

    def release(self, statistic: Statistic, plan: RoundsPlan, entropy: Entropy) -> QuantilesRelease:
        """Count in cells that are cut finer by what came out before; invert the last counts."""
        return quantile_rounds.quantiles_released(self.info, statistic, plan, entropy, _counted)


def _counted(
    below: Numbers, plan: RoundsPlan, max_rows: float, entropy: Entropy
) -> tuple[quantile_rounds.Ends, NoisyCells]:
    """Count one group in cells that are cut round by round; return the last of them."""
    ends, last = quantile_rounds.first_ends(len(below) - 1), len(plan.scales) - 1
    for turn in range(last + 1):
        nodes = Hierarchy(len(ends) - 1)
        noisy = quantile_rounds.noisy_cells(
            np.diff(below[ends]), nodes, plan, turn, max_rows, entropy
        )
        if turn < last:
            ends = quantile_rounds.next_ends(
                ends, noisy, plan.facts, last - turn, plan.noise_sds[-1]
            )
    return ends, noisy


# Of the budget, where there are two rounds; of the first one's cells, at most. Choices.
TREE_SHARES = (0.3, 0.7)
FIRST = 1024


@dataclass(frozen=True)
class RankTree(OfCells):
    """Two trees of counts, for many quantiles at once.

    Quantiles from two trees of counts: one over the range, one over cells that the first has cut.

    Theorem
        Each round counts the complete rows in the nodes of a tree. The nodes of the first are
        public; those of the second follow from the noisy counts of the first and nothing else of
        the rows. So the release is what adaptive rounds of counts are: with Laplace noise
        ε-differentially private, ε the sum over both, and an (ε, δ) guarantee leaves its δ unused;
        under zCDP the noise is Gaussian and the ρ of both add up.
    Sensitivity
        On each of the h levels of a round the nodes are disjoint, those of all groups together too.
        A row more or fewer changes one count a level by 1, a row replaced two: L1 norm h, or 2h, L2
        norm √h, or √(2h), whatever cells were cut. The second round has two levels: of K cells at
        most ⌈√K⌉ stand under a node, and so there are at most as many nodes.
    Noise
        Independent discrete Laplace or discrete Gaussian noise on every count of a round. The
        counts of a round are made to agree by least squares. Those of the second, whose noise is
        independent of its cells, give all quantiles and their intervals: the noise of a rank is
        that of a sum over a run of cells, whose variance is exact.
    Numerics
        exact: integer counts, integer noise of exact law. Gaussian noise is drawn in units so fine
        that its scale is 2²⁰ of them or more, as its price by (ε, δ) asks.
    Source
        Hay, Rastogi, Miklau, Suciu (2010), "Boosting the accuracy of differentially private
        histograms through consistency", VLDB. Dwork, Rothblum, Vadhan (2010), "Boosting and
        differential privacy", FOCS, for adaptive rounds. Woodruff (1952), "Confidence intervals for
        medians and other position measures", JASA.

    Examples
    --------
    >>> from dpmodels.mechanisms.quantile_facts import Grid
    >>> from dpmodels.privacy import PureDP, adjacency
    >>> facts = QuantileFacts((0.25, 0.5), 1, Grid(4096), None, adjacency("replace"))
    >>> plan = RankTree().plan(facts, PureDP(1.0))
    >>> plan.levels, [round(scale, 3) for scale in plan.scales]
    ((2, 2), [13.333, 5.714])
    """

    info: ClassVar[MechanismInfo] = MechanismInfo(
        name="tree",
        theorem="eps-DP or rho-zCDP, two adaptive rounds of counts in trees",
        sensitivity="of each round 2 a level in L1, its root in L2 (a row may change its nodes)",
        noise="discrete Laplace, under zCDP discrete Gaussian, one scale a round",
        numerics="exact lattice",
        source="Hay, Rastogi, Miklau and Suciu (2010); Dwork, Rothblum and Vadhan (2010)",
    )

    def plan(self, facts: QuantileFacts, guarantee: Guarantee) -> RoundsPlan:
        """Calibrate the noise of both rounds; BudgetError if it is beyond what is meaningful."""
        cells = min(facts.grid.cells, FIRST)
        fanout = best_fanout(cells, squared=not isinstance(guarantee, ZCDP))
        first = levels_of(cells, fanout)
        if facts.grid.cells <= FIRST:
            return quantile_rounds.rounds_plan(facts, guarantee, (1.0,), (first,))
        return quantile_rounds.rounds_plan(facts, guarantee, TREE_SHARES, (first, 2))

    def release(self, statistic: Statistic, plan: RoundsPlan, entropy: Entropy) -> QuantilesRelease:
        """Count in a tree over the range, then in one over cells it has cut; invert the last."""
        return quantile_rounds.quantiles_released(
            self.info, statistic, plan, entropy, _counted_in_trees
        )


def _counted_in_trees(
    below: Numbers, plan: RoundsPlan, max_rows: float, entropy: Entropy
) -> tuple[quantile_rounds.Ends, NoisyCells]:
    ends = quantile_rounds.equal_ends(len(below) - 1, FIRST)
    nodes = line(len(ends) - 1, best_fanout(len(ends) - 1, squared=plan.law == "laplace"))
    noisy = noisy_cells(np.diff(below[ends]), nodes, plan, 0, max_rows, entropy)
    if len(plan.scales) == 1:
        return ends, noisy
    ends = quantile_rounds.even_ends(ends, noisy, plan.facts, plan.noise_sds[1])
    nodes = line(len(ends) - 1, fanout_of_two(len(ends) - 1))
    return ends, noisy_cells(np.diff(below[ends]), nodes, plan, 1, max_rows, entropy)


def fanout_of_two(cells: int) -> int:
    """Return how many children at most the nodes of a tree of two levels have.

    >>> fanout_of_two(100), fanout_of_two(101)
    (10, 11)
    """
    return max(math.isqrt(cells - 1) + 1, 2)
