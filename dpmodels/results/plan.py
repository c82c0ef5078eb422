"""Calls with their prices, before any of them is made."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pandas as pd

from dpmodels.arguments import truth
from dpmodels.privacy import Adjacency, Event, Guarantee, Spent, hidden_by
from dpmodels.privacy.spent import capacity
from dpmodels.results.base import Printed

if TYPE_CHECKING:
    from matplotlib.axes import Axes


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

    def plot(self, ax: Axes | None = None, *, caption: bool = True) -> Axes:
        """Draw what the calls would spend one after another, against the ledger's budget.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.
        caption : bool
            Whether guarantee and neighbours stand under the picture.
        """
        from dpmodels.plots.spending import spending

        ends, spent = [], math.nan
        for one in self.calls:
            start = max(one.total.amount - one.price.amount, 0.0) if math.isnan(spent) else spent
            ends.append((start, one.total.amount))
            spent = one.total.amount if one.fits else start
        hidden = hidden_by(self.guarantee, self.adjacency)
        told = f"Privacy of all together: {self.guarantee.describe()}; neighbours: {hidden}."
        return spending(
            np.array(ends, dtype=np.float64).reshape(-1, 2),
            ["planned" if one.fits else "does not fit" for one in self.calls],
            capacity(self.guarantee).amount,
            labels=[f"{one.verb} {one.formula}" for one in self.calls],
            unit=capacity(self.guarantee).unit,
            ax=ax,
            caption=told if truth("caption", caption) else None,
        )

    def __repr__(self) -> str:
        which = "all fit" if self.fits else f"{sum(not one.fits for one in self.calls)} do not fit"
        return f"<PlanResult of {len(self.calls)} calls: {which}, nothing spent>"
