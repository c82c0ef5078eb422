"""What is disclosed, sorted by ledger: each release once, with all results that were made of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import Any, Final, TypeVar

import pandas as pd

from dpmodels.codebook import Codebook
from dpmodels.digest import origin
from dpmodels.errors import ArgumentError, FrameError
from dpmodels.models.load import load
from dpmodels.privacy import Entry, Ledger
from dpmodels.report import Report
from dpmodels.results.base import Result, is_local
from dpmodels.sessions.session import Session

_SQLITE: Final = b"SQLite format 3\0"
_EXPECTED: Final = (
    "expected results, ledgers, sessions, or paths of files of ledgers and saved results, one or a "
    "list of them"
)

Thing = TypeVar("Thing")


@dataclass(frozen=True)
class Released:
    """One release, with the results that were made of it."""

    digest: str
    fits: tuple[Any, ...]

    @property
    def release(self) -> Any:
        """What crossed, as the first of the results has it."""
        return self.fits[0].release

    @property
    def simulated(self) -> bool:
        """Whether it has no guarantee, as its noise can be repeated."""
        return any(fit.simulated for fit in self.fits)

    @cached_property
    def reports(self) -> tuple[Report, ...]:
        """What of each result is printed, laid out once."""
        return tuple(fit.summary().report for fit in self.fits)


@dataclass(frozen=True)
class Charged:
    """A charge of a ledger, and what is at hand of it."""

    entry: Entry
    line: dict[str, Any]  # as the ledger's register has it
    made: Released | None


@dataclass(frozen=True)
class Account:
    """A ledger with all its charges."""

    name: str
    ledger: Ledger
    charges: tuple[Charged, ...]

    @property
    def unfinished(self) -> int:
        """How many charges nothing is known to have come of."""
        return sum(own.line["state"] == "charged" for own in self.charges)

    @property
    def simulated(self) -> tuple[int, ...]:
        """Charges whose results at hand are simulations."""
        own = (one for one in self.charges if one.made is not None and one.made.simulated)
        return tuple(one.entry.number for one in own)


@dataclass(frozen=True)
class Gathered:
    """All that a report is about."""

    accounts: tuple[Account, ...]
    loose: tuple[Released, ...]  # that no ledger at hand was charged for
    books: tuple[Codebook, ...]  # of sessions
    simulated: bool

    @property
    def private(self) -> tuple[Released, ...]:
        """Releases without a ledger that have a guarantee which a curator keeps."""
        return tuple(own for own in self.loose if not own.simulated and not is_local(own.release))

    @property
    def local(self) -> tuple[Released, ...]:
        """Answers that respondents randomised, without a ledger."""
        return tuple(own for own in self.loose if not own.simulated and is_local(own.release))

    @property
    def made(self) -> tuple[Released, ...]:
        """All releases of which there are results."""
        charged = [one.made for own in self.accounts for one in own.charges]
        return (*(one for one in charged if one is not None), *self.loose)


def gathered(of: object) -> Gathered:
    """Sort what was given; each ledger and each release is counted once, however it came."""
    things = [_opened(one) for one in _listed(of)]
    sessions = _of_type(things, Session)
    ledgers = _of_type(things, Ledger) + [one.ledger for one in sessions]
    releases = _releases(_of_type(things, Result))
    registers = _distinct([(own, own.register()) for own in ledgers])
    accounts = tuple(
        _account(ledger, register, releases, number if len(registers) > 1 else 0)
        for number, (ledger, register) in enumerate(registers, start=1)
    )
    held = {one.made.digest for own in accounts for one in own.charges if one.made is not None}
    loose = tuple(own for own in releases.values() if own.digest not in held)
    simulated = any(own.simulated for own in releases.values())
    return Gathered(accounts, loose, tuple(own.codebook for own in sessions), simulated)


def _of_type(things: Sequence[object], kind: type[Thing]) -> list[Thing]:
    return [one for one in things if isinstance(one, kind)]


def _listed(of: object) -> Sequence[object]:
    of = of.values() if isinstance(of, Mapping) else of
    many = isinstance(of, Iterable) and not isinstance(of, str | PathLike | Result | Session)
    things = list(of) if many and isinstance(of, Iterable) else [of]
    if not things:
        raise ArgumentError(f"nothing to disclose: {_EXPECTED}")
    return things


def _opened(thing: object) -> object:
    """Return a result, a ledger or a session; what is the path of a file is read."""
    if isinstance(thing, Result | Session):
        return thing
    if isinstance(thing, Ledger):
        thing.verify()
        return thing
    if not isinstance(thing, str | PathLike):
        raise ArgumentError(f"a {type(thing).__name__} cannot be disclosed: {_EXPECTED}")
    path = Path(thing)
    try:
        with path.open("rb") as file:
            ledger = file.read(len(_SQLITE)) == _SQLITE
    except OSError:
        raise FrameError(f"{str(path)!r} cannot be read: give the path of a file") from None
    return Ledger.open(path) if ledger else load(path)


def _releases(fits: Iterable[Any]) -> dict[str, Released]:
    """Return the releases that results were made of, by the digest of what was paid for."""
    found: dict[str, tuple[Any, ...]] = {}
    for fit in fits:
        key = origin(fit.release)
        known = found.get(key, ())
        if not any(own is fit for own in known):
            found[key] = (*known, fit)
    return {key: Released(key, own) for key, own in found.items()}


def _distinct(
    registers: Iterable[tuple[Ledger, pd.DataFrame]],
) -> list[tuple[Ledger, pd.DataFrame]]:
    """Return each ledger once: of several copies the longest."""
    found: dict[str, tuple[Ledger, pd.DataFrame]] = {}
    for ledger, register in registers:
        key = str(register["hash"].iloc[0]) if len(register) else ledger.head
        if key not in found or len(register) > len(found[key][1]):
            found[key] = (ledger, register)
    return list(found.values())


def _account(
    ledger: Ledger, register: pd.DataFrame, releases: dict[str, Released], number: int
) -> Account:
    lines = register.reset_index().to_dict("records")
    charges = tuple(
        Charged(entry, {str(name): own for name, own in line.items()}, releases.get(line["digest"]))
        for entry, line in zip(ledger.entries, lines, strict=True)
    )
    name = ledger.place or "in memory"
    return Account(f"ledger {number}, {name}" if number else f"ledger, {name}", ledger, charges)
