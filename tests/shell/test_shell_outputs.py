"""Files of the command line: checked before rows are read, and never over what is read."""

import csv
import io
from functools import wraps
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import dpmodels as dp
from dpmodels.__main__ import main
from dpmodels.shell.outputs import as_csv


@pytest.fixture
def job(tmp_path):
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"a": rng.uniform(0, 1, 400), "b": rng.normal(size=400)})
    table.to_parquet(tmp_path / "data.parquet")
    table.to_csv(tmp_path / "data.csv", index=False)
    dp.codebook(a=(0, 1), b=(-3, 3)).save(tmp_path / "cb.json")
    return tmp_path


def words(job, data, *options):
    arguments = ["pca", "~ a + b", str(job / data), "--codebook", str(job / "cb.json")]
    return [*arguments, "--eps", "1", "--delta", "1e-6", *options]


def snapshot(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


@pytest.mark.parametrize("start", ["=", "+", "@", "\t", " =", "\uff1d"])
def test_text_that_a_spreadsheet_would_run_is_quoted(start):
    level = f"{start}cmd|' /C calc'!A0"
    fit = dp.dp_table("~ g", {"g": [level] * 9}, codebook=dp.codebook(g=[level, "b"]), eps=1.0)
    cells = [line[0] for line in csv.reader(io.StringIO(as_csv(fit)))]
    assert cells == ["g", f"'{level}", "b"]


def test_a_file_is_written_over_only_by_force(job, capsys):
    target = job / "report.txt"
    target.write_text("mine")
    before = snapshot(job)
    assert main(words(job, "data.csv", "--text", str(target))) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert "--text" in err
    assert "already exists" in err
    assert "--force" in err
    assert snapshot(job) == before
    assert main(words(job, "data.csv", "--text", str(target), "--force")) == 0
    assert target.read_text() == capsys.readouterr().out


def test_all_notes_are_printed_and_written_if_asked_for(job, capsys):
    target = job / "report.txt"
    assert main(words(job, "data.csv", "--notes", "all", "--text", str(target))) == 0
    printed = capsys.readouterr().out
    assert "Source: rounds" in printed
    assert target.read_text() == printed
    assert main(words(job, "data.csv")) == 0
    assert 'summary(notes="all")' in capsys.readouterr().out


@pytest.mark.parametrize("name", ["data.csv", "hard.csv", "link.csv", "cb.json", "around/data.csv"])
@pytest.mark.parametrize("option", ["--text", "--html", "--save"])
def test_what_is_read_is_not_written_over_even_by_force(job, option, name, capsys):
    (job / "hard.csv").hardlink_to(job / "data.csv")
    (job / "link.csv").symlink_to(job / "data.csv")
    (job / "around").symlink_to(job)
    before = snapshot(job)
    assert main(words(job, "data.csv", option, str(job / name), "--force")) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert f"{option} " in err
    assert snapshot(job) == before


def test_a_part_of_a_pattern_and_one_file_twice_are_refused(job, capsys):
    target = str(job / "report")
    for options in (
        ["--html", str(job / "data.parquet"), "--force"],
        ["--html", target, "--save", target],
    ):
        assert main(words(job, "data.p*", *options)) == 2
        assert "also read or written" in capsys.readouterr().err
    assert not Path(target).exists()


def test_a_folder_that_takes_no_files_is_noticed_before_rows(job, capsys, monkeypatch):
    def read_only(*arguments, **options):
        raise OSError(30, "Read-only file system")

    monkeypatch.setattr("dpmodels.atomic_files.os.open", read_only)
    fails_if_called = wraps(dp.dp_pca)(lambda *_, **__: pytest.fail("asked for rows"))
    monkeypatch.setattr(dp, "dp_pca", fails_if_called)
    assert main(words(job, "data.csv", "--save", str(job / "fit.nc"))) == 2
    assert "takes no files" in capsys.readouterr().err


def test_what_can_be_written_is_where_another_file_fails(job, capsys, monkeypatch):
    sizes = []

    def full(descriptor, start, size):
        sizes.append(size)
        if len(sizes) == 2:
            raise OSError(28, "No space left on device")

    monkeypatch.setattr("dpmodels.atomic_files.os.posix_fallocate", full)
    text, saved = job / "a.txt", job / "a.nc"
    assert main(words(job, "data.csv", "--text", str(text), "--save", str(saved))) == 2
    out, err = capsys.readouterr()
    assert "Importance of components" in out
    assert "--save" in err
    assert "printed above" in err
    assert text.read_text() == out
    assert not saved.exists()


def test_letters_are_not_written_over_by_their_report(job, capsys):
    options = ["--out", str(job / "A.json"), "--site", "A", "--session", "s", "--protocol", "full"]
    assert main(["site", *words(job, "data.csv", *options)[1:]]) == 0
    before = snapshot(job)
    report = ["--html", str(job / "A.json"), "--force"]
    assert main(["combine", str(job / "A.json"), *report]) == 2
    assert "also read or written" in capsys.readouterr().err
    assert snapshot(job) == before
