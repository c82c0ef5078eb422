"""The printed register of a ledger."""

import pytest

import dpmodels as dp
from dpmodels.errors import ArgumentError, LedgerError
from dpmodels.privacy import PureEvent

BOOK = dp.codebook(age=(0, 100))
ROWS = {"age": [20, 40, 60] * 900}


def test_what_was_charged_and_what_came_of_it(tmp_path):
    ledger = dp.Ledger.open(tmp_path / "study.ledger", eps=2.0, new=True)
    fit = dp.dp_mean("~ age", ROWS, codebook=BOOK, eps=0.5, ledger=ledger)
    ledger.charge([PureEvent(0.25)], adjacency="replace", label="by hand\n9 \x1b[31m")
    text = str(dp.ledger_report(ledger))
    head, row, second = (
        next(line for line in text.splitlines() if line.startswith(start))
        for start in ("Charge ", "1 dp_mean ~ age", "2 by hand 9 ")
    )
    assert head.split()[1:5] == ["total", "eps", "state", "mechanism"]
    assert row.split()[4:7] == ["0.500", "released", fit.release.info.name]
    assert row.split()[-1] in fit.call.ledger
    assert "charged" in second
    assert "\x1b" not in text
    assert "2, 1 unfinished" in text
    assert ledger.head[:12] in text
    assert "<table" in dp.ledger_report(ledger).as_page()


def test_an_empty_ledger_and_none():
    assert "0, 0 unfinished" in str(dp.ledger_report(dp.Ledger(eps=1.0)))
    for nothing in (None, "study.ledger"):
        with pytest.raises(ArgumentError, match="ledger="):
            dp.ledger_report(nothing)


def test_a_changed_line_is_told_before_anything_is_printed(tmp_path):
    import sqlite3

    ledger = dp.Ledger.open(tmp_path / "study.ledger", eps=2.0, new=True)
    ledger.charge([PureEvent(0.25)], adjacency="replace", label="one")
    connection = sqlite3.connect(tmp_path / "study.ledger")
    connection.execute("UPDATE lines SET text = replace(text, 'one', 'two')")
    connection.commit()
    connection.close()
    with pytest.raises(LedgerError, match="does not follow"):
        dp.ledger_report(ledger)
