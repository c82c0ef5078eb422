"""The lock file of a ledger: locks that are not lost, and a head that shows older copies."""

import errno
import hashlib
import os
import re
import shutil
import sqlite3
import stat
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import pytest

import dpmodels as dp
from dpmodels.errors import LedgerError
from dpmodels.privacy import GaussianEvent, Ledger, PureEvent, ledger_file, ledger_head
from dpmodels.privacy.ledger_head import Head, lock_path, locked
from dpmodels.privacy.lines import About


@pytest.fixture
def path(tmp_path):
    return tmp_path / "study.ledger"


def spend(ledger, eps=0.001, **words):
    return ledger.charge([PureEvent(eps)], adjacency="replace", **words)


@pytest.mark.product
def test_reading_the_file_in_the_same_process_drops_no_lock(path):
    """SQLite's locks were dropped: 21 duplicate numbers in 464 charges."""
    Ledger.open(path, eps=1000.0, new=True)
    code = (
        "import sys, hashlib, pathlib\n"
        "from dpmodels.privacy import Ledger, PureEvent\n"
        "path = pathlib.Path(sys.argv[1]); ledger = Ledger.open(path)\n"
        "for _ in range(60):\n"
        "    hashlib.sha256(path.read_bytes())\n"
        "    print(ledger.charge([PureEvent(.001)], adjacency='replace').number)\n"
    )
    command = [sys.executable, "-c", code, str(path)]
    runs = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(3)]
    for _ in range(200):
        hashlib.sha256(path.read_bytes())
    numbers = [int(line) for run in runs for line in run.communicate()[0].split()]
    assert sorted(numbers) == list(range(1, 181))
    Ledger.open(path).verify()


@pytest.mark.expensive
def test_threads_charge_one_after_another(path):
    ledger = Ledger.open(path, eps=1000.0, new=True)
    with ThreadPoolExecutor(8) as pool:
        numbers = [entry.number for entry in pool.map(lambda _: spend(ledger), range(60))]
    assert sorted(numbers) == list(range(1, 61))


def test_an_older_copy_is_refused_and_accepted_knowingly(path, tmp_path):
    ledger = Ledger.open(path, eps=1.0, new=True)
    spend(ledger, 0.25)
    ledger.backup(tmp_path / "backup.ledger")
    spend(ledger, 0.5)
    assert Ledger.open(tmp_path / "backup.ledger").spent.amount == 0.25
    shutil.copyfile(tmp_path / "backup.ledger", path)
    with pytest.raises(LedgerError, match=r"older copy .* lacks line 2, \w+, .*restored=True"):
        Ledger.open(path)
    with pytest.raises(LedgerError, match="older copy"):
        spend(ledger)
    again = Ledger.open(path, restored=True)
    assert again.spent.amount == 0.25
    assert spend(again).number == 2
    again.verify()
    Ledger.open(path).verify()


def test_a_hard_link_a_mount_and_foreign_files_are_refused(path, tmp_path, monkeypatch):
    ledger = Ledger.open(path, eps=1.0, new=True)
    os.link(path, tmp_path / "second.ledger")
    for open_again in (lambda: Ledger.open(path), lambda: spend(ledger)):
        with pytest.raises(LedgerError, match="hard link"):
            open_again()
    (tmp_path / "second.ledger").unlink()
    (tmp_path / "study.ledger-wal").write_bytes(b"foreign")
    with pytest.raises(LedgerError, match=r"study\.ledger-wal lies beside"):
        spend(ledger)
    (tmp_path / "study.ledger-wal").unlink()
    mounted = [(path, "ext4")]
    monkeypatch.setattr("dpmodels.privacy.ledger_head._mounts", lambda: mounted)
    with pytest.raises(LedgerError, match="mounted as a single file"):
        spend(ledger)
    mounted.clear()
    assert spend(ledger).number == 1


def test_a_name_that_a_killed_process_left_is_removed(path):
    Ledger.open(path, eps=1.0, new=True)
    orphan = path.with_name(f".{'0' * 32}.partial")
    os.link(path, orphan)
    assert spend(Ledger.open(path)).number == 1
    assert not orphan.exists()


def test_a_journal_of_an_older_ledger_takes_no_charge_back(path, tmp_path):
    """A journal that was kept turned 5 charges into 3."""
    ledger = Ledger.open(path, eps=10.0, new=True)
    for _ in range(3):
        spend(ledger)
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA synchronous=OFF")
    connection.execute("BEGIN IMMEDIATE")
    connection.execute("PRAGMA cache_spill = 1")
    connection.execute("UPDATE lines SET charge = charge")
    connection.execute("UPDATE head SET hash = 'x'")
    journal = Path(f"{path}-journal")
    journalled = journal.read_bytes() if journal.exists() else b""
    connection.execute("ROLLBACK")
    connection.close()
    for _ in range(2):
        spend(ledger)
    journal.write_bytes(journalled)
    with suppress(LedgerError):
        assert len(Ledger.open(path).entries) == 5
    journal.unlink(missing_ok=True)
    assert len(Ledger.open(path).entries) == 5


@pytest.mark.parametrize(
    "statement",
    [
        "CREATE TRIGGER free AFTER INSERT ON lines BEGIN DELETE FROM lines WHERE line = 9; END",
        "CREATE VIEW other AS SELECT * FROM lines",
        "CREATE TABLE other (x)",
        "DROP INDEX charges",
    ],
)
def test_a_schema_that_was_edited_is_refused(path, statement):
    """One trigger made every answer free, and the chain verified."""
    ledger = Ledger.open(path, eps=1.0, new=True)
    with sqlite3.connect(path) as connection:
        connection.execute(statement)
    connection.close()
    for act in (lambda: spend(ledger), ledger.verify, lambda: Ledger.open(path)):
        with pytest.raises(LedgerError, match="tables, triggers or views"):
            act()


def test_files_are_their_owners_alone(path, tmp_path):
    ledger = Ledger.open(path, eps=1.0, new=True)
    spend(ledger)
    ledger.backup(tmp_path / "backup.ledger")
    for file in (path, lock_path(path), tmp_path / "backup.ledger"):
        assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_a_mistyped_path_makes_no_second_budget(path):
    Ledger.open(path, eps=1.0, new=True)
    with pytest.raises(LedgerError, match=r"did you mean 'study\.ledger'\?\): .*new=True"):
        Ledger.open(path.with_name("stuby.ledger"), eps=1.0)
    assert sorted(os.listdir(path.parent)) == ["study.ledger", "study.ledger.lock"]


def test_a_head_that_was_half_written_is_the_one_before(path):
    with locked(path, 1.0) as head:
        for line in range(3):
            head.write(Head(line, f"{line:064x}"))
    with lock_path(path).open("r+b") as file:
        file.write(b"dpmodels.head/1 9 half")
    with locked(path, 1.0) as head:
        assert head.read() == Head(1, f"{1:064x}")


@pytest.mark.parametrize("number", ["x1", "9" * 30, "²"])
def test_a_lock_file_with_an_odd_number_has_no_head(path, number):
    ledger = Ledger.open(path, eps=1.0, new=True)
    body = f"dpmodels.head/1 {number} {0:064x}"
    lock_path(path).write_text(f"{body} {ledger_head._checksum(body)}\n")
    assert spend(ledger).number == 1


def test_a_lock_file_that_cannot_be_read_or_written(path, monkeypatch):
    ledger = Ledger.open(path, eps=1.0, new=True)
    lock_path(path).unlink()
    os.mkfifo(lock_path(path))
    with pytest.raises(LedgerError, match=r"study\.ledger\.lock .* cannot be read .*Nothing was"):
        spend(ledger)
    lock_path(path).unlink()

    def full(*_):
        raise OSError(errno.ENOSPC, "")

    with monkeypatch.context() as patched:
        patched.setattr(ledger_head.os, "pwrite", full)
        reason = re.escape(f"written ({os.strerror(errno.ENOSPC)})")
        with pytest.raises(LedgerError, match=rf"{reason}.* a charge counts as spent"):
            spend(ledger)
        with pytest.raises(LedgerError, match=r"cannot be written .*Nothing was charged"):
            ledger.verify()
    assert ledger.charges == 1


def test_a_lock_that_is_held_is_waited_for_and_then_refused(path):
    ledger = Ledger.open(path, eps=1.0, timeout=0.05, new=True)
    with locked(path, 1.0), pytest.raises(LedgerError, match=r"locked it for 0\.05 seconds"):
        spend(ledger)
    assert spend(ledger).number == 1


def test_labels_and_plans_have_a_limited_size(path):
    ledger = Ledger.open(path, eps=1e6, delta=1e-6, new=True)
    with pytest.raises(LedgerError, match="a label of 100,000 characters"):
        spend(ledger, label="x" * 100_000)
    with pytest.raises(LedgerError, match="a formula and other texts of 2,000,003 characters"):
        spend(ledger, about=About(formula="x" * 2_000_000))
    with pytest.raises(LedgerError, match="a formula and other texts of 2,000,006 characters"):
        spend(ledger, claims=(("key", "x" * 2_000_000),))
    assert ledger.charges == 0
    ledger.charge([GaussianEvent(1000.0)] * 5000, adjacency="replace")
    with pytest.raises(LedgerError, match="an outcome of a charge of 2,000,004 characters"):
        ledger.void(ledger.entries[0], "x" * 2_000_000)
    assert path.stat().st_size < 100_000
    assert len(ledger.entries[0].events) == 5000
    ledger.verify()


def test_a_charge_costs_the_same_after_many():
    """By the number of lines that it reads: in a session, too."""
    ledger = Ledger(eps=1e6)
    session = dp.session({"x": [0.5] * 10}, dp.codebook(x=(0, 1)), ledger=ledger)
    for _ in range(50):
        spend(ledger)
    chain, reads = ledger._store, []
    original = type(chain).lines
    type(chain).lines = lambda self: reads.append(1) or original(self)
    try:
        session.mean("~ x", eps=0.1)
        entry = spend(ledger)
        ledger.void(entry, "not needed")
        assert ledger.charges == 52
    finally:
        type(chain).lines = original
    assert reads == []


def test_opening_checks_each_line_once(path, monkeypatch):
    """It read all lines to see the first one, and then all of them again."""
    ledger, checked = Ledger.open(path, eps=1.0, new=True), []
    for _ in range(20):
        spend(ledger)
    original = ledger_file.require_form
    monkeypatch.setattr(
        ledger_file, "require_form", lambda *words: checked.append(1) or original(*words)
    )
    Ledger.open(path)
    assert len(checked) <= 22
