"""What a selection is planned from, how its budget is divided, and its hand-over."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpmodels.errors import ArgumentError
from dpmodels.mechanisms.add_noise import ROUND_DOWN
from dpmodels.mechanisms.count_plan import CountPlan
from dpmodels.mechanisms.protocol import Ranked, Score
from dpmodels.mechanisms.release_terms import release_terms
from dpmodels.noise import Entropy
from dpmodels.privacy import (
    ZCDP,
    Adjacency,
    ApproxDP,
    BoundedRangeEvent,
    Event,
    Guarantee,
    PureDP,
    PureEvent,
)
from dpmodels.privacy.filters import largest_rho
from dpmodels.released import Card, SelectionRelease
from dpmodels.statistics import Statistic

# The rounding of a conversion of rho, of eps and beside it.
CONVERSION = 1e-10
# From levels, a unit and a number to indices, best first.
Draw = Callable[[NDArray[Any], Fraction, int, Entropy], NDArray[np.int64]]


@dataclass(frozen=True)
class SelectionFacts:
    """Public facts a plan may use; none of them is learnt from a row."""

    score: Score  # What candidates are ranked by
    most: int  # How many are named; at most so many where there is a threshold
    threshold: float | None  # In the unit of the scores
    share: float  # Of the budget, for values of what is named; 0 for none
    adjacency: Adjacency


@dataclass(frozen=True)
class SelectionPlan:
    """A calibrated selection: everything but the data."""

    guarantee: Guarantee
    events: tuple[Event, ...]
    facts: SelectionFacts
    eps: float  # Of each draw, of the search above a threshold, or of the noise on all counts
    bought: Any  # What the score planned for numbers of its own
    noise: CountPlan | None = None  # Of all counts, where they are ranked with noise of theirs


def require_number(name: str, facts: SelectionFacts) -> None:
    """Refuse a threshold where a number of candidates is drawn."""
    if facts.threshold is not None:
        raise ArgumentError(
            f"mechanism={name!r} draws a number of candidates, whatever their scores: write k= and "
            "no threshold=, or mechanism='auto'"
        )


def paid_as(guarantee: Guarantee) -> tuple[PureDP | ZCDP, ...]:
    """Return what a guarantee may be paid as: budgets that add up and are within it."""
    if not isinstance(guarantee, ApproxDP):
        return (guarantee,)
    pure, converted = PureDP(guarantee.eps), guarantee.eps * (1 - CONVERSION) - CONVERSION
    if converted <= 0:
        return (pure,)
    return pure, ZCDP(largest_rho(ApproxDP(converted, guarantee.delta)) * ROUND_DOWN)


def part(budget: PureDP | ZCDP, share: float) -> PureDP | ZCDP:
    """Return a share of what adds up."""
    if isinstance(budget, ZCDP):
        return ZCDP(budget.rho * share * ROUND_DOWN)
    return PureDP(budget.eps * share * ROUND_DOWN)


def pure_eps(budget: PureDP | ZCDP) -> float:
    """Return the eps of one pure release that costs a budget."""
    return math.sqrt(2 * budget.rho) if isinstance(budget, ZCDP) else budget.eps


def ranged_eps(budget: PureDP | ZCDP) -> float:
    """Return the eps of one release of bounded range that costs a budget."""
    return math.sqrt(8 * budget.rho) if isinstance(budget, ZCDP) else budget.eps


def drawing_plan(
    facts: SelectionFacts,
    guarantee: Guarantee,
    draws: int,
    event: type[PureEvent] | type[BoundedRangeEvent],
) -> SelectionPlan:
    """Divide a budget between equal draws and the score's own numbers; the most for a draw."""
    eps_of: Callable[[PureDP | ZCDP], float] = pure_eps if event is PureEvent else ranged_eps
    made = []
    for budget in paid_as(guarantee):
        left = 1 - facts.share - facts.score.own_share
        eps = eps_of(part(budget, left / draws)) * ROUND_DOWN
        bought = facts.score.bought(facts, budget)
        events = (event(eps, draws), *bought.events)
        made.append(SelectionPlan(guarantee, events, facts, eps, bought))
    return max(made, key=lambda plan: plan.eps)


def drawn(
    card: Card, plan: SelectionPlan, statistic: Statistic, draw: Draw, entropy: Entropy
) -> SelectionRelease:
    """Draw candidates by their scores, of which the best have the lowest levels."""
    exact, rows = statistic.cross()
    facts = plan.facts
    ranked = facts.score.ranked(exact, facts, plan.bought, entropy)
    unit = Fraction(plan.eps) / ranked.width
    places = draw(-ranked.scores, unit, facts.most, entropy)
    scale = float(1 / unit) / ranked.unit
    return selected(card, plan, exact, rows, ranked, places, scale, entropy)


def selected(
    card: Card,
    plan: SelectionPlan,
    exact: NDArray[Any],
    rows: int,
    ranked: Ranked,
    places: NDArray[np.int64],
    scale: float,
    entropy: Entropy,
) -> SelectionRelease:
    """Hand over what was named, with values of noise of their own where they are bought.

    `scale` is that of the noise the scores were ranked with, in their unit.
    """
    score = plan.facts.score
    return SelectionRelease(
        places=tuple(places.tolist()),
        scale=scale,
        **score.valued(exact, ranked, places, plan.bought, entropy),
        **release_terms(card, plan, rows),
    )
