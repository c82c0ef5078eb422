"""Schemas of frames: names and types, and never a value."""

from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from pyarrow import parquet

import dpmodels as dp
from dpmodels.errors import CodebookError


class Trap:
    """A cell that tells whoever touches it."""

    def touched(self, *_):
        raise AssertionError("a cell was touched")

    __eq__ = __hash__ = __bool__ = __float__ = __str__ = __repr__ = touched
    __getattr__ = __array__ = __len__ = __iter__ = touched


def test_no_cell_of_a_frame_is_touched():
    cells = np.empty(3, dtype=object)
    for place in range(3):
        cells[place] = Trap()
    table = pd.DataFrame({"a": pd.Series(cells), "b": [1.0, 2.0, 3.0]})
    assert dp.codebook.draft(table).unknown == ("a", "b")


def test_no_row_of_a_query_is_computed():
    def touched(frame):
        raise AssertionError("rows were computed")

    rows = pl.LazyFrame({"a": [1]}).map_batches(touched, schema={"a": pl.Int64})
    assert dp.codebook.draft(rows)["a"].kind == "numeric"


def test_no_row_of_a_parquet_file_is_read(tmp_path):
    table = pa.table({"a": np.arange(10_000.0), "s": ["x"] * 10_000, "t": [True] * 10_000})
    parquet.write_table(table, tmp_path / "rows.parquet")
    content = bytearray((tmp_path / "rows.parquet").read_bytes())
    footer = int.from_bytes(content[-8:-4], "little") + 8
    content[4:-footer] = bytes(len(content) - footer - 4)
    (tmp_path / "rows.parquet").write_bytes(content)
    with pytest.raises((pa.ArrowException, OSError)):
        parquet.read_table(tmp_path / "rows.parquet")
    draft = dp.codebook.draft(tmp_path / "rows.parquet")
    assert [value.kind for value in draft.values()] == ["numeric", "categorical", "boolean"]
    (tmp_path / "rows.parquet").write_bytes(content[:-4])
    with pytest.raises(CodebookError, match="cannot be opened as a Parquet file"):
        dp.codebook.draft(tmp_path / "rows.parquet")


@pytest.mark.parametrize("as_table", [pd.DataFrame, pl.DataFrame, pa.table])
def test_one_row_more_changes_nothing(as_table):
    """Neither a level that no other row has, nor a missing cell that makes floats of integers."""
    rows = {"sex": ["F", "M"], "n": [1, 2], "x": [0.5, 1.5], "t": [True, False]}
    columns = {
        "sex": ["F", "M", "X"],
        "n": [1, 2, None],
        "x": [0.5, 1.5, 9e9],
        "t": [True, False, 1],
    }
    first, second = (
        pd.DataFrame(value).astype({"sex": "category", "t": bool}) for value in (rows, columns)
    )
    if as_table is not pd.DataFrame:
        arrow = [pa.Table.from_pandas(value, preserve_index=False) for value in (first, second)]
        first, second = arrow if as_table is pa.table else map(pl.from_arrow, arrow)
    assert dp.codebook.draft(first) == dp.codebook.draft(second)
    assert dp.codebook.draft(first).unknown == ("sex", "n", "x")


def test_types_of_every_library_are_told():
    arrow = pa.schema(
        [
            ("n", pa.int8()),
            ("x", pa.decimal128(9, 2)),
            ("t", pa.bool_()),
            ("d", pa.timestamp("us", "UTC")),
            ("s", pa.dictionary(pa.int8(), pa.string())),
            ("o", pa.list_(pa.int8())),
        ]
    )
    types = (pl.UInt8, pl.Decimal(9, 2), pl.Boolean, pl.Date, pl.Categorical(), pl.List(pl.Int8))
    polars = pl.Schema(dict(zip("nxtdso", types, strict=True)))
    pandas = pd.DataFrame(
        {
            "n": pd.array([1], "Int8"),
            "x": pd.array([1], "float[pyarrow]"),
            "t": pd.array([True], "boolean"),
            "d": pd.to_datetime(["2001-01-01"]).tz_localize("UTC"),
            "s": pd.array(["a"], "str"),
            "o": [[1]],
        }
    )
    kinds = ["numeric", "numeric", "boolean", "date", "categorical", ""]
    for source in (arrow, polars, pandas):
        assert [value.kind for value in dp.codebook.draft(source).values()] == kinds


def test_levels_that_a_person_declared_in_a_type_are_read():
    enum = pl.Schema({"s": pl.Enum(["F", "M"])})
    assert dp.codebook.draft(enum).codebook() == dp.codebook(s=["F", "M"])
    educ = pd.CategoricalDtype(["low", "high"], ordered=True)
    draft = dp.codebook.draft({"educ": educ, "n": "int64", "x": float})
    assert draft["educ"].variable("educ") == dp.Categorical(["low", "high"], ordered=True)
    assert draft["n"].kind == "integer"
    table = pd.DataFrame({"educ": pd.Series(["low"], dtype=educ)})
    assert dp.codebook.draft(table).unknown == ("educ",)
    done = dp.codebook.draft(table).complete(educ=table.educ.dtype)
    assert done["educ"] == draft["educ"]


def test_names_that_are_no_text_or_stand_twice_are_refused():
    for columns in ([0], ["a", "a"]):
        with pytest.raises(CodebookError, match="rename its columns"):
            dp.codebook.draft(pd.DataFrame([[1] * len(columns)], columns=columns))


@pytest.mark.parametrize("source", [42, {"age": [41, 35]}, pd.Series([1]), "rows.doc", {}, [1]])
def test_what_says_nothing_of_variables_is_refused(source, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("rows.doc").touch()
    with pytest.raises(CodebookError, match="cannot be made: expected a data dictionary"):
        dp.codebook.draft(source)
