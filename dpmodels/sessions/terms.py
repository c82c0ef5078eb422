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
    """Keeps the plan, and stops the call before it is charged."""

    priced: Priced

    def planned(self, strategy: Any, private: Sequence[Any], plan: Any) -> None:
        self.priced = Priced(strategy.card.name, tuple(plan.events))
        raise LedgerError("the call is priced and not made")


@dataclass(frozen=True, repr=False)
class Terms:
    """The table and what is public of it."""

    parties: Parties
    codebook: Codebook
    adjacency: Adjacency
    person: str | None
    rows: int | str | None
    subset: str | None

    @property
    def unit(self) -> str:
        """What neighbours differ in, in words."""
        if self.person is None:
            return "one row" if self.rows is None else f"any {self.rows} rows together"
        weighted = f"at most {self.rows} rows of {self.person}"
        weighted = f"rows of {self.person} weighted" if self.rows == "mean" else weighted
        return "one person (" + (weighted if self.rows is not None else self.person) + ")"

    def make(self, call: Call, budget: Mapping[str, Any], ledger: Ledger | None) -> Any:
        """Ask the verb; errors are the verb's."""
        known = inspect.signature(call.verb).parameters
        words = {word: own for word, own in call.words.items() if word not in (*AMOUNTS, "delta")}
        for word in ("person", "rows", "subset"):
            value = getattr(self, word)
            if value is None:
                continue
            if word not in known:
                raise ArgumentError(
                    f"{call.name} takes no {word}=, which this session says: open a session "
                    f"without {word}= for it"
                )
            if word in words:
                raise ArgumentError(
                    f"{call.name}: subset= is said by the session already: write both conditions "
                    "in one of the two"
                )
            words[word] = value
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
