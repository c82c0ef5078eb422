"""Lazy tables of polars and Ibis, which run once for each pass and stream their rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from dpmodels.frames.columns import NativeRows
from dpmodels.frames.duckdb_engine import duckdb_relation
from dpmodels.frames.engine import Engine, arrow_chunks, sliced, streamed, translated
from dpmodels.frames.protocol import ANY, Chunk, Holds, Kind
from dpmodels.frames.require import kind_of_arrow

if TYPE_CHECKING:
    import ibis
    import polars as pl


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
