"""SQLite, by the standard library: a file opened for reading, or the user's connection."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

from dpmodels.errors import FrameError
from dpmodels.frames.engine import Engine, double_quoted, require_table, translated

if TYPE_CHECKING:
    import pyarrow as pa


class SQLiteDriver:
    """Queries of a connection.

    SQLite keeps a type for every cell: a column whose cells in a batch differ arrives as text that
    stands for the same numbers, levels and ids.
    """

    def __init__(self, connection: sqlite3.Connection, *, is_users: bool) -> None:
        self._connection = connection
        self._is_users = is_users
        self._text_factory = connection.text_factory

    def run(self, sql: str) -> sqlite3.Cursor:
        """Run a query or a statement; undecodable bytes of a text are replaced."""
        self._connection.text_factory = _text
        cursor = self._connection.cursor()
        cursor.row_factory = None
        return cursor.execute(sql)

    def batches(self, sql: str, batch_rows: int) -> Iterator[pa.RecordBatch]:
        """Run a query."""
        import pyarrow as pa

        with closing(self.run(sql)) as cursor:
            names = [column[0] for column in cursor.description]
            while rows := cursor.fetchmany(batch_rows):
                columns = [_column(cells) for cells in zip(*rows, strict=True)]
                yield pa.RecordBatch.from_arrays(columns, names=names)

    def failure(self, error: Exception) -> str:
        """Describe an error without its text."""
        if isinstance(error, sqlite3.OperationalError) and "locked" in str(error):
            return "a program writes to the SQLite database: try again when it is done"
        if isinstance(error, sqlite3.ProgrammingError):
            return "the SQLite connection is closed, or of a different thread: open it anew"
        return (
            "SQLite could not read the rows: check that the file is a SQLite database, and run "
            "PRAGMA integrity_check"
        )

    def close(self) -> None:
        """End the transaction, and close a connection that is not the user's."""
        with suppress(Exception):
            self._connection.text_factory = self._text_factory
            self._connection.rollback()
            if not self._is_users:
                self._connection.close()


def sqlite_file(path: str, table: str, schema: str | None) -> Engine:
    """Open a table of a SQLite file, for reading alone."""
    if not Path(path).is_file():
        raise FrameError(f"there is no file {path!r}: check the path and the working folder")
    uri = f"file:{quote(str(Path(path).absolute()))}?mode=ro"
    connection = sqlite3.connect(uri, uri=True, check_same_thread=False)
    return _opened(SQLiteDriver(connection, is_users=False), table, schema, repr(path))


def sqlite_connection(connection: sqlite3.Connection, table: str, schema: str | None) -> Engine:
    """Open a table of the user's connection, in a transaction that is rolled back at the end."""
    if connection.in_transaction:
        raise FrameError(
            "the SQLite connection is in a transaction: commit it or roll it back first"
        )
    driver = SQLiteDriver(connection, is_users=True)
    return _opened(driver, table, schema, "a SQLite connection")


def _opened(driver: SQLiteDriver, table: str, schema: str | None, where: str) -> Engine:
    label, database = f"{table!r} in {where}", double_quoted(schema or "main")

    def found() -> Engine:
        driver.run("BEGIN")
        rows = driver.run(
            f"SELECT name, type FROM {database}.sqlite_master WHERE type IN ('table', 'view')"
        ).fetchall()
        name = require_table(label, table, [row[0] for row in rows], any_case=True)
        quoted, is_stored = double_quoted(name), dict(rows)[name] == "table"
        columns = driver.run(f"PRAGMA {database}.table_xinfo({quoted})").fetchall()
        types = {column[1]: column[2] for column in columns if column[6] != 1}
        # An index on some of the columns would give the rows in its order.
        text = f"{database}.{quoted}" + " NOT INDEXED" * is_stored
        # SQLite binds no cell to a type.
        return Engine("sqlite", driver, text, label, types, is_stored, declares=False)

    try:
        return translated(driver.failure, found)
    except FrameError:
        driver.close()
        raise


def _text(cell: bytes) -> str:
    return cell.decode("utf-8", "replace")


def _column(cells: tuple[object, ...]) -> object:
    import pyarrow as pa

    try:
        return pa.array(cells)
    except pa.ArrowException:
        return pa.array(list(map(_as_text, cells)), pa.string())


def _as_text(cell: object) -> str | None:
    if isinstance(cell, float) and cell.is_integer() and abs(cell) < 2.0**53:
        cell = int(cell)
    return _text(cell) if isinstance(cell, bytes) else None if cell is None else str(cell)
