"""The report from its first line to the place for a signature."""

from __future__ import annotations

import io
import math
import platform
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from importlib.util import find_spec
from typing import Any, Final

import numpy as np
import scipy

from dpmodels import mechanisms
from dpmodels.citation import citation
from dpmodels.disclosures.accounts import (
    accounts,
    covered,
    declarations,
    result_titles,
    stated,
    warnings,
    without_ledger_blocks,
)
from dpmodels.disclosures.blocks import (
    Blanks,
    Block,
    Bullets,
    Code,
    Heading,
    Paragraph,
    Picture,
    Tables,
)
from dpmodels.disclosures.gather import Charged, Gathered
from dpmodels.errors import DPModelsError
from dpmodels.mechanisms.user_supplied import CHECKED, NOT_CHECKED, registered_card
from dpmodels.models.reading import reading
from dpmodels.privacy import (
    ZCDP,
    Adjacency,
    ApproxDP,
    Guarantee,
    Pufferfish,
    hidden_by,
    zcdp_to_approx,
)
from dpmodels.privacy.register import convergence_notes
from dpmodels.released import Card
from dpmodels.report import Report, count, signif
from dpmodels.report.latex import escaped
from dpmodels.results.base import convergence_words, lay_out
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
        author_facts = (
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
        return (*((name, value) for name, value in author_facts if value), *versions)


def document(contents: Gathered, about: About, pictured: bool) -> Iterator[Block]:
    """Return all blocks in order."""
    yield Heading("About this report")
    yield Tables(Report("Author and versions", about.facts, (), ()))
    yield from _in_short(contents)
    yield from _guarantees(contents)
    yield from accounts(contents)
    cards = _cards(contents)
    yield from _mechanisms(contents, cards)
    yield from declarations(contents, about.provenance)
    if contents.releases:
        yield Heading("Results")
    for released in contents.releases:
        for fit, report in zip(released.fits, released.reports, strict=True):
            yield Tables(report)
            yield from (Picture(*picture) for picture in pictures(fit)) if pictured else ()
    yield Heading("Paragraph for a methods section")
    yield Paragraph(_methods(contents))
    yield Heading("What can be repeated")
    yield Paragraph(_REPEATED)
    yield Heading("References")
    yield Code(bibtex(cards))
    yield Heading("Signature")
    yield Paragraph(_SIGNED)
    yield Blanks(("Name", "Function", "Place", "Date", "Signature"))


def _in_short(contents: Gathered) -> Iterator[Block]:
    yield Heading("In short")
    if contents.simulated:
        yield Paragraph(_SIMULATED)
    if contents.accounts:
        yield Bullets(tuple(stated(account) for account in contents.accounts))
        yield Paragraph(_SO_FAR)
    yield from without_ledger_blocks(contents)
    simulations = sum(released.simulated for released in contents.without_ledger)
    if simulations:
        yield Paragraph(f"Simulations in no ledger, without any guarantee: {count(simulations)}.")
    cautions = [text for account in contents.accounts for text in warnings(account)]
    cautions += [_APART] if len(contents.accounts) > 1 else []
    if cautions:
        yield Bullets(tuple(cautions))


def _guarantees(contents: Gathered) -> Iterator[Block]:
    """Return each guarantee in words, with what it lets anybody tell, then what none is."""
    holders: dict[Any, Any] = {}
    for account in contents.accounts:
        ledger = account.ledger
        is_pufferfish = isinstance(ledger.guarantee, Pufferfish)
        unit = "" if is_pufferfish else neighbours(ledger.adjacency)
        holders.setdefault((ledger.guarantee, unit), ledger)
    for released in contents.private:
        holders.setdefault(
            (released.release.guarantee, neighbours(released.release.adjacency)), released.fits[0]
        )
    for released in contents.local:
        holders.setdefault((released.release.guarantee, TRUTHS), released.fits[0])
    if holders:
        yield Heading("What is guaranteed")
    for (guarantee, unit), holder in holders.items():
        notes = convergence_notes(_names_under(contents, guarantee))
        yield Bullets((*guaranteed(guarantee), *((unit,) if unit else ()), *notes))
        if not isinstance(guarantee, Pufferfish):
            yield Tables(lay_out(reading(holder)))
    yield Heading("What is not guaranteed")
    yield Bullets(NOT)


def _names_under(contents: Gathered, guarantee: Guarantee | Pufferfish) -> Iterator[str]:
    """Return the names of the mechanisms whose releases have a guarantee, or a ledger's."""
    for account in contents.accounts:
        if account.ledger.guarantee == guarantee:
            yield from (charge.line["mechanism"] for charge in account.charges)
    yield from (
        released.release.card.name
        for released in contents.private
        if released.release.guarantee == guarantee and convergence_words(released.release)
    )


def _cards(contents: Gathered) -> tuple[Card, ...]:
    """Return the cards of all mechanisms that are known, each once."""
    cards = [released.release.card for released in contents.releases]
    charges = [
        charge
        for account in contents.accounts
        for charge in account.charges
        if charge.released is None
    ]
    cards += [card_named(charge.line["mechanism"]) for charge in charges]
    return tuple(dict.fromkeys(card for card in cards if card is not None))


def _mechanisms(contents: Gathered, cards: tuple[Card, ...]) -> Iterator[Block]:
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
    names = {card.name for card in cards}
    charged_names = [
        charge.line["mechanism"] for account in contents.accounts for charge in account.charges
    ]
    for name in dict.fromkeys(charged_names):
        if name and name not in names:
            yield Paragraph(
                f"Mechanism {name}: not told here, as no result of it is at hand and the ledger "
                "has no more than its name."
            )
    yield from _numerics(cards)


def _numerics(cards: tuple[Card, ...]) -> Iterator[Block]:
    """Say how the numerics of the mechanisms differ."""
    supplied = [card.name for card in cards if card.numerics in (CHECKED, NOT_CHECKED)]
    rest = [card for card in cards if card.name not in supplied]
    ideal = [card.name for card in rest if not card.numerics.startswith("exact")]
    if supplied:
        yield Paragraph(
            f"User-supplied mechanisms ({', '.join(supplied)}): code from outside of the package "
            "read exact moments of the rows. The package checked that the planned noise suffices "
            "for the guarantee, not that this code adds it and keeps nothing; a mechanism marked "
            "as checked passed tests on made-up rows, which prove no guarantee."
        )
    yield Paragraph(
        "Exact numerics: the theorem is about the computation as it was made, on whole numbers."
        + (
            f" Idealised ({', '.join(ideal)}): it is about real numbers, which floating point only "
            "comes near."
            if ideal
            else ""
        )
    )


def _methods(contents: Gathered) -> str:
    """Write what an article has to say, to be edited."""
    sentences = [f"Statistics were released with noise, by dpmodels {__version__} (see below)."]
    for account in contents.accounts:
        hidden = hidden_by(account.ledger.guarantee, account.ledger.adjacency)
        sentences.append(
            f"Of the {account.name}: {covered(account).lower()} has together the "
            f"guarantee {_kind(account.ledger.guarantee)} (neighbours: {hidden})."
        )
        charges = [_charged(charge) for charge in account.charges if charge.line["state"] != "void"]
        sentences.append(
            f"Charged were: {'; '.join(charges)}." if charges else "Nothing was charged."
        )
        sentences += convergence_notes(charge.line["mechanism"] for charge in account.charges)
    for released in contents.without_ledger:
        card = released.release.card
        guarantee = (
            f"{_kind(released.release.guarantee)} {convergence_words(released.release)}".strip()
        )
        statement = "no guarantee, a simulation" if released.simulated else guarantee
        mechanism = f"{card.name} ({card.source})"
        sentences.append(
            f"{'; '.join(result_titles(released))}: released by {mechanism}, {statement}."
        )
    sentences.append(
        "Bounds and levels of variables were declared beforehand; noise intervals are of the noise "
        "alone, confidence intervals of noise and sampling."
    )
    return " ".join(sentences)


def _charged(charge: Charged) -> str:
    mechanism = charge.line["mechanism"]
    ended = "unfinished" if charge.line["state"] == "charged" else ""
    details = ", ".join(filter(None, (f"by {mechanism}" if mechanism else "", ended)))
    return f"{charge.entry.label} ({details})" if details else charge.entry.label


def _kind(guarantee: Guarantee | Pufferfish) -> str:
    description = guarantee.describe()
    return (
        description
        if isinstance(guarantee, Pufferfish)
        else f"differential privacy with {description}"
    )


# Cards of mechanisms by name, and the sources that their documentation gives.

_MARKUP: Final = re.compile(r":\w+:(?=`)|`+")
_SOURCE: Final = re.compile(r"^Source\n((?: +.*\n?|\n)+)", re.MULTILINE)


@cache
def _documented() -> dict[Card, str]:
    """Return every mechanism's card, with the file that it is documented in."""
    attributes = vars(mechanisms).items()
    tables = [value for name, value in attributes if name.isupper() and isinstance(value, dict)]
    strategies = (strategy for table in tables for strategy in table.values())
    return {strategy.card: strategy.__module__ for strategy in strategies}


def card_named(name: str) -> Card | None:
    """Return the card of a name, registered ones too; None where none has it, or several have."""
    matches = [card for card in _documented() if card.name == name]
    return matches[0] if len(matches) == 1 else registered_card(name)


def source(card: Card) -> str:
    """Return the source as the mechanism's documentation has it, else as its card has."""
    module = _documented().get(card)
    text = None if module is None else sys.modules[module].__doc__
    match = _SOURCE.search(text or "")
    return " ".join(_MARKUP.sub("", match[1]).split()) if match else card.source


def bibtex(cards: tuple[Card, ...]) -> str:
    """Return entries of the package and of what mechanisms come from."""
    entries = [citation("bibtex")]
    entries += [
        f"@misc{{dpmodels-{re.sub('[^a-z0-9]+', '-', card.name)},\n"
        f"  title = {{Source of the mechanism {escaped(card.name)} of dpmodels {__version__}}},\n"
        f"  note  = {{{_quoted(source(card))}}}\n}}"
        for card in cards
    ]
    return "\n\n".join(entries)


def _quoted(text: str) -> str:
    """Escape a text, with the quotation marks of LaTeX about its titles."""
    return re.sub(r"\{\\char34\}(.*?)\{\\char34\}", r"``\1''", escaped(text))


# The pictures of a result, as files of PNG beside words for who cannot see them.

# Instead of plot(), where a result has them.
_METHODS: Final = ("plot_scree", "plot_loadings")


def pictures(fit: object) -> tuple[tuple[str, bytes], ...]:
    """Draw a result, each picture with its words; none where matplotlib is not installed."""
    if fit is None or find_spec("matplotlib") is None:
        return ()
    from matplotlib import pyplot as plt

    from dpmodels.plots.style import alt_text

    images = []
    methods = [name for name in _METHODS if hasattr(fit, name)] or ["plot"]
    for draw in (getattr(fit, name) for name in methods if hasattr(fit, name)):
        with plt.ioff():
            try:
                ax = draw()  # as large as what it shows needs
            except DPModelsError:  # a model of the constant alone has nothing to draw
                continue
            buffer = io.BytesIO()
            ax.figure.savefig(buffer, format="png", dpi=120)
            images.append((alt_text(ax), buffer.getvalue()))
            plt.close(ax.figure)
    return tuple(images)


# Guarantees and neighbours in words that somebody can sign, and what they are not.

# A convention: where the eps of a concentrated guarantee is stated.
_DELTA: Final = 1e-6

TRUTHS: Final = (
    "Tables are neighbours where one respondent's truth is replaced by any other: each answer was "
    "randomised before it was given, so that the guarantee holds against whoever has the answers."
)
NOT: Final = (
    "It is no promise about releases of the same table outside what is listed here, by this "
    "package or any other: each adds to what can be learnt.",
    "It does not keep secret what is true of the population. That smoking goes with a disease may "
    "be concluded of anybody, in the table or not.",
    "It does not hide what was declared: variables, their bounds and levels, formulas, conditions "
    "on rows, budgets, and that the table was analysed.",
    "It does not protect more than its unit at the same strength: of several persons, or of more "
    "rows than it names, more can be told.",
    "It is not anonymity, and no statement about who can read the rows, the memory or the disks of "
    "the machine, or how long a computation takes.",
    "It does not make bounds private that somebody read off the rows before declaring them.",
)


def guaranteed(guarantee: Guarantee | Pufferfish) -> tuple[str, ...]:
    """Say what a guarantee promises."""
    match guarantee:
        case Pufferfish():
            return (
                "This is a Pufferfish guarantee. It is not differential privacy.",
                f"Under every law of the public class ({guarantee.model.describe()}), what is "
                "released changes the odds of any state against any other, at any one time of a "
                f"series, by at most a factor exp({guarantee.eps:g}) = {_factor(guarantee.eps)}.",
                "Nothing is promised where the truth is outside that class, nor about whether a "
                "series is in the table, nor about a stretch of time as a whole.",
            )
        case ZCDP(rho):
            implied = signif(zcdp_to_approx(rho, _DELTA), 3)
            return (
                f"This is {rho:g}-zero-concentrated differential privacy: of any two neighbouring "
                "tables, the Renyi divergence of every order a above 1 between what may be "
                f"released from them is at most {rho:g} times a.",
                f"It implies (eps, delta)-differential privacy with eps = {implied} and delta = "
                f"{_DELTA:g}, and with other pairs.",
            )
        case ApproxDP(eps, delta):
            return (
                f"This is (eps, delta)-differential privacy with eps = {eps:g} and delta = "
                f"{delta:g}: of any two neighbouring tables, the probability that one of a set of "
                f"outputs is released from the one is at most exp({eps:g}) = {_factor(eps)} times "
                f"that from the other, plus {delta:g}, whatever the set.",
                "delta is a probability for which nothing is promised; it has to be well below 1 "
                "over the number of those protected.",
            )
        case pure:
            eps = pure.eps
            return (
                f"This is eps-differential privacy with eps = {eps:g}: of any two neighbouring "
                "tables, the probability that one of a set of outputs is released from the one is "
                f"at most exp({eps:g}) = {_factor(eps)} times that from the other, whatever the "
                "set.",
            )


def neighbours(relation: Adjacency) -> str:
    """Say which tables are neighbours, and what is public of their size."""
    members = "persons" if relation.person is not None else "rows"
    if relation.n_public:
        change = f"{relation.unit} is replaced by any other"
        size = f"The number of {members} is public, and not protected"
    else:
        change = f"{relation.unit} is added or removed"
        size = f"The number of {members} is protected too"
    person_note = ""
    if relation.person is not None:
        person_note = (
            f" The column {relation.person!r} says whose a row is; it is taken at its word."
        )
    return f"Tables are neighbours where {change}. {size}.{person_note}"


def _factor(eps: float) -> str:
    return signif(math.exp(eps), 3) if eps < 700 else "more than 1e+300"
