"""Lazy tables of polars and Ibis, which run for each pass and stream their rows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, ClassVar

from dpmodels.frames.columns import NativeRows
from dpmodels.frames.database import DatabaseRows, database_rows, rows_of_query
from dpmodels.frames.duckdb_engine import duckdb_relation
from dpmodels.frames.engine import arrow_chunks, sliced, streamed, translated
from dpmodels.frames.protocol import ANY, Chunk, Holds, Kind
from dpmodels.frames.require import kind_of_arrow


@dataclass(frozen=True)
class PolarsQuery:
    """A polars LazyFrame, run by the streaming engine.

    Its types may follow from cells, as those of a scanned CSV file do: columns can hold anything.
    """

    frame: Any = field(repr=False)
    names: tuple[str, ...]
    is_snapshot: ClassVar[bool] = False

    def kind(self, name: str) -> Kind:
        """Anything."""
        return ANY

    def count(self) -> int:
        """Count the rows."""
        import polars as pl

        count = self.frame.select(pl.len())
        return translated(_failure, lambda: int(count.collect(engine="streaming").item()))

    def read(
        self, columns: tuple[str, ...], order: tuple[str, ...], block_rows: int
    ) -> Iterator[Chunk]:
        """Collect the columns in batches."""
        frame = self.frame.sort(order, maintain_order=True) if order else self.frame
        for batch in streamed(lambda: _batches(frame.select(columns), block_rows), _failure):
            yield from NativeRows(batch).chunks(columns, block_rows)


def _batches(frame: Any, block_rows: int) -> Iterator[Any]:
    """Return the rows in batches; older polars has them in memory first."""
    if hasattr(frame, "collect_batches"):
        batches = frame.collect_batches(chunk_size=block_rows, maintain_order=True, lazy=True)
        return iter(batches)
    return iter(frame.collect(engine="streaming").iter_slices(block_rows))


@dataclass(frozen=True)
class IbisQuery:
    """An Ibis table, run by its backend."""

    table: Any = field(repr=False)
    names: tuple[str, ...]
    is_snapshot: ClassVar[bool] = False

    def kind(self, name: str) -> Kind:
        """Tell what a column can hold, by the schema of the table."""
        dtype = self.table.schema()[name]
        if dtype.is_json():
            return Kind(Holds.NOTHING, "json")
        return kind_of_arrow(dtype.to_pyarrow())

    def count(self) -> int:
        """Count the rows."""
        return translated(_failure, lambda: int(self.table.count().to_pyarrow().as_py()))

    def read(
        self, columns: tuple[str, ...], order: tuple[str, ...], block_rows: int
    ) -> Iterator[Chunk]:
        """Read the columns as Arrow batches."""
        table = self.table.order_by(list(order)) if order else self.table
        table = table.select(list(columns))
        batches = streamed(lambda: table.to_pyarrow_batches(chunk_size=block_rows), _failure)
        return arrow_chunks(sliced(batches, block_rows), columns)


def open_lazy(data: Any) -> DatabaseRows | None:
    """Open a lazy table of polars or Ibis, of which nothing runs; None for other data."""
    import narwhals.stable.v2 as nw

    if nw.dependencies.is_narwhals_lazyframe(data):
        return open_lazy(data.to_native())
    if nw.dependencies.is_polars_lazyframe(data):
        names = tuple(translated(_failure, lambda: data.collect_schema().names()))
        return rows_of_query(PolarsQuery(data, names))
    if nw.dependencies.is_ibis_table(data):
        return _open_ibis(data)
    return None


def _open_ibis(table: Any) -> DatabaseRows:
    import ibis

    backend = table.get_backend()
    if backend.name != "duckdb":
        return rows_of_query(IbisQuery(table, tuple(table.columns)))
    # Releases of Ibis and of DuckDB may not fit together: the text of the query does.
    relation = translated(_failure, lambda: backend.con.sql(str(ibis.to_sql(table))))
    return database_rows(duckdb_relation(relation))


def _failure(_: Exception) -> str:
    """Describe an error without its text, which may quote a cell."""
    return (
        "the lazy table could not be computed: compute it yourself to see why, such as "
        "data.collect() or data.count()"
    )
