"""Data dictionaries in files of delimited text."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

from dpmodels.codebook import MOST_BYTES
from dpmodels.dictionaries.entry import Entry
from dpmodels.dictionaries.table import entries_of, headings
from dpmodels.errors import CodebookError
from dpmodels.outside import read_bytes


def read_delimited(path: Path) -> dict[str, Entry]:
    """Read a dictionary, its columns apart by a comma, a semicolon, a tab or a bar."""
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
