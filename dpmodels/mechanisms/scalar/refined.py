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
    (:class:`dpmodels.postprocess.quantiles.NoisyCells`); its noise is independent of its cells. The
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
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from dpmodels.design.cells import PrivateCells
from dpmodels.errors import BudgetError
from dpmodels.mechanisms.add_noise import ROUND_UP, SMALLEST_SCALE, laplace_multipliers
from dpmodels.mechanisms.count_plan import LEAST_SCALE
from dpmodels.mechanisms.quantile_cells import FIRST_CELLS, first_ends, next_ends
from dpmodels.mechanisms.quantile_facts import LARGEST_SCALE, QuantileFacts
from dpmodels.mechanisms.release_terms import release_terms
from dpmodels.noise import (
    Entropy,
    discrete_gaussian,
    discrete_laplace,
    discrete_laplace_variance,
)
from dpmodels.postprocess.quantiles import NoisyCells
from dpmodels.privacy import (
    ZCDP,
    Adjacency,
    Event,
    GaussianEvent,
    Guarantee,
    LaplaceEvent,
    gaussian_multiplier,
    split_gaussian,
)
from dpmodels.released import Card, QuantilesRelease
from dpmodels.statistics import Statistic
from dpmodels.statistics.counts import count_sensitivity, counts
from dpmodels.typing import Floats

# Of the budget, by the number of rounds: the last one needs it most. Choices.
SHARES = {1: (1.0,), 2: (0.2, 0.8), 3: (0.1, 0.2, 0.7), 4: (0.05, 0.1, 0.2, 0.65)}
# By how much a round shortens the cells, about.
SHORTENED = 11.0
# A number of rows is told from none where it exceeds so many of its noise sds; a quantile is
# farther than so many noise sds of its rank from the ends of the rows. Choices.
TOLD, INSIDE = 3.0, 2.0
# What is stated of noise that is none for any purpose.
LEAST_SD = 1e-6


@dataclass(frozen=True)
class RefinedPlan:
    """A calibrated release: everything but the data."""

    guarantee: Guarantee
    events: tuple[Event, ...]
    facts: QuantileFacts
    law: str
    scales: tuple[float, ...]  # Of the noise in the counts of each round, in rows

    @property
    def units(self) -> tuple[int, ...]:
        """Units of a row that noise is drawn in, by round."""
        finest = SMALLEST_SCALE if self.law == "gaussian" else 0.0
        return tuple(math.ceil(max(finest / scale, 1.0)) for scale in self.scales)

    @property
    def noise_sds(self) -> tuple[float, ...]:
        """Standard deviations of the noise in the counts of each round, not below LEAST_SD."""
        if self.law == "gaussian":
            return self.scales
        return tuple(
            max(math.sqrt(discrete_laplace_variance(own)), LEAST_SD) for own in self.scales
        )


@dataclass(frozen=True)
class Refined:
    """Counts of cells that are cut finer where the quantiles are.

    Examples
    --------
    >>> from dpmodels.mechanisms.quantile_grid import Grid
    >>> from dpmodels.privacy import PureDP, adjacency
    >>> facts = QuantileFacts((0.5,), 4, Grid(16), None, adjacency("replace"))
    >>> [round(scale, 6) for scale in Refined().plan(facts, PureDP(1.0)).scales]
    [2.0]
    """

    card: ClassVar[Card] = Card(
        name="refined",
        theorem="eps-DP or rho-zCDP, adaptive rounds of counts",
        sensitivity="of each round 2 in L1, sqrt(2) in L2 (a row may change its cell) or 1",
        noise="discrete Laplace, under zCDP discrete Gaussian, one scale a round",
        numerics="exact lattice",
        source="Dwork, Rothblum and Vadhan (2010); Woodruff (1952)",
    )

    def plan(self, facts: QuantileFacts, guarantee: Guarantee) -> RefinedPlan:
        """Calibrate the noise of each round; BudgetError if it is beyond what is meaningful."""
        further = math.log(max(facts.grid.cells / FIRST_CELLS, 1.0), SHORTENED)
        shares = SHARES[min(1 + math.ceil(further), len(SHARES))]
        law, scales, events = _priced(shares, facts.adjacency, guarantee)
        if max(scales) > LARGEST_SCALE:
            raise BudgetError(
                f"the budget asks for noise of {max(scales):.2g} rows in each count, beyond what "
                "is meaningful; give a larger eps or rho"
            )
        least = LEAST_SCALE if law == "laplace" else LEAST_SD
        held = tuple(max(scale, least) for scale in scales)
        return RefinedPlan(guarantee, events, facts, law, held)

    def measure(self, private: PrivateCells, plan: RefinedPlan) -> Statistic:
        """Count the rows of each group in the cells of the grid."""
        return counts(private, 1, count_public=plan.facts.adjacency.n_public)

    def release(
        self, statistic: Statistic, plan: RefinedPlan, entropy: Entropy
    ) -> QuantilesRelease:
        """Count in cells that are cut finer by what came out before; invert the last counts."""
        exact, rows = statistic.cross()
        facts = plan.facts
        most = float(rows) if facts.adjacency.n_public else math.inf
        table = exact[:-1].reshape(facts.groups, -1)
        values = np.full((facts.groups, len(facts.probs), 3), math.nan)
        drawn, rank_sds = (np.full(values.shape[:2], math.nan) for _ in range(2))
        numbers, count_sds = np.empty(facts.groups), np.empty(facts.groups)
        for group, own in enumerate(table):
            below = np.concatenate([[0], np.cumsum(own.astype(np.int64))])
            ends, found = _counted(below, plan, most, entropy)
            numbers[group], count_sds[group] = found.counts.sum(), found.total_sd
            rank_sds[group] = [found.rank_sd(prob) for prob in facts.probs]
            if numbers[group] > max(TOLD * found.total_sd, 1.0):
                values[group], drawn[group] = _inverted(ends, found, facts)
        return QuantilesRelease(
            values=values,
            drawn=drawn,
            counts=numbers,
            count_sd=count_sds,
            rank_sd=rank_sds,
            **release_terms(self.card, plan, rows),
        )


def _priced(
    shares: tuple[float, ...], adjacency: Adjacency, guarantee: Guarantee
) -> tuple[str, tuple[float, ...], tuple[Event, ...]]:
    """Return the law of the noise, its scale in each round and what the rounds cost."""
    if isinstance(guarantee, ZCDP):
        multipliers = split_gaussian(gaussian_multiplier(guarantee), shares)
        changed = count_sensitivity(adjacency, 1, 2)
        scales = tuple(changed * own * ROUND_UP for own in multipliers)
        return "gaussian", scales, tuple(map(GaussianEvent, multipliers))
    times = round(count_sensitivity(adjacency, 1, 1))
    multipliers = laplace_multipliers(guarantee, np.repeat(shares, times).tolist())[::times]
    events = tuple(LaplaceEvent(own, count=times) for own in multipliers)
    return "laplace", tuple(own * ROUND_UP for own in multipliers), events


def _counted(
    below: NDArray[Any], plan: RefinedPlan, most: float, entropy: Entropy
) -> tuple[NDArray[np.intp], NoisyCells]:
    """Count one group in cells that are cut round by round; return the last of them."""
    draw = discrete_gaussian if plan.law == "gaussian" else discrete_laplace
    ends = first_ends(len(below) - 1)
    for turn, (scale, units) in enumerate(zip(plan.scales, plan.units, strict=True)):
        noise = draw(scale * units, len(ends) - 1, entropy)
        noisy = (np.diff(below[ends]).astype(object) * units + noise).astype(np.float64) / units
        effect = plan.facts.adjacency.places
        found = NoisyCells(noisy, plan.law, plan.noise_sds[turn], most, effect)
        left = len(plan.scales) - turn - 1
        if left:
            ends = next_ends(ends, found, plan.facts, left, plan.noise_sds[-1])
    return ends, found


def _inverted(
    ends: NDArray[np.intp], found: NoisyCells, facts: QuantileFacts
) -> tuple[Floats, Floats]:
    """Return the quantiles of one group and the ends of their intervals, and at which shares."""
    reach = [(INSIDE * found.rank_sd(prob) + 0.5) / found.total for prob in facts.probs]
    away = np.minimum(reach, 0.5)
    drawn = np.clip(facts.probs, away, 1 - away)
    values = np.full((len(drawn), 3), math.nan)
    cells, shares = (np.array(one) for one in zip(*map(found.quantile, drawn), strict=True))
    values[:, 0] = facts.grid.within(ends[cells], ends[cells + 1], shares)
    if facts.level is not None:
        pairs = [found.interval(prob, facts.level) for prob in facts.probs]
        first, last = np.array(pairs).T
        values[:, 1] = facts.grid.lower[ends[first]]
        values[:, 2] = facts.grid.upper[ends[last + 1] - 1]
    return values, drawn
