"""A site's ledger file: key, session and letter are lines of it."""

import json

import pytest

import dpmodels as dp
from dpmodels.errors import ArgumentError, FrameError, LedgerError
from dpmodels.sites import message as letters

BOOK = dp.codebook(a=(0, 1))
ROWS = {"a": [0.2, 0.7] * 50}
AGREED = {"codebook": BOOK, "verb": "mean", "eps": 1.0, "delta": 1e-6, "protocol": "secure_sum"}


class Touched(dict):
    """Rows that must not be read."""

    def __getitem__(self, name):
        raise AssertionError("a row was read")


@pytest.fixture
def site(tmp_path):
    """One of two sites with keys: writes its letter to a file of a name."""
    cards = [dp.site_key(name, tmp_path / f"{name}.key") for name in "XY"]
    ledger = dp.Ledger.open(tmp_path / "x.ledger", eps=9.0, delta=1e-6, new=True)

    def write(name, key="X.key", rows=ROWS, session="trial 7", **words):
        return dp.site_release(
            "~ a",
            rows,
            tmp_path / name,
            site="X",
            key=tmp_path / key,
            cards=cards,
            session=session,
            **{**AGREED, "ledger": ledger, **words},
        )

    return write, ledger, tmp_path


def test_the_letters_digest_is_a_line(site):
    write, ledger, _ = site
    letter = json.loads(write("x.json").read_text())
    (line,) = ledger.register().to_dict("records")
    assert line["state"] == "released"
    assert line["digest"] == letter["sha256"]
    assert (line["verb"], line["formula"]) == ("dp_mean", "~ a")
    (entry,) = ledger.entries
    assert entry.claims == (("session", "trial 7, site X"), ("key", letter["terms"]["keys"]["X"]))


def copied(folder, place):
    """A copy of the key, in its own folder or another one."""
    copy = folder / place
    copy.parent.mkdir(exist_ok=True)
    copy.write_bytes((folder / "X.key").read_bytes())
    return copy


@pytest.mark.parametrize("place", ["copy.key", "other/X.key"])
def test_a_copy_of_a_key_is_no_second_key(site, place):
    write, ledger, folder = site
    copy = copied(folder, place)
    again = copy.with_name("again.json")
    write("x.json")
    with pytest.raises(LedgerError, match=r"the key '.*' was used for an earlier charge"):
        write(again, copy, session="trial 8")
    with pytest.raises(LedgerError, match="the session 'trial 7, site X' was used"):
        write(again, copy)
    assert len(ledger.entries) == 1
    assert not again.exists()


@pytest.mark.parametrize("protocol", ["cape", "secure_sum"])
@pytest.mark.parametrize("ledger", [None, dp.Ledger(eps=9.0, delta=1e-6)], ids=["none", "memory"])
def test_a_key_needs_a_ledger_in_a_file(site, ledger, protocol):
    write, _, folder = site
    copy = copied(folder, "other/X.key")
    secret = copy.read_bytes()
    write("x.json")
    again = copy.with_name("x.json")
    with pytest.raises(ArgumentError, match=f"protocol='{protocol}' needs ledger=, a file"):
        write(again, copy, rows=Touched(ROWS), protocol=protocol, ledger=ledger)
    assert copy.read_bytes() == secret
    assert sorted(path.name for path in copy.parent.iterdir()) == ["X.key"]
    assert ledger is None or ledger.entries == ()


def test_a_ledger_file_that_options_set_is_enough(site):
    write, ledger, _ = site
    with dp.options(ledger=ledger):
        write("x.json", ledger=None)
    assert len(ledger.entries) == 1


@pytest.mark.parametrize("place", ["publish", "wipe"])
def test_a_letter_that_waits_is_shown_and_recorded_without_another_charge(site, monkeypatch, place):
    write, ledger, folder = site

    def killed(*words, **extra):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(letters, place, killed)
        with pytest.raises(KeyboardInterrupt):
            write("x.json")
    assert not (folder / "x.json").exists()
    letter = json.loads(write("x.json", rows=Touched(ROWS)).read_text())
    (line,) = ledger.register().to_dict("records")
    assert (line["state"], line["digest"]) == ("released", letter["sha256"])


def test_a_death_before_the_digest_was_recorded_is_mended(site, monkeypatch):
    write, ledger, folder = site
    with monkeypatch.context() as patched:
        patched.setattr(dp.Ledger, "released", lambda *words: (_ for _ in ()).throw(SystemExit))
        with pytest.raises(SystemExit):
            write("x.json")
    assert [entry.number for entry in ledger.unfinished()] == [1]
    assert not (folder / "x.json").exists()
    letter = json.loads(write("x.json", rows=Touched(ROWS)).read_text())
    assert ledger.unfinished() == ()
    assert ledger.register()["digest"].tolist() == [letter["sha256"]]


def test_a_full_disk_gives_the_charge_back_and_leaves_the_key(site, monkeypatch):
    write, ledger, _ = site

    def full(*words, **extra):
        raise FrameError("no room is left on its disk")

    with monkeypatch.context() as patched:
        patched.setattr(letters, "stage", full)
        with pytest.raises(FrameError, match="no room"):
            write("x.json")
    assert ledger.register()["state"].tolist() == ["void"]
    assert ledger.spent.amount == 0.0
    assert write("x.json").exists()
    assert ledger.register()["state"].tolist() == ["void", "released"]


def test_a_letter_that_cannot_be_recorded_is_not_shown(site, monkeypatch):
    write, _, folder = site

    def failing(*words):
        raise LedgerError("its disk is full")

    with monkeypatch.context() as patched:
        patched.setattr(dp.Ledger, "released", failing)
        with pytest.raises(LedgerError):
            write("x.json")
    assert not (folder / "x.json").exists()
    assert write("x.json", rows=Touched(ROWS)).exists()
