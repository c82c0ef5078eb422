"""Rows of queries: tables of databases, and lazy tables of polars and Ibis."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from dpmodels.errors import FrameError
from dpmodels.frames.engine import Engine
from dpmodels.frames.groups import Groups, groups_of
from dpmodels.frames.identity import person_keys
from dpmodels.frames.protocol import Chunk, Kind, RowSource, before_charge, unfinished
from dpmodels.frames.require import require
from dpmodels.typing import Integers


class Query(Protocol):
    """A query that runs once for each pass over its rows."""

    @property
    def names(self) -> tuple[str, ...]:
        """The names of its columns."""
        ...

    @property
    def is_snapshot(self) -> bool:
        """Whether each run gives the same rows in the same order."""
        ...

    def kind(self, name: str) -> Kind:
        """Tell what a column can hold, by its declared type."""
        ...

    def count(self) -> int:
        """Return the number of rows."""
        ...

    def read(
        self, columns: tuple[str, ...], order: tuple[str, ...], block_rows: int
    ) -> Iterator[Chunk]:
        """Read columns, sorted by others where `order` names some."""
        ...


@dataclass(frozen=True, eq=False)
class DatabaseRows:
    """The rows of a query, streamed in bounded memory; each pass runs it again.

    A table of a database is read in one read-only transaction, so that all passes see the same rows
    in the same order. Other queries promise neither: their passes are compared by the number of
    rows and a keyed checksum of each column, and where rows must come in one order, they are
    sorted by all columns that are read. Rows that are equal in all of them are interchangeable.
    """

    query: Query = field(repr=False)
    passes: Passes | None = field(repr=False)
    order: tuple[str, ...] = ()
    counts: list[int] = field(default_factory=list, repr=False)
    rereadable: ClassVar[bool] = True

    @property
    def engine(self) -> Engine | None:
        """The database; None for lazy tables."""
        return self.query.engine if isinstance(self.query, TableQuery) else None

    @property
    def names(self) -> tuple[str, ...]:
        """The column names."""
        return self.query.names

    @property
    def nrows(self) -> int:
        """The number of rows, counted once."""
        if not self.counts:
            try:
                self.counts.append(self.query.count())
            except FrameError as error:
                message = before_charge(error)
            else:
                return self.counts[0]
            raise FrameError(message)
        return self.counts[0]

    def kind(self, name: str) -> Kind:
        """Tell what a column can hold, by its declared type."""
        return self.query.kind(name)

    def repeats(self, name: str) -> bool:
        """Whether declared values are few cells; times of DuckDB are many a day."""
        engine = self.engine
        return engine is not None and not (
            engine.dialect == "duckdb" and engine.columns()[name].startswith("TIMESTAMP")
        )

    def groups(self, columns: tuple[str, ...], block_rows: int) -> Iterator[Groups]:
        """Distinct rows of the columns, at most `block_rows` at once, grouped by the database."""
        require(self, columns)
        assert self.engine is not None
        groups = groups_of(self.engine, columns, block_rows)
        return groups if self.passes is None else self.passes.compared(groups, columns, self.counts)

    def in_one_order(self, columns: tuple[str, ...]) -> DatabaseRows:
        """Return the rows such that passes over some of these columns have one order."""
        return self if self.query.is_snapshot else replace(self, order=columns)

    def chunks(self, columns: tuple[str, ...], block_rows: int) -> Iterator[Chunk]:
        """Blocks of at most `block_rows` rows of the columns."""
        require(self, columns)
        chunks = self.query.read(columns, self.order, block_rows)
        if self.passes is None:
            return chunks
        groups = (
            Groups(chunk, np.ones(len(next(iter(chunk.values()), ())), dtype=np.int64))
            for chunk in chunks
        )
        compared = self.passes.compared(groups, columns, self.counts)
        return (chunk for chunk, _ in compared)


def rows_of_query(query: Query) -> DatabaseRows:
    """Return the rows of a query, whose passes are compared if it promises nothing."""
    return DatabaseRows(query, None if query.is_snapshot else Passes())


class Passes:
    """What was read in the first pass over each column, to compare later passes with."""

    __slots__ = ("_checksums", "_key")

    def __init__(self) -> None:
        self._key = secrets.token_bytes(16)
        self._checksums: dict[str, int] = {}

    def __repr__(self) -> str:
        return "<Passes, not shown>"

    def compared(
        self, groups: Iterator[Groups], columns: tuple[str, ...], counts: list[int]
    ) -> Iterator[Groups]:
        """Pass groups on; at the end, refuse rows that are not those of the first pass.

        `counts` has the number of rows, once it was counted.
        """
        n_rows, sums = 0, dict.fromkeys(columns, 0)
        for chunk, often in groups:
            n_rows += int(often.sum())
            for name, cells in chunk.items():
                sums[name] = (sums[name] + _checksum(cells, often, self._key)) % 2**64
            yield Groups(chunk, often)
        if not columns:
            return
        if not counts:
            counts.append(n_rows)
        is_same = [self._checksums.setdefault(name, sums[name]) == sums[name] for name in columns]
        if n_rows != counts[0] or not all(is_same):
            raise FrameError(
                unfinished(
                    "the rows changed between two readings: give a table instead of a query, or "
                    "write the rows to a Parquet file and give its path"
                )
            )


def _checksum(cells: NDArray[Any], often: Integers, key: bytes) -> int:
    """Add up keyed hashes of cells as often as they occur, in any order.

    Missing cells count by their number.
    """
    if cells.dtype.kind == "f" and not isinstance(cells, np.ma.MaskedArray):
        cells = cells.astype(np.float64).view(np.int64)
    elif cells.dtype.kind in "Mm":
        cells = cells.view(np.int64)
    keys = person_keys(cells, key)
    weights = often[keys.has_id].astype(np.uint64)
    return int((keys.high[keys.has_id] * weights).sum(dtype=np.uint64)) + int(weights.sum())


@dataclass(frozen=True)
class TableQuery:
    """All rows of a table of a database."""

    engine: Engine
    names: tuple[str, ...]

    @property
    def is_snapshot(self) -> bool:
        """Whether the table is stored, and read in one transaction."""
        return self.engine.is_snapshot

    def kind(self, name: str) -> Kind:
        """Tell what a column can hold."""
        return self.engine.kind(name)

    def count(self) -> int:
        """Count the rows, in the database."""
        sql = f"SELECT count(*) AS n FROM {self.engine.table}"
        (chunk,) = self.engine.chunks(sql, ("n",), 1)
        return int(chunk["n"][0])

    def read(
        self, columns: tuple[str, ...], order: tuple[str, ...], block_rows: int
    ) -> Iterator[Chunk]:
        """Select the columns."""
        cells = [f"{self.engine.cell(name)} AS c{at}" for at, name in enumerate(columns)]
        sql = f"SELECT {', '.join(cells) or 'NULL'} FROM {self.engine.table}"
        if order:
            sql += f" ORDER BY {', '.join(map(self.engine.sort_key, order))}"
        return self.engine.chunks(sql, columns, block_rows)


@dataclass(frozen=True)
class SelectedRows:
    """Some rows of a table of a database, by a query for its columns in order."""

    engine: Engine
    names: tuple[str, ...]
    sql: str = field(repr=False)

    @property
    def is_snapshot(self) -> bool:
        """Whether the table is stored, and read in one transaction."""
        return self.engine.is_snapshot

    def kind(self, name: str) -> Kind:
        """Tell what a column can hold."""
        return self.engine.kind(name)

    def count(self) -> int:
        """Count the rows, in the database."""
        (chunk,) = self.engine.chunks(f"SELECT count(*) FROM ({self.sql}) q", ("n",), 1)
        return int(chunk["n"][0])

    def read(
        self, columns: tuple[str, ...], order: tuple[str, ...], block_rows: int
    ) -> Iterator[Chunk]:
        """Run the query."""
        return self.engine.chunks(self.sql, self.names, block_rows)


def database_rows(engine: Engine) -> DatabaseRows:
    """Return the rows of a table of a database."""
    return rows_of_query(TableQuery(engine, tuple(engine.columns())))


def in_one_order(source: RowSource, columns: tuple[str, ...]) -> RowSource:
    """Return the same rows, in one order in all passes over some of these columns."""
    return source.in_one_order(columns) if isinstance(source, DatabaseRows) else source
