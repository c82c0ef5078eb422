"""The lines of a ledger: charges, their outcomes, and a chain of hashes.

Lines are append-only: the release or voiding of a charge is a separate line. Each line contains the
totals after it, so that a filter needs only the last one, and the hash of the previous line.
"""

from __future__ import annotations

import json
import math
import os
import socket
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import asdict, dataclass, fields
from datetime import UTC, datetime
from functools import cache
from hashlib import sha256
from importlib.metadata import PackageNotFoundError, version
from itertools import groupby
from threading import Lock
from typing import Final, Protocol, get_args

from dpmodels.errors import DPModelsError, LedgerError, PrivacyError
from dpmodels.external_files import conform
from dpmodels.privacy.budget import Adjacency, Guarantee, adjacency
from dpmodels.privacy.compose import Totals
from dpmodels.privacy.events import Event
from dpmodels.privacy.filters import Filter
from dpmodels.privacy.pufferfish import Pufferfish
from dpmodels.privacy.spent import Spent, capacity
from dpmodels.typing import Plain

OPENED, CHARGED, RELEASED, VOID = "opened", "charged", "released", "void"
RESTORED: Final = "restored"
PURSE: Final = "purse"
FORMAT: Final = "dpmodels.ledger/1"
# A choice: longest total of all texts of a line.
LONGEST_TEXTS: Final = 1_000_000
# A choice: digits of a hash that tables show.
SHOWN: Final = 12
# Additional texts of each kind of line.
_TEXTS: Final[Mapping[str, tuple[str, ...]]] = {
    OPENED: (),
    CHARGED: ("label",),
    RELEASED: ("digest",),
    VOID: ("reason",),
    RESTORED: (),
    PURSE: (),
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
    """A public description of a charge.

    `codebook` is the digest of the declarations, `person` the unit of protection.
    """

    verb: str = ""
    formula: str = ""
    mechanism: str = ""
    codebook: str = ""
    person: str = "row"


@dataclass(frozen=True, slots=True)
class Line:
    """A line: its body as canonical JSON, and SHA-256 of the previous hash and that text."""

    text: str
    hash: str

    @property
    def body(self) -> dict[str, Plain]:
        """The content of the line as plain values."""
        plain: dict[str, Plain] = json.loads(self.text)
        return plain


def chained(before: str, body: Mapping[str, object]) -> Line:
    """Return the line that follows a line with this hash; ``""`` for the first."""
    text = json.dumps(body, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return Line(text, hash_of(before, text))


def hash_of(before: str, text: str) -> str:
    """Return the hash of a line."""
    return sha256(f"{before}\n{text}".encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class Entry:
    """A charge recorded in a ledger.

    Parameters
    ----------
    number : int
        Number of the charge, from 1.
    label : str
        Name of the release.
    events : tuple of events
        The charged events.
    totals : Totals
        Totals up to and including this charge.
    filter : Filter
        The filter of the ledger.
    place : str
        Name of the ledger's file; empty for one in memory.
    hash : str
        Hash of the line.
    claims : tuple of (str, str)
        Resources that it uses up, by kind and name.
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
        """Return the amount spent, the budget, the rule, and the line of the file."""
        summary = spent_words(self.filter, self.totals)
        line = f"; line {self.number} of {self.place}, {self.hash[:SHOWN]}" if self.place else ""
        return summary + line


def entry_of(line: Line, budget_filter: Filter, place: str) -> Entry:
    """Return the charge recorded in a line."""
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
    """Return the lines of charges without an outcome."""
    bodies = [(line, line.body) for line in lines]
    done = {body["charge"] for _, body in bodies if body["kind"] in (RELEASED, VOID)}
    return [line for line, body in bodies if body["kind"] == CHARGED and body["charge"] not in done]


def state_words(last: Line, budget_filter: Filter, place: str) -> str:
    """Return the amount spent, the budget, and the head of the file."""
    summary, charges = spent_words(budget_filter, totals_of(last)), last.body["charges"]
    if not place:
        return summary
    count = f"{charges} charge{'' if charges == 1 else 's'}"
    return f"{summary}; {count} in {place}, head {last.hash[:SHOWN]}"


def spent_words(budget_filter: Filter, totals: Totals) -> str:
    """Return the amount spent, the budget, and the composition rule."""
    spent, budget = budget_filter.spent(totals), capacity(budget_filter.guarantee)
    rule = f" ({budget_filter.rule(totals)})" if totals.charges and budget.delta else ""
    return f"{significant(spent)} of {significant(budget)} {budget.unit} spent{rule}"


def significant(amount: Spent) -> str:
    """Return an amount with three digits."""
    return f"{amount.amount:.0f}" if amount.amount >= 100 else f"{amount.amount:#.3g}"


def events_to_plain(events: Iterable[Event]) -> list[list[object]]:
    """Return events as plain values, runs of equal events once with their length."""
    runs = ((event, sum(1 for _ in run)) for event, run in groupby(events))
    return [
        [type(event).__name__, asdict(event), *([count] if count > 1 else [])]
        for event, count in runs
    ]


def events_from_plain(plain: Iterable[Plain]) -> tuple[Event, ...]:
    """Return the events of plain values."""
    runs = ((_EVENTS[name](**arguments), *count) for name, arguments, *count in plain)
    return tuple(event for event, *count in runs for _ in range(count[0] if count else 1))


def totals_to_plain(totals: Totals) -> dict[str, object]:
    """Return totals as plain values; infinity, which JSON lacks, as null."""
    return {
        name: None if isinstance(value, float) and math.isinf(value) else value
        for name, value in asdict(totals).items()
        if value != ""
    }


def totals_from_plain(plain: Mapping[str, Plain]) -> Totals:
    """Return the totals of plain values."""
    values: dict[str, Plain] = {
        name: math.inf if value is None else value for name, value in plain.items()
    }
    return Totals(**values)


def totals_of(line: Line) -> Totals:
    """Return the totals after a line."""
    return totals_from_plain(line.body["totals"])


def signed(charges: int, totals: Totals) -> dict[str, object]:
    """Return the common fields of all lines: number of charges, totals, time, user and host."""
    return {
        "charges": charges,
        "totals": totals_to_plain(totals),
        "time": datetime.now(UTC).isoformat(timespec="microseconds"),
        **_writer(),
    }


@cache
def _writer() -> dict[str, str]:
    import getpass

    try:
        user = getpass.getuser()
    except (OSError, KeyError, ImportError):
        user = ""
    try:
        package_version = version("dpmodels")
    except PackageNotFoundError:
        package_version = ""
    return {"user": user, "host": socket.gethostname(), "version": package_version}


def opening(budget_filter: Filter, relation: Adjacency, totals: Totals | None = None) -> Line:
    """Return the first line of a ledger: its guarantee and neighbours, and what is spent."""
    totals = totals or Totals()
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
    return chained("", {**body, **signed(totals.charges, totals)})


def opened(line: Line, place: str) -> tuple[Filter, Adjacency]:
    """Return the filter and the neighbours in the first line of a ledger."""
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


def without_last(bodies: Sequence[Mapping[str, Plain]], charge: int) -> Totals:
    """Return the totals after voiding a charge: those before it, unless another followed it."""
    positions = reversed(range(len(bodies)))
    last = next(position for position in positions if bodies[position]["kind"] == CHARGED)
    before = last - 1 if bodies[last]["charge"] == charge else len(bodies) - 1
    return totals_from_plain(bodies[before]["totals"])


def following(before: str, line: Line, number: int, place: str) -> Line:
    """Return a line that follows from the previous one.

    A `LedgerError` names a line that does not follow, and its file.
    """
    if hash_of(before, line.text) != line.hash:
        raise LedgerError(
            f"{place}: line {number} does not follow from the previous one: the file was changed, "
            "so nothing can be charged to it. Restore a copy that verifies"
        )
    return line


def require_form(line: Line, number: int, place: str) -> Line:
    """Refuse a line with a valid hash whose fields are missing or of a wrong type."""
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
            f"{place}: line {number} was not written by a ledger: the file was edited. Nothing "
            "was charged; restore a copy that verifies"
        )
    return line


def _texts_and_numbers(body: Mapping[str, Plain]) -> tuple[list[Plain], list[Plain]]:
    """Return the values of a line's body that must be strings, and those that must be integers."""
    texts = [body[name] for name in ("time", "user", "host", "version", *_TEXTS[body["kind"]])]
    datetime.fromisoformat(body["time"])
    numbers = [body["charge"], body["charges"]]
    if "purse" in body:
        purse = body["purse"]
        texts.append(purse["name"])
        numbers.append(int(purse["reserved"]))
        float(purse["amount"])
        totals_from_plain(purse["totals"])
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
    """Refuse a chain with a changed, removed or inserted line.

    The `LedgerError` names the first line that does not follow.
    """
    before, totals, bodies = "", Totals(), list[dict[str, Plain]]()
    pending = set[int]()  # Charges without an outcome
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
    if {claim for claim in claims if claim[0] != PURSE} != _claims_of(bodies):
        raise LedgerError(f"{place}: its claims differ from those of its charges")


def _claims_of(bodies: Sequence[dict[str, Plain]]) -> set[tuple[str, str, int]]:
    """Return the claims of all charges that are not void."""
    void = {body["charge"] for body in bodies if body["kind"] == VOID}
    charged = [body for body in bodies if body["kind"] == CHARGED and body["charge"] not in void]
    return {(*claim, body["charge"]) for body in charged for claim in body["claims"]}


def require_short(subject: str, texts: Iterable[object], limit: int = LONGEST_TEXTS) -> None:
    """Refuse texts that are longer than a ledger keeps."""
    length = sum(len(str(text)) for text in texts)
    if length > limit:
        raise LedgerError(
            f"{subject} of {length:,} characters: expected at most {limit:,}. Nothing was charged"
        )


# The interface of the storage of lines, in memory or in a file.

Claim = tuple[str, str]


class Chain(Protocol):
    """The lines during one read or write, without concurrent writers."""

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
        """Release the claims of a charge."""
        ...

    def check(self) -> None:
        """Refuse damaged storage."""
        ...

    def claims(self, kind: str = "") -> set[tuple[str, str, int]]:
        """Return the claims of a kind, or all, with their charges."""
        ...

    def append(
        self, line: Line, charge: int, claims: tuple[Claim, ...] = (), purse: str = ""
    ) -> None:
        """Add a line about a charge, its exclusive claims, and the purse whose state it has."""
        ...


class Store(Protocol):
    """Storage of a chain of lines."""

    @property
    def place(self) -> str:
        """Name of the file; empty in memory."""
        ...

    def reading(self) -> AbstractContextManager[Chain]:
        """Read a consistent snapshot of the chain."""
        ...

    def writing(self) -> AbstractContextManager[Chain]:
        """Write to the chain exclusively; added lines are stored unless an error is raised."""
        ...


class Memory:
    """Lines in the memory of one process."""

    place = ""

    def __init__(self, opening: Line) -> None:
        self._lines = [opening]
        self._about: dict[int, list[Line]] = {}
        self._before: dict[int, Line] = {}
        self._claims: dict[Claim, int] = {}
        self._lock = Lock()
        self._process = os.getpid()

    @contextmanager
    def reading(self) -> Iterator[Chain]:
        """Read the append-only chain."""
        yield self

    @contextmanager
    def writing(self) -> Iterator[Chain]:
        """Write to the chain, one thread at a time.

        A `PrivacyError` in a process forked after the ledger was opened.
        """
        if os.getpid() != self._process:
            raise PrivacyError(
                "this process is a copy of the one that opened the ledger, and each copy would "
                "spend the whole budget: open a file that all share, "
                "dp.Ledger.open('study.ledger', eps=..., delta=..., new=True)"
            )
        with self._lock:
            yield self

    def last(self) -> Line:
        """Return the last line."""
        return self._lines[-1]

    def lines(self) -> Iterator[Line]:
        """Return all lines, first to last."""
        return iter(tuple(self._lines))

    def of(self, charge: int) -> list[Line]:
        """Return the lines about a charge, first to last."""
        return self._about.get(charge, [])

    def before(self, charge: int) -> Line:
        """Return the line before that of a charge."""
        return self._before[charge]

    def free(self, charge: int) -> None:
        """Release the claims of a charge."""
        self._claims = {
            claim: holder
            for claim, holder in self._claims.items()
            if holder != charge or claim[0] == PURSE
        }

    def check(self) -> None:
        """Do nothing: memory is assumed intact."""

    def claims(self, kind: str = "") -> set[tuple[str, str, int]]:
        """Return the claims of a kind, or all, with their charges."""
        claims = self._claims.items()
        return {(*claim, charge) for claim, charge in claims if kind in ("", claim[0])}

    def append(
        self, line: Line, charge: int, claims: tuple[Claim, ...] = (), purse: str = ""
    ) -> None:
        """Add a line about a charge, its exclusive claims, and the purse whose state it has."""
        repeated = self._claims.keys() & set(claims)
        if repeated:
            raise LedgerError(claimed(*sorted(repeated)[0]))
        # The line first: if interrupted here, the charge is spent and its number is used.
        self._before.setdefault(charge, self._lines[-1])
        self._lines.append(line)
        self._about.setdefault(charge, []).append(line)
        self._claims.update(dict.fromkeys(claims, charge))
        if purse:
            self._claims[PURSE, purse] = charge


def claimed(kind: str, value: str) -> str:
    """Return the message that refuses a repeated claim."""
    return (
        f"the {kind} {value[:60]!r} was used for an earlier charge of this ledger, and may be used "
        f"only once; take a new {kind}. Nothing was charged"
    )
