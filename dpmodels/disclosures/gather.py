"""The contents of a report, sorted by ledger: each release once, with all its results."""

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
from dpmodels.results.base import Result
from dpmodels.results.release_text import is_local
from dpmodels.sessions.session import Session
from dpmodels.typing import Plain

_SQLITE: Final = b"SQLite format 3\0"
_EXPECTED: Final = (
    "expected results, ledgers, sessions, or paths of files of ledgers and saved results, one or a "
    "list of them"
)

Source = TypeVar("Source")


@dataclass(frozen=True)
class Released:
    """One release and its results."""

    digest: str
    fits: tuple[Result, ...]

    @property
    def release(self) -> Any:
        """The release of the first result."""
        return self.fits[0].release

    @property
    def simulated(self) -> bool:
        """Whether it has no guarantee, since its noise can be reproduced."""
        return any(fit.simulated for fit in self.fits)

    @cached_property
    def reports(self) -> tuple[Report, ...]:
        """The printed report of each result, with all its notes."""
        return tuple(fit.summary(notes="all").report for fit in self.fits)


@dataclass(frozen=True)
class Charged:
    """A charge of a ledger, and its release if a result was given."""

    entry: Entry
    line: dict[str, Plain]  # as the ledger's register has it
    released: Released | None


@dataclass(frozen=True)
class Account:
    """A ledger with all its charges."""

    name: str
    ledger: Ledger
    charges: tuple[Charged, ...]

    @property
    def unfinished(self) -> int:
        """Number of charges without a recorded outcome."""
        return sum(charge.line["state"] == "charged" for charge in self.charges)

    @property
    def simulated(self) -> tuple[int, ...]:
        """Numbers of the charges whose results are simulations."""
        charges = (
            charge
            for charge in self.charges
            if charge.released is not None and charge.released.simulated
        )
        return tuple(charge.entry.number for charge in charges)


@dataclass(frozen=True)
class Gathered:
    """The contents of a report."""

    accounts: tuple[Account, ...]
    without_ledger: tuple[Released, ...]  # charged to none of the ledgers
    books: tuple[Codebook, ...]  # of sessions
    simulated: bool

    @property
    def private(self) -> tuple[Released, ...]:
        """Private releases without a ledger, under the central model."""
        return tuple(
            released
            for released in self.without_ledger
            if not released.simulated and not is_local(released.release)
        )

    @property
    def local(self) -> tuple[Released, ...]:
        """Answers that respondents randomised, without a ledger."""
        return tuple(
            released
            for released in self.without_ledger
            if not released.simulated and is_local(released.release)
        )

    @property
    def releases(self) -> tuple[Released, ...]:
        """All releases with results."""
        charged = [charge.released for account in self.accounts for charge in account.charges]
        return (*(released for released in charged if released is not None), *self.without_ledger)


def gathered(of: object) -> Gathered:
    """Sort the sources; each ledger and each release is counted once."""
    sources = [_opened(source) for source in _listed(of)]
    sessions = _of_type(sources, Session)
    ledgers = _of_type(sources, Ledger) + [session.ledger for session in sessions]
    results: list[object] = [result for session in sessions for result in session.results]
    releases = _releases(_of_type([*results, *sources], Result))
    registers = _distinct([(ledger, ledger.register()) for ledger in ledgers])
    accounts = tuple(
        _account(ledger, register, releases, number if len(registers) > 1 else 0)
        for number, (ledger, register) in enumerate(registers, start=1)
    )
    charged_digests = {
        charge.released.digest
        for account in accounts
        for charge in account.charges
        if charge.released is not None
    }
    loose = tuple(
        released for released in releases.values() if released.digest not in charged_digests
    )
    simulated = any(released.simulated for released in releases.values())
    return Gathered(accounts, loose, tuple(session.codebook for session in sessions), simulated)


def _of_type(sources: Sequence[object], kind: type[Source]) -> list[Source]:
    return [source for source in sources if isinstance(source, kind)]


def _listed(of: object) -> Sequence[object]:
    of = of.values() if isinstance(of, Mapping) else of
    is_collection = isinstance(of, Iterable) and not isinstance(
        of, str | PathLike | Result | Session
    )
    sources = list(of) if is_collection and isinstance(of, Iterable) else [of]
    if not sources:
        raise ArgumentError(f"nothing to disclose: {_EXPECTED}")
    return sources


def _opened(source: object) -> object:
    """Return a result, a ledger or a session; a path is read."""
    if isinstance(source, Result | Session):
        return source
    if isinstance(source, Ledger):
        source.verify()
        return source
    if not isinstance(source, str | PathLike):
        raise ArgumentError(f"a {type(source).__name__} cannot be disclosed: {_EXPECTED}")
    path = Path(source)
    try:
        with path.open("rb") as file:
            ledger = file.read(len(_SQLITE)) == _SQLITE
    except OSError:
        raise FrameError(f"{str(path)!r} cannot be read: give the path of a file") from None
    return Ledger.open(path) if ledger else load(path)


def _releases(fits: Iterable[Result]) -> dict[str, Released]:
    """Return the releases of results, by the digest of the charged release."""
    fits_by_digest: dict[str, tuple[Result, ...]] = {}
    for fit in fits:
        key = origin(fit.release)
        earlier = fits_by_digest.get(key, ())
        if not any(fit_before is fit for fit_before in earlier):
            fits_by_digest[key] = (*earlier, fit)
    return {key: Released(key, group) for key, group in fits_by_digest.items()}


def _distinct(
    registers: Iterable[tuple[Ledger, pd.DataFrame]],
) -> list[tuple[Ledger, pd.DataFrame]]:
    """Return each ledger once: the longest of several copies."""
    longest: dict[str, tuple[Ledger, pd.DataFrame]] = {}
    for ledger, register in registers:
        key = str(register["hash"].iloc[0]) if len(register) else ledger.head
        if key not in longest or len(register) > len(longest[key][1]):
            longest[key] = (ledger, register)
    return list(longest.values())


def _account(
    ledger: Ledger, register: pd.DataFrame, releases: dict[str, Released], number: int
) -> Account:
    lines = register.reset_index().to_dict("records")
    charges = tuple(
        Charged(
            entry, {str(name): value for name, value in line.items()}, releases.get(line["digest"])
        )
        for entry, line in zip(ledger.entries, lines, strict=True)
    )
    name = ledger.place or "in memory"
    return Account(f"ledger {number}, {name}" if number else f"ledger, {name}", ledger, charges)
