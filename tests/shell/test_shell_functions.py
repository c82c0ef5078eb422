"""Functions that read no row are commands by their signatures."""

from functools import wraps

import pytest

import dpmodels as dp
from dpmodels.__main__ import main


@pytest.fixture
def job(tmp_path, monkeypatch):
    """Stand in a folder with two saved results and their ledger."""
    monkeypatch.chdir(tmp_path)
    cb = dp.codebook(a=(0, 1), b=(0, 1))
    cb.save("cb.json")
    rows = {"a": [0.2, 0.4, 0.9] * 200, "b": [0.1, 0.7, 0.4] * 200}
    ledger = dp.Ledger.open("s.ledger", eps=4.0, delta=1e-6, new=True)
    for name in ("one", "two"):
        fit = dp.dp_lm("a ~ b", rows, codebook=cb, eps=1.0, delta=1e-6, ledger=ledger)
        fit.save(f"{name}.nc")
    return tmp_path


def test_saved_results_stand_side_by_side(job, capsys):
    options = ("--digits", "3", "--stats", "nobs,r_squared", "--labels", "--html", "t.html")
    assert main(["etable", "one.nc", "two.nc", *options]) == 0
    printed = capsys.readouterr().out
    assert all(head in printed for head in ("side by side", "(1)", "(2)", "Intercept"))
    assert (job / "t.html").read_text().startswith("<!DOCTYPE html>")
    assert main(["etable", "one.nc", "--html", "one.nc", "--force"]) == 2
    assert "also read or written" in capsys.readouterr().err


def test_no_numbers_of_the_whole_are_an_empty_list(job, capsys):
    assert main(["etable", "one.nc", "--stats", "[]"]) == 0
    assert "Observations" not in capsys.readouterr().out


@pytest.mark.product
def test_a_report_for_disclosure_is_of_results_and_ledgers(job, capsys):
    arguments = ["disclosure", "s.ledger", "one.nc", "--title", "Wages", "--no-pictures"]
    assert main(arguments) == 0
    printed = capsys.readouterr().out
    assert printed.startswith("# Wages")
    assert "2 charges" in printed
    assert main([*arguments, "--html", "d.html", "--markdown", "d.md"]) == 0
    assert (job / "d.html").read_text().count("<!DOCTYPE html>") == 1
    assert (job / "d.md").read_text() == printed.removesuffix("\n")
    assert main([*arguments, "--html", "s.ledger", "--force"]) == 2
    assert "also read or written" in capsys.readouterr().err


@pytest.mark.product
def test_three_commands_lead_from_a_table_on_disk_to_a_report(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    lines = ["a,g", *(f"{i / 50},{'xy'[i % 2]}" for i in range(50))]
    (tmp_path / "people.csv").write_text("\n".join(lines))
    (tmp_path / "dictionary.csv").write_text("name,type,min,max,values\na,number,0,1,\ng,,,,x|y\n")
    arguments = ["--codebook", "dictionary.csv", "--eps", "1", "--ledger", "s.ledger"]
    assert main(["ledger", "s.ledger", "--eps", "1"]) == 0
    assert main(["mean", "a ~ g", "people.csv", *arguments, "--save", "fit.nc"]) == 0
    report = ["--title", "Means", "--author", "A. Analyst", "--html", "report.html"]
    assert main(["disclosure", "s.ledger", "fit.nc", *report]) == 0
    page = (tmp_path / "report.html").read_text()
    assert all(message in page for message in ("A. Analyst", "eps = 1", "Signature"))


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (("reading", "--eps", "0.1,1"), "eps = 0.1"),
        (("reading", "--rho", "0.5", "--person", "id"), "rho = 0.5"),
        (("cite", "--format", "bibtex"), "@software{dpmodels"),
    ],
)
def test_what_needs_no_file(words, text, capsys):
    assert main(list(words)) == 0
    assert text in capsys.readouterr().out


def test_power_is_asked_by_its_own_words(monkeypatch, capsys):
    recorded = {}

    def spy(formula, **words):
        recorded.update(words, formula=formula)
        raise dp.errors.ArgumentError("seen")

    monkeypatch.setattr(dp, "power", wraps(dp.power)(spy))
    words = ["power", "~ a", "--verb", "mean", "--codebook", "cb.json", "--eps", "1,2"]
    assert main([*words, "--n", "100", "--effect", "sample"]) == 2
    assert "dpmodels: ArgumentError: seen" in capsys.readouterr().err
    expected = {"verb": "mean", "codebook": "cb.json", "eps": (1.0, 2.0), "n": 100}
    assert recorded == {"formula": "~ a", **expected, "effect": "sample"}


@pytest.mark.parametrize("words", [("etable", "no.nc"), ("disclosure", "no.ledger")])
def test_files_that_are_not_there_are_named(words, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(list(words)) == 2
    assert words[1] in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_help_says_what_a_command_does_with_its_files_and_options(capsys):
    for name in ("etable", "disclosure"):
        with pytest.raises(SystemExit):
            main([name, "--help"])
    etable, disclosure = " ".join(capsys.readouterr().out.split()).split("usage: ")[1:]
    assert "nothing is charged" in etable
    assert "ledger to charge" not in etable
    assert "--statistic std_error|noise_sd|statistic|p_value|noise_int|conf_int,...|none" in etable
    assert "--keep TEXT,..." in etable
    assert "turn off: rows state eps" in etable
    assert "besides the printed report: --html FILE the report as a web page" in disclosure
    assert "(default: )" not in etable + disclosure
