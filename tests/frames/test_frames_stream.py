"""Iterables of tables: once, lazily, and silent about their items."""

from datetime import date

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import dpmodels as dp
from dpmodels.errors import FrameError
from dpmodels.frames import open_rows, to_float


def _read(source, rows=10):
    return [chunk["x"].tolist() for chunk in source.chunks(("x",), rows)]


def test_tables_are_taken_one_at_a_time():
    blocks_read = []

    def tables():
        for k in range(3):
            blocks_read.append(k)
            yield {"x": [k, k]}

    source = open_rows(tables())
    assert blocks_read == []
    assert source.names == ("x",)
    assert blocks_read == [0]
    chunks = source.chunks(("x",), 10)
    next(chunks)
    assert blocks_read == [0]
    assert [chunk["x"].tolist() for chunk in chunks] == [[1, 1], [2, 2]]


def test_one_pass_only():
    source = open_rows(iter([{"x": [1]}]))
    assert _read(source) == [[1]]
    with pytest.raises(FrameError, match="can be read once"):
        source.chunks(("x",), 10)


def test_a_list_of_tables_is_read_as_often_as_wanted():
    source = open_rows([pd.DataFrame({"x": [1, 2]}), {"x": [3]}])
    assert source.rereadable
    assert source.nrows == 3
    assert _read(source) == _read(source) == [[1, 2], [3]]


def test_the_number_of_rows_of_a_list_with_a_file_of_text_is_unknown(tmp_path):
    (tmp_path / "t.csv").write_text("x\n1\n")
    source = open_rows([{"x": [3]}, tmp_path / "t.csv"])
    assert source.rereadable
    assert source.nrows is None
    assert _read(source) == [[3], ["1"]]


@pytest.mark.parametrize("change", ["pop", "append"])
@pytest.mark.parametrize("when", ["before", "between"])
def test_a_list_whose_length_changes(change, when):
    cells = [1.0, 2.0, 3.0, 4.0]
    source = open_rows({"x": cells})
    chunks = source.chunks(("x",), 2)
    if when == "between":
        next(chunks)
    getattr(cells, change)(*[9.0] * (change == "append"))
    with pytest.raises(FrameError, match=r"number of rows of column 'x' changed.* has been"):
        list(chunks)


def test_a_frame_whose_length_changes_between_passes():
    frame = pd.DataFrame({"x": [1.0, 2.0]})
    source = open_rows(frame)
    assert _read(source) == [[1.0, 2.0]]
    frame.loc[2] = [3.0]
    with pytest.raises(FrameError, match="number of rows of column 'x' changed"):
        _read(source)


def test_a_record_batch_reader():
    reader = pa.table({"x": [1.0, 2.0]}).to_reader()
    assert _read(open_rows(reader)) == [[1.0, 2.0]]


def test_files_by_their_paths(tmp_path):
    for k in range(2):
        pq.write_table(pa.table({"x": [k]}), tmp_path / f"{k}.parquet")
    assert _read(open_rows(sorted(tmp_path.glob("*.parquet")))) == [[0], [1]]


def test_columns_may_change_places_but_not_go():
    source = open_rows([{"x": [1], "y": [0]}, pd.DataFrame({"y": [0], "x": [2]}), {"y": [0]}])
    with pytest.raises(FrameError, match="no column 'x'"):
        source.chunks(("x",), 10)
    chunks = open_rows(iter([{"x": [1], "y": [0]}, {"y": [0], "x": [2]}, {"y": [0]}])).chunks(
        ("x",), 10
    )
    assert next(chunks)["x"].tolist() == [1]
    assert next(chunks)["x"].tolist() == [2]
    with pytest.raises(FrameError, match="no column 'x'"):
        next(chunks)


@pytest.mark.parametrize(
    "items", [[31, 47], ["secret", "words"], [[1, 2], [3, 4]], [None], [{"x": [1]}, 3.5]]
)
def test_items_that_are_no_tables_are_not_described(items):
    with pytest.raises(FrameError, match="items of an iterable must be tables") as caught:
        list(open_rows(items).chunks(("x",), 10))
    for word in ("31", "secret", "int", "str,", "NoneType", "3.5"):
        assert word not in str(caught.value)


def test_no_table_at_all():
    with pytest.raises(FrameError, match="gives no table"):
        open_rows([]).chunks(("x",), 10)


def test_tables_without_rows_between_others():
    parts = [pd.DataFrame({"x": []}), pd.DataFrame({"x": [1.0]}), {"x": np.array([])}]
    got = [to_float(chunk["x"]) for chunk in open_rows(parts).chunks(("x",), 10)]
    np.testing.assert_array_equal(np.concatenate(got), [1.0])


def test_a_row_as_a_table_of_its_own_does_not_decide_what_is_refused():
    """Of many tables each may be a row, whose type is that of its cell."""
    tables = [pa.table({"x": [date(2020, 1, 1)]}) for _ in range(3)]
    book = dp.codebook(x=(0, 9))
    assert dp.dp_mean("~ x", tables, codebook=book, eps=1.0).release.rows == 3
