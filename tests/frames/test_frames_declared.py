"""Columns that can hold no declared value are refused by their type, before a charge."""

import datetime as dt

import dask.dataframe as dd
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest

import dpmodels as dp
from dpmodels.errors import FrameError
from dpmodels.frames import open_rows, require_declared, to_days

DAYS = ["2020-01-01", "2021-06-30"]
DATES = [dt.date(2020, 1, 1), dt.date(2021, 6, 30)]
STAMPS = pd.to_datetime(DAYS)
NUMBER = dp.codebook(x=(0, 100))
LEVELS = dp.codebook(x=["F", "M"])
CODES = dp.codebook(x=["1", "2"])

DATES_BOOK = dp.codebook(x=dp.Date("1999-01-01", "2030-01-01"))
UNDATED = (
    *("numpy durations", "pandas durations", "pandas periods", "pandas intervals"),
    *("polars lists", "polars structures", "Arrow times", "Arrow lists"),
)

NEITHER = {
    "numpy dates": {"x": np.array(DAYS, "M8[D]")},
    "numpy durations": {"x": np.array([1, 2], "m8[s]")},
    "structured": np.array([(0,), (1,)], dtype=[("x", "M8[s]")]),
    "pandas": pd.DataFrame({"x": STAMPS}),
    "pandas, with a zone": pd.DataFrame({"x": STAMPS.tz_localize("UTC")}),
    "pandas durations": pd.DataFrame({"x": STAMPS - STAMPS[0]}),
    "pandas periods": pd.DataFrame({"x": STAMPS.to_period("M")}),
    "pandas intervals": pd.DataFrame({"x": pd.interval_range(0, 2)}),
    "pandas categories of dates": pd.DataFrame({"x": STAMPS}).astype("category"),
    "pandas of Arrow": pd.DataFrame({"x": pd.array(DATES, pd.ArrowDtype(pa.date32()))}),
    "a series": {"x": pd.Series(STAMPS)},
    "polars": pl.DataFrame({"x": DATES}),
    "polars lists": pl.DataFrame({"x": [[1], [2, 3]]}),
    "polars structures": pl.DataFrame({"x": [{"a": 1}, {"a": 2}]}),
    "polars series": {"x": pl.Series(DATES)},
    "Arrow": pa.table({"x": DATES}),
    "Arrow times": pa.table({"x": pa.array([1, 2], pa.time32("s"))}),
    "Arrow lists": pa.table({"x": [[1], [2, 3]]}),
    "Arrow dictionary of dates": pa.table({"x": pa.array(DATES).dictionary_encode()}),
    "Arrow array": {"x": pa.array(DATES)},
}
WHOLE = {
    "numpy": {"x": np.array([1, 2])},
    "numpy logical": {"x": np.array([True, False])},
    "pandas": pd.DataFrame({"x": [1, 2]}),
    "pandas categories": pd.DataFrame({"x": [1, 2]}).astype("category"),
    "polars": pl.DataFrame({"x": [1, 2]}),
    "polars logical": pl.DataFrame({"x": [True, False]}),
    "Arrow": pa.table({"x": [1, 2]}),
    "Arrow logical": pa.table({"x": [True, False]}),
}
# What other rows made of these types, or what is read cell by cell.
ANYTHING = {
    "lists": {"x": DATES},
    "objects": {"x": np.array(DATES, object)},
    "object frames": pd.DataFrame({"x": DATES}),
    "one odd cell": pd.DataFrame({"x": [STAMPS[0], 7.0]}),
    "floats": {"x": np.array([np.nan, np.nan])},
    "all missing": pd.DataFrame({"x": [None, None]}),
    "all missing, converted": pd.DataFrame({"x": [np.nan, np.nan]}).convert_dtypes(),
    "polars nulls": pl.DataFrame({"x": [None, None]}),
    "Arrow nulls": pa.table({"x": pa.nulls(2)}),
    "Arrow text": pa.table({"x": DAYS}),
    "Arrow bytes": pa.table({"x": [b"1", b"F"]}),
    "decimals": pa.table({"x": pa.array([1, 2], pa.decimal128(5, 2))}),
    "categories": pd.DataFrame({"x": ["F", "M"]}, dtype="category"),
    "a stream": [pd.DataFrame({"x": STAMPS})],
}


DECLARES = [name for name, data in NEITHER.items() if isinstance(data, pa.Table)]


def _stored(table, folder, suffix):
    path = folder / f"t.{suffix}"
    write = pq.write_table if suffix == "parquet" else feather.write_feather
    write(table, path)
    return path


@pytest.mark.parametrize("suffix", ["parquet", "feather"])
@pytest.mark.parametrize("table", [NEITHER[name] for name in DECLARES], ids=DECLARES)
@pytest.mark.parametrize("book", [NUMBER, LEVELS, CODES], ids=["number", "levels", "codes"])
def test_a_type_that_holds_neither_numbers_nor_text(table, book, suffix, tmp_path):
    path = _stored(table, tmp_path, suffix)
    with pytest.raises(FrameError, match="neither numbers nor text, and 'x' is declared as"):
        require_declared(open_rows(path), book)


def test_no_key_of_a_row_is_told(tmp_path):
    rows = [{"quokka": 1}, {"rottnest": [2]}]
    for table in (pa.table({"x": rows}), pa.table({"x": [rows, rows]})):
        with pytest.raises(FrameError, match=r"is of type (struct|list), which") as caught:
            require_declared(open_rows(_stored(table, tmp_path, "parquet")), NUMBER)
        assert "quokka" not in str(caught.value)


@pytest.mark.parametrize("name", NEITHER)
def test_a_type_that_was_inferred_from_cells_refuses_nothing(name, tmp_path):
    """Another row could have made it another type, and so decided whether there is a release."""
    data = NEITHER[name]
    tables = [data]
    if isinstance(data, pl.DataFrame):
        tables += [data.lazy(), {"x": data["x"]}]
    if isinstance(data, pd.DataFrame) and "periods" not in name and "intervals" not in name:
        data.to_parquet(tmp_path / "t.parquet")
        tables += [tmp_path / "t.parquet", pa.Table.from_pandas(data), dd.from_pandas(data)]
    for table in tables:
        for book in (NUMBER, LEVELS, CODES, DATES_BOOK):
            require_declared(open_rows(table), book)


KINDS = {"levels": LEVELS, "numbers": NUMBER, "codes": CODES, "dates": DATES_BOOK}
CELLS = (1, 2.5, True, "F", "1", None, DATES[0], STAMPS[0], [1])
MADE = {
    "list": lambda cells: {"x": list(cells)},
    "pandas": lambda cells: pd.DataFrame({"x": cells}),
    "converted": lambda cells: pd.DataFrame({"x": cells}).convert_dtypes(),
    "array": lambda cells: {"x": pd.Series(cells).to_numpy()},
    "series": lambda cells: {"x": pd.Series(cells)},
}


@pytest.mark.parametrize("make", MADE.values(), ids=MADE)
@pytest.mark.parametrize("book", KINDS.values(), ids=KINDS)
def test_one_cell_never_decides_whether_there_is_a_release(make, book):
    """Today's fault: [1, 2, 1, 2] was refused as levels of text, and [1, 2, 1, None] was not."""
    for first in CELLS:
        for last in CELLS:
            require_declared(open_rows(make([first, first, last])), book)


@pytest.mark.parametrize("table", [WHOLE["Arrow"], WHOLE["Arrow logical"]])
def test_whole_numbers_are_no_levels_of_text(table, tmp_path):
    path = _stored(table, tmp_path, "parquet")
    with pytest.raises(FrameError, match=r"whole numbers alone, .* levels, F \| M: make"):
        require_declared(open_rows(path), LEVELS)
    with pytest.raises(FrameError, match="whole numbers alone, and 'x' is declared as days"):
        require_declared(open_rows(path), DATES_BOOK)
    for book in (NUMBER, CODES):
        require_declared(open_rows(path), book)


ANYTHING |= {f"whole, {name}": data for name, data in WHOLE.items()}


@pytest.mark.parametrize("data", ANYTHING.values(), ids=ANYTHING)
def test_what_a_cell_may_decide_is_not_refused(data):
    for book in (NUMBER, LEVELS, CODES):
        require_declared(open_rows(data), book)


def test_files_of_text_are_not_refused(tmp_path):
    (tmp_path / "t.csv").write_text("x\n2020-01-01\n")
    require_declared(open_rows(tmp_path / "t.csv"), NUMBER)


@pytest.mark.parametrize("odd", [7.0, "7", "odd", None])
def test_no_row_of_a_column_of_dates_makes_a_refusal_of_numbers(odd):
    """Whatever one row is, a frame of numbers is read."""
    for second in (odd, STAMPS[0], DATES[0], STAMPS[1] - STAMPS[0], [1]):
        require_declared(open_rows(pd.DataFrame({"x": [1.0, 2.0, second]})), NUMBER)


def test_the_ledger_is_not_charged(tmp_path):
    frame = pd.DataFrame({"x": STAMPS, "y": [1.0, 2.0]})
    table = pa.Table.from_pandas(frame).replace_schema_metadata(None)
    pq.write_table(table, tmp_path / "t.parquet")
    pq.write_table(pa.table({"x": [[1.0]], "y": [1.0]}), tmp_path / "lists.parquet")
    book = NUMBER | {"y": (0, 1)}
    for data in (tmp_path / "t.parquet", tmp_path / "lists.parquet"):
        ledger = dp.Ledger(eps=9.0, delta=1e-6)
        for verb, formula in ((dp.dp_cov, "~ x + y"), (dp.dp_lm, "y ~ x"), (dp.dp_mean, "x ~ 1")):
            with pytest.raises(FrameError, match="'x' is of type"):
                verb(formula, data, codebook=book, eps=1.0, ledger=ledger)
        assert "0 of 9" in ledger.describe()


DATED = {name: data for name, data in NEITHER.items() if name not in (*UNDATED, "structured")}


@pytest.mark.parametrize("data", DATED.values(), ids=DATED)
def test_dates_of_every_library_are_the_same_days(data):
    source = open_rows(data)
    require_declared(source, DATES_BOOK)
    (chunk,) = source.chunks(("x",), 10)
    assert to_days(chunk["x"]).tolist() == [18262.0, 18808.0]


@pytest.mark.parametrize("name", [name for name in UNDATED if name in DECLARES])
def test_types_that_hold_no_days(name, tmp_path):
    with pytest.raises(FrameError, match=r"and 'x' is declared as days, 1999-01-01 to .*: make"):
        require_declared(open_rows(_stored(NEITHER[name], tmp_path, "parquet")), DATES_BOOK)


def test_days_in_files_and_missing_ones(tmp_path):
    cells = pa.array([None, *DATES, None])
    zoned = pa.array([dt.datetime(2020, 1, 1, 3)], pa.timestamp("us", "America/New_York"))
    pq.write_table(pa.table({"x": cells}), tmp_path / "t.parquet")
    (tmp_path / "t.csv").write_text("x\n\n2020-01-01\n2021-06-30\nnever\n")
    for data in (
        tmp_path / "t.parquet",
        tmp_path / "t.csv",
        pl.DataFrame({"x": [None, *DATES, None]}),
    ):
        (chunk,) = open_rows(data).chunks(("x",), 10)
        days = to_days(chunk["x"])
        assert np.isnan(days).tolist() == [True, False, False, True]
        assert days[1:3].tolist() == [18262.0, 18808.0]
    (chunk,) = open_rows(pa.table({"x": zoned})).chunks(("x",), 10)
    assert to_days(chunk["x"]).tolist() == [18261.0]
    masked = np.ma.MaskedArray(np.array(DAYS, "M8[D]"), mask=[True, False])
    assert np.isnan(to_days(masked)).tolist() == [True, False]


def test_files_of_days_and_of_numbers_may_hold_either(tmp_path):
    """The type of each file may follow from its cells, and so be the work of one row."""
    pq.write_table(pa.table({"x": DATES}), tmp_path / "a.parquet")
    pq.write_table(pa.table({"x": [1]}), tmp_path / "b.parquet")
    for book in (DATES_BOOK, NUMBER):
        require_declared(open_rows(tmp_path), book)
