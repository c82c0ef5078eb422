"""The same table in every container gives the same columns."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest

from dpmodels.errors import FrameError
from dpmodels.frames import open_rows, to_codes, to_float

NAN = float("nan")
INF = float("inf")
REAL = [1.5, NAN, INF, -INF, 0.1, 2.0, NAN]
COUNT = [3.0, 1.0, NAN, float(2**53 + 1), -7.0, 1.0, 0.0]
FLAG = [1.0, 0.0, NAN, 1.0, 0.0, NAN, 1.0]


def test_every_kind_gives_the_same_numbers(make, kit):
    columns = kit.read(make(kit.table), kit.names)
    for name, expected in (("real", REAL), ("count", COUNT), ("flag", FLAG)):
        got = np.concatenate([to_float(part) for part in columns[name]])
        np.testing.assert_array_equal(got, expected)


def test_every_kind_gives_the_same_codes(make, kit):
    columns = kit.read(make(kit.table), kit.names)
    for name, levels, expected in (
        ("text", ("M", "F", "é"), [1, 0, -1, -1, -1, 2, 1]),
        ("text", ("M", "F", 1), [1, 0, -1, -1, 2, -1, 1]),
        ("group", ("a", "b", "c"), [1, 0, 1, -1, 2, 0, 1]),
        ("flag", (False, True), [1, 0, -1, 1, 0, -1, 1]),
        ("count", (1, 3), [1, 0, -1, -1, -1, 0, -1]),
    ):
        got = np.concatenate([to_codes(part, levels) for part in columns[name]])
        np.testing.assert_array_equal(got, expected)


def test_every_kind_tells_its_names_and_reads_only_what_is_wanted(make, kit):
    source = open_rows(make(kit.table))
    assert source.names == kit.names
    assert source.nrows in (7, None)
    assert tuple(next(source.chunks(("flag", "real"), 100))) == ("flag", "real")


def test_every_kind_may_be_empty(make, kit):
    empty = {name: [] for name in kit.names}
    source = open_rows(make(empty))
    assert source.names == kit.names
    assert source.nrows in (0, None)
    assert list(source.chunks(kit.names, 5)) == []


def test_every_kind_refuses_missing_columns_at_the_call(make, kit):
    source = open_rows(make(kit.table))
    with pytest.raises(FrameError, match=r"'flga' \(did you mean 'flag'\?\), 'zzzz'"):
        source.chunks(("real", "flga", "zzzz"), 5)


def test_block_sizes(make, kit):
    parts = kit.read(make(kit.table), ("real",), rows=2)["real"]
    assert sum(map(len, parts)) == 7
    assert max(map(len, parts)) == 2


def test_repr_shows_no_cell_and_no_count(make, kit):
    text = repr(open_rows(make(kit.table)))
    assert "1.5" not in text
    assert "nrows" not in text


def test_paths(tmp_path: Path):
    with pytest.raises(FrameError, match="there is no file"):
        open_rows(tmp_path / "absent.csv")
    with pytest.raises(FrameError, match="suffix"):
        open_rows("table.xlsx")
    (tmp_path / "parts.parquet").mkdir()
    with pytest.raises(FrameError, match=r"has no \.parquet file"):
        open_rows(tmp_path / "parts.parquet")
    (tmp_path / "UPPER.CSV").write_text("a,b\n1,2\n")
    assert open_rows(str(tmp_path / "UPPER.CSV")).names == ("a", "b")


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (np.zeros((3, 2)), "no column names"),
        (np.zeros((3, 2), dtype=[("a", float)]), "one-dimensional"),
        (None, "NoneType"),
        (3.5, "float"),
        (b"a,b\n1,2\n", "bytes"),
        (pd.Series([1.0]), "to_frame"),
        (pl.Series([1.0]), "to_frame"),
        ("rows.duckdb", "dp.sql('rows.duckdb', table="),
    ],
)
def test_what_is_no_table_is_refused_with_the_fix(data, says):
    with pytest.raises(FrameError) as caught:
        open_rows(data)
    assert says in str(caught.value)


@pytest.mark.expensive
def test_importing_frames_imports_no_frame_library():
    code = (
        "import sys, dpmodels.frames; "
        "sys.exit(any(name in sys.modules for name in ('pandas', 'polars', 'pyarrow')))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_columns_with_names_of_several_levels_are_refused_and_say_how_to_join_them():
    table = pd.DataFrame({"age": [30.0, 40.0]})
    table.columns = pd.MultiIndex.from_tuples([("person", "age")])
    with pytest.raises(FrameError, match=r'write data.columns = data.columns.map\("_".join\)'):
        open_rows(table)
    table.columns = table.columns.map("_".join)
    assert open_rows(table).names == ("person_age",)
