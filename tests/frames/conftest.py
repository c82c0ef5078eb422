"""One table in every kind of container that can hold it."""

import csv
import gzip
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import duckdb
import narwhals.stable.v2 as nw
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest
from postgres_server import to_duckdb, to_sqlite

import dpmodels as dp
from dpmodels.frames import open_rows

INF = float("inf")
TABLE: dict[str, list[Any]] = {
    "real": [1.5, None, INF, -INF, 0.1, 2.0, None],
    "count": [3, 1, None, 2**53 + 1, -7, 1, 0],
    "flag": [True, False, None, True, False, None, True],
    "text": ["F", "M", None, " F", "1", "é", "F"],
    "group": ["b", "a", "b", None, "c", "a", "b"],
}
NAMES = tuple(TABLE)
DTYPES = {"real": "f8", "count": "i8", "flag": "?", "text": "O", "group": "O"}


def _objects(cells: list[Any]) -> np.ndarray:
    return np.fromiter(cells, object, len(cells))


def _masked(name: str, cells: list[Any]) -> np.ma.MaskedArray:
    gaps = [cell is None for cell in cells]
    filled = [0 if gap else cell for cell, gap in zip(cells, gaps, strict=True)]
    return np.ma.MaskedArray(np.array(filled, dtype=DTYPES[name]), mask=gaps)


def _pandas(table: dict[str, list[Any]]) -> pd.DataFrame:
    return pd.DataFrame(table).astype({"group": "category"})


def _pandas_objects(table: dict[str, list[Any]]) -> pd.DataFrame:
    return pd.DataFrame({name: pd.Series(_objects(c), dtype=object) for name, c in table.items()})


def _pandas_nullable(table: dict[str, list[Any]]) -> pd.DataFrame:
    dtypes = {"real": "Float64", "count": "Int64", "flag": "boolean"}
    text = pd.StringDtype("python")
    columns = {n: pd.array(c, dtype=dtypes.get(n, text)) for n, c in table.items()}
    return pd.DataFrame(columns)


def _pandas_arrow(table: dict[str, list[Any]]) -> pd.DataFrame:
    return _arrow(table).to_pandas(types_mapper=pd.ArrowDtype)


def _polars(table: dict[str, list[Any]]) -> pl.DataFrame:
    schema = {
        "real": pl.Float64,
        "count": pl.Int64,
        "flag": pl.Boolean,
        "text": pl.String,
        "group": pl.Categorical,
    }
    return pl.DataFrame(table, schema=schema)


def _arrow(table: dict[str, list[Any]]) -> pa.Table:
    schema = pa.schema(
        {
            "real": pa.float64(),
            "count": pa.int64(),
            "flag": pa.bool_(),
            "text": pa.string(),
            "group": pa.dictionary(pa.int8(), pa.string()),
        }
    )
    return pa.table(table, schema=schema)


def _structured(table: dict[str, list[Any]]) -> np.ndarray:
    n = len(table["real"])
    array = np.empty(n, dtype=[(name, object) for name in table])
    for name, cells in table.items():
        array[name] = _objects(cells)
    return array


def _halves(table: dict[str, list[Any]]) -> list[dict[str, list[Any]]]:
    return [{n: c[:4] for n, c in table.items()}, {n: c[4:] for n, c in table.items()}]


IN_MEMORY: dict[str, Callable[[dict[str, list[Any]]], Any]] = {
    "pandas": _pandas,
    "pandas-objects": _pandas_objects,
    "pandas-nullable": _pandas_nullable,
    "pandas-arrow": _pandas_arrow,
    "polars": _polars,
    "polars-chunked": lambda table: pl.concat(map(_polars, _halves(table)), rechunk=False),
    "narwhals": lambda table: nw.from_native(_polars(table)),
    "arrow": _arrow,
    "arrow-chunked": lambda table: pa.concat_tables(map(_arrow, _halves(table))),
    "record-batch": lambda table: (
        _arrow(table).combine_chunks().to_batches()[0]
        if table["real"]
        else pa.RecordBatch.from_pylist([], schema=_arrow(table).schema)
    ),
    "lists": dict,
    "object-arrays": lambda table: {name: _objects(c) for name, c in table.items()},
    "masked-arrays": lambda table: {name: _masked(name, c) for name, c in table.items()},
    "pandas-series": lambda table: {name: _pandas(table)[name] for name in table},
    "pandas-indexes": lambda table: {name: pd.Index(_objects(c)) for name, c in table.items()},
    "pandas-arrays": lambda table: {name: _pandas(table)[name].array for name in table},
    "polars-series": lambda table: {name: _polars(table)[name] for name in table},
    "arrow-arrays": lambda table: {n: _arrow(table)[n].combine_chunks() for n in table},
    "structured": _structured,
    "list-of-frames": lambda table: [_pandas(table)],
    "generator": lambda table: map(_polars, _halves(table)),
    "mixed-stream": lambda table: iter([_arrow(_halves(table)[0]), _halves(table)[1]]),
}


def _parquet(table: dict[str, list[Any]], folder: Path) -> str:
    path = folder / "table.parquet"
    pq.write_table(_arrow(table), path, row_group_size=3)
    return str(path)


def _csv(table: dict[str, list[Any]], folder: Path) -> Path:
    path = folder / "table.csv"
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(table)
        writer.writerows(zip(*table.values(), strict=True))
    return path


def _gzipped(table: dict[str, list[Any]], folder: Path) -> str:
    path = folder / "table.csv.gz"
    path.write_bytes(gzip.compress(_csv(table, folder).read_bytes()))
    return str(path)


def _feather(table: dict[str, list[Any]], folder: Path) -> Path:
    path = folder / "table.feather"
    feather.write_feather(_arrow(table), path, chunksize=3)
    return path


TYPES = {
    "real": "DOUBLE",
    "count": "BIGINT",
    "flag": "BOOLEAN",
    "text": "VARCHAR",
    "group": "ENUM ('a', 'b', 'c')",
}


def _duckdb(table: dict[str, list[Any]], folder: Path) -> Any:
    path = folder / "table.duckdb"
    to_duckdb(path, "table", table, TYPES)
    return dp.sql(path, "table")


def _relation(table: dict[str, list[Any]], folder: Path) -> Any:
    _duckdb(table, folder)
    return duckdb.connect(str(folder / "table.duckdb")).table('"table"')


def _sqlite(table: dict[str, list[Any]], folder: Path) -> Any:
    to_sqlite(folder / "table.sqlite", "table", table)
    return dp.sql(f"sqlite:///{folder}/table.sqlite?table=table")


ON_DISK = {
    "parquet": _parquet,
    "csv": _csv,
    "csv.gz": _gzipped,
    "feather": _feather,
    "duckdb": _duckdb,
    "duckdb-relation": _relation,
    "sqlite": _sqlite,
    "polars-lazy": lambda table, folder: _polars(table).lazy(),
}


def read(data: object, wanted: tuple[str, ...], rows: int = 3) -> dict[str, list[np.ndarray]]:
    columns: dict[str, list[np.ndarray]] = {name: [] for name in wanted}
    for chunk in open_rows(data).chunks(wanted, rows):
        assert tuple(chunk) == wanted
        lengths = {len(chunk[name]) for name in wanted}
        assert len(lengths) == 1
        assert 1 <= lengths.pop() <= rows
        for name in wanted:
            assert np.ndim(chunk[name]) == 1
            columns[name].append(chunk[name])
    return columns


@pytest.fixture(params=[*IN_MEMORY, *ON_DISK])
def make(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[..., Any]:
    """The container of a table, one kind after the other."""
    if request.param in IN_MEMORY:
        return IN_MEMORY[request.param]
    return lambda table: ON_DISK[request.param](table, tmp_path)


@pytest.fixture
def kit() -> SimpleNamespace:
    """The table and how to read it."""
    return SimpleNamespace(table=TABLE, names=NAMES, read=read, arrow=_arrow, objects=_objects)
