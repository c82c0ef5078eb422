"""Every verb is a command, and each of its words an option, or named as left out."""

import csv
import json
import math
import shlex
import warnings
from functools import wraps

import numpy as np
import pandas as pd
import pytest

import dpmodels as dp
from dpmodels.__main__ import main
from dpmodels.shell.command_options import SHARED_HELP, dest
from dpmodels.shell.commands import commands, parser
from dpmodels.verbs import signature

VERBS = {name: getattr(dp, f"dp_{name}") for name in (*dir(dp.call), "survey")}
# By which option a word is said that no option has the name of.
ELSEWHERE = {"formula": "formula", "data": "data", "answers": "data", "codebook": "codebook"}
ELSEWHERE |= {"budget": "rho", "ledger": "ledger"}


@pytest.fixture
def job(tmp_path, monkeypatch):
    """Stand in a folder with fifty rows and a codebook."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    rows = pd.DataFrame({"a": rng.random(50), "b": rng.random(50), "g": ["x", "y"] * 25})
    rows["t"] = np.arange(50) % 12
    rows.to_csv("data.csv", index=False)
    dp.codebook(a=(0, 1), b=(0, 1), g=["x", "y"], t=dp.Integer(0, 11)).save("cb.json")
    return tmp_path


def words(verb, formula, *options, eps="1"):
    return [verb, formula, "data.csv", "--codebook", "cb.json", "--eps", eps, *options]


def own_parser(name):
    """A command's parser with its words."""
    (subparsers,) = (action for action in parser()._actions if action.dest == "command")
    return subparsers.choices[name].populate()


@pytest.mark.parametrize("name", VERBS)
def test_each_word_of_a_verb_is_an_option_or_told_to_be_left_out(name):
    parser_of_verb = own_parser(name)
    options = {action.dest for action in parser_of_verb._actions}
    left = parser_of_verb.epilog.partition("Only in Python: ")[2].partition(".")[0].split(", ")
    for word in signature(VERBS[name]):
        assert (dest(word) in options or ELSEWHERE.get(word) in options) != (word in left), word
    assert all(action.help for action in parser_of_verb._actions)


@pytest.mark.parametrize("name", VERBS)
def test_the_example_of_a_verb_is_one_of_its_command(name):
    (line,) = (
        line for line in own_parser(name).epilog.splitlines() if line.startswith("  dpmodels")
    )
    words = parser().parse_args(shlex.split(line)[1:])
    assert (words.command, words.data) == (name, "people.csv")
    assert "~" in words.formula or name in ("bounds", "levels")


def test_every_verb_of_the_package_is_a_command():
    names = {name.removeprefix("dp_") for name in dp.__all__ if name.startswith("dp_")}
    assert set(VERBS) == names
    assert names <= set(commands())


@pytest.mark.parametrize(
    ("verb", "options", "expected"),
    [
        ("quantile", ("--probs", "0.25,0.5", "--level", "none"), {"probs": (0.25, 0.5)}),
        ("quantile", ("--probs", "0.4"), {"probs": 0.4}),
        ("hist", ("--breaks", "0,0.5,1"), {"breaks": (0, 0.5, 1)}),
        ("hist", ("--breaks", "2001-01-01,2002-01-01"), {"breaks": ("2001-01-01", "2002-01-01")}),
        ("series", ("--time", "t", "--by", "4"), {"time": "t", "by": 4}),
        ("series", ("--time", "t", "--by", "week"), {"time": "t", "by": "week"}),
        ("select", ("--no-values", "--k", "3"), {"values": False, "k": 3}),
        ("select", ("--values", "0.5"), {"values": 0.5}),
        ("pca", ("--scale", "none", "--no-center", "--row-norm", "unit"), {"row_norm": "unit"}),
        ("pca", ("--row-norm", "2"), {"row_norm": 2.0}),
        ("lm", ("--weights", "none", "--no-person"), {"weights": "none", "person": False}),
        ("glm", ("--family", "poisson", "--no-inference"), {"inference": False}),
        ("summary", ("--tests", "--rows", "mean"), {"tests": True, "rows": "mean"}),
        ("mean", ("--rows", "2", "--adjacency", "add-remove"), {"rows": 2}),
    ],
)
def test_words_are_read_by_their_annotations(verb, options, expected, job, monkeypatch, capsys):
    recorded = {}

    def spy(formula, data, **words):
        recorded.update(words)
        raise dp.errors.ArgumentError("seen")

    monkeypatch.setattr(f"{VERBS[verb].__module__}.dp_{verb}", wraps(VERBS[verb])(spy))
    assert main(words(verb, "~ a", *options)) == 2
    assert "ArgumentError: seen" in capsys.readouterr().err
    assert recorded.pop("eps") == 1.0
    assert recorded.items() >= expected.items()
    assert len(recorded) == len([word for word in options if word.startswith("--")]) + 1


def test_json_is_strict_and_has_what_was_paid_for_it(job, capsys):
    options = ("--json", "fit.json", "--csv", "fit.csv", "--save", "fit.nc")
    assert main(words("lm", "a ~ b + g", *options, "--delta", "1e-6")) == 0

    def never(constant):
        raise AssertionError(constant)

    stored = json.loads((job / "fit.json").read_text(), parse_constant=never)
    fit = dp.load("fit.nc")
    assert stored["guarantee"] == "eps = 1, delta = 1e-06"
    assert (stored["formula"], stored["simulated"]) == (fit.call.formula, False)
    assert len(stored["digest"]) == 64
    assert math.isnan(fit.glance()["rho"].iloc[0])
    assert stored["glance"]["rho"] is None
    assert [row["estimate"] for row in stored["tidy"]] == fit.params.tolist()
    with (job / "fit.csv").open() as file:
        assert [row["term"] for row in csv.DictReader(file)] == fit.params.index.tolist()


def test_a_ledger_is_charged_and_has_the_digest_that_json_tells(job, capsys):
    assert main(["ledger", "s.ledger", "--eps", "1"]) == 0
    assert main(words("mean", "~ a", "--ledger", "s.ledger", "--json", "a.json", eps="0.5")) == 0
    digest = json.loads((job / "a.json").read_text())["digest"]
    assert dp.Ledger.open("s.ledger").register()["digest"].tolist() == [digest]
    assert main(words("mean", "~ a", "--ledger", "s.ledger", eps="0.6")) == 2
    assert "dpmodels: LedgerError: " in capsys.readouterr().err


def test_randomised_answers_name_their_devices(job, capsys):
    arguments = ["survey", "~ g", "data.csv", "--device", "g=x,y:1.5"]
    assert main(arguments) == 0
    assert "eps = 1.5" in capsys.readouterr().out
    assert main([*arguments[:-1], "g=x:1.5"]) == 2
    assert "--device 'g=x:1.5'" in capsys.readouterr().err


def test_a_file_before_the_formula_is_answered_without_either(job, capsys):
    """The file may be a URL with a password."""
    url = "postgresql://me:secret@host/db?table=t"
    assert main(["mean", url, "a ~ g", "--eps", "1"]) == 2
    printed = capsys.readouterr().err
    assert 'write the formula first, such as dpmodels mean "y ~ a" table.csv' in printed
    assert "secret" not in printed


def test_an_option_that_is_not_known_comes_before_arguments_that_are_missing(capsys):
    for command in (["lm"], ["etable"], ["codebook", "draft"]):
        with pytest.raises(SystemExit):
            main([*command, "--hlp", "--", "--x"])
        error = capsys.readouterr().err
        assert "error: unrecognized arguments: --hlp (did you mean '--help'" in error


@pytest.mark.parametrize(
    ("options", "reported"),
    [
        (("--del", "1e-6"), "unrecognized arguments: --del (did you mean '--delta'?)"),
        (("more.csv",), "unrecognized arguments: more.csv"),
        (("--ncomp", "two"), "--ncomp: 'two' is not valid; expected a whole number, such as 5"),
        (("--rho", "x"), "--rho: 'x' is not valid; expected a number, such as 0.5"),
        (("--person",), "argument --person: expected one argument"),
    ],
)
def test_no_word_is_guessed(job, options, reported, capsys):
    with pytest.raises(SystemExit) as stop:
        main(words("pca", "~ a + b", *options))
    assert stop.value.code == 2
    error = capsys.readouterr().err
    assert reported in error
    assert "usage: dpmodels pca FORMULA FILE [options]" in error


@pytest.mark.parametrize(
    ("error", "reported"),
    [(BrokenPipeError(), ""), (OSError(28, "No space"), "nothing was printed")],
)
def test_output_that_cannot_be_printed_loses_no_file(error, reported, job, monkeypatch, capfd):
    def closed(*_, file=None, **__):
        if file is None:
            raise error
        file.write("nothing was printed")

    monkeypatch.setattr("builtins.print", closed)
    monkeypatch.setattr("dpmodels.shell.outputs.os.dup2", lambda *_: None)
    assert main(words("mean", "~ a", "--csv", "a.csv")) == 0
    assert (job / "a.csv").is_file()
    assert capfd.readouterr().err == reported


@pytest.mark.product
def test_what_was_found_is_a_codebook_for_the_next_command(job):
    rows = pd.read_csv("data.csv")
    pd.concat([rows] * 40).to_csv("data.csv", index=False)
    assert main(words("bounds", "~ a", "--found", "found.json", eps="3")) == 0
    assert dp.Codebook.load("found.json")["g"].levels == ("x", "y")
    assert main(["mean", "~ a", "data.csv", "--codebook", "found.json", "--eps", "1"]) == 0


def test_an_interruption_is_told_without_a_traceback(job, monkeypatch, capsys):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("dpmodels.shell.verbs.outputs.require_outputs", interrupted)
    assert main(words("mean", "~ a")) == 130
    assert "stays spent" in capsys.readouterr().err


def test_a_warning_is_said_in_one_line(job, capsys):
    with warnings.catch_warnings():
        warnings.simplefilter("always", dp.errors.BudgetWarning)
        pd.read_csv("data.csv").to_parquet("data.parquet")
        arguments = words("lm", "a ~ b", "--delta", "1e-6", eps="0.1")
        assert main(["data.parquet" if word == "data.csv" else word for word in arguments]) == 0
    assert capsys.readouterr().err.startswith("dpmodels: BudgetWarning: ")


def test_what_is_missing_is_said_in_words_of_the_shell(job, capsys):
    budget, book = ["--eps", "1"], ["--codebook", "cb.json"]
    for arguments, lacking in (
        (budget, "knowledge and never from the rows.\nWrite --codebook cb.json"),
        (book, "write --eps 1"),
        ([*book, *budget, "--rho", "0.1"], "leave out --eps and --delta, or --rho"),
    ):
        assert main(["mean", "~ a", "data.csv", *arguments]) == 2
        assert lacking in capsys.readouterr().err
    assert main(["mean", "~ aa", "data.csv", *book, *budget]) == 2
    assert "--codebook" not in capsys.readouterr().err


def test_a_misspelt_option_of_the_program_is_answered_by_the_nearest(capsys):
    with pytest.raises(SystemExit):
        main(["--verson"])
    assert "(did you mean '--version'?)" in capsys.readouterr().err


def test_only_what_is_said_of_persons_names_them():
    naming = [name for name, text in SHARED_HELP.items() if "person" in text]
    assert naming == ["person", "rows"]
