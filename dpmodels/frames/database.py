"""Rows of queries that run once for each pass: tables of databases, and lazy tables."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from dpmodels.errors import FrameError
from dpmodels.frames.coded import decoded
from dpmodels.frames.columns import NativeRows
from dpmodels.frames.duckdb_engine import duckdb_relation
from dpmodels.frames.engine import Engine, arrow_chunks, sliced, streamed, translated
from dpmodels.frames.groups import Groups, groups_of
from dpmodels.frames.identity import person_keys
from dpmodels.frames.protocol import ANY, Chunk, Holds, Kind, RowSource, before_charge, unfinished
from dpmodels.frames.require import kind_of_arrow, require
from dpmodels.typing import Array, Integers

if TYPE_CHECKING:
    import ibis
    import polars as pl


@dataclass(frozen=True, eq=False)
class DatabaseRows:
    """The rows of a query, streamed in bounded memory.

    A table of a database is read in one transaction, so that all passes see the same rows in the
    same order. Other queries promise neither: their passes are compared by the number of rows and a
    keyed checksum of each column, and where rows must come in one order, they are sorted by all
    columns that are read. Rows that are equal in all of these are interchangeable.
    """

    query: Engine | LazyQuery = field(repr=False)
    order: tuple[str, ...] = ()
    first_pass: FirstPass = field(default_factory=lambda: FirstPass(), repr=False)
    rereadable: ClassVar[bool] = True

    @property
    def engine(self) -> Engine | None:
        """The table of a database; None for lazy tables."""
        return self.query if isinstance(self.query, Engine) else None

    @property
    def names(self) -> tuple[str, ...]:
        """The column names."""
        return self.query.names

    @property
    def nrows(self) -> int:
        """The number of rows, counted once, before any charge."""
        message = ""
        try:
            return self.first_pass.counted(self.query.count)
        except FrameError as error:
            message = before_charge(error)
        raise FrameError(message)

    def kind(self, name: str) -> Kind:
        """Tell what a column can hold, by its declared type."""
        return self.query.kind(name)

    def chunks(self, columns: tuple[str, ...], block_rows: int) -> Iterator[Chunk]:
        """Blocks of at most `block_rows` rows of the columns."""
        require(self, columns)
        chunks = self.query.read(columns, self.order, block_rows)
        if self.query.is_snapshot:
            return chunks
        rows = (Groups(chunk, np.ones(_n_rows(chunk), dtype=np.int64)) for chunk in chunks)
        return (chunk for chunk, _ in self.first_pass.compared(rows, columns))

    def repeats(self, name: str) -> bool:
        """Whether declared values are few cells: DuckDB has many times a day."""
        engine = self.engine
        if engine is None or not (engine.is_snapshot or engine.dialect != "sqlite"):
            return False
        return engine.dialect != "duckdb" or not engine.kind(name).name.startswith("TIMESTAMP")

    def groups(self, columns: tuple[str, ...], block_rows: int) -> Iterator[Groups]:
        """Distinct rows of the columns, at most `block_rows` at once, grouped by the database."""
        require(self, columns)
        assert self.engine is not None
        groups = groups_of(self.engine, columns, block_rows)
        return groups if self.engine.is_snapshot else self.first_pass.compared(groups, columns)


def _n_rows(chunk: Chunk) -> int:
    return len(next(iter(chunk.values()), ()))


def in_one_order(source: RowSource, columns: tuple[str, ...]) -> RowSource:
    """Return the same rows, in one order in all passes over some of these columns."""
    if isinstance(source, DatabaseRows) and not source.query.is_snapshot:
        return replace(source, order=columns)
    return source


class FirstPass:
    """What the first pass over each column was, to compare later passes with."""

    __slots__ = ("_checksums", "_key", "_n_rows")

    def __init__(self) -> None:
        self._key = secrets.token_bytes(16)
        self._n_rows: int | None = None
        self._checksums: dict[str, int] = {}

    def __repr__(self) -> str:
        return "<FirstPass, not shown>"

    def counted(self, count: Callable[[], int]) -> int:
        """Return the number of rows, counted once."""
        if self._n_rows is None:
            self._n_rows = count()
        return self._n_rows

    def compared(self, groups: Iterator[Groups], columns: tuple[str, ...]) -> Iterator[Groups]:
        """Pass groups on; at the end, refuse rows that are not those of the first pass."""
        n_rows, sums = 0, dict.fromkeys(columns, 0)
        for chunk, counts in groups:
            n_rows += int(counts.sum())
            for name, cells in chunk.items():
                sums[name] = (sums[name] + _checksum(decoded(cells), counts, self._key)) % 2**64
            yield Groups(chunk, counts)
        first = [self._checksums.setdefault(name, sums[name]) for name in columns]
        if columns and (n_rows != self.counted(lambda: n_rows) or first != list(sums.values())):
            raise FrameError(
                unfinished(
                    "the rows changed between two readings: give a table instead of a query, or "
                    "write the rows to a Parquet file and give its path"
                )
            )


def _checksum(cells: Array, counts: Integers, key: bytes) -> int:
    """Add up keyed hashes of cells, in any order; missing ones count by their number.

    Zeros of both signs are one, since databases group them.
    """
    if cells.dtype.kind == "f" and not isinstance(cells, np.ma.MaskedArray):
        numbers = cells.astype(np.float64)
        cells = np.where(np.isnan(numbers), np.nan, numbers + 0.0).view(np.int64)
    elif cells.dtype.kind in "Mm":
        cells = cells.view(np.int64)
    keys = person_keys(cells, key)
    counts = counts[keys.has_id].astype(np.uint64)
    return int((keys.high[keys.has_id] * counts).sum(dtype=np.uint64)) + int(counts.sum())


@dataclass(frozen=True)
class SelectedRows:
    """Some rows of a table of a database, by a query for its columns in order."""

    engine: Engine
    names: tuple[str, ...]
    sql: str = field(repr=False)
    nrows: ClassVar[None] = None  # Private
    rereadable: ClassVar[bool] = True

    def kind(self, name: str) -> Kind:
        """Tell what a column can hold."""
        return self.engine.kind(name)

    def chunks(self, columns: tuple[str, ...], block_rows: int) -> Iterator[Chunk]:
        """Run the query."""
        chunks = self.engine.chunks(self.sql, self.names, block_rows)
        return ({name: chunk[name] for name in columns} for chunk in chunks)


@dataclass(frozen=True, repr=False)
class LazyQuery:
    """A lazy table, by functions that count and read its rows.

    `kinds` has what columns can hold by their types, where these do not follow from cells.
    """

    names: tuple[str, ...]
    kinds: Mapping[str, Kind]
    counted: Callable[[], int]
    read: Callable[[tuple[str, ...], tuple[str, ...], int], Iterator[Chunk]]
    is_snapshot: ClassVar[bool] = False

    def kind(self, name: str) -> Kind:
        """Tell what a column can hold."""
        return self.kinds.get(name, ANY)

    def count(self) -> int:
        """Count the rows."""
        return translated(_failure, lambda: int(self.counted()))


def open_lazy(data: object) -> LazyQuery | Engine | None:
    """Open a lazy table of polars or Ibis, of which nothing runs; None for other data."""
    import narwhals.stable.v2 as nw

    if nw.dependencies.is_polars_lazyframe(data):
        return translated(_failure, lambda: _of_polars(data))
    if nw.dependencies.is_ibis_table(data):
        return translated(_failure, lambda: _of_ibis(data))
    return None


def _of_polars(frame: pl.LazyFrame) -> LazyQuery:
    """Read a LazyFrame; of scanned text files the types follow from cells."""
    import polars as pl

    def read(columns: tuple[str, ...], order: tuple[str, ...], block_rows: int) -> Iterator[Chunk]:
        query = (frame.sort(order, maintain_order=True) if order else frame).select(columns)
        for batch in streamed(lambda: _batches(query, block_rows), _failure):
            yield from NativeRows(batch).chunks(columns, block_rows)

    count = frame.select(pl.len())
    names = tuple(frame.collect_schema().names())
    return LazyQuery(names, {}, lambda: count.collect(engine="streaming").item(), read)


def _batches(frame: pl.LazyFrame, block_rows: int) -> Iterator[pl.DataFrame]:
    """Return the rows in batches; older polars has them in memory first."""
    if hasattr(frame, "collect_batches"):
        return iter(frame.collect_batches(chunk_size=block_rows, maintain_order=True, lazy=True))
    return iter(frame.collect(engine="streaming").iter_slices(block_rows))


def _of_ibis(table: ibis.Table) -> LazyQuery | Engine:
    backend = table.get_backend()
    if backend.name == "duckdb":
        # Releases of Ibis and of DuckDB may not fit together: the text of the query does.
        import ibis

        return duckdb_relation(backend.con.sql(str(ibis.to_sql(table))))

    def read(columns: tuple[str, ...], order: tuple[str, ...], block_rows: int) -> Iterator[Chunk]:
        query = (table.order_by(list(order)) if order else table).select(list(columns))
        batches = streamed(lambda: query.to_pyarrow_batches(chunk_size=block_rows), _failure)
        return arrow_chunks(sliced(batches, block_rows), columns)

    kinds = {
        name: Kind(Holds.NOTHING, "json") if dtype.is_json() else kind_of_arrow(dtype.to_pyarrow())
        for name, dtype in table.schema().items()
    }
    return LazyQuery(tuple(kinds), kinds, lambda: table.count().to_pyarrow().as_py(), read)


def _failure(_: Exception) -> str:
    """Describe an error without its text, which may quote a cell."""
    return (
        "the lazy table could not be computed: compute it yourself to see why, such as "
        "data.collect() or data.count()"
    )
