"""The report from its first line to the place for a signature."""

from __future__ import annotations

import platform
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

import numpy as np
import scipy

from dpmodels.disclosures.accounts import accounts, covered, loose_words, made_of, stated, warnings
from dpmodels.disclosures.blocks import Blanks, Block, Code, Heading, Picture, Points, Tables, Words
from dpmodels.disclosures.cards import bibtex, card_named, source
from dpmodels.disclosures.declarations import declarations
from dpmodels.disclosures.gather import Charged, Gathered
from dpmodels.disclosures.guarantees import NOT, TRUTHS, guaranteed, neighbours
from dpmodels.disclosures.pictures import pictures
from dpmodels.models.reading import reading
from dpmodels.privacy import Guarantee, Pufferfish, hidden_by
from dpmodels.privacy.register import convergence_notes
from dpmodels.released import Card
from dpmodels.report import Report, count
from dpmodels.results.base import lay_out
from dpmodels.results.reading_line import convergence_words
from dpmodels.version import __version__

_SIMULATED: Final = (
    "There are simulations in this report. Their noise can be repeated by whoever knows the seed: "
    "they have no guarantee at all, and tell of the rows they were made of. Each is stamped."
)
_APART: Final = (
    "Ledgers are not added up. Whether they are of the same rows is not known here; where they "
    "are, more can be learnt of these rows than any one of the guarantees allows."
)
_SO_FAR: Final = (
    "The guarantee in all holds however each release was chosen after seeing those before. What "
    "was charged so far is a guarantee by itself only where nobody decided by an answer what to "
    "ask next, or when to stop."
)
_REPEATED: Final = (
    "Can be repeated: the analysis as it was asked, from the formulas, the declarations with the "
    "digests given here, the budgets and the version of the package; and every table and picture, "
    "exactly, from saved results. Cannot be repeated: the noise. It came from the operating "
    "system's source of randomness, was kept nowhere, and has to stay unknown. Asking again is "
    "another release with other noise, and costs again."
)
_SIGNED: Final = (
    "To be filled in by hand: I have read this report. To the best of my knowledge nothing else "
    "was released of these rows, declarations were made without looking at the rows, and what is "
    "listed as simulated was not passed on as private."
)


@dataclass(frozen=True)
class About:
    """What the author says of the report."""

    title: str
    author: str
    contact: str
    purpose: str
    provenance: str
    date: str

    @property
    def facts(self) -> tuple[tuple[str, str], ...]:
        """What stands at the head; versions are those that the report is written with."""
        told = (
            ("Date", self.date or datetime.now(UTC).date().isoformat()),
            ("Author", self.author),
            ("Contact", self.contact),
            ("Purpose", self.purpose),
        )
        versions = (
            ("dpmodels", __version__),
            ("Python", platform.python_version()),
            ("numpy", np.__version__),
            ("scipy", scipy.__version__),
        )
        return (*((name, own) for name, own in told if own), *versions)


def document(found: Gathered, about: About, pictured: bool) -> Iterator[Block]:
    """Return all blocks in order."""
    yield Heading("About this report")
    yield Tables(Report("Author and versions", about.facts, (), ()))
    yield from _in_short(found)
    yield from _guarantees(found)
    yield from accounts(found)
    cards = _cards(found)
    yield from _mechanisms(found, cards)
    yield from declarations(found, about.provenance)
    if found.made:
        yield Heading("Results")
    for one in found.made:
        for fit, report in zip(one.fits, one.reports, strict=True):
            yield Tables(report)
            yield from (Picture(*own) for own in pictures(fit)) if pictured else ()
    yield Heading("Paragraph for a methods section")
    yield Words(_methods(found))
    yield Heading("What can be repeated")
    yield Words(_REPEATED)
    yield Heading("References")
    yield Code(bibtex(cards))
    yield Heading("Signature")
    yield Words(_SIGNED)
    yield Blanks(("Name", "Function", "Place", "Date", "Signature"))


def _in_short(found: Gathered) -> Iterator[Block]:
    yield Heading("In short")
    if found.simulated:
        yield Words(_SIMULATED)
    if found.accounts:
        yield Points(tuple(stated(own) for own in found.accounts))
        yield Words(_SO_FAR)
    yield from loose_words(found)
    simulations = sum(own.simulated for own in found.loose)
    if simulations:
        yield Words(f"Simulations in no ledger, without any guarantee: {count(simulations)}.")
    more = [text for own in found.accounts for text in warnings(own)]
    more += [_APART] if len(found.accounts) > 1 else []
    if more:
        yield Points(tuple(more))


def _guarantees(found: Gathered) -> Iterator[Block]:
    """Return each guarantee in words, with what it lets anybody tell, then what none is."""
    holders: dict[Any, Any] = {}
    for own in found.accounts:
        ledger = own.ledger
        other = isinstance(ledger.guarantee, Pufferfish)
        unit = "" if other else neighbours(ledger.adjacency)
        holders.setdefault((ledger.guarantee, unit), ledger)
    for one in found.private:
        holders.setdefault((one.release.guarantee, neighbours(one.release.adjacency)), one.fits[0])
    for one in found.local:
        holders.setdefault((one.release.guarantee, TRUTHS), one.fits[0])
    if holders:
        yield Heading("What is guaranteed")
    for (guarantee, unit), holder in holders.items():
        notes = convergence_notes(_names_under(found, guarantee))
        yield Points((*guaranteed(guarantee), *((unit,) if unit else ()), *notes))
        if not isinstance(guarantee, Pufferfish):
            yield Tables(lay_out(reading(holder)))
    yield Heading("What is not guaranteed")
    yield Points(NOT)


def _names_under(found: Gathered, guarantee: Guarantee | Pufferfish) -> Iterator[str]:
    """Return the names of the mechanisms whose releases have a guarantee, or a ledger's."""
    for own in found.accounts:
        if own.ledger.guarantee == guarantee:
            yield from (one.line["mechanism"] for one in own.charges)
    yield from (
        one.release.card.name
        for one in found.private
        if one.release.guarantee == guarantee and convergence_words(one.release)
    )


def _cards(found: Gathered) -> tuple[Card, ...]:
    """Return the cards of all mechanisms that are known, each once."""
    cards = [one.release.card for one in found.made]
    lines = [one for own in found.accounts for one in own.charges if one.made is None]
    cards += [card_named(one.line["mechanism"]) for one in lines]
    return tuple(dict.fromkeys(card for card in cards if card is not None))


def _mechanisms(found: Gathered, cards: tuple[Card, ...]) -> Iterator[Block]:
    yield Heading("Mechanisms")
    for card in cards:
        facts = (
            ("Theorem", card.theorem),
            ("Sensitivity", card.sensitivity),
            ("Noise", card.noise),
            ("Numerics", card.numerics),
        )
        notes = (f"Source: {source(card)}",)
        yield Tables(Report(f"Mechanism {card.name}", facts, (), notes))
    known = {card.name for card in cards}
    named = [one.line["mechanism"] for own in found.accounts for one in own.charges]
    for name in dict.fromkeys(named):
        if name and name not in known:
            yield Words(
                f"Mechanism {name}: not told here, as no result of it is at hand and the ledger "
                "has no more than its name."
            )
    ideal = [card.name for card in cards if not card.numerics.startswith("exact")]
    yield Words(
        "Exact numerics: the theorem is about the computation as it was made, on whole numbers."
        + (
            f" Idealised ({', '.join(ideal)}): it is about real numbers, which floating point only "
            "comes near."
            if ideal
            else ""
        )
    )


def _methods(found: Gathered) -> str:
    """Write what an article has to say, to be edited."""
    sentences = [f"Statistics were released with noise, by dpmodels {__version__} (see below)."]
    for own in found.accounts:
        kept = hidden_by(own.ledger.guarantee, own.ledger.adjacency)
        sentences.append(
            f"Of the {own.name}: {covered(own).lower()} has together the "
            f"guarantee {_kind(own.ledger.guarantee)} (neighbours: {kept})."
        )
        used = [_charged(one) for one in own.charges if one.line["state"] != "void"]
        sentences.append(f"Charged were: {'; '.join(used)}." if used else "Nothing was charged.")
        sentences += convergence_notes(one.line["mechanism"] for one in own.charges)
    for one in found.loose:
        card = one.release.card
        guarantee = f"{_kind(one.release.guarantee)} {convergence_words(one.release)}".strip()
        told = "no guarantee, a simulation" if one.simulated else guarantee
        by = f"{card.name} ({card.source})"
        sentences.append(f"{'; '.join(made_of(one))}: released by {by}, {told}.")
    sentences.append(
        "Bounds and levels of variables were declared beforehand; noise intervals are of the noise "
        "alone, confidence intervals of noise and sampling."
    )
    return " ".join(sentences)


def _charged(one: Charged) -> str:
    by = one.line["mechanism"]
    ended = "unfinished" if one.line["state"] == "charged" else ""
    said = ", ".join(filter(None, (f"by {by}" if by else "", ended)))
    return f"{one.entry.label} ({said})" if said else one.entry.label


def _kind(guarantee: Guarantee | Pufferfish) -> str:
    told = guarantee.describe()
    return told if isinstance(guarantee, Pufferfish) else f"differential privacy with {told}"
