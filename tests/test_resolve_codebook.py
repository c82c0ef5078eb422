"""Where a call's codebook comes from, and the message without one."""

import json

import pandas as pd
import pyarrow as pa
import pytest

import dpmodels as dp
from dpmodels.errors import CodebookError
from dpmodels.formula.parse import WILDCARDS
from dpmodels.resolve_codebook import codebook_of_call

BOOK = dp.codebook(age=(0, 100), sex=["F", "M"])
OTHER = dp.codebook(age=(0, 90), sex=["F", "M"])
ROWS = pd.DataFrame({"age": [41.0, 35.0, 62.0] * 50, "sex": ["F", "M", "F"] * 50})


class Untouched:
    """Rows that tell whoever looks at them."""

    def __iter__(self):
        raise AssertionError("rows were read")


@pytest.fixture
def path(tmp_path):
    BOOK.save(tmp_path / "cb.json")
    return tmp_path / "cb.json"


def test_it_may_be_said_in_many_ways(path):
    draft = dp.codebook.draft({"age": "float64", "sex": "object", "town": "object"})
    ways = [
        BOOK,
        dict(BOOK),
        {"age": (0, 100), "sex": ["F", "M"]},
        path,
        str(path),
        draft.complete(age=(0, 100), sex=["F", "M"]),
    ]
    for way in ways:
        assert codebook_of_call(way, Untouched(), None, "age ~ sex") == BOOK
        with dp.options(codebook=way):
            assert codebook_of_call(None, Untouched(), None, "age ~ sex") == BOOK


def test_the_call_goes_before_the_table_which_may_not_contradict_options():
    with dp.options(codebook=dp.codebook(age=(0, 1))):
        assert codebook_of_call(BOOK, OTHER.attach(ROWS), None, "~ age") == BOOK
        with pytest.raises(CodebookError, match=r"on variable 'age' \(age range is .*\): write"):
            codebook_of_call(None, OTHER.attach(ROWS), None, "~ age")
    with dp.options(codebook=OTHER):
        book = codebook_of_call(None, OTHER.attach(ROWS), None, "~ age")
        assert book == OTHER
        assert book.attached


def test_a_table_may_not_weaken_whom_the_caller_protects():
    """Today's fault: a footer without persons overruled those of dp.options, without a warning."""
    codebook = dp.codebook(OTHER, person="id")
    rows = ROWS.assign(id=range(len(ROWS)))
    for words in (
        {"codebook": codebook},
        {"adjacency": dp.Ledger(eps=1, person="id", rows=1).adjacency},
        {"ledger": dp.Ledger(eps=1, person="id", rows=1)},
    ):
        with dp.options(**words), pytest.raises(CodebookError, match="person"):
            codebook_of_call(None, OTHER.attach(rows), None, "~ age")
    with dp.options(person="id", rows=1):
        fit = dp.dp_mean("~ age", OTHER.attach(rows), eps=1)
        assert "one person" in str(fit.summary())
        assert "attached to the table" in str(fit.summary())
        with pytest.raises(CodebookError, match="person='ward'"):
            codebook_of_call(None, dp.codebook(OTHER, person="ward").attach(rows), None, "~ age")
    assert "attached" not in str(dp.dp_mean("~ age", rows, codebook=OTHER, eps=1).summary())


@pytest.mark.parametrize("verb", ["dp_mean", "dp_pca"])
def test_verbs_need_no_words_where_the_table_carries_it(verb):
    fit = getattr(dp, verb)("~ age", BOOK.attach(ROWS), eps=1, delta=1e-6)
    assert "age" in str(fit.summary())


def test_where_there_is_none_three_lines_teach():
    with pytest.raises(CodebookError) as caught:
        dp.dp_pca("~ log(x1 + 1) + C(x2) + Q('x 3')", ROWS, eps=1)
    lines = str(caught.value).splitlines()
    assert len(lines) == 3
    assert lines[0].startswith("no codebook: a codebook declares the public bounds or levels")
    example = """x1=(lower, upper), x2=["low", "high"], **{'x 3': (lower, upper)}"""
    assert f"dp.codebook({example})" in lines[1]
    assert all(
        word in lines[2]
        for word in ("attach(", "dp.options(", ".json", "codebook.draft(", '"private"')
    )


@pytest.mark.parametrize("formula", ["~ .", "~ a +", None, 42, "~ a | b"])
def test_the_lesson_stands_whatever_the_formula(formula):
    with pytest.raises(CodebookError, match=r"dp\.codebook\(\w+=\(lower, upper\)"):
        codebook_of_call(None, ROWS, None, formula)


@pytest.mark.parametrize("value", [42, ["age"], True, b"cb.json"])
def test_what_is_no_codebook_is_refused(value):
    with pytest.raises(CodebookError, match=r"expected a dp\.codebook"):
        codebook_of_call(value, ROWS, None, "~ age")


@pytest.mark.parametrize("text", ["", "{", "[]", '{"age": 1}'])
def test_a_file_that_is_none_is_refused(path, text):
    path.write_text(text)
    with pytest.raises(CodebookError):
        codebook_of_call(path, Untouched(), None, "~ age")


def test_an_unfinished_draft_is_refused_by_name_before_a_row_is_read(tmp_path):
    draft = dp.codebook.draft({"age": "int64", "sex": "object"}).complete(sex=["F", "M"])
    draft.save(tmp_path / "draft.json")
    ledger = dp.Ledger(eps=1)
    for value in (draft, tmp_path / "draft.json"):
        assert dp.dp_table("~ sex", ROWS, codebook=value, eps=0.1)
        with pytest.raises(CodebookError, match=r"'age'.*draft\.complete\(age=\(lower, upper\)\)"):
            dp.dp_mean("age ~ sex", Untouched(), codebook=value, eps=1, ledger=ledger)
    assert len(ledger.entries) == 0


@pytest.mark.parametrize("wildcard", WILDCARDS)
def test_no_wildcard_passes_over_what_is_not_known(wildcard):
    draft = dp.codebook.draft({"age": "int64", "age2": "bool"})
    with pytest.raises(CodebookError, match="'age'"):
        codebook_of_call(draft, None, None, f'~ {wildcard}("a")')


def test_sites_carry_one_codebook():
    north, bare = BOOK.attach(ROWS), ROWS.copy()
    south = BOOK.attach(pa.Table.from_pandas(ROWS.copy()))
    assert (
        codebook_of_call(None, None, {"north": north, "south": south, "east": bare}, "~ age")
        == BOOK
    )
    with pytest.raises(CodebookError, match=r"site 'north' and site 'west' .* \(age range"):
        codebook_of_call(None, None, {"north": north, "west": OTHER.attach(ROWS)}, "~ age")
    fit = dp.dp_mean("~ age", sites={"north": north, "south": south}, protocol="pooled", eps=1)
    assert "300 (public)" in str(fit.summary())


def test_files_of_one_table_carry_one_codebook(tmp_path):
    BOOK.write_parquet(ROWS, tmp_path / "a.parquet")
    ROWS.to_parquet(tmp_path / "b.parquet")
    with pytest.raises(CodebookError, match="1 of 2 parts carry a codebook"):
        codebook_of_call(None, tmp_path, None, "~ age")
    BOOK.write_parquet(ROWS, tmp_path / "b.parquet", overwrite=True)
    assert codebook_of_call(None, tmp_path, None, "~ age") == BOOK
    OTHER.write_parquet(ROWS, tmp_path / "c.parquet")
    with pytest.raises(CodebookError, match=r"'a\.parquet' and .*'c\.parquet' carry codebooks"):
        codebook_of_call(None, tmp_path, None, "~ age")
    tables = [pd.read_parquet(tmp_path / name) for name in ("a.parquet", "b.parquet")]
    assert codebook_of_call(None, tables, None, "~ age") == BOOK


def test_what_neither_eps_nor_delta_says_is_asked_for_by_name():
    for verb in ("dp_pca", "dp_mean", "dp_lm"):
        with pytest.raises(dp.errors.BudgetError, match=r"eps=1\.0 \(the privacy loss"):
            getattr(dp, verb)("age ~ sex" if verb != "dp_pca" else "~ age", ROWS, codebook=BOOK)
    usual = "delta=1e-6, a public number well below 1 over the number of rows"
    for verb, formula, words in (
        ("dp_pca", "~ age", {"mechanism": "gauss"}),
        ("dp_moments", "~ age", {}),
        ("dp_mean", "~ age", {"sites": {"a": ROWS, "b": ROWS.copy()}, "protocol": "full"}),
    ):
        rows = None if "sites" in words else ROWS
        with pytest.raises(dp.errors.BudgetError, match=usual):
            getattr(dp, verb)(formula, rows, codebook=BOOK, eps=1, **words)


def test_a_codebook_in_a_file_is_the_codebook(path):
    assert codebook_of_call(path, None, None, "~ age").to_dict() == json.loads(path.read_text())
