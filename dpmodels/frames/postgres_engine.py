"""PostgreSQL, by psycopg or ADBC: one read-only transaction that sees one state of the table."""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, ClassVar, Final, Protocol

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
from dpmodels.frames.protocol import Chunk, Holds, Kind

if TYPE_CHECKING:
    import pyarrow as pa

_BLOCK_BYTES: Final = 1 << 22  # A choice: of text that is parsed at a time, or more for long rows
_LONGEST: Final = 2**16  # Characters of a cell, of which longer ones keep a digest
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
)
# Tables and materialized views lie in pages; views and foreign tables are queries.
_STORED: Final = frozenset("rpm")
_FIND: Final = """
SELECT n.nspname, c.relname, c.oid::bigint, CASE WHEN EXISTS (
    SELECT FROM pg_catalog.pg_partition_tree(c.oid) p JOIN pg_catalog.pg_class f ON f.oid = p.relid
    WHERE f.relkind = 'f') THEN 'f' ELSE c.relkind::text END
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


class Driver(Protocol):
    """How queries reach PostgreSQL and Arrow batches come back."""

    def run(self, sql: str) -> None:
        """Run a statement that gives no rows."""
        ...

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        """Return the few rows of a query."""
        ...

    def batches(self, sql: str, batch_rows: int) -> Iterator[pa.RecordBatch]:
        """Return the rows of a query, of which a few batches are in memory."""
        ...

    def close(self) -> None:
        """End the transaction, and the connection if it is not the user's."""
        ...


class PostgresEngine:
    """A table of PostgreSQL; its repr shows the table alone."""

    dialect: ClassVar[str] = "postgresql"

    def __init__(self, driver: Driver, oid: int, table: str, label: str, kind: str) -> None:
        self._driver = driver
        self._oid = oid
        self.table = table
        self.label = label
        self.is_snapshot = kind in _STORED
        rows = translated(_failure, lambda: driver.rows(_COLUMNS.format(table=oid)))
        self._types = {row[0]: row[1] for row in rows}
        self._unreadable = {row[0] for row in rows if not row[2]}

    def __repr__(self) -> str:
        return f"<PostgreSQL: {self.label}>"

    def quoted(self, identifier: str) -> str:
        """Quote an identifier."""
        return double_quoted(identifier)

    def columns(self) -> Mapping[str, str]:
        """Return the declared types by name; for domains, those they are made of."""
        return self._types

    def kind(self, name: str) -> Kind:
        """Tell what a column can hold; FrameError where the user may not read it."""
        if name in self._unreadable:
            raise FrameError(
                f"the user has no right to read column {name!r} of {self.label}: GRANT SELECT is "
                "needed"
            )
        return kind_of_type(self._types[name])

    def cell(self, name: str) -> str:
        """Numbers as such, days as dates, everything else as text of bounded length."""
        column, kind = double_quoted(name), kind_of_type(self._types[name])
        declared = kind.name.lower()
        if declared in ("smallint", "integer", "bigint", "boolean", "double precision"):
            return column
        if declared == "real":
            return f"{column}::double precision"
        if kind.holds is Holds.DAYS:
            day = f"{column}::date"
            return f"CASE WHEN {day} BETWEEN '0001-01-01' AND '9999-12-31' THEN {day} END"
        text = f"{column}::text"
        digest = f"left({text}, {_LONGEST}) || md5({text})"
        return f"CASE WHEN length({text}) > {_LONGEST} THEN {digest} ELSE {text} END"

    def group_key(self, name: str) -> str:
        """Return the cell, compared byte by byte where it is text."""
        cell = self.cell(name)
        return f'({cell}) COLLATE "C"' if "::text" in cell else cell

    def sort_key(self, name: str) -> str:
        """Return the expression by which rows are sorted."""
        return f'{double_quoted(name)}::text COLLATE "C"'

    def batches(self, sql: str, batch_rows: int) -> Iterator[pa.RecordBatch]:
        """Run a query, of which a few batches are in memory; numerics arrive as text."""
        batches = streamed(lambda: self._driver.batches(sql, batch_rows), _failure)
        return sliced(batches, batch_rows)

    def chunks(self, sql: str, names: tuple[str, ...], batch_rows: int) -> Iterator[Chunk]:
        """Run a query whose columns get these names."""
        return arrow_chunks(self.batches(sql, batch_rows), names)

    def __del__(self) -> None:
        self.close()

    def close(self) -> None:
        """End the transaction."""
        with suppress(Exception):
            self._driver.close()


class PsycopgDriver:
    """Queries by psycopg, whose rows arrive by COPY: the server sends them as they are read."""

    def __init__(self, connection: Any, *, is_users: bool) -> None:
        self._connection = connection
        self._is_users = is_users
        if connection.autocommit:
            connection.execute("BEGIN")

    def run(self, sql: str) -> None:
        """Run a statement."""
        self._connection.execute(sql)

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        """Return the rows of a query."""
        from psycopg.rows import tuple_row

        with self._connection.cursor(row_factory=tuple_row) as cursor:
            return list(cursor.execute(sql).fetchall())

    def batches(self, sql: str, batch_rows: int) -> Iterator[pa.RecordBatch]:
        """Return the rows of a query, parsed from CSV by Arrow."""
        import pyarrow as pa
        from pyarrow import csv

        with self._connection.cursor() as cursor:
            described = cursor.execute(f"SELECT * FROM ({sql}) q LIMIT 0").description
            # Names may be equal, and are given again at the end.
            names = [column.name for column in described]
            types = {str(at): _arrow_type(column) for at, column in enumerate(described)}
            block_bytes = max(_BLOCK_BYTES, 8 * _LONGEST * len(names))
            with cursor.copy(f"COPY ({sql}) TO STDOUT (FORMAT csv)") as copy:
                file = io.BufferedReader(_Received(copy), block_bytes)
                if not file.peek(1):
                    return
                options = _csv_options(types, block_bytes)
                for batch in csv.open_csv(pa.PythonFile(file, mode="r"), **options):
                    yield batch.rename_columns(names)

    def close(self) -> None:
        """End the transaction."""
        if self._is_users:
            self._connection.rollback()
        else:
            self._connection.close()


class _Received(io.RawIOBase):
    """What a COPY sends, as a file."""

    def __init__(self, copy: Any) -> None:
        self._parts = iter(copy)
        self._left = memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        if not len(self._left):
            self._left = memoryview(next(self._parts, b""))
        size = min(len(buffer), len(self._left))
        buffer[:size], self._left = self._left[:size], self._left[size:]
        return size


def _arrow_type(column: Any) -> Any:
    import pyarrow as pa

    by_code = {16: pa.bool_(), 20: pa.int64(), 21: pa.int64(), 23: pa.int64()}
    numbers = {700: pa.float64(), 701: pa.float64(), 1082: pa.date32()}
    return (by_code | numbers).get(column.type_code, pa.string())


def _csv_options(types: Mapping[str, Any], block_bytes: int) -> dict[str, Any]:
    from pyarrow import csv

    return {
        "read_options": csv.ReadOptions(
            use_threads=False, column_names=list(types), block_size=block_bytes
        ),
        "parse_options": csv.ParseOptions(newlines_in_values=True),
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


class ADBCDriver:
    """Queries by ADBC, whose rows arrive as Arrow."""

    def __init__(self, connection: Any, *, is_users: bool) -> None:
        self._connection = connection
        self._is_users = is_users

    def run(self, sql: str) -> None:
        """Run a statement."""
        with self._connection.cursor() as cursor:
            cursor.execute(sql)

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        """Return the rows of a query."""
        with self._connection.cursor() as cursor:
            cursor.execute(sql)
            return list(cursor.fetchall())

    def batches(self, sql: str, batch_rows: int) -> Iterator[pa.RecordBatch]:
        """Return the rows of a query."""
        with self._connection.cursor() as cursor:
            cursor.execute(sql)
            yield from cursor.fetch_record_batch()

    def close(self) -> None:
        """End the transaction."""
        self._connection.rollback()
        if not self._is_users:
            self._connection.close()


def open_postgres(
    driver: Driver, table: str, schema: str | None, where: str, timeout: float | None
) -> PostgresEngine:
    """Find a table, inside a transaction that sees one state of it."""
    label = f"{table!r} in {where}" if schema is None else f"{schema!r}.{table!r} in {where}"
    try:
        tables = translated(_failure, lambda: _begun(driver, schema, timeout))
        match = next((row for row in tables if row[1] == table), None)
        if match is None:
            refuse_missing(label, did_you_mean(table, [row[1] for row in tables]))
        text = table_text(match[0], match[1])
        # The right to read it
        translated(_failure, lambda: driver.rows(f"SELECT 1 FROM {text} LIMIT 0"))
    except FrameError:
        with suppress(Exception):
            driver.close()
        raise
    return PostgresEngine(driver, match[2], text, label, match[3])


def _begun(driver: Driver, schema: str | None, timeout: float | None) -> list[tuple[Any, ...]]:
    """Begin a transaction that sees one state of the database; return the tables of a schema."""
    driver.run(_BEGIN)
    for setting in _SETTINGS:
        driver.run(f"SET LOCAL {setting}")
    if timeout is not None:
        driver.run(f"SET LOCAL statement_timeout = {max(round(timeout * 1000), 1)}")
    if driver.rows(_STATE) != [("repeatable read", "on")]:
        raise FrameError(
            "the connection has no transaction of its own: give one without autocommit"
        )
    return driver.rows(_FIND.format(schema="NULL" if schema is None else _text(schema)))


def _text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"


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
