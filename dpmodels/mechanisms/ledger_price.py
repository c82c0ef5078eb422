"""What candidates of ``"auto"`` cost on the ledger that they will be charged to.

With eps and delta a ledger adds up the eps of pure releases and the ``mu**2`` of Gaussian ones, so
that releases of the same (eps, delta) use different fractions of its budget. Within
`priced_on` candidates are compared at the price of the cheapest: noise sds are inversely
proportional to eps, or to the root of ``mu**2``. The price is of an empty ledger with the same
terms: a function of public facts that does not depend on earlier charges, nor, therefore, does the
choice depend on the order of calls.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final, Protocol

from dpmodels.privacy import ApproxDP, Event, GaussianEvent, Ledger, group_events

Price = Callable[[tuple[Event, ...]], float]
_price: Final[ContextVar[Price | None]] = ContextVar("dpmodels.ledger_price", default=None)


class Candidate(Protocol):
    """A plan with what it charges."""

    @property
    def events(self) -> tuple[Event, ...]: ...


@contextmanager
def priced_on(ledger: Ledger | None, places: int) -> Iterator[None]:
    """Choose by the price on a ledger of eps and delta, for a group of rows."""

    def price(events: tuple[Event, ...]) -> float:
        assert ledger is not None
        return ledger.fraction_of_budget(group_events(events, places))

    has_terms = ledger is not None and isinstance(ledger.guarantee, ApproxDP)
    token = _price.set(price if has_terms else None)
    try:
        yield
    finally:
        _price.reset(token)


def at_equal_price(noises: Sequence[float], plans: Sequence[Candidate]) -> list[float]:
    """Return noise sds at the price of the cheapest plan; as they are without a ledger."""
    price = _price.get()
    if price is None:
        return list(noises)
    prices = [price(plan.events) for plan in plans]
    cheapest = min(prices)
    if not 0 < cheapest < math.inf:
        return list(noises)
    return [
        noise * (cost / cheapest) ** (0.5 if _is_gaussian(plan) else 1.0)
        for noise, cost, plan in zip(noises, prices, plans, strict=True)
    ]


def price_reason(noises: Sequence[float], best: int) -> str:
    """Say why a candidate with more noise was chosen; empty if it has the least noise."""
    if noises[best] <= min(noises):
        return ""
    return "it uses less of the ledger's budget; "


def _is_gaussian(plan: Candidate) -> bool:
    return all(isinstance(event, GaussianEvent) for event in plan.events)
