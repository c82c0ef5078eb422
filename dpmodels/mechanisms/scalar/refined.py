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

from dpmodels.design.cells import PrivateCells
from dpmodels.mechanisms.quantile_facts import QuantileFacts
from dpmodels.mechanisms.quantile_rounds import (
    FIRST_CELLS,
    Ends,
    RoundsPlan,
    first_ends,
    next_ends,
    noisy_cells,
    quantiles_released,
    rounds_plan,
)
from dpmodels.noise import Entropy
from dpmodels.postprocess.hierarchy import Hierarchy, NoisyCells
from dpmodels.privacy import Guarantee
from dpmodels.released import MechanismInfo, QuantilesRelease
from dpmodels.statistics import Statistic
from dpmodels.statistics.counts import counts
from dpmodels.typing import Numbers

# Of the budget, by the number of rounds: the last one needs it most. Choices.
SHARES = {1: (1.0,), 2: (0.2, 0.8), 3: (0.1, 0.2, 0.7), 4: (0.05, 0.1, 0.2, 0.65)}
# By how much a round shortens the cells, about.
SHORTENED = 11.0


@dataclass(frozen=True)
class Refined:
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
        further = math.log(max(facts.grid.cells / FIRST_CELLS, 1.0), SHORTENED)
        shares = SHARES[min(1 + math.ceil(further), len(SHARES))]
        return rounds_plan(facts, guarantee, shares, (1,) * len(shares))

    def measure(self, private: PrivateCells, plan: RoundsPlan) -> Statistic:
        """Count the rows of each group in the cells of the grid."""
        return counts(private, 1, count_public=plan.facts.adjacency.n_public)

    def release(self, statistic: Statistic, plan: RoundsPlan, entropy: Entropy) -> QuantilesRelease:
        """Count in cells that are cut finer by what came out before; invert the last counts."""
        return quantiles_released(self.info, statistic, plan, entropy, _counted)


def _counted(
    below: Numbers, plan: RoundsPlan, max_rows: float, entropy: Entropy
) -> tuple[Ends, NoisyCells]:
    """Count one group in cells that are cut round by round; return the last of them."""
    ends, last = first_ends(len(below) - 1), len(plan.scales) - 1
    for turn in range(last + 1):
        nodes = Hierarchy(len(ends) - 1)
        noisy = noisy_cells(np.diff(below[ends]), nodes, plan, turn, max_rows, entropy)
        if turn < last:
            ends = next_ends(ends, noisy, plan.facts, last - turn, plan.noise_sds[-1])
    return ends, noisy
