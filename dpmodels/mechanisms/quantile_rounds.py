"""Rounds of noisy counts of cells that earlier rounds chose, and quantiles made of the last.

In each round a row adds 1 to the node it lies in on every level of a tree above the round's cells.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpmodels.errors import BudgetError
from dpmodels.mechanisms.add_noise import ROUND_UP, SMALLEST_SCALE, laplace_multipliers
from dpmodels.mechanisms.count_plan import LEAST_SCALE
from dpmodels.mechanisms.quantile_cells import Ends
from dpmodels.mechanisms.quantile_facts import LARGEST_SCALE, QuantileFacts
from dpmodels.mechanisms.release_terms import release_terms
from dpmodels.noise import (
    Entropy,
    discrete_gaussian,
    discrete_laplace,
    discrete_laplace_variance,
)
from dpmodels.postprocess.hierarchy import Hierarchy, agreeing, split_levels
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
from dpmodels.statistics.counts import count_sensitivity
from dpmodels.typing import Floats

# A number of rows is told from none where it exceeds so many of its noise sds; a quantile is
# farther than so many noise sds of its rank from the ends of the rows. Choices.
TOLD, INSIDE = 3.0, 2.0
# What is stated of noise that is none for any purpose.
LEAST_SD = 1e-6


@dataclass(frozen=True)
class RoundsPlan:
    """A calibrated release: everything but the data."""

    guarantee: Guarantee
    events: tuple[Event, ...]
    facts: QuantileFacts
    law: str
    levels: tuple[int, ...]  # Of the tree of each round, at most
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


# Counts one group, whose rows below each end of the grid's cells are given, with noise: the ends
# of the last round's cells, and their counts.
Counted = Callable[[NDArray[Any], RoundsPlan, float, Entropy], tuple[Ends, NoisyCells]]


def rounds_plan(
    facts: QuantileFacts, guarantee: Guarantee, shares: tuple[float, ...], levels: tuple[int, ...]
) -> RoundsPlan:
    """Calibrate the noise of each round to its share of a budget, by the levels of its tree.

    BudgetError if it is beyond what is meaningful.
    """
    law, scales, events = _priced(shares, levels, facts.adjacency, guarantee)
    if max(scales) > LARGEST_SCALE:
        raise BudgetError(
            f"the budget asks for noise of {max(scales):.2g} rows in each count, beyond what "
            "is meaningful; give a larger eps or rho"
        )
    least = LEAST_SCALE if law == "laplace" else LEAST_SD
    held = tuple(max(scale, least) for scale in scales)
    return RoundsPlan(guarantee, events, facts, law, levels, held)


def _priced(
    shares: tuple[float, ...],
    levels: tuple[int, ...],
    adjacency: Adjacency,
    guarantee: Guarantee,
) -> tuple[str, tuple[float, ...], tuple[Event, ...]]:
    """Return the law of the noise, its scale in each round and what the rounds cost."""
    if isinstance(guarantee, ZCDP):
        multipliers = split_gaussian(gaussian_multiplier(guarantee), shares)
        changed = (count_sensitivity(adjacency, own, 2) for own in levels)
        scales = tuple(one * own * ROUND_UP for one, own in zip(changed, multipliers, strict=True))
        return "gaussian", scales, tuple(map(GaussianEvent, multipliers))
    times = [round(count_sensitivity(adjacency, own, 1)) for own in levels]
    each = [share / own for share, own in zip(shares, levels, strict=True)]
    paid = laplace_multipliers(guarantee, np.repeat(each, times).tolist())
    firsts = [paid[sum(times[:turn])] for turn in range(len(times))]
    events = tuple(LaplaceEvent(own, count=n) for own, n in zip(firsts, times, strict=True))
    return "laplace", tuple(own * ROUND_UP for own in firsts), events


def noisy_cells(
    cells: NDArray[Any],
    hierarchy: Hierarchy,
    plan: RoundsPlan,
    turn: int,
    most: float,
    entropy: Entropy,
) -> NoisyCells:
    """Add a round's noise to the counts of cells and of the nodes above them; make them agree."""
    draw = discrete_gaussian if plan.law == "gaussian" else discrete_laplace
    units = plan.units[turn]
    nodes = np.concatenate(hierarchy.sums(cells))
    noise = draw(plan.scales[turn] * units, len(nodes), entropy)
    noisy = (nodes.astype(object) * units + noise).astype(np.float64) / units
    found = agreeing(hierarchy, split_levels(hierarchy, noisy, 1), 0.0, None).cells[0]
    effect = plan.facts.adjacency.places
    return NoisyCells(found, plan.law, plan.noise_sds[turn], most, effect, hierarchy)


def quantiles_released(
    card: Card, statistic: Statistic, plan: RoundsPlan, entropy: Entropy, counted: Counted
) -> QuantilesRelease:
    """Count each group by rounds, and invert the last counts."""
    exact, rows = statistic.cross()
    facts = plan.facts
    most = float(rows) if facts.adjacency.n_public else math.inf
    table = exact[:-1].reshape(facts.groups, -1)
    values = np.full((facts.groups, len(facts.probs), 3), math.nan)
    drawn, rank_sds = (np.full(values.shape[:2], math.nan) for _ in range(2))
    numbers, count_sds = np.empty(facts.groups), np.empty(facts.groups)
    for group, own in enumerate(table):
        below = np.concatenate([[0], np.cumsum(own.astype(np.int64))])
        ends, found = counted(below, plan, most, entropy)
        numbers[group], count_sds[group] = found.counts.sum(), found.total_sd
        rank_sds[group] = [found.rank_sd(prob) for prob in facts.probs]
        if found.total > max(TOLD * found.total_sd, 1.0):
            values[group], drawn[group] = _inverted(ends, found, facts)
    return QuantilesRelease(
        values=values,
        drawn=drawn,
        counts=numbers,
        count_sd=count_sds,
        rank_sd=rank_sds,
        **release_terms(card, plan, rows),
    )


def _inverted(ends: Ends, found: NoisyCells, facts: QuantileFacts) -> tuple[Floats, Floats]:
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
