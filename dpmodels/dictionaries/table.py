"""A data dictionary as a table, one variable a line: columns by the usual English names."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import date
from itertools import islice
from typing import Any, Final

from dpmodels.dictionaries.entry import Entry, joined, settled
from dpmodels.dictionaries.words import (
    end_in,
    kind_in,
    levels_in,
    one_line,
    range_in,
    told,
)
from dpmodels.errors import CodebookError

_COLUMNS: Final = {
    "name": "name|variable|variable name|var|var name|varname|field|field name|column|column name|"
    "variable field name",
    "type": "type|variable type|field type|data type|datatype|measure|level of measurement|class",
    "min": "min|minimum|lower|lower bound|low|text validation min",
    "max": "max|maximum|upper|upper bound|high|text validation max",
    "range": "range|valid range|bounds|limits",
    "levels": "levels|values|value labels|valid values|allowed values|categories|codes|choices|"
    "enum|factor levels|choices calculations or slider labels",
    "label": "label|variable label|field label|title|description|definition|question|meaning",
    "unit": "unit|units|unit of measurement|unit of measure|measured in",
    "missing": "missing|missing code|missing codes|missing value|missing values|na|na values",
}
_COLUMN_OF: Final = {name: word for word, names in _COLUMNS.items() for name in names.split("|")}
_FACTS: Final = {"type", "min", "max", "range", "levels"}
# In these "unknown" and "none" are words as any other.
_FREE: Final = {"name", "label"}
# A title may stand above the names of the columns.
_HEADINGS: Final = 10
MOST_LINES: Final = 200_000

Cells = Sequence[object]


def headings(line: Cells) -> dict[str, int] | None:
    """Return the places of known columns in a line, None if it is no head of a dictionary."""
    found: dict[str, int] = {}
    for place, cell in enumerate(line):
        word = _COLUMN_OF.get(re.sub(r"[\W_]+", " ", told(cell).casefold()).strip())
        if word is not None:
            found.setdefault(word, place)
    return found if "name" in found and _FACTS & set(found) else None


def entries_of(lines: Iterable[Cells], where: str) -> dict[str, Entry]:
    """Read the lines of a dictionary; CodebookError, which tells of no cell, if it is none."""
    waiting = iter(lines)
    heads = (headings(line) for line in islice(waiting, _HEADINGS))
    places = next((found for found in heads if found is not None), None)
    if places is None:
        raise CodebookError(
            f"{where} is no data dictionary: expected a line of column names with name (or "
            "variable) and one or more of type, min, max, range, levels; also label, unit, "
            "missing. Where it holds rows, give them as a frame, of which names and types "
            "are read: dp.codebook.draft(pandas.read_csv(...))"
        )
    made: dict[str, Entry] = {}
    for number, line in enumerate(waiting, 1):
        if number > MOST_LINES:
            raise CodebookError(f"{where} has more than {MOST_LINES:,} lines; split it")
        cells = {word: _text(line, place) for word, place in places.items()}
        texts = {word: own if word in _FREE or told(own) else "" for word, own in cells.items()}
        if not any(texts.values()):
            continue
        name = one_line(texts.pop("name"))
        if not name:
            raise CodebookError(
                f"{where}: entry {number} has no name; write the variable's name in each line"
            )
        entry = _entry(name, texts)
        made[name] = joined(name, made[name], entry) if name in made else entry
    return made


def _text(line: Cells, place: int) -> str:
    cell = line[place] if place < len(line) else None
    if isinstance(cell, float) and cell.is_integer():
        return str(int(cell))
    if isinstance(cell, date):
        return cell.isoformat()[:10]
    return "" if cell is None else str(cell).strip()


def _entry(name: str, texts: Mapping[str, str]) -> Entry:
    where = f"variable {name!r}"
    lower, upper = (end_in(texts.get(end, ""), f"{where}: {end}") for end in ("min", "max"))
    ranged = texts.get("range", "")
    found: Any = range_in(texts.get("levels", "")) or range_in(ranged)
    if ranged and not found:
        raise CodebookError(f"{where}: range {ranged!r} is no range; write one such as 0-110")
    if found:
        lower, upper = (
            own if end is None else end for end, own in zip((lower, upper), found, strict=True)
        )
    listed = {} if range_in(texts.get("levels", "")) else levels_in(texts.get("levels", ""), where)
    kind = kind_in(texts.get("type", ""), ranged=lower is not None or upper is not None)
    if isinstance(lower, date) or isinstance(upper, date):
        kind = "date"
    coded = levels_in(texts.get("missing", ""), where)
    return settled(
        name,
        Entry(
            kind=kind,
            lower=lower,
            upper=upper,
            levels=tuple(listed),
            labels=tuple(listed.values()),
            missing=tuple(coded),
            label=one_line(texts.get("label")),
            unit=one_line(texts.get("unit")),
            ordered="ordinal" in texts.get("type", "").casefold(),
        ),
    )
