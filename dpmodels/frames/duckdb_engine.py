"""DuckDB: a file opened for reading, the user's connection, or a relation."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, ClassVar, Final

from dpmodels.errors import FrameError, did_you_mean
from dpmodels.frames.engine import (
    arrow_chunks,
    double_quoted,
    kind_of_type,
    refuse_missing,
    sliced,
    streamed,
    table_text,
    translated,
)
from dpmodels.frames.protocol import Chunk, Kind

if TYPE_CHECKING:
    import pyarrow as pa

_NAME: Final = "dpmodels_rows"  # Of a relation, within its own queries


class DuckDBEngine:
    """A table of a DuckDB database, or a relation; its repr shows the table alone.

    A table is read in one transaction, in the order of its rows. A relation is a query of the
    user's connection: it runs anew in every pass.
    """

    dialect: ClassVar[str] = "duckdb"

    def __init__(self, connection: Any, table: str, label: str, *, is_snapshot: bool) -> None:
        self._connection = connection  # One that is closed at the end; or a relation
        self.table = table
        self.label = label
        self.is_snapshot = is_snapshot
        self._is_relation = not hasattr(connection, "cursor")

    def __repr__(self) -> str:
        return f"<DuckDB: {self.label}>"

    def quoted(self, identifier: str) -> str:
        """Quote an identifier."""
        return double_quoted(identifier)

    def columns(self) -> Mapping[str, str]:
        """Return the declared types of the columns by name."""
        return translated(_failure, self._types)

    def _types(self) -> dict[str, str]:
        relation = self._connection if self._is_relation else self._query(f"FROM {self.table}")
        return dict(zip(relation.columns, map(str, relation.types), strict=True))

    def kind(self, name: str) -> Kind:
        """Tell what a column can hold."""
        return kind_of_type(self.columns()[name])

    def cell(self, name: str) -> str:
        """Return the column itself."""
        return double_quoted(name)

    def group_key(self, name: str) -> str:
        """Return the cell, compared byte by byte where it is text."""
        text = self.columns()[name] == "VARCHAR"
        return double_quoted(name) + " COLLATE C" * text

    def sort_key(self, name: str) -> str:
        """Return the expression by which rows are sorted."""
        return double_quoted(name)

    def batches(self, sql: str, batch_rows: int) -> Iterator[pa.RecordBatch]:
        """Run a query, of which a few batches are in memory."""
        return sliced(streamed(lambda: self._read(sql, batch_rows), _failure), batch_rows)

    def _read(self, sql: str, batch_rows: int) -> Iterator[pa.RecordBatch]:
        relation = self._query(sql)
        arrow = getattr(relation, "to_arrow_reader", None) or relation.fetch_arrow_reader
        with arrow(batch_rows) as reader:
            yield from reader

    def _query(self, sql: str) -> Any:
        if self._is_relation:
            return self._connection.query(_NAME, sql)
        return self._connection.sql(sql)

    def chunks(self, sql: str, names: tuple[str, ...], batch_rows: int) -> Iterator[Chunk]:
        """Run a query whose columns get these names."""
        return arrow_chunks(self.batches(sql, batch_rows), names)

    def __del__(self) -> None:
        self.close()

    def close(self) -> None:
        """End the transaction and close the connection, which is the engine's own."""
        if not self._is_relation:
            with suppress(Exception):
                self._connection.close()


def duckdb_file(path: str, table: str, schema: str | None) -> DuckDBEngine:
    """Open a table of a DuckDB file, for reading alone."""
    try:
        import duckdb
    except ImportError:
        raise FrameError('reading DuckDB needs duckdb: pip install "dpmodels[databases]"') from None
    connection = translated(
        lambda _: _cannot_open(path), lambda: duckdb.connect(path, read_only=True)
    )
    return _opened(connection, table, schema, repr(path))


def duckdb_connection(connection: Any, table: str, schema: str | None) -> DuckDBEngine:
    """Open a table of the user's connection, by a second connection to the same database."""
    cursor = translated(
        lambda _: "the DuckDB connection is closed: open it anew", connection.cursor
    )
    return _opened(cursor, table, schema, "a DuckDB connection")


def duckdb_relation(relation: Any) -> DuckDBEngine:
    """Take a relation, of which nothing runs."""
    return DuckDBEngine(relation, double_quoted(_NAME), "a DuckDB relation", is_snapshot=False)


def _opened(connection: Any, table: str, schema: str | None, where: str) -> DuckDBEngine:
    label = f"{table!r} in {where}"
    rows, keeps_order = translated(_failure, lambda: _begun(connection))
    in_schema = [row for row in rows if row[0] == (schema or row[3])]
    matches = [row for row in in_schema if row[1].casefold() == table.casefold()]
    if not matches:
        connection.close()
        refuse_missing(label, did_you_mean(table, [row[1] for row in in_schema]))
    is_table = matches[0][2] == "BASE TABLE"
    text = table_text(matches[0][0], matches[0][1])
    return DuckDBEngine(connection, text, label, is_snapshot=is_table and keeps_order)


def _begun(connection: Any) -> tuple[list[tuple[Any, ...]], bool]:
    """Begin a transaction; return the tables, and whether scans keep the order of rows."""
    with suppress(Exception):  # Without its extension there are no zones
        connection.execute("SET TimeZone = 'UTC'")
    connection.execute("BEGIN TRANSACTION READ ONLY")
    tables = connection.execute(
        "SELECT table_schema, table_name, table_type, current_schema() "
        "FROM information_schema.tables WHERE table_catalog = current_database()"
    ).fetchall()
    (order,) = connection.execute("SELECT current_setting('preserve_insertion_order')").fetchall()
    return tables, bool(order[0])


def _cannot_open(path: str) -> str:
    return (
        f"{path!r} cannot be opened as a DuckDB file for reading: check the path, and whether a "
        "program has it open for writing; a connection of this program is given as "
        'dp.sql(connection, table="...")'
    )


def _failure(error: Exception) -> str:
    """Describe an error without its text."""
    name = type(error).__name__
    if name == "ResourceInUseException":
        return (
            "the DuckDB connection has a result that is not read to its end: read it, or give "
            'dp.sql(connection, table="...")'
        )
    if name == "InterruptException":
        return "the query was interrupted"
    return (
        "DuckDB could not run the query of the rows: run it yourself to see why, such as "
        "SELECT count(*) of the table"
    )
