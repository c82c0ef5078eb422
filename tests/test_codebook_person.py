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
    with pytest.raises(CodebookError, match="person='id' and person='who' cannot be combined"):
        BOOK | dp.codebook(person="who")


@pytest.mark.parametrize("name", ["id", "age"])
def test_it_is_written_read_and_printed(name, tmp_path):
    book = dp.codebook(BOOK, person=name)
    book.save(tmp_path / "cb.json")
    assert dp.Codebook.load(tmp_path / "cb.json") == book
    assert dp.Codebook.from_dict(book.to_dict()).person == name
    assert f"\n{name}" in str(book)
    assert "identifies persons" in str(book)
    assert "identifies persons" in book._repr_html_()


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
    known_values = dp.codebook.draft(tmp_path / "draft.json").complete(age=(0, 100)).select(["age"])
    assert "identifies persons" in str(draft)
    for book in (
        BOOK,
        tmp_path / "cb.json",
        dp.codebook.draft(BOOK),
        known_values,
        known_values.codebook(),
    ):
        assert unit(codebook=book).person == "id"
    assert unit(codebook=known_values, person=False).person is None
    with pytest.raises(CodebookError, match="cannot be combined"):
        draft | dp.codebook(person="who")
    table = BOOK.attach(pd.DataFrame(ROWS))
    assert dp.dp_mean("~ age", table, eps=1.0).release.adjacency.person == "id"
    with dp.options(codebook=BOOK, adjacency="add-remove"):
        assert unit(codebook=None).unit.startswith("one person")
    for words, value in (({}, "id"), ({"rows": 2}, "id"), ({"person": False}, None)):
        session = dp.session(ROWS, BOOK, eps=3.0, **words)
        assert session.ledger.adjacency.person == value
        assert session.mean("~ age", eps=1.0).release.adjacency == session.ledger.adjacency


def test_an_identifier_declares_missing_ids_and_is_no_variable():
    cb = dp.codebook(x=(0, 1), id=dp.Identifier(missing=["NA", -9], label="record"), person="id")
    assert list(cb) == ["x"]
    for again in (type(cb).from_dict(cb.to_dict()), cb.select(["x"]), dp.codebook(cb), cb | {}):
        assert again == cb
        assert again.identifiers["id"].missing == ("NA", "-9")
    assert dp.codebook(x=(0, 1), id=dp.Identifier(), person="id") != cb
    rows = {"id": ["NA", "-9", "a", "b"], "x": [0.5] * 4}
    assert dp.dp_mean("~ x", rows, codebook=cb, eps=1, rows=1).release.rows == 2
    with pytest.raises(dp.errors.CodebookError, match="missing"):
        dp.codebook(id=dp.Identifier(missing=[[1]]))
    with pytest.raises(dp.errors.DPModelsError, match="id"):
        dp.dp_mean("~ id", rows, codebook=cb, eps=1, rows=1)


def test_all_ids_missing_is_no_person_and_no_error(tmp_path):
    cb = dp.codebook(x=(0, 1), person="id")
    for adjacency in ("replace", "add-remove"):
        fit = dp.dp_mean(
            "~ x", {"id": [None] * 3, "x": [1] * 3}, codebook=cb, eps=1, rows=1, adjacency=adjacency
        )
        assert str(fit.summary())
    cb.save(tmp_path / "cb.json")
    assert dp.codebook.load(tmp_path / "cb.json") == cb
    declared = dp.codebook(x=(0, 1), id=dp.Identifier(missing=["NA"]), person="id")
    declared.save(tmp_path / "ids.json")
    rows = {"id": ["NA", "a"], "x": [1] * 2}
    fit = dp.dp_mean("~ x", rows, codebook=tmp_path / "ids.json", eps=1, rows=1)
    assert fit.release.rows == 1
