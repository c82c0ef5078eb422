"""``dp.sql``: a table of a database, named for ``data=``; opened when it is read."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from os import PathLike, fspath
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NoReturn
from urllib.parse import parse_qsl, quote, unquote, urlencode, urlsplit

from dpmodels.errors import ArgumentError, FrameError, PrivacyError, did_you_mean, quoted
from dpmodels.frames.database import DatabaseRows, database_rows
from dpmodels.frames.engine import Engine, translated

if TYPE_CHECKING:
    from dpmodels.frames.postgres_engine import Driver

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
_SECRETS: Final = frozenset(("password", "sslpassword"))
_ACCEPTED: Final = (
    '"postgresql://user@host/database", "sqlite:///rows.sqlite", "duckdb:///rows.duckdb", the path '
    "of a .duckdb, .sqlite or .db file, or a connection of duckdb, sqlite3, psycopg or ADBC"
)
_PASSWORD: Final = "from PGPASSWORD, a password file or a service file of PostgreSQL"


@dataclass(frozen=True, repr=False)
class SqlTable:
    """A table of a database, as `sql` names it; its repr has no password."""

    place: str  # Without a password; of a connection, what it is
    table: str
    schema: str | None = None
    timeout: float | None = None
    connection: object = field(default=None, repr=False)
    secrets: tuple[tuple[str, str], ...] = field(default=(), repr=False, compare=False)

    def __repr__(self) -> str:
        schema = f", schema={self.schema!r}" if self.schema is not None else ""
        return f"<table {self.table!r}{schema} of {self.place}>"

    def __reduce__(self) -> NoReturn:
        raise PrivacyError("a table of a database cannot be pickled or copied: name it anew")

    @property
    def identity(self) -> tuple[object, ...]:
        """What two names of one table share."""
        connection = None if self.connection is None else id(self.connection)
        return (self.place, connection, self.schema, self.table)

    def open(self) -> DatabaseRows:
        """Connect, and find the table and its columns; no row is read."""
        return database_rows(self.engine())

    def engine(self) -> Engine:
        """Connect, and find the table."""
        if self.connection is not None:
            return _of_connection(self.connection)(self)
        scheme, _, path = self.place.partition(":///")
        if scheme == "duckdb":
            from dpmodels.frames.duckdb_engine import duckdb_file

            return duckdb_file(path, self.table, self.schema)
        if scheme == "sqlite":
            from dpmodels.frames.sqlite_engine import sqlite_file

            return sqlite_file(path, self.table, self.schema)
        return _postgres(self)


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
        open connection of duckdb, sqlite3, psycopg or ADBC for PostgreSQL.
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
    if isinstance(database, SqlTable):
        raise ArgumentError("the database is a table already: give it as data=")
    if not isinstance(database, str | PathLike):
        _of_connection(database)
        name = _named(table, schema)
        module = type(database).__module__.lstrip("_").split(".")[0]
        return SqlTable(f"a connection of {module}", name, schema, timeout, database)
    text = fspath(database)
    if "://" not in text:
        return SqlTable(_place_of_path(Path(text)), _named(table, schema), schema, timeout)
    place, options, secrets = _parsed(text)
    schema = schema if schema is not None else options.get("schema")
    if timeout is None and "timeout" in options:
        timeout = _seconds(options["timeout"])
    name = _named(table if table is not None else options.get("table"), schema)
    return SqlTable(place, name, schema, timeout, secrets=secrets)


def is_database_url(data: object) -> bool:
    """Whether data are the URL of a database."""
    return isinstance(data, str) and data.partition("://")[0] in _SCHEMES and "://" in data


def is_database_file(path: Path) -> bool:
    """Whether a path has the suffix of a database."""
    return path.suffix.lower() in _BY_SUFFIX


def has_password(data: object) -> bool:
    """Whether data are the URL of a database that contains a password."""
    return is_database_url(data) and bool(_parsed(str(data))[2])


def _named(table: object, schema: object) -> str:
    if not isinstance(table, str) or not table:
        raise ArgumentError(
            'the table is not named: write dp.sql(database, table="visits"), or ?table=visits at '
            "the end of the URL"
        )
    if schema is not None and not (isinstance(schema, str) and schema):
        raise ArgumentError(f"schema={quoted(schema)}: expected the name of a schema")
    return table


def _place_of_path(path: Path) -> str:
    dialect = _BY_SUFFIX.get(path.suffix.lower())
    if dialect is None:
        raise ArgumentError(f"a database cannot be opened from this text: expected {_ACCEPTED}")
    return f"{dialect}:///{path}"


def _parsed(url: str) -> tuple[str, dict[str, str], tuple[tuple[str, str], ...]]:
    """Split a URL into one without password, table and options, and what is secret.

    No message quotes the URL, which may contain a password.
    """
    scheme, _, rest = url.partition("://")
    dialect = _SCHEMES.get(scheme)
    if dialect is None:
        meant = did_you_mean(scheme, _SCHEMES)
        raise ArgumentError(f"the URL of a database begins otherwise{meant}: expected {_ACCEPTED}")
    try:
        parts = urlsplit(f"x://{rest}")
        pairs = parse_qsl(parts.query, keep_blank_values=True, strict_parsing=bool(parts.query))
    except ValueError:
        raise ArgumentError(f"the URL of the database is not valid: expected {_ACCEPTED}") from None
    options = {name: value for name, value in pairs if name in ("table", "schema", "timeout")}
    left = [(name, value) for name, value in pairs if name not in {*options, *_SECRETS}]
    secrets = [(name, value) for name, value in pairs if name in _SECRETS]
    if dialect != "postgresql":
        if parts.netloc or len(parts.path) < 2 or left or secrets:
            raise ArgumentError(
                f"the URL of a {dialect} file is not valid: write {dialect}:///rows.{dialect}, and "
                "?table=visits"
            )
        return f"{dialect}:///{unquote(parts.path[1:])}", options, ()
    user, at, hosts = parts.netloc.rpartition("@")
    user, colon, password = user.partition(":")
    if colon:
        secrets.append(("password", unquote(password)))
    query = f"?{urlencode(left, quote_via=quote)}" if left else ""
    return f"postgresql://{user}{at}{hosts}{parts.path}{query}", options, tuple(secrets)


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < 2**20:
        raise ArgumentError("timeout= in the URL: expected a positive number of seconds")
    return seconds


def _of_connection(connection: Any) -> Callable[[SqlTable], Engine]:
    """Return how a table of a connection is opened, by the library of the connection."""
    duckdb, psycopg = sys.modules.get("duckdb"), sys.modules.get("psycopg")
    sqlite3 = sys.modules.get("sqlite3")
    if duckdb is not None and isinstance(connection, duckdb.DuckDBPyConnection):
        from dpmodels.frames.duckdb_engine import duckdb_connection

        return lambda table: duckdb_connection(connection, table.table, table.schema)
    if sqlite3 is not None and isinstance(connection, sqlite3.Connection):
        from dpmodels.frames.sqlite_engine import sqlite_connection

        return lambda table: sqlite_connection(connection, table.table, table.schema)
    if psycopg is not None and isinstance(connection, psycopg.Connection):
        return _of_psycopg
    if hasattr(connection, "adbc_get_info"):
        return _of_adbc
    raise ArgumentError(
        f"a database of type {type(connection).__name__} is not supported: expected {_ACCEPTED}"
    )


def _of_psycopg(table: SqlTable) -> Engine:
    from dpmodels.frames.postgres_engine import PsycopgDriver, open_postgres

    connection: Any = table.connection
    if connection.closed or connection.info.transaction_status.name != "IDLE":
        raise FrameError(
            "the PostgreSQL connection is closed or in a transaction: commit it or roll it back "
            "first"
        )
    driver = PsycopgDriver(connection, is_users=True)
    return open_postgres(driver, table.table, table.schema, table.place, table.timeout)


def _of_adbc(table: SqlTable) -> Engine:
    from dpmodels.frames.postgres_engine import ADBCDriver, open_postgres

    connection: Any = table.connection
    closed = "the ADBC connection is closed: open it anew"
    vendor = translated(lambda _: closed, lambda: connection.adbc_get_info().get("vendor_name"))
    if vendor != "PostgreSQL":
        raise FrameError(
            "of ADBC only connections to PostgreSQL are read, since other drivers infer types from "
            'cells: write dp.sql("sqlite:///rows.sqlite", table="...") for SQLite'
        )
    driver = ADBCDriver(connection, is_users=True)
    return open_postgres(driver, table.table, table.schema, table.place, table.timeout)


def _postgres(table: SqlTable) -> Engine:
    from dpmodels.frames.postgres_engine import open_postgres

    driver = translated(
        lambda error: _cannot_connect(error, table.place), lambda: _connected(table)
    )
    return open_postgres(driver, table.table, table.schema, table.place, table.timeout)


def _connected(table: SqlTable) -> Driver:
    """Connect to PostgreSQL, by psycopg or else by ADBC."""
    from dpmodels.frames.postgres_engine import ADBCDriver, PsycopgDriver

    secrets: dict[str, Any] = dict(table.secrets)
    try:
        import psycopg
    except ImportError:
        from adbc_driver_postgresql import dbapi

        joint = "&" if "?" in table.place else "?"
        extra = f"{joint}{urlencode(secrets, quote_via=quote)}" if secrets else ""
        return ADBCDriver(dbapi.connect(table.place + extra), is_users=False)
    return PsycopgDriver(psycopg.connect(table.place, **secrets), is_users=False)


def _cannot_connect(error: Exception, place: str) -> str:
    if isinstance(error, ImportError):
        return 'reading PostgreSQL needs psycopg: pip install "dpmodels[databases]"'
    return (
        f"{place} does not accept the connection: check host, database and user; the password is "
        f"read {_PASSWORD}"
    )
