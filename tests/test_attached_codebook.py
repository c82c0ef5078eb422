"""Codebooks that travel with tables: there and back, whatever is in between, and hostile ones."""

import json

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from pyarrow import parquet

import dpmodels as dp
from dpmodels.codebook import KEY
from dpmodels.errors import ArgumentError, CodebookError, FrameError
from dpmodels.resolve_codebook import codebook_of_call

BOOK = dp.codebook(age=dp.Integer(0, 110, "age", "years", [-9]), sex=["F", "M"])
ROWS = pd.DataFrame({"age": [41, 35, 62], "sex": ["F", "M", "F"]})


def found(data):
    return codebook_of_call(None, data, None, "~ age")


@pytest.mark.parametrize(
    "derived",
    [
        lambda value: value,
        lambda value: value[value.sex == "F"],
        lambda value: value[["age"]].copy(),
        lambda value: value.assign(old=value.age > 60),
        lambda value: pd.concat([value, value]),
    ],
)
def test_what_pandas_derives_from_a_table_carries_it_too(derived):
    assert found(derived(BOOK.attach(ROWS))) == BOOK


def test_the_table_that_was_given_stays_as_it_is():
    table = ROWS.assign()
    table.attrs["source"] = "survey"
    result = BOOK.attach(table)
    result.loc[0, "age"] = 0
    assert table.attrs == {"source": "survey"}
    assert result.attrs["source"] == "survey"
    assert table.age[0] == 41


def test_arrow_keeps_it_beside_what_is_there():
    arrow = pa.Table.from_pandas(ROWS)
    result = BOOK.attach(arrow)
    assert found(result) == found(result.slice(1)) == found(result.to_batches()[0]) == BOOK
    assert set(result.schema.metadata) - set(arrow.schema.metadata) == {KEY.encode()}


@pytest.mark.parametrize("as_table", [lambda value: value, pl.from_pandas, pa.Table.from_pandas])
def test_a_parquet_file_that_is_written_with_it_carries_it(tmp_path, as_table):
    BOOK.write_parquet(as_table(ROWS), tmp_path / "rows.parquet")
    assert found(tmp_path / "rows.parquet") == BOOK
    assert found(str(tmp_path)) == BOOK
    assert found(pd.read_parquet(tmp_path / "rows.parquet")) == BOOK
    assert found(parquet.read_table(tmp_path / "rows.parquet")) == BOOK
    assert pl.read_parquet(tmp_path / "rows.parquet").equals(pl.from_pandas(ROWS))


def test_pandas_writes_what_its_frame_carries(tmp_path):
    BOOK.attach(ROWS).to_parquet(tmp_path / "rows.parquet")
    assert found(tmp_path / "rows.parquet") == BOOK


def test_a_file_is_written_whole_or_not_at_all(tmp_path):
    BOOK.write_parquet(ROWS, tmp_path / "rows.parquet")
    before = (tmp_path / "rows.parquet").read_bytes()
    with pytest.raises(FrameError, match="already exists"):
        BOOK.write_parquet(ROWS, tmp_path / "rows.parquet")
    with pytest.raises(FrameError, match="of type list cannot be written"):
        BOOK.write_parquet([1], tmp_path / "other.parquet")
    with pytest.raises(ArgumentError, match="expected the path"):
        BOOK.write_parquet(ROWS, 3)
    assert [value.read_bytes() for value in tmp_path.iterdir()] == [before]


@pytest.mark.parametrize("data", [pl.from_pandas(ROWS), {"age": [1]}, "rows.parquet", None])
def test_what_keeps_nothing_beside_its_columns_is_refused(data):
    with pytest.raises(CodebookError, match=r"has no metadata.*write_parquet.*dp\.options"):
        BOOK.attach(data)


def hostile(text, key=KEY):
    result = ROWS.assign()
    result.attrs[key] = text
    return result, pa.Table.from_pandas(ROWS).replace_schema_metadata({key: str(text)})


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        '{"age": [0, 110]}',
        '{"age": {"range": [110, 0]}}',
        '{"age": {"range": [0, 1]}, "age": {"range": [0, 2]}}',
        '{"a\\u001b[31m": {"range": [0, 1]}}',
        "[" * 1000,
        '{"age": {"range": ["?", "?"]}}',
    ],
)
def test_what_is_no_codebook_is_refused(text):
    for value in hostile(text):
        with pytest.raises(CodebookError, match="the codebook attached to the table"):
            found(value)


def test_other_versions_and_other_things_are_refused():
    for value in hostile("{}", "dpmodels.codebook/2"):
        with pytest.raises(CodebookError, match=r"another version, 'dpmodels\.codebook/2'"):
            found(value)
    with pytest.raises(CodebookError, match="cannot be read"):
        found(hostile(BOOK.to_dict())[0])
    half = ROWS.assign()
    half.attrs[KEY] = "\udc80"
    with pytest.raises(CodebookError, match="cannot be read"):
        found(half)
    with pytest.raises(CodebookError, match="it is not text, or too long"):
        found(hostile(" " * 2**24 + json.dumps(BOOK.to_dict()))[0])
    assert found(hostile(json.dumps(BOOK.to_dict()))[0]) == BOOK
