"""Entry point for data: every supported container becomes a source of rows."""

import warnings
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping
from itertools import chain
from os import PathLike
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from dpmodels.errors import FrameError, SyntheticWarning, frames_up
from dpmodels.frames.arrow_file import SUFFIXES, ArrowFileRows, open_arrow_file
from dpmodels.frames.columns import NativeRows, open_mapping, open_structured
from dpmodels.frames.dask_rows import DaskRows, open_dask
from dpmodels.frames.database import DatabaseRows, open_lazy
from dpmodels.frames.delimited import CsvFile, CsvMode, DelimitedRows, is_delimited, open_delimited
from dpmodels.frames.duckdb_engine import duckdb_relation
from dpmodels.frames.files import files_of, files_of_all, is_list_of_files, is_pattern, require_once
from dpmodels.frames.parquet import ParquetRows, open_parquet
from dpmodels.frames.protocol import ANY, Chunk, Kind, RowSource, unfinished
from dpmodels.frames.require import require
from dpmodels.frames.same_table import Tables
from dpmodels.frames.sql_table import as_table, is_database, is_database_file

_ACCEPTED = (
    "a DataFrame (pandas, polars, pyarrow, Dask), a lazy table of polars or Ibis, a dict of "
    "columns, a structured array, the path of a .parquet, .arrow, .csv or .csv.gz file, a folder "
    "or a list of .parquet files, a table of a database by dp.sql(...), a DuckDB relation, or an "
    "iterable of tables"
)


def no_rows(names: Iterable[str]) -> RowSource:
    """Return a table of these columns without a row in it."""
    return open_rows({name: np.empty(0) for name in names})


def open_rows(data: object) -> RowSource:
    """Open data as a source of rows.

    A data frame of pandas, polars, pyarrow or another eager library that narwhals knows; a numpy
    structured array; a mapping of names to 1-D array-likes; the path of a ``.parquet`` or ``.csv``
    file; several ``.parquet`` files as a folder, a pattern (``"rows/*.parquet"``) or a list of
    paths; an Arrow file; a table of a database, or its URL; a lazy table of polars or Ibis, or a
    DuckDB relation; an iterable of in-memory tables or `Path` objects, which is read once; a Dask
    DataFrame, whose rows stay with Dask's workers. Names come at once, rows on request: no row is
    looked at, of a file the header or footer is read, and an iterable is asked for its first table
    when the names are.

    >>> source = open_rows({"wage": [9.5, 12.0, 20.0], "sex": ["F", "M", "F"]})
    >>> source.names
    ('wage', 'sex')
    >>> [chunk["wage"].tolist() for chunk in source.chunks(("wage",), 2)]
    [[9.5, 12.0], [20.0]]
    """
    if isinstance(data, str | PathLike) and not is_database(data):
        return _open_path(data)
    if is_list_of_files(data):
        return open_parquet(files_of_all(data))
    table = _open_query(data) or _open_table(data)
    if table is not None:
        return table
    if isinstance(data, Iterable) and not isinstance(data, bytes | bytearray | memoryview):
        if isinstance(data, list | tuple):
            return ListedRows(tuple(_open_items(data, Tables(kept=True))))
        return StreamRows(_open_items(data, Tables(kept=False)))
    raise FrameError(f"data of type {type(data).__name__} cannot be read: give {_ACCEPTED}")


def warn_if_synthetic(data: object) -> None:
    """Warn of a pandas frame whose metadata say that its rows are synthetic."""
    metadata = getattr(data, "attrs", None)
    if isinstance(metadata, Mapping) and SyntheticWarning.KEY in metadata:
        warnings.warn(
            "data= has rows of a synthetic table: errors do not count the noise that they were "
            "made with. Use lm(), glm(), table(), mean() or quantile() of the dp_synth result",
            SyntheticWarning,
            stacklevel=frames_up(),
        )


def records_of(data: object) -> tuple[CsvMode, ...]:
    """Return the modes of the CSV files in data; empty without CSV files."""
    if isinstance(data, list | tuple):
        return tuple(mode for item in data for mode in records_of(item))
    if isinstance(data, CsvFile):
        return (data.mode,)
    return ("records",) if _is_csv(data) else ()


def with_csv_mode(data: object, mode: CsvMode) -> object:
    """Attach the mode to paths of CSV files in data; other data are unchanged."""
    if isinstance(data, list | tuple):
        return [CsvFile(Path(item), mode) if _is_csv(item, PathLike) else item for item in data]
    return CsvFile(Path(data), mode) if _is_csv(data) else data  # type: ignore[arg-type]


def _is_csv(data: object, kinds: Any = (str, PathLike)) -> bool:
    return isinstance(data, kinds) and is_delimited(Path(data))


def _open_path(data: str | PathLike[str]) -> RowSource:
    """Open a file by its suffix; a folder or a pattern as Parquet files."""
    path, mode = Path(data), data.mode if isinstance(data, CsvFile) else "records"
    if path.is_dir() or is_pattern(path) or path.suffix.lower() == ".parquet":
        return open_parquet(files_of(path))
    if is_database_file(path):
        raise FrameError(f'{str(path)!r} is a database: write dp.sql({str(path)!r}, table="...")')
    if path.suffix.lower() in SUFFIXES:
        return open_arrow_file(path)
    if not is_delimited(path):
        raise FrameError(
            f"{str(path)!r} does not have the suffix .parquet, .arrow or .csv: read the file "
            "yourself and give the DataFrame, or write it as Parquet"
        )
    if not path.is_file():
        raise FrameError(f"there is no file {str(path)!r}: check the path and the working folder")
    return open_delimited(path, mode)


def _open_query(data: object) -> RowSource | None:
    """Open a table of a database, or a lazy table; None where it is neither."""
    import narwhals.stable.v2 as nw

    if is_database(data):
        return DatabaseRows(as_table(data).engine())
    native = nw.to_native(data, pass_through=True)
    if nw.dependencies.is_duckdb_relation(native):
        return DatabaseRows(duckdb_relation(native))
    query = open_lazy(native)
    return None if query is None else DatabaseRows(query)


def _open_table(data: Any) -> RowSource | None:
    """Open a table in memory or of Dask; None where it is neither."""
    import narwhals.stable.v2 as nw

    if isinstance(data, np.ndarray):
        return open_structured(data)
    if nw.dependencies.is_narwhals_dataframe(data):
        return _open_table(data.to_native())
    if nw.dependencies.is_pandas_dataframe(data) and data.columns.nlevels > 1:
        raise FrameError(
            "the columns of the data have names of several levels (a MultiIndex): write "
            'data.columns = data.columns.map("_".join), and these names in the codebook'
        )
    if nw.dependencies.is_into_dataframe(data):
        return NativeRows(data)
    pyarrow = nw.dependencies.get_pyarrow()
    if pyarrow is not None and isinstance(data, pyarrow.RecordBatch):
        return NativeRows(pyarrow.Table.from_batches([data]))
    lazy = nw.dependencies.is_narwhals_lazyframe(data)
    if not lazy and nw.dependencies.is_dask_dataframe(data):
        return open_dask(data)
    _refuse_lazy(data)
    if nw.dependencies.is_into_series(data):
        raise FrameError("a single Series is not a table: write series.to_frame()")
    return open_mapping(data) if isinstance(data, Mapping) else None


def _refuse_lazy(data: object) -> None:
    """Refuse a query that has not run: its errors could quote cells."""
    import narwhals.stable.v2 as nw

    if hasattr(type(data), "__dask_graph__") and not isinstance(data, Mapping):
        raise FrameError(
            "of Dask's collections only a DataFrame is a table: write series.to_frame(), "
            "bag.to_dataframe(), or dask.dataframe.from_dask_array(array, columns=[...])"
        )
    # Older narwhals recognise only their own lazy frames.
    is_lazy = getattr(nw.dependencies, "is_into_lazyframe", nw.dependencies.is_narwhals_lazyframe)
    if nw.dependencies.is_narwhals_lazyframe(data) or is_lazy(data):
        raise FrameError(
            "a lazy table is a query yet to run: bring it into memory (data.collect(), "
            "data.compute(), data.df()), give an iterable of its computed parts, "
            "or write it to a Parquet file and give the path"
        )


def _open_items(items: Iterable[object], tables: Tables) -> Iterator[RowSource]:
    """Open tables one after the other, none of them twice."""
    names_by_file: dict[Hashable, str] = {}
    for number, item in enumerate(items, start=1):
        source = _open_item(item)
        tables.require_new(item, f"item {number}")
        if isinstance(source, DelimitedRows | ParquetRows | ArrowFileRows):
            require_once(source.files, names_by_file)
        yield source


def _open_item(item: object) -> RowSource:
    """Open one table of an iterable. The message does not quote it: it might be a cell."""
    table = _open_path(item) if isinstance(item, PathLike) else _open_table(item)
    if table is None:
        raise FrameError(f"the items of an iterable must be tables: give {_ACCEPTED}")
    if isinstance(table, DaskRows):
        raise FrameError(
            "a Dask DataFrame cannot be an item of an iterable: give it alone, or join several "
            "with dask.dataframe.concat"
        )
    return table


# Tables that come one after the other: a list, read as often as needed, or an iterable, once.


class ListedRows:
    """The rows of a list of tables, which can be read again."""

    rereadable: ClassVar[bool] = True

    def __init__(self, sources: tuple[RowSource, ...]) -> None:
        if not sources:
            raise FrameError(_EMPTY.format("list gives"))
        self._sources = sources

    @property
    def names(self) -> tuple[str, ...]:
        """The column names that all tables have; twice where one of them has it twice."""
        counts = [Counter(source.names) for source in self._sources]
        first = dict.fromkeys(self._sources[0].names)
        names = [name for name in first if all(count[name] for count in counts)]
        return tuple(name for name in names for _ in range(max(count[name] for count in counts)))

    @property
    def nrows(self) -> int | None:
        """The number of rows of all tables, None where only reading them would tell."""
        counts = [source.nrows for source in self._sources]
        known_counts = [count for count in counts if count is not None]
        return sum(known_counts) if len(known_counts) == len(counts) else None

    def kind(self, name: str) -> Kind:
        """Anything: a table may be a single row, whose cell then decides the type."""
        return ANY

    def chunks(self, columns: tuple[str, ...], block_rows: int) -> Iterator[Chunk]:
        """Blocks of at most `block_rows` rows of the columns, table after table."""
        require(self, columns)
        return chain.from_iterable(source.chunks(columns, block_rows) for source in self._sources)


class StreamRows:
    """The rows of an iterable of tables, for one pass.

    The first table is taken from the iterable when the names are asked for. Errors of the iterable
    itself pass through.
    """

    rereadable: ClassVar[bool] = False

    def __init__(self, sources: Iterable[RowSource]) -> None:
        self._sources: Iterator[RowSource] = iter(sources)
        self._names: tuple[str, ...] | None = None
        self._spent = False

    @property
    def names(self) -> tuple[str, ...]:
        """The column names of the first table."""
        if self._names is None:
            first = next(self._sources, None)
            if first is None:
                raise FrameError(_EMPTY.format("iterable gives"))
            self._sources = chain([first], self._sources)
            self._names = first.names
        return self._names

    @property
    def nrows(self) -> None:
        """Unknown: only reading the tables would tell."""
        return None

    def kind(self, name: str) -> Kind:
        """Anything: the tables to come are not known, and the first may be a single row."""
        return ANY

    def chunks(self, columns: tuple[str, ...], block_rows: int) -> Iterator[Chunk]:
        """Blocks of at most `block_rows` rows of the columns, table after table."""
        require(self, columns)
        if self._spent:
            raise FrameError(
                "an iterable of tables can be read once: make a new one for each model, "
                "or write the tables to one Parquet file and give its path"
            )
        self._spent = True
        return self._read(columns, block_rows)

    def _read(self, columns: tuple[str, ...], block_rows: int) -> Iterator[Chunk]:
        """Read the tables to come, whose errors are raised after the charge."""
        try:
            source = next(self._sources, None)
            while source is not None:
                yield from source.chunks(columns, block_rows)
                source = next(self._sources, None)
        except FrameError as error:
            text = str(error)
        else:
            return
        raise FrameError(text if _CHARGED in text else unfinished(text.rstrip(".")))


_CHARGED = unfinished("").removeprefix(".")
_EMPTY = "the {} no table: give at least one, which may have 0 rows"
