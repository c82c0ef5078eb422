"""The lines of a ledger: what was charged, what came of it, and a chain of hashes.

A line is never changed: that a charge was released, or made void, is a line of its own. Each holds
the totals after it, so that the last one is all a filter needs, and the hash of the line before.
"""

from __future__ import annotations

import getpass
import json
import math
import socket
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass, fields
from datetime import UTC, datetime
from functools import cache
from hashlib import sha256
from importlib.metadata import PackageNotFoundError, version
from itertools import groupby
from typing import Any, Final, Protocol, get_args

from dpmodels.errors import DPModelsError, LedgerError
from dpmodels.outside import conform
from dpmodels.privacy.budget import Adjacency, Guarantee, adjacency
from dpmodels.privacy.events import Event
from dpmodels.privacy.filters import Filter
from dpmodels.privacy.pufferfish import Pufferfish
from dpmodels.privacy.spent import Spent, capacity
from dpmodels.privacy.totals import Totals

OPENED, CHARGED, RELEASED, VOID = "opened", "charged", "released", "void"
RESTORED: Final = "restored"
FORMAT: Final = "dpmodels.ledger/1"
# A choice: digits of a hash that tables show.
SHOWN: Final = 12
# Texts that a line of each kind has besides those of all.
_TEXTS: Final[Mapping[str, tuple[str, ...]]] = {
    OPENED: (),
    CHARGED: ("label",),
    RELEASED: ("digest",),
    VOID: ("reason",),
    RESTORED: (),
}
_TOTALS: Final = {
    field.name: (float, int) if isinstance(field.default, float) else (type(field.default),)
    for field in fields(Totals)
}
_MOST_EVENTS: Final = 100_000_000  # Equal ones of one charge
_GUARANTEES: Final = {kind.__name__: kind for kind in (*get_args(Guarantee), Pufferfish)}
_EVENTS: Final = {kind.__name__: kind for kind in get_args(Event)}


@dataclass(frozen=True, slots=True)
class About:
    """What a charge is for, in public words.

    `codebook` is the digest of the declarations, `person` what a neighbour differs in.
    """

    verb: str = ""
    formula: str = ""
    mechanism: str = ""
    codebook: str = ""
    person: str = "row"


@dataclass(frozen=True, slots=True)
class Line:
    """A line: its body as canonical JSON, and SHA-256 of the hash before it and that text."""

    text: str
    hash: str

    @property
    def body(self) -> dict[str, Any]:
        """What the line says, as plain values."""
        plain: dict[str, Any] = json.loads(self.text)
        return plain


def chained(before: str, body: Mapping[str, Any]) -> Line:
    """Return the line that follows one of the hash given; ``""`` for the first."""
    text = json.dumps(body, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return Line(text, hash_of(before, text))


def hash_of(before: str, text: str) -> str:
    """Return the hash of a line."""
    return sha256(f"{before}\n{text}".encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class Entry:
    """A charge, as a ledger recorded it.

    Parameters
    ----------
    number : int
        Of the charge, from 1.
    label : str
        What the release is called.
    events : tuple of events
        What was charged.
    totals : Totals
        Of all charges to this one.
    filter : Filter
        The ledger's.
    place : str
        Name of the ledger's file; empty for one in memory.
    hash : str
        Of the line.
    claims : tuple of (str, str)
        What it uses up, by kind and name.
    """

    number: int
    label: str
    events: tuple[Event, ...]
    totals: Totals
    filter: Filter
    place: str = ""
    hash: str = ""
    claims: tuple[tuple[str, str], ...] = ()

    @property
    def spent_after(self) -> Spent:
        """The composed total after this charge."""
        return self.filter.spent(self.totals)

    def describe(self) -> str:
        """Return what is spent of what, by which rule, and where it is written."""
        summary = spent_words(self.filter, self.totals)
        line = f"; line {self.number} of {self.place}, {self.hash[:SHOWN]}" if self.place else ""
        return summary + line


def entry_of(line: Line, budget_filter: Filter, place: str) -> Entry:
    """Return the charge that a line records."""
    body = line.body
    return Entry(
        number=body["charge"],
        label=body["label"],
        events=events_from_plain(body["events"]),
        totals=totals_from_plain(body["totals"]),
        filter=budget_filter,
        place=place,
        hash=line.hash,
        claims=tuple((kind, value) for kind, value in body["claims"]),
    )


def unfinished_lines(lines: Iterable[Line]) -> list[Line]:
    """Return the lines of charges of which nothing has come."""
    bodies = [(line, line.body) for line in lines]
    done = {body["charge"] for _, body in bodies if body["kind"] in (RELEASED, VOID)}
    return [line for line, body in bodies if body["kind"] == CHARGED and body["charge"] not in done]


def state_words(last: Line, budget_filter: Filter, place: str) -> str:
    """Return what is spent of what, and how far the file is."""
    summary, charges = spent_words(budget_filter, totals_of(last)), last.body["charges"]
    if not place:
        return summary
    count = f"{charges} charge{'' if charges == 1 else 's'}"
    return f"{summary}; {count} in {place}, head {last.hash[:SHOWN]}"


def spent_words(budget_filter: Filter, totals: Totals) -> str:
    """Return what is spent of what, and by which rule the charges add up."""
    spent, budget = budget_filter.spent(totals), capacity(budget_filter.guarantee)
    rule = f" ({budget_filter.rule(totals)})" if totals.charges and budget.delta else ""
    return f"{significant(spent)} of {significant(budget)} {budget.unit} spent{rule}"


def significant(amount: Spent) -> str:
    """Return an amount in three digits."""
    return f"{amount.amount:.0f}" if amount.amount >= 100 else f"{amount.amount:#.3g}"


def events_to_plain(events: Iterable[Event]) -> list[list[Any]]:
    """Return events as plain values, equal ones that follow each other once, with their number."""
    runs = ((event, sum(1 for _ in run)) for event, run in groupby(events))
    return [
        [type(event).__name__, asdict(event), *([count] if count > 1 else [])]
        for event, count in runs
    ]


def events_from_plain(plain: Iterable[Any]) -> tuple[Event, ...]:
    """Return the events that plain values stand for."""
    runs = ((_EVENTS[name](**arguments), *count) for name, arguments, *count in plain)
    return tuple(event for event, *count in runs for _ in range(count[0] if count else 1))


def totals_to_plain(totals: Totals) -> dict[str, Any]:
    """Return totals as plain values; infinity, which JSON lacks, as null."""
    return {
        name: None if isinstance(value, float) and math.isinf(value) else value
        for name, value in asdict(totals).items()
        if value != ""
    }


def totals_from_plain(plain: Mapping[str, Any]) -> Totals:
    """Return the totals that plain values stand for."""
    values: dict[str, Any] = {
        name: math.inf if value is None else value for name, value in plain.items()
    }
    return Totals(**values)


def totals_of(line: Line) -> Totals:
    """Return the totals after a line."""
    return totals_from_plain(line.body["totals"])


def signed(charges: int, totals: Totals) -> dict[str, Any]:
    """Return what every line says: how far the ledger is, when, who and where."""
    return {
        "charges": charges,
        "totals": totals_to_plain(totals),
        "time": datetime.now(UTC).isoformat(timespec="microseconds"),
        **_writer(),
    }


@cache
def _writer() -> dict[str, str]:
    try:
        user = getpass.getuser()
    except (OSError, KeyError, ImportError):
        user = ""
    try:
        package_version = version("dpmodels")
    except PackageNotFoundError:
        package_version = ""
    return {"user": user, "host": socket.gethostname(), "version": package_version}


def opening(budget_filter: Filter, relation: Adjacency) -> Line:
    """Return the first line of a ledger: what it holds, under which neighbours."""
    kind = type(budget_filter.guarantee).__name__
    body = {
        "kind": OPENED,
        "charge": 0,
        "format": FORMAT,
        "guarantee": [kind, asdict(budget_filter.guarantee)],
        "pure": budget_filter.pure,
        "rule": budget_filter.kind,
        "adjacency": relation.text,
    }
    return chained("", {**body, **signed(0, Totals())})


def opened(line: Line, place: str) -> tuple[Filter, Adjacency]:
    """Return what the first line of a ledger says."""
    try:
        body = line.body
        kind, arguments = body["guarantee"]
        budget_filter = Filter(
            conform(_GUARANTEES[kind], arguments, kind), float(body["pure"]), str(body["rule"])
        )
        if body["format"] == FORMAT:
            return budget_filter, adjacency(body["adjacency"])
    except (KeyError, TypeError, ValueError, RecursionError):
        pass
    raise LedgerError(
        f"{place} is damaged: its first line is not that of a ledger. Nothing was charged"
    )


def without_last(bodies: Sequence[Mapping[str, Any]], charge: int) -> Totals:
    """Return the totals once a charge is void: those before it, if no other came after it."""
    positions = reversed(range(len(bodies)))
    last = next(position for position in positions if bodies[position]["kind"] == CHARGED)
    before = last - 1 if bodies[last]["charge"] == charge else len(bodies) - 1
    return totals_from_plain(bodies[before]["totals"])


def following(before: str, line: Line, number: int, place: str) -> Line:
    """Return a line that follows from the one before.

    A `LedgerError` names the line that does not follow, and its place.
    """
    if hash_of(before, line.text) != line.hash:
        raise LedgerError(
            f"{place}: line {number} does not follow from the one before: the file was changed; "
            "nothing can be charged to it. Go back to a copy that verifies"
        )
    return line


def require_form(line: Line, number: int, place: str) -> Line:
    """Refuse a line that lacks a part, or has one of another type, though its hash is right."""
    try:
        body = line.body
        totals = totals_from_plain(body["totals"])
        texts, numbers = _texts_and_numbers(body)
        right = (
            all(isinstance(text, str) for text in texts)
            and all(type(value) is int and 0 <= value <= _MOST_EVENTS for value in numbers)
            and all(type(getattr(totals, name)) in kinds for name, kinds in _TOTALS.items())
        )
    except (AttributeError, KeyError, TypeError, ValueError, RecursionError, DPModelsError):
        right = False
    if not right:
        raise LedgerError(
            f"{place}: line {number} is not one that a ledger writes: the file was edited. Nothing "
            "was charged; go back to a copy that verifies"
        )
    return line


def _texts_and_numbers(body: Mapping[str, Any]) -> tuple[list[Any], list[Any]]:
    """Return what has to be a text, and what a whole number, in the body of a line."""
    texts = [body[name] for name in ("time", "user", "host", "version", *_TEXTS[body["kind"]])]
    datetime.fromisoformat(body["time"])
    numbers = [body["charge"], body["charges"]]
    if body["kind"] != CHARGED:
        return texts, numbers
    About(**body["about"])
    texts += body["about"].values()
    texts += [text for name, value in body["claims"] for text in (name, value)]
    for name, arguments, *count in body["events"]:
        _EVENTS[name](**arguments)
        numbers += count or [1]
        texts += [value for value in arguments.values() if not isinstance(value, int | float)]
    return texts, numbers


def require_chain(
    budget_filter: Filter, lines: Iterable[Line], claims: set[tuple[str, str, int]], place: str
) -> None:
    """Refuse a chain in which a line was changed, left out or put in.

    The `LedgerError` names the first line that does not follow.
    """
    before, totals, bodies = "", Totals(), list[dict[str, Any]]()
    pending = set[int]()  # Charges of which nothing has come
    for number, line in enumerate(lines):
        before = following(before, line, number, place).hash
        try:
            body = line.body
            if body["kind"] == CHARGED:
                totals = budget_filter.plus(totals, events_from_plain(body["events"]))
                pending.add(body["charge"])
            elif body["kind"] in (RELEASED, VOID):
                pending.remove(body["charge"])
            if body["kind"] == VOID:
                totals = without_last(bodies, body["charge"])
            bodies.append(body)
            right = totals_from_plain(body["totals"]) == totals
        except (KeyError, TypeError, ValueError, RecursionError, StopIteration):
            right = False
        if not right:
            raise LedgerError(f"{place}: line {number} states other totals than its charges have")
    void = {body["charge"] for body in bodies if body["kind"] == VOID}
    charged = [body for body in bodies if body["kind"] == CHARGED and body["charge"] not in void]
    if claims != {(*claim, body["charge"]) for body in charged for claim in body["claims"]}:
        raise LedgerError(f"{place}: other things are claimed than its charges say")


# Where the lines of a ledger are kept, whichever place that is.

Claim = tuple[str, str]


class Chain(Protocol):
    """The lines as one reader or writer has them, while nobody else writes."""

    def last(self) -> Line:
        """Return the last line."""
        ...

    def lines(self) -> Iterator[Line]:
        """Return all lines, first to last."""
        ...

    def of(self, charge: int) -> list[Line]:
        """Return the lines about a charge, first to last."""
        ...

    def before(self, charge: int) -> Line:
        """Return the line before that of a charge."""
        ...

    def free(self, charge: int) -> None:
        """Take back what a charge has claimed."""
        ...

    def check(self) -> None:
        """Refuse a damaged place."""
        ...

    def claims(self) -> set[tuple[str, str, int]]:
        """Return what is claimed, by which charge."""
        ...

    def append(self, line: Line, charge: int, claims: tuple[Claim, ...] = ()) -> None:
        """Add a line about a charge, and what it claims for itself alone."""
        ...


class Store(Protocol):
    """Keeps a chain of lines."""

    @property
    def place(self) -> str:
        """Name of the file; empty in memory."""
        ...

    def reading(self) -> AbstractContextManager[Chain]:
        """Read the chain as it is at one moment."""
        ...

    def writing(self) -> AbstractContextManager[Chain]:
        """Write to the chain, alone; what was added is kept when it ends without an error."""
        ...
