"""Cells of a dictionary become what each of them is by itself."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dpmodels.codebook import codebook
from dpmodels.design.columns import converted
from dpmodels.frames import concatenated, open_rows, to_codes, to_days, to_float
from dpmodels.frames.convert import arrow_cells, level_names
from dpmodels.frames.persons import person_keys
from dpmodels.frames.protocol import Coded, coded, decoded

SECRET = bytes(range(24))
HOSTILE = ["", " ", "a\0b", "\ud800", "x" * 100_000, "1", "01", "1.0", "True", "nan", "2001-02-03"]
ENTRIES = [*HOSTILE, None, float("nan"), True, 7, 10**400, b"\xff", [1.0], "1"]
READERS = {
    "float": to_float,
    "days": to_days,
    "codes": lambda cells: to_codes(cells, ("1", "a\0b", True, "nan")),
    "names": level_names,
}


def objects(cells):
    return np.fromiter(cells, object, len(cells))


def cells_of(positions):
    return coded(objects(ENTRIES), np.array(positions))


@pytest.mark.parametrize("read", READERS.values(), ids=READERS)
def test_a_coded_column_is_read_as_its_cells_are(read):
    positions = np.random.default_rng(5).integers(-1, len(ENTRIES) + 1, 300)
    cells = cells_of(positions)
    np.testing.assert_array_equal(read(cells), read(np.asarray(cells)))
    np.testing.assert_array_equal(read(cells[:3]), read(np.asarray(cells))[:3])


def test_person_ids_of_a_dictionary_are_those_of_its_cells():
    cells = cells_of([0, 5, 6, 7, 18, 9, -1, 14, 3])
    for got, expected in zip(
        person_keys(cells, SECRET, ("True",)),
        person_keys(np.asarray(cells), SECRET, ("True",)),
        strict=True,
    ):
        has_id = person_keys(cells, SECRET, ("True",)).has_id
        np.testing.assert_array_equal(got[has_id], expected[has_id])
    assert person_keys(cells, SECRET).has_id.tolist() == [False, *[True] * 5, False, True, True]


def test_entries_that_no_cell_has_change_nothing():
    class Loud:
        def __hash__(self):
            raise SystemExit("hashed")

        __eq__ = __float__ = __str__ = __hash__

    cells = Coded(objects([Loud(), "1", *["x"] * 50]), np.array([1, 52, 1]))
    assert to_float(cells)[[0, 2]].tolist() == [1.0, 1.0]
    assert to_codes(cells, ("1",)).tolist() == [0, -1, 0]
    assert cells.compact().entries.tolist() == ["1"]


def test_each_entry_is_read_once():
    calls = []

    def read(entries):
        calls.append(len(entries))
        return np.arange(len(entries))

    cells = Coded(objects(["a", "b"]), np.arange(1000) % 3)
    assert cells.by_entry(read, -1).tolist() == [0, 1, -1] * 333 + [0]
    assert calls == [2]


def test_blocks_with_different_dictionaries_are_joined():
    first, second = Coded(objects(["a", "b"]), np.array([1, 0, 2])), Coded(objects(["b"]), [0])
    second = Coded(second.entries, np.array([0, 1]))
    joined = concatenated([first, second])
    assert joined.tolist() == ["b", "a", None, "b", None]
    assert concatenated([first, objects([3])]).tolist() == ["b", "a", None, 3]
    integers = pa.chunked_array([pa.array([1, None]).dictionary_encode()] * 2)
    assert arrow_cells(integers).tolist() == [1, None, 1, None]


def test_a_repr_shows_no_cell():
    assert "canary" not in repr(Coded(objects(["canary"]), np.array([0])))


def test_logical_values_with_nulls_are_no_objects():
    for flags in (
        pa.array([True, None, False]),
        pd.array([True, None, False], dtype="boolean"),
    ):
        (chunk,) = open_rows({"x": flags}).chunks(("x",), 10)
        assert chunk["x"].dtype == bool
        np.testing.assert_array_equal(to_float(chunk["x"]), [1.0, np.nan, 0.0])


def test_text_of_a_file_comes_as_dictionaries(tmp_path):
    texts = [None if i % 7 == 0 else f"level {i % 5}" for i in range(2_000)]
    ids = [f"id {i}" for i in range(2_000)]
    table = pa.table({"text": texts, "id": ids, "nested.name": texts})
    pq.write_table(table, tmp_path / "t.parquet", row_group_size=300, dictionary_pagesize_limit=900)
    book = codebook(text=[f"level {i}" for i in range(5)])
    chunks = list(open_rows(tmp_path / "t.parquet").chunks(tuple(table.column_names), 512))
    assert all(isinstance(cells, Coded) for chunk in chunks for cells in chunk.values())
    for name in table.column_names:
        got = np.concatenate([decoded(chunk[name]) for chunk in chunks])
        assert got.tolist() == table[name].to_pylist()
    got = np.concatenate([converted(book, chunk)["text"] for chunk in chunks])
    expected = converted(book, {"text": objects(texts)})["text"]
    np.testing.assert_array_equal(got, expected)
