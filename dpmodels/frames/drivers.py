"""Drivers of databases: SQLite and DuckDB by a file or the user's connection, and PostgreSQL."""

from __future__ import annotations

import codecs
import io
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing, suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import NoneType
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

from dpmodels.errors import FrameError
from dpmodels.frames.engine import LONGEST_CELL, Engine, double_quoted, require_table, translated

if TYPE_CHECKING:
    import duckdb
    import psycopg
    import pyarrow as pa
    from psycopg.abc import Buffer


def _readable(text: bytes) -> str:
    return text.decode("utf-8", "replace")


def _decoded(text: bytes) -> str | bytes:
    """Return text, or its bytes where they are not UTF-8: ids of different bytes are different."""
    try:
        return text.decode()
    except UnicodeDecodeError:
        return text


class SQLiteDriver:
    """Queries of a connection.

    SQLite keeps a type for every cell: a column whose cells in a batch differ arrives as bytes of a
    text that stands for the same numbers, levels and ids.
    """

    def __init__(self, connection: sqlite3.Connection, *, is_users: bool) -> None:
        self._connection = connection
        self._is_users = is_users
        self._text_factory = connection.text_factory

    def run(self, sql: str, text: Callable[[bytes], str | bytes] = _readable) -> sqlite3.Cursor:
        """Run a query or a statement, whose text is decoded by `text`."""
        self._connection.text_factory = text
        cursor = self._connection.cursor()
        cursor.row_factory = None
        return cursor.execute(sql)

    def batches(self, sql: str, batch_rows: int) -> Iterator[pa.RecordBatch]:
        """Run a query."""
        import pyarrow as pa

        with closing(self.run(sql, _decoded)) as cursor:
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
    return _sqlite_engine(SQLiteDriver(connection, is_users=False), table, schema, repr(path))


def sqlite_connection(connection: sqlite3.Connection, table: str, schema: str | None) -> Engine:
    """Open a table of the user's connection, in a transaction that is rolled back at the end."""
    if connection.in_transaction:
        raise FrameError(
            "the SQLite connection is in a transaction: commit it or roll it back first"
        )
    driver = SQLiteDriver(connection, is_users=True)
    return _sqlite_engine(driver, table, schema, "a SQLite connection")


def _sqlite_engine(driver: SQLiteDriver, table: str, schema: str | None, where: str) -> Engine:
    label, database = f"{table!r} in {where}", double_quoted(schema or "main")

    def found() -> Engine:
        driver.run("BEGIN")
        rows = driver.run(
            f"SELECT name, rootpage FROM {database}.sqlite_master WHERE type IN ('table', 'view')"
        ).fetchall()
        name = require_table(label, table, [row[0] for row in rows], any_case=True)
        quoted, pages = double_quoted(name), {row[0]: row[1] for row in rows}
        columns = driver.run(f"PRAGMA {database}.table_xinfo({quoted})").fetchall()
        types = {column[1]: column[2] for column in columns if column[6] != 1}
        # Views and virtual tables have no pages; generated columns call functions.
        is_stored = bool(pages[name]) and not any(column[6] for column in columns)
        # An index on some of the columns would give the rows in its order.
        text = f"{database}.{quoted}" + " NOT INDEXED" * is_stored
        # SQLite binds no cell to a type.
        return Engine("sqlite", driver, text, label, types, is_stored, declares=False)

    try:
        return translated(driver.failure, found)
    except FrameError:
        driver.close()
        raise


def _column(cells: tuple[object, ...]) -> object:
    import pyarrow as pa

    kinds = set(map(type, cells)) - {NoneType}
    # As floats, whole numbers from here on would be other ids.
    is_exact = kinds == {int, float} and all(
        abs(cell) < 2**53 for cell in cells if isinstance(cell, int)
    )
    if len(kinds) <= 1 or is_exact:
        return pa.array(cells)
    return pa.array(list(map(_as_bytes, cells)), pa.binary())


def _as_bytes(cell: object) -> bytes | None:
    if cell is None or isinstance(cell, bytes):
        return cell
    if isinstance(cell, float) and cell.is_integer() and abs(cell) < 2.0**53:
        cell = int(cell)
    return str(cell).encode()


# DuckDB: a file opened for reading, the user's connection, or a relation.

_NAME: Final = "dpmodels_rows"  # Of a relation, within its own queries
# Columns that are computed when they are read, by any function.
_GENERATED: Final = "GENERATED ALWAYS AS"
# Names are qualified: a file may have macros that are called as functions of DuckDB are.
_DUCKDB_TABLES: Final = """
SELECT t.table_schema, t.table_name, t.table_type, system.main.current_schema(), d.sql
FROM system.information_schema.tables t LEFT JOIN system.main.duckdb_tables() d
    ON d.database_name = t.table_catalog AND d.schema_name = t.table_schema
    AND d.table_name = t.table_name
WHERE t.table_catalog = system.main.current_database()"""


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
    return _duckdb_engine(connection, table, schema, repr(path))


def duckdb_connection(
    connection: duckdb.DuckDBPyConnection, table: str, schema: str | None
) -> Engine:
    """Open a table of the user's connection, by a second connection to the same database."""
    closed = "the DuckDB connection is closed: open it anew"
    cursor = translated(lambda _: closed, connection.cursor)
    return _duckdb_engine(cursor, table, schema, "a DuckDB connection")


def duckdb_relation(relation: duckdb.DuckDBPyRelation) -> Engine:
    """Take a relation, of which nothing runs."""
    driver, label = DuckDBDriver(None, relation), "a DuckDB relation"
    types = translated(
        driver.failure,
        lambda: dict(zip(relation.columns, map(str, relation.types), strict=True)),
    )
    name = double_quoted(_NAME)
    return Engine("duckdb", driver, name, label, types, is_snapshot=False, declares=False)


def _duckdb_engine(
    connection: duckdb.DuckDBPyConnection, table: str, schema: str | None, where: str
) -> Engine:
    driver, label = DuckDBDriver(connection), f"{table!r} in {where}"

    def found() -> Engine:
        with suppress(Exception):  # Without its extension there are no zones
            connection.execute("SET TimeZone = 'UTC'")
        connection.execute("BEGIN TRANSACTION READ ONLY")
        rows = connection.execute(_DUCKDB_TABLES).fetchall()
        ((in_order,),) = connection.execute(
            "SELECT system.main.current_setting('preserve_insertion_order')"
        ).fetchall()
        kinds = {row[1]: row for row in rows if row[0] == (schema or row[3])}
        name = require_table(label, table, list(kinds), any_case=True)
        text = ".".join(map(double_quoted, kinds[name][:2]))
        columns = driver.query(f"FROM {text}")
        types = dict(zip(columns.columns, map(str, columns.types), strict=True))
        is_stored = kinds[name][2] == "BASE TABLE"
        is_snapshot = is_stored and bool(in_order) and _GENERATED not in (kinds[name][4] or "")
        return Engine("duckdb", driver, text, label, types, is_snapshot, declares=is_stored)

    return translated(driver.failure, found)


# PostgreSQL, by psycopg or ADBC: one read-only transaction that sees one state of the table.

_BLOCK_BYTES: Final = 1 << 22  # A choice: of text that is parsed at a time, or more for long rows
# Text arrives as it lies: to convert it would fail at a cell that the other encoding lacks.
_ENCODING: Final = "SELECT set_config('client_encoding', current_setting('server_encoding'), true)"
_BEGIN: Final = "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY"
_STATE: Final = (
    "SELECT current_setting('transaction_isolation'), current_setting('transaction_read_only')"
)
# Scans of a table then give its rows in the order in which they lie.
_SETTINGS: Final = (
    "standard_conforming_strings = on",
    "synchronize_seqscans = off",
    "max_parallel_workers_per_gather = 0",
    "enable_indexscan = off",
    "enable_indexonlyscan = off",
    "enable_bitmapscan = off",
    "extra_float_digits = 1",
    "timezone = 'UTC'",
    "datestyle = 'ISO'",
)
# No function, type or operator of a user's schema stands for one of PostgreSQL, such as sum.
_PATH: Final = """
SELECT pg_catalog.set_config('search_path', pg_catalog.concat_ws(', ', 'pg_catalog',
    nullif(pg_catalog.current_setting('search_path'), '')), true)"""
# Tables and materialized views lie in pages; views and foreign tables are queries, and so are
# tables whose policies choose rows, by any function.
_STORED: Final = frozenset("rpm")
_FIND: Final = """
SELECT n.nspname, c.relname, c.oid::bigint, CASE WHEN EXISTS (
    WITH RECURSIVE tree AS (SELECT c.oid AS relid UNION
        SELECT i.inhrelid FROM pg_catalog.pg_inherits i JOIN tree t ON i.inhparent = t.relid)
    SELECT FROM tree t JOIN pg_catalog.pg_class f ON f.oid = t.relid WHERE f.relkind = 'f')
    THEN 'f' WHEN pg_catalog.row_security_active(c.oid) THEN 'v' ELSE c.relkind::text END
FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind IN ('r', 'p', 'm', 'v', 'f')
AND CASE WHEN {schema} IS NULL THEN pg_catalog.pg_table_is_visible(c.oid)
    AND n.nspname NOT IN ('pg_catalog', 'information_schema') ELSE n.nspname = {schema} END"""
_COLUMNS: Final = """
SELECT a.attname::text, CASE WHEN t.typtype = 'e' THEN 'enum' WHEN t.typtype = 'd'
    THEN pg_catalog.format_type(t.typbasetype, t.typtypmod)
    ELSE pg_catalog.format_type(a.atttypid, a.atttypmod) END,
    pg_catalog.has_column_privilege(a.attrelid, a.attnum, 'SELECT')
FROM pg_catalog.pg_attribute a JOIN pg_catalog.pg_type t ON t.oid = a.atttypid
WHERE a.attrelid = {table} AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum"""


# Of columns by their codes in PostgreSQL; all others arrive as text.
_ARROW_TYPES: Final = {
    **{16: "bool", 20: "int64", 21: "int64", 23: "int64"},
    **{700: "double", 701: "double", 1082: "date32"},
}


class ADBCDriver:
    """Queries by ADBC, whose rows arrive as Arrow."""

    def __init__(self, connection: psycopg.Connection, *, is_users: bool) -> None:
        self._connection = connection
        self._is_users = is_users
        self._is_reading = False

    def begin(self) -> None:
        """Leave it to the first statement to begin a transaction."""

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        """Run a statement; return its few rows."""
        with self._connection.cursor() as cursor:
            cursor.execute(sql)
            return [] if sql.startswith("SET") else list(cursor.fetchall())

    def batches(self, sql: str, batch_rows: int) -> Iterator[pa.RecordBatch]:
        """Run a query."""
        with self._connection.cursor() as cursor:
            cursor.execute(sql)
            yield from cursor.fetch_record_batch()

    def failure(self, error: Exception) -> str:
        """Describe an error without its text."""
        return _failure(error)

    def close(self) -> None:
        """End the transaction, and close a connection that is not the user's."""
        with suppress(Exception):
            self._connection.rollback()
            if not self._is_users:
                self._connection.close()


class PsycopgDriver(ADBCDriver):
    """Queries by psycopg; rows arrive by COPY, as the server reads them, parsed by Arrow."""

    def begin(self) -> None:
        """Begin a transaction where the connection does not by itself."""
        if self._connection.autocommit:
            self._connection.execute("BEGIN")

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        """Run a statement; return its few rows."""
        from psycopg.rows import tuple_row

        with self._connection.cursor(row_factory=tuple_row) as cursor:
            cursor.execute(sql)
            return [] if cursor.description is None else list(cursor.fetchall())

    def batches(self, sql: str, batch_rows: int) -> Iterator[pa.RecordBatch]:
        """Run a query; one at a time, since psycopg would wait for the end of the other."""
        if self._is_reading:
            raise FrameError("a pass over the rows began before the last one ended")
        self._is_reading = True
        try:
            yield from self._copied(sql)
        finally:
            self._is_reading = False

    def _copied(self, sql: str) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa
        from pyarrow import csv

        with self._connection.cursor() as cursor:
            described = cursor.execute(f"SELECT * FROM ({sql}) q LIMIT 0").description
            # Names may be equal, and are given again at the end.
            names = [column.name for column in described]
            codes = [_ARROW_TYPES.get(column.type_code, "string") for column in described]
            types = {str(at): pa.type_for_alias(code) for at, code in enumerate(codes)}
            block_bytes = max(_BLOCK_BYTES, 8 * LONGEST_CELL * len(names))
            with cursor.copy(f"COPY ({sql}) TO STDOUT (FORMAT csv)") as copy:
                parts = _in_utf8(copy, self._connection.info.encoding)
                file = io.BufferedReader(_Received(parts), block_bytes)
                if not file.peek(1):
                    return
                options = _csv_options(types, block_bytes)
                for batch in csv.open_csv(pa.PythonFile(file, mode="r"), **options):
                    yield batch.rename_columns(names)


def _in_utf8(parts: Iterable[Buffer], encoding: str) -> Iterator[Buffer]:
    """Convert text; bytes that are no character become what no text has."""
    if encoding == "utf-8":
        yield from parts
        return
    decoder = codecs.getincrementaldecoder(encoding)("surrogateescape")
    for part in parts:
        yield decoder.decode(part).encode("utf-8", "surrogatepass")


class _Received(io.RawIOBase):
    """What a COPY sends, as a file."""

    def __init__(self, parts: Iterator[Buffer]) -> None:
        self._parts = parts
        self._left = memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        if not len(self._left):
            self._left = memoryview(next(self._parts, b""))
        size = min(len(buffer), len(self._left))
        buffer[:size], self._left = self._left[:size], self._left[size:]
        return size


def _csv_options(types: Mapping[str, pa.DataType], block_bytes: int) -> dict[str, object]:
    from pyarrow import csv

    return {
        "read_options": csv.ReadOptions(
            use_threads=False, column_names=list(types), block_size=block_bytes
        ),
        # An empty line is a row of one column, NULL.
        "parse_options": csv.ParseOptions(newlines_in_values=True, ignore_empty_lines=False),
        "convert_options": csv.ConvertOptions(
            column_types=types,
            null_values=[""],
            true_values=["t"],
            false_values=["f"],
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
            check_utf8=False,
        ),
    }


def postgres_table(
    driver: ADBCDriver, table: str, schema: str | None, where: str, timeout: float
) -> Engine:
    """Find a table, inside a transaction that sees one state of it; timeout 0 means no limit."""
    label = f"{table!r} in {where}" if schema is None else f"{schema!r}.{table!r} in {where}"

    def found() -> Engine:
        driver.begin()
        for setting in (_BEGIN, _PATH, *(f"SET LOCAL {setting}" for setting in _SETTINGS)):
            driver.rows(setting)
        if driver.rows(_ENCODING) == [(b"SQL_ASCII",)]:
            raise FrameError(
                "the database has no encoding (SQL_ASCII), of which psycopg gives bytes: copy the "
                "table to a database in UTF8, or give a connection of ADBC"
            )
        if timeout:
            driver.rows(f"SET LOCAL statement_timeout = {max(round(timeout * 1000), 1)}")
        if driver.rows(_STATE) != [("repeatable read", "on")]:
            raise FrameError(
                "the connection has no transaction of its own: give one without autocommit"
            )
        literal = "NULL" if schema is None else "'" + schema.replace("'", "''") + "'"
        tables = driver.rows(_FIND.format(schema=literal))
        by_name = {row[1]: row for row in tables}
        parts = by_name[require_table(label, table, list(by_name), any_case=False)]
        text = ".".join(map(double_quoted, parts[:2]))
        driver.rows(f"SELECT 1 FROM {text} LIMIT 0")  # The right to read it
        columns = driver.rows(_COLUMNS.format(table=parts[2]))
        types = {column[0]: column[1] for column in columns}
        unreadable = frozenset(column[0] for column in columns if not column[2])
        is_stored = parts[3] in _STORED
        return Engine("postgresql", driver, text, label, types, is_stored, unreadable)

    try:
        return translated(_failure, found)
    except FrameError:
        driver.close()
        raise


_BY_STATE: Final = {
    "42501": "the user has no right to read the table or a column of it: GRANT SELECT is needed",
    "57014": "the query was cancelled, by its timeout or an administrator: give a longer timeout=",
    "25001": "the connection is in a transaction: commit it or roll it back first",
}
_LOST: Final = "the connection to PostgreSQL was lost, and rows are not read by a second one"


def _failure(error: Exception) -> str:
    """Describe an error without its text."""
    state = getattr(error, "sqlstate", None) or ""
    if state in _BY_STATE:
        return _BY_STATE[state]
    if type(error).__name__ == "OperationalError" or state[:2] in ("08", "57"):
        return _LOST
    return (
        "PostgreSQL could not run the query of the rows: run it yourself to see why, such as "
        "SELECT count(*) of the table"
    )
