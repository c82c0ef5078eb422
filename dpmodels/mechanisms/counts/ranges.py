"""Numbers of rows by cell of many variables, in cells that are cut finer where the rows are.

Theorem
    Two rounds: numbers of rows by public cells of every variable, then by cells that were cut by
    what the first round released. The second is private for whatever was released before it, so
    the two compose adaptively: the release is ε-differentially private with ε the sum of both for
    Laplace noise, ρ-zCDP with ρ the sum for Gaussian noise, which at (ε, δ) has the exact trade-off
    of one Gaussian release.
Sensitivity
    Of each round that of counts in as many tables as there are variables d
    (:func:`dpmodels.statistics.counts.count_sensitivity`): a row is in one cell of each variable,
    or incomplete there. L1 norm d, 2d where a row is replaced; L2 norm √d, √(2d). All are reached.
Noise
    Independent on every count, and on the number of incomplete rows of each variable: discrete
    Laplace, or discrete Gaussian under zCDP, and at (ε, δ) where that is less.
Numerics
    exact: integer statistics, integer noise of exact law, then a division. Cells are floats made
    of public facts and released numbers. Ranges are computed from them by
    :mod:`dpmodels.postprocess.spreads`.
Source
    This package; learning a range from a noisy histogram of geometric cells is of Karwa, Vadhan
    (2018), "Finite sample differentially private confidence intervals", ITCS.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from dpmodels.design.cells import PrivateCells
from dpmodels.errors import ArgumentError
from dpmodels.mechanisms.count_noise import gaussian_plan, laplace_plan, law_of, noised_counts
from dpmodels.mechanisms.protocol import CountFacts, CountPlan, release_terms
from dpmodels.noise import Entropy
from dpmodels.postprocess.ranges import CellNoise
from dpmodels.postprocess.spreads import (
    SELDOM,
    CellCounts,
    Column,
    complete_rows,
    first_cells,
    next_cells,
)
from dpmodels.privacy import ApproxDP, Guarantee, PureDP
from dpmodels.privacy.compose import divide
from dpmodels.released import CellsRelease, MechanismInfo
from dpmodels.statistics import Statistic
from dpmodels.statistics.cell_passes import CellPasses
from dpmodels.typing import Floats

# Of the budget, for each round: a choice. The second one decides on the range.
SHARES = (0.4, 0.6)


@dataclass(frozen=True)
class Ranges:
    """Counts of rows by cell of each variable, in two rounds. Reads the rows twice.

    Examples
    --------
    >>> from dpmodels.privacy import PureDP, adjacency
    >>> plan = Ranges().plan(CountFacts(10, 10, False, adjacency("replace")), PureDP(1.0))
    >>> [round(event.multiplier, 2) for event in plan.events], plan.events[0].count
    ([50.0, 33.33], 20)
    """

    info: ClassVar[MechanismInfo] = MechanismInfo(
        name="ranges",
        theorem="eps-DP, rho-zCDP or (eps, delta)-DP, two rounds composed",
        sensitivity="of each round L1, 2 a variable (a row may change its cell), or L2, its root",
        noise="discrete Laplace, or discrete Gaussian where that is less",
        numerics="exact lattice",
        source="Karwa and Vadhan (2018); this package",
    )
    passes: ClassVar[str] = "many"

    def plan(self, facts: CountFacts, guarantee: Guarantee) -> CountPlan:
        """Divide a budget between the rounds; BudgetError if noise is beyond what is meaningful."""
        plans = []
        if not isinstance(guarantee, ApproxDP):
            law = laplace_plan if isinstance(guarantee, PureDP) else gaussian_plan
            plans = [[law(facts, part) for part in divide(guarantee, SHARES, (False, False))]]
        else:
            pure = divide(PureDP(guarantee.eps), SHARES, (False, False))
            normal = divide(guarantee, SHARES, (True, True))
            plans = [
                [laplace_plan(facts, part) for part in pure],
                [gaussian_plan(facts, part) for part in normal],
            ]
        first, second = min(plans, key=lambda rounds: rounds[1].noise_sd)
        events = (*first.events, *second.events)
        return replace(second, guarantee=guarantee, events=events, first=first)

    def measure(self, private: PrivateCells, plan: CountPlan) -> CellPasses:
        """Make ready to read the rows, once for each round."""
        return CellPasses((private,), 1, count_public=plan.facts.adjacency.n_public)

    def release(self, statistic: Statistic, plan: CountPlan, entropy: Entropy) -> CellsRelease:
        """Count in public cells, then in cells that are cut by what came out."""
        if not isinstance(statistic, CellPasses) or plan.first is None:
            raise ArgumentError("statistic= holds counts; expected what measure() returned")
        columns = [Column(number.lower, number.upper, number.step) for number in statistic.numbers]
        ends = [first_cells(column) for column in columns]
        first, n_rows = _counted(statistic, ends, plan.first, entropy)
        counts_by_column = _by_column(first, ends)
        noise = CellNoise(law_of(plan), plan.first.noise_sd, SELDOM)
        public_rows = float(n_rows) if plan.facts.adjacency.n_public else None
        finer = []
        for column, edges, counts in zip(columns, ends, counts_by_column, strict=True):
            cells = CellCounts(edges, counts[:-1], noise)
            number = complete_rows(counts, public_rows)
            finer.append(next_cells(cells, number, column, plan.noise_sd))
        second, n_rows = _counted(statistic, finer, plan, entropy)
        return CellsRelease(
            values=np.concatenate([first, second]),
            ends=np.concatenate([*ends, *finer]),
            sizes=tuple(len(edges) - 1 for edges in (*ends, *finer)),
            law=law_of(plan),
            noise_sds=(plan.first.noise_sd, plan.noise_sd),
            **release_terms(self.info, plan, n_rows),
        )


def _counted(
    statistic: CellPasses, ends: list[Floats], plan: CountPlan, entropy: Entropy
) -> tuple[Floats, int]:
    """Release the numbers of rows in cells, and after those of each variable its incomplete."""
    exact, n_rows = statistic.cut(tuple(ends)).cross()
    return noised_counts(
        Ranges.info, plan, exact * plan.units_per_row, n_rows, entropy
    ).values, n_rows


def _by_column(values: Floats, ends: list[Floats]) -> list[Floats]:
    return np.split(values, np.cumsum([len(edges) for edges in ends])[:-1])
