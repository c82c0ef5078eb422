"""A cell is read alike in any company: containers by columns by odd cells, for every role.

A column takes one more cell, which may change its type. The other cells keep their meaning as
numbers, days, levels, labels, missing codes, undeclared levels and ids, and nothing is raised.
"""

import datetime as dt
import sqlite3
import warnings
from dataclasses import replace
from decimal import Decimal
from importlib import import_module

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import dpmodels as dp
from dpmodels.design.columns import as_written
from dpmodels.frames import open_rows
from dpmodels.frames.convert import level_names
from dpmodels.frames.persons import person_keys

# The packages' re-exports hide modules of the same name.
COLUMNS = import_module("dpmodels.frames.columns")
CONVERT = import_module("dpmodels.frames.convert")
DATES = import_module("dpmodels.dates")
DESIGN = import_module("dpmodels.design.columns")
DRIVERS = import_module("dpmodels.frames.drivers")
PERSONS = import_module("dpmodels.frames.persons")

BOOK = dp.codebook(
    number=dp.Numeric(-10, 10, missing=[9, "NA", ""]),
    words=["", "a", "nan", "NaT", "None", "male"],
    labels=dp.Categorical({1: "male", 2: "2020-02-03", 0: "b"}, missing=["", "NaT", 9]),
    digits=["1.0", "True", "1", "0"],
    times=dp.Categorical(["2020-02-03", "2020-02-03T04:05:06", "12:30"], missing=["1970-01-01"]),
    day=dp.Date("1900-01-01", "2030-01-01", missing=["1970-01-01", -9, ""]),
)
ROLES = (*BOOK, "undeclared", "id")
YEAR_10000 = pd.Timestamp(np.datetime64("10000-01-01"))
CLOCK = dt.datetime(2020, 2, 3, 4, 5, 6)
TEXT_CELLS = ["a", "", "nan", "male", "1", "1.0"]
CELLS = {
    "whole": [1, 0, 9, 2**53 - 1],
    "real": [1.0, 9.0, -0.0, 0.5],
    "logical": [True, False],
    "text": TEXT_CELLS,
    "bytes": [b"\xe9", b"\xe8", b"a", b""],
    "decimal": [Decimal("1.0"), Decimal("9.00")],
    "date": [dt.date(2020, 2, 3), dt.date(1970, 1, 1)],
    "time": [CLOCK, pd.NaT, dt.datetime(1970, 1, 1)],
    "zoned": [pd.Timestamp(CLOCK, tz="Asia/Tokyo"), pd.Timestamp("2020-02-03", tz="Asia/Tokyo")],
    "far": [YEAR_10000, pd.NaT, pd.Timestamp(CLOCK)],
    "numpy time": [np.datetime64("2020-02-03"), np.datetime64("NaT", "us")],
    "clock": [dt.time(12, 30), dt.time(4, 5, 6)],
    "missing": [None, None],
    "NaT": [pd.NaT, pd.NaT],
}
ODD = [
    *(None, float("nan"), pd.NaT, pd.NA, "", "x", "\udce9", b"\xff", True, 2, 0.5, 1 + 0j, 10**400),
    *(dt.date(2020, 2, 4), dt.time(12), YEAR_10000, pd.Timestamp.max, np.datetime64(1, "as")),
    *(dt.timedelta(1), [1], object()),
]


def objects(cells):
    return np.fromiter(cells, object, len(cells))


def _array(cells):
    """Give cells the type that fits all, where that keeps what they are."""
    array = np.asarray(cells)
    is_logical = [isinstance(cell, bool) for cell in cells]
    is_kept = array.ndim == 1 and array.dtype.kind not in "US" and len(set(is_logical)) == 1
    if is_kept and array.dtype.kind == "M":  # Of a finer unit times may overflow in silence
        is_kept = all(pd.isna(cell) or cell == at for cell, at in zip(cells, array, strict=True))
    return array if is_kept else objects(cells)


def _parquet(cells, folder):
    pq.write_table(pa.table({"x": pa.array(cells)}), folder / "t.parquet", row_group_size=2)
    return folder / "t.parquet"


def _sqlite(cells, folder):
    (folder / "t.db").unlink(missing_ok=True)
    connection = sqlite3.connect(folder / "t.db")
    connection.execute("CREATE TABLE t (x)")
    connection.executemany("INSERT INTO t VALUES (?)", [(cell,) for cell in cells])
    connection.commit()
    return dp.sql(connection, "t")


def _parts(cells, folder):
    return [pd.DataFrame({"x": pd.Series(part)}) for part in (cells[:2], cells[2:])]


CONTAINERS = {
    "lists": lambda cells, folder: {"x": cells},
    "arrays": lambda cells, folder: {"x": _array(cells)},
    "pandas": lambda cells, folder: pd.DataFrame({"x": cells}),
    "pandas converted": lambda cells, folder: pd.DataFrame({"x": cells}).convert_dtypes(),
    "pandas category": lambda cells, folder: pd.DataFrame(
        {"x": pd.Series(cells).astype("category")}
    ),
    "pandas parts": _parts,
    "polars": lambda cells, folder: pl.DataFrame({"x": pl.Series(cells)}),
    "polars objects": lambda cells, folder: pl.DataFrame({"x": pl.Series(cells, dtype=pl.Object)}),
    "arrow": lambda cells, folder: pa.table({"x": pa.array(cells)}),
    "arrow dictionary": lambda cells, folder: pa.table({"x": pa.array(cells).dictionary_encode()}),
    "parquet": _parquet,
    "sqlite": _sqlite,
}


def made(container, cells, folder):
    """Return a table of the cells, None where a library does not make it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return CONTAINERS[container](cells, folder)
        except BaseException as error:  # A panic of polars is no Exception
            if isinstance(error, KeyboardInterrupt):
                raise
            return None


def read(data):
    """Return what each cell of a table's column means in each role, one tuple a row."""
    rows = []
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for chunk in open_rows(data).chunks(("x",), 100):
            cells = chunk["x"]
            declared = as_written(BOOK, dict.fromkeys(BOOK, cells))
            keys = person_keys(cells, bytes(range(24)), ("9",))
            ids = np.where(keys.has_id, keys.high, 0).tolist()
            numbers = [np.nan_to_num(declared[name], nan=-99).tolist() for name in BOOK]
            rows += zip(*numbers, level_names(cells).tolist(), ids, strict=True)
    return rows


def one_cell_changes_no_other(container, column, folder, odd_cells=ODD):
    """Compare a column with one that has an odd cell more, and this with the odd cell alone."""
    cells = CELLS[column]
    table = made(container, cells, folder)
    if table is None:
        return
    expected = read(table)
    for odd in odd_cells:
        disturbed = made(container, [*cells, odd], folder)
        if disturbed is None:
            continue
        rows = read(disturbed)
        where = f"{odd!r:.40} in a {column} column of {container}"
        for row, (got, want) in enumerate(zip(rows, expected, strict=False)):
            changed = [role for role, a, b in zip(ROLES, got, want, strict=True) if a != b]
            assert not changed, f"{where}: row {row} has another {changed}"
        alone = read({"x": [odd]})[0]
        if container in ("lists", "polars objects"):
            assert rows[-1] == alone, f"{where} is not as alone"


@pytest.mark.parametrize("container", CONTAINERS)
def test_an_odd_cell_changes_no_other(container, tmp_path):
    turn = list(CONTAINERS).index(container)
    for number, column in enumerate(CELLS):
        few = ODD[(turn + number) % 4 :: 4]
        one_cell_changes_no_other(container, column, tmp_path, few)


@pytest.mark.product
@pytest.mark.parametrize("container", CONTAINERS)
def test_no_odd_cell_changes_another(container, tmp_path):
    for column in CELLS:
        one_cell_changes_no_other(container, column, tmp_path)


# Of which SQLite keeps no type.
OTHERWISE = {("sqlite", "logical"), ("sqlite", "numpy time")}


def test_a_cell_means_the_same_in_every_container(tmp_path):
    for column, cells in CELLS.items():
        expected = read({"x": cells})
        for container in CONTAINERS:
            table = made(container, cells, tmp_path)
            if table is not None and (container, column) not in OTHERWISE:
                assert read(table) == expected, f"{column} in {container}"


# --- The law is itself tested


def missing_times_are_empty_text(patch):
    def texts(values):
        return np.array([*DATES.time_texts(values)], dtype=object)

    patch.setattr(
        CONVERT, "_time_cells", lambda values: CONVERT.Coded(texts(values), np.arange(len(values)))
    )


def missing_codes_are_compared_as_text(patch):
    as_declared = DESIGN._as_declared

    def known(declared, cells):
        if isinstance(declared, dp.Categorical) or isinstance(cells, CONVERT.Coded):
            return as_declared(declared, cells)
        texts = set(map(str, declared.missing))
        is_missing = [str(cell) in texts for cell in cells.tolist()]
        return np.where(is_missing, np.nan, as_declared(replace(declared, missing=()), cells))

    patch.setattr(DESIGN, "_as_declared", known)


def levels_are_numbered_by_appearance(patch):
    def codes(values, levels):
        seen = {}
        return np.array([seen.setdefault(str(cell), len(seen)) for cell in values.tolist()]) % len(
            levels
        )

    patch.setattr(DESIGN, "to_codes", codes)


def times_of_a_zone_are_those_of_utc(patch):
    patch.setattr(COLUMNS, "_local_times", lambda array: array.tz_convert(None).to_numpy())


def fields_of_far_times_are_believed(patch):
    patch.setattr(DATES, "_is_misread", lambda cell: cell is pd.NaT)


def complex_columns_have_no_ids(patch):
    of_column = PERSONS._of_column

    def without(cells, secret):
        is_complex = cells.dtype.kind == "c"
        return PERSONS._nobody(len(cells)) if is_complex else of_column(cells, secret)

    patch.setattr(PERSONS, "_of_column", without)


def bytes_beside_numbers_are_decoded(patch):
    def as_text(cell):
        return None if cell is None else DRIVERS._readable(cell if type(cell) is bytes else b"1")

    patch.setattr(DRIVERS, "_as_bytes", as_text)


def numbers_take_the_first_level_that_spells_them(patch):
    patch.setattr(CONVERT, "_print_rank", lambda text: 0)


FAULTS = [
    (missing_times_are_empty_text, "pandas", "NaT"),
    (missing_codes_are_compared_as_text, "pandas", "whole"),
    (levels_are_numbered_by_appearance, "pandas category", "text"),
    (times_of_a_zone_are_those_of_utc, "pandas", "zoned"),
    (fields_of_far_times_are_believed, "pandas", "far"),
    (complex_columns_have_no_ids, "pandas", "whole"),
    (bytes_beside_numbers_are_decoded, "sqlite", "bytes"),
    (numbers_take_the_first_level_that_spells_them, "sqlite", "real"),
]


@pytest.mark.parametrize(("fault", "container", "column"), FAULTS)
def test_a_planted_fault_is_detected(fault, container, column, tmp_path):
    one_cell_changes_no_other(container, column, tmp_path)
    with pytest.MonkeyPatch.context() as patch:
        fault(patch)
        with pytest.raises(AssertionError):
            one_cell_changes_no_other(container, column, tmp_path)
