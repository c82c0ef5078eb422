"""Notes below a table: which change the reading most, and which a short report shows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from enum import IntEnum
from typing import Final

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
    own = [
        replace(report, notes=tuple(note for note in ranked(report).notes if note not in common))
        for report in reports
    ]
    for at, note in enumerate(common):
        if len(titles[note]) < len(reports):
            common[at] = f"{', '.join(dict.fromkeys(titles[note]))}: {note}"
    return tuple(own), tuple(common)
