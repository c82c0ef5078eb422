"""What candidates of ``"auto"`` cost on the ledger that they will be charged to.

With eps and delta a ledger adds up the eps of pure releases and the ``mu**2`` of Gaussian ones, so
that releases of the same (eps, delta) use different fractions of its budget. Within
`priced_on` candidates are compared at the price of the cheapest: noise sds are inversely
proportional to eps, or to the root of ``mu**2``. The price is that on an empty ledger with the same
terms, so that the choice does not depend on the order of calls; but a candidate that the ledger
would refuse now is not chosen if another is accepted. All of this is public.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final, Protocol

from dpmodels.privacy import ApproxDP, Event, Ledger, group_events
from dpmodels.privacy.events import all_gaussian

_ledger: Final[ContextVar[tuple[Ledger, int] | None]] = ContextVar("dpmodels.ledger", default=None)


_gaussian_alone: Final[ContextVar[bool]] = ContextVar("dpmodels.gaussian_alone", default=False)


class Candidate(Protocol):
    """A plan with what it charges."""

    @property
    def events(self) -> tuple[Event, ...]:
        """What the ledger is charged."""
        ...


@contextmanager
def priced_on(ledger: Ledger | None, places: int) -> Iterator[None]:
    """Choose by the price on a ledger of eps and delta, for a group of rows."""
    has_prices = ledger is not None and isinstance(ledger.guarantee, ApproxDP)
    token = _ledger.set((ledger, places) if ledger is not None and has_prices else None)
    try:
        yield
    finally:
        _ledger.reset(token)


@contextmanager
def gaussian_alone() -> Iterator[None]:
    """Take no candidate with noise of another law than Gaussian, as sites can only add that."""
    token = _gaussian_alone.set(True)
    try:
        yield
    finally:
        _gaussian_alone.reset(token)


def at_equal_price(noises: Sequence[float], plans: Sequence[Candidate]) -> list[float]:
    """Return noise sds at the price of the cheapest plan; as they are without a ledger.

    Infinite for a plan that the ledger refuses, if it accepts another, and for noise that is not
    Gaussian where nobody could add it.
    """
    if _gaussian_alone.get():
        paired = zip(noises, plans, strict=True)
        return [noise if all_gaussian(plan.events) else math.inf for noise, plan in paired]
    priced = _ledger.get()
    if priced is None:
        return list(noises)
    ledger, places = priced
    charges = [group_events(plan.events, places) for plan in plans]
    accepted = [ledger.accepts(events) for events in charges]
    prices = [
        ledger.fraction_of_budget(events) if fits or not any(accepted) else math.inf
        for events, fits in zip(charges, accepted, strict=True)
    ]
    cheapest = min(prices)
    if not 0 < cheapest < math.inf:
        return list(noises)
    return [
        noise * (cost / cheapest) ** (0.5 if all_gaussian(plan.events) else 1.0)
        for noise, cost, plan in zip(noises, prices, plans, strict=True)
    ]


def price_reason(noises: Sequence[float], best: int) -> str:
    """Say why a candidate with more noise was chosen; empty if it has the least noise."""
    return "" if noises[best] <= min(noises) else "it uses less of the ledger's budget: "
