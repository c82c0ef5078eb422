"""Cells at the ends of what types hold: no error, no other row, the same in every container."""

import gzip
import sqlite3
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import dpmodels as dp
from dpmodels.column_roles import canonical_id
from dpmodels.frames import open_rows, to_codes, to_days, to_float
from dpmodels.frames.convert import level_names
from dpmodels.frames.delimited import CsvFile
from dpmodels.frames.persons import person_keys

LARGEST = 2**63 - 1
LEVELS = ("", "1970-01-01T09:00", "09:00", "1970-01-01")


def read(data):
    """Return what the cells of a table's column mean as number, day, level and name."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        chunks = [chunk["x"] for chunk in open_rows(data).chunks(("x",), 100)]
        return [
            np.concatenate([part(cells) for cells in chunks]).tolist()
            for part in (to_float, to_days, lambda cells: to_codes(cells, LEVELS), level_names)
        ]


# --- Times that are far away


def _instants(unit, tick):
    return np.array([0, tick], dtype=np.int64).view(f"M8[{unit}]")


def _pandas(unit, tick):
    times = pd.Series(_instants(unit, tick)).dt.tz_localize("UTC")
    return pd.DataFrame({"x": times.dt.tz_convert("Asia/Tokyo")})


def _polars(unit, tick):
    times = pl.Series("x", [0, tick]).cast(pl.Datetime(unit)).dt.replace_time_zone("UTC")
    return times.dt.convert_time_zone("Asia/Tokyo").to_frame()


def _arrow(unit, tick):
    return pa.table({"x": pa.array([0, tick], pa.timestamp(unit, tz="Asia/Tokyo"))})


ZONED = [
    (make, unit)
    for make, units in ((_pandas, "s ms us ns"), (_polars, "ms us ns"), (_arrow, "s ms us ns"))
    for unit in units.split()
]


@pytest.mark.parametrize(("make", "unit"), ZONED)
@pytest.mark.parametrize("tick", [LARGEST, -LARGEST])
def test_a_far_time_in_a_zone_is_missing(make, unit, tick):
    _, days, codes, names = read(make(unit, tick))
    np.testing.assert_array_equal(days, [0, np.nan])
    assert codes == [1, -1]
    assert names == ["1970-01-01T09:00", None]


@pytest.mark.parametrize("make", [_pandas, _polars, _arrow])
def test_a_zone_moves_times_into_the_calendar_and_out_of_it(make):
    first, last = (np.datetime64(text, "us") for text in ("0001-01-01", "9999-12-31T23"))
    for time, day in ((first - np.timedelta64(1, "h"), "0001-01-01"), (last, None)):
        assert read(make("us", int(time.astype(np.int64))))[3][1] == (day and f"{day}T08:18:59")


@pytest.mark.parametrize("unit", ["s", "ms", "us"])
def test_a_time_of_pandas_beyond_the_calendar_is_missing_in_all_columns(unit):
    times = pd.Series(np.array(["1970-01-01", "10000-01-01", "NaT"], f"M8[{unit}]"))
    for cells in (times, times.astype(object), times.astype("category"), times.tolist()):
        _, days, codes, names = read({"x": cells})
        np.testing.assert_array_equal(days, [0, np.nan, np.nan])
        assert (codes, names) == ([3, -1, -1], ["1970-01-01", None, None])


@pytest.mark.parametrize("unit", ["ns", "ps", "fs", "as"])
def test_times_of_the_finest_units_are_read(unit):
    times = _instants(unit, -1)
    _, days, _, names = read({"x": times})
    assert days == [0, -1]
    assert names == ["1970-01-01", "1969-12-31T23:59:59.999999"]
    np.testing.assert_equal(read({"x": list(times)}), read({"x": times}))


def test_the_first_time_of_nanoseconds_is_in_1677():
    times = _instants("ns", -LARGEST)
    first = "1677-09-21T00:12:43.145224"
    for cells in (times, list(times), pd.Series(times), pd.Series(times).tolist()):
        assert read({"x": cells})[3] == ["1970-01-01", first]
    assert canonical_id(times[1]).startswith(first)


# --- Times of a clock


@pytest.mark.parametrize("tick", [86_400 * 10**6, -1, LARGEST, -LARGEST])
@pytest.mark.parametrize("unit", ["us", "ns"])
def test_a_time_beyond_a_day_is_missing(unit, tick):
    nine = 9 * 3600 * {"us": 10**6, "ns": 10**9}[unit]
    tick = tick * 1000 if unit == "ns" and abs(tick) < LARGEST else tick
    times = pa.array([nine, tick, None], pa.int64()).view(pa.time64(unit))
    for cells in (
        times,
        times.dictionary_encode(),
        pd.Series(times, dtype=pd.ArrowDtype(times.type)),
    ):
        assert read({"x": cells})[2:] == [[2, -1, -1], ["09:00", None, None]]


# --- Bytes that are not UTF-8


def persons(data):
    """Return the number of the person of each row, -1 for none."""
    (cells,) = (chunk["x"] for chunk in open_rows(data).chunks(("x",), 100))
    keys = person_keys(cells, bytes(range(24)))
    return pd.factorize(np.where(keys.has_id, keys.high, 0))[0].tolist()


def _sqlite(path, cells, type="", **options):
    path.unlink(missing_ok=True)
    connection = sqlite3.connect(path, **options)
    connection.execute(f"CREATE TABLE t (x {type})")
    connection.executemany("INSERT INTO t VALUES (?)", [(cell,) for cell in cells])
    connection.commit()
    return dp.sql(connection, "t")


IDS = [b"\xe9", b"\xe8", b"\xff\xe8", b"a", b"\xe9"]


def _latin_csv(folder, ids):
    (folder / "t.csv").write_bytes(b"x,y\n" + b"".join(id + b",1\n" for id in ids))
    return folder / "t.csv"


def _latin_gzip(folder, ids):
    path = folder / "t.csv.gz"
    path.write_bytes(gzip.compress(_latin_csv(folder, ids).read_bytes()))
    return path


def _latin_text(folder, ids):
    table = _sqlite(folder / "t.db", ids)
    table.connection.execute("UPDATE t SET x = CAST(x AS TEXT)")
    table.connection.commit()
    return table


UNDECODABLE = {
    "csv": _latin_csv,
    "csv lines": lambda folder, ids: CsvFile(_latin_csv(folder, ids), "lines"),
    "csv.gz": _latin_gzip,
    "sqlite": lambda folder, ids: _sqlite(folder / "t.db", ids),
    "sqlite with a number": lambda folder, ids: _sqlite(folder / "t.db", [*ids, 5]),
    "sqlite text": _latin_text,
    "arrow": lambda folder, ids: pa.table({"x": pa.array(ids).view(pa.string())}),
    "bytes": lambda folder, ids: {"x": ids},
}


@pytest.mark.parametrize("write", UNDECODABLE.values(), ids=UNDECODABLE)
def test_ids_of_other_bytes_are_other_persons(write, tmp_path):
    data = write(tmp_path, IDS)
    assert persons(data)[: len(IDS)] == [0, 1, 2, 3, 0]
    assert read(data)[3][: len(IDS)] == ["\ufffd", "\ufffd", "\ufffd\ufffd", "a", "\ufffd"]


def test_a_long_cell_of_undecodable_bytes_is_not_another(tmp_path):
    long = b"\xe9" * 100_000
    data = _latin_csv(tmp_path, [long, long + b"\xe8", long, b'"' + long + b'"'])
    assert persons(data) == [0, 1, 0, 0]


# --- SQLite, whose columns have cells of several types


@pytest.mark.parametrize("odd", ["x", "", b"\xff", 0.5, None])
@pytest.mark.parametrize("cells", [[2**53, 2**53, 1], [1.0, -0.0, 1e22, 0.1], ["1", "True"]])
def test_a_cell_of_another_type_changes_no_row_of_sqlite(cells, odd, tmp_path):
    plain, disturbed = (
        (read(data), persons(data))
        for other in (cells[0], odd)
        for data in [_sqlite(tmp_path / "t.db", [*cells, other])]
    )
    for left, right in zip([*plain[0], plain[1]], [*disturbed[0], disturbed[1]], strict=True):
        np.testing.assert_array_equal(left[:-1], right[:-1])


def test_an_odd_type_does_not_turn_a_level_into_another(tmp_path):
    levels = ("1.0", "True", "1")
    for odd in (1.0, "x"):
        (chunk,) = open_rows(_sqlite(tmp_path / "t.db", [1.0, odd])).chunks(("x",), 9)
        assert to_codes(chunk["x"], levels)[0] == 2


@pytest.mark.parametrize("type", ["DATE", "TIMESTAMP"])
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # Of Python's converters
def test_converters_of_a_connection_are_not_called(type, tmp_path):
    """They raise an error at a cell that is no date."""
    detects = sqlite3.PARSE_DECLTYPES | sqlite3.PARSE_COLNAMES
    table = _sqlite(tmp_path / "t.db", ["1970-01-01", "x"], type, detect_types=detects)
    assert read(table)[3] == ["1970-01-01", "x"]


# --- Complex numbers


def test_a_complex_number_makes_no_other_id_missing():
    ids = [1, 0.5, 2**40, 1.0]
    for odd in (1j, 1 + 0j, np.complex64(0.5)):
        for cells in (np.array([*ids, odd]), [*ids, odd], pd.Series([*ids, odd])):
            assert persons({"x": cells})[:4] == [0, 1, 2, 0]
    assert persons({"x": [1, 1 + 0j, 1j, None, np.complex64(1)]}) == [0, 0, 1, 1, 0]


# --- Python objects in polars


def test_objects_of_polars_are_read_to_their_end():
    frame = pl.DataFrame({"x": pl.Series([object(), "", None, 1], dtype=pl.Object)})
    assert read(frame)[2:] == [[-1, 0, -1, -1], [None, None, None, "1"]]


def test_an_index_of_tuples_is_read_as_one_of_other_cells():
    for cells in ([(1,), (2,)], [(1,), "a"]):
        assert read({"x": pd.Index(cells)})[3] == [None, None if cells[1] == (2,) else "a"]


@pytest.mark.parametrize("missing", [None, float("nan"), pd.NA])
@pytest.mark.parametrize("others", [[], ["a"]])
def test_a_column_of_texts_may_have_no_text(missing, others):
    cells = np.array([missing, missing, *others], np.dtypes.StringDType(na_object=missing))
    assert read({"x": cells})[3][:2] == [None, None]
    assert persons({"x": cells})[:2] == [0, 0]


def test_a_number_beyond_double_precision_warns_nobody():
    cells = np.array(["1e4000", "1", "-1e4000"], dtype=np.longdouble)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert persons({"x": cells}) == [0, 1, 2]
    assert read({"x": cells})[0] == [np.inf, 1, -np.inf]
