"""A codebook may name the column that says whose a row is."""

import json

import pandas as pd
import pytest

import dpmodels as dp
from dpmodels.errors import CodebookError

BOOK = dp.codebook(age=(0, 100), sex=["F", "M"], person="id")
ROWS = {"id": [1, 2, 3] * 40, "age": [20, 40, 60] * 40, "sex": ["F", "M", "F"] * 40}


def unit(**words):
    return dp.dp_mean("~ age", ROWS, **{"codebook": BOOK, "eps": 1.0, **words}).release.adjacency


def test_a_verb_takes_the_person_of_the_codebook():
    assert unit().person == "id"
    assert (unit(rows=2).person, unit(rows=2).rows) == ("id", 2)
    assert unit(person="sex").person == "sex"
    assert unit(person=False) == dp.privacy.Adjacency("replace")
    assert unit(person=False, rows=3) == dp.privacy.Adjacency("replace", 3)
    assert unit(adjacency=dp.privacy.Adjacency("replace")) == dp.privacy.Adjacency("replace")
    assert unit(adjacency="add-remove").unit.startswith("one person")


def test_it_is_kept_and_no_variable():
    assert list(BOOK) == ["age", "sex"]
    assert BOOK.select(["age"]).person == "id"
    assert dp.codebook(BOOK).person == "id"
    assert dp.codebook(dict(BOOK)).person is None
    assert (BOOK | {"wage": (0, 9)}).person == "id"
    assert (dp.codebook(wage=(0, 9)) | BOOK).person == "id"
    assert dp.codebook(dict(BOOK)) != BOOK
    assert hash(BOOK) != hash(dp.codebook(dict(BOOK)))
    with pytest.raises(CodebookError, match="person='id' and person='who' do not go together"):
        BOOK | dp.codebook(person="who")


@pytest.mark.parametrize("name", ["id", "age"])
def test_it_is_written_read_and_printed(name, tmp_path):
    book = dp.codebook(BOOK, person=name)
    book.save(tmp_path / "cb.json")
    assert dp.Codebook.load(tmp_path / "cb.json") == book
    assert dp.Codebook.from_dict(book.to_dict()).person == name
    assert f"\n{name}" in str(book)
    assert "whose a row is" in str(book)
    assert "whose a row is" in book._repr_html_()


def test_older_files_name_nobody(tmp_path):
    path = tmp_path / "cb.json"
    path.write_text('{"age": {"range": [0, 100]}}')
    assert dp.Codebook.load(path).person is None


def test_a_variable_that_is_called_person():
    book = dp.codebook({"person": (0, 9)})
    assert list(book) == ["person"]
    assert book.person is None
    assert dp.Codebook.from_dict(book.to_dict()) == book
    for wrong in ((0, 9), ["a", "b"], "", 3):
        with pytest.raises(CodebookError, match=r"dp.codebook\(\{\"person\": \(0, 9\)\}\)"):
            dp.codebook(person=wrong)


@pytest.mark.parametrize(
    "plain",
    [
        {"id": {"person": True}, "who": {"person": True}},
        {"id": {"person": "yes"}},
        {"id": {"person": False}},
    ],
    ids=json.dumps,
)
def test_a_file_names_one(plain):
    with pytest.raises(CodebookError, match="one column"):
        dp.Codebook.from_dict(plain)


def test_drafts_files_tables_options_and_sessions_hold_it(tmp_path):
    BOOK.save(tmp_path / "cb.json")
    draft = dp.codebook.draft({"age": "float64"}) | dp.codebook(person="id")
    draft.save(tmp_path / "draft.json")
    known = dp.codebook.draft(tmp_path / "draft.json").complete(age=(0, 100)).select(["age"])
    assert "whose a row is" in str(draft)
    for book in (BOOK, tmp_path / "cb.json", dp.codebook.draft(BOOK), known, known.codebook()):
        assert unit(codebook=book).person == "id"
    assert unit(codebook=known, person=False).person is None
    with pytest.raises(CodebookError, match="do not go together"):
        draft | dp.codebook(person="who")
    table = BOOK.attach(pd.DataFrame(ROWS))
    assert dp.dp_mean("~ age", table, eps=1.0).release.adjacency.person == "id"
    with dp.options(codebook=BOOK, adjacency="add-remove"):
        assert unit(codebook=None).unit.startswith("one person")
    for words, own in (({}, "id"), ({"rows": 2}, "id"), ({"person": False}, None)):
        session = dp.session(ROWS, BOOK, eps=3.0, **words)
        assert session.ledger.adjacency.person == own
        assert session.mean("~ age", eps=1.0).release.adjacency == session.ledger.adjacency
