"""The account of what one table's releases have cost, kept before rows are read."""

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from decimal import ROUND_CEILING, ROUND_FLOOR, Context
from threading import Lock
from typing import Final

from dpmodels.errors import ArgumentError, BudgetError, LedgerError
from dpmodels.privacy.budget import ApproxDP, Guarantee, resolve_budget
from dpmodels.privacy.calibrate import gaussian_multiplier
from dpmodels.privacy.events import Event, GaussianEvent, PureEvent
from dpmodels.privacy.neighbours import Adjacency, AdjacencyName
from dpmodels.privacy.neighbours import adjacency as known_adjacency
from dpmodels.privacy.spent import Spent, capacity, price

# Two halves of an exact split, or a release calibrated for the whole budget,
# come back from composition with rounding: that much is no reason to refuse.
_TOLERANCE: Final = 1e-9
_HALVINGS: Final = 16
_UP: Final = Context(prec=4, rounding=ROUND_CEILING)
_DOWN: Final = Context(prec=4, rounding=ROUND_FLOOR)


@dataclass(frozen=True, slots=True)
class Entry:
    """One line of a ledger.

    Parameters
    ----------
    label : str
        What the release is called.
    events : tuple of events
        What was charged.
    spent_after : Spent
        The composed total of the ledger after this line.
    """

    label: str
    events: tuple[Event, ...]
    spent_after: Spent


class Ledger:
    """A budget that several releases from one table share.

    A charge is composed with everything charged before. One that would exceed
    the budget is refused and leaves the ledger as it was. A total may exceed the
    budget by 1e-9 of it, for the rounding of composition. Threads may share a
    ledger.

    Parameters
    ----------
    eps : float, optional
        Above zero; instead of `budget`.
    delta : float, default 0.0
        In [0, 1); together with `eps`.
    budget : PureDP, ApproxDP or ZCDP, optional
        The whole guarantee; instead of `eps`.
    adjacency : {"replace", "add-remove"} or Adjacency, default "replace"
        The neighbours that every release charged here has to assume.

    Attributes
    ----------
    guarantee : PureDP, ApproxDP or ZCDP
        What all releases together satisfy.
    adjacency : Adjacency
        The neighbours.

    Raises
    ------
    BudgetError
        If the budget makes no sense.
    ArgumentError
        If `adjacency` is not known.

    Examples
    --------
    >>> from dpmodels.privacy.events import GaussianEvent
    >>> ledger = Ledger(eps=2.0, delta=1e-6)
    >>> entry = ledger.charge([GaussianEvent(5.0)], adjacency="replace", label="pca")
    >>> ledger.describe()
    '0.834 of 2.00 eps spent'
    """

    def __init__(
        self,
        eps: float | None = None,
        delta: float = 0.0,
        *,
        budget: Guarantee | None = None,
        adjacency: AdjacencyName | Adjacency = "replace",
    ) -> None:
        self.guarantee: Final = resolve_budget(eps, delta, budget)
        self.adjacency: Final = known_adjacency(adjacency)
        self._entries: tuple[Entry, ...] = ()
        self._lock = Lock()

    @property
    def entries(self) -> tuple[Entry, ...]:
        """The charges, first to last."""
        return self._entries

    @property
    def spent(self) -> Spent:
        """The composed total of all charges."""
        entries = self._entries
        return entries[-1].spent_after if entries else price((), self.guarantee)

    @property
    def remaining(self) -> Spent:
        """The budget less what is spent; composition is often kinder than this difference."""
        return self.spent.left_of(capacity(self.guarantee))

    def preview(self, events: Iterable[Event]) -> Spent:
        """Return what the total would be after a charge, recording nothing.

        Parameters
        ----------
        events : iterable of events
            The releases asked about.

        Returns
        -------
        Spent
            The composed total of all charges and these events.

        Raises
        ------
        BudgetError
            If one of them is not an event.
        """
        charged = tuple(event for entry in self._entries for event in entry.events)
        return price(charged + _checked(events), self.guarantee)

    def charge(
        self,
        events: Iterable[Event],
        *,
        adjacency: AdjacencyName | Adjacency,
        label: str = "",
    ) -> Entry:
        """Record a release, or refuse it before anything is recorded.

        Parameters
        ----------
        events : iterable of events
            What the release costs.
        adjacency : {"replace", "add-remove"} or Adjacency
            The neighbours its sensitivities were taken under.
        label : str, default ""
            What the release is called in the table of the ledger.

        Returns
        -------
        Entry
            The line recorded.

        Raises
        ------
        LedgerError
            If the total would exceed the budget, or the neighbours are not the
            ledger's.
        BudgetError
            If one of `events` is not an event.
        """
        self._refuse_other_neighbours(known_adjacency(adjacency))
        added = _checked(events)
        with self._lock:
            total = self.preview(added)
            if total.amount > capacity(self.guarantee).amount * (1 + _TOLERANCE):
                raise LedgerError(self._refusal(label, added, total))
            entry = Entry(label, added, total)
            self._entries = (*self._entries, entry)
        return entry

    def describe(self) -> str:
        """Return what is spent of what, as reports print it."""
        spent, whole = self.spent, capacity(self.guarantee)
        return f"{_significant(spent)} of {_significant(whole)} {whole.unit} spent"

    def __repr__(self) -> str:
        entries, whole = self._entries, capacity(self.guarantee)
        delta = f" at delta = {whole.delta:g}" if whole.delta else ""
        lines = [f"Ledger: {self.describe()}{delta} ({self.adjacency.describe()})"]
        width = max([5, *(len(entry.label) for entry in entries)])
        if entries:
            lines.append(f"  #  {'label':<{width}}  total {whole.unit}  events")
        for number, entry in enumerate(entries, start=1):
            events = "; ".join(event.describe() for event in entry.events)
            total = _significant(entry.spent_after)
            lines.append(f"{number:>3}  {entry.label:<{width}}  {total:>9}  {events}".rstrip())
        return "\n".join(lines)

    def _refuse_other_neighbours(self, asked: Adjacency) -> None:
        own = self.adjacency
        if asked != own:
            raise LedgerError(
                f"The release assumes adjacency={asked.name!r} ({asked.describe()}), this ledger "
                f"adjacency={own.name!r} ({own.describe()}): write adjacency={own.name!r} in the "
                f"call, or charge a ledger opened with adjacency={asked.name!r}."
            )

    def _refusal(self, label: str, added: tuple[Event, ...], total: Spent) -> str:
        whole, spent = capacity(self.guarantee), self.spent
        name = f"The release {label!r}" if label else "The release"
        if math.isinf(total.amount):
            return (
                f"{name} adds Gaussian noise, which has no pure guarantee, and this ledger holds "
                f"eps = {whole.amount:g}, delta = 0: choose a mechanism with Laplace noise, or "
                f"open dp.Ledger(eps={whole.amount:g}, delta=1e-6)."
            )
        left, fitting = spent.left_of(whole), self._fitting(added)
        remedy = f"open the ledger with {_as_argument(total, _UP)}"
        if fitting.amount > _TOLERANCE * whole.amount:
            remedy = f"write {_as_argument(fitting, _DOWN)} or less, or {remedy}"
        return (
            f"{name} costs {price(added, self.guarantee).describe()}. Spent so far: "
            f"{spent.unit} = {spent.amount:g} of {whole.amount:g}; left: {left.amount:g}; the "
            f"total would be {total.amount:g}: {remedy}."
        )

    def _fitting(self, added: tuple[Event, ...]) -> Spent:
        """Return the largest release of the kind refused that would not be refused."""
        whole = capacity(self.guarantee)
        if not whole.delta:
            return self.remaining
        noise = _gaussian_at if all(isinstance(e, GaussianEvent) for e in added) else _pure_at
        fits, too_much = 0.0, whole.amount
        for _ in range(_HALVINGS):
            tried = (fits + too_much) / 2
            if self.preview((noise(tried, whole.delta),)).amount <= whole.amount:
                fits = tried
            else:
                too_much = tried
        return replace(whole, amount=fits)


def _gaussian_at(eps: float, delta: float) -> Event:
    return GaussianEvent(gaussian_multiplier(ApproxDP(eps, delta)))


def _pure_at(eps: float, delta: float) -> Event:
    return PureEvent(eps)


def _significant(amount: Spent) -> str:
    return f"{amount.amount:.0f}" if amount.amount >= 100 else f"{amount.amount:#.3g}"


def _as_argument(amount: Spent, rounding: Context) -> str:
    number = f"{float(rounding.create_decimal(amount.amount)):g}"
    if amount.unit == "rho":
        return f"budget=dp.ZCDP({number})"
    return f"eps={number}" + (f", delta={amount.delta:g}" if amount.delta else "")


def _checked(events: Iterable[Event]) -> tuple[Event, ...]:
    found = tuple(events)
    for event in found:
        if not isinstance(event, Event):
            raise BudgetError(
                f"events holds a {type(event).__name__}, not an event: write "
                "events=(GaussianEvent(multiplier),)."
            )
    return found


def check_ledger(ledger: object) -> None:
    """Refuse what is neither a ledger nor None.

    Raises
    ------
    ArgumentError
    """
    if not isinstance(ledger, Ledger | None):
        raise ArgumentError(f"ledger={type(ledger).__name__}: expected a dp.Ledger or None")
