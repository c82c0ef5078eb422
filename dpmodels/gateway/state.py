"""The state of a gateway in SQLite: tokens, jobs, stopped tables, and the audit log.

The audit log is a chain of hashes: each line has the hash of the one before. It has names, times,
actions and outcomes, and nothing that a worker computed from rows.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import secrets
import sqlite3
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from threading import RLock
from typing import Any, Final, NamedTuple

from dpmodels.errors import LedgerError
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
CREATE TABLE IF NOT EXISTS audit (
    line INTEGER PRIMARY KEY, text TEXT NOT NULL, hash TEXT NOT NULL
);
"""
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

    def close(self) -> None:
        """Close the database."""
        self._reader.close()
        self._database.close()

    @contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        with self._lock:
            self._database.execute("BEGIN IMMEDIATE")
            try:
                yield self._database
                self._database.execute("COMMIT")
            except BaseException:
                self._database.execute("ROLLBACK")
                raise

    def _rows(self, query: str, *values: object) -> list[tuple[Any, ...]]:
        with self._reading:
            return self._reader.execute(query, values).fetchall()

    # Tokens.

    def issue_token(self, analyst: str, days: float) -> str:
        """Return a new token of an analyst, of which only a hash is stored."""
        identifier, secret, salt = secrets.token_hex(8), secrets.token_urlsafe(32), os.urandom(16)
        row = (identifier, analyst, salt, _hashed(secret, salt), time.time() + 86_400 * days)
        with self._writing() as database:
            database.execute("INSERT INTO tokens VALUES (?, ?, ?, ?, ?, 0)", row)
            self._log(database, analyst, "token issued", token=identifier, days=days)
        return f"{identifier}.{secret}"

    def revoke_tokens(self, analyst: str) -> int:
        """Revoke all tokens of an analyst, and return how many the gateway had issued."""
        with self._writing() as database:
            row = (analyst, time.time())
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
        return job

    def same_request(self, key: str) -> Job | None:
        """Return the open or answered job of the same request."""
        earlier = self._jobs("WHERE request_key = ? ORDER BY number", key)
        return next((job for job in earlier if job.state in _OPEN), None)

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

    def job(self, identifier: str) -> Job | None:
        """Return a job, None if there is none."""
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
        last = "SELECT line, hash FROM audit ORDER BY line DESC LIMIT 1"
        line, before = database.execute(last).fetchone() or (0, "")
        body = {"time": round(time.time(), 3), "who": who, "action": action, **facts}
        text = json.dumps(body, sort_keys=True)
        row = (line + 1, text, _chained(before, text))
        database.execute("INSERT INTO audit VALUES (?, ?, ?)", row)

    def audit(self) -> list[dict[str, Plain]]:
        """Return the lines of the audit log; a LedgerError if one was changed or removed."""
        before, entries = "", []
        rows = self._rows("SELECT line, text, hash FROM audit ORDER BY line")
        for number, (line, text, digest) in enumerate(rows, start=1):
            if number != line or digest != _chained(before, text):
                raise LedgerError(f"line {number} of the audit log was changed or removed")
            before = digest
            entries.append(json.loads(text))
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
