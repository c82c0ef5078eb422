"""Data dictionaries in files: DDI, tables, and the metadata of SPSS, Stata and SAS files.

A table has one variable a line, in columns of the usual English names. No rows of data are read.
"""

from __future__ import annotations

import csv
import json
import os
import re
import subprocess
import sys
import warnings
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from importlib.util import find_spec
from io import BytesIO
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final
from zipfile import ZipFile

from dpmodels.codebook import MOST_BYTES
from dpmodels.dictionaries.entry import (
    Entry,
    cell_text,
    codes_between,
    end_in,
    joined,
    kind_in,
    levels_in,
    number_in,
    once,
    one_line,
    range_in,
    settled,
)
from dpmodels.errors import CodebookError, FrameError, shorten
from dpmodels.external_files import conform, parse, read_bytes
from dpmodels.levels import Level

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element, TreeBuilder

# DDI-Codebook 2: the XML in which archives publish what their files' variables are.
#
# Names, labels, declared ranges, categories and codes of missing values are read. Statistics of
# the rows in the same files (``sumStat``, ``catStat``) are ignored.
#
# XML is read in steps, within limits, without entities or external references.

# Choices: nesting beyond that of any dictionary, and bytes read at a time.
_DEEPEST: Final = 100
_STEP: Final = 1 << 16


def elements(content: bytes, tag: str, where: str) -> Iterator[Element]:
    """Yield the elements with a local name, one at a time; others are skipped.

    Entities are refused where they are declared, and nothing outside the file is looked up.

    >>> [own.get("id") for own in elements(b'<a><b id="1"/><c/><b id="2"/></a>', "b", "it")]
    ['1', '2']
    """
    from xml.parsers import expat

    collector = _Collector(tag, where)
    parser = expat.ParserCreate(namespace_separator=" ")
    parser.StartElementHandler, parser.EndElementHandler = collector.start, collector.end
    parser.CharacterDataHandler, parser.EntityDeclHandler = collector.text, collector.entity
    for begin in range(0, len(content) + 1, _STEP):
        try:
            parser.Parse(content[begin : begin + _STEP], begin + _STEP > len(content))
        except (expat.ExpatError, LookupError, UnicodeError):
            raise CodebookError(f"{where} is truncated or is not XML") from None
        yield from collector.elements
        collector.elements.clear()


class _Collector:
    """Collects the elements with a tag from a document that is parsed in steps."""

    def __init__(self, tag: str, where: str) -> None:
        self.elements: list[Element] = []
        self._tag, self._where = tag, where
        self._depth = self._since = 0
        self._builder: TreeBuilder | None = None

    def start(self, tag: str, attributes: Mapping[str, str]) -> None:
        self._depth += 1
        if self._depth > _DEEPEST:
            raise CodebookError(
                f"{self._where} is nested more than {_DEEPEST} deep, too deep for a dictionary"
            )
        if self._builder is None and _local(tag) == self._tag:
            from xml.etree.ElementTree import TreeBuilder

            self._builder, self._since = TreeBuilder(), self._depth
        if self._builder is not None:
            local_attributes = {_local(name): value for name, value in attributes.items()}
            self._builder.start(_local(tag), local_attributes)

    def end(self, tag: str) -> None:
        if self._builder is not None:
            self._builder.end(_local(tag))
            if self._depth == self._since:
                self.elements.append(self._builder.close())
                self._builder = None
        self._depth -= 1

    def text(self, data: str) -> None:
        if self._builder is not None:
            self._builder.data(data)

    def entity(self, name: str, *_: object) -> None:
        raise CodebookError(
            f"{self._where} declares the entity {shorten(repr(name))}, and entities are not read: "
            "write its text in its place"
        )


def _local(tag: str) -> str:
    return tag.rpartition(" ")[2]


def read_ddi(path: Path) -> dict[str, Entry]:
    """Read the variables of a DDI-Codebook file; CodebookError if it has none."""
    where = repr(str(path))
    entries: dict[str, Entry] = {}
    for element in elements(read_bytes(path, MOST_BYTES), "var", where):
        name = one_line(element.get("name") or element.get("ID"))
        entry = _ddi_entry(name, element)
        entries[name] = joined(name, entries[name], entry) if name in entries else entry
    if not entries:
        raise CodebookError(
            f"{where} has no variables of DDI-Codebook (elements var of codeBook, versions 1 to "
            "2.6); export the file's documentation as DDI-Codebook, not DDI-Lifecycle"
        )
    return entries


def _ddi_entry(name: str, element: Element) -> Entry:
    where = f"variable {name!r}"
    form = element.find("varFormat")
    character = form is not None and form.get("type") == "character"
    categories, absent = _categories(element, character, where)
    lower, upper = (_end(element, end, where) for end in ("min", "max"))
    continuous = element.get("intrvl") == "contin"
    listed = {} if continuous and lower is None else categories
    days = form is not None and form.get("category") in ("date", "time")
    is_integer = element.get("dcml") == "0" and continuous
    kind = "date" if days else "categorical" if character else "numeric"
    entry = Entry(
        kind="integer" if kind == "numeric" and is_integer else kind,
        lower=lower,
        upper=upper,
        levels=tuple(listed),
        labels=tuple(listed.values()),
        missing=tuple(dict.fromkeys(_invalid(element, character, categories) + absent)),
        label=_element_text(element.find("labl")),
        unit=one_line(element.get("measUnit")),
        ordered=element.get("nature") == "ordinal" and bool(listed),
    )
    return settled(name, entry)


def _categories(
    element: Element, character: bool, where: str
) -> tuple[dict[Level, str], list[Level]]:
    groups = [group for group in element.findall("catgry") if group.find("catValu") is not None]
    codes = [_ddi_code(_element_text(group.find("catValu")), character) for group in groups]
    labels = [_element_text(group.find("labl")) for group in groups]
    pairs = zip(codes, groups, strict=True)
    absent = [code for code, group in pairs if group.get("missing") == "Y"]
    return once(zip(codes, labels, strict=True), where), absent


def _end(element: Element, end: str, where: str) -> Any:
    """Return a bound of the declared values, which may be given in several pieces."""
    pieces = element.findall("valrng/range") + element.findall("valrng/item")
    texts = [one_line(piece.get(end) or piece.get("VALUE")) for piece in pieces]
    bounds = [end_in(text, f"{where}: valrng {end}") for text in texts]
    if not bounds or None in bounds:
        return None
    return min(bounds) if end == "min" else max(bounds)


def _invalid(element: Element, character: bool, listed: Iterable[Level]) -> list[Level]:
    codes = [
        _ddi_code(one_line(item.get("VALUE")), character)
        for item in element.findall("invalrng/item")
    ]
    for piece in element.findall("invalrng/range"):
        lower, upper = (number_in(one_line(piece.get(end))) for end in ("min", "max"))
        codes += codes_between(lower, upper, listed)
    return codes


def _ddi_code(text: str, character: bool) -> Level:
    number = number_in(text)
    if character or number != number:
        return text
    return int(number) if number.is_integer() else number


def _element_text(element: Element | None) -> str:
    return "" if element is None else one_line("".join(element.itertext()))


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
    entry = Entry(
        kind=kind,
        lower=lower,
        upper=upper,
        levels=tuple(listed),
        labels=tuple(listed.values()),
        missing=tuple(coded),
        label=one_line(texts.get("label")),
        unit=one_line(texts.get("unit")),
        ordered="ordinal" in texts.get("type", "").casefold(),
    )
    return settled(name, entry)


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


# Variable metadata of SPSS, Stata and SAS files; their rows are not read.

READERS: Final = {
    ".sav": "read_sav",
    ".zsav": "read_sav",
    ".por": "read_por",
    ".dta": "read_dta",
    ".sas7bdat": "read_sas7bdat",
    ".xpt": "read_xport",
}
# Declared missing values of SPSS are read only with this option.
_MORE: Final = {"read_sav": {"user_missing": True}}
_DAYS: Final = re.compile(r"[AEJS]?DATE|MMDDYY|DDMMYY|YYMMDD|%-?t[dcC]|E8601D")
_SECONDS: Final = 60


def _printed(plain: object) -> str:
    if not isinstance(plain, str):
        raise FrameError("expected a text")
    return one_line(plain)


_Text = Annotated[str, _printed]
_Code = float | str


@dataclass(frozen=True)
class _FileVariable:
    """Metadata of a variable, as the other process prints it."""

    name: str
    label: _Text
    type: str
    format: str
    measure: str
    labels: tuple[tuple[_Code, _Text], ...]
    missing: tuple[tuple[_Code, _Code], ...]


def read_labelled(path: Path) -> dict[str, Entry]:
    """Read names, labels, labels of values and codes of missing values: what people declared.

    The storage width of a number is not a declaration: software may choose it by the rows.
    """
    where = repr(str(path))
    if find_spec("pyreadstat") is None:
        raise CodebookError(
            'reading files of SPSS, Stata and SAS needs pyreadstat: pip install "dpmodels[labels]"'
        )
    if not path.is_file():
        raise CodebookError(f"there is no file {where}: check the path and the working folder")
    try:
        reader = READERS[path.suffix.lower()]
        script = Path(__file__).with_name("metadata_process.py").read_text("utf-8")
        options = json.dumps(_MORE.get(reader, {}))
        process = subprocess.run(
            [sys.executable, "-P", "-c", script, str(path), reader, options],
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
            capture_output=True,
            stdin=subprocess.DEVNULL,
            timeout=_SECONDS,
            check=True,
        )
        if len(process.stdout) > MOST_BYTES:
            raise FrameError("its metadata are too large")
        variables = conform([_FileVariable], parse(process.stdout), "")
    except (FrameError, subprocess.SubprocessError, OSError):
        raise CodebookError(
            f"{where} is damaged, or does not match its suffix: write it anew"
        ) from None
    return {variable.name: _labelled_entry(variable) for variable in variables}


def _labelled_entry(variable: _FileVariable) -> Entry:
    text, scale = variable.type == "string", variable.measure == "scale"
    # Labelled letters are Stata's missing values.
    listed = {
        _level(code): label for code, label in variable.labels if text or not isinstance(code, str)
    }
    missing: list[Level] = []
    for lower, upper in variable.missing:
        if isinstance(lower, str) or isinstance(upper, str) or lower == upper:
            missing.append(_level(lower))
        else:
            missing += codes_between(lower, upper, listed)
    if scale:
        listed = {}
    days = _DAYS.match(variable.format) is not None
    entry = Entry(
        kind="date" if days else "categorical" if text else "numeric",
        levels=tuple(listed),
        labels=tuple(listed.values()),
        missing=tuple(missing),
        label=variable.label,
        ordered=variable.measure == "ordinal",
    )
    return settled(variable.name, entry)


def _level(code: Level) -> Level:
    is_integer = isinstance(code, float) and code.is_integer()
    level: Level = int(code) if is_integer else code
    return level
