"""Notes below a table, and the definitions of the terms that a table uses."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from enum import IntEnum
from typing import Final, NamedTuple

from dpmodels.report.layout import WIDTH, Report, wrap

SHORT: Final = 4  # lines below a table, the stamp among them


class Rank(IntEnum):
    """What a note is about; those that change the reading most come first."""

    GUARANTEE = 0  # limits of the guarantee, and what the user asked for: never left out
    IDENTIFIED = 1  # what noise hides, and what the table leaves out
    TARGET = 2  # which rows and values the estimates describe
    INTERVALS = 3  # how to read errors, intervals and tests; notes without a rank
    DETAIL = 4
    SOURCE = 5

    def __call__(self, *texts: str) -> tuple[str, ...]:
        """Return texts as notes of this rank.

        >>> Rank.DETAIL("Groups are sorted.")[0].rank.name
        'DETAIL'
        """
        notes = tuple(map(Note, texts))
        for note in notes:
            note.rank = self
        return notes


class Note(str):
    """One sentence below a table, and its rank."""

    rank = Rank.INTERVALS


def _rank(note: str) -> Rank:
    return getattr(note, "rank", Rank.INTERVALS)


def ranked(report: Report) -> Report:
    """Sort the notes by rank, and print a repeated note once."""
    return replace(report, notes=tuple(sorted(dict.fromkeys(report.notes), key=_rank)))


def shortened(report: Report) -> Report:
    """Keep the notes that change the reading most, and say how many others there are.

    If all lines are of the guarantee, its further limits are added to the last one.
    """
    notes = ranked(report).notes
    n_lines = SHORT - (report.stamp is not None)
    n_fixed = sum(_rank(note) == Rank.GUARANTEE for note in notes)
    n_shown = max(n_lines, n_fixed)
    first, last = notes[: n_lines - 1], notes[n_lines - 1 : n_shown]
    if len(notes) > n_shown:
        more = 'summary(notes="all") shows {} more.'
        line = " ".join((*last, more.format(len(notes) - n_shown)))
        if _rank(last[-1]) > Rank.INTERVALS and len(wrap(line, WIDTH, indent=2)) > 2:
            line = more.format(len(notes) - n_shown + 1)
        last = (line,)
    return replace(report, notes=(*first, *(" ".join(last),) * bool(last)))


def separated(reports: Sequence[Report]) -> tuple[tuple[Report, ...], tuple[str, ...]]:
    """Return reports without the notes that several of them have, and these notes, each once.

    A note that not all reports have begins with the titles of those that have it.
    """
    titles: dict[str, list[str]] = {}
    for report in map(ranked, reports):
        for note in report.notes:
            titles.setdefault(note, []).append(report.title)
    common = sorted((note for note, names in titles.items() if len(names) > 1), key=_rank)
    individual = [
        replace(report, notes=tuple(note for note in ranked(report).notes if note not in common))
        for report in reports
    ]
    for at, note in enumerate(common):
        if len(titles[note]) < len(reports):
            common[at] = f"{', '.join(dict.fromkeys(titles[note]))}: {note}"
    return tuple(individual), tuple(common)


class Term(NamedTuple):
    """A term as a table prints it, how it is recognised, and what it means."""

    name: str
    pattern: str
    meaning: str


TERMS: Final = (
    Term(
        "Guarantee",
        r"\beps\b|\brho\b",
        "What the release satisfies. eps bounds the logarithm of the factor by which the odds "
        "about one row can change; delta is the probability with which that bound may fail.",
    ),
    Term(
        "Neighbours",
        r"neighbours",
        "Two tables that the guarantee makes hard to distinguish: they differ in one row, or in "
        "all rows of one person.",
    ),
    Term(
        "Ledger",
        r"ledger",
        "The record of what all releases from these data have cost, which refuses a release that "
        "exceeds the budget. Costs add up by eps (summed), by squares of Gaussian noise (GDP, "
        "zCDP), or by both (steps).",
    ),
    Term(
        "Complete",
        r"complete",
        "Rows with a usable value in every variable of the formula. An incomplete row contributes "
        "nothing; the number of complete rows is private and therefore noisy.",
    ),
    Term(
        "Exact lattice",
        r"exact lattice",
        "The noise is drawn from integers by random bits, so the guarantee holds for the computer "
        "that drew it and not only for real numbers.",
    ),
    Term(
        "Idealised",
        r"idealised",
        "The proof of the guarantee treats a part of the computation as real numbers; "
        "floating-point rounding there is bounded but not drawn exactly.",
    ),
    Term(
        "Row norm",
        r"row norm",
        "The largest length of a scaled row. Longer rows are shortened to it; the noise is "
        "proportional to it.",
    ),
    Term(
        "Clipped",
        r"clip|shorten|shrunk",
        "Values beyond a bound are set to the bound, or rows scaled down to the row norm, before "
        "anything is computed. The estimates describe the clipped data. clipped() has noisy shares "
        "of values beyond bounds.",
    ),
    Term(
        "Noise sd",
        r"noise sd|noise\b.*\bsd\b",
        "The standard deviation of the privacy noise in an estimate, in the units of the "
        "estimate. It does not count sampling.",
    ),
    Term(
        "Noise interval",
        r"noise int",
        "An interval for the value that these rows would give without noise. noise_int().",
    ),
    Term(
        "Std. err.",
        r"std\.? err|standard error",
        "The standard deviation of an estimate over samples and over noise, for inference about "
        "the population.",
    ),
    Term(
        "Conf. interval",
        r"conf\.? int|conf_int",
        "An interval for the population's value, which counts sampling and privacy noise. "
        "conf_int().",
    ),
    Term(
        "Not identified",
        r"not identified|identif",
        "The noise is so large that the data cannot distinguish the estimate from others; no "
        "interval is reported.",
    ),
    Term(
        "Conservative",
        r"conservative|at least",
        "An interval that covers at least as often as its level says, and is longer than it would "
        "have to be.",
    ),
    Term(
        "Noise floor",
        r"noise floor",
        "The variance that a component shows from noise alone. Components below it are not "
        "reported as structure.",
    ),
    Term(
        "Denoised",
        r"denois",
        "The expected effect of the noise is removed from the released matrix, which is then "
        "positive semidefinite.",
    ),
    Term("Debiased", r"debias", "Corrected for the part that noise adds to it on average."),
    Term(
        "Expected cos2",
        r"cos2",
        "The expected squared cosine of the angle between the released direction and the one "
        "without noise: 1 is the same direction, 0 a right angle.",
    ),
    Term(
        "Ridge",
        r"ridge",
        "A constant added to the curvature of the fit, so that noise cannot make it unstable. It "
        "shrinks coefficients towards zero.",
    ),
    Term(
        "Sandwich",
        r"sandwich|robust|\bHC\b",
        "Standard errors from the squared scores of rows or persons, which hold although the "
        "residuals have unequal variances.",
    ),
    Term(
        "Simulation",
        r"simulation",
        "A run with a seed, for tests and rehearsals. Its noise can be repeated, so it protects "
        "nobody.",
    ),
)


def terms_in(*reports: Report) -> tuple[Term, ...]:
    """Return the terms that reports use, in the order of the glossary.

    >>> report = Report("Private means", (("Row norm", "1.41"),), (), ("Values were clipped.",))
    >>> [term.name for term in terms_in(report)]
    ['Row norm', 'Clipped']
    """
    printed = "\n".join(text for report in reports for text in _texts(report))
    return tuple(term for term in TERMS if re.search(term.pattern, printed, re.IGNORECASE))


def _texts(report: Report) -> Iterator[str]:
    """Return all texts of a report, without the names that a codebook has."""
    yield from (report.title, report.stamp or "", *report.notes)
    yield from (text for fact in report.facts for text in fact)
    for section in report.sections:
        yield from (section.title, *section.columns, *section.spanners)
        yield from (cell for row in section.rows for cell in row.cells)


def glossary(report: Report) -> Report:
    """Return a report that defines the terms of another one."""
    notes = tuple(f"{term.name}: {term.meaning}" for term in terms_in(report))
    return Report(f"Terms of: {report.title}", (), (), notes)
