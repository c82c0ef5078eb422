"""A cell's converted value depends on that cell alone, in any company."""

import csv
import datetime as dt
import io
import tempfile
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from dpmodels.frames import open_rows, to_codes, to_float
from dpmodels.frames.delimited import CsvFile

LEVELS = ("F", 1, True, "2", "03", 0.5, "", "x\ny")
NUMBERS = st.one_of(
    st.integers(-3, 3),
    st.integers(),
    st.sampled_from([10**400, 2**63, 2**64, 2**53 + 1, -(2**63)]),
    st.floats(),
    st.booleans(),
    st.decimals(allow_nan=False, allow_infinity=False, places=2),
    st.complex_numbers(max_magnitude=5),
)
TEXTS = st.one_of(
    st.text(st.characters(exclude_categories=["Cs"]), max_size=6),
    st.sampled_from(
        ["F", "1", "1.0", "True", "2", "2.0", "03", "1_0", " 1", "NA", "nan", '"', "\n"]
    ),
)
ON_ONE_LINE = TEXTS.filter(lambda text: "\n" not in text)
OTHERS = st.one_of(
    st.none(),
    st.just(pd.NA),
    st.just(pd.NaT),
    st.datetimes(dt.datetime(1990, 1, 1), dt.datetime(2030, 1, 1)),
    st.dates(dt.date(1990, 1, 1), dt.date(2030, 1, 1)),
    st.timedeltas(dt.timedelta(0), dt.timedelta(1000)),
    st.just(pd.Timestamp("2020-01-01", tz="UTC")),
    st.binary(max_size=3),
    st.lists(st.integers(), max_size=2),
)
CELLS = st.one_of(NUMBERS, TEXTS, OTHERS)
# Columns of one type, of which one odd cell changes the dtype, and columns of all types.
COLUMNS = st.one_of(
    st.lists(st.integers(-3, 3), min_size=1, max_size=6),
    st.lists(st.booleans(), min_size=1, max_size=6),
    st.lists(st.floats(), min_size=1, max_size=6),
    st.lists(TEXTS, min_size=1, max_size=6),
    st.lists(NUMBERS, min_size=1, max_size=6),
    st.lists(CELLS, min_size=1, max_size=6),
)


def _objects(cells):
    return np.fromiter(cells, object, len(cells))


def _both(data, name="x", rows=4):
    chunks = [chunk[name] for chunk in open_rows(data).chunks((name,), rows)]
    numbers = np.concatenate([np.empty(0), *map(to_float, chunks)])
    codes = np.concatenate([np.empty(0, int), *(to_codes(part, LEVELS) for part in chunks)])
    return numbers, codes


def _assert_equal(got, expected):
    for left, right in zip(got, expected, strict=True):
        np.testing.assert_array_equal(left, right)


@given(COLUMNS, COLUMNS)
def test_conversion_of_a_concatenation(first, second):
    parts = [_objects(first), _objects(second)]
    joined = np.concatenate(parts)
    _assert_equal(to_float(joined), np.concatenate(list(map(to_float, parts))))
    codes = [to_codes(part, LEVELS) for part in parts]
    _assert_equal(to_codes(joined, LEVELS), np.concatenate(codes))


def _pandas_inferred(cells):
    return pd.DataFrame({"x": pd.Series(cells)})


def _pandas_appended(cells):
    frames = [pd.DataFrame({"x": pd.Series(part)}) for part in (cells[:-1], cells[-1:])]
    return pd.concat(frames, ignore_index=True)


def _pandas_converted(cells):
    return _pandas_inferred(cells).convert_dtypes()


CONTAINERS = {
    "lists": lambda cells: {"x": cells},
    "tuples": lambda cells: {"x": tuple(cells)},
    "inferred": _pandas_inferred,
    "appended": _pandas_appended,
    "converted": _pandas_converted,
}


@pytest.mark.parametrize("container", CONTAINERS.values(), ids=CONTAINERS)
@given(column=COLUMNS, odd=CELLS)
@example(column=[None], odd=pd.NaT)  # A column of times, in which "" is a level
def test_an_odd_row_changes_no_other_row(container, column, odd):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # pandas, while the frame is made
        frames = [container([*column, cell]) for cell in (column[0], odd)]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        plain, disturbed = map(_both, frames)
    _assert_equal([part[:-1] for part in plain], [part[:-1] for part in disturbed])
    alone = _both({"x": [odd]})
    _assert_equal([part[-1:] for part in disturbed], alone)


@pytest.mark.expensive
@given(column=st.lists(st.sampled_from(["F", "2", "x", None]), min_size=1, max_size=6), odd=TEXTS)
def test_an_odd_category_changes_no_other_row(column, odd):
    frames = [
        pd.DataFrame({"x": pd.Series([*column, cell], dtype="category")})
        for cell in (column[0], odd)
    ]
    plain, disturbed = map(_both, frames)
    _assert_equal([part[:-1] for part in plain], [part[:-1] for part in disturbed])


def _csv_file(path: Path, cells: list[str], quoting: int) -> Path:
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, quoting=quoting)
        writer.writerows([("id", "x", "z"), *((k, cell, "end") for k, cell in enumerate(cells))])
    return path


@pytest.mark.expensive
@settings(deadline=None)
@given(
    cells=st.lists(ON_ONE_LINE, min_size=1, max_size=6),
    odd=ON_ONE_LINE,
    quoting=st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL, csv.QUOTE_NONNUMERIC]),
)
def test_an_odd_row_of_a_csv_file_changes_no_other_row(cells, odd, quoting):
    with tempfile.TemporaryDirectory() as folder:
        paths = [
            _csv_file(Path(folder) / name, [*cells[:2], cell, *cells[2:]], quoting)
            for name, cell in (("a.csv", cells[0]), ("b.csv", odd))
        ]
        plain, disturbed = map(_both, paths)
    at = len(cells[:2])
    _assert_equal([np.delete(part, at) for part in plain], [np.delete(p, at) for p in disturbed])
    _assert_equal([part[at : at + 1] for part in disturbed], _both({"x": [odd]}))


def _written(folder: Path, cells: list[str]) -> dict[str, object]:
    """The same texts in containers of all sorts."""
    table, parts = {"x": cells}, folder / "parts"
    parts.mkdir()
    pq.write_table(pa.table(table), folder / "t.parquet")
    for at, cell in enumerate(cells):
        # Software gives a part of one row the type of its one cell.
        value = to_float(_objects([cell])).tolist()[0]
        is_changed = repr(value) != cell
        pq.write_table(pa.table({"x": [cell if is_changed else value]}), parts / f"{at}.parquet")
    return {
        "objects": pd.DataFrame({"x": pd.Series(_objects(cells), dtype=object)}),
        "pandas text": pd.DataFrame(table, dtype="str"),
        "polars": pl.DataFrame(table, schema={"x": pl.String}),
        "dictionary": pa.table({"x": pa.array(cells, pa.string()).dictionary_encode()}),
        "bytes": {"x": [cell.encode() for cell in cells]},
        "parquet": folder / "t.parquet",
        "parts of one row": parts,
        "csv": _csv_file(folder / "t.csv", cells, csv.QUOTE_ALL),
    }


@pytest.mark.product
@settings(deadline=None)
@given(st.lists(ON_ONE_LINE, min_size=1, max_size=5))
def test_a_text_is_read_alike_in_every_container(cells):
    expected = _both({"x": cells})
    with tempfile.TemporaryDirectory() as folder:
        for data in _written(Path(folder), cells).values():
            _assert_equal(_both(data), expected)


# What pandas.read_csv reads as numbers, logical values or text according to all rows.
INFERRED = ["1", "2", "2.0", "1.50", "03", "-1", "True", "false", "TRUE", "F", "", "1e2", "x"]


@pytest.mark.expensive
@given(
    cells=st.lists(st.sampled_from(INFERRED), min_size=1, max_size=5),
    uniform=st.booleans(),
    odd=st.sampled_from(INFERRED),
)
def test_an_odd_row_changes_no_other_row_that_pandas_read_from_a_csv_file(cells, uniform, odd):
    cells = cells[:1] * len(cells) if uniform else cells
    texts = [
        "\n".join(["id,x", *(f"7,{cell}" for cell in [*cells, end])]) for end in (cells[0], odd)
    ]
    plain, disturbed = (_both(pd.read_csv(io.StringIO(text))) for text in texts)
    _assert_equal([part[:-1] for part in plain], [part[:-1] for part in disturbed])


LINES = st.one_of(
    st.binary(max_size=20),
    st.lists(st.sampled_from([b'"', b",", b"a", b"\xff", b"\x00", b" "]), max_size=8).map(b"".join),
    st.just(b"," * 3000),
    st.just(b'1,"' + b"x" * 200_000),
).filter(lambda line: b"\n" not in line)


@pytest.mark.expensive
@settings(deadline=None)
@given(LINES, st.integers(0, 4))
def test_a_broken_line_of_a_csv_file_changes_no_other_row(line, at):
    lines = [b'"a, b",1,z', b"c,2,z", b'd,"F",z', b'"e ""e"" e",0.5,"z"']
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "t.csv"
        path.write_bytes(b"\n".join([b"id,x,z", *lines[:at], line, *lines[at:], b""]))
        numbers, codes = _both(CsvFile(path, "lines"))
    assert len(numbers) == 5
    np.testing.assert_array_equal(np.delete(numbers, at), [1.0, 2.0, np.nan, 0.5])
    np.testing.assert_array_equal(np.delete(codes, at), [1, 3, 0, 5])
