"""DuckDB: a file opened for reading, the user's connection, or a relation."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from dpmodels.frames.engine import Engine, double_quoted, require_table, translated

if TYPE_CHECKING:
    import duckdb
    import pyarrow as pa

_NAME: Final = "dpmodels_rows"  # Of a relation, within its own queries


@dataclass(frozen=True)
class DuckDBDriver:
    """Queries of a connection, or of a relation, which runs anew in each of them."""

    connection: duckdb.DuckDBPyConnection = field(repr=False)
    relation: duckdb.DuckDBPyRelation = field(default=None, repr=False)

    def query(self, sql: str) -> duckdb.DuckDBPyRelation:
        """Return a query, not run."""
        if self.relation is not None:
            return self.relation.query(_NAME, sql)
        return self.connection.sql(sql)

    def batches(self, sql: str, batch_rows: int) -> Iterator[pa.RecordBatch]:
        """Run a query."""
        relation = self.query(sql)
        arrow = getattr(relation, "to_arrow_reader", None) or relation.fetch_arrow_reader
        with arrow(batch_rows) as reader:
            yield from reader

    def failure(self, error: Exception) -> str:
        """Describe an error without its text."""
        if type(error).__name__ == "ResourceInUseException":
            return (
                "the DuckDB connection has a result that is not read to its end: read it, or give "
                'dp.sql(connection, table="...")'
            )
        return (
            "DuckDB could not run the query of the rows: run it yourself to see why, such as "
            "SELECT count(*) of the table"
        )

    def close(self) -> None:
        """Close the connection, with its transaction."""
        if self.connection is not None:
            with suppress(Exception):
                self.connection.close()


def duckdb_file(path: str, table: str, schema: str | None) -> Engine:
    """Open a table of a DuckDB file, for reading alone."""
    import duckdb

    connection = translated(
        lambda _: (
            f"{path!r} cannot be opened as a DuckDB file for reading: check the path, and whether "
            "a program has it open for writing; a connection of this program is given as "
            'dp.sql(connection, table="...")'
        ),
        lambda: duckdb.connect(path, read_only=True),
    )
    return _opened(connection, table, schema, repr(path))


def duckdb_connection(
    connection: duckdb.DuckDBPyConnection, table: str, schema: str | None
) -> Engine:
    """Open a table of the user's connection, by a second connection to the same database."""
    closed = "the DuckDB connection is closed: open it anew"
    cursor = translated(lambda _: closed, connection.cursor)
    return _opened(cursor, table, schema, "a DuckDB connection")


def duckdb_relation(relation: duckdb.DuckDBPyRelation) -> Engine:
    """Take a relation, of which nothing runs."""
    driver, label = DuckDBDriver(None, relation), "a DuckDB relation"
    types = translated(
        driver.failure,
        lambda: dict(zip(relation.columns, map(str, relation.types), strict=True)),
    )
    name = double_quoted(_NAME)
    return Engine("duckdb", driver, name, label, types, is_snapshot=False, declares=False)


def _opened(connection: object, table: str, schema: str | None, where: str) -> Engine:
    driver, label = DuckDBDriver(connection), f"{table!r} in {where}"

    def found() -> Engine:
        rows, in_order = _begun(connection)
        kinds = {row[1]: row for row in rows if row[0] == (schema or row[3])}
        name = require_table(label, table, list(kinds), any_case=True)
        text = ".".join(map(double_quoted, kinds[name][:2]))
        columns = driver.query(f"FROM {text}")
        types = dict(zip(columns.columns, map(str, columns.types), strict=True))
        is_stored = kinds[name][2] == "BASE TABLE"
        is_snapshot = is_stored and in_order
        return Engine("duckdb", driver, text, label, types, is_snapshot, declares=is_stored)

    return translated(driver.failure, found)


def _begun(connection: duckdb.DuckDBPyConnection) -> tuple[list[tuple[str, ...]], bool]:
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
