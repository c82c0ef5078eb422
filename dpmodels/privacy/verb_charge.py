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
    """A verb's charge to its ledger, empty without a ledger; `note` then says who has it."""

    ledger: Ledger | None = None
    entry: Entry | None = None
    note: str = ""

    @property
    def ledger_state(self) -> str:
        """The state of the ledger after the charge; the note without one."""
        return self.note if self.entry is None else self.entry.describe()

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
        ledger, ledger.charge(events, adjacency=adjacency, label=label, about=about, claims=claims)
    )


def charge_once(
    ledger: Ledger | None,
    events: Iterable[Event],
    *,
    adjacency: Adjacency,
    about: About,
    claims: tuple[Claim, ...],
) -> Charge:
    """Charge a ledger, or return the charge that an interrupted call with these claims made."""
    entry = charge_of(ledger, claims)
    if ledger is None or entry is None:
        return charge(ledger, events, adjacency=adjacency, about=about, claims=claims)
    unfinished = any(entry.number == charged.number for charged in ledger.unfinished())
    return Charge(ledger if unfinished else None, entry)


def charge_of(ledger: Ledger | None, claims: tuple[Claim, ...]) -> Entry | None:
    """Return the charge that made exactly these claims."""
    entries = () if ledger is None else ledger.entries
    return next((entry for entry in entries if set(entry.claims) == set(claims)), None)


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
