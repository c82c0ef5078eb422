"""What was declared of the variables, and where that comes from."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from dpmodels.codebook import Codebook, brief
from dpmodels.disclosures.blocks import Block, Heading, Points, Tables, Words
from dpmodels.disclosures.gather import Gathered
from dpmodels.report import Report, Row, Section
from dpmodels.results.bounds import BoundsResult
from dpmodels.results.levels import LevelsResult
from dpmodels.variables import kind

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
