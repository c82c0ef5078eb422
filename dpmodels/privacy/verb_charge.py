"""The charge of a verb: made before a row is read, with its outcome recorded after the release."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from dpmodels.errors import ArgumentError, quoted, shorten
from dpmodels.privacy.budget import Adjacency
from dpmodels.privacy.events import Event
from dpmodels.privacy.ledger import Ledger
from dpmodels.privacy.lines import About, Claim, Entry


@dataclass(frozen=True, slots=True)
class Charge:
    """A verb's charge to its ledger, empty without a ledger."""

    ledger: Ledger | None = None
    entry: Entry | None = None

    @property
    def ledger_state(self) -> str:
        """The state of the ledger after the charge; empty without one."""
        return "" if self.entry is None else self.entry.describe()

    def released(self, digest: Callable[[], str]) -> None:
        """Record the release before it is returned; no digest is made without a ledger.

        A `LedgerError` if it cannot be recorded: then it must not be returned.
        """
        if self.ledger is not None and self.entry is not None:
            self.ledger.released(self.entry, digest())

    def void(self, reason: str) -> None:
        """Refund the charge: nothing was released, for a reason that depends on no row."""
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
    """Charge a ledger, if there is one, before a row is read."""
    if ledger is None:
        return Charge()
    label = shorten(f"{about.verb} {about.formula}", 1_000)
    return Charge(
        ledger,
        ledger.charge(events, adjacency=adjacency, label=label, about=about, claims=claims),
    )


def verified(ledger: object) -> Ledger:
    """Return a ledger after verifying its chain of lines; refuse anything else."""
    if not isinstance(ledger, Ledger):
        raise ArgumentError(f"ledger={quoted(ledger)}: expected a dp.Ledger")
    ledger.verify()
    return ledger


def check_ledger(ledger: object) -> None:
    """Refuse anything but a ledger or None."""
    if not isinstance(ledger, Ledger | None):
        raise ArgumentError(f"ledger={type(ledger).__name__}: expected a dp.Ledger or None")
