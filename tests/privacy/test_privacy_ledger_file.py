"""A ledger in a file: shared by processes, forgets no charge, refuses what it cannot trust."""

import hashlib
import json
import multiprocessing
import os
import signal
import sqlite3
import time
from contextlib import closing, suppress
from threading import Event, Thread

import pytest

from dpmodels.errors import ArgumentError, FrameError, LedgerError
from dpmodels.privacy import (
    ZCDP,
    ApproxDP,
    GaussianEvent,
    Ledger,
    PureEvent,
    gaussian_multiplier,
    ledger_file,
    ledger_head,
)
from dpmodels.privacy.ledger_head import lock_path
from dpmodels.privacy.lines import hash_of

SPAWN = multiprocessing.get_context("spawn")


@pytest.fixture
def path(tmp_path):
    return tmp_path / "study.ledger"


def spend(ledger, eps, label=""):
    return ledger.charge([PureEvent(eps)], adjacency="replace", label=label)


def rows(path, query="SELECT text FROM lines ORDER BY line"):
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute(query).fetchall()


def change(path, *queries):
    with closing(sqlite3.connect(path)) as connection:
        for query in queries:
            connection.execute(query)
        connection.commit()


# --- what is kept


def test_a_charge_outlives_the_ledger_that_made_it(path):
    first = Ledger.open(path, eps=2.0, delta=1e-6, new=True)
    event = GaussianEvent(gaussian_multiplier(ApproxDP(1.0, 1e-6)))
    entry = first.charge([event], adjacency="replace", label="pca")
    again = Ledger.open(path)
    assert again.entries == first.entries == (entry,)
    assert again.spent == first.spent
    assert again.guarantee == ApproxDP(2.0, 1e-6)
    assert entry.describe() == (
        f"1.00 of 2.00 eps spent (GDP); line 1 of study.ledger, {entry.hash[:12]}"
    )
    assert again.describe() == (
        f"1.00 of 2.00 eps spent (GDP); 1 charge in study.ledger, head {entry.hash[:12]}"
    )
    with pytest.raises(LedgerError, match=r"left for such noise: 0\.3042"):
        spend(again, 1.5)


def test_states_of_a_charge(path):
    ledger = Ledger.open(path, eps=2.0, new=True)
    first, two, three = (spend(ledger, 0.5, label) for label in "abc")
    ledger.released(first, "d1")
    ledger.void(two, "the key was used by another process")
    assert ledger.unfinished() == (three,)
    register = Ledger.open(path).register()
    assert register["state"].tolist() == ["released", "void", "charged"]
    assert register["digest"].tolist() == ["d1", "", ""]
    assert register["reason"].tolist()[1].startswith("the key")
    assert register["total"].tolist() == pytest.approx([0.5, 1.0, 1.5])
    # Another came after it: it stays spent.
    assert ledger.spent.amount == pytest.approx(1.5)
    ledger.void(three, "the disk was full")
    assert ledger.spent.amount == pytest.approx(1.0)
    for entry in (first, two):
        with pytest.raises(LedgerError, match="without an outcome"):
            ledger.released(entry, "d2")
        with pytest.raises(LedgerError, match="without an outcome"):
            ledger.void(entry, "no")
    ledger.verify()
    spend(ledger, 1.0)
    with pytest.raises(LedgerError):
        spend(ledger, 1e-6)


def test_a_claim_is_made_once(path):
    for ledger in (Ledger.open(path, eps=2.0, new=True), Ledger(eps=2.0)):
        words = {"adjacency": "replace", "claims": (("key", "ab"), ("session", "7"))}
        ledger.charge([PureEvent(0.5)], **words)
        with pytest.raises(LedgerError, match="the key 'ab' was used"):
            ledger.charge([PureEvent(0.5)], adjacency="replace", claims=(("key", "ab"),))
        (entry,) = ledger.entries
        assert ledger.spent.amount == 0.5
        ledger.void(entry, "the disk was full")
        assert ledger.charge([PureEvent(0.5)], **words).claims == words["claims"]


def test_what_is_exported_verifies_by_itself(path, tmp_path):
    ledger = Ledger.open(path, eps=2.0, new=True)
    ledger.released(spend(ledger, 0.5, "a\nb"), "d")
    ledger.export(tmp_path / "lines.jsonl")
    lines = [json.loads(line) for line in (tmp_path / "lines.jsonl").read_text().splitlines()]
    before = ""
    for line in lines:
        assert hashlib.sha256(f"{before}\n{line['line']}".encode()).hexdigest() == line["hash"]
        before = line["hash"]
    assert ledger.head == before
    with pytest.raises(FrameError):
        ledger.export(tmp_path / "lines.jsonl")
    assert len(repr(ledger).splitlines()) == 3


# --- many processes


def attempts(path, times, go):
    ledger = Ledger.open(path)
    go.wait()
    for _ in range(times):
        with suppress(LedgerError):
            ledger.released(spend(ledger, 0.01), "d")


@pytest.mark.product
def test_processes_cannot_overspend_together(path):
    ledger = Ledger.open(path, eps=0.4, new=True)
    go = SPAWN.Event()
    repeats = [SPAWN.Process(target=attempts, args=(path, 20, go)) for _ in range(3)]
    for repeat in repeats:
        repeat.start()
    go.set()
    for repeat in repeats:
        repeat.join()
    assert len(ledger.entries) == 40
    assert ledger.unfinished() == ()
    assert ledger.spent.amount == pytest.approx(0.4)
    ledger.verify()


def test_a_forked_process_spends_from_the_same_file(path):
    ledger = Ledger.open(path, eps=1.0, new=True)
    child = os.fork()
    if child == 0:
        spend(ledger, 0.25)
        os._exit(0)
    os.waitpid(child, 0)
    assert ledger.spent.amount == 0.25


def test_a_fork_waits_until_no_thread_is_within_sqlite(path):
    ledger = Ledger.open(path, eps=1.0, new=True)
    inside, entered = [], Event()

    def transaction():
        with ledger_file.LedgerFile(path, 5.0).reading():
            inside.append(True)
            entered.set()
            time.sleep(0.1)
            inside.clear()

    thread = Thread(target=transaction)
    thread.start()
    entered.wait()
    child = os.fork()
    if child == 0:
        signal.alarm(20)
        with suppress(BaseException):
            spend(ledger, 0.25)
            os._exit(1 if inside else 0)
        os._exit(2)
    assert os.waitpid(child, 0)[1] == 0
    thread.join()
    assert ledger.spent.amount == 0.25


# --- bad files


def test_a_ledger_that_is_not_there_needs_a_budget(path):
    with pytest.raises(LedgerError, match="to create a ledger write new=True"):
        Ledger.open(path)
    assert not path.exists()


@pytest.mark.parametrize(
    ("words", "reported"),
    [
        (
            {"eps": 3.0, "delta": 1e-6},
            "the guarantee eps = 2, delta = 1e-06, but this call states eps = 3",
        ),
        ({"eps": 2.0}, "the guarantee"),
        ({"budget": ZCDP(0.1)}, "the guarantee"),
        ({"adjacency": "add-remove"}, "adjacency replace one row"),
        ({"pure": 0.5}, "pure 0.0, but this call states 0.5"),
        ({"rule": "zcdp"}, "rule"),
    ],
)
def test_other_terms_are_refused(path, words, reported):
    Ledger.open(path, eps=2.0, delta=1e-6, new=True)
    before = path.read_bytes()
    with pytest.raises(LedgerError, match=reported):
        Ledger.open(path, **words, new=True)
    assert path.read_bytes() == before
    Ledger.open(path, eps=2.0, delta=1e-6, adjacency="replace", new=True)


def test_a_ledger_that_cannot_be_made(path, tmp_path, monkeypatch):
    with pytest.raises(LedgerError, match=r"cannot be created: .* folder does not exist"):
        Ledger.open(tmp_path / "none" / "study.ledger", eps=1.0, new=True)

    def full(*words, **options):
        raise FrameError("'x' was not written (no room), and nothing there was changed")

    monkeypatch.setattr(ledger_file, "write_whole", full)
    with pytest.raises(LedgerError, match=r"cannot be created: 'x' was not written \(no room\)$"):
        Ledger.open(path, eps=1.0, new=True)


def test_a_folder_is_not_a_ledger(tmp_path):
    for new in (False, True):
        with pytest.raises(LedgerError, match="is a folder: write the path of a file in it"):
            Ledger.open(tmp_path, eps=1.0, new=new)
    assert not tmp_path.with_name(f"{tmp_path.name}.lock").exists()


@pytest.mark.parametrize("content", [b"", b"not a ledger", b"SQLite format 3\0" + bytes(100)])
def test_what_is_no_ledger_is_refused(path, content):
    path.write_bytes(content)
    for options in ({"new": True}, {"restored": True}):
        with pytest.raises(LedgerError, match="not a ledger, or damaged"):
            Ledger.open(path, eps=1.0, **options)
        assert path.read_bytes() == content
        assert list(path.parent.iterdir()) == [path]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_a_pipe_is_refused_without_waiting_for_a_writer(path):
    os.mkfifo(path)
    with pytest.raises(LedgerError, match="not a ledger"):
        Ledger.open(path)
    assert list(path.parent.iterdir()) == [path]


def test_another_database_is_refused(path):
    change(path, "CREATE TABLE lines (line INTEGER, text TEXT, hash TEXT)")
    with pytest.raises(LedgerError, match="not a ledger"):
        Ledger.open(path, eps=1.0, new=True)
    assert list(path.parent.iterdir()) == [path]


def test_a_newer_format_is_refused(path):
    ledger = Ledger.open(path, eps=1.0, new=True)
    change(path, "PRAGMA user_version = 2")
    for touch in (lambda: Ledger.open(path), lambda: spend(ledger, 0.1)):
        with pytest.raises(LedgerError, match="newer version of dpmodels"):
            touch()


@pytest.mark.parametrize(
    "query",
    [
        "UPDATE lines SET text = replace(text, '0.25', '0.05') WHERE line = 1",
        "UPDATE lines SET text = replace(text, 'ages', 'aged') WHERE line = 1",
        "UPDATE lines SET text = replace(text, 'replace', 'add-remove') WHERE line = 0",
        "DELETE FROM lines WHERE line = 1",
        "DELETE FROM lines WHERE line = 0",
        "DELETE FROM lines",
        "UPDATE lines SET text = '{}' WHERE line = 0",
        "UPDATE lines SET text = '[[' WHERE line = 2",
        "DROP TABLE lines",
    ],
)
def test_a_changed_line_is_found(path, query):
    ledger = Ledger.open(path, eps=1.0, new=True)
    spend(ledger, 0.25, "ages")
    spend(ledger, 0.25)
    change(path, query)
    with pytest.raises(LedgerError):
        Ledger.open(path)
    if not query.startswith("DROP"):
        with pytest.raises(LedgerError):
            ledger.verify()


def test_totals_that_do_not_follow_from_the_charges_are_found(path):
    """By whoever computes the hashes anew, too."""
    ledger = Ledger.open(path, eps=1.0, new=True)
    spend(ledger, 0.25)
    (first, _), (text, _) = rows(path, "SELECT text, hash FROM lines ORDER BY line")
    text = text.replace('"pure":0.25', '"pure":0.05')
    digest = hash_of(hash_of("", first), text)
    change(
        path,
        f"UPDATE lines SET text = '{text}', hash = '{digest}' WHERE line = 1",
        f"UPDATE head SET hash = '{digest}'",
    )
    lock_path(path).unlink()
    with pytest.raises(LedgerError, match="other totals than its charges have"):
        Ledger.open(path)


def test_an_older_copy_put_back_under_an_open_ledger_is_found(path):
    ledger = Ledger.open(path, eps=1.0, new=True)
    older = path.read_bytes()
    spend(ledger, 0.5)
    path.write_bytes(older)
    with pytest.raises(LedgerError, match="older copy"):
        spend(ledger, 0.5)
    path.unlink()
    with pytest.raises(LedgerError, match="no longer exists"):
        spend(ledger, 0.5)


def test_a_locked_file_is_waited_for_and_then_refused(path):
    ledger = Ledger.open(path, eps=1.0, timeout=0.2, new=True)
    with closing(sqlite3.connect(path, isolation_level=None)) as second:
        second.execute("BEGIN IMMEDIATE")
        started = time.monotonic()
        with pytest.raises(LedgerError, match=r"locked it for 0\.2 seconds.*Nothing was charged"):
            spend(ledger, 0.1)
        assert 0.15 < time.monotonic() - started < 5
        second.execute("ROLLBACK")
    spend(ledger, 0.1)
    assert len(ledger.entries) == 1


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may write all")
def test_a_read_only_file_is_refused(path):
    Ledger.open(path, eps=1.0, new=True)
    path.chmod(0o444)
    with pytest.raises(LedgerError, match="cannot be written to"):
        spend(Ledger.open(path), 0.1)


@pytest.mark.parametrize("kind", ["nfs4", "cifs", "fuse.sshfs"])
def test_a_file_system_of_a_network_is_refused(path, monkeypatch, kind):
    monkeypatch.setattr(ledger_head, "_file_system", lambda place: kind)
    with pytest.raises(LedgerError, match="network file system"):
        Ledger.open(path, eps=1.0, new=True)
    assert not path.exists()


def test_the_file_system_of_a_path_is_that_of_its_longest_mount(path, monkeypatch, tmp_path):
    mounts = f"/dev/a / ext4 rw 0 0\nhost:/x {tmp_path} nfs4 rw 0 0\nproc /proc proc rw 0 0\n"
    monkeypatch.setattr(ledger_head.Path, "read_text", lambda self, **words: mounts)
    assert ledger_head._file_system(path) == "nfs4"
    assert ledger_head._file_system(tmp_path) == "ext4"


@pytest.mark.parametrize("timeout", [-1, float("nan"), "30", True])
def test_a_timeout_that_is_none(path, timeout):
    with pytest.raises(ArgumentError, match="timeout="):
        Ledger.open(path, eps=1.0, timeout=timeout, new=True)


def test_a_link_leads_to_the_same_ledger(path, tmp_path):
    first = Ledger.open(path, eps=1.0, new=True)
    (tmp_path / "link.ledger").symlink_to(path)
    spend(Ledger.open(tmp_path / "link.ledger"), 0.5)
    assert first.spent.amount == 0.5


def test_a_line_spoilt_under_an_open_ledger_is_found_before_it_is_charged(path):
    ledger = Ledger.open(path, eps=1.0, new=True)
    entry = spend(ledger, 0.5)
    change(path, "UPDATE lines SET text = replace(text, '\"pure\":0.5', '\"pure\":0.0')")
    for touch in (
        lambda: spend(ledger, 0.9),
        lambda: ledger.spent,
        lambda: ledger.entries,
        lambda: ledger.released(entry, "d"),
        ledger.describe,
        ledger.register,
    ):
        with pytest.raises(LedgerError, match="line 1 does not follow"):
            touch()


def test_an_older_copy_is_found_by_who_has_only_read(path):
    spend(Ledger.open(path, eps=1.0, new=True), 0.25)
    older = path.read_bytes()
    spend(Ledger.open(path), 0.5)
    reader = Ledger.open(path)
    path.write_bytes(older)
    with pytest.raises(LedgerError, match="older copy"):
        spend(reader, 0.5)


def test_a_claim_taken_out_is_found(path):
    Ledger.open(path, eps=1.0, new=True).charge(
        [PureEvent(0.1)], adjacency="replace", claims=(("key", "ab"),)
    )
    change(path, "DELETE FROM claims")
    with pytest.raises(LedgerError, match="claims differ"):
        Ledger.open(path)
