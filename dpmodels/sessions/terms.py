"""What a session says for all of its calls, and how a call is made or priced under it."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from dpmodels.codebook import Codebook
from dpmodels.errors import ArgumentError, LedgerError
from dpmodels.privacy import Adjacency, Event, Ledger
from dpmodels.sessions.call import AMOUNTS, Call
from dpmodels.sites import Parties, Witness


class Priced(NamedTuple):
    """What a call would take its rows across by, and what it would be charged."""

    mechanism: str
    events: tuple[Event, ...]


class _Pricing(Witness):
    """Keeps the charge of a call, and stops the call before it is made."""

    priced: Priced

    def charging(self, mechanism: str, events: Sequence[Event]) -> None:
        self.priced = Priced(mechanism, tuple(events))
        raise LedgerError("the call is priced and not made")


@dataclass(frozen=True, repr=False)
class Terms:
    """The table and what is public of it."""

    parties: Parties
    codebook: Codebook
    adjacency: Adjacency  # With the persons and rows that it protects
    subset: str | None

    def make(self, call: Call, budget: Mapping[str, Any], ledger: Ledger | None) -> Any:
        """Ask the verb; errors are the verb's."""
        words = {word: own for word, own in call.words.items() if word not in (*AMOUNTS, "delta")}
        if self.subset is not None:
            if words.get("subset") is not None:
                raise ArgumentError(
                    f"{call.name}: subset= is said by the session already: write both conditions "
                    "in one of the two"
                )
            if "subset" not in inspect.signature(call.verb).parameters:
                raise ArgumentError(
                    f"{call.name} takes no subset=, which this session says: open a session "
                    "without it for the call"
                )
            words["subset"] = self.subset
        return call.verb(
            call.formula,
            self.parties,
            codebook=self.codebook,
            adjacency=self.adjacency,
            ledger=ledger,
            **{**words, **budget},
        )

    def price(self, call: Call, budget: Mapping[str, Any]) -> Priced:
        """Return what a call would be charged; no row is read, and nothing is charged."""
        pricing = _Pricing()
        watched = replace(self, parties=replace(self.parties, witness=pricing))
        try:
            watched.make(call, budget, None)
        except LedgerError:
            return pricing.priced
        raise LedgerError(f"{call.name} makes no plan before it reads, so it has no price")
