"""Neighbours that differ in how a record is written: its identity, its file, its column's type.

Each changes one record, or all records of one person, in a way that a reader of tables may take
for more than that: ids that compare equal as numbers, line breaks in a quoted cell, a missing cell
that changes the type of its column.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from os import PathLike
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import numpy as np
import pandas as pd

from dpmodels.audit.pair import Pair
from dpmodels.privacy import Adjacency

Columns = dict[str, list[Any]]
_LINES: Final = 12  # a choice
_FREE_TEXT: Final = "free_text"
_ID: Final = 202401010000000000
# The ids of two groups of rows before a person changes, and after.
_IDENTITIES: Final[tuple[tuple[str, tuple[Any, Any], tuple[Any, Any]], ...]] = (
    ("ids of 18 digits", (_ID, _ID + 1), (_ID, 7)),
    ("an id with a space after it", ("A1", "A1 "), ("B", "B")),
    ("ids that spell one number", ("1.1", "1.10"), ("1.1", "B")),
    ("an id that spells a missing value", ("B", "NA"), ("B", "C")),
)


class CSVFile(PathLike[str]):
    """A temporary CSV file of these columns, which is removed with this object."""

    def __init__(self, columns: Columns) -> None:
        text = io.StringIO()
        csv.writer(text).writerows([columns, *zip(*columns.values(), strict=True)])
        self._folder = TemporaryDirectory()
        self._path = Path(self._folder.name, "rows.csv")
        self._path.write_text(text.getvalue(), encoding="utf-8", newline="")

    def __fspath__(self) -> str:
        return str(self._path)


def ingestion_pairs(pair: Pair, relation: Adjacency, *, lines: bool = False) -> tuple[Pair, ...]:
    """Return pairs made of the rows of another, whose tables are mappings of columns.

    Without a file where every line of one is declared to be a record.
    """
    columns = max(pair.rows, pair.neighbour, key=lambda table: len(next(iter(table.values()))))
    made = [_types(columns, pair, relation.person)]
    if not lines:
        made.append(_files(columns, pair, relation.person))
    if relation.person is not None:
        made += _identities(columns, pair, relation.person)
    return tuple(made)


def _types(columns: Columns, pair: Pair, person: str | None) -> Pair:
    """Return whole numbers in every column, which one missing cell makes floats."""
    cells = {name: np.resize([1, 2], _size(columns)).tolist() for name in columns}
    cells |= {name: columns[name] for name in columns if name == person}
    start = pd.DataFrame(cells if pair.adjacency == "replace" else _without_last(cells))
    missing = {name: [*cells[name][:-1], None] for name in cells if name != person}
    name = "a missing cell among whole numbers"
    return Pair(start, pd.DataFrame({**cells, **missing}), pair.adjacency, name)


def _files(columns: Columns, pair: Pair, person: str | None) -> Pair:
    """Return files whose last record has a quoted cell, in which lines look like records."""
    last = {name: cells[-1] for name, cells in columns.items()}
    ids = [{} if person is None else {person: f"line {line}"} for line in range(_LINES)]
    lines = [",".join(f"{cell}" for cell in [*{**last, **own}.values(), ""]) for own in ids]
    plain = {**columns, _FREE_TEXT: [""] * _size(columns)}
    quoted = {**plain, _FREE_TEXT: [*plain[_FREE_TEXT][:-1], "\n".join(["", *lines])]}
    start = plain if pair.adjacency == "replace" else _without_last(plain)
    return Pair(CSVFile(start), CSVFile(quoted), pair.adjacency, "line breaks in a quoted cell")


def _identities(columns: Columns, pair: Pair, person: str) -> Iterator[Pair]:
    """Give a person with one row and one with eight, of whom one changes."""
    groups = np.repeat([0, 1, 2], [1, 8, 1])
    cells = {name: [column[-1 - group] for group in groups] for name, column in columns.items()}
    for name, before, after in _IDENTITIES:
        other = 5 if isinstance(before[0], int) else "D"
        ids, changed = ([(*two, other)[group] for group in groups] for two in (before, after))
        start = {**cells, person: ids}
        if pair.adjacency == "replace":
            yield Pair(start, {**cells, person: changed}, name=name)
        else:
            kept = [place for place, own in enumerate(ids) if own == changed[place]]
            fewer = {key: [column[place] for place in kept] for key, column in start.items()}
            yield Pair(fewer, start, pair.adjacency, name)


def _size(columns: Columns) -> int:
    return len(next(iter(columns.values())))


def _without_last(columns: Columns) -> Columns:
    return {name: cells[:-1] for name, cells in columns.items()}
