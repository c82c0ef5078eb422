"""Means and variances of values clipped to a range that is found first.

Theorem
    Two rounds: numbers of rows by public cell of the measured number, then the parts of
    ``geometric`` or ``gaussian`` (of ``paired`` for one mean), for the number held in a range that
    is a function of the first round's release and public facts. Both are differentially private,
    the second for any range, with budgets fixed beforehand; so together they are ε-differentially
    private for the sum of their ε, or ρ-zCDP for the sum of their ρ, by adaptive composition. An
    (ε, δ) guarantee is met by Laplace noise and leaves its δ unused.
Sensitivity
    In the first round a complete row adds 1 to one cell, all groups together:
    :func:`dpmodels.statistics.cell_passes.place_counts`. In the second a row adds parts that are
    not negative and have the sum 1, whatever the range, since each row is held in it by itself:
    that of :func:`dpmodels.statistics.counts.count_sensitivity`. In L1 norm both are 2 where a row
    is replaced and 1 where it is added or removed, in L2 norm √2 and 1.
Noise
    Independent discrete Laplace noise, under zCDP discrete Gaussian noise: in the numbers of rows
    by cell for 15 % of the budget, in the parts for the rest. The noise of the mean falls with the
    range; what it cuts off is weighed against that by the fall of the released numbers of rows
    (:func:`dpmodels.postprocess.ranges.found_range`). Noise of several sizes for the excess of the
    rows over several ranges, as ``shells`` has it for squares, gains nothing for a sum: ranges of
    lengths w_i with shares s_i of ρ have a variance in proportion to ``Σ w_i²/s_i >= (Σ w_i)²``,
    that of one range. So the release is of the rows held in the range, and the share of those that
    were outside goes along.
Numerics
    exact: in both rounds an integer statistic and integer noise of exact law; the range is found in
    floating point from released numbers.
Source
    This package; learning where rows are before their mean is of Karwa, Vadhan (2018), "Finite
    sample differentially private confidence intervals", ITCS.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import ClassVar

from dpmodels.design.cells import PrivateCells
from dpmodels.errors import ArgumentError
from dpmodels.mechanisms.count_noise import (
    gaussian_plan,
    laplace_plan,
    law_of,
    noised_counts,
    noised_mean,
    one_mean,
    paired_plan,
)
from dpmodels.mechanisms.protocol import CountFacts, CountPlan
from dpmodels.noise import Entropy
from dpmodels.postprocess.ranges import CellNoise, FoundRange, found_range, range_cells
from dpmodels.privacy import ZCDP, ApproxDP, Guarantee, PureDP
from dpmodels.released import CountsRelease, HeldIn, MechanismInfo
from dpmodels.statistics import Statistic
from dpmodels.statistics.cell_passes import CellPasses, place_counts
from dpmodels.statistics.statistic import measured_as

# Of the budget, for the range: a choice. Where nothing is gained, Laplace noise is 18 % larger.
RANGE_SHARE = 0.15
# With more noise than this fraction of the rows, too few cells are detected: a choice.
FAINT = 0.01


@dataclass(frozen=True)
class Rounds:
    """A range that covers most rows, then means or variances of the rows clipped to it.

    Made for bounds that are too wide. Reads the rows twice.

    Examples
    --------
    >>> from dpmodels.privacy import PureDP, adjacency
    >>> plan = Rounds().plan(CountFacts(1, 7, True, adjacency("replace")), PureDP(1.0))
    >>> [round(event.multiplier, 2) for event in plan.events]
    [13.33, 2.35]
    """

    info: ClassVar[MechanismInfo] = MechanismInfo(
        name="rounds",
        theorem="eps-DP or rho-zCDP, two rounds composed",
        sensitivity="of each round L1, 2, or L2, sqrt(2) (a row may change its group); or 1",
        noise="discrete Laplace, discrete Gaussian under zCDP",
        numerics="exact lattice",
        source="numbers held in a released range; this package",
    )
    passes: ClassVar[str] = "many"

    def plan(self, facts: CountFacts, guarantee: Guarantee) -> CountPlan:
        """Divide a budget between the rounds and calibrate their noise.

        ArgumentError if these are not means or variances of one number. BudgetError if the noise is
        beyond what is meaningful.
        """
        if facts.tables != 1 or not facts.divided:
            raise ArgumentError(
                "mechanism='rounds' is for means and variances of one variable (dp_mean, dp_var, "
                "dp_ttest); write mechanism='auto'"
            )
        calibrated = gaussian_plan if isinstance(guarantee, ZCDP) else laplace_plan
        cells = calibrated(replace(facts, divided=False), _share(guarantee, RANGE_SHARE))
        if one_mean(facts) and calibrated is laplace_plan:
            calibrated = paired_plan
        parts_plan = calibrated(facts, _share(guarantee, 1 - RANGE_SHARE))
        events = (*cells.events, *parts_plan.events)
        return replace(parts_plan, guarantee=guarantee, events=events, first=cells)

    def measure(self, private: PrivateCells, plan: CountPlan) -> CellPasses:
        """Prepare to read the rows once for each round."""
        public = plan.facts.adjacency.n_public
        return CellPasses((private,), plan.units_per_row, count_public=public)

    def release(self, statistic: Statistic, plan: CountPlan, entropy: Entropy) -> CountsRelease:
        """Find a range, then release the parts of the rows clipped to it."""
        statistic = measured_as(CellPasses, statistic, "counts")
        clip_range = _release_range(statistic, plan, entropy)
        passes = (
            statistic
            if clip_range is None
            else statistic.clipped(clip_range.lower, clip_range.upper)
        )
        exact, n_rows = passes.cross()
        noised = noised_mean if _paired(plan) else noised_counts
        release = noised(self.info, plan, exact, n_rows, entropy)
        if clip_range is None:
            return release
        where = HeldIn(
            clip_range.lower, clip_range.upper, clip_range.outside, clip_range.outside_sd
        )
        return replace(release, held=where)


def pays(facts: CountFacts, guarantee: Guarantee, n_rows: int) -> bool:
    """Whether there are enough rows to find a range despite the noise of the first round."""
    first = Rounds().plan(facts, guarantee).first
    return first is not None and first.noise_sd <= FAINT * n_rows


def _share(guarantee: Guarantee, share: float) -> Guarantee:
    """Return a share of a guarantee; of an (eps, delta) one that of its eps alone."""
    match guarantee:
        case ZCDP(rho):
            return ZCDP(share * rho)
        case PureDP(eps) | ApproxDP(eps, _):
            return PureDP(share * eps)


def _paired(plan: CountPlan) -> bool:
    return one_mean(plan.facts) and law_of(plan) == "laplace"


def _release_range(statistic: CellPasses, plan: CountPlan, entropy: Entropy) -> FoundRange | None:
    """Release the numbers of rows by cell, and return the range that follows."""
    number, first = statistic.measured, plan.first
    if first is None or not number.lower < number.upper:
        return None
    ends = range_cells(number.lower, number.upper)
    exact, n_rows = statistic.counted(place_counts, ends).cross()
    cells = noised_counts(Rounds.info, first, exact * first.units_per_row, n_rows, entropy)
    noise = CellNoise(cells.law, first.noise_sd)
    # Of the sum of places about the middle: half of one noise variable, or the difference of two.
    price = plan.noise_sd / (2 if _paired(plan) else math.sqrt(2))
    return found_range(ends, cells.values, noise, price, max(statistic.degree // 2, 1))
