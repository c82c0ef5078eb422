"""Weighted sums of a survey design, with weights capped at a bound that is found first.

Theorem
    Two rounds: numbers of units by the public cell of their total weight, and where a range is
    searched by that of the measured number, then the parts of :mod:`dpmodels.statistics.sampled`
    for weights capped at, and numbers clipped to, a function of the released numbers.
    Each is differentially private for any cap and range, so together they are ε-differentially
    private for the sum of their ε, ρ-zCDP for the sum of their ρ, or with Gaussian noise have the
    trade-off of one Gaussian release with the sum of ``1/m²``, by adaptive composition (Theorems 71
    and 72).
Sensitivity
    A unit (a row, or all rows of a sampling unit) adds 1 to one cell in the first round, and where
    a range is searched a row adds 1 to one cell more. In the
    second it adds to the table parts that are not negative and have the sum 1, to that of capped
    units parts of the sum κ at most, and to that of strata, if there are any, half of that: L1
    ``1 + κ + κ/2``, L2 ``√(1 + κ² + κ²/4)``, twice and √2 times as much where a unit is replaced,
    since no product of parts is negative. A table of counts has products of shares beside the
    parts of capped units, of the sum κ at most too: L1 ``1 + 2κ + κ/2``, L2 ``√(1 + 2κ² + κ²/4)``,
    whatever the number of cells (Theorem 79). Several tables have these sums each, one after
    another: L1 norms add up, L2 norms by squares (Theorem 82).
Noise
    Independent discrete Laplace noise under a pure guarantee, else discrete Gaussian noise, in
    units of which a unit of the sample has up to 2⁴⁰.
Numerics
    exact: integer statistic, integer noise of exact law; the cap is a floating-point function of
    released numbers.
Source
    This package; weights and privacy: Seeman, Si and Reiter (2024), "Differentially private
    inference with survey weights", arXiv:2411.04236.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import ClassVar, Final

import numpy as np

from dpmodels.design.cells import PrivateCells
from dpmodels.formula.tally import STEPS
from dpmodels.mechanisms.count_noise import (
    gaussian_sums,
    laplace_sums,
    law_of,
    noised_counts,
    noised_units,
)
from dpmodels.mechanisms.protocol import CountFacts, CountPlan
from dpmodels.noise import Entropy
from dpmodels.postprocess import weight_caps
from dpmodels.postprocess.ranges import CellNoise, found_range, held_in, range_cells
from dpmodels.postprocess.weight_caps import share_for_cap
from dpmodels.privacy import ZCDP, Guarantee, PureDP, gaussian_multiplier
from dpmodels.released import CappedWeights, CountsRelease, HeldIn, MechanismInfo
from dpmodels.statistics import Statistic
from dpmodels.statistics.sampled import Amounts, SampledPasses
from dpmodels.statistics.statistic import measured_as

# Of the budget, for the numbers of units by weight where a range is searched, which takes noise
# below this fraction of the rows: choices.
RANGED_SHARE, FAINT = 0.1, 0.01
# The largest share for these numbers, and cells per octave of the weights of few units: choices.
MOST_SHARE, WIDE = 0.15, 2
# What a unit adds to the tables of capped units and of strata, by the law of the noise: choices.
SIDES: Final = {"gaussian": (0.5, 0.25), "laplace": (0.25, 0.125)}


@dataclass(frozen=True)
class Capped:
    """Caps sampling weights at a released bound, then adds noise to weighted sums.

    Parameters
    ----------
    ranged : bool
        Whether a range of the measured number of rows, each a unit, is searched first.
    share : float
        Of the budget, for numbers of units by weight.
    per_octave : int or None
        Cells per octave of weights; by default 4, and 8 of totals of units of several rows.

    Examples
    --------
    >>> from dpmodels.privacy import PureDP, adjacency
    >>> facts = CountFacts(1, 7, True, adjacency("replace"), side_tables=1)
    >>> [round(event.multiplier, 2) for event in Capped().plan(facts, PureDP(1.0)).events]
    [33.33, 1.03]
    """

    info: ClassVar[MechanismInfo] = MechanismInfo(
        name="capped",
        theorem="eps-DP, rho-zCDP or (eps, delta)-DP, two rounds composed",
        sensitivity="parts of a unit sum to 1, whatever its weight; side tables add a little",
        noise="discrete Gaussian, discrete Laplace under a pure guarantee",
        numerics="exact lattice",
        source="weights capped at a released bound; this package",
    )
    passes: ClassVar[str] = "many"
    ranged: bool = False
    share: float = weight_caps.CAP_SHARE
    per_octave: int | None = None

    def for_units(
        self, facts: CountFacts, guarantee: Guarantee, lower: float, largest: float, n_units: int
    ) -> Capped:
        """Return a mechanism that detects so many units, a public number.

        Where they are few it counts them in wider cells, and spends more of the budget on that.
        """
        changed = 2 if facts.adjacency.n_public else 1
        if isinstance(guarantee, PureDP):
            noise_sd = math.sqrt(2) * changed / guarantee.eps
        else:
            noise_sd = math.sqrt(changed) * gaussian_multiplier(guarantee)
        for cells in (weight_caps.OF_TOTALS, weight_caps.PER_OCTAVE, WIDE):
            edges = weight_caps.weight_edges(lower, largest, cells)
            share = share_for_cap(edges, noise_sd, n_units, adds_up=isinstance(guarantee, PureDP))
            if cells == weight_caps.OF_TOTALS and share <= weight_caps.CAP_SHARE:
                return self
            if cells < weight_caps.OF_TOTALS and share <= MOST_SHARE:
                return replace(self, share=max(share, weight_caps.CAP_SHARE), per_octave=cells)
        return self

    def plan(self, facts: CountFacts, guarantee: Guarantee) -> CountPlan:
        """Divide a budget between the rounds and calibrate their noise."""
        share = RANGED_SHARE if self.ranged else self.share * facts.capped
        first, second = _divided(guarantee, share)
        pure = isinstance(guarantee, PureDP)
        sums, law = (laplace_sums, "laplace") if pure else (gaussian_sums, "gaussian")
        sides = SIDES[law][: facts.side_tables]
        blocks = (1, *sides) * facts.tables + (SIDES[law][0],) * facts.products
        changed = 2 if facts.adjacency.n_public else 1
        first_norm = changed if pure else math.sqrt(changed)
        norm = first_norm * (sum(blocks) if pure else math.hypot(*blocks))
        plan = sums(facts, second, norm)
        if first is None:
            return replace(plan, guarantee=guarantee)
        # The first round is of two tables where there is a range.
        cells_norm = first_norm * (1 if not self.ranged else 2 if pure else math.sqrt(2))
        ladder = sums(facts, first, cells_norm)
        events = (*ladder.events, *plan.events)
        return replace(plan, guarantee=guarantee, events=events, first=ladder)

    def measure(self, private: PrivateCells, plan: CountPlan) -> SampledPasses:
        """Prepare to read the rows once for each round."""
        return SampledPasses(private)

    def release(self, statistic: Statistic, plan: CountPlan, entropy: Entropy) -> CountsRelease:
        """Find a cap, then release the parts of units whose weights are capped at it."""
        passes = measured_as(SampledPasses, statistic, "counts")
        limits = _released_range(passes, plan, entropy) if self.ranged else None
        cap = _released_cap(passes, plan, entropy, self.per_octave)
        passes = passes if limits is None else passes.clipped(limits.lower, limits.upper)
        slots, law = plan.facts.adjacency.places, law_of(plan)
        side, by_stratum = SIDES[law]
        amounts = Amounts(*(round(plan.units_per_row * slots * of) for of in (1, side, by_stratum)))
        steps = max(round(cap.cap / passes.sampling.upper * STEPS), 1)
        (table, *sides), n_units = passes.parts(steps, amounts)
        release = noised_counts(self.info, plan, table, n_units * slots, entropy)
        noisy = [
            noised_counts(self.info, plan, part, 0, entropy).values / amount
            for part, amount in zip(sides, SIDES[law], strict=False)
        ]
        capped = CappedWeights(
            **cap._asdict(),
            capped=tuple(noisy[0].tolist()),
            by_stratum=tuple(noisy[1].tolist()) if len(noisy) > 1 else (),
            capped_sd=plan.noise_sd / side,
            by_stratum_sd=plan.noise_sd / by_stratum,
        )
        return replace(release, weights=capped, held=limits)


def _divided(guarantee: Guarantee, share: float) -> tuple[Guarantee | None, Guarantee]:
    """Divide a guarantee; Gaussian noise has that of the rho that it costs."""
    if isinstance(guarantee, PureDP):
        first, second = PureDP(guarantee.eps * (share or 1)), PureDP(guarantee.eps * (1 - share))
        return (first if share else None), second
    rho = 1 / (2 * gaussian_multiplier(guarantee) ** 2) * (1 - 1e-12)
    return (ZCDP(rho * share) if share else None), ZCDP(rho * (1 - share))


def _released_range(passes: SampledPasses, plan: CountPlan, entropy: Entropy) -> HeldIn | None:
    number, ladder = passes.tallies[0].measured, plan.first
    if number is None or ladder is None or not number.lower < number.upper:
        return None
    edges, slots = range_cells(number.lower, number.upper), plan.facts.adjacency.places
    values, law = noised_units(ladder, passes.by_place(edges) * slots, entropy)
    noise, counts = CellNoise(law, ladder.noise_sd / slots), values / slots
    # Units weigh less than the cap: that they weigh half of it makes a range longer.
    price = plan.noise_sd / slots * math.sqrt(2)
    limits = found_range(edges, counts, noise, price, max(passes.tallies[0].degree // 2, 1))
    return limits and held_in(edges, counts, noise, limits.lower, limits.upper)


def _released_cap(
    passes: SampledPasses, plan: CountPlan, entropy: Entropy, per_octave: int | None
) -> weight_caps.WeightCap:
    sampling, facts, ladder = passes.sampling, plan.facts, plan.first
    if ladder is None:
        return weight_caps.WeightCap(sampling.upper, 0.0, 0.0, 0.0)
    of_rows, largest = passes.most_rows == 1, sampling.upper * passes.most_rows
    per_octave = per_octave or (weight_caps.PER_OCTAVE if of_rows else weight_caps.OF_TOTALS)
    edges = weight_caps.weight_edges(sampling.lower, largest, per_octave, at_bound=of_rows)
    steps = np.rint(edges[1:] / sampling.upper * STEPS).astype(np.int64)
    exact, _ = passes.by_weight(steps)
    slots = facts.adjacency.places
    values, law = noised_units(ladder, exact * slots, entropy)
    noise = CellNoise(law, ladder.noise_sd / slots)
    if not weight_caps.are_detected(edges, values / slots, noise):
        bound = float(edges[-1]) if facts.totals else sampling.upper
        return weight_caps.public_cap(bound, float(edges[-1]))
    # Sums of a group; what is cut off is divided between the groups.
    price = facts.numerator * plan.noise_sd / slots
    return weight_caps.best_cap(edges, values / slots, noise, price, facts.moved, 1 / SIDES[law][0])
