"""A table that comes twice is refused, by object and by memory; others are not."""

import gc
from time import process_time
from weakref import ref

import narwhals
import narwhals.stable.v2 as nw
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import dpmodels as dp
from dpmodels.errors import FrameError
from dpmodels.frames import open_rows
from dpmodels.frames.open import Tables

CELLS = {
    "x": np.arange(40.0),
    "k": np.arange(40),
    "s": np.array([f"text {k}" for k in range(40)], object),
    "b": np.arange(40) % 3 == 0,
}
PANDAS = pd.DataFrame(CELLS)
NUMBERS = PANDAS[["x", "k", "b"]]
STRUCTURED = np.zeros(40, [("x", "f8"), ("k", "i4")])
ARROW = pa.table(CELLS)
POLARS = pl.DataFrame({**CELLS, "s": CELLS["s"].tolist()})
LIST = {"x": list(range(40)), "s": CELLS["s"].tolist()}
EXTENSIONS = PANDAS.assign(
    k=PANDAS["k"].astype("Int64"),
    s=PANDAS["s"].astype("category"),
    t=PANDAS["s"].astype("string[pyarrow]"),
    b=PANDAS["b"].astype("boolean"),
)

TWICE = {
    "a mapping": (CELLS, CELLS),
    "mappings of the same arrays": (CELLS, dict(CELLS)),
    "mappings of the same lists": (LIST, dict(LIST)),
    "slices that overlap": (
        {name: cells[:30] for name, cells in CELLS.items()},
        {name: cells[20:] for name, cells in CELLS.items()},
    ),
    "a frame": (PANDAS, PANDAS),
    "a shallow copy": (PANDAS, PANDAS.copy(deep=False)),
    "a slice of all": (PANDAS, PANDAS[:]),
    "the first rows": (PANDAS, PANDAS[:9]),
    "the last rows": (PANDAS, PANDAS[31:]),
    "every other row": (NUMBERS, NUMBERS[::2]),
    "backwards": (NUMBERS, NUMBERS[::-1]),
    "some columns": (POLARS, POLARS.select("x", "k")),
    "one more column": (PANDAS, PANDAS.copy(deep=False).assign(z=1.0)),
    "extension types": (EXTENSIONS, EXTENSIONS.copy(deep=False)),
    "polars": (POLARS, POLARS.clone()),
    "polars, part": (POLARS, POLARS[5:9]),
    "Arrow": (ARROW, ARROW),
    "Arrow, part": (ARROW, ARROW.slice(7, 9)),
    "a batch": (ARROW, ARROW.to_batches()[0]),
    "Arrow of the same arrays": ({"x": CELLS["x"]}, pa.table({"x": pa.array(CELLS["x"])})),
    "a structured array": (STRUCTURED, STRUCTURED[3:]),
    "in two wrappings": (nw.from_native(PANDAS), nw.from_native(PANDAS)),
    "in a wrapping": (POLARS, narwhals.from_native(POLARS)),
}
ONES = np.ones(40)
TWO = np.arange(80.0).reshape(40, 2)

APART = {
    "a copy": (PANDAS, PANDAS.copy()),
    "halves": (PANDAS[:20], PANDAS[20:]),
    "every other row": (NUMBERS[::2], NUMBERS[1::2]),
    "columns of one array": (pd.DataFrame(TWO[::2], columns=[*"xk"]), {"x": TWO[1::2, 0]}),
    "halves in polars": (POLARS[:19], POLARS[19:]),
    "halves in Arrow": (ARROW.slice(0, 19), ARROW.slice(19)),
    "a shared column": ({"x": CELLS["x"], "one": ONES}, {"x": CELLS["x"] + 1, "one": ONES}),
    "a broadcast column": (
        {"x": np.arange(3.0), "one": np.broadcast_to(1.0, 3)},
        {"x": np.arange(3.0), "one": np.broadcast_to(1.0, 3)},
    ),
    "literals": ({"x": (1, 2)}, {"x": (1, 2)}),
    "no rows": (PANDAS[:0], PANDAS[:0]),
    "other names": ({"x": CELLS["x"]}, {"y": CELLS["x"]}),
    "the categories alone": (
        pd.DataFrame({"s": pd.Categorical.from_codes([0, 1], categories=["a", "b"])}),
        pd.DataFrame({"s": pd.Categorical.from_codes([1, 1], categories=["a", "b"])}),
    ),
    "a dictionary alone": tuple(
        pa.table({"s": pa.DictionaryArray.from_arrays(pa.array(codes), pa.array(["a", "b"]))})
        for codes in ([0, 1], [1, 1])
    ),
}


def _pass(source):
    return sum(len(next(iter(chunk.values()))) for chunk in source.chunks(source.names[:1], 7))


@pytest.mark.parametrize("pair", TWICE.values(), ids=TWICE)
def test_a_table_that_comes_twice(pair):
    frame = pd.DataFrame({name: [0.5] for name in ("x", "k", "s", "b")})
    with pytest.raises(FrameError, match="item 1 and item 3 are one table that is given twice"):
        open_rows([pair[0], frame, pair[1]])
    mapping = isinstance(pair[1], dict) and isinstance(next(iter(pair[1].values())), list)
    items = (pair[0], pair[1]) if mapping else (pair[0], frame, pair[1])
    with pytest.raises(FrameError, match=r"given twice.*A ledger is charged.* has been"):
        _pass(open_rows(iter(items)))
    with pytest.raises(FrameError, match="a table of site 'A' and a table of site 'B' are one"):
        dp.dp_table("~ x", sites={"A": pair[0], "B": [frame, pair[1]]}, protocol="pooled", **ASKED)


def test_a_dask_frame_of_two_sites():
    dask = pytest.importorskip("dask.dataframe")
    frame = dask.from_pandas(pd.DataFrame({"x": [1, 2]}), npartitions=1)
    with pytest.raises(FrameError, match="given twice"):
        dp.dp_table("~ x", sites={"A": frame, "B": frame}, protocol="pooled", **ASKED)


ASKED = {"codebook": dp.codebook(x=[1, 2]), "eps": 1.0}


@pytest.mark.parametrize("pair", APART.values(), ids=APART)
def test_tables_of_different_rows(pair):
    rows = sum(open_rows(value).nrows for value in pair)
    if pair[0] is not APART["other names"][0]:
        assert _pass(open_rows(iter(pair))) == rows
    assert open_rows(list(pair)).nrows == rows


@pytest.mark.product
def test_memory_that_is_used_again_is_another_table():
    def tables():
        for k in range(300):
            yield {"x": np.full(50, k)}
            yield pd.DataFrame({"x": np.full(50, k)})
            yield {"x": [k] * 5}
            yield pa.table({"x": pa.array([k] * 5)})
            yield {"x": (k,) * 5}

    assert _pass(open_rows(tables())) == 300 * 115


def test_tables_of_unknown_memory():
    assert _pass(open_rows({"x": (k,)} for k in range(200))) == 200


@pytest.mark.expensive
def test_tables_of_an_iterable_are_let_go():
    gc.freeze()  # what other tests left is not searched at every table
    frames = []

    def tables():
        for k in range(20):
            gc.collect()
            assert sum(frame() is not None for frame in frames) <= 3
            frame = pd.DataFrame({"x": np.full(50, k)})
            frames.append(ref(frame))
            yield frame

    assert _pass(open_rows(tables())) == 1000


@pytest.mark.expensive
def test_arrays_of_an_iterable_are_let_go():
    gc.freeze()
    arrays = []

    def tables():
        for k in range(20):
            gc.collect()
            assert sum(array() is not None for array in arrays) <= 3
            array = np.full(50, k)
            arrays.append(ref(array))
            yield {"x": array, "one": [1.0] * 50}

    assert _pass(open_rows(tables())) == 1000


@pytest.mark.product
def test_many_slices_of_one_table_take_the_time_of_as_many_tables():
    frame = pd.DataFrame({"x": np.arange(6000.0)})
    start = process_time()
    source = open_rows([frame[k : k + 1] for k in range(6000)])
    # Some .4 s; every pair compared would be minutes.
    assert process_time() - start < 10
    assert source.nrows == 6000


def test_the_number_of_rows_of_a_list_is_public_to_the_choice_of_a_mechanism():
    rng = np.random.default_rng(3)
    halves = [pd.DataFrame({"x": rng.normal(size=20_000)}) for _ in range(2)]
    total, book = pd.concat(halves), dp.codebook(x=(-100, 100))
    options = {"codebook": book, "eps": 1.0, "delta": 1e-6}
    names = [dp.dp_cov("~ x", data, **options).release.info.name for data in (total, halves)]
    assert names[0] == names[1]


def test_an_item_that_fails_after_the_charge_says_so():
    ledger = dp.Ledger(eps=3.0)
    items = iter([pd.DataFrame({"x": [1, 2]}), pd.DataFrame({"y": [1]})])
    with pytest.raises(FrameError, match=r"no column 'x'.*A ledger is charged.*so it has been"):
        dp.dp_table("~ x", items, **ASKED, ledger=ledger)
    assert len(ledger.entries) == 1


def test_a_shared_column_beside_columns_of_unknown_memory():
    tables = [{"x": (1, 2, 3), "one": ONES[:3]}, {"x": (4, 5, 6), "one": ONES[:3]}]
    assert open_rows(tables).nrows == 6


def test_a_list_is_read_as_often_as_needed():
    tables = [pd.DataFrame({"x": np.full(900, 0.5)}), pd.DataFrame({"x": np.full(1200, 0.5)})]
    source = open_rows(tables)
    assert source.rereadable
    assert source.nrows == 2100
    cb = dp.codebook(x=(0, 1))
    fits = [dp.dp_mean("~ x", data, codebook=cb, eps=1) for data in (tables, pd.concat(tables))]
    assert fits[0].release.info.name == fits[1].release.info.name


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_a_file_that_changes_after_it_was_opened_is_refused(tmp_path, suffix):
    path = tmp_path / f"rows.{suffix}"
    write = PANDAS.to_csv if suffix == "csv" else PANDAS.to_parquet
    write(path, index=False)
    source = open_rows(path)
    (PANDAS[:2].to_csv if suffix == "csv" else PANDAS[:2].to_parquet)(path, index=False)
    with pytest.raises(FrameError, match="changed or replaced"):
        list(source.chunks(("x",), 9))


class Label(str):
    """A label that can be watched."""


def test_tables_that_are_freed_are_forgotten():
    tables, labels = Tables(kept=False), []
    for number in range(400):
        label = Label(f"item {number}")
        labels.append(ref(label))
        tables.require_new({"x": np.arange(40.0)}, label)
    assert sum(label() is not None for label in labels) <= 130
