"""SQLite, by the standard library: a file opened for reading, or the user's connection."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar
from urllib.parse import quote

import numpy as np

from dpmodels.errors import FrameError, did_you_mean
from dpmodels.frames.engine import (
    double_quoted,
    refuse_missing,
    streamed,
    table_text,
    translated,
)
from dpmodels.frames.protocol import ANY, Chunk, Kind

if TYPE_CHECKING:
    import pyarrow as pa


class SQLiteEngine:
    """A table of a SQLite database, read in one transaction in the order of its rows.

    SQLite keeps a type for every cell, and only a preference for a column. So cells arrive one by
    one, and the declared types refuse nothing.
    """

    dialect: ClassVar[str] = "sqlite"

    def __init__(
        self,
        connection: sqlite3.Connection,
        name: tuple[str, str],
        label: str,
        *,
        is_table: bool,
        is_users: bool,
    ) -> None:
        self._connection = connection
        self._name = name
        self._is_users = is_users
        # An index on some of the columns would give the rows in its own order.
        self.table = table_text(*name) + " NOT INDEXED" * is_table
        self.label = label
        self.is_snapshot = is_table
        self._decode = connection.text_factory
        connection.text_factory = _text

    def __repr__(self) -> str:
        return f"<SQLite: {self.label}>"

    def quoted(self, identifier: str) -> str:
        """Quote an identifier."""
        return double_quoted(identifier)

    def columns(self) -> Mapping[str, str]:
        """Return the types as they were written, by name; they bind no cell."""
        schema, table = map(double_quoted, self._name)
        sql = f"PRAGMA {schema}.table_xinfo({table})"
        rows = translated(_failure, lambda: self._cursor(sql).fetchall())
        return {row[1]: row[2] for row in rows if row[6] != 1}

    def kind(self, name: str) -> Kind:
        """Anything: no type binds a cell."""
        return ANY

    def cell(self, name: str) -> str:
        """Return the column itself."""
        return double_quoted(name)

    def group_key(self, name: str) -> str:
        """Return the cell, compared byte by byte where it is text."""
        return f"{double_quoted(name)} COLLATE BINARY"

    def sort_key(self, name: str) -> str:
        """Return the expression by which rows are sorted."""
        return f"{double_quoted(name)} COLLATE BINARY"

    def batches(self, sql: str, batch_rows: int) -> Iterator[pa.RecordBatch]:
        """Run a query; a column whose cells differ in type arrives as text."""
        import pyarrow as pa

        for names, rows in self._blocks(sql, batch_rows):
            columns = [_arrow_column(cells) for cells in zip(*rows, strict=True)]
            yield pa.RecordBatch.from_arrays(columns, names=names)

    def chunks(self, sql: str, names: tuple[str, ...], batch_rows: int) -> Iterator[Chunk]:
        """Run a query whose columns get these names; its cells are Python's."""
        for _, rows in self._blocks(sql, batch_rows):
            columns = zip(names, zip(*rows, strict=True), strict=False)
            yield {name: np.fromiter(cells, object, len(rows)) for name, cells in columns}

    def _cursor(self, sql: str) -> sqlite3.Cursor:
        cursor = self._connection.cursor()
        cursor.row_factory = None
        return cursor.execute(sql)

    def _blocks(self, sql: str, batch_rows: int) -> Iterator[tuple[list[str], list[Any]]]:
        return streamed(lambda: self._read(sql, batch_rows), _failure)

    def _read(self, sql: str, batch_rows: int) -> Iterator[tuple[list[str], list[Any]]]:
        with closing(self._cursor(sql)) as cursor:
            names = [column[0] for column in cursor.description]
            while rows := cursor.fetchmany(batch_rows):
                yield names, rows

    def __del__(self) -> None:
        self.close()

    def close(self) -> None:
        """End the transaction, and close a connection that is the engine's own."""
        with suppress(Exception):
            self._connection.text_factory = self._decode
            self._connection.rollback()
            if not self._is_users:
                self._connection.close()


def sqlite_file(path: str, table: str, schema: str | None) -> SQLiteEngine:
    """Open a table of a SQLite file, for reading alone."""
    if not Path(path).is_file():
        raise FrameError(f"there is no file {path!r}: check the path and the working folder")
    uri = f"file:{quote(str(Path(path).absolute()))}?mode=ro"
    connection = translated(
        _failure, lambda: sqlite3.connect(uri, uri=True, check_same_thread=False)
    )
    return _opened(connection, table, schema, repr(path), is_users=False)


def sqlite_connection(
    connection: sqlite3.Connection, table: str, schema: str | None
) -> SQLiteEngine:
    """Open a table of the user's connection, in a transaction that is rolled back at the end."""
    if connection.in_transaction:
        raise FrameError(
            "the SQLite connection is in a transaction: commit it or roll it back first"
        )
    return _opened(connection, table, schema, "a SQLite connection", is_users=True)


def _opened(
    connection: sqlite3.Connection, table: str, schema: str | None, where: str, *, is_users: bool
) -> SQLiteEngine:
    label, schema = f"{table!r} in {where}", schema or "main"
    try:
        tables = translated(_failure, lambda: _begun(connection, schema))
        name = next((name for name in tables if name.casefold() == table.casefold()), None)
        if name is None:
            refuse_missing(label, did_you_mean(table, tables))
    except FrameError:
        connection.rollback()
        if not is_users:
            connection.close()
        raise
    is_table = tables[name] == "table"
    return SQLiteEngine(connection, (schema, name), label, is_table=is_table, is_users=is_users)


def _begun(connection: sqlite3.Connection, schema: str) -> dict[str, str]:
    """Begin a transaction; return the tables and views."""
    connection.execute("BEGIN")
    catalogue = table_text(schema, "sqlite_master")
    rows = connection.execute(f"SELECT name, type FROM {catalogue} WHERE type IN ('table', 'view')")
    return {str(name): str(kind) for name, kind in rows}


def _text(cell: bytes) -> str:
    return cell.decode("utf-8", "replace")


def _arrow_column(cells: tuple[object, ...]) -> Any:
    import pyarrow as pa

    try:
        return pa.array(cells)
    except pa.ArrowException:
        texts = [_text(cell) if isinstance(cell, bytes) else cell for cell in cells]
        return pa.array([None if text is None else str(text) for text in texts], pa.string())


def _failure(error: Exception) -> str:
    """Describe an error without its text."""
    if isinstance(error, sqlite3.OperationalError) and "locked" in str(error):
        return "the SQLite database is locked by a program that writes: try again when it is done"
    if isinstance(error, sqlite3.ProgrammingError):
        return "the SQLite connection is closed, or belongs to a different thread: open it anew"
    return (
        "SQLite could not read the rows: check that the file is a SQLite database, and run "
        "PRAGMA integrity_check"
    )
