"""The lines of a ledger in an SQLite file, shared by processes.

Every read and every write is a transaction on a new connection, so that threads and forked
processes need no coordination, except that a fork waits until no thread is within SQLite: the child
would inherit a locked mutex. A writer takes the lock before it reads the totals (``BEGIN
IMMEDIATE``), and a line counts once the file is synced (rollback journal, ``synchronous=EXTRA``): a
killed process leaves the whole line or nothing. SQLite's pages have no checksums: each transaction
compares the last line with a separate table and the lines it reads with their hashes before using
them; opening, verifying and claims check all pages.

Every transaction holds the lock of a file beside the ledger, which also stores the head of the
chain (`dpmodels.privacy.ledger_head`), so that an older copy of the ledger is refused. Anyone who
can write both files can restore older copies of both. Against that, keep the line and hash that
reports print where that person cannot write. Each transaction compares the schema, since a trigger
or a view could change what a charge writes.

.. [1] SQLite, "Atomic Commit In SQLite" and "PRAGMA Statements: synchronous, application_id,
   user_version", https://www.sqlite.org.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from functools import cache, partial
from pathlib import Path
from threading import Condition
from typing import Final
from urllib.parse import quote

from dpmodels.arguments import between
from dpmodels.atomic_files import checked_path, write_whole
from dpmodels.errors import FrameError, LedgerError
from dpmodels.privacy import ledger_head
from dpmodels.privacy.budget import Adjacency, Guarantee
from dpmodels.privacy.filters import Filter, requested_filter
from dpmodels.privacy.lines import (
    PURSE,
    RESTORED,
    SHOWN,
    Claim,
    Line,
    chained,
    claimed,
    following,
    opened,
    opening,
    require_form,
    signed,
    totals_of,
)
from dpmodels.privacy.pufferfish import Pufferfish
from dpmodels.privacy.register import require_same
from dpmodels.typing import AnyPath

# "dplg" in ASCII: how SQLite tells a ledger from other databases.
_APPLICATION: Final = 0x64706C67
_VERSION: Final = 1
_SCHEMA: Final = f"""
PRAGMA application_id = {_APPLICATION};
PRAGMA user_version = {_VERSION};
CREATE TABLE lines (
    line INTEGER PRIMARY KEY, charge INTEGER NOT NULL, text TEXT NOT NULL, hash TEXT NOT NULL
);
CREATE INDEX charges ON lines (charge);
CREATE TABLE claims (
    kind TEXT NOT NULL, value TEXT NOT NULL, charge INTEGER NOT NULL, PRIMARY KEY (kind, value)
);
CREATE TABLE head (line INTEGER NOT NULL, hash TEXT NOT NULL);
"""
_CLAIM: Final = "INSERT INTO claims VALUES (?, ?, ?)"
_MOVED: Final = "ON CONFLICT (kind, value) DO UPDATE SET charge = excluded.charge"
_READ: Final = """
SELECT coalesce((SELECT hash FROM lines AS one WHERE one.line = lines.line - 1), ''),
       text, hash, line
FROM lines """
_ADD: Final = "INSERT INTO lines VALUES (?, ?, ?, ?)"
_WHY: Final = {
    "SQLITE_BUSY": "another process has locked it for {timeout:g} seconds",
    "SQLITE_READONLY": "it cannot be written to",
    "SQLITE_FULL": "its disk is full",
    "SQLITE_IOERR": "its disk reports an error",
    "SQLITE_CANTOPEN": "it cannot be opened, or no longer exists",
    "SQLITE_PERM": "it cannot be opened",
    "SQLITE_AUTH": "it cannot be opened",
    "SQLITE_NOTADB": "it is not a ledger, or damaged",
}
_DAMAGED: Final = "it is damaged; restore a copy that verifies"
_SECONDS_BEFORE_FORK: Final = 5.0


class _OpenConnections:
    """The number of connections that are open in this process; a fork waits until all are closed.

    It waits for some seconds only: a signal handler may fork in the thread that has a connection.
    """

    def __init__(self) -> None:
        self._changed, self._n_open = Condition(), 0

    @contextmanager
    def counted(self) -> Iterator[None]:
        """Count a connection."""
        with self._changed:
            self._n_open += 1
        try:
            yield
        finally:
            with self._changed:
                self._n_open -= 1
                self._changed.notify_all()

    def before_fork(self) -> None:
        """Wait until no connection is open, and let no thread open one."""
        self._changed.acquire()
        self._changed.wait_for(lambda: self._n_open <= 0, _SECONDS_BEFORE_FORK)

    def in_parent(self) -> None:
        """Let threads open connections again."""
        self._changed.release()

    def in_child(self) -> None:
        """Start anew: the child has no other thread."""
        self._changed, self._n_open = Condition(), 0


_connections: Final = _OpenConnections()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_connections.before_fork,
        after_in_parent=_connections.in_parent,
        after_in_child=_connections.in_child,
    )


class LedgerFile:
    """Lines in an existing file.

    A file on a network file system is refused, since its locks are unreliable.
    """

    def __init__(self, path: Path, timeout: float) -> None:
        self.path: Final = path
        self.place: Final = path.name
        self._timeout = timeout
        ledger_head.require_local(path)

    @contextmanager
    def reading(self) -> Iterator[_Open]:
        """Read a consistent snapshot of the chain."""
        with self._alone() as head, self._connected() as connection:
            connection.execute("BEGIN")
            chain = self._opened(connection, head)
            last = ledger_head.Head(*chain.place_and_hash())
            if head.read() != last:
                try:
                    head.write(last)
                except LedgerError as error:
                    raise LedgerError(f"{error}. Nothing was charged") from None
            yield chain

    @contextmanager
    def writing(self) -> Iterator[_Open]:
        """Write to the chain, excluding other processes.

        If it fails, the added lines are discarded, or the message says that they may be stored.
        """
        with self._alone() as head:
            with self._connected() as connection:
                connection.execute("BEGIN IMMEDIATE")
                chain = self._opened(connection, head)
                yield chain
                last = ledger_head.Head(*chain.place_and_hash())
                self._commit(connection, chain, head)
            try:
                head.write(last)
            except LedgerError as error:
                raise LedgerError(
                    f"{error}, after a line was added to {self.place}: a charge counts as spent; "
                    "see ledger.register()"
                ) from None

    def accept(self) -> ledger_head.Head | None:
        """Return the head in the lock file and delete it, accepting the file as it is."""
        with ledger_head.locked(self.path, self._timeout) as head:
            recorded = head.read()
            head.forget()
        return recorded

    def content(self) -> bytes:
        """Return the bytes of a consistent copy."""
        with self._alone() as head, self._connected() as connection:
            connection.execute("BEGIN")
            self._opened(connection, head)
            return connection.serialize()

    @contextmanager
    def _alone(self) -> Iterator[ledger_head.HeadFile]:
        with ledger_head.locked(self.path, self._timeout) as head:
            ledger_head.require_single(self.path)
            ledger_head.require_own_journal(self.path, partial(self._require_head, head))
            yield head

    def _require_head(self, head: ledger_head.HeadFile, copy: Path) -> None:
        with LedgerFile(copy, self._timeout)._connected() as connection:
            connection.execute("BEGIN")
            self._opened(connection, head)

    def _commit(
        self, connection: sqlite3.Connection, chain: _Open, head: ledger_head.HeadFile
    ) -> None:
        expected = chain.place_and_hash()
        try:
            connection.execute("COMMIT")
        except sqlite3.Error as error:
            with suppress(sqlite3.Error):
                connection.rollback()
            try:
                with self._connected() as retry:
                    retry.execute("BEGIN")
                    committed = self._opened(retry, head).at(expected[0]) == expected[1]
            except LedgerError:
                raise LedgerError(
                    f"{self._why(error)} The charge may be stored: it counts as spent unless "
                    "ledger.verify() and ledger.register() show otherwise"
                ) from None
            if not committed:
                raise

    @contextmanager
    def _connected(self) -> Iterator[sqlite3.Connection]:
        with _connections.counted(), self._connection() as connection:
            yield connection

    @contextmanager
    def _connection(self) -> Iterator[sqlite3.Connection]:
        try:
            connection = sqlite3.connect(
                f"file:{quote(os.fsencode(self.path))}?mode=rw",
                uri=True,
                timeout=self._timeout,
                isolation_level=None,
            )
            try:
                connection.executescript("PRAGMA synchronous=EXTRA; PRAGMA trusted_schema=OFF;")
                yield connection
            finally:
                connection.close()
        except (sqlite3.Error, UnicodeError) as error:
            raise LedgerError(f"{self._why(error)} Nothing was charged") from None

    def _opened(self, connection: sqlite3.Connection, head: ledger_head.HeadFile) -> _Open:
        """Return the chain after checking that this version can read it."""
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        if version != _VERSION:
            raise LedgerError(
                f"{self.place} was written by a newer version of dpmodels (format {version}, this "
                f"one reads {_VERSION}): update dpmodels. Nothing was charged"
            )
        if _schema(connection) != _own_schema():
            raise LedgerError(
                f"the tables, triggers or views of {self.place} are not those of a ledger: the "
                "file was edited. Nothing was charged; restore a copy that verifies"
            )
        chain = _Open(connection, self.place)
        if connection.execute("SELECT line, hash FROM head").fetchall() != [chain.place_and_hash()]:
            raise LedgerError(f"the ledger {self.place}: {_DAMAGED}. Nothing was charged")
        recorded = head.read()
        if recorded is not None and chain.at(recorded.line) != recorded.hash:
            raise LedgerError(
                f"{self.place} is an older copy of the ledger, or another ledger: it lacks line "
                f"{recorded.line}, {recorded.hash[:SHOWN]}, which its lock file records. Nothing "
                "was charged; find the file that has every charge, or write "
                "dp.Ledger.open(path, restored=True) to continue without the missing charges"
            )
        return chain

    def _why(self, error: sqlite3.Error | UnicodeError) -> str:
        name = getattr(error, "sqlite_errorname", "")
        reason = next((text for code, text in _WHY.items() if name.startswith(code)), _DAMAGED)
        return f"the ledger {self.place}: {reason.format(timeout=self._timeout)}."


class _Open:
    """The chain inside a transaction."""

    def __init__(self, connection: sqlite3.Connection, place: str) -> None:
        self._connection = connection
        self._place = place

    def last(self) -> Line:
        """Return the last line."""
        return self._fetch("WHERE line = ?", self.place_and_hash()[0])[0]

    def lines(self) -> Iterator[Line]:
        """Return all lines, first to last."""
        self.place_and_hash()
        return self._iterate("ORDER BY line")

    def of(self, charge: int) -> list[Line]:
        """Return the lines about a charge, first to last."""
        return self._fetch("WHERE charge = ? ORDER BY line", charge)

    def free(self, charge: int) -> None:
        """Release the claims of a charge."""
        self._connection.execute(
            "DELETE FROM claims WHERE charge = ? AND kind <> ?", (charge, PURSE)
        )

    def append(
        self, line: Line, charge: int, claims: tuple[Claim, ...] = (), purse: str = ""
    ) -> None:
        """Add a line about a charge, its exclusive claims, and the purse whose state it has."""
        number = self.place_and_hash()[0] + 1
        if claims:
            self._require_sound("claims")
        for kind, value in claims:
            try:
                self._connection.execute(_CLAIM, (kind, value, charge))
            except sqlite3.IntegrityError:
                raise LedgerError(claimed(kind, value)) from None
        if purse:
            self._connection.execute(f"{_CLAIM} {_MOVED}", (PURSE, purse, charge))
        self._connection.execute(_ADD, (number, charge, line.text, line.hash))
        self._connection.execute("UPDATE head SET line = ?, hash = ?", (number, line.hash))

    def before(self, charge: int) -> Line:
        """Return the line before that of a charge."""
        first = "(SELECT min(line) FROM lines WHERE charge = ?)"
        return self._fetch(f"WHERE line = {first} - 1", charge)[0]

    def check(self) -> None:
        """Refuse a file with inconsistent pages, in time proportional to its size."""
        self._require_sound("1")

    def _require_sound(self, part: str) -> None:
        """Refuse inconsistent pages of all tables, for ``"1"``, or of the table of this name."""
        if self._connection.execute(f"PRAGMA integrity_check({part})").fetchall() != [("ok",)]:
            raise LedgerError(f"the ledger {self._place}: {_DAMAGED}. Nothing was charged")

    def claims(self, kind: str = "") -> set[tuple[str, str, int]]:
        """Return the claims of a kind, or all, with their charges."""
        query = "SELECT kind, value, charge FROM claims"
        clause, values = (" WHERE kind = ?", (kind,)) if kind else ("", ())
        return set(self._connection.execute(query + clause, values))

    def place_and_hash(self) -> tuple[int, str]:
        """Return the number of the last line and its hash."""
        row = self._connection.execute(
            "SELECT line, hash FROM lines ORDER BY line DESC LIMIT 1"
        ).fetchone()
        if row is None:
            raise LedgerError(f"{self._place} is damaged: it has no lines. Nothing was charged")
        number, digest = row
        if not isinstance(number, int) or not isinstance(digest, str):
            raise LedgerError(f"the ledger {self._place}: {_DAMAGED}. Nothing was charged")
        return number, digest

    def at(self, number: int) -> str:
        """Return the hash of a line, empty if it does not exist."""
        row = self._connection.execute(
            "SELECT hash FROM lines WHERE line = ?", (number,)
        ).fetchone()
        return "" if row is None else str(row[0])

    def _fetch(self, clause: str, *parameters: int) -> list[Line]:
        return list(self._iterate(clause, *parameters))

    def _iterate(self, clause: str, *parameters: int) -> Iterator[Line]:
        for before, text, digest, number in self._connection.execute(_READ + clause, parameters):
            line = following(str(before), Line(str(text), str(digest)), number, self._place)
            yield require_form(line, number, self._place)


def _schema(connection: sqlite3.Connection) -> list[tuple[object, ...]]:
    return connection.execute(
        "SELECT type, name, tbl_name, sql FROM sqlite_schema ORDER BY type, name"
    ).fetchall()


@cache
def _own_schema() -> list[tuple[object, ...]]:
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.executescript(_SCHEMA)
        return _schema(connection)


def ledger_path(path: AnyPath) -> Path:
    """Return the path of a ledger's file with links resolved."""
    return Path(os.path.realpath(checked_path(path)))


def create(path: Path, first: Line) -> None:
    """Write a new ledger with its first line; never overwrite a file."""
    ledger_head.require_local(path)
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.executescript(_SCHEMA)
        connection.execute(_ADD, (0, 0, first.text, first.hash))
        connection.execute("INSERT INTO head VALUES (0, ?)", (first.hash,))
        connection.commit()
        content = connection.serialize()
    write_whole(path, content, private=True)


def open_store(
    path: AnyPath,
    *,
    guarantee: Guarantee | Pufferfish | None,
    relation: Adjacency | None,
    pure: float | None,
    rule: str | None,
    timeout: float,
    new: bool = False,
    restored: bool = False,
) -> tuple[LedgerFile, Filter, Adjacency]:
    """Open or create a file; None for arguments that were not stated."""
    place = ledger_path(path)
    between("timeout", timeout, 0, 1e5, " of seconds; write timeout=30")
    if not os.path.exists(place):
        if guarantee is None or not new:
            ledger_head.refuse_missing(place)
        neighbours = relation or Adjacency("replace")
        budget_filter = requested_filter(guarantee, neighbours, pure or 0.0, rule)
        _make(LedgerFile(place, timeout), budget_filter, neighbours)
    _require_ledger(place)
    store = LedgerFile(place, float(timeout))
    if restored:
        _restore(store)
    with store.reading() as chain:
        budget_filter, neighbours = opened(next(chain.lines()), store.place)
    require_same(
        store.place,
        {
            "the guarantee": (budget_filter.guarantee, guarantee),
            "adjacency": (neighbours, relation),
            "pure": (budget_filter.pure, pure),
            "rule": (budget_filter.kind, rule),
        },
    )
    return store, budget_filter, neighbours


def _require_ledger(path: Path) -> None:
    """Refuse what is not a ledger before a lock file is made beside it."""
    if path.is_dir():
        raise LedgerError(f"{path.name} is a folder: write the path of a file in it")
    head = b""
    with suppress(OSError):
        if path.is_file():
            with path.open("rb") as file:
                head = file.read(72)
    if head[:16] != b"SQLite format 3\0" or head[68:] != _APPLICATION.to_bytes(4, "big"):
        raise LedgerError(f"{path.name} is not a ledger, or damaged. Nothing was charged")


def _restore(store: LedgerFile) -> None:
    """Continue with an older copy, and record the head that it lacks."""
    recorded = store.accept()
    try:
        with store.writing() as chain:
            last = chain.last()
            body = {
                "kind": RESTORED,
                "charge": 0,
                "missing": [recorded.line, recorded.hash] if recorded else None,
                **signed(last.body["charges"], totals_of(last)),
            }
            chain.append(chained(last.hash, body), 0)
    except BaseException:
        if recorded is not None:
            with ledger_head.locked(store.path, 30.0) as head:
                head.write(recorded)
        raise


def _make(store: LedgerFile, budget_filter: Filter, relation: Adjacency) -> None:
    """Create the file, unless another process has just created it."""
    try:
        create(store.path, opening(budget_filter, relation))
    except FrameError as error:
        if not os.path.exists(store.path):
            reason = str(error).partition(", and nothing")[0]
            raise LedgerError(f"the ledger {store.place} cannot be created: {reason}") from None
