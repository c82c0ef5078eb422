"""The blocks of a disclosure report, in order."""

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
from inspect import getdoc
from typing import TYPE_CHECKING, Final

import numpy as np
import scipy

from dpmodels.citation import citation
from dpmodels.disclosures import blocks
from dpmodels.disclosures.accounts import (
    Charged,
    Gathered,
    accounts,
    covered,
    declarations,
    digests,
    purses,
    result_titles,
    stated,
    warnings,
    without_ledger_blocks,
)
from dpmodels.errors import DPModelsError
from dpmodels.mechanisms.tables import TABLES
from dpmodels.mechanisms.user_supplied import CHECKED, NOT_CHECKED, registered_info
from dpmodels.models.interpretation import reading
from dpmodels.privacy import (
    ZCDP,
    Adjacency,
    ApproxDP,
    Guarantee,
    Ledger,
    Pufferfish,
    hidden_by,
    zcdp_to_approx,
)
from dpmodels.privacy.register import convergence_notes
from dpmodels.released import MechanismInfo
from dpmodels.report import Report, count, signif
from dpmodels.report.latex import escaped
from dpmodels.report.notes import separated
from dpmodels.results.base import lay_out
from dpmodels.results.call import convergence_words
from dpmodels.version import __version__

if TYPE_CHECKING:
    from dpmodels.results.base import Result

_SIMULATED: Final = (
    "This report contains simulations. Anyone who knows the seed can reproduce their noise: they "
    "have no guarantee and reveal information about their rows. Each is stamped."
)
_APART: Final = (
    "Ledgers are not added up, since this report cannot tell whether they cover the same rows. If "
    "they do, more can be learnt about these rows than any single guarantee allows."
)
_SO_FAR: Final = (
    "The total guarantee holds even if each release was chosen after seeing the earlier ones. The "
    "amount charged so far is a guarantee by itself only if no answer influenced the next query "
    "or the decision to stop."
)
_REPEATED: Final = (
    "Reproducible: the analysis, from the formulas, the declarations (digests in the annex), the "
    "budgets and the version of the package; and every table and picture, exactly, from saved "
    "results. Not reproducible: the noise. It came from the operating system's source of "
    "randomness, was not stored, and must remain unknown. Running a call again is another release "
    "with new noise and another charge."
)
_SIGNED: Final = (
    "To be completed by hand: I have read this report. To the best of my knowledge nothing else "
    "was released from these rows, declarations were made without looking at the rows, and "
    "simulations were not presented as private results."
)


@dataclass(frozen=True)
class About:
    """The author's statements at the head of the report."""

    title: str
    author: str
    contact: str
    purpose: str
    provenance: str
    date: str

    @property
    def facts(self) -> tuple[tuple[str, str], ...]:
        """The author's statements."""
        author_facts = (
            ("Date", self.date or datetime.now(UTC).date().isoformat()),
            ("Author", self.author),
            ("Contact", self.contact),
            ("Purpose", self.purpose),
        )
        return tuple((name, value) for name, value in author_facts if value)


def document(contents: Gathered, about: About, pictured: bool) -> Iterator[blocks.Block]:
    """Return all blocks: results, what is guaranteed, charges, and digests in an annex."""
    yield blocks.Heading("About this report")
    yield blocks.Tables(Report("Author", about.facts, (), ()))
    if contents.simulated:
        yield blocks.Paragraph(_SIMULATED)
    yield from _results(contents, pictured)
    yield from _in_short(contents)
    yield from _guarantees(contents)
    yield from accounts(contents)
    used = [released.release.info for released in contents.releases]
    unseen = (charge for _, charge in contents.charges if charge.released is None)
    named = [info_named(charge.line["mechanism"]) for charge in unseen]
    infos = tuple(dict.fromkeys(info for info in (*used, *named) if info is not None))
    yield from _mechanisms(contents, infos)
    yield from declarations(contents, about.provenance)
    yield blocks.Heading("Paragraph for a methods section")
    yield blocks.Paragraph(_methods(contents))
    yield blocks.Heading("What can be reproduced")
    yield blocks.Paragraph(_REPEATED)
    yield blocks.Heading("References")
    yield blocks.Code(bibtex(infos))
    yield blocks.Heading("Signature")
    yield blocks.Paragraph(_SIGNED)
    yield blocks.Blanks(("Name", "Function", "Place", "Date", "Signature"))
    yield blocks.Heading("Annex: digests and versions")
    yield from digests(contents)
    versions = (
        ("dpmodels", __version__),
        ("Python", platform.python_version()),
        ("numpy", np.__version__),
        ("scipy", scipy.__version__),
    )
    yield blocks.Tables(Report("Versions", versions, (), ()))


def _results(contents: Gathered, pictured: bool) -> Iterator[blocks.Block]:
    if contents.releases:
        yield blocks.Heading("Results")
    fits = [fit for released in contents.releases for fit in released.fits]
    reports, common = separated([lines for each in contents.releases for lines in each.reports])
    for fit, report in zip(fits, reports, strict=True):
        yield blocks.Tables(report)
        yield from (blocks.Picture(*picture) for picture in pictures(fit)) if pictured else ()
    if common:
        yield blocks.Paragraph("Notes of several results:")
        yield blocks.Bullets(common)


def _in_short(contents: Gathered) -> Iterator[blocks.Block]:
    yield blocks.Heading("Guarantee of all releases")
    if contents.accounts:
        yield blocks.Bullets(tuple(stated(account) for account in contents.accounts))
        yield blocks.Paragraph(_SO_FAR)
        yield from purses(contents)
    yield from without_ledger_blocks(contents)
    simulations = sum(released.simulated for released in contents.without_ledger)
    if simulations:
        yield blocks.Paragraph(f"Simulations without a ledger or guarantee: {count(simulations)}.")
    cautions = [text for account in contents.accounts for text in warnings(account)]
    cautions += [_APART] if len(contents.accounts) > 1 else []
    if cautions:
        yield blocks.Bullets(tuple(cautions))


def _guarantees(contents: Gathered) -> Iterator[blocks.Block]:
    holders: dict[tuple[Guarantee | Pufferfish, str], Ledger | Result] = {}
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
        yield blocks.Heading("What is guaranteed")
    interpreted = [key for key in holders if not isinstance(key[0], Pufferfish)]
    reports, common = separated([lay_out(reading(holders[key])) for key in interpreted])
    tables = dict(zip(interpreted, reports, strict=True))
    for guarantee, unit in holders:
        notes = convergence_notes(_names_under(contents, guarantee))
        yield blocks.Bullets((*guaranteed(guarantee), *((unit,) if unit else ()), *notes))
        if (guarantee, unit) in tables:
            yield blocks.Tables(tables[guarantee, unit])
    if common:
        yield blocks.Bullets(common)
    yield blocks.Heading("What is not guaranteed")
    yield blocks.Bullets(NOT)


def _names_under(contents: Gathered, guarantee: Guarantee | Pufferfish) -> Iterator[str]:
    """Return the names of the mechanisms released under a guarantee, in a ledger or not."""
    for account in contents.accounts:
        if account.ledger.guarantee == guarantee:
            yield from (charge.line["mechanism"] for charge in account.charges)
    yield from (
        released.release.info.name
        for released in contents.private
        if released.release.guarantee == guarantee and convergence_words(released.release)
    )


def _mechanisms(contents: Gathered, infos: tuple[MechanismInfo, ...]) -> Iterator[blocks.Block]:
    yield blocks.Heading("Mechanisms")
    for info in infos:
        facts = (
            ("Theorem", info.theorem),
            ("Sensitivity", info.sensitivity),
            ("Noise", info.noise),
            ("Numerics", info.numerics),
        )
        notes = (f"Source: {source(info)}",)
        yield blocks.Tables(Report(f"Mechanism {info.name}", facts, (), notes))
    names = {info.name for info in infos}
    for name in dict.fromkeys(charge.line["mechanism"] for _, charge in contents.charges):
        if name and name not in names:
            yield blocks.Paragraph(
                f"Mechanism {name}: no details, since the ledger records only its name and no "
                "result of it was given."
            )
    supplied = [info.name for info in infos if info.numerics in (CHECKED, NOT_CHECKED)]
    rest = [info for info in infos if info.name not in supplied]
    ideal = [info.name for info in rest if not info.numerics.startswith("exact")]
    if supplied:
        yield blocks.Paragraph(
            f"User-supplied mechanisms ({', '.join(supplied)}): code from outside the package "
            "read exact moments of the rows. The package checked that the planned noise suffices "
            "for the guarantee, but not that this code adds it and discards the moments; a "
            "mechanism marked as checked passed tests on artificial rows, which prove no guarantee."
        )
    yield blocks.Paragraph(
        "Exact numerics: the theorem covers the integer arithmetic that was run."
        + (
            f" Idealised ({', '.join(ideal)}): it assumes real numbers, which floating-point "
            "arithmetic only approximates."
            if ideal
            else ""
        )
    )


def _methods(contents: Gathered) -> str:
    sentences = [f"Statistics were released with noise by dpmodels {__version__} (see below)."]
    for account in contents.accounts:
        hidden = hidden_by(account.ledger.guarantee, account.ledger.adjacency)
        sentences.append(
            f"{account.name.capitalize()}: {covered(account).lower()} together satisfies "
            f"{_kind(account.ledger.guarantee)} (neighbours: {hidden})."
        )
        charges = [_charged(charge) for charge in account.charges if charge.line["state"] != "void"]
        sentences.append(
            f"Charged were: {'; '.join(charges)}." if charges else "Nothing was charged."
        )
        sentences += convergence_notes(charge.line["mechanism"] for charge in account.charges)
    for released in contents.without_ledger:
        info = released.release.info
        guarantee = (
            f"{_kind(released.release.guarantee)} {convergence_words(released.release)}".strip()
        )
        statement = "no guarantee, a simulation" if released.simulated else guarantee
        mechanism = f"{info.name} ({info.source})"
        sentences.append(
            f"{'; '.join(result_titles(released))}: released by {mechanism}, {statement}."
        )
    sentences.append(
        "Bounds and levels of variables were declared beforehand; noise intervals cover the noise "
        "only, confidence intervals noise and sampling."
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


# Infos of mechanisms by name, and the sources that their documentation gives.

_MARKUP: Final = re.compile(r":\w+:(?=`)|`+")
_SOURCE: Final = re.compile(r"^Source\n((?: +.*\n?|\n)+)", re.MULTILINE)


@cache
def _documented() -> dict[MechanismInfo, str]:
    """Return every mechanism's info, with what documents it: its class, then its file."""
    strategies = (strategy for table in TABLES.values() for strategy in table.values())
    return {
        strategy.info: f"{getdoc(strategy)}\n{sys.modules[strategy.__module__].__doc__}"
        for strategy in strategies
    }


def info_named(name: str) -> MechanismInfo | None:
    """Return the info of this name, registered ones included; None unless exactly one has it."""
    matches = [info for info in _documented() if info.name == name]
    return matches[0] if len(matches) == 1 else registered_info(name)


def source(info: MechanismInfo) -> str:
    """Return the source from the mechanism's documentation, else from its info."""
    match = _SOURCE.search(_documented().get(info, ""))
    return " ".join(_MARKUP.sub("", match[1]).split()) if match else info.source


def bibtex(infos: tuple[MechanismInfo, ...]) -> str:
    """Return BibTeX entries of the package and of the mechanisms' sources."""
    entries = [citation("bibtex")]
    entries += [
        f"@misc{{dpmodels-{re.sub('[^a-z0-9]+', '-', info.name)},\n"
        f"  title = {{Source of the mechanism {escaped(info.name)} of dpmodels {__version__}}},\n"
        f"  note  = {{{_quoted(source(info))}}}\n}}"
        for info in infos
    ]
    return "\n\n".join(entries)


def _quoted(text: str) -> str:
    """Escape a text, with the quotation marks of LaTeX about its titles."""
    return re.sub(r"\{\\char34\}(.*?)\{\\char34\}", r"``\1''", escaped(text))


# The pictures of a result, as PNG files with alternative text.

# Instead of plot(), where a result has them.
_METHODS: Final = ("plot_scree", "plot_loadings")


def pictures(fit: object) -> tuple[tuple[str, bytes], ...]:
    """Draw a result, each picture with its alternative text; empty without matplotlib."""
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


# Statements of guarantees and neighbours, and what they do not cover.

# A convention: where the eps of a concentrated guarantee is stated.
_DELTA: Final = 1e-6

TRUTHS: Final = (
    "Tables are neighbours if one respondent's true answer is replaced by any other: each answer "
    "was randomised before it was given, so the guarantee holds against anyone who has the answers."
)
NOT: Final = (
    "It does not cover releases from the same table that are not listed here, by this package or "
    "any other: each adds to what can be learnt.",
    "It does not hide facts about the population. That smoking is associated with a disease can "
    "be inferred about anybody, in the table or not.",
    "It does not hide declarations: variables, their bounds and levels, formulas, conditions on "
    "rows, budgets, and that the table was analysed.",
    "It protects groups larger than its unit less: more can be learnt about several persons, or "
    "about more rows than it names.",
    "It is not anonymity. It does not restrict who can read the rows, the memory or the disks of "
    "the machine, or observe how long a computation takes.",
    "It does not protect bounds that somebody read off the rows before declaring them.",
)


def guaranteed(guarantee: Guarantee | Pufferfish) -> tuple[str, ...]:
    """Return the definition of a guarantee in sentences."""
    match guarantee:
        case Pufferfish():
            return (
                "This is a Pufferfish guarantee. It is not differential privacy.",
                f"Under every model of the public class ({guarantee.model.describe()}), the "
                "release changes the odds of any state against any other, at any one time of a "
                f"series, by at most a factor exp({guarantee.eps:g}) = {_factor(guarantee.eps)}.",
                "It guarantees nothing if the truth is outside that class, and hides neither "
                "whether a series is in the table nor a period of time as a whole.",
            )
        case ZCDP(rho):
            implied = signif(zcdp_to_approx(rho, _DELTA), 3)
            return (
                f"This is {rho:g}-zero-concentrated differential privacy: for any two neighbouring "
                "tables, the Renyi divergence of every order a above 1 between their output "
                f"distributions is at most {rho:g} times a.",
                f"It implies (eps, delta)-differential privacy with eps = {implied} and delta = "
                f"{_DELTA:g}, and other pairs.",
            )
        case ApproxDP(eps, delta):
            return (
                f"This is (eps, delta)-differential privacy with eps = {eps:g} and delta = "
                f"{delta:g}: for any two neighbouring tables and any set of outputs, the "
                f"probability of the set under one table is at most exp({eps:g}) = {_factor(eps)} "
                f"times that under the other, plus {delta:g}.",
                "delta is a probability with which the bound may fail; it must be well below 1 "
                "over the number of protected units.",
            )
        case pure:
            eps = pure.eps
            return (
                f"This is eps-differential privacy with eps = {eps:g}: for any two neighbouring "
                "tables and any set of outputs, the probability of the set under one table is at "
                f"most exp({eps:g}) = {_factor(eps)} times that under the other.",
            )


def neighbours(relation: Adjacency) -> str:
    """Say which tables are neighbours, and whether their size is public."""
    members = "persons" if relation.person is not None else "rows"
    if relation.n_public:
        change = f"{relation.unit} is replaced by any other"
        size = f"The number of {members} is public and not protected"
    else:
        change = f"{relation.unit} is added or removed"
        size = f"The number of {members} is protected too"
    person_note = ""
    if relation.person is not None:
        person_note = (
            f" The column {relation.person!r} identifies the person; it is assumed correct."
        )
    return f"Tables are neighbours if {change}. {size}.{person_note}"


def _factor(eps: float) -> str:
    return signif(math.exp(eps), 3) if eps < 700 else "more than 1e+300"
