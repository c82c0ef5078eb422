"""Tables of databases, which ``dp.sql`` names for ``data=``, lazy tables, and their rows.

A table is opened when it is read; a query runs once for each pass.
"""

from __future__ import annotations

import secrets
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from os import PathLike, fspath
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final, NoReturn
from urllib.parse import parse_qsl, quote, unquote, urlencode, urlsplit

import numpy as np

from dpmodels.arguments import checked_keywords
from dpmodels.errors import ArgumentError, FrameError, PrivacyError, did_you_mean, quoted
from dpmodels.frames import drivers
from dpmodels.frames.columns import NativeRows, require
from dpmodels.frames.engine import (
    Engine,
    Groups,
    arrow_chunks,
    groups_of,
    sliced,
    streamed,
    translated,
)
from dpmodels.frames.persons import person_keys
from dpmodels.frames.protocol import (
    Cells,
    Chunk,
    Coded,
    Kind,
    RowSource,
    Untyped,
    before_charge,
    decoded,
    unfinished,
)
from dpmodels.typing import Integers

if TYPE_CHECKING:
    import ibis
    import polars as pl


# Rows of queries that run once for each pass: tables of databases, and lazy tables.


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
                sums[name] = (sums[name] + _checksum(cells, counts, self._key)) % 2**64
            yield Groups(chunk, counts)
        first = [self._checksums.setdefault(name, sums[name]) for name in columns]
        if columns and (n_rows != self.counted(lambda: n_rows) or first != list(sums.values())):
            raise FrameError(
                unfinished(
                    "the rows changed between two readings: give a table instead of a query, or "
                    "write the rows to a Parquet file and give its path"
                )
            )


def _checksum(cells: Cells, counts: Integers, key: bytes) -> int:
    """Add up keyed hashes of cells, in any order; missing ones count by their number.

    Zeros of both signs are one, since databases group them.
    """
    if not isinstance(cells, Coded) or cells.entries.dtype.kind not in "OUST":
        cells = decoded(cells)
        if cells.dtype.kind == "f" and not isinstance(cells, np.ma.MaskedArray):
            numbers = np.add(cells, 0.0, dtype=np.float64)
            numbers[np.isnan(numbers)] = np.nan
            cells = numbers.view(np.int64)
        elif cells.dtype.kind in "Mm":
            cells = cells.view(np.int64)
    keys = person_keys(cells, key)
    counts = counts * keys.has_id
    return int(np.einsum("i,i", keys.high, counts.view(np.uint64))) + int(counts.sum())


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
class LazyQuery(Untyped):
    """A lazy table, by functions that count and read its rows."""

    names: tuple[str, ...]
    counted: Callable[[], int]
    read: Callable[[tuple[str, ...], tuple[str, ...], int], Iterator[Chunk]]
    is_snapshot: ClassVar[bool] = False

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
    return LazyQuery(names, lambda: count.collect(engine="streaming").item(), read)


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

        return drivers.duckdb_relation(backend.con.sql(str(ibis.to_sql(table))))

    def read(columns: tuple[str, ...], order: tuple[str, ...], block_rows: int) -> Iterator[Chunk]:
        query = (table.order_by(list(order)) if order else table).select(list(columns))
        batches = streamed(lambda: query.to_pyarrow_batches(chunk_size=block_rows), _failure)
        return arrow_chunks(sliced(batches, block_rows), columns)

    return LazyQuery(tuple(table.columns), lambda: table.count().to_pyarrow().as_py(), read)


def _failure(_: Exception) -> str:
    """Describe an error without its text, which may quote a cell."""
    return (
        "the lazy table could not be computed: compute it yourself to see why, such as "
        "data.collect() or data.count()"
    )


_POSTGRES: Final = """
SELECT a.attname::text AS name, pg_catalog.col_description(a.attrelid, a.attnum) AS comment,
(SELECT string_agg(quote_literal(e.enumlabel), ', ' ORDER BY e.enumsortorder)
    FROM pg_catalog.pg_enum e WHERE e.enumtypid = a.atttypid) AS levels,
(SELECT string_agg(pg_catalog.pg_get_constraintdef(c.oid), ' AND ') FROM pg_catalog.pg_constraint c
    WHERE c.contype = 'c' AND (c.contypid = a.atttypid AND a.atttypid <> 0
    OR c.conrelid = a.attrelid AND c.conkey = ARRAY[a.attnum])) AS checks
FROM pg_catalog.pg_attribute a
WHERE a.attrelid = {table}::regclass AND a.attnum > 0 AND NOT a.attisdropped"""
_DUCKDB: Final = """
SELECT c.column_name AS name, c.comment AS comment, c.data_type AS levels,
(SELECT string_agg(k.constraint_text, ' AND ') FROM duckdb_constraints() k
    WHERE k.schema_name = c.schema_name AND k.table_name = c.table_name
    AND k.constraint_type = 'CHECK'
    AND list_distinct(k.constraint_column_names) = [c.column_name]) AS checks
FROM duckdb_columns() c WHERE {table} = '"' || replace(c.schema_name, '"', '""') || '"."'
    || replace(c.table_name, '"', '""') || '"'"""
_QUERIES: Final = {"postgresql": _POSTGRES, "duckdb": _DUCKDB}


def declarations(engine: Engine) -> dict[str, Mapping[str, str | None]]:
    """Return type, comment, levels (of ENUM types) and checks by column, as SQL texts.

    SQLite declares types alone.
    """
    columns: dict[str, Mapping[str, str | None]] = {
        name: {"type": declared} for name, declared in engine.types.items()
    }
    if engine.dialect in _QUERIES:
        table = "'" + engine.table.replace("'", "''") + "'"
        for batch in engine.batches(_QUERIES[engine.dialect].format(table=table), 1000):
            for row in batch.to_pylist():
                columns[row["name"]] = {**row, **columns[row["name"]]}
    return columns


_BY_SUFFIX: Final = {
    **dict.fromkeys((".duckdb", ".ddb"), "duckdb"),
    **dict.fromkeys((".sqlite", ".sqlite3", ".db"), "sqlite"),
}
_SCHEMES: Final = {
    "postgresql": "postgresql",
    "postgres": "postgresql",
    "sqlite": "sqlite",
    "duckdb": "duckdb",
}
_ACCEPTED: Final = (
    '"postgresql://user@host/database", "sqlite:///rows.sqlite", "duckdb:///rows.duckdb", the path '
    "of a .duckdb, .sqlite or .db file, or a connection of duckdb, sqlite3, psycopg or ADBC"
)


@dataclass(frozen=True, repr=False)
class SqlTable:
    """A table of a database, as `sql` names it; its repr shows no password."""

    database: str  # Its URL without a password; of a connection, what it is
    table: str
    schema: str | None = None
    timeout: float = 0.0
    connection: object = None
    password: str | None = field(default=None, compare=False)

    def __repr__(self) -> str:
        schema = "" if self.schema is None else f", schema={self.schema!r}"
        return f"<table {self.table!r}{schema} of {self.database}>"

    def __reduce__(self) -> NoReturn:
        raise PrivacyError("a table of a database cannot be pickled or copied: name it anew")

    def engine(self) -> Engine:
        """Connect, and find the table and its columns; no row is read."""
        dialect, _, path = self.database.partition(":///")
        try:
            if self.connection is not None:
                return self._of_connection()
            if dialect == "duckdb":
                return drivers.duckdb_file(path, self.table, self.schema)
            if dialect == "sqlite":
                return drivers.sqlite_file(path, self.table, self.schema)
            return self._postgres(_connected(self))
        except ImportError:
            pass
        raise FrameError('this database needs a driver: pip install "dpmodels[databases]"')

    def declarations(self) -> dict[str, Mapping[str, str | None]]:
        """Connect, and read what the database declares about the columns; no row is read."""
        return declarations(self.engine())

    def _of_connection(self) -> Engine:
        connection: Any = self.connection
        match _library(connection):
            case "duckdb":
                return drivers.duckdb_connection(connection, self.table, self.schema)
            case "sqlite3":
                return drivers.sqlite_connection(connection, self.table, self.schema)
            case "psycopg":
                if connection.closed or connection.info.transaction_status.name != "IDLE":
                    raise FrameError(
                        "the PostgreSQL connection is closed or in a transaction: commit it or "
                        "roll it back first"
                    )
                return self._postgres(drivers.PsycopgDriver(connection, is_users=True))
        closed = "the ADBC connection is closed: open it anew"
        info = translated(lambda _: closed, connection.adbc_get_info)
        if info.get("vendor_name") != "PostgreSQL":
            raise FrameError(
                "of ADBC only connections to PostgreSQL are read, since others infer types from "
                'cells: write dp.sql("sqlite:///rows.sqlite", table="...") for SQLite'
            )
        return self._postgres(drivers.ADBCDriver(connection, is_users=True))

    def _postgres(self, driver: drivers.ADBCDriver) -> Engine:
        return drivers.postgres_table(driver, self.table, self.schema, self.database, self.timeout)


@checked_keywords("dp.sql")
def sql(
    database: object,
    table: str | None = None,
    *,
    schema: str | None = None,
    timeout: float | None = None,
) -> SqlTable:
    """Name a table or view of a database, to be given as ``data=``.

    Parameters
    ----------
    database : str, path or connection
        ``"postgresql://user@host/database"``, ``"sqlite:///rows.sqlite"``,
        ``"duckdb:///rows.duckdb"``, the path of a ``.duckdb``, ``.sqlite`` or ``.db`` file, or an
        open connection of duckdb, sqlite3, psycopg or ADBC (for PostgreSQL).
    table : str, optional
        The name of the table or view, as the database has it; in a URL also ``?table=visits``.
    schema : str, optional
        Its schema; by default the one in which the database looks first.
    timeout : float, optional
        Seconds after which PostgreSQL stops a statement, such as one pass over the rows.

    Returns
    -------
    SqlTable
        A name. The database is opened when a verb reads it.

    Raises
    ------
    ArgumentError
        If the database or the table is not named so.
    FrameError
        From a verb, before the charge: no such table, column or right, or no connection.

    Notes
    -----
    The table is read in one transaction that changes nothing, and all passes of a fit see the same
    rows. The password comes from ``PGPASSWORD``, a password file or a service file of PostgreSQL.
    One in the URL is used, and is never printed or stored.

    Examples
    --------
    >>> import dpmodels as dp
    >>> dp.sql("postgresql://ana:secret@localhost/clinic", table="visits")
    <table 'visits' of postgresql://ana@localhost/clinic>
    """
    if timeout is not None and not (isinstance(timeout, int | float) and 0 < timeout < 2**20):
        raise ArgumentError(f"timeout={quoted(timeout)}: expected a positive number of seconds")
    options: dict[str, str] = {}
    place, password, connection = "", None, None
    if not isinstance(database, str | PathLike):
        place, connection = f"a connection of {_library(database)}", database
    elif "://" in (text := fspath(database)):
        place, password, options = _parsed(text)
    else:
        dialect = _BY_SUFFIX.get(Path(text).suffix.lower())
        if dialect is None:
            raise ArgumentError(f"this text does not name a database: expected {_ACCEPTED}")
        place = f"{dialect}:///{text}"
    table, schema = table or options.get("table"), schema or options.get("schema")
    if not isinstance(table, str) or not isinstance(schema, str | None):
        raise ArgumentError(
            'the table is not named: write dp.sql(database, table="visits"), or ?table=visits at '
            "the end of the URL"
        )
    return SqlTable(place, table, schema, float(timeout or 0), connection, password)


def is_database(data: object) -> bool:
    """Whether data are a table of a database, or the URL of one."""
    is_url = isinstance(data, str) and "://" in data and data.partition("://")[0] in _SCHEMES
    return is_url or isinstance(data, SqlTable)


def is_database_file(path: Path) -> bool:
    """Whether a path has the suffix of a database."""
    return path.suffix.lower() in _BY_SUFFIX


def as_table(data: object) -> SqlTable:
    """Return a table of a database, which may be named by its URL."""
    return data if isinstance(data, SqlTable) else sql(data)


def without_password(url: str) -> str:
    """Return the URL of a database; ArgumentError if it contains a password."""
    if is_database(url) and _parsed(url)[1] is not None:
        raise ArgumentError(
            "the URL of the database contains a password, which others could read here: leave it "
            "out, and set PGPASSWORD or write it into a password file (.pgpass)"
        )
    return url


def located(text: str, folder: Path) -> str:
    """Return a path, or the path in the URL of a database file, seen from a folder."""
    if not is_database(text):
        return str(folder / text)
    scheme, mark, path = without_password(text).partition(":///")
    return f"{scheme}:///{quote(str(folder))}/{path}" if mark and path[:1] != "/" else text


def _parsed(url: str) -> tuple[str, str | None, dict[str, str]]:
    """Split a URL into one without password and table, the password, and table and schema.

    No message quotes the URL, which may contain a password.
    """
    scheme, _, rest = url.partition("://")
    dialect = _SCHEMES.get(scheme)
    if dialect is None:
        meant = did_you_mean(scheme, _SCHEMES)
        raise ArgumentError(f"the URL of a database begins otherwise{meant}: expected {_ACCEPTED}")
    try:
        parts = urlsplit(f"x://{rest}")
        pairs = dict(parse_qsl(parts.query, strict_parsing=bool(parts.query)))
    except ValueError:
        raise ArgumentError(f"the URL of the database is not valid: expected {_ACCEPTED}") from None
    options: dict[str, str] = {
        name: pairs.pop(name) for name in ("table", "schema") if name in pairs
    }
    password = pairs.pop("password", None)
    if dialect != "postgresql":
        if parts.netloc or len(parts.path) < 2 or pairs or password:
            raise ArgumentError(
                f"the URL of a {dialect} file is not valid: write {dialect}:///rows.{dialect}, and "
                "?table=visits"
            )
        return f"{dialect}:///{unquote(parts.path[1:])}", None, options
    user, at, hosts = parts.netloc.rpartition("@")
    user, colon, secret = user.partition(":")
    query = f"?{urlencode(pairs, quote_via=quote)}" if pairs else ""
    place = f"postgresql://{user}{at}{hosts}{parts.path}{query}"
    return place, unquote(secret) if colon else password, options


def _library(connection: object) -> str:
    """Return the library of a connection; ArgumentError for other objects."""
    classes = {"duckdb": "DuckDBPyConnection", "sqlite3": "Connection", "psycopg": "Connection"}
    for library, name in classes.items():
        if library in sys.modules and isinstance(connection, getattr(sys.modules[library], name)):
            return library
    if hasattr(connection, "adbc_get_info"):
        return "ADBC"
    raise ArgumentError(
        f"a database of type {type(connection).__name__} is not supported: expected {_ACCEPTED}"
    )


def _connected(table: SqlTable) -> drivers.ADBCDriver:
    secret = {} if table.password is None else {"password": table.password}
    joint = "&" if "?" in table.database else "?"
    failed = (
        f"{table.database} does not accept the connection: check host, database and user; the "
        "password is read from PGPASSWORD, a password file or a service file of PostgreSQL"
    )
    try:
        import psycopg
    except ImportError:
        from adbc_driver_postgresql import dbapi

        url = table.database + (joint + urlencode(secret, quote_via=quote) if secret else "")
        connection = translated(lambda _: failed, lambda: dbapi.connect(url))
        return drivers.ADBCDriver(connection, is_users=False)
    connection = translated(lambda _: failed, lambda: psycopg.connect(table.database, **secret))
    return drivers.PsycopgDriver(connection, is_users=False)
