"""A letter and its key: whatever dies or fails, and however many race, there is one or none."""

import errno
import json
import os
from pathlib import Path

import numpy as np
import pytest

import dpmodels as dp
from dpmodels.atomic_files import write_whole
from dpmodels.errors import ArgumentError, FrameError
from dpmodels.sites.key_file import read_participant, used_record
from dpmodels.sites.message import SiteMessage, finish, read_message, seal, write_message

BOOK = dp.codebook(a=(0, 1))
TERMS = {
    "verb": "mean",
    "formula": "~ a",
    "codebook": BOOK.to_dict(),
    "options": {},
    "guarantee": ["ApproxDP", {"eps": 1.0, "delta": 1e-6}],
    "adjacency": "replace",
    "subset": None,
    "protocol": {"name": "secure_sum"},
    "session": "s",
}
CALLS = ("open", "posix_fallocate", "fsync", "link", "replace", "unlink")


def letter(number="0"):
    terms = {**TERMS, "keys": {}, "basis": ""}
    return SiteMessage(terms, "A", 3, bytes(16), (2, 1), "words", number, False)


def partials(folder):
    return list(folder.glob(".*.partial"))


def secret_in(key):
    return "private" in json.loads(key.read_text("utf-8"))


def forked(work):
    """Do work in a process of its own; its exit status."""
    child = os.fork()
    if child == 0:
        try:
            work()
        except FrameError:
            os._exit(3)
        except BaseException:
            os._exit(4)
        os._exit(0)
    return child


def ended(child):
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def refused(*given, **words):
    raise OSError(errno.EPERM, "no second names here")


def dying_at(step, linked):
    """Let this process die at the given call of the system, before it or after it."""
    count = [0]
    for name in CALLS:
        real = refused if name == "link" and not linked else getattr(os, name)

        def wrapped(*inputs, real=real, **words):
            count[0] += 1
            if 2 * count[0] - 1 == step:
                os._exit(9)
            try:
                return real(*inputs, **words)
            finally:
                if 2 * count[0] == step:
                    os._exit(9)

        setattr(os, name, wrapped)


@pytest.mark.product
@pytest.mark.parametrize("linked", [True, False], ids=["links", "no links"])
def test_a_death_at_any_call_loses_neither_the_key_nor_its_letter(linked, tmp_path):
    states = set()
    for step in range(1, 200):
        folder = tmp_path / str(step)
        folder.mkdir()
        key, place = folder / "a.key", folder / "a.json"
        dp.site_key("A", key)

        def work(step=step, place=place, key=key):
            dying_at(step, linked)
            write_message(letter(), place, key)

        status = ended(forked(work))
        assert status in (0, 9)
        used, recorded = used_record(key).exists(), place.exists() and place.stat().st_size > 0
        states.add((used, recorded))
        assert used or not recorded
        if used and not linked and used_record(key).stat().st_size == 0:
            # An empty record keeps its name free for an instant: the key is lost, no mask is.
            with pytest.raises(FrameError, match="was used"):
                read_participant(key, "A", ())
            assert not recorded
        elif used:
            assert recorded or finish(key, "A", place, TERMS)
            assert read_message(place) == letter()
            assert not finish(key, "A", place, TERMS) or not partials(folder)
            with pytest.raises(FrameError, match="was used"):
                read_participant(key, "A", ())
            assert not secret_in(key)
        else:
            assert not finish(key, "A", place, TERMS)
            assert read_participant(key, "A", ()).names == ("A",)
            write_message(letter("again"), place, key)
            assert read_message(place).number == "again"
        if status == 0:
            break
    assert status == 0
    assert step > 40
    assert states == {(False, False), (True, False), (True, True)}


@pytest.mark.product
@pytest.mark.parametrize("linked", [True, False], ids=["links", "no links"])
def test_of_many_processes_with_one_key_one_writes_a_letter(linked, tmp_path):
    for turn in range(5):
        folder = tmp_path / str(turn)
        folder.mkdir()
        key = folder / "a.key"
        dp.site_key("A", key)
        gate, opened = os.pipe()

        def work(value, folder=folder, key=key, gate=gate, opened=opened):
            if not linked:
                os.link = refused
            os.close(opened)
            os.read(gate, 1)
            write_message(letter(str(value)), folder / f"{value}.json", key)

        children = [forked(lambda value=i: work(value)) for i in range(8)]
        os.close(gate)
        os.close(opened)
        statuses = [ended(child) for child in children]
        assert sorted(statuses) == [0] + [3] * 7
        winner = statuses.index(0)
        assert [path.name for path in folder.glob("*.json")] == [f"{winner}.json"]
        assert read_message(folder / f"{winner}.json").number == str(winner)
        assert partials(folder) == []


@pytest.fixture
def asked(tmp_path):
    cards = [dp.site_key(site, tmp_path / f"{site}.key") for site in "AB"]
    return {
        "site": "A",
        "session": "s",
        "protocol": "secure_sum",
        "codebook": BOOK,
        "verb": "mean",
        "eps": 1.0,
        "delta": 1e-6,
        "key": tmp_path / "A.key",
        "cards": cards,
        "ledger": ledger_of("A", tmp_path),
    }


def ledger_of(site, folder):
    return dp.Ledger.open(folder / f"{site}.ledger", eps=1.0, delta=1e-6, new=True)


class Unread:
    """Rows that must not be asked for."""

    def __getattr__(self, name):
        raise AssertionError(name)


ROWS = {"a": np.linspace(0, 1, 50)}


def test_the_same_call_finishes_without_rows_or_charge(asked, tmp_path, monkeypatch):
    place = tmp_path / "A.json"

    def dies(*inputs, **words):
        raise KeyboardInterrupt

    monkeypatch.setattr("dpmodels.sites.message.publish", dies)
    with pytest.raises(KeyboardInterrupt):
        dp.site_release("~ a", ROWS, place, **asked)
    monkeypatch.undo()
    assert not place.exists()
    assert not secret_in(tmp_path / "A.key")
    with pytest.raises(FrameError, match=r"other terms: session is s and not t|session"):
        dp.site_release("~ a", Unread(), place, **{**asked, "session": "t"})
    with pytest.raises(FrameError, match="was used"):
        dp.site_release("~ a", Unread(), tmp_path / "other.json", **asked)
    assert dp.site_release("~ a", Unread(), place, **asked) == place
    assert len(asked["ledger"].entries) == 1
    assert partials(tmp_path) == []
    second = {"site": "B", "key": tmp_path / "B.key", "ledger": ledger_of("B", tmp_path)}
    dp.site_release("~ a", ROWS, tmp_path / "B.json", **{**asked, **second})
    assert dp.combine([place, tmp_path / "B.json"]).release.rows == 100


@pytest.mark.parametrize(
    ("where", "says"),
    [
        ("A.key", "already exists|also read or written"),
        ("A.key.used", "also read or written"),
        ("nowhere/a.json", "folder does not exist"),
        ("n" * 256, "too long"),
        (".", "lies in the folder of the exchange"),
    ],
)
def test_a_target_that_cannot_be_is_refused_before_a_row_or_a_charge(where, says, asked, tmp_path):
    with pytest.raises((FrameError, ArgumentError), match=says):
        dp.site_release("~ a", ROWS, tmp_path / where, **asked)
    assert asked["ledger"].entries == ()
    assert secret_in(tmp_path / "A.key")


def test_a_folder_that_takes_no_files_is_noticed_before_a_charge(asked, tmp_path, monkeypatch):
    real = os.open

    def read_only(path, flags, *rest, **words):
        if flags & os.O_CREAT:
            raise OSError(errno.EROFS, os.strerror(errno.EROFS))
        return real(path, flags, *rest, **words)

    monkeypatch.setattr(os, "open", read_only)
    with pytest.raises(FrameError, match="Read-only"):
        dp.site_release("~ a", ROWS, tmp_path / "a.json", **asked)
    monkeypatch.undo()
    assert asked["ledger"].entries == ()


def test_a_full_disk_leaves_the_key_unused(asked, tmp_path, monkeypatch):
    def full(*inputs):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "posix_fallocate", full)
    with pytest.raises(FrameError, match="No space left"):
        dp.site_release("~ a", ROWS, tmp_path / "a.json", **asked)
    monkeypatch.undo()
    assert secret_in(tmp_path / "A.key")
    assert not used_record(tmp_path / "A.key").exists()
    assert partials(tmp_path) == []


def test_a_name_that_is_taken_meanwhile_keeps_the_letter(asked, tmp_path, monkeypatch):
    from dpmodels.sites import message

    place, real = tmp_path / "A.json", message.publish

    def late(partial, path, **words):
        place.write_text("somebody else's")
        real(partial, path, **words)

    monkeypatch.setattr(message, "publish", late)
    with pytest.raises(
        FrameError, match=r"already exists.*kept as '\..*\.partial'.*repeat the same call"
    ):
        dp.site_release("~ a", ROWS, place, **asked)
    monkeypatch.undo()
    assert place.read_text() == "somebody else's"
    place.unlink()
    assert dp.site_release("~ a", Unread(), place, **asked) == place


def test_a_letter_that_is_not_the_recorded_one_is_not_shown(tmp_path):
    key, place = tmp_path / "A.key", tmp_path / "A.json"
    dp.site_key("A", key)
    write_message(letter(), place, key)
    record = json.loads(used_record(key).read_text("utf-8"))
    place.unlink()
    write_whole(tmp_path / record["partial"], seal(letter("forged")).content)
    assert not finish(key, "A", place, TERMS)
    for partial in ("../A.json", "/etc/passwd", "", "."):
        used_record(key).write_text(json.dumps({**record, "partial": partial}), "utf-8")
        assert not finish(key, "A", place, TERMS)
    assert not place.exists()


def test_two_names_of_one_key_are_one_claim(tmp_path):
    dp.site_key("A", tmp_path / "A.key")
    (tmp_path / "link.key").symlink_to(tmp_path / "A.key")
    write_message(letter(), tmp_path / "1.json", tmp_path / "link.key")
    with pytest.raises(FrameError, match="not claimed"):
        write_message(letter(), tmp_path / "2.json", tmp_path / "A.key")
    assert not secret_in(tmp_path / "A.key")
    assert not Path(tmp_path / "2.json").exists()


def test_keys_are_for_their_owner_alone(tmp_path):
    dp.site_key("A", tmp_path / "A.key")
    write_message(letter(), tmp_path / "A.json", tmp_path / "A.key")
    for name in ("A.key", "A.key.used"):
        assert (tmp_path / name).stat().st_mode & 0o077 == 0
