"""The charge of a verb, made before a row is read, and what a release costs a group of rows."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from dpmodels.errors import ArgumentError, BudgetError, quoted, shorten
from dpmodels.privacy.budget import ZCDP, Adjacency, ApproxDP, Guarantee, PureDP
from dpmodels.privacy.calibrate import gaussian_multiplier
from dpmodels.privacy.compose import summed_eps
from dpmodels.privacy.events import (
    ApproxEvent,
    Event,
    GaussianEvent,
    LaplaceEvent,
    PufferfishEvent,
    all_gaussian,
)
from dpmodels.privacy.filters import largest_rho
from dpmodels.privacy.ledger import Ledger
from dpmodels.privacy.lines import About, Claim, Entry
from dpmodels.privacy.pufferfish import Pufferfish


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
    about: Callable[[], About],
    claims: tuple[Claim, ...] = (),
) -> Charge:
    """Charge a ledger, if there is one, before a row is read; `about` makes what it keeps."""
    if ledger is None:
        return Charge()
    record = about()
    label = shorten(f"{record.verb} {record.formula}", 1_000)
    return Charge(
        ledger, ledger.charge(events, adjacency=adjacency, label=label, about=record, claims=claims)
    )


def charge_once(
    ledger: Ledger | None,
    events: Iterable[Event],
    *,
    adjacency: Adjacency,
    about: Callable[[], About],
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
        raise ArgumentError(
            f"ledger={quoted(ledger)}: expected a dp.Ledger or None; for one in a file write "
            "dp.Ledger.open(path)"
        )


# Group privacy: the cost of a release for a group of rows, and the smallest noise for it.
#
# *Theorem.* Let a release have noise of ``m`` times the sensitivity of one row. Changing at most
# `rows` rows, one after another, moves the exact values by at most `rows` times that sensitivity,
# so the noise is ``m / rows`` times the sensitivity of the group: Gaussian noise remains Gaussian
# noise, Laplace noise remains Laplace noise. A privacy loss in an interval of length ``eps`` for
# one row lies in one of length ``rows * eps`` for the group, since losses of steps add, and an
# ``eps``-private release is ``rows * eps``-private for it. An ``(eps, delta)``-private one is
# ``(rows * eps, rows * exp((rows - 1) * eps) * delta)``-private, with the eps of all its counts.
#
# So mechanisms need not know about groups: the guarantee for the group is converted to one for a
# single row, the mechanism is planned for that, and its events are priced for the group. For
# ``(eps, delta)`` the noise is scaled instead of eps being divided: the multiplier of Gaussian
# noise is ``rows`` times as large, without any loss.
#
# Source: Dwork, C. and Roth, A. (2014), "The Algorithmic Foundations of Differential Privacy",
# Theorem 2.2, for eps; Bun, M. and Steinke, T. (2016), "Concentrated Differential Privacy",
# Proposition 1.9, for rho; Dong, J., Roth, A. and Su, W. J. (2022), "Gaussian Differential
# Privacy", Theorem 6, for Gaussian noise.


Planned = TypeVar("Planned")

# Allowance for the rounding of a few products.
_ROOM: Final = 1 - 1e-12


def group_events(events: Iterable[Event], rows: int) -> tuple[Event, ...]:
    """Return the events that releases amount to for a group of `rows` rows, rounded up.

    >>> [event.describe() for event in group_events([GaussianEvent(20.0)], 4)]
    ['Gaussian, multiplier 5']
    """
    return tuple(events) if rows == 1 else tuple(_of_group(event, rows) for event in events)


def _of_group(event: Event, rows: int) -> Event:
    if isinstance(event, PufferfishEvent):
        raise BudgetError("a Pufferfish release hides single states: it has no cost for a group.")
    if isinstance(event, GaussianEvent | LaplaceEvent):
        multiplier = math.nextafter(event.multiplier / rows, 0.0)
        return type(event)(multiplier, event.count)
    eps = math.nextafter(event.eps * rows, math.inf)
    if isinstance(event, ApproxEvent):
        # All its counts are one step.
        factor = rows * math.exp((rows - 1) * (event.eps * event.count)) / _ROOM
        delta = min(event.delta * factor, math.nextafter(1.0, 0.0))
        return ApproxEvent(eps, delta, event.count)
    return type(event)(eps, event.count)


def planned_for_group(
    plan: Callable[[Any], Planned],
    events: Callable[[Planned], Iterable[Event]],
    guarantee: Guarantee | Pufferfish,
    rows: int,
) -> Planned:
    """Plan a release whose guarantee holds for a group of at most `rows` rows.

    Parameters
    ----------
    plan : callable
        From the guarantee for one row to a plan.
    events : callable
        From a plan to its events, in units of the sensitivity of one row.
    guarantee : Guarantee
        The guarantee for the group.
    rows : int
        Largest size of a group.
    """
    if rows == 1:
        return plan(guarantee)
    if isinstance(guarantee, Pufferfish):
        raise BudgetError("a Pufferfish guarantee hides single states and does not cover groups.")
    if isinstance(guarantee, PureDP):
        return plan(PureDP(guarantee.eps / rows * _ROOM))
    if isinstance(guarantee, ZCDP):
        return plan(ZCDP(guarantee.rho / rows**2 * _ROOM))
    row_events = tuple(events(plan(guarantee)))
    kinds = {type(event) for event in row_events}
    if ApproxEvent in kinds:
        return plan(_divided(guarantee, rows, _ROOM**2))
    # Pure releases may still need the delta, if there are so many that their eps add up to more.
    if GaussianEvent not in kinds and summed_eps(row_events) <= guarantee.eps / _ROOM:
        return plan(PureDP(guarantee.eps / rows * _ROOM))
    try:
        # Purely Gaussian noise may use all the rho whose exact trade-off meets the guarantee.
        planned = plan(ZCDP(0.5 / gaussian_multiplier(guarantee) ** 2 / rows**2 * _ROOM))
        if all_gaussian(tuple(events(planned))):
            return planned
        return plan(ZCDP(largest_rho(guarantee) / rows**2 * _ROOM))
    except BudgetError:
        return plan(_divided(guarantee, rows))


def _divided(guarantee: ApproxDP, rows: int, slack: float = _ROOM) -> ApproxDP:
    """Return the guarantee for one row when the noise is a published function of eps and delta."""
    eps = guarantee.eps / rows * _ROOM
    return ApproxDP(eps, guarantee.delta / rows * math.exp(-(rows - 1) * eps) * slack)
