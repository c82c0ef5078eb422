"""Tables of databases in commands and study files; passwords are refused there."""

import pytest
from postgres_server import to_sqlite

import dpmodels as dp
from dpmodels.__main__ import main

URL = "postgresql://ana:sw0rdfish@localhost:1/clinic?table=visits"
STUDY = """
[study]
data = "{data}"
codebook = "cb.json"
out = "out"
eps = 1.0

[[release]]
name = "mean"
verb = "mean"
formula = "~ x"
eps = 0.5
plots = false
"""


@pytest.fixture
def folder(tmp_path):
    dp.codebook(x=(0, 1)).save(tmp_path / "cb.json")
    (tmp_path / "data #1").mkdir()
    to_sqlite(tmp_path / "data #1" / "rows.db", "visits", {"x": [0.5] * 900})
    return tmp_path


def test_a_verb_reads_a_table(folder, capsys, monkeypatch):
    monkeypatch.chdir(folder / "data #1")
    data = "sqlite:///rows.db?table=visits"
    assert main(["mean", "~ x", data, "--codebook", "../cb.json", "--eps", "1"]) == 0
    assert "~ x" in capsys.readouterr().out


@pytest.mark.product
def test_a_study_reads_a_table_beside_its_file(folder, capsys):
    data = "sqlite:///data%20%231/rows.db?table=visits"
    (folder / "study.toml").write_text(STUDY.format(data=data))
    assert main(["run", str(folder / "study.toml")]) == 0
    assert (folder / "out" / "mean.json").exists()


@pytest.mark.guarding
@pytest.mark.parametrize(
    "command",
    [
        ["mean", "~ x", URL, "--codebook", "cb.json", "--eps", "1"],
        ["codebook", "draft", URL],
        ["codebook", "check", "cb.json", URL],
        ["run", "study.toml"],
        ["plan", "study.toml"],
    ],
)
def test_a_password_is_refused_and_not_repeated(command, folder, capsys, monkeypatch):
    monkeypatch.chdir(folder)
    (folder / "study.toml").write_text(STUDY.format(data=URL))
    with pytest.raises(SystemExit) as stopped:
        raise SystemExit(main(command))
    text = "".join(capsys.readouterr())
    assert stopped.value.code == 2
    assert "PGPASSWORD" in text
    assert "sw0rdfish" not in text
