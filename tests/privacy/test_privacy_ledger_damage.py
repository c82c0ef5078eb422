"""A file that was damaged is refused, or still what it was, and never holds less than was spent."""

import copy
import json
import random
import sqlite3
from contextlib import closing, suppress

import pytest

import dpmodels as dp
from dpmodels.errors import DPModelsError, LedgerError
from dpmodels.privacy import GaussianEvent, Ledger, PureEvent, ledger_file
from dpmodels.privacy.ledger_head import lock_path
from dpmodels.privacy.lines import hash_of

CLAIM = ("key", "k0")


class Hasty(sqlite3.Connection):
    """A connection that does not wait for the disk, which is not what is tried here."""

    def executescript(self, script):
        return super().executescript(script.replace("EXTRA", "OFF"))


@pytest.fixture(autouse=True)
def _hasty(monkeypatch):
    connect = sqlite3.connect
    monkeypatch.setattr(
        ledger_file.sqlite3,
        "connect",
        lambda *arguments, **options: connect(*arguments, **options, factory=Hasty),
    )


@pytest.fixture(scope="module")
def sound(tmp_path_factory):
    """A ledger's bytes, and what it says."""
    path = tmp_path_factory.mktemp("sound") / "study.ledger"
    ledger = Ledger.open(path, eps=1.0, delta=1e-6, new=True)
    for number in range(7):
        event = GaussianEvent(40.0) if number % 2 else PureEvent(0.01)
        entry = ledger.charge([event], adjacency="replace", claims=(("key", f"k{number}"),))
        if number % 3 == 0:
            ledger.released(entry, f"digest {number}")
        elif number == 4:
            ledger.void(entry, "the disk was full")
    return path.read_bytes(), told(ledger), ledger.entries[0]


def told(ledger):
    register = ledger.register().to_dict()
    return ledger.spent, ledger.head, ledger.entries, ledger.unfinished(), register


def damaged(content, draw):
    """The content cut off, or with some bytes changed, more often among the first."""
    if draw.random() < 0.15:
        return content[: draw.randrange(len(content))]
    changed = bytearray(content)
    for _ in range(draw.choice([1, 1, 2, 8])):
        end = len(changed) if draw.random() < 0.6 else 200
        changed[draw.randrange(end)] = draw.randrange(256)
    if draw.random() < 0.2:
        start = draw.randrange(len(changed))
        end = min(start + draw.randrange(4096), len(changed))
        changed[start:end] = bytes(end - start)
    return bytes(changed)


def holds(ledger, path, content, was, released):
    """Everything it does is refused, or what it would have been without the damage."""
    with suppress(LedgerError):
        assert told(ledger) == was
    with suppress(LedgerError):
        ledger.verify()
        ledger.export(path.with_name("lines.jsonl"), overwrite=True)
    with pytest.raises(LedgerError):
        ledger.void(released, "nothing came of it")
    with pytest.raises(LedgerError):
        ledger.charge([PureEvent(1e-9)], adjacency="replace", claims=(CLAIM,))
    with suppress(LedgerError):
        entry = ledger.charge([PureEvent(1e-9)], adjacency="replace")
        assert entry.spent_after.amount >= was[0].amount
    path.write_bytes(content)
    lock_path(path).unlink(missing_ok=True)


def survives(sound, path, times, seed):
    (content, was, released), draw = sound, random.Random(seed)
    for _ in range(times):
        path.write_bytes(content)
        ledger, spoilt = Ledger.open(path), damaged(content, draw)
        path.write_bytes(spoilt)
        holds(ledger, path, spoilt, was, released)
        with suppress(LedgerError):
            holds(Ledger.open(path), path, spoilt, was, released)


@pytest.mark.product
def test_a_damaged_file_never_holds_less_than_was_spent(sound, tmp_path):
    survives(sound, tmp_path / "study.ledger", 60, 1)


def test_a_claim_is_made_once_where_its_index_is_damaged(tmp_path):
    path, words = tmp_path / "study.ledger", {"adjacency": "replace", "claims": (("kind", "7f3a"),)}
    ledger = Ledger.open(path, eps=1.0, new=True)
    ledger.charge([PureEvent(0.1)], **words)
    first, *alternatives = path.read_bytes().split(b"kind7f3a")
    assert len(alternatives) == 2
    for marks in ((b"kind7f3b", b"kind7f3a"), (b"kind7f3a", b"kind7f3b")):
        path.write_bytes(first + marks[0] + alternatives[0] + marks[1] + alternatives[1])
        with pytest.raises(LedgerError):
            ledger.charge([PureEvent(0.1)], **words)


ODD = [None, True, 0, -1, 1e308, 10**30, "", "\ud800", "charged", [], {}, [[]], {"x": 1}]


def rewritten(value, draw):
    """A plain value of which one part is dropped, renamed, doubled or another one."""
    if not value or not isinstance(value, dict | list) or draw.random() < 0.15:
        return draw.choice(ODD)
    copied = copy.copy(value)
    key = draw.choice(sorted(copied)) if isinstance(copied, dict) else draw.randrange(len(copied))
    match draw.randrange(8):
        case 0:
            del copied[key]
        case 1 if isinstance(copied, dict):
            copied["other"] = copied.pop(key)
        case 1:
            copied.append(copied[key])
        case _:
            copied[key] = rewritten(copied[key], draw)
    return copied


def resealed(path, draw):
    """Change lines of a ledger, and let all hashes fit again."""
    with closing(sqlite3.connect(path)) as connection, connection:
        rows = connection.execute("SELECT charge, text FROM lines ORDER BY line").fetchall()
        at = draw.randrange(len(rows))
        text = json.dumps(rewritten(json.loads(rows[at][1]), draw))
        rows[at] = (rows[at][0], draw.choice([text] * 9 + ["[" * 100_000]))
        if draw.random() < 0.2:
            del rows[draw.randrange(1, len(rows))]
        connection.execute("DELETE FROM lines")
        before = ""
        for number, (charge, text) in enumerate(rows):
            before = hash_of(before, text)
            connection.execute(
                "INSERT INTO lines VALUES (?, ?, ?, ?)", (number, charge, text, before)
            )
        connection.execute("UPDATE head SET line = ?, hash = ?", (len(rows) - 1, before))


def raised(sound, path, times, seed):
    """What else than an error of the package leaves a ledger whose lines were rewritten."""
    (content, _, first), draw, result = sound, random.Random(seed), set()
    for _ in range(times):
        path.write_bytes(content)
        lock_path(path).unlink(missing_ok=True)
        ledger = Ledger.open(path)
        resealed(path, draw)
        lock_path(path).unlink(missing_ok=True)
        acts = {
            "told": lambda ledger=ledger: told(ledger),
            "printed": lambda ledger=ledger: (repr(ledger), str(dp.ledger_report(ledger))),
            "verify": ledger.verify,
            "open": lambda: told(Ledger.open(path)),
            "void": lambda ledger=ledger: ledger.void(first, "it failed"),
            "charge": lambda ledger=ledger: ledger.charge(
                [PureEvent(1e-9)], adjacency="replace", claims=(CLAIM,)
            ),
        }
        for name, act in acts.items():
            try:
                act()
            except DPModelsError:
                continue
            except BaseException as error:
                result.add(f"{name}: {error!r}"[:200])
    return result


@pytest.mark.product
def test_a_ledger_that_was_rewritten_raises_errors_of_the_package(sound, tmp_path):
    """KeyError, TypeError and RecursionError left `register` and `charge`."""
    assert raised(sound, tmp_path / "study.ledger", 80, 3) == set()


@pytest.mark.slow
def test_thousands_of_ledgers_that_were_rewritten(sound, tmp_path, reduced):
    assert raised(sound, tmp_path / "study.ledger", 200 if reduced else 2000, 4) == set()


@pytest.mark.slow
def test_thousands_of_damaged_files(sound, tmp_path, reduced):
    survives(sound, tmp_path / "study.ledger", 500 if reduced else 10_000, 2)
