"""Columns of ids in drafts: known by name or declared type, never by a value."""

import pandas as pd
import pytest

import dpmodels as dp
from dpmodels.dictionaries.draft import is_key_name, is_person_name
from dpmodels.errors import CodebookError


@pytest.mark.parametrize(
    "name", ["id", "ID", "user_id", "recordId", "hh.id", "id_visit", "uuid", "caseid", "SEQN"]
)
def test_names_of_keys(name):
    assert is_key_name(name)


@pytest.mark.parametrize("name", ["paid", "covid", "acid", "width", "age", "valid", "idle", "iden"])
def test_names_that_only_contain_the_letters(name):
    assert not is_key_name(name)
    assert not is_person_name(name)


@pytest.mark.parametrize(
    "name", ["person_id", "PatientID", "pid", "id_patient", "participant.no", "customerKey"]
)
def test_names_of_persons(name):
    assert is_key_name(name)
    assert is_person_name(name)


@pytest.mark.parametrize("name", ["person", "subject", "students", "clients", "patients"])
def test_a_word_for_persons_alone_is_not_an_id(name):
    assert not is_person_name(name)


def test_a_draft_marks_ids_and_the_person(tmp_path):
    lines = ["name,type,min,max,missing", "patient_id,integer,,,-9", "visit_id,text,,,"]
    lines += ["age,integer,0,110,", "ward,identifier,1,20,"]
    (tmp_path / "d.csv").write_text("\n".join(lines))
    draft = dp.codebook.draft(tmp_path / "d.csv")
    assert list(draft) == ["age"]
    assert draft.person == "patient_id"
    assert draft.identifiers["patient_id"].missing == ("-9",)
    assert [line.split()[0:2] for line in repr(draft).splitlines()[1:5]] == [
        ["age", "integer"],
        ["patient_id", "identifier"],
        ["visit_id", "identifier"],
        ["ward", "identifier"],
    ]
    assert draft.unknown == ()
    book = draft.codebook()
    assert book.person == "patient_id"
    draft.save(tmp_path / "cb.json")
    assert dp.codebook.draft(tmp_path / "cb.json") == draft


def test_a_declared_range_makes_a_variable():
    draft = dp.codebook.draft({"fields": [FIELD]})
    assert list(draft) == ["id"]
    assert not draft.identifiers


FIELD = {"name": "id", "type": "integer", "constraints": {"minimum": 1, "maximum": 9}}


def test_two_columns_of_persons_mark_neither():
    draft = dp.codebook.draft({"patient_id": "int64", "user_id": "int64", "age": "int64"})
    assert draft.person is None
    assert set(draft.identifiers) == {"patient_id", "user_id"}
    assert "No column of persons is marked" in repr(draft)


def test_no_value_decides():
    """Columns that are keys by their values alone stay variables, and the reverse."""
    rows = pd.DataFrame({"x": range(100), "user_id": [1] * 100})
    draft = dp.codebook.draft(rows)
    assert list(draft) == ["x"]
    assert draft == dp.codebook.draft(rows.iloc[:0])


def test_an_id_can_be_declared_a_variable_after_all():
    draft = dp.codebook.draft({"user_id": "int64", "age": "int64"})
    done = draft.complete(user_id=(0, 5), age=(0, 110))
    joined = draft | dp.codebook(user_id=(0, 5))
    for value in (done, joined):
        assert value["user_id"].lower == 0
        assert not value.identifiers
        assert value.person == "user_id", "a declaration never takes protection away"
    with pytest.raises(CodebookError, match="no variable 'use_id'"):
        draft.complete(use_id=(0, 5))


def test_drafts_of_a_dictionary_and_of_types_agree_on_ids():
    first = dp.codebook.draft({"fields": [{"name": "user_id", "type": "string"}]})
    two = dp.codebook.draft({"user_id": "int64", "age": "int64"})
    assert set((first | two).identifiers) == {"user_id"}
    assert (first | two).person == "user_id"
    assert list(first | two) == ["age"]
