"""The contents of a report, each release once by ledger, with costs and declarations."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import Final, TypeVar, cast

import pandas as pd

from dpmodels.codebook import Codebook, brief, fingerprint
from dpmodels.digest import origin
from dpmodels.disclosures.blocks import Block, Bullets, Heading, Paragraph, Tables
from dpmodels.errors import ArgumentError, FrameError
from dpmodels.models.load import load
from dpmodels.privacy import Entry, Ledger, hidden_by
from dpmodels.privacy.register import convergence_notes
from dpmodels.privacy.spent import price
from dpmodels.released import AnyRelease
from dpmodels.report import Report, Row, Section, count, signif
from dpmodels.results.base import Result
from dpmodels.results.bounds import BoundsResult, LevelsResult
from dpmodels.results.call import guarantee_words, is_local
from dpmodels.sessions.session import Session
from dpmodels.typing import Plain
from dpmodels.variables import kind

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
    def release(self) -> AnyRelease:
        """The release of the first result."""
        return cast(AnyRelease, self.fits[0].release)

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
        return tuple(
            charge.entry.number
            for charge in self.charges
            if charge.released is not None and charge.released.simulated
        )


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
        return self._without_ledger(local=False)

    @property
    def local(self) -> tuple[Released, ...]:
        """Answers that respondents randomised, without a ledger."""
        return self._without_ledger(local=True)

    def _without_ledger(self, *, local: bool) -> tuple[Released, ...]:
        return tuple(
            released
            for released in self.without_ledger
            if not released.simulated and is_local(released.release) == local
        )

    @property
    def charges(self) -> Iterator[tuple[Account, Charged]]:
        """All charges, with their ledgers."""
        for account in self.accounts:
            for charge in account.charges:
                yield account, charge

    @property
    def releases(self) -> tuple[Released, ...]:
        """All releases with results."""
        charged = (charge.released for _, charge in self.charges if charge.released is not None)
        return (*charged, *self.without_ledger)


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
        raise ArgumentError(
            f"an object of type {type(source).__name__} cannot be disclosed: {_EXPECTED}"
        )
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


_STATES: Final = {
    "released": "released",
    "charged": "unfinished: counts as spent",
    "void": "void: nothing was released",
}
_NOTES: Final = (
    "Unfinished: charged, but no release is recorded; it stays spent. Void: nothing was released, "
    "and the charge was refunded unless another followed it.",
    "By itself: the cost of the release alone, in the unit of the ledger. Totals are composed by "
    "the ledger's rule and are not sums of these.",
)


def accounts(contents: Gathered) -> Iterator[Block]:
    """Return a part for each ledger, and one for releases without a ledger."""
    for account in contents.accounts:
        yield Heading(f"Charges to the {account.name}")
        ledger = account.ledger
        facts = (
            ("Total guarantee", ledger.guarantee.describe()),
            ("Neighbours", hidden_by(ledger.guarantee, ledger.adjacency)),
            ("Charged so far", ledger.spent.describe()),
            ("By its rule", _by_rule(account)),
            ("Charges", f"{count(len(account.charges))}, {count(account.unfinished)} unfinished"),
        )
        heads = ("mechanism", "state", "by itself", f"total {ledger.spent.unit}", "time (UTC)")
        rows = tuple(Row(_name(charge), _cells(account, charge)) for charge in account.charges)
        sections = (Section("Charge", heads, rows),) if rows else ()
        yield Tables(Report("Register", facts, sections, _NOTES if rows else ()))
        yield from (Tables(_charge(account, charge)) for charge in account.charges)
    if contents.without_ledger:
        yield Heading("Releases in no ledger listed here")
        yield Paragraph(
            "The following releases are in none of the ledgers of this report. Their total is "
            "unknown: each adds to everything else that was released from the same rows."
        )
        yield from (Tables(_without_ledger(released)) for released in contents.without_ledger)


def purses(contents: Gathered) -> Iterator[Block]:
    """Return the purses of each ledger, and against whom their budgets are no guarantee."""
    for account in contents.accounts:
        parts, total = account.ledger.purses, account.ledger.guarantee.describe()
        if parts:
            yield Paragraph(
                f"Analysts of the {account.name} have purses, which divide its budget. Against "
                "analysts who share their answers, the guarantee is that of all releases "
                f"together, {total}, and not the budget of a purse."
            )
            yield Bullets(tuple(f"Purse {purse.name}: {purse.describe()}" for purse in parts))


def digests(contents: Gathered) -> Iterator[Block]:
    """Return the digests that identify ledgers, their lines, releases and declarations."""
    for account in contents.accounts:
        facts = (("Head of the chain", account.ledger.head),)
        yield Tables(Report(f"{account.name[0].upper()}{account.name[1:]}", facts, (), ()))
        for charge in account.charges:
            charge_facts = (
                ("Line of the ledger", charge.entry.hash),
                *_digests(charge.line["digest"], charge.line["codebook"]),
            )
            yield Tables(Report(f"Charge {_name(charge)}", charge_facts, (), ()))
    for released in contents.without_ledger:
        codebook = fingerprint(released.fits[0].call.codebook)
        released_facts = _digests(released.digest, codebook)
        yield Tables(Report(result_titles(released)[0], released_facts, (), ()))


def _digests(release: str, codebook: str) -> tuple[tuple[str, str], ...]:
    return (
        ("Digest of what came out", release or "-"),
        ("Digest of declarations", codebook or "-"),
    )


def stated(account: Account) -> str:
    """State a ledger's total guarantee and the amount charged so far."""
    n_charges = len(account.charges)
    charges = f"{count(n_charges)} charge{'s' * (n_charges != 1)}"
    unfinished = f", {count(account.unfinished)} of them unfinished" if account.unfinished else ""
    return (
        f"{account.name[0].upper()}{account.name[1:]}: {charges}{unfinished}. "
        f"{covered(account)}, now and later, together satisfies the guarantee "
        f"{account.ledger.guarantee.describe()}. Charged so far: {account.ledger.spent.describe()} "
        f"({_by_rule(account)})."
    )


def covered(account: Account) -> str:
    """Say what a ledger's guarantee covers."""
    return f"Everything charged to it{' except simulations' if account.simulated else ''}"


def warnings(account: Account) -> Iterator[str]:
    """Say what a ledger's guarantee does not cover."""
    yield from convergence_notes(charge.line["mechanism"] for charge in account.charges)
    if account.simulated:
        numbers = ", ".join(map(str, account.simulated))
        yield (
            f"Charge {numbers} of the {account.name} is a simulation without any guarantee: "
            "anyone who knows its seed can subtract the noise. The guarantee covers the other "
            "charges, and protects the table only if no simulation was shown or its rows are "
            "public."
        )
    unseen = sum(
        charge.released is None and charge.line["state"] == "released" for charge in account.charges
    )
    if unseen:
        yield (
            f"No result is available for {count(unseen)} released charge{'s' * (unseen != 1)} of "
            f"the {account.name}. A ledger does not record whether a release was a simulation; its "
            "author has to confirm that none was."
        )


def _by_rule(account: Account) -> str:
    return account.ledger.describe().split(";")[0]


def _cells(account: Account, charge: Charged) -> tuple[str, ...]:
    simulated = "simulation, " if charge.released is not None and charge.released.simulated else ""
    return (
        charge.line["mechanism"] or "-",
        simulated + _STATES[charge.line["state"]],
        signif(price(charge.entry.events, account.ledger.guarantee).amount, 3),
        signif(charge.line["total"], 3),
        _time(charge),
    )


def _name(charge: Charged) -> str:
    return f"{charge.entry.number} {charge.entry.label}".strip()


def _time(charge: Charged) -> str:
    return str(charge.line["time"])[:16].replace("T", " ")


def _charge(account: Account, charge: Charged) -> Report:
    line = charge.line
    reason = (("Void because", line["reason"]),) if line["reason"] else ()
    facts = (
        ("State", _STATES[line["state"]]),
        *reason,
        ("Time (UTC)", _time(charge)),
        ("Charged by", line["user"] or "-"),
        ("dpmodels", line["version"] or "-"),
        ("Verb", line["verb"] or "-"),
        ("Formula", line["formula"] or "-"),
        ("Mechanism", line["mechanism"] or "-"),
        ("Unit of privacy", line["person"] or "-"),
        ("Events", line["events"] or "none"),
        ("By itself", price(charge.entry.events, account.ledger.guarantee).describe()),
        ("Total after it", charge.entry.spent_after.describe()),
        ("Results shown here", "; ".join(result_titles(charge.released)) or "none"),
        *(() if charge.released is None else _besides(charge.released)),
    )
    stamp = None if charge.released is None else charge.released.fits[0].stamp
    return Report(f"Charge {_name(charge)}", facts, (), (), stamp)


def _without_ledger(released: Released) -> Report:
    release: AnyRelease = released.release
    events = "; ".join(event.describe() for event in release.events)
    facts = (
        ("Results shown here", "; ".join(result_titles(released))),
        ("Mechanism", f"{release.info.name} ({release.info.numerics})"),
        ("Guarantee", "none: a simulation" if released.simulated else guarantee_words(release)),
        ("Neighbours", hidden_by(release.guarantee, release.adjacency)),
        ("Events", events or "none"),
        ("Ledger at the time", released.fits[0].call.ledger or "none"),
        *_besides(released),
    )
    return Report(result_titles(released)[0], facts, (), (), released.fits[0].stamp)


def _besides(released: Released) -> tuple[tuple[str, str], ...]:
    """Return the facts that only some releases have: a condition on the rows, and trusted sites."""
    release: AnyRelease = released.release
    subset = () if release.subset is None else (("Subset", release.subset),)
    if release.shared is None:
        return subset
    sites = f"{count(len(release.shared.sites))}, protocol {release.shared.protocol}"
    return (*subset, ("Sites", sites), ("Guarantee holds against", release.shared.holds))


def result_titles(released: Released | None) -> tuple[str, ...]:
    """Return the titles of the results of one release."""
    if released is None:
        return ()
    printed = zip(released.reports, released.fits, strict=True)
    return tuple(f"{report.title}, {fit.call.formula}" for report, fit in printed)


def without_ledger_blocks(contents: Gathered) -> Iterator[Block]:
    """Summarise the releases without a ledger."""
    private, local = contents.private, contents.local
    if len(private) == 1 and not contents.accounts:
        yield Paragraph(
            "One release, in no ledger. By itself it satisfies "
            f"{guarantee_words(private[0].release)}. Other releases from the same rows are not "
            "known here, so no total can be stated."
        )
    elif private:
        yield Paragraph(
            f"{count(len(private))} release{'s' * (len(private) != 1)} in no ledger listed here. "
            "Their total cannot be known from this report. Each by itself:"
        )
        yield Bullets(tuple(_with_guarantee(released) for released in private))
    if local:
        yield Paragraph(
            "Answers that each respondent randomised before giving them. The guarantee to a "
            "respondent holds against everybody, including whoever holds the answers:"
        )
        yield Bullets(tuple(_with_guarantee(released) for released in local))


def _with_guarantee(released: Released) -> str:
    release = released.release
    guarantee = f"{guarantee_words(release)} ({release.adjacency.describe()})"
    return f"{'; '.join(result_titles(released))}: {guarantee}"


# The declarations of the variables, and their sources.

_BUYERS: Final = ("dp_bounds", "dp_levels")
_DECLARED: Final = (
    "Bounds, levels and codes for missing values were declared, and every release was planned from "
    "them before a row was read. Values outside are clipped or left out, so declaring too narrowly "
    "biases results but never weakens the guarantee. No software can check that declarations come "
    "from prior knowledge and were not read off these rows; this is a statement of their authors."
)


def declarations(contents: Gathered, provenance: str) -> Iterator[Block]:
    """Return the part on the codebook."""
    yield Heading("Declarations and their sources")
    yield Paragraph(_DECLARED)
    yield Paragraph(
        f"Source of the declarations, as stated by the author: {provenance}"
        if provenance
        else "The source of the declarations is not stated in this report."
    )
    bought = tuple(_bought(contents))
    if bought:
        yield Paragraph("Some declarations were estimated from the rows by charged releases:")
        yield Bullets(bought)
    else:
        yield Paragraph("No release listed here estimated bounds or levels from the rows.")
    rows = tuple(_rows(contents))
    if rows:
        heads = ("type", "declared", "unit", "label")
        columns = [j for j in range(4) if j < 2 or any(row.cells[j] for row in rows)]
        trimmed = tuple(Row(row.label, tuple(row.cells[j] for j in columns)) for row in rows)
        section = Section("Variable", tuple(heads[j] for j in columns), trimmed)
        yield Tables(Report("Declarations of the results shown here", (), (section,), ()))


def _bought(contents: Gathered) -> Iterator[str]:
    for account, charge in contents.charges:
        if charge.line["verb"] in _BUYERS and charge.line["state"] != "void":
            yield f"charge {charge.entry.number} of the {account.name}, {charge.entry.label}"
    for released in contents.without_ledger:
        if isinstance(released.fits[0], BoundsResult | LevelsResult):
            fit = released.fits[0]
            yield f"{type(fit).__name__} {fit.call.formula}, in no ledger listed here"


def _rows(contents: Gathered) -> Iterator[Row]:
    """Return each declaration once; a variable with two declarations has two rows."""
    books: list[Codebook] = [*contents.books]
    books += [fit.call.codebook for released in contents.releases for fit in released.fits]
    for name, variable in dict.fromkeys(
        (name, variable) for book in books for name, variable in book.items()
    ):
        yield Row(
            name, (kind(variable), brief(variable), getattr(variable, "unit", ""), variable.label)
        )
    for name, *cells in dict.fromkeys(line for book in books for line in book.id_lines()):
        yield Row(name, tuple(cells))
