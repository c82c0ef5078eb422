"""A ledger on a disk that fails: nothing is charged, or an error says so."""

import sqlite3

import pytest

from dpmodels.errors import LedgerError
from dpmodels.privacy import Ledger, PureEvent, ledger_file


@pytest.fixture
def path(tmp_path):
    return tmp_path / "study.ledger"


def spend(ledger, eps):
    return ledger.charge([PureEvent(eps)], adjacency="replace")


class Failing:
    """A connection that fails at one kind of statement, as a full or read-only disk would."""

    def __init__(self, connection, at, name, after=False):
        self.connection, self.at, self.name, self.after = connection, at, name, after

    def __getattr__(self, name):
        return getattr(self.connection, name)

    def execute(self, query, *words):
        if query.startswith(self.at):
            if self.after:
                self.connection.execute(query, *words)
            error = sqlite3.OperationalError("made to fail")
            error.sqlite_errorname = self.name
            raise error
        return self.connection.execute(query, *words)


@pytest.mark.parametrize(
    ("at", "name", "message"),
    [
        ("INSERT", "SQLITE_FULL", "its disk is full. Nothing was charged"),
        ("COMMIT", "SQLITE_FULL", "its disk is full. Nothing was charged"),
        ("COMMIT", "SQLITE_IOERR_FSYNC", "its disk reports an error. Nothing was charged"),
        ("BEGIN IMMEDIATE", "SQLITE_READONLY", "cannot be written to. Nothing was charged"),
        ("BEGIN IMMEDIATE", "SQLITE_IOERR", "its disk reports an error. Nothing was charged"),
    ],
)
def test_a_disk_that_fails_is_told_and_nothing_charged(path, monkeypatch, at, name, message):
    ledger, connect = Ledger.open(path, eps=1.0, new=True), sqlite3.connect
    with monkeypatch.context() as patched:
        patched.setattr(
            ledger_file.sqlite3,
            "connect",
            lambda *words, **options: Failing(connect(*words, **options), at, name),
        )
        with pytest.raises(LedgerError, match=message):
            spend(ledger, 0.1)
    assert ledger.entries == ()
    spend(ledger, 1.0)


def test_a_commit_that_fails_after_it_was_made_counts(path, monkeypatch):
    ledger, connect = Ledger.open(path, eps=1.0, new=True), sqlite3.connect
    with monkeypatch.context() as patched:
        patched.setattr(
            ledger_file.sqlite3,
            "connect",
            lambda *words, **options: Failing(
                connect(*words, **options), "COMMIT", "SQLITE_IOERR", True
            ),
        )
        spend(ledger, 0.6)
    assert ledger.spent.amount == 0.6


def test_a_ledger_is_made_without_room_elsewhere(path, monkeypatch):
    nowhere = str(path.parent / "gone")
    for name in ("TMPDIR", "TEMP", "TMP"):
        monkeypatch.setenv(name, nowhere)
    monkeypatch.setattr("tempfile.tempdir", nowhere)
    spend(Ledger.open(path, eps=1.0, new=True), 1.0)
    Ledger.open(path).verify()
