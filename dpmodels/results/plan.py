"""Calls with their prices, before any of them is made."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import pandas as pd

from dpmodels.privacy import Adjacency, Event, Guarantee, Spent
from dpmodels.results.base import Printed


class PlannedCall(NamedTuple):
    """A call that has not been made: public facts."""

    call: str  # as it would be written
    verb: str
    formula: str
    mechanism: str
    events: tuple[Event, ...]
    price: Spent  # by itself
    total: Spent  # of all that was spent and planned before, and it
    fits: bool


@dataclass(frozen=True, repr=False, eq=False)
class PlanResult(Printed):
    """What calls would cost one after another; nothing was read, nothing spent."""

    guarantee: Guarantee  # of the ledger
    adjacency: Adjacency
    told: str  # by the ledger, before the calls
    calls: tuple[PlannedCall, ...]
    announced: Spent  # after all calls, charged as one

    @property
    def fits(self) -> bool:
        """Whether the ledger would take every call."""
        return all(one.fits for one in self.calls)

    @property
    def events(self) -> tuple[Event, ...]:
        """What all calls would be charged, for :meth:`dp.Ledger.charge`."""
        return tuple(event for one in self.calls for event in one.events)

    @property
    def table(self) -> pd.DataFrame:
        """One row a call.

        Columns: ``call``, ``verb``, ``formula``, ``mechanism``; its ``noise``; its ``price`` by
        itself and the ``total`` after it, in eps or rho; whether it ``fits``. One that does not fit
        is left out of the totals of those after it.
        """
        lines = [
            {
                "call": one.call,
                "verb": one.verb,
                "formula": one.formula,
                "mechanism": one.mechanism,
                "noise": "; ".join(event.describe() for event in one.events),
                "price": one.price.amount,
                "total": one.total.amount,
                "fits": one.fits,
            }
            for one in self.calls
        ]
        return pd.DataFrame(lines)

    def __repr__(self) -> str:
        which = "all fit" if self.fits else f"{sum(not one.fits for one in self.calls)} do not fit"
        return f"<PlanResult of {len(self.calls)} calls: {which}, nothing spent>"
