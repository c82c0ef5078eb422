"""The command line keeps a ledger."""

import numpy as np
import pandas as pd
import pytest

import dpmodels as dp
from dpmodels.__main__ import main


@pytest.fixture
def run(tmp_path, monkeypatch, capsys):
    """Run a command in a folder with a table; return status, output and errors."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    pd.DataFrame({"a": rng.random(400), "b": rng.random(400)}).to_csv("data.csv", index=False)
    dp.codebook(a=(0, 1), b=(0, 1)).save("cb.json")

    def command(*words):
        status = main([str(word) for word in words])
        printed = capsys.readouterr()
        return status, printed.out, printed.err

    return command


PCA = ("pca", "~ a + b", "data.csv", "--codebook", "cb.json", "--delta", "1e-6", "--eps")


@pytest.mark.product
def test_a_study_from_the_shell(run, tmp_path):
    status, printed, _ = run("ledger", "study.ledger", "--eps", 2, "--delta", 1e-6)
    assert status == 0
    assert "Privacy ledger study.ledger" in printed
    status, printed, _ = run(*PCA, 1, "--ledger", "study.ledger")
    assert status == 0
    assert "1.00 of 2.00 eps spent (GDP);" in printed
    assert "line 1 of study.ledger" in printed
    status, printed, error_text = run(*PCA, 1.9, "--ledger", "study.ledger")
    assert (status, printed) == (2, "")
    assert "LedgerError" in error_text
    status, printed, _ = run("ledger", "study.ledger", "--html", "r.html", "--export", "e.jsonl")
    assert status == 0
    assert "1 dp_pca ~ a + b" in printed
    assert "released" in (tmp_path / "r.html").read_text()
    assert len((tmp_path / "e.jsonl").read_text().splitlines()) == 3
    assert dp.Ledger.open("study.ledger").register()["state"].tolist() == ["released"]


@pytest.mark.parametrize(
    ("words", "reported"),
    [
        (("ledger", "none.ledger"), "to create a ledger write new=True"),
        ((*PCA, 1, "--ledger", "none.ledger"), "in the shell dpmodels ledger FILE --eps 2"),
        (("ledger", "s.ledger", "--eps", 3), "was opened with the guarantee"),
        (("ledger", "s.ledger", "--html", "s.ledger", "--force"), "give another path"),
        (("ledger", "s.ledger", "--export", "s.ledger", "--force"), "give another path"),
        ((*PCA, 1, "--ledger", "s.ledger", "--save", "s.ledger", "--force"), "give another path"),
        (("ledger", "data.csv"), "not a ledger"),
    ],
)
def test_mistakes(run, words, reported):
    assert run("ledger", "s.ledger", "--eps", 2, "--delta", 1e-6)[0] == 0
    status, printed, error = run(*words)
    assert status == 2
    assert reported in error
    assert printed == ""
    assert dp.Ledger.open("s.ledger").entries == ()


def test_a_site_charges_its_ledger(run):
    run("ledger", "s.ledger", "--eps", 2, "--delta", 1e-6)
    words = ("--out", "a.json", "--site", "A", "--session", "7", "--protocol", "full")
    status, _, _ = run("site", *PCA[1:], 1, *words, "--ledger", "s.ledger")
    assert status == 0
    (entry,) = dp.Ledger.open("s.ledger").entries
    assert entry.claims == (("session", "7, site A"),)


@pytest.mark.product
def test_a_study_of_persons(run):
    rng = np.random.default_rng(1)
    rows = {"id": np.arange(400) // 4, "a": rng.random(400), "b": rng.random(400)}
    pd.DataFrame(rows).to_csv("data.csv", index=False)
    unit = ("--person", "id", "--rows", 4)
    status, printed, _ = run("ledger", "study.ledger", "--eps", 2, "--delta", 1e-6, *unit)
    assert (status, "one person (at most 4" in printed) == (0, True)
    words = (*PCA, 0.5, "--ledger", "study.ledger", "--subset", "a < .9")
    status, printed, _ = run(*words, *unit)
    assert (status, "one person (at most 4" in printed) == (0, True)
    status, printed, _ = run(*words, "--person", "id", "--rows", "mean")
    assert (status, "one person (all rows)" in " ".join(printed.split())) == (0, True)
    status, _, error_text = run(*words)
    assert (status, "write person='id', rows=4" in error_text) == (2, True)
