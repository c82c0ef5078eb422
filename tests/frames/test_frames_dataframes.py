"""Data frames of pandas, polars and Arrow: views where possible, no surprises elsewhere."""

import datetime as dt
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from dpmodels.frames import open_rows, to_codes, to_float

NAN = float("nan")
X = np.arange(12.0)


def _only(data, name="x", rows=100):
    return next(open_rows(data).chunks((name,), rows))[name]


@pytest.mark.parametrize(
    "data",
    [
        pd.DataFrame({"x": X, "y": X}, copy=False),
        pd.DataFrame(np.ascontiguousarray(X[:, None]), columns=["x"]),
        pl.DataFrame({"x": X}),
        pa.table({"x": X}),
        pd.DataFrame({"x": pd.array(X, dtype="float64[pyarrow]")}),
        {"x": X},
        {"x": pl.Series(X)},
        {"x": pa.array(X)},
    ],
    ids=["pandas", "block", "polars", "arrow", "pandas-arrow", "array", "series", "arrow-array"],
)
def test_plain_numbers_are_never_copied(data):
    source = open_rows(data)
    first, again = (next(source.chunks(("x",), 5))["x"] for _ in range(2))
    assert np.shares_memory(first, again)
    assert to_float(first) is first
    np.testing.assert_array_equal(first, X[:5])


PANDAS = {
    "sparse": (pd.arrays.SparseArray([0.0, 1.0, NAN]), [0, 1, NAN]),
    "period": (pd.period_range("2020", periods=3, freq="M"), [NAN] * 3),
    "interval": (pd.arrays.IntervalArray.from_breaks([0, 1, 2, 3]), [NAN] * 3),
    "zoned": (pd.date_range("2020", periods=3, tz="UTC"), [NAN] * 3),
    "dates": (pd.date_range("2020", periods=3), [NAN] * 3),
    "durations": (pd.to_timedelta([1, 2, 3], unit="s"), [NAN] * 3),
    "complex": (np.array([1, 2j, 3]), [1, NAN, 3]),
    "numeric categories": (pd.Categorical([2.5, None, 1]), [2.5, NAN, 1]),
    "UInt64": (pd.array([2**63, None, 1], dtype="UInt64"), [2.0**63, NAN, 1]),
    "strings": (pd.array(["1", None, "x"], dtype="string"), [1, NAN, NAN]),
    "arrow decimals": (
        pd.array([Decimal("0.1"), None, Decimal("3")], pd.ArrowDtype(pa.decimal128(5, 2))),
        [0.1, NAN, 3],
    ),
}


@pytest.mark.parametrize(("column", "expected"), PANDAS.values(), ids=PANDAS)
@pytest.mark.filterwarnings("error")
def test_pandas_dtypes(column, expected):
    got = to_float(_only(pd.DataFrame({"x": column}), rows=2))
    np.testing.assert_array_equal(got, np.array(expected)[:2])


POLARS = {
    "Int128": (pl.Series([2**100, None], dtype=pl.Int128), [2.0**100, NAN]),
    "Int8": (pl.Series([1, None], dtype=pl.Int8), [1, NAN]),
    "Float32": (pl.Series([0.5, None], dtype=pl.Float32), [0.5, NAN]),
    "Decimal": (pl.Series([Decimal("0.1"), None]), [0.1, NAN]),
    "Enum": (pl.Series(["1", None], dtype=pl.Enum(["2", "1"])), [1, NAN]),
    "Binary": (pl.Series([b"1", b"\xff"]), [1, NAN]),
    "Object": (pl.Series(["2", object()], dtype=pl.Object), [2, NAN]),
    "Null": (pl.Series([None, None]), [NAN, NAN]),
    "Date": (pl.Series([dt.date(2020, 1, 1), None]), [NAN, NAN]),
    "List": (pl.Series([[1], None]), [NAN, NAN]),
    "Struct": (pl.Series([{"a": 1}, None]), [NAN, NAN]),
}


@pytest.mark.parametrize(("column", "expected"), POLARS.values(), ids=POLARS)
def test_polars_dtypes(column, expected):
    np.testing.assert_array_equal(to_float(_only(pl.DataFrame({"x": column}))), expected)


ARROW = {
    "uint8": (pa.array([1, None], pa.uint8()), [1, NAN]),
    "half": (pa.array([0.5, None], pa.float16()), [0.5, NAN]),
    "string view": (pa.array(["1", None], pa.string_view()), [1, NAN]),
    "large string": (pa.array(["1", None], pa.large_string()), [1, NAN]),
    "binary": (pa.array([b"1", b"\xff"]), [1, NAN]),
    "fixed binary": (pa.array([b"1", None], pa.binary(1)), [1, NAN]),
    "decimal256": (pa.array([Decimal("1e30"), None], pa.decimal256(60, 2)), [1e30, NAN]),
    "null": (pa.nulls(2), [NAN, NAN]),
    "numbers by dictionary": (pa.array([7, None]).dictionary_encode(), [7, NAN]),
    "bool8": (pa.ExtensionArray.from_storage(pa.bool8(), pa.array([1, 0], pa.int8())), [1, 0]),
    "date": (pa.array([2**31 - 1, None], pa.date32()), [NAN, NAN]),
    "timestamp": (pa.array([2**62, None], pa.timestamp("s")), [NAN, NAN]),
    "list": (pa.array([[1], None]), [NAN, NAN]),
}


@pytest.mark.parametrize(("column", "expected"), ARROW.values(), ids=ARROW)
def test_arrow_types(column, expected):
    np.testing.assert_array_equal(to_float(_only(pa.table({"x": column}))), expected)


def test_arrow_text_that_is_not_utf8():
    for kind in (pa.string(), pa.large_string()):
        raw = pa.array([b"F", b"\xff\xfe", None], pa.large_binary())
        raw = raw if kind == pa.large_string() else raw.cast(pa.binary())
        data = pa.table({"x": raw.view(kind)})
        assert to_codes(_only(data), ("F", "M")).tolist() == [0, -1, -1]


def test_arrow_chunks_with_different_dictionaries():
    chunks = [pa.array(part).dictionary_encode() for part in (["a", "b"], ["b", None], ["c"])]
    data = pa.table({"x": pa.chunked_array(chunks)})
    assert to_codes(_only(data), ("a", "b", "c")).tolist() == [0, 1, 1, -1, 2]


def test_a_full_dictionary_of_small_indices():
    labels = pa.array([f"level {k}" for k in range(128)])
    column = pa.DictionaryArray.from_arrays(pa.array([0, 127, None], pa.int8()), labels)
    assert to_codes(_only(pa.table({"x": column})), ("level 127", "level 0")).tolist() == [1, 0, -1]
