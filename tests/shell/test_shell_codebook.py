"""The commands on codebooks: what they print, write and return."""

import json

import pandas as pd
import pytest

import dpmodels as dp
from dpmodels.__main__ import main


@pytest.fixture
def job(tmp_path, monkeypatch):
    """A folder with a dictionary, and a Parquet file whose rows cannot be read."""
    monkeypatch.chdir(tmp_path)
    lines = ["name,type,min,max", "age,integer,0,110", "town,text,,", "day,date,2001-01-01,"]
    (tmp_path / "dictionary.csv").write_text("\n".join(lines))
    table = pd.DataFrame({"age": [7731.0] * 999, "town": ["a"] * 999, "day": [1] * 999})
    table["spoilt"] = pd.Timestamp("2001-01-01").as_unit("us")
    table["town"] = table.town.astype("large_string[pyarrow]")
    table.to_parquet(tmp_path / "rows.parquet")
    content = bytearray((tmp_path / "rows.parquet").read_bytes())
    footer = int.from_bytes(content[-8:-4], "little") + 8
    content[4:-footer] = bytes(len(content) - footer - 4)
    (tmp_path / "rows.parquet").write_bytes(content)
    return tmp_path


def test_a_draft_is_printed_and_written(job, capsys):
    assert main(["codebook", "draft", "dictionary.csv", "rows.parquet", "-o", "cb.json"]) == 2
    assert "variable 'day' has two entries that disagree: type" in capsys.readouterr().err
    assert main(["codebook", "draft", "dictionary.csv", "-o", "cb.json"]) == 0
    assert "Not known (?): 'town', 'day'" in capsys.readouterr().out
    assert dp.codebook.draft("cb.json") == dp.codebook.draft("dictionary.csv")
    before = (job / "cb.json").read_bytes()
    assert main(["codebook", "draft", "dictionary.csv", "-o", "cb.json"]) == 2
    assert main(["codebook", "draft", "dictionary.csv", "-o", "dictionary.csv", "--force"]) == 2
    assert main(["codebook", "draft", "dictionary.csv", "-o", "cb.json", "--force"]) == 0
    assert (job / "cb.json").read_bytes() == before


def test_a_check_reads_no_row_and_names_what_does_not_fit(job, capsys):
    book = {
        "age": {"type": "integer", "range": [0, 110]},
        "town": {"levels": "?"},
        "sex": {"levels": ["F", "M"]},
        "spoilt": {"levels": ["F", "M"]},
    }
    (job / "cb.json").write_text(json.dumps(book))
    assert main(["codebook", "check", "cb.json", "rows.parquet"]) == 1
    printed = capsys.readouterr().out.splitlines()
    assert [line.split() for line in printed[:5]] == [
        ["variable", "type", "declared", "column", "fits"],
        ["age", "integer", "0", "to", "110", "double", "yes"],
        ["town", "categorical", "?", "large_string", "no"],
        ["sex", "categorical", "F", "|", "M", "no"],
        ["spoilt", "categorical", "F", "|", "M", "timestamp[us]", "yes"],
    ]
    assert "town: its bounds or levels are not known" in printed[5]
    assert "sex: the data have no column 'sex'" in printed[6]
    # The file is one of pandas, which infers types from cells.
    assert printed[7] == "2 of 4 variables fit; no row was read"


def test_what_fits_has_status_zero(job, capsys):
    dp.codebook(age=(0, 110), town=["a", "b"]).save(job / "cb.json")
    assert main(["codebook", "check", "cb.json", "rows.parquet"]) == 0
    assert "2 of 2 variables fit" in capsys.readouterr().out


@pytest.mark.expensive
def test_a_table_that_carries_its_codebook_needs_no_word(job, capsys):
    rows = pd.DataFrame({"age": [41.0, 35.0, 62.0] * 99})
    dp.codebook(age=(0, 110)).write_parquet(rows, "own.parquet")
    words = ["pca", "~ age", "own.parquet", "--eps", "1", "--delta", "1e-6"]
    assert main(words) == 0
    assert "297 (public)" in capsys.readouterr().out
    assert main([word.replace("~ age", "~ aeg") for word in words]) == 2
    error = capsys.readouterr().err
    assert "'aeg'" in error
    assert "--codebook" not in error, "the table has a codebook"
    rows.to_parquet("bare.parquet")
    assert main([word.replace("own", "bare") for word in words]) == 2
    assert "no codebook" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["draft", "none.csv"], "there is no file 'none.csv'"),
        (["draft", "dictionary.csv", "-o", "nowhere/cb.json"], "its folder does not exist"),
        (["check", "none.json", "rows.parquet"], "there is no file 'none.json'"),
        (["check", "dictionary.csv", "none.parquet"], "there is no file 'none.parquet'"),
        (["check", "rows.parquet", "dictionary.csv"], ""),
    ],
)
def test_what_cannot_be_done_is_said(job, capsys, words, message):
    assert main(["codebook", *words]) == (2 if message else 1)
    assert message in capsys.readouterr().err


@pytest.mark.parametrize("name", ["none.json", "folder", "privat"])
def test_a_codebook_that_is_not_there_is_said_to_be_missing(job, capsys, name):
    assert main(["mean", "~ age", "rows.parquet", "--codebook", name, "--eps", "1"]) == 2
    error = capsys.readouterr().err
    assert f"there is no file {name!r} to read a codebook from" in error
    assert ("did you mean 'private'?" in error) == (name == "privat")


@pytest.fixture
def table(tmp_path, monkeypatch):
    """A codebook, and rows of which some do not fit it."""
    monkeypatch.chdir(tmp_path)
    rows = {"age": [41, 130, None, "old"], "sex": ["F", "M", "X", "M"], "id": [1, 1, 2, None]}
    pd.DataFrame(rows).to_csv("rows.csv", index=False)
    dp.codebook(age=(0, 110), sex=["F", "M"], person="id").save("cb.json")
    return tmp_path


def test_rows_are_counted_by_reason_for_the_curator_alone(table, capsys):
    assert main(["codebook", "check", "--rows", "cb.json", "rows.csv"]) == 1
    printed = capsys.readouterr().out
    lines = printed.splitlines()
    assert lines[0] == "Counted from the rows without noise: for the curator only, do not pass on."
    assert [line.split() for line in lines[1:5]] == [
        ["variable", "missing", "not", "readable", "unknown", "level", "outside", "bounds", "fits"],
        ["age", "1", "1", "0", "1", "1", "of", "4"],
        ["sex", "0", "0", "1", "0", "3", "of", "4"],
        ["id", "1", "0", "0", "0", "3", "of", "4"],
    ]
    assert "1 of 4 rows fit in every variable." in printed
    assert "old" not in printed
    assert "130" not in printed


def test_rows_that_all_fit_have_status_zero(table, capsys):
    pd.DataFrame({"age": [41, 50], "sex": ["F", "M"], "id": [1, 2]}).to_parquet("good.parquet")
    assert main(["codebook", "check", "cb.json", "good.parquet", "--rows"]) == 0
    assert "2 of 2 rows fit in every variable." in capsys.readouterr().out


def test_a_table_in_which_nothing_fits_is_said_to_be_one(table, capsys):
    pd.DataFrame({"age": [990, 991], "sex": ["w", "m"], "id": [1, 2]}).to_parquet("bad.parquet")
    assert main(["codebook", "check", "cb.json", "bad.parquet", "--rows"]) == 1
    assert "0 of 2 rows fit in every variable." in capsys.readouterr().out


def test_what_cannot_be_read_is_named_and_the_rest_is_counted(table, capsys):
    book = json.loads((table / "cb.json").read_text()) | {"town": {"levels": "?"}}
    (table / "draft.json").write_text(json.dumps(book))
    assert main(["codebook", "check", "draft.json", "rows.csv", "--rows"]) == 1
    printed = capsys.readouterr().out
    assert "town: the data have no column 'town'" in printed
    assert "1 of 4 rows fit in every variable that could be read." in printed


def test_a_column_of_ids_that_is_missing_is_named(table, capsys):
    pd.DataFrame({"age": [41, 50], "sex": ["F", "M"]}).to_parquet("no_id.parquet")
    assert main(["codebook", "check", "cb.json", "no_id.parquet", "--rows"]) == 1
    assert "id: missing, or there twice" in capsys.readouterr().out
