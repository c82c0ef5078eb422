"""What a selection is planned from, how its budget is divided, and its hand-over."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Any, ClassVar

import numpy as np

from dpmodels import privacy
from dpmodels.design.cells import PrivateCells
from dpmodels.mechanisms.add_noise import ROUND_DOWN, ROUND_UP
from dpmodels.mechanisms.count_noise import gaussian_plan, noised_units, quieter_plan
from dpmodels.mechanisms.protocol import CountFacts, CountPlan, PlanOf, Ranked, Score
from dpmodels.noise import Entropy
from dpmodels.privacy.filters import largest_rho
from dpmodels.statistics import Statistic
from dpmodels.statistics.counts import counts
from dpmodels.typing import Integers, Numbers, Objects, Scalars

# The rounding of a conversion of rho, of eps and beside it.
CONVERSION = 1e-10
# More than what a delta of Gaussian noise is rounded by, of itself.
DELTA_ERROR = 1e-8
# From a share of a budget to what that guarantees.
Paid = Callable[[float], privacy.Guarantee]
# From levels, a unit and a number to indices, best first.
Draw = Callable[[Scalars, Fraction, int, Entropy], Integers]


@dataclass(frozen=True)
class SelectionFacts:
    """Public facts a plan may use; none of them is learnt from a row."""

    score: Score  # What candidates are ranked by
    max_chosen: int  # How many are named; at most so many where there is a threshold
    threshold: float | None  # In the unit of the scores
    share: float  # Of the budget, for values of what is named; 0 for none
    adjacency: privacy.Adjacency


@dataclass(frozen=True)
class SelectionPlan(PlanOf[SelectionFacts]):
    """A calibrated selection."""

    eps: float  # Of each draw, of the search above a threshold, or of the noise on all counts
    bought: Any  # What the score planned for numbers of its own
    noise: CountPlan | None = None  # Of all counts, where they are ranked with noise of theirs


def mechanisms_for(
    guarantee: privacy.Guarantee, draw_share: float
) -> Iterator[tuple[privacy.PureDP | privacy.ZCDP, Paid]]:
    """Return how a guarantee may be paid: what a share of it leaves for draws, and for the rest.

    With a delta all of it by eps, all of it by zCDP, or the draws by their share of eps and the
    rest by Gaussian noise, which has the other share and the delta.
    """
    if not isinstance(guarantee, privacy.ApproxDP):
        yield part(guarantee, draw_share), partial(part, guarantee)
        return
    pure, delta = privacy.PureDP(guarantee.eps), guarantee.delta
    yield part(pure, draw_share), partial(part, pure)
    if draw_share < 1:
        rest = privacy.ApproxDP(guarantee.eps * (1 - draw_share) * ROUND_DOWN, delta)
        yield part(pure, draw_share), partial(_gaussian_part, rest, 1 - draw_share)
    converted = guarantee.eps * (1 - CONVERSION) - CONVERSION
    if converted > 0:
        budget = privacy.ZCDP(largest_rho(privacy.ApproxDP(converted, delta)) * ROUND_DOWN)
        yield part(budget, draw_share), partial(part, budget)


def part(budget: privacy.PureDP | privacy.ZCDP, share: float) -> privacy.PureDP | privacy.ZCDP:
    """Return a share of what adds up."""
    if isinstance(budget, privacy.ZCDP):
        return privacy.ZCDP(budget.rho * share * ROUND_DOWN)
    return privacy.PureDP(budget.eps * share * ROUND_DOWN)


def _gaussian_part(rest: privacy.ApproxDP, total_share: float, share: float) -> privacy.ApproxDP:
    """Return what Gaussian noise of a share is guaranteed to give, among others of the rest.

    Of all that it gives, at a share of eps: at the whole delta a large one would leave eps at 0.
    """
    multiplier = privacy.gaussian_multiplier(rest) / math.sqrt(share / total_share) * ROUND_UP
    eps = rest.eps * share / total_share
    return privacy.ApproxDP(eps, privacy.gaussian_delta(eps, multiplier) * (1 - DELTA_ERROR))


def drawing_plan(
    facts: SelectionFacts,
    guarantee: privacy.Guarantee,
    draws: int,
    event: type[privacy.PureEvent] | type[privacy.BoundedRangeEvent],
) -> SelectionPlan:
    """Divide a budget between equal draws and the score's own numbers.

    Of the ways to pay, the one that leaves a draw most eps, then least noise in those numbers.
    """
    plans = []
    for budget, paid in mechanisms_for(guarantee, 1 - facts.share - facts.score.own_share):
        draw_budget = part(budget, 1 / draws)
        eps = (
            draw_budget.eps
            if isinstance(draw_budget, privacy.PureDP)
            else math.sqrt((2 if event is privacy.PureEvent else 8) * draw_budget.rho) * ROUND_DOWN
        )
        bought = facts.score.bought(facts, paid, eps)
        events = (event(eps, draws), *bought.events)
        plans.append(SelectionPlan(guarantee, events, facts, eps, bought))
    return max(plans, key=lambda plan: (plan.eps, -plan.bought.noise_sd))


def drawn(
    ranked: Ranked, plan: SelectionPlan, draw: Draw, entropy: Entropy
) -> tuple[Ranked, Integers, float]:
    """Draw candidates by their scores, of which the best have the lowest levels."""
    if ranked.after is not None:
        return _drawn_in_turn(ranked, plan, draw, entropy)
    unit = Fraction(plan.eps) / ranked.width
    places = draw(-ranked.scores, unit, plan.facts.max_chosen, entropy)
    return ranked, places, float(1 / unit) / ranked.unit


def _drawn_in_turn(
    ranked: Ranked, plan: SelectionPlan, draw: Draw, entropy: Entropy
) -> tuple[Ranked, Integers, float]:
    """Draw one candidate, rank those that are left anew, and so on; the scale is the largest."""
    left, scale = np.arange(len(ranked.scores)), 0.0
    places = np.empty(plan.facts.max_chosen, dtype=np.int64)
    for turn in range(plan.facts.max_chosen):
        assert ranked.after is not None
        unit = Fraction(plan.eps) / ranked.width
        (index,) = draw(-ranked.scores[left], unit, 1, entropy)
        places[turn] = left[index]
        left, scale = np.delete(left, index), max(scale, float(1 / unit) / ranked.unit)
        ranked = ranked.after(int(places[turn]))
    return ranked, places, scale


# Numbers of rows by level, as what levels are ranked by.


@dataclass(frozen=True)
class BoughtCounts:
    """The noise of the counts of what is named; None where they are not bought."""

    noise: CountPlan | None

    @property
    def events(self) -> tuple[privacy.Event, ...]:
        """What they cost."""
        return () if self.noise is None else self.noise.events

    @property
    def noise_sd(self) -> float:
        """The noise in each of them; 0 for none."""
        return 0.0 if self.noise is None else self.noise.noise_sd


@dataclass(frozen=True)
class LevelScore:
    """Counts of the cells of one table.

    A row is in one cell at most. A row more raises one count by 1: all changes lie in an interval
    of length 1, and none is below 0. A row replaced lowers one by 1 at most and raises one by 1 at
    most: an interval of length 2.

    The counts of what was named are those of some cells of the table, of which a row changes as
    much: 1, or 2 where it is replaced and may leave one for another. A single one it changes by 1.
    """

    size: int

    own_share: ClassVar[float] = 0.0

    def width(self, adjacency: privacy.Adjacency) -> int:
        """Return the length of the interval of a neighbour's changes."""
        return 2 if adjacency.n_public else 1

    def bought(self, facts: SelectionFacts, paid: Paid, eps: float) -> BoughtCounts:
        """Plan the counts of what is named, of their share of a budget."""
        count_facts = self.valued_with(facts)
        if count_facts is None:
            return BoughtCounts(None)
        budget = paid(facts.share)
        if isinstance(budget, privacy.ApproxDP):
            return BoughtCounts(gaussian_plan(count_facts, budget))
        return BoughtCounts(quieter_plan(count_facts, budget, lambda _: (1, 1.0)))

    def valued_with(self, facts: SelectionFacts) -> CountFacts | None:
        """Return what the noise of these counts is planned from; None where none are bought."""
        adjacency = privacy.Adjacency("add-remove") if facts.max_chosen == 1 else facts.adjacency
        return CountFacts(1, facts.max_chosen, False, adjacency) if facts.share else None

    def measure(self, private: PrivateCells, facts: SelectionFacts) -> Statistic:
        """Count the rows of all cells."""
        return counts(private, 1)

    def ranked(
        self, exact: Numbers, facts: SelectionFacts, bought: BoughtCounts, entropy: Entropy
    ) -> Ranked:
        """Return the counts, without the incomplete rows."""
        adjacency = facts.adjacency
        unit = adjacency.places if adjacency.counts_persons else 1
        threshold = None if facts.threshold is None else math.ceil(facts.threshold * unit)
        return Ranked(exact[:-1], self.width(adjacency), not adjacency.n_public, threshold)

    def valued(
        self,
        exact: Objects,
        ranked: Ranked,
        places: Integers,
        bought: BoughtCounts,
        entropy: Entropy,
    ) -> dict[str, object]:
        """Release the counts of what was named, with noise of their own."""
        if bought.noise is None:
            return {}
        values, law = noised_units(bought.noise, exact[places], entropy)
        noise = bought.noise
        return {
            "values": values,
            "law": law,
            "noise_sd": noise.noise_sd,
            "step": 1 / noise.units_per_row,
        }
