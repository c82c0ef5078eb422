"""The privacy ledger: it charges each release from a table before rows are read."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict
from typing import TYPE_CHECKING, Literal, NoReturn, SupportsIndex

from dpmodels.arguments import checked_fields
from dpmodels.atomic_files import write_whole
from dpmodels.errors import LedgerError, NotAvailable, PrivacyError, quoted
from dpmodels.privacy.budget import Adjacency, AdjacencyName, Guarantee, protecting
from dpmodels.privacy.compose import Totals
from dpmodels.privacy.events import Event, checked_events
from dpmodels.privacy.filters import Filter, requested_filter
from dpmodels.privacy.ledger_file import open_store
from dpmodels.privacy.lines import (
    CHARGED,
    PURSE,
    RELEASED,
    VOID,
    About,
    Claim,
    Entry,
    Line,
    Memory,
    Store,
    chained,
    entry_of,
    events_to_plain,
    opening,
    require_chain,
    require_short,
    signed,
    spent_words,
    state_words,
    totals_of,
    unfinished_lines,
)
from dpmodels.privacy.pufferfish import Pufferfish, resolve_any
from dpmodels.privacy.purses import (
    Part,
    Purse,
    lines_of,
    new_purse,
    purse_after,
    purse_named,
    purses_of,
    refuse_purse_claims,
    require_purses,
    require_reserves,
)
from dpmodels.privacy.register import (
    Forecast,
    both,
    convergence_notes,
    forecast,
    printed,
    refusal,
    refuse_other_neighbours,
    register_rows,
)
from dpmodels.privacy.spent import Spent, capacity
from dpmodels.typing import AnyPath

if TYPE_CHECKING:
    import pandas as pd

_LONGEST_LABEL = 10_000  # In the table of a ledger: a choice


@checked_fields("dp.Ledger")
class Ledger:
    """A budget shared by several releases from one table.

    Charges compose by a rule that is valid for an analyst who chooses every budget after seeing
    all earlier answers (`dpmodels.privacy.filters`). A charge that would exceed the budget is
    refused. Threads may share a ledger. A ledger in memory ends with its process and cannot be
    copied, pickled or forked; a ledger in a file, :meth:`Ledger.open`, persists.

    Parameters
    ----------
    eps : float, optional
        Above zero; instead of `budget`.
    delta : float, default 0.0
        In [0, 1); together with `eps`.
    budget : PureDP, ApproxDP, ZCDP or Pufferfish, optional
        The full guarantee; instead of `eps`.
    adjacency, person, rows : optional
        The neighbours that every release charged here has to assume, as for the verbs.
    pure : float, default 0.0
        With a delta: share of eps reserved for releases without delta, whose eps add up; all
        others have ``(eps - pure, delta)``. Pure releases before the first other release need no
        share: the others get the remaining eps.
    rule : {"gaussian", "zcdp", "steps"}, optional
        With a delta: how releases outside the share add up, by ``mu**2`` or by rho. By default
        "zcdp" if the first charge mixes Gaussian noise with other noise, else "gaussian". Choose
        "zcdp" for very many small pure releases. With "steps", which sessions choose, eps of pure
        releases and ``mu**2`` of Gaussian ones add up separately, and the total does not depend on
        the order of the charges (`dpmodels.privacy.steps`).

    Raises
    ------
    BudgetError, ArgumentError
        If the arguments are invalid.

    Notes
    -----
    A plan that is fixed before any answer costs least: charge its releases as one,
    ``ledger.charge(all_events)``, so that tight composition applies;
    ``ledger.preview(all_events)`` returns its total.

    Examples
    --------
    >>> from dpmodels.privacy.events import GaussianEvent
    >>> ledger = Ledger(eps=2.0, delta=1e-6)
    >>> entry = ledger.charge([GaussianEvent(5.0)], adjacency="replace", label="pca")
    >>> ledger.describe()
    '0.834 of 2.00 eps spent (GDP)'
    """

    __slots__ = ("_adjacency", "_filter", "_part", "_store")
    _adjacency: Adjacency
    _filter: Filter
    _part: Part | None  # The purse that is charged; None for the whole table
    _store: Store

    def __init__(
        self,
        eps: float | None = None,
        delta: float = 0.0,
        *,
        budget: Guarantee | Pufferfish | None = None,
        adjacency: AdjacencyName | Adjacency = "replace",
        person: str | None = None,
        rows: int | Literal["mean"] | None = None,
        pure: float = 0.0,
        rule: str | None = None,
    ) -> None:
        relation = protecting(adjacency, rows, person)
        budget_filter = requested_filter(resolve_any(eps, delta, budget), relation, pure, rule)
        self._set(budget_filter, relation, Memory(opening(budget_filter, relation)))

    @classmethod
    def open(
        cls,
        path: AnyPath,
        eps: float | None = None,
        delta: float = 0.0,
        *,
        budget: Guarantee | Pufferfish | None = None,
        adjacency: AdjacencyName | Adjacency | None = None,
        person: str | None = None,
        rows: int | Literal["mean"] | None = None,
        pure: float | None = None,
        rule: str | None = None,
        timeout: float = 30.0,
        new: bool = False,
        restored: bool = False,
    ) -> Ledger:
        """Open a ledger in a file.

        Parameters
        ----------
        path : path
            An SQLite file on a local disk.
        eps, delta, budget, adjacency, person, rows, pure, rule
            As for `Ledger`. Required for a new file; for an existing file the same or left out.
        timeout : float, default 30.0
            Seconds to wait while another process writes.
        new : bool, default False
            Whether to create a missing file with this budget. By default a missing file is
            refused, so that a mistyped path does not create a second budget.
        restored : bool, default False
            Whether to continue with an older copy of the ledger, such as a backup. The charges
            that it lacks remain spent; the file records that they are missing.

        Returns
        -------
        Ledger
            Every charge is on the disk before a row is read.

        Raises
        ------
        LedgerError
            If the file is missing, has another guarantee or other neighbours, is damaged, edited,
            an older copy, from a newer version, not writable, locked, has a second name, or is on
            a network file system. Nothing is charged.
        BudgetError, ArgumentError
            If the arguments are invalid.

        Notes
        -----
        The file contains labels, formulas, budgets, the names of the user and the machine, and no
        rows. A file ``<name>.lock`` beside it has its lock and the head of its chain, which
        detects an older copy. Make copies with :meth:`backup`. Anyone who can write both files can
        restore older copies of both: keep the printed head of the chain elsewhere.

        Examples
        --------
        >>> import pathlib, tempfile
        >>> from dpmodels.privacy.events import PureEvent
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     file = pathlib.Path(folder) / "study.ledger"
        ...     first = Ledger.open(file, eps=2.0, new=True)
        ...     entry = first.charge([PureEvent(0.5)], adjacency="replace", label="ages")
        ...     Ledger.open(file).describe().split(",")[0]
        '0.500 of 2.00 eps spent; 1 charge in study.ledger'
        """
        stated = eps is not None or budget is not None
        name = None if adjacency is person is rows is None else adjacency or "replace"
        store, budget_filter, relation = open_store(
            path,
            guarantee=resolve_any(eps, delta, budget) if stated else None,
            relation=name and protecting(name, rows, person),
            pure=pure,
            rule=rule,
            timeout=timeout,
            new=new,
            restored=restored,
        )
        ledger = cls.__new__(cls)
        ledger._set(budget_filter, relation, store)
        ledger.verify()
        return ledger

    def _set(
        self, budget_filter: Filter, relation: Adjacency, store: Store, part: Part | None = None
    ) -> None:
        for name, value in (
            ("_filter", budget_filter),
            ("_adjacency", relation),
            ("_store", store),
            ("_part", part),
        ):
            object.__setattr__(self, name, value)

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise NotAvailable(f"{name} cannot be set: a ledger's terms are fixed; open another one")

    def __reduce_ex__(self, protocol: SupportsIndex) -> NoReturn:
        raise PrivacyError(
            "a ledger cannot be copied or pickled, as each copy would spend the whole budget: "
            "share the ledger, or a file, dp.Ledger.open('study.ledger', eps=..., new=True)"
        )

    @property
    def guarantee(self) -> Guarantee | Pufferfish:
        """The guarantee of all releases together."""
        return self._filter.guarantee

    @property
    def adjacency(self) -> Adjacency:
        """The neighbours that every release assumes."""
        return self._adjacency

    @property
    def place(self) -> str:
        """Name of the file; empty for a ledger in memory."""
        return self._store.place

    @property
    def head(self) -> str:
        """Hash of the last line, which covers all lines."""
        with self._store.reading() as chain:
            return chain.last().hash

    @property
    def charges(self) -> int:
        """Number of charges."""
        if self._part is not None:
            return self._totals()[0].charges
        with self._store.reading() as chain:
            return int(chain.last().body["charges"])

    @property
    def entries(self) -> tuple[Entry, ...]:
        """The charges, first to last."""
        return tuple(self._entry(line) for line in self._lines() if line.body["kind"] == CHARGED)

    @property
    def spent(self) -> Spent:
        """The composed total of all charges."""
        return self._filter.spent(self._totals()[0])

    @property
    def remaining(self) -> Spent:
        """The budget minus the total; composition often allows more than this difference."""
        return self.spent.left_of(capacity(self.guarantee))

    def preview(self, events: Iterable[Event]) -> Spent:
        """Return what the total would be after a charge, recording nothing.

        Parameters
        ----------
        events : iterable of events
            The releases to charge as one.

        Returns
        -------
        Spent
            The composed total with these charges; on an empty ledger by tight composition.
        """
        return self.forecast([events])[0].total

    def forecast(self, charges: Iterable[Iterable[Event]]) -> tuple[Forecast, ...]:
        """Return the totals after each of several charges, recording nothing."""
        planned, (totals, of_all) = [checked_events(events) for events in charges], self._totals()
        forecasts = forecast(self._filter, totals, planned)
        if self._part is None:
            return forecasts
        return tuple(map(both, forecasts, forecast(self._part.table, of_all, planned)))

    def for_prices(self, planned: Iterable[Event] = ()) -> Ledger:
        """Return a ledger in memory with the totals of this one, and of a charge if it fits.

        It is for prices: what is charged to it is not recorded here.
        """
        totals, events = self._totals()[0], checked_events(planned)
        after = self._filter.plus(totals, events) if events else totals
        totals = after if self._filter.holds(after) else totals
        priced = Ledger.__new__(Ledger)
        first = opening(self._filter, self._adjacency, totals)
        priced._set(self._filter, self._adjacency, Memory(first))
        return priced

    def accepts(self, events: Iterable[Event]) -> bool:
        """Return whether a charge fits, recording nothing."""
        added, (totals, of_all) = checked_events(events), self._totals()
        fits = self._filter.admits(totals, added)
        return fits and (self._part is None or self._part.table.admits(of_all, added))

    def fraction_of_budget(self, events: Iterable[Event]) -> float:
        """Return the fraction of the whole budget that releases use on an empty ledger."""
        empty = Totals()
        return self._filter.taken(empty, self._filter.plus(empty, checked_events(events)))

    def charge(
        self,
        events: Iterable[Event],
        *,
        adjacency: AdjacencyName | Adjacency,
        label: str = "",
        about: About | None = None,
        claims: tuple[Claim, ...] = (),
    ) -> Entry:
        """Record a release, or refuse it before anything is recorded.

        Parameters
        ----------
        events : iterable of events
            The events of the release, or of all releases of a plan.
        adjacency : {"replace", "add-remove"} or Adjacency
            The neighbouring relation of its sensitivities.
        label : str, default ""
            The name of the release in the table of the ledger.
        about : About, optional
            A public description of the request.
        claims : tuple of (str, str)
            Resources that may be used only once, by kind and name, such as a site's key.

        Returns
        -------
        Entry
            The recorded line; a file is synced before this returns.

        Raises
        ------
        LedgerError
            If the total would exceed the budget, the neighbours differ, a claim was made before,
            or the file cannot be written.
        BudgetError
            If one of `events` is not an event.
        PrivacyError
            In a forked process, of a ledger in memory.
        """
        require_short("a label", [label], _LONGEST_LABEL)
        texts = [*asdict(about or About()).values(), *(text for claim in claims for text in claim)]
        require_short("a formula and other texts", texts)
        refuse_other_neighbours(self.adjacency, protecting(adjacency, None, None))
        added = checked_events(events)
        table, name = self._table, "" if self._part is None else self._part.name
        claims = claims if self._part is None else (*claims, *self._part.claims)
        refuse_purse_claims(claims)
        with self._store.writing() as chain:
            last = chain.last()
            before = totals_of(last)
            after = table.plus(before, added)
            purse = purse_after(chain, table, name, added) if name else None
            if not table.holds(after):
                raise LedgerError(refusal(table, label, added, before))
            require_reserves(chain, table, after, purse, f"The release {label!r}")
            number = last.body["charges"] + 1
            body = {
                "kind": CHARGED,
                "charge": number,
                "label": str(label),
                "about": asdict(about or About()),
                "events": events_to_plain(added),
                "claims": [list(claim) for claim in claims],
                **({} if purse is None else {"purse": purse.plain()}),
                **signed(number, after),
            }
            line = chained(last.hash, body)
            chain.append(line, number, claims, name)
        return self._entry(line if self._part is None else lines_of([line], name)[0])

    def released(self, entry: Entry, digest: str) -> None:
        """Record that a charge was released, with a digest of the release.

        Raises
        ------
        LedgerError
            If the charge is missing, or was released or made void before.
        """
        self._follow(entry, {"kind": RELEASED, "digest": digest})

    def void(self, entry: Entry, reason: str) -> None:
        """Refund a charge without a release, and record the reason.

        A charge stays spent if others followed, since they were chosen knowing of it. The reason
        must not depend on any row: whether an analysis failed may depend on its rows, so such a
        charge stays spent.
        """
        self._follow(entry, {"kind": VOID, "reason": reason})

    def unfinished(self) -> tuple[Entry, ...]:
        """Return the charges without a recorded outcome; they stay spent."""
        return tuple(map(self._entry, unfinished_lines(self._lines())))

    def verify(self) -> None:
        """Check every line against the one before and its totals against its charges.

        Raises
        ------
        LedgerError
            If a line was changed, removed or inserted.
        """
        with self._store.reading() as chain:
            chain.check()
            lines, claims = list(chain.lines()), chain.claims()
            require_chain(self._table, lines, claims, self.place or "the ledger")
            require_purses(chain, lines, self._table, self.place or "the ledger")

    def backup(self, path: AnyPath, *, overwrite: bool = False) -> None:
        """Write a consistent copy of the ledger, which is unchanged.

        To restore it, replace the ledger's file and write ``Ledger.open(path, restored=True)``:
        later charges remain spent.

        Parameters
        ----------
        path : path
            A new file, readable only by its owner.
        overwrite : bool, default False
            Whether an existing file is replaced.

        Raises
        ------
        LedgerError
            If the ledger is in memory, or cannot be read.
        ArgumentError, FrameError
            If the copy cannot be written.
        """
        content = getattr(self._store, "content", None)
        if content is None:
            raise LedgerError(
                "a ledger in memory has no backup: open a file, dp.Ledger.open(path, eps=2.0, "
                "new=True)"
            )
        write_whole(path, content(), overwrite=overwrite, private=True)

    def export(self, path: AnyPath, *, overwrite: bool = False) -> None:
        """Write all lines as JSON, one per line, each with its hash."""
        rows = [json.dumps({"hash": line.hash, "line": line.text}) for line in self._lines()]
        write_whole(path, ("\n".join(rows) + "\n").encode(), overwrite=overwrite)

    def describe(self) -> str:
        """Return the amount spent, the budget and the rule, as reports print it."""
        with self._store.reading() as chain:
            summary = state_words(chain.last(), self._table, self.place)
        if self._part is None:
            return summary
        return f"{spent_words(self._filter, self._totals()[0])}; purse {self._part.name}"

    def register(self) -> pd.DataFrame:
        """Return the charges as a table, one per row, with their outcomes.

        ``state`` is "charged", "released" or "void", ``digest`` that of the release, ``total`` the
        amount spent after the charge, and ``hash`` that of its line.
        """
        import pandas as pd

        columns = register_rows(self._lines(), self._filter, self._adjacency)
        return pd.DataFrame(columns).set_index("charge")

    def add_purse(self, name: str, amount: float, *, reserved: bool = False) -> None:
        """Declare a purse: a part of the budget, for an analyst or a project.

        Each charge to a purse counts in the purse and in the table's total, in one transaction.
        Against analysts who cooperate, only the table's total is the guarantee.

        Parameters
        ----------
        name : str
            At most 200 characters; a name is declared once.
        amount : float
            Its budget: eps, with the ledger's delta, or rho; at most that of the ledger. All
            purses together may have more, if they are not reserved.
        reserved : bool, default False
            Whether the other charges leave this amount unspent; not with a delta. By default
            purses are served first come, first served.

        Raises
        ------
        BudgetError, ArgumentError
            If the amount is larger than the ledger's budget, or cannot be reserved.
        LedgerError
            If the name was declared, or too little is left to reserve.

        Examples
        --------
        >>> from dpmodels.privacy.events import PureEvent
        >>> ledger = Ledger(eps=2.0)
        >>> ledger.add_purse("ann", 0.5, reserved=True)
        >>> entry = ledger.purse("ann").charge([PureEvent(0.2)], adjacency="replace", label="ages")
        >>> ledger.purse("ann").describe(), ledger.spent.amount
        ('0.200 of 0.500 eps spent; purse ann', 0.2)
        """
        purse = new_purse(name, amount, reserved, self._table)
        with self._store.writing() as chain:
            last, taken = chain.last(), chain.claims(PURSE)
            if any(value == name for _, value, _ in taken):
                raise LedgerError(f"the purse {quoted(name)} was declared before: use another name")
            after = totals_of(last)
            require_reserves(chain, self._table, after, purse, f"The purse {quoted(name)}")
            body = {"kind": PURSE, "charge": 0, "purse": purse.plain()}
            line = chained(last.hash, {**body, **signed(last.body["charges"], after)})
            chain.append(line, -1 - len(taken), (), name)

    def purse(self, name: str, *, claims: tuple[Claim, ...] = ()) -> Ledger:
        """Return the ledger of a purse, whose charges count in this ledger too.

        `claims` are added to each of its charges.
        """
        with self._store.reading() as chain:
            purse = purse_named(chain, self._table, name)
        ledger = Ledger.__new__(Ledger)
        ledger._set(purse.filter, self._adjacency, self._store, Part(name, self._table, claims))
        return ledger

    @property
    def purses(self) -> tuple[Purse, ...]:
        """The purses, by name."""
        with self._store.reading() as chain:
            return purses_of(chain, self._table)

    @property
    def _table(self) -> Filter:
        return self._filter if self._part is None else self._part.table

    def _totals(self) -> tuple[Totals, Totals]:
        """Return the totals of the purse and of the table, which are the same without a purse."""
        with self._store.reading() as chain:
            totals = totals_of(chain.last())
            if self._part is None:
                return totals, totals
            return purse_named(chain, self._table, self._part.name).totals, totals

    def _lines(self) -> list[Line]:
        """Return all lines, or those about the charges of the purse."""
        with self._store.reading() as chain:
            lines = list(chain.lines())
        return lines if self._part is None else lines_of(lines, self._part.name)

    def _entry(self, line: Line) -> Entry:
        return entry_of(line, self._filter, self.place)

    def __repr__(self) -> str:
        text = printed(self.describe(), self.entries, self.guarantee, self.adjacency)
        return "\n".join((text, *convergence_notes(self.register()["mechanism"])))

    def _follow(self, entry: Entry, outcome: dict[str, object]) -> None:
        require_short("an outcome of a charge", outcome.values())
        with self._store.writing() as chain:
            states = [line.body["kind"] for line in chain.of(entry.number)]
            if states != [CHARGED] or chain.of(entry.number)[0].hash != entry.hash:
                raise LedgerError(
                    f"charge {entry.number} is {states[-1] if states else 'not there'}: only a "
                    "charge without an outcome can be released or made void"
                )
            last = chain.last()
            after, body = totals_of(last), {**outcome, "charge": entry.number}
            charges = last.body["charges"]
            if outcome["kind"] == VOID:
                chain.free(entry.number)
                # A charge stays spent if others followed: they were chosen knowing of it.
                after = totals_of(chain.before(entry.number)) if entry.number == charges else after
            chain.append(chained(last.hash, {**body, **signed(charges, after)}), entry.number)
