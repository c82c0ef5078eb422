"""What a release of counts is planned from, and its hand-over."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpmodels.errors import BudgetError
from dpmodels.mechanisms.release_terms import release_terms
from dpmodels.privacy import Adjacency, Event, Guarantee
from dpmodels.released import Card, CountsRelease
from dpmodels.typing import Integers

# Units of one row: sums over a block of 2**13 rows stay below 2**53.
MOST_BITS = 40
# With fewer the rounding of parts to units would show.
LEAST_BITS = 16
# Times the noise scale, what 63 bits have to hold: a Laplace draw outside has
# probability exp(-128).
ROOM_BITS = 7
# The least scale that the sampler takes, in units.
LEAST_SCALE = 2.0**-7
# Room for the rows themselves, beside the noise.
HELD_BITS = 62


@dataclass(frozen=True)
class CountFacts:
    """Public facts a plan may use; none of them is learnt from a row."""

    tables: int  # In how many tables each row is counted
    parts: int  # Counts released, all tables together
    divided: bool  # Whether a row is divided between parts; else it is counted whole
    adjacency: Adjacency
    # Of a table whose cells stand in an order: groups, then cells of each variable.
    shape: tuple[int, ...] = ()


@dataclass(frozen=True)
class CountPlan:
    """A calibrated release: everything but the data."""

    guarantee: Guarantee  # What was asked and will hold
    events: tuple[Event, ...]  # What the ledger is charged
    facts: CountFacts  # What the plan was made for
    whole: int  # Units of one row
    scale: float  # Of the noise in each count, in units
    noise_sd: float  # Its standard deviation, in rows
    first: CountPlan | None = None  # Of an earlier round of the same release


def units_of(scale: float) -> int:
    """Return how many units a row may have beside noise of a scale; BudgetError if too few."""
    spare = HELD_BITS - ROOM_BITS - math.log2(max(scale, 1.0))
    bits = min(MOST_BITS, math.floor(spare))
    if bits < LEAST_BITS:
        raise BudgetError(
            f"the budget asks for noise of {scale:.2g} rows in each count, beyond what is "
            "meaningful; give a larger eps, delta or rho"
        )
    return int(2**bits)


def counts_released(
    card: Card, plan: CountPlan, exact: NDArray[Any], noise: Integers, rows: int, law: str
) -> CountsRelease:
    """Add integer noise to exact counts; the number of rows goes along where it is public."""
    noisy: NDArray[Any] = exact + noise.astype(object)
    return CountsRelease(
        values=noisy.astype(np.float64) / plan.whole,
        law=law,
        noise_sd=plan.noise_sd,
        step=1 / plan.whole,
        **release_terms(card, plan, rows),
    )
