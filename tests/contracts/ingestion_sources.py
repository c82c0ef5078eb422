"""Every kind of source that the package reads, written from the same records.

A source is a function from records, the declared types of their columns and a folder to data. The
writers of text files here quote as their programs do. Containers that infer types do so by
themselves, so that one cell can change the type of its whole column.
"""

import csv
from collections.abc import Callable, Sequence
from datetime import date
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv as arrow_csv
import pyarrow.feather as feather
import pyarrow.parquet as pq

from dpmodels.frames.delimited import CsvFile

NAMES = ("id", "cell", "note")


class Record(NamedTuple):
    """One record as its writer means it; `person` is never written."""

    person: str
    id: Any = None
    cell: Any = None
    note: Any = ""


class Schema(NamedTuple):
    """The types that are declared for two columns: "text", "whole", "real" or "day"."""

    id: str = "text"
    cell: str = "text"
    note: str = "text"


Records = Sequence[Record]
Columns = dict[str, list[Any]]


def columns(records: Records) -> Columns:
    return {name: [getattr(record, name) for record in records] for name in NAMES}


# --- In memory, types inferred from cells


def _arrays(records: Records, schema: Schema, folder: Path) -> Any:
    return {name: _array(cells) for name, cells in columns(records).items()}


def _array(cells: list[Any]) -> Any:
    try:
        return np.asarray(cells)
    except (ValueError, OverflowError):
        return _objects(cells)


def _objects(cells: list[Any]) -> Any:
    return np.fromiter(cells, object, len(cells))


def _inferred(records: Records, schema: Schema, folder: Path) -> pd.DataFrame:
    return pd.DataFrame(columns(records))


def _object_columns(records: Records, schema: Schema, folder: Path) -> pd.DataFrame:
    values_by_name = {name: pd.Series(_objects(cells)) for name, cells in columns(records).items()}
    return pd.DataFrame(values_by_name, dtype=object)


def _nullable(records: Records, schema: Schema, folder: Path) -> pd.DataFrame:
    return _inferred(records, schema, folder).convert_dtypes()


def _categories(records: Records, schema: Schema, folder: Path) -> pd.DataFrame:
    return _inferred(records, schema, folder).astype("category")


def _structured(records: Records, schema: Schema, folder: Path) -> Any:
    array = np.empty(len(records), dtype=[(name, object) for name in NAMES])
    for name, cells in columns(records).items():
        array[name] = _objects(cells)
    return array


def _repeated_index(records: Records, schema: Schema, folder: Path) -> pd.DataFrame:
    frame = _inferred(records, schema, folder)
    return frame.set_index(pd.Index([0] * len(frame)))


# --- In memory, types declared


_ARROW = {"text": pa.string(), "whole": pa.int64(), "real": pa.float64(), "day": pa.date32()}
_POLARS = {"text": pl.String, "whole": pl.Int64, "real": pl.Float64, "day": pl.Date}
_READ: dict[str, Callable[[Any], Any]] = {"text": str, "whole": int, "real": float}


def declared_cell(cell: Any, kind: str) -> Any:
    """Return what a program with a declared type stores of a cell; None where it cannot."""
    if kind == "day":
        return date(*cell.timetuple()[:3]) if isinstance(cell, date) and cell == cell else None
    try:
        return None if cell is None else _READ[kind](cell)
    except (TypeError, ValueError, OverflowError):
        return None


def arrow(records: Records, schema: Schema, folder: Path) -> pa.Table:
    arrays = {}
    for name, cells in columns(records).items():
        kind = getattr(schema, name)
        values = [declared_cell(cell, kind) for cell in cells]
        arrays[name] = pa.array(values, type=_ARROW[kind])
    return pa.table(arrays)


def _dictionaries(records: Records, schema: Schema, folder: Path) -> pa.Table:
    table = arrow(records, schema, folder)
    arrays = {name: table[name].combine_chunks().dictionary_encode() for name in NAMES}
    return pa.table(arrays)


def _polars(records: Records, schema: Schema, folder: Path) -> pl.DataFrame:
    values_by_name = {
        name: [declared_cell(cell, getattr(schema, name)) for cell in cells]
        for name, cells in columns(records).items()
    }
    return pl.DataFrame(
        values_by_name, schema={name: _POLARS[getattr(schema, name)] for name in NAMES}
    )


def _pandas_arrow(records: Records, schema: Schema, folder: Path) -> pd.DataFrame:
    return arrow(records, schema, folder).to_pandas(types_mapper=pd.ArrowDtype)


def _relation(records: Records, schema: Schema, folder: Path) -> Any:
    import duckdb

    return duckdb.connect().from_arrow(arrow(records, schema, folder))


def _feather(records: Records, schema: Schema, folder: Path) -> Path:
    feather.write_feather(arrow(records, schema, folder), folder / "rows.feather", chunksize=2)
    return folder / "rows.feather"


# --- Parts, one after the other


def _halves(records: Records) -> tuple[Records, Records]:
    return records[:2], records[2:]


def _list(records: Records, schema: Schema, folder: Path) -> Any:
    return [_inferred(part, schema, folder) for part in _halves(records)]


def _generator(records: Records, schema: Schema, folder: Path) -> Any:
    first, second = _halves(records)
    return iter([_arrays(first, schema, folder), _inferred(second, schema, folder)])


def _sites(records: Records, schema: Schema, folder: Path) -> Any:
    """Write the rows of a person to one site."""
    first = [record for record in records if ord(record.person[-1]) % 2]
    second = [record for record in records if record not in first]
    return {"a": _inferred(first, schema, folder), "b": _structured(second, schema, folder)}


def _dask(records: Records, schema: Schema, folder: Path) -> Any:
    import dask.dataframe as dd

    return dd.from_pandas(_inferred(records, schema, folder), npartitions=2)


# --- Files


def _parquet(records: Records, schema: Schema, folder: Path) -> Path:
    path = folder / "rows.parquet"
    pq.write_table(arrow(records, schema, folder), path, row_group_size=2)
    return path


def _parquet_folder(records: Records, schema: Schema, folder: Path) -> Path:
    """Write files whose columns are typed by what is in each of them."""
    place = folder / "parts"
    place.mkdir(exist_ok=True)
    for number, part in enumerate(_halves(records)):
        _write_inferred(part, place / f"{number}.parquet", schema)
    return place


def _write_inferred(records: Records, path: Path, schema: Schema) -> None:
    """Write ids as whole numbers where all of a file are, otherwise as text."""
    ids = [record.id for record in records]
    kind = (
        "whole"
        if all(type(id_text) is int and abs(id_text) < 2**63 for id_text in ids)
        else schema.id
    )
    pq.write_table(arrow(records, schema._replace(id=kind), path.parent), path)


def _csv_pandas(records: Records, schema: Schema, folder: Path) -> Path:
    path = folder / "rows.csv"
    _object_columns(records, schema, folder).to_csv(path, index=False, encoding="utf-8-sig")
    return path


def _csv_writer(records: Records, schema: Schema, folder: Path, *, end: str, **words: Any) -> Path:
    path = folder / "rows.csv"
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator=end, **words)
        writer.writerow(NAMES)
        writer.writerows(zip(*columns(records).values(), strict=True))
    return path


def _csv_unended(records: Records, schema: Schema, folder: Path) -> Path:
    """Write a file whose last record ends with the file."""
    path = _csv_writer(records, schema, folder, end="\n", quoting=csv.QUOTE_ALL)
    path.write_bytes(path.read_bytes().removesuffix(b"\n"))
    return path


def _csv_lines(records: Records, schema: Schema, folder: Path) -> CsvFile:
    """Write as a program that never quotes and ends a record with a line feed."""
    path = folder / "rows.csv"
    lines = [",".join(NAMES)]
    lines += [
        ",".join(map(_on_one_line, (record.id, record.cell, record.note))) for record in records
    ]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8", newline="")
    return CsvFile(path, "lines")


def _on_one_line(cell: Any) -> str:
    text = "" if cell is None else str(cell)
    return text.replace("\n", " ").replace(",", ";")


# --- Text files that other software reads, which infers a type for each column


def _read_csv(read: Callable[[str], Any]) -> Callable[[Records, Schema, Path], Any]:
    def make(records: Records, schema: Schema, folder: Path) -> Any:
        return read(str(_csv_writer(records, schema, folder, end="\n")))

    return make


def _duckdb_csv(path: str) -> Any:
    import duckdb

    return duckdb.connect().read_csv(path, header=True)


READERS: dict[str, Callable[[str], Any]] = {
    "polars": pl.read_csv,
    "polars-dates": partial(pl.read_csv, try_parse_dates=True),
    "polars-scan": partial(pl.scan_csv, try_parse_dates=True),
    "arrow": arrow_csv.read_csv,
    "arrow-dictionary": partial(
        arrow_csv.read_csv, convert_options=arrow_csv.ConvertOptions(auto_dict_encode=True)
    ),
    "duckdb": _duckdb_csv,
    "pandas-arrow": partial(pd.read_csv, engine="pyarrow", dtype_backend="pyarrow"),
}


class Source(NamedTuple):
    """How records become data, and what its writer can say."""

    make: Callable[[Records, Schema, Path], Any]
    typed: bool = False  # Whether the container has cells of declared types only
    text: bool = False  # Whether cells of mixed types are written as text
    sites: bool = False
    scattered: bool = False  # Whether rows stay with workers


SOURCES: dict[str, Source] = {
    "lists": Source(lambda records, schema, folder: columns(records)),
    "arrays": Source(_arrays),
    "structured": Source(_structured),
    "pandas": Source(_inferred),
    "pandas-objects": Source(_object_columns),
    "pandas-nullable": Source(_nullable),
    "pandas-category": Source(_categories),
    "pandas-arrow": Source(_pandas_arrow, typed=True),
    "pandas-index": Source(_repeated_index),
    "polars": Source(_polars, typed=True),
    "arrow": Source(arrow, typed=True),
    "arrow-dictionary": Source(_dictionaries, typed=True),
    "arrow-file": Source(_feather, typed=True),
    "duckdb": Source(_relation, typed=True),
    "polars-lazy": Source(lambda *inputs: _polars(*inputs).lazy(), typed=True),
    "list-of-frames": Source(_list),
    "generator": Source(_generator),
    "sites": Source(_sites, sites=True),
    "dask": Source(_dask, text=True, scattered=True),
    "parquet": Source(_parquet, typed=True),
    "parquet-folder": Source(_parquet_folder, typed=True),
    "csv-pandas": Source(_csv_pandas, text=True),
    "csv-minimal": Source(partial(_csv_writer, end="\r\n"), text=True),
    "csv-line-feeds": Source(partial(_csv_writer, end="\n"), text=True),
    "csv-all": Source(partial(_csv_writer, end="\n", quoting=csv.QUOTE_ALL), text=True),
    "csv-text-quoted": Source(
        partial(_csv_writer, end="\r\n", quoting=csv.QUOTE_NONNUMERIC), text=True
    ),
    "csv-unended": Source(_csv_unended, text=True),
    "csv-lines": Source(_csv_lines, text=True),
}

INFERRING: dict[str, Source] = {
    name: Source(_read_csv(read), text=True) for name, read in READERS.items()
}
