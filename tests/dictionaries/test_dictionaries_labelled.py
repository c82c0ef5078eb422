"""Labels of SPSS, Stata and SAS: read apart, without the rows, and damaged ones refused."""

import pandas as pd
import pyreadstat
import pytest

import dpmodels as dp
from dpmodels.dictionaries.table import READERS
from dpmodels.errors import CodebookError

ROWS = pd.DataFrame(
    {
        "age": [41.0, 35.0, 62.0],
        "sex": [1.0, 2.0, 2.0],
        "wage": [9.5, 12.0, -9.0],
        "day": pd.to_datetime(["2001-01-01"] * 3),
        "town": ["a", "b", "c"],
    }
)
LABELS = {"age": "age at interview"}
VALUES = {"sex": {1: "male", 2: "female", 9: "refused"}, "wage": {-9: "refused"}}


@pytest.fixture(scope="module")
def sav(tmp_path_factory):
    path = tmp_path_factory.mktemp("labels") / "study.sav"
    pyreadstat.write_sav(
        ROWS,
        path,
        column_labels=LABELS,
        variable_value_labels=VALUES,
        missing_ranges={"sex": [9], "wage": [{"lo": -9, "hi": -7}]},
        variable_measure={"sex": "ordinal", "wage": "scale"},
    )
    return path


@pytest.mark.expensive
def test_labels_and_missing_values_of_spss_are_read(sav):
    draft = dp.codebook.draft(sav)
    assert draft["sex"].variable("sex") == dp.Categorical(
        {1: "male", 2: "female"}, missing=[9], ordered=True
    )
    assert draft["wage"].missing == (-9, -8, -7)
    assert [entry.kind for entry in draft.values()] == [
        "numeric",
        "categorical",
        "numeric",
        "date",
        "categorical",
    ]
    assert draft["age"].label == "age at interview"
    assert draft.unknown == ("age", "wage", "day", "town")


@pytest.mark.expensive
def test_stata_says_the_same_but_for_missing_values(tmp_path):
    path = tmp_path / "study.dta"
    pyreadstat.write_dta(ROWS, path, column_labels=LABELS, variable_value_labels=VALUES)
    draft = dp.codebook.draft(path)
    assert draft["sex"].labels == ("male", "female", "refused")
    assert draft["day"].kind == "date"
    assert draft.unknown == ("age", "wage", "day", "town")


@pytest.mark.product
def test_what_the_rows_hold_changes_nothing(sav, tmp_path):
    """Other values and twice as many; the bytes of the rows are not even looked at."""
    second = pd.concat([ROWS, ROWS + ROWS.iloc[:, :3]]).assign(town="z", day=ROWS.day[0])
    pyreadstat.write_sav(
        second,
        tmp_path / "study.sav",
        column_labels=LABELS,
        variable_value_labels=VALUES,
        missing_ranges={"sex": [9], "wage": [{"lo": -9, "hi": -7}]},
        variable_measure={"sex": "ordinal", "wage": "scale"},
    )
    assert dp.codebook.draft(tmp_path / "study.sav") == dp.codebook.draft(sav)


@pytest.mark.expensive
@pytest.mark.parametrize("suffix", [".sav", ".sas7bdat"])
def test_a_damaged_file_is_refused(sav, tmp_path, suffix):
    (tmp_path / f"a{suffix}").write_bytes(sav.read_bytes()[:300])
    with pytest.raises(CodebookError, match="is damaged, or does not match its suffix"):
        dp.codebook.draft(tmp_path / f"a{suffix}")


def test_a_file_that_brings_the_reader_down_leaves_the_caller_standing(sav, monkeypatch):
    crash = "import os; os.abort()"
    monkeypatch.setattr("pathlib.Path.read_text", lambda *words: crash)
    with pytest.raises(CodebookError, match="is damaged"):
        dp.codebook.draft(sav)


def test_a_missing_file_and_a_missing_library_are_said(tmp_path, sav, monkeypatch):
    with pytest.raises(CodebookError, match="there is no file"):
        dp.codebook.draft(tmp_path / "none.dta")
    monkeypatch.setattr("dpmodels.dictionaries.table.find_spec", lambda name: None)
    with pytest.raises(CodebookError, match=r'pip install "dpmodels\[labels\]"'):
        dp.codebook.draft(sav)


def test_every_reader_is_one_of_the_library():
    assert all(callable(getattr(pyreadstat, name)) for name in READERS.values())
