"""Quantiles drawn by the exponential mechanism, and counts of cells on both sides of them.

Theorem
    A share of the budget buys draws and numbers of rows, as
    :mod:`~dpmodels.mechanisms.scalar.exponential` does. The rest buys one round of counts, as
    :mod:`~dpmodels.mechanisms.scalar.refined` has them, of cells that follow from the drawn values
    and nothing else of the rows. Both are composed adaptively: ε-differential privacy, or zCDP,
    of the sum (Theorem 64); an (ε, δ) guarantee leaves its δ unused.
Sensitivity
    Of the draws as there. The cells are disjoint, those of all groups together too: L1 norm 2 and
    L2 norm √2 where a row is replaced, else 1, whatever values were drawn.
Noise
    In ranks, that of the draws: an error of 1/c rows on average, c its concentration. On every
    count discrete Laplace noise, under zCDP discrete Gaussian. Intervals are made of the counts
    alone, whose noise is independent of the cells, and contain the drawn value.
Numerics
    exact: integer ranks and counts, draws and noise of exact law.
Source
    Smith (2011), "Privacy-preserving statistical estimation with optimal convergence rates", STOC.
    Dwork, Rothblum, Vadhan (2010), "Boosting and differential privacy", FOCS, for adaptive rounds.
    Woodruff (1952), "Confidence intervals for medians and other position measures", JASA. How the
    budget is divided is of this package.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from dpmodels.design.cells import PrivateCells
from dpmodels.mechanisms.protocol import release_terms
from dpmodels.mechanisms.quantile_facts import QuantileFacts
from dpmodels.mechanisms.quantile_rounds import (
    RoundsPlan,
    doubling_ends,
    noisy_cells,
    rounds_plan,
)
from dpmodels.mechanisms.scalar.exponential import COUNT_SHARE, Exponential, QuantilePlan
from dpmodels.noise import Entropy
from dpmodels.postprocess.hierarchy import Hierarchy
from dpmodels.privacy import ZCDP, Guarantee, PureDP
from dpmodels.released import MechanismInfo, QuantilesRelease
from dpmodels.statistics import Statistic
from dpmodels.statistics.counts import counts

# Of the budget: draws, with as much for the numbers of rows as where there is nothing else. Rank
# errors fall as the inverse of a share: two thirds leave 1.5 times those of draws that have all,
# and intervals fall in length with what is left.
DRAWS = 0.69


@dataclass(frozen=True)
class BracketedPlan(QuantilePlan):
    """Calibrated draws, and the counts beside them: everything but the data."""

    cells: RoundsPlan


@dataclass(frozen=True)
class Bracketed:
    """Drawn quantiles, and counts of cells that double with their distance from them.

    Examples
    --------
    >>> from dpmodels.mechanisms.quantile_facts import Grid
    >>> from dpmodels.privacy import adjacency
    >>> facts = QuantileFacts((0.5,), 1, Grid(1000), 0.95, adjacency("replace"))
    >>> plan = Bracketed().plan(facts, PureDP(1.0))
    >>> round(plan.middle[0], 6), [round(scale, 3) for scale in plan.cells.scales]
    (0.32, [6.452])
    """

    info: ClassVar[MechanismInfo] = MechanismInfo(
        name="bracketed",
        theorem="eps-DP or rho-zCDP, a draw of bounded range and a round of counts",
        sensitivity="that of exponential; of the counts 2 in L1, sqrt(2) in L2, or 1",
        noise="exponential tails in ranks; counts: discrete Laplace, under zCDP discrete Gaussian",
        numerics="exact lattice",
        source="Smith (2011); Dwork, Rothblum and Vadhan (2010); Woodruff (1952)",
    )

    def plan(self, facts: QuantileFacts, guarantee: Guarantee) -> BracketedPlan:
        """Calibrate draws and counts; BudgetError if noise is beyond what is meaningful."""
        draws = Exponential(COUNT_SHARE / DRAWS).plan(facts, _part(guarantee, DRAWS))
        cells = rounds_plan(facts, _part(guarantee, 1 - DRAWS), (1.0,), (1,))
        events = (*draws.events, *cells.events)
        return BracketedPlan(guarantee, events, facts, draws.middle, draws.count_scale, cells)

    def measure(self, private: PrivateCells, plan: BracketedPlan) -> Statistic:
        """Count the rows of each group in the cells of the grid."""
        return counts(private, 1, count_public=plan.facts.adjacency.n_public)

    def release(
        self, statistic: Statistic, plan: BracketedPlan, entropy: Entropy
    ) -> QuantilesRelease:
        """Draw the quantiles of each group, then count on both sides of them."""
        drawn = Exponential().release(statistic, plan, entropy)
        exact, n_rows = statistic.cross()
        facts, grid = plan.facts, plan.facts.grid
        values = drawn.values.copy()
        max_rows = float(n_rows) if facts.adjacency.n_public else math.inf
        for group, table in enumerate(exact[:-1].reshape(facts.groups, -1)):
            cells = grid.cell(values[group, :, 0])
            ends = doubling_ends(grid, cells[~np.isnan(cells)].astype(np.intp))
            sums = np.add.reduceat(table, ends[:-1])
            noisy = noisy_cells(sums, Hierarchy(len(sums)), plan.cells, 0, max_rows, entropy)
            for place in np.flatnonzero(~np.isnan(cells)) if facts.level is not None else ():
                first, last = noisy.interval(facts.probs[place], facts.level)
                values[group, place, 1] = grid.lower[ends[first]]
                values[group, place, 2] = grid.upper[ends[last + 1] - 1]
        return replace(drawn, values=values, **release_terms(self.info, plan, n_rows))


def _part(guarantee: Guarantee, share: float) -> Guarantee:
    """Return a share of a budget, of an (eps, delta) guarantee without its delta."""
    if isinstance(guarantee, ZCDP):
        return ZCDP(share * guarantee.rho)
    return PureDP(share * guarantee.eps)
