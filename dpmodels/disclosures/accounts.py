"""What each release cost and what it is of: ledgers line by line, and releases without one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from dpmodels.codebook import Codebook, brief, fingerprint
from dpmodels.disclosures.blocks import Block, Heading, Points, Tables, Words
from dpmodels.disclosures.gather import Account, Charged, Gathered, Released
from dpmodels.privacy import hidden_by
from dpmodels.privacy.register import convergence_notes
from dpmodels.privacy.spent import price
from dpmodels.report import Report, Row, Section, count, signif
from dpmodels.results.base import guarantee_words
from dpmodels.results.bounds import BoundsResult
from dpmodels.results.levels import LevelsResult
from dpmodels.variables import kind

_STATES: Final = {
    "released": "released",
    "charged": "unfinished: counts as spent",
    "void": "void: nothing came of it",
}
_NOTES: Final = (
    "Unfinished: charged, and nothing is known to have come of it; it stays spent. Void: nothing "
    "came of it, and it was given back if no other came after it.",
    "By itself: the cost of a release alone, in the currency of the ledger. Totals are composed by "
    "the ledger's rule, and are no sums of these.",
)


def accounts(found: Gathered) -> Iterator[Block]:
    """Return a part for each ledger, and one for what is in none."""
    for own in found.accounts:
        yield Heading(f"Charges to the {own.name}")
        yield _register(own)
        yield from (Tables(_charge(own, one)) for one in own.charges)
    if found.loose:
        yield Heading("Releases that are in no ledger here")
        yield Words(
            "What follows was not found in a ledger that this report was made of. No total of it "
            "is known: it adds to whatever else was released of the same rows."
        )
        yield from (Tables(_alone(one)) for one in found.loose)


def stated(own: Account) -> str:
    """Say what a ledger guarantees in all, and what was charged so far."""
    many = len(own.charges)
    left = f", {count(own.unfinished)} of them unfinished" if own.unfinished else ""
    return (
        f"{own.name[0].upper()}{own.name[1:]}: {count(many)} charge{'s' * (many != 1)}{left}. "
        f"{covered(own)}, now and later, has together the guarantee "
        f"{own.ledger.guarantee.describe()}. Charged so far: {own.ledger.spent.describe()} "
        f"({_by_rule(own)})."
    )


def covered(own: Account) -> str:
    """Say what a ledger's guarantee is of."""
    return f"All that is charged to it{' and is no simulation' if own.simulated else ''}"


def warnings(own: Account) -> Iterator[str]:
    """Say what a ledger's guarantee is not of."""
    yield from convergence_notes(one.line["mechanism"] for one in own.charges)
    if own.simulated:
        which = ", ".join(map(str, own.simulated))
        yield (
            f"Charge {which} of the {own.name} is a simulation, and has no guarantee at all: who "
            "knows its seed can subtract the noise. The guarantee is of the other charges, and "
            "holds of the table only where nothing simulated was shown, or its rows are public."
        )
    unseen = sum(one.made is None and one.line["state"] == "released" for one in own.charges)
    if unseen:
        yield (
            f"Of {count(unseen)} released charge{'s' * (unseen != 1)} of the {own.name}, no result "
            "is at hand. A ledger does not record whether a release was a simulation; whoever "
            "made them has to say that none was."
        )


def _by_rule(own: Account) -> str:
    return own.ledger.describe().split(";")[0]


def _register(own: Account) -> Tables:
    ledger = own.ledger
    facts = (
        ("Guarantee in all", ledger.guarantee.describe()),
        ("Neighbours", hidden_by(ledger.guarantee, ledger.adjacency)),
        ("Charged so far", ledger.spent.describe()),
        ("By its rule", _by_rule(own)),
        ("Charges", f"{count(len(own.charges))}, {count(own.unfinished)} unfinished"),
        ("Head of the chain", ledger.head),
    )
    heads = ("mechanism", "state", "by itself", f"total {ledger.spent.unit}", "time (UTC)")
    rows = tuple(Row(_name(one), _cells(own, one)) for one in own.charges)
    sections = (Section("Charge", heads, rows),) if rows else ()
    return Tables(Report("Register", facts, sections, _NOTES if rows else ()))


def _cells(own: Account, one: Charged) -> tuple[str, ...]:
    simulated = "simulation, " if one.made is not None and one.made.simulated else ""
    return (
        one.line["mechanism"] or "-",
        simulated + _STATES[one.line["state"]],
        signif(price(one.entry.events, own.ledger.guarantee).amount, 3),
        signif(one.line["total"], 3),
        _time(one),
    )


def _name(one: Charged) -> str:
    return f"{one.entry.number} {one.entry.label}".strip()


def _time(one: Charged) -> str:
    return str(one.line["time"])[:16].replace("T", " ")


def _charge(own: Account, one: Charged) -> Report:
    line = one.line
    reason = (("Void because", line["reason"]),) if line["reason"] else ()
    facts = (
        ("State", _STATES[line["state"]]),
        *reason,
        ("Time (UTC)", _time(one)),
        ("Charged by", line["user"] or "-"),
        ("dpmodels", line["version"] or "-"),
        ("Verb", line["verb"] or "-"),
        ("Formula", line["formula"] or "-"),
        ("Mechanism", line["mechanism"] or "-"),
        ("Unit of privacy", line["person"] or "-"),
        ("Events", line["events"] or "none"),
        ("By itself", price(one.entry.events, own.ledger.guarantee).describe()),
        ("Total after it", one.entry.spent_after.describe()),
        ("Digest of what came out", line["digest"] or "-"),
        ("Digest of declarations", line["codebook"] or "-"),
        ("Line of the ledger", one.entry.hash),
        ("Results shown here", "; ".join(made_of(one.made)) or "none"),
        *(() if one.made is None else _besides(one.made)),
    )
    stamp = one.made.fits[0].stamp if one.made is not None and one.made.simulated else None
    return Report(f"Charge {_name(one)}", facts, (), (), stamp)


def _alone(one: Released) -> Report:
    release: Any = one.release
    call = one.fits[0].call
    events = "; ".join(event.describe() for event in release.events)
    facts = (
        ("Results shown here", "; ".join(made_of(one))),
        ("Mechanism", f"{release.card.name} ({release.card.numerics})"),
        ("Guarantee", "none: a simulation" if one.simulated else guarantee_words(release)),
        ("Neighbours", hidden_by(release.guarantee, release.adjacency)),
        ("Events", events or "none"),
        ("Digest of what came out", one.digest),
        ("Digest of declarations", fingerprint(call.codebook)),
        ("Ledger at the time", call.ledger or "none"),
        *_besides(one),
    )
    return Report(made_of(one)[0], facts, (), (), one.fits[0].stamp)


def _besides(made: Released) -> tuple[tuple[str, str], ...]:
    """Return what only some releases have: a condition on the rows, and sites that are trusted."""
    release: Any = made.release
    subset = () if release.subset is None else (("Subset", release.subset),)
    if release.shared is None:
        return subset
    sites = f"{count(len(release.shared.sites))}, protocol {release.shared.protocol}"
    return (*subset, ("Sites", sites), ("Guarantee holds against", release.shared.holds))


def made_of(made: Released | None) -> tuple[str, ...]:
    """Name the results that were made of a release."""
    if made is None:
        return ()
    printed = zip(made.reports, made.fits, strict=True)
    return tuple(f"{report.title}, {fit.call.formula}" for report, fit in printed)


def loose_words(found: Gathered) -> Iterator[Block]:
    """Say what is known of releases without a ledger, all together."""
    private, local = found.private, found.local
    if len(private) == 1 and not found.accounts:
        yield Words(
            "One release, in no ledger. By itself it has the guarantee "
            f"{guarantee_words(private[0].release)}. Whether anything else was released of the "
            "same rows is not known here, so that no total can be stated."
        )
    elif private:
        yield Words(
            f"{count(len(private))} release{'s' * (len(private) != 1)} in no ledger here. Their "
            "total cannot be known from this report, and no sum is stated. Each by itself:"
        )
        yield Points(tuple(_one(own) for own in private))
    if local:
        yield Words(
            "Answers that each respondent randomised before giving them. What is guaranteed to a "
            "respondent is kept against everybody, whoever holds the answers included:"
        )
        yield Points(tuple(_one(own) for own in local))


def _one(own: Released) -> str:
    release = own.release
    told = f"{guarantee_words(release)} ({release.adjacency.describe()})"
    return f"{'; '.join(made_of(own))}: {told}"


# What was declared of the variables, and where that comes from.

_BUYERS: Final = ("dp_bounds", "dp_levels")
_DECLARED: Final = (
    "Bounds, levels and codes for missing values were declared, and every release was planned by "
    "them before a row was read. Values outside are clipped or left out, so that what is declared "
    "too narrowly biases results, and never weakens the guarantee. That declarations come from "
    "knowledge, and were not read off these rows, is a statement of those who made them: no "
    "software can check it."
)


def declarations(found: Gathered, provenance: str) -> Iterator[Block]:
    """Return the part on the codebook."""
    yield Heading("What was declared, and where it comes from")
    yield Words(_DECLARED)
    yield Words(
        f"Where the declarations come from, as stated by the author: {provenance}"
        if provenance
        else "Where the declarations come from is not stated in this report."
    )
    bought = tuple(_bought(found))
    if bought:
        yield Words("Some declarations were bought, with noise that is accounted for, by:")
        yield Points(bought)
    else:
        yield Words("No bounds or levels were bought from the rows by a release listed here.")
    rows = tuple(_rows(found))
    if rows:
        heads = ("type", "declared", "unit", "label")
        used = [j for j in range(4) if j < 2 or any(row.cells[j] for row in rows)]
        kept = tuple(Row(row.label, tuple(row.cells[j] for j in used)) for row in rows)
        section = Section("Variable", tuple(heads[j] for j in used), kept)
        yield Tables(Report("Declarations of the results shown here", (), (section,), ()))


def _bought(found: Gathered) -> Iterator[str]:
    for own in found.accounts:
        for one in own.charges:
            if one.line["verb"] in _BUYERS and one.line["state"] != "void":
                yield f"charge {one.entry.number} of the {own.name}, {one.entry.label}"
    for alone in found.loose:
        if isinstance(alone.fits[0], BoundsResult | LevelsResult):
            yield f"{type(alone.fits[0]).__name__} {alone.fits[0].call.formula}, in no ledger here"


def _rows(found: Gathered) -> Iterator[Row]:
    """Return each declaration once; a variable that was declared twice has two rows."""
    books: list[Codebook] = [*found.books]
    books += [fit.call.codebook for one in found.made for fit in one.fits]
    for name, own in dict.fromkeys((name, own) for book in books for name, own in book.items()):
        yield Row(name, (kind(own), brief(own), getattr(own, "unit", ""), own.label))
    for name, *cells in dict.fromkeys(line for book in books for line in book.id_lines()):
        yield Row(name, tuple(cells))
