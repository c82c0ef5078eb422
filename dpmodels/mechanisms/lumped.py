"""Numbers of rows by level, then moments of terms whose rare levels are merged.

Theorem
    Numbers of rows by level of each factor are released by a Gaussian mechanism; then the moments
    by a mechanism of its own, whose columns are a function of these numbers and public facts. Both
    multipliers are fixed beforehand: together they satisfy (ε, δ) with the exact trade-off of one
    Gaussian mechanism, or ρ-zCDP (docs/theory.md, Theorem 58).
Sensitivity
    A complete row is in one level of each of f factors: the L2 sensitivity is √(2f) where a row is
    replaced, √f where it is added or removed. Of the moments, as their mechanism's.
Noise
    Independent discrete Gaussians on the numbers, of a twentieth of the budget.
Numerics
    exact: integer counts and integer noise of exact law; of the moments as their mechanism's.
Source
    This package. R's ``forcats::fct_lump_min`` merges by exact counts.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from dpmodels.design import Scaling
from dpmodels.formula import Block, Design
from dpmodels.formula.response import COUNTS_SHARE, Merged, small_levels
from dpmodels.mechanisms.add_noise import ROUND_UP, divided_gaussian, noised_rows
from dpmodels.mechanisms.measures import OfBase, OfPasses
from dpmodels.mechanisms.protocol import CovarianceMechanism, Facts, Plan
from dpmodels.noise import Entropy
from dpmodels.noise.lattice import choose_lattice
from dpmodels.privacy import Guarantee
from dpmodels.released import MomentsRelease
from dpmodels.statistics import Passes, Statistic
from dpmodels.statistics.passes import level_counts
from dpmodels.statistics.statistic import measured_as
from dpmodels.typing import Floats

LEVELS = "rows by level"


class Recoded(NamedTuple):
    """What releases the moments of the terms with merged levels, and their coding."""

    strategy: CovarianceMechanism
    facts: Facts
    public: Design
    scaling: Scaling


@dataclass(frozen=True)
class Lumped(OfBase, OfPasses):
    """Merge levels of few rows, then release moments."""

    # What would release the moments of all levels; it is planned, and charged, for these.
    base: CovarianceMechanism
    levels: Design = field(repr=False)  # Indicators of all levels, one block a factor
    minimum: float  # Levels with a smaller noisy number of rows are merged
    # From the merged levels to what releases the moments.
    recoded: Callable[[Merged], Recoded] = field(repr=False, compare=False)

    def plan(self, facts: Facts, guarantee: Guarantee) -> Plan:
        """Divide the budget. BudgetError as of the base."""
        rest, event = divided_gaussian(guarantee, COUNTS_SHARE)
        base_plan = self.base.plan(facts, rest)
        changed = 1 + facts.adjacency.n_public
        scale = event.multiplier * math.sqrt(changed * len(self.levels.blocks)) * ROUND_UP
        events, scales = (*base_plan.events, event), {**base_plan.scales, LEVELS: scale}
        return replace(base_plan, guarantee=guarantee, events=events, scales=scales)

    def release(self, statistic: Statistic, plan: Plan, entropy: Entropy) -> MomentsRelease:
        """Release the numbers of rows by level, then the moments."""
        passes = measured_as(Passes, statistic, "moments")
        columns, scale = len(self.levels.names), plan.scales[LEVELS]
        about = Scaling(np.full(columns, 0.5), np.full(columns, 0.5), *(math.sqrt(columns),) * 2)
        indicators = passes.recoded(self.levels, about, choose_lattice(columns, scale))
        exact, _ = indicators.measured(level_counts).cross()
        counts, noise_sd = noised_rows(exact, scale, entropy)
        merged = _merged(self.levels.blocks, counts, self.minimum)
        strategy, facts, public, scaling = self.recoded(merged)
        rest, _ = divided_gaussian(plan.guarantee, COUNTS_SHARE)
        rest_plan = strategy.plan(facts, rest)
        base_plan = self.base.plan(plan.facts, rest)
        assert rest_plan.events == base_plan.events, "events do not depend on the columns"
        moments = passes.remeasured(public, scaling, lambda x: strategy.measure(x, rest_plan))
        release = strategy.release(moments, rest_plan, entropy)
        return replace(release, events=plan.events, lumped=merged, lumped_sd=noise_sd)


def _merged(blocks: tuple[Block, ...], counts: Floats, minimum: float) -> Merged:
    ends = np.cumsum([len(block.names) for block in blocks])[:-1]
    parts = zip(blocks, np.split(counts, ends), strict=True)
    small = ((block.term[0], small_levels(block.names, part, minimum)) for block, part in parts)
    return tuple((name, levels) for name, levels in small if levels)
