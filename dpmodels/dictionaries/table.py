"""A data dictionary as a table, one variable a line: columns by the usual English names."""

from __future__ import annotations

import csv
import re
import warnings
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date
from io import BytesIO
from itertools import chain, islice
from pathlib import Path
from typing import Final
from zipfile import ZipFile

from dpmodels.codebook import MOST_BYTES
from dpmodels.dictionaries.entry import Entry, joined, settled
from dpmodels.dictionaries.notation import cell_text, end_in, kind_in, levels_in, one_line, range_in
from dpmodels.dictionaries.xml import elements
from dpmodels.errors import CodebookError
from dpmodels.external_files import read_bytes

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
# In these columns "unknown" and "none" are ordinary text.
_FREE: Final = {"name", "label"}
# A title may stand above the names of the columns.
_HEADINGS: Final = 10
MOST_LINES: Final = 200_000

Cells = Sequence[object]


def headings(line: Cells) -> dict[str, int] | None:
    """Return the positions of known columns in a line, None if it is not a header."""
    positions: dict[str, int] = {}
    for position, cell in enumerate(line):
        word = _COLUMN_OF.get(re.sub(r"[\W_]+", " ", cell_text(cell).casefold()).strip())
        if word is not None:
            positions.setdefault(word, position)
    return positions if "name" in positions and _FACTS & set(positions) else None


def entries_of(lines: Iterable[Cells], where: str) -> dict[str, Entry]:
    """Read the lines of a dictionary; CodebookError, without cell contents, if it is not one."""
    waiting = iter(lines)
    heads = (headings(line) for line in islice(waiting, _HEADINGS))
    positions = next((candidate for candidate in heads if candidate is not None), None)
    if positions is None:
        raise CodebookError(
            f"{where} is not a data dictionary: expected a line of column names with name (or "
            "variable) and one or more of type, min, max, range, levels; also label, unit, "
            "missing. For a table of rows pass a frame, whose names and types are read: "
            "dp.codebook.draft(pandas.read_csv(...))"
        )
    entries: dict[str, Entry] = {}
    for number, line in enumerate(waiting, 1):
        if number > MOST_LINES:
            raise CodebookError(f"{where} has more than {MOST_LINES:,} lines; split it")
        cells = {word: _text(line, position) for word, position in positions.items()}
        texts = {
            word: text if word in _FREE or cell_text(text) else "" for word, text in cells.items()
        }
        if not any(texts.values()):
            continue
        name = one_line(texts.pop("name"))
        if not name:
            raise CodebookError(
                f"{where}: entry {number} has no name; write the variable's name in each line"
            )
        entry = _entry(name, texts)
        entries[name] = joined(name, entries[name], entry) if name in entries else entry
    return entries


def _text(line: Cells, position: int) -> str:
    cell = line[position] if position < len(line) else None
    if isinstance(cell, float) and cell.is_integer():
        return str(int(cell))
    if isinstance(cell, date):
        return cell.isoformat()[:10]
    return "" if cell is None else str(cell).strip()


def _entry(name: str, texts: Mapping[str, str]) -> Entry:
    where = f"variable {name!r}"
    lower, upper = (end_in(texts.get(end, ""), f"{where}: {end}") for end in ("min", "max"))
    ranged = texts.get("range", "")
    bounds = range_in(texts.get("levels", "")) or range_in(ranged)
    if ranged and not bounds:
        raise CodebookError(f"{where}: range {ranged!r} is not valid; write one such as 0-110")
    if bounds:
        lower, upper = (
            bound if end is None else end for end, bound in zip((lower, upper), bounds, strict=True)
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


# Data dictionaries in files of delimited text.


def read_delimited(path: Path) -> dict[str, Entry]:
    """Read a dictionary with columns separated by a comma, semicolon, tab or bar."""
    where = repr(str(path))
    try:
        text = read_bytes(path, MOST_BYTES).decode("utf-8-sig")
    except UnicodeDecodeError:
        raise CodebookError(f"{where} is not UTF-8 text; save it as CSV in UTF-8") from None
    lines = text.splitlines(keepends=True)
    marks = [mark for mark in ",;\t|" if headings(next(csv.reader(lines[:1], delimiter=mark), []))]
    return entries_of(_cells(lines, marks[0] if marks else ",", where), where)


def _cells(lines: list[str], mark: str, where: str) -> Iterator[list[str]]:
    try:
        yield from csv.reader(chain(lines), delimiter=mark, strict=True)
    except csv.Error:
        raise CodebookError(
            f"{where} is damaged: a quotation is not closed, or a cell is too long"
        ) from None


# Data dictionaries in the first sheet of an Excel file.

_MOST_COLUMNS: Final = 200


def read_excel(path: Path) -> dict[str, Entry]:
    """Read a dictionary; the sizes of the file's parts are checked before they are read."""
    where = repr(str(path))
    try:
        from openpyxl import load_workbook
    except ImportError:
        raise CodebookError(
            'reading Excel files needs openpyxl: pip install "dpmodels[labels]"'
        ) from None
    content = read_bytes(path, MOST_BYTES)
    _require_plain(content, where)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            book = load_workbook(BytesIO(content), read_only=True, data_only=True)
            sheet = book.worksheets[0]
            lines = list(
                sheet.iter_rows(max_row=MOST_LINES, max_col=_MOST_COLUMNS, values_only=True)
            )
    except Exception:
        raise CodebookError(f"{where} is damaged: save it anew, as .xlsx or as CSV") from None
    return entries_of(lines, where)


def _require_plain(content: bytes, where: str) -> None:
    """Refuse a file that is not an archive, is too large unpacked or declares entities."""
    try:
        with ZipFile(BytesIO(content)) as archive:
            size = sum(part.file_size for part in archive.infolist())
            if size > 8 * MOST_BYTES:
                raise CodebookError(f"{where} unpacks to more than {8 * MOST_BYTES:,} bytes")
            for part in archive.namelist():
                if part.endswith((".xml", ".rels")):
                    deque(elements(archive.read(part), "", where), maxlen=0)
    except CodebookError:
        raise
    except Exception:
        raise CodebookError(f"{where} is not an Excel file: save it as .xlsx or as CSV") from None
