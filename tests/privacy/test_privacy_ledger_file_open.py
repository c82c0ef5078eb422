"""Opening a ledger by any path an office may give it."""

import os

import pytest

from dpmodels.errors import ArgumentError, LedgerError
from dpmodels.privacy import Ledger, PureEvent


@pytest.mark.parametrize(
    "name", ["a b#c?d%41&e=f", "müß€", "C:\\data\\x", os.fsdecode(b"bytes \xff"), "'\n;"]
)
def test_any_name_of_a_file(tmp_path, monkeypatch, name):
    (tmp_path / name).mkdir()
    monkeypatch.chdir(tmp_path / name)
    ledger = Ledger.open(name + ".ledger", eps=1.0, new=True)
    monkeypatch.chdir(tmp_path)
    label = "\ud800 \0 " + "x" * 9_000
    ledger.charge([PureEvent(0.5)], adjacency="replace", label=label)
    assert Ledger.open(tmp_path / name / (name + ".ledger")).spent.amount == 0.5
    assert len(repr(ledger).encode("utf-8", "replace")) > 100


@pytest.mark.parametrize("name", ["a\0b", ""])
def test_what_names_no_file_is_refused(name):
    with pytest.raises(ArgumentError, match="not the name of a file"):
        Ledger.open(name, eps=1.0, new=True)


def test_a_name_that_is_too_long_is_refused(tmp_path):
    with pytest.raises(LedgerError, match="name too long"):
        Ledger.open(tmp_path / ("x" * 300), eps=1.0, new=True)
    with pytest.raises(LedgerError, match="does not exist"):
        Ledger.open(tmp_path / ("x" * 300))


def test_a_label_of_another_type_is_written_as_text(tmp_path):
    ledger = Ledger.open(tmp_path / "study.ledger", eps=1.0, new=True)
    for label in (5, None, b"x", ("a", 1)):
        ledger.charge([PureEvent(0.1)], adjacency="replace", label=label)
    assert ledger.register()["label"].tolist() == ["5", "None", "b'x'", "('a', 1)"]
    assert len(repr(ledger).splitlines()) == 6
