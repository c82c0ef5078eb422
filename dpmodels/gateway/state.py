"""The state of a gateway in SQLite: tokens, jobs, stopped tables, and the audit log.

The audit log is a chain of hashes: each line has the hash of the one before. Its length and its
last hash are also in the file `audit.lock`, so that a log without its last lines is noticed. It has
names, times, actions and outcomes, and nothing that a worker computed from rows.

The latest public time at which something was stored or handed out is stored too. A server that
starts counts on from there, even if the machine's clock was set back; and outcomes that were not
yet public then wait for what was left of their time, even if it was set forward.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import secrets
import sqlite3
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import RLock
from typing import Final, NamedTuple

from dpmodels.errors import LedgerError
from dpmodels.privacy.ledger_head import Head, HeadFile, locked
from dpmodels.typing import Plain

_SCHEMA: Final = """
CREATE TABLE IF NOT EXISTS tokens (
    id TEXT PRIMARY KEY, analyst TEXT NOT NULL, salt BLOB NOT NULL, key BLOB NOT NULL,
    expires REAL NOT NULL, revoked INTEGER NOT NULL DEFAULT 0
);
CREATE TABLE IF NOT EXISTS revoked (analyst TEXT PRIMARY KEY, at REAL NOT NULL);
CREATE TABLE IF NOT EXISTS jobs (
    id TEXT PRIMARY KEY, number INTEGER NOT NULL, analyst TEXT NOT NULL, purse TEXT NOT NULL,
    place TEXT NOT NULL, request_key TEXT NOT NULL, request TEXT NOT NULL, state TEXT NOT NULL,
    limit_seconds REAL NOT NULL, accepted REAL NOT NULL, public_at REAL NOT NULL,
    error TEXT NOT NULL
);
CREATE INDEX IF NOT EXISTS by_key ON jobs (request_key);
CREATE TABLE IF NOT EXISTS stopped (place TEXT PRIMARY KEY);
CREATE TABLE IF NOT EXISTS reached (number INTEGER PRIMARY KEY CHECK (number = 1), at REAL);
CREATE TABLE IF NOT EXISTS audit (
    line INTEGER PRIMARY KEY, text TEXT NOT NULL, hash TEXT NOT NULL
);
"""
_LAST: Final = "SELECT line, hash FROM audit ORDER BY line DESC LIMIT 1"
_AUDIT: Final = "audit"
_PATIENCE: Final = 5.0  # Seconds, for a command that issues or revokes tokens meanwhile
# The states of a job, in order; an approved job becomes queued.
HELD, QUEUED = "held", "queued"
ANSWERED, REFUSED, FAILED = "answered", "refused", "failed"
WAITING: Final = "waiting"  # Queued or running, or done and not yet public
_OPEN: Final = (HELD, QUEUED, ANSWERED)
# Choices of scrypt: 16 MiB and about 50 ms for each try.
_SCRYPT: Final = {"n": 2**14, "r": 8, "p": 1}


class Job(NamedTuple):
    """A request that was accepted, and what became of it."""

    id: str
    number: int
    analyst: str
    purse: str
    table: str
    key: str
    request: Mapping[str, Plain]
    state: str
    limit_seconds: float
    accepted: float
    public_at: float  # When its outcome is handed out
    error: Mapping[str, str]

    def visible(self, now: float) -> str:
        """Return the state that an analyst sees."""
        if self.state != HELD and (self.public_at > now or self.state == QUEUED):
            return WAITING
        return self.state


class State:
    """The database of a gateway; threads share it, and a second process is refused."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "answers").mkdir(mode=0o700, exist_ok=True)
        self.folder = folder
        self._lock, self._reading = RLock(), RLock()
        self._database, self._reader = _opened(folder), _opened(folder)
        self.latest = self._stored_time()
        self._clock: Callable[[], float] | None = None

    def close(self) -> None:
        """Close the database."""
        self._reader.close()
        self._database.close()

    @contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        with self._lock, locked(self.folder / _AUDIT, _PATIENCE) as anchor:
            self._database.execute("BEGIN IMMEDIATE")
            try:
                yield self._database
                self._database.execute("COMMIT")
            except BaseException:
                self.latest = self._stored_time()
                self._database.execute("ROLLBACK")
                raise
            with suppress(LedgerError):  # The next line repairs the head
                self._anchor(anchor)

    def _anchor(self, file: HeadFile) -> None:
        """Record the last line, unless the recorded one was removed, which stays noticed."""
        last, head = self._database.execute(_LAST).fetchone(), file.read()
        if last is None or head == last:
            return
        query = "SELECT 1 FROM audit WHERE line = ? AND hash = ?"
        if head is None or self._database.execute(query, head).fetchone():
            file.write(Head(*last), is_synced=False)  # It may be behind, never before the commit

    def _rows(self, query: str, *values: object) -> list[tuple[Plain, ...]]:
        with self._reading:
            return self._reader.execute(query, values).fetchall()

    # The public time.

    def follow(self, clock: Callable[[], float], tick_after: Callable[[float], float]) -> None:
        """Take times from a public clock, and let outcomes that were not due wait.

        They wait for what was left of their time when the latest time was stored, since nothing
        is known of the time between.
        """
        early = [job for job in self.jobs() if job.public_at > self.latest]
        self._clock, start, latest = clock, clock(), self.latest
        behind = round(max(start - time.time(), 0.0), 3)
        with self._writing() as database:
            for job in early:
                at = tick_after(start + job.public_at - latest)
                database.execute("UPDATE jobs SET public_at = ? WHERE id = ?", (at, job.id))
            self._log(database, "", "server started", seconds_behind=behind)
            self._reach(database)

    def reach(self) -> None:
        """Store the public time, before an outcome is handed out; not while the disk is full."""
        with suppress(sqlite3.Error, LedgerError), self._writing() as database:
            self._reach(database)

    def _stored_time(self) -> float:
        # Of a state without one: when the last request was accepted.
        query = "SELECT coalesce((SELECT at FROM reached), (SELECT max(accepted) FROM jobs), 0.0)"
        return float(self._rows(query)[0][0])

    def _reach(self, database: sqlite3.Connection) -> None:
        # Called at public times only: the end of a job is not one.
        if self._clock is not None:
            self.latest = max(self.latest, self._clock())
            database.execute("INSERT OR REPLACE INTO reached VALUES (1, ?)", (self.latest,))

    def _now(self) -> float:
        """Return the time of a line: the public one, or the machine's in other processes."""
        return max(time.time(), self.latest) if self._clock is None else self._clock()

    # Tokens.

    def issue_token(self, analyst: str, days: float) -> str:
        """Return a new token of an analyst, of which only a hash is stored."""
        identifier, secret, salt = secrets.token_hex(8), secrets.token_urlsafe(32), os.urandom(16)
        row = (identifier, analyst, salt, _hashed(secret, salt), self._now() + 86_400 * days)
        with self._writing() as database:
            database.execute("INSERT INTO tokens VALUES (?, ?, ?, ?, ?, 0)", row)
            self._log(database, analyst, "token issued", token=identifier, days=days)
        return f"{identifier}.{secret}"

    def revoke_tokens(self, analyst: str) -> int:
        """Revoke all tokens of an analyst, and return how many the gateway had issued."""
        with self._writing() as database:
            row = (analyst, max(self._now(), time.time()))
            database.execute("INSERT OR REPLACE INTO revoked VALUES (?, ?)", row)
            query = "UPDATE tokens SET revoked = 1 WHERE analyst = ? AND revoked = 0"
            number = database.execute(query, (analyst,)).rowcount
            self._log(database, analyst, "tokens revoked", number=number)
        return number

    def was_revoked(self, analyst: str, issued: float) -> bool:
        """Return whether an analyst's tokens were revoked after a time."""
        query = "SELECT 1 FROM revoked WHERE analyst = ? AND at >= ?"
        return bool(self._rows(query, analyst, issued))

    def valid_token(self, identifier: str, now: float) -> str | None:
        """Return the analyst of a token that is neither expired nor revoked, by its identifier."""
        query = "SELECT analyst FROM tokens WHERE id = ? AND revoked = 0 AND expires > ?"
        rows = self._rows(query, identifier, now)
        return rows[0][0] if rows else None

    def has_token(self, identifier: str) -> bool:
        """Return whether a token has an identifier."""
        return bool(self._rows("SELECT 1 FROM tokens WHERE id = ?", identifier))

    def verifies(self, identifier: str, secret: str) -> bool:
        """Return whether a secret is that of a token; as slow for an unknown identifier."""
        rows = self._rows("SELECT salt, key FROM tokens WHERE id = ?", identifier)
        salt, key = rows[0] if rows else (bytes(16), bytes(64))
        return hmac.compare_digest(_hashed(secret, salt), key) and bool(rows)

    # Jobs.

    def add_job(self, job: Job) -> Job:
        """Store a job, or return the open or answered one of the same request."""
        with self._writing() as database:
            earlier = self.same_request(job.key)
            if earlier is not None:
                return earlier
            (number,) = database.execute("SELECT coalesce(max(number), 0) + 1 FROM jobs").fetchone()
            job = job._replace(number=number)
            row = (*job[:6], json.dumps(job.request), *job[7:11], json.dumps(job.error))
            database.execute(f"INSERT INTO jobs VALUES ({', '.join('?' * 12)})", row)
            self._log(database, job.analyst, "job accepted", job=job.id, table=job.table)
            self._reach(database)
        return job

    def same_request(self, key: str) -> Job | None:
        """Return the job of the same request that is answered, or whose end is not yet public."""
        earlier, now = self._jobs("WHERE request_key = ? ORDER BY number", key), self._now()
        return next((job for job in earlier if job.state in _OPEN or job.public_at > now), None)

    def set_job(self, identifier: str, state: str, **changes: object) -> None:
        """Record a new state of a job, with further columns."""
        columns = {"state": state, **changes}
        if "error" in columns:
            columns["error"] = json.dumps(columns["error"])
        setters = ", ".join(f"{name} = ?" for name in columns)
        with self._writing() as database:
            query = f"UPDATE jobs SET {setters} WHERE id = ?"
            database.execute(query, (*columns.values(), identifier))
            self._log(database, "", f"job {state}", job=identifier)

    def waiting(self, analyst: str, table: str, now: float) -> int:
        """Return how many of an analyst's jobs wait, by public times."""
        query = (
            "SELECT count(*) FROM jobs WHERE analyst = ? AND place = ? "
            "AND (state = ? OR public_at > ?)"
        )
        return int(self._rows(query, analyst, table, HELD, now)[0][0])

    def job(self, identifier: str) -> Job | None:
        """Return a job, None if it is not known."""
        return next(iter(self._jobs("WHERE id = ?", identifier)), None)

    def jobs(self, purse: str | None = None) -> list[Job]:
        """Return all jobs, or those of a purse, in the order of their acceptance."""
        clause = "" if purse is None else "WHERE purse = ? "
        return self._jobs(f"{clause}ORDER BY number", *([] if purse is None else [purse]))

    def _jobs(self, clause: str, *values: object) -> list[Job]:
        rows = self._rows(f"SELECT * FROM jobs {clause}", *values)
        return [
            Job._make((*row[:6], json.loads(row[6]), *row[7:11], json.loads(row[11])))
            for row in rows
        ]

    def answer_path(self, identifier: str) -> Path:
        """Return the file of an answer, which a worker writes completely or not at all."""
        return self.folder / "answers" / f"{identifier}.nc"

    # Tables that a curator stopped.

    def stop(self, table: str, curator: str, *, stopped: bool) -> None:
        """Stop accepting requests for a table, or resume."""
        with self._writing() as database:
            database.execute("DELETE FROM stopped WHERE place = ?", (table,))
            if stopped:
                database.execute("INSERT INTO stopped VALUES (?)", (table,))
            self._log(database, curator, "stopped" if stopped else "resumed", table=table)

    def is_stopped(self, table: str) -> bool:
        """Return whether a curator stopped a table."""
        return bool(self._rows("SELECT 1 FROM stopped WHERE place = ?", table))

    # The audit log.

    def log(self, who: str, action: str, **facts: object) -> None:
        """Add a line to the audit log."""
        with self._writing() as database:
            self._log(database, who, action, **facts)

    def _log(self, database: sqlite3.Connection, who: str, action: str, **facts: object) -> None:
        line, before = database.execute(_LAST).fetchone() or (0, "")
        body = {"time": round(self._now(), 3), "who": who, "action": action, **facts}
        text = json.dumps(body, sort_keys=True)
        row = (line + 1, text, _chained(before, text))
        database.execute("INSERT INTO audit VALUES (?, ?, ?)", row)

    def hashes(self) -> list[str]:
        """Return numbers and hashes of the lines of the audit log, such as ``"12:5f0c..."``."""
        rows = self._rows("SELECT line, hash FROM audit ORDER BY line")
        return [f"{line}:{digest}" for line, digest in rows]

    def audit(self) -> list[dict[str, Plain]]:
        """Return the lines of the audit log; a LedgerError if one was changed or removed."""
        with locked(self.folder / _AUDIT, _PATIENCE) as anchor:
            head = anchor.read() or Head(0, "")
        before, entries = "", []
        rows = self._rows("SELECT line, text, hash FROM audit ORDER BY line")
        for number, (line, text, digest) in enumerate(rows, start=1):
            if number != line or digest != _chained(before, text):
                raise LedgerError(f"line {number} of the audit log was changed or removed")
            before = digest
            entries.append(json.loads(text))
            if line == head.line and digest != head.hash:
                raise LedgerError(f"line {line} of the audit log was changed or removed")
        if len(entries) < head.line:
            raise LedgerError(
                f"the audit log ends at line {len(entries)}, and {_AUDIT}.lock has recorded line "
                f"{head.line}: its last lines were removed, or gate.db is an older copy. To accept "
                f"it, revoke all tokens and remove {_AUDIT}.lock"
            )
        return entries


def _opened(folder: Path) -> sqlite3.Connection:
    """Open the database; every change is on the disk before it is acknowledged."""
    path = folder / "gate.db"
    database = sqlite3.connect(path, check_same_thread=False, isolation_level=None, timeout=5)
    os.chmod(path, 0o600)
    database.executescript(f"PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; {_SCHEMA}")
    return database


def _chained(before: str, text: str) -> str:
    return hashlib.sha256(f"{before}\n{text}".encode()).hexdigest()


def _hashed(secret: str, salt: bytes) -> bytes:
    return hashlib.scrypt(secret.encode(), salt=salt, **_SCRYPT)
