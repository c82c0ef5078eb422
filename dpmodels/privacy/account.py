"""What a verb does with a ledger: it is charged, and told what came of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from dpmodels.errors import ArgumentError, said, shorten
from dpmodels.privacy.budget import Adjacency
from dpmodels.privacy.events import Event
from dpmodels.privacy.ledger import Ledger
from dpmodels.privacy.lines import About, Claim, Entry


@dataclass(frozen=True, slots=True)
class Charge:
    """A charge that a verb has made; of none, where it has no ledger."""

    ledger: Ledger | None = None
    entry: Entry | None = None

    @property
    def told(self) -> str:
        """What the ledger said after the charge; empty without one."""
        return "" if self.entry is None else self.entry.describe()

    def released(self, digest: Callable[[], str]) -> None:
        """Record what came out, before anybody sees it; no digest is made without a ledger.

        What cannot be recorded must not be handed over: then a `LedgerError`.
        """
        if self.ledger is not None and self.entry is not None:
            self.ledger.released(self.entry, digest())

    def void(self, reason: str) -> None:
        """Give the charge back, as nothing came of it for a reason no row has a part in."""
        if self.ledger is not None and self.entry is not None:
            self.ledger.void(self.entry, reason)


def charge(
    ledger: Ledger | None,
    events: Iterable[Event],
    *,
    adjacency: Adjacency,
    about: About,
    claims: tuple[Claim, ...] = (),
) -> Charge:
    """Charge a ledger, where there is one, before a row is read; if it refuses, nothing."""
    if ledger is None:
        return Charge()
    label = shorten(f"{about.verb} {about.formula}", 1_000)
    return Charge(
        ledger,
        ledger.charge(events, adjacency=adjacency, label=label, about=about, claims=claims),
    )


def verified(ledger: object) -> Ledger:
    """Return a ledger once its chain of lines is found whole; refuse what is none."""
    if not isinstance(ledger, Ledger):
        raise ArgumentError(f"ledger={said(ledger)}: expected a dp.Ledger")
    ledger.verify()
    return ledger


def check_ledger(ledger: object) -> None:
    """Refuse what is neither a ledger nor None."""
    if not isinstance(ledger, Ledger | None):
        raise ArgumentError(f"ledger={type(ledger).__name__}: expected a dp.Ledger or None")
