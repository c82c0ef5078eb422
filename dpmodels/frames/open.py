"""Entry point for data: every supported container becomes a source of rows, no table twice."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final, NamedTuple
from weakref import ref

import numpy as np
from numpy.typing import NDArray

from dpmodels.errors import FrameError, SyntheticWarning, warn
from dpmodels.frames import parquet, sql_table
from dpmodels.frames.columns import ColumnRows, NativeRows, open_mapping, open_structured, require
from dpmodels.frames.dask_rows import DaskRows, open_dask
from dpmodels.frames.delimited import CsvFile, CsvMode, DelimitedRows, is_delimited, open_delimited
from dpmodels.frames.drivers import duckdb_relation
from dpmodels.frames.protocol import Chunk, RowSource, Untyped, unfinished

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa


# Whether two tables in memory are one: the same object, or views of the same memory.
#
# Objects and addresses are compared, never cells. Tables are one where they share memory in every
# column that both have. One shared column proves nothing: tables of different rows may share a
# column of ones. A value broadcast to all rows is left out. A column whose memory is not known
# here (a tuple, an extension type) counts as different, and then only the identity of the object
# counts.

_TABLE: Final = "\0table"  # Named like a column: the object itself
_FEWEST: Final = 64  # A choice: tables before freed ones are removed


class Extent(NamedTuple):
    """Memory of the cells of a column: from an address to before another, one cell a step."""

    start: int
    stop: int
    step: int
    size: int

    def meets(self, extent: Extent) -> bool:
        """Whether two share a byte; of different steps, whether they overlap."""
        if self.start >= extent.stop or extent.start >= self.stop:
            return False
        offset = (self.start - extent.start) % self.step
        return self.step != extent.step or min(offset, self.step - offset) < self.size


class _Column(NamedTuple):
    """The memory of a column, None where unknown, and the owner that keeps it alive."""

    extents: tuple[Extent, ...] | None
    owner: object


class _Table(NamedTuple):
    label: str
    columns: Mapping[str, tuple[Extent, ...]]  # Empty where it is not known
    living: Mapping[str, Callable[[], bool]]

    def same(self, new: _Table) -> bool:
        """Whether this table, as far as it is still in memory, and a new one are one."""
        names = self.columns.keys() & new.columns.keys()
        met = {name for name in names if self._meets(new, name) and self.living[name]()}
        return _TABLE in met or (bool(met) and met == names - {_TABLE})

    def _meets(self, new: _Table, name: str) -> bool:
        return any(old.meets(extent) for old in self.columns[name] for extent in new.columns[name])


class Tables:
    """The tables that were met, to refuse one that comes twice; no row is kept in memory.

    `kept` says that the caller keeps all tables. Otherwise addresses count while their owner lives;
    for lists, which have no weak references, only those of the last table.
    """

    def __init__(self, *, kept: bool) -> None:
        self._kept = kept
        self._count = 0
        self._last: Sequence[object] = ()
        self._seen: dict[str, list[tuple[int, int, _Table]]] = {}
        self._longest = 0
        self._room = _FEWEST

    def require_new(self, data: object, label: str) -> None:
        """Refuse a table that was met before, or that shares its rows with one."""
        import narwhals.stable.v2 as nw

        data = nw.to_native(data, pass_through=True)
        columns = {name: column for name, column in _columns(data).items() if column.extents != ()}
        if not columns:
            return  # Without rows, or of broadcast values
        if self._kept or not isinstance(data, Mapping):
            columns[_TABLE] = _object(data)
        alive = {name: self._watch(column.owner) for name, column in columns.items()}
        new = _Table(label, {name: column.extents or () for name, column in columns.items()}, alive)
        for table in self._candidates(new):
            if table.same(new):
                raise FrameError(
                    f"{table.label} and {label} are one table that is given twice, or share rows "
                    "in memory, which would count twice: give each row once, and a copy of an "
                    "array that is filled again"
                )
        self._count += 1
        self._last = [] if self._kept else [column.owner for column in columns.values()]
        self._add(new)

    def _watch(self, owner: object) -> Callable[[], bool]:
        if self._kept:
            return lambda: True
        try:
            watched = ref(owner)
        except TypeError:
            number = self._count + 1
            return lambda: self._count == number
        return lambda: watched() is not None

    def _candidates(self, new: _Table) -> Sequence[_Table]:
        """Return the tables of which a column may share memory with that of a new one."""
        candidates: dict[int, _Table] = {}
        for name, extents in new.columns.items():
            entries = self._seen.get(name, [])
            for extent in extents:
                low = bisect_left(entries, (extent.start - self._longest,))
                high = bisect_left(entries, (extent.stop,))
                candidates |= {id(entry[-1]): entry[-1] for entry in entries[low:high]}
        return list(candidates.values())

    def _add(self, new: _Table) -> None:
        """Remember a table by the addresses of its columns; forget those that are gone."""
        if not self._kept and self._count >= self._room:
            for name, entries in self._seen.items():
                entries[:] = [entry for entry in entries if entry[-1].living[name]()]
            self._room = self._count + max((_FEWEST, *map(len, self._seen.values())))
        for name, extents in new.columns.items():
            for index, extent in enumerate(extents):
                self._longest = max(self._longest, extent.stop - extent.start)
                number = self._count + index * 2**32  # Tables are not compared
                insort(self._seen.setdefault(name, []), (extent.start, number, new))


def _columns(data: Any) -> dict[str, _Column]:
    """Return where the columns of a table in memory lie; of other data nothing."""
    import narwhals.stable.v2 as nw

    if isinstance(data, Mapping):
        cells = {name: nw.to_native(data[name], pass_through=True) for name in data}
    elif isinstance(data, np.ndarray):
        cells = {name: data[name] for name in data.dtype.names or ()}
    elif nw.dependencies.is_pandas_dataframe(data):
        cells = {name: data.iloc[:, at] for at, name in enumerate(data.columns)}
    elif nw.dependencies.is_polars_dataframe(data):
        cells = dict(zip(data.columns, data.get_columns(), strict=True))
    elif nw.dependencies.is_pyarrow_table(data) or hasattr(data, "__arrow_c_array__"):
        cells = dict(zip(data.schema.names, data.columns, strict=True))
    elif nw.dependencies.is_dask_dataframe(data):
        return {_TABLE: _object(data)}  # Its workers have the rows
    else:
        return {}
    cells_by_name = {name: values for name, values in cells.items() if isinstance(name, str)}
    return {name: _column(values, data) for name, values in cells_by_name.items()}


def _object(owner: object) -> _Column:
    return _Column((Extent(id(owner), id(owner) + 1, 1, 1),), owner)


def _column(cells: object, table: object) -> _Column:
    import narwhals.stable.v2 as nw

    pandas = nw.dependencies.get_pandas()
    if pandas is not None and isinstance(cells, pandas.Series):
        cells = _pandas_cells(cells)
    if isinstance(cells, np.ndarray):
        return _of_array(cells)
    if isinstance(cells, list):
        return _object(cells) if cells else _Column((), cells)
    owner = cells if isinstance(table, Mapping) else table
    parts = _arrow_parts(cells)
    if parts is None:
        return _Column(None, owner)
    extents = [_arrow_extent(part) for part in parts if len(part)]
    located = tuple(extent for extent in extents if extent is not None)
    if len(located) < len(extents):
        return _Column(None, owner)
    return _Column(tuple(extent for extent in located if extent.start < extent.stop), owner)


def _pandas_cells(series: pd.Series) -> object:
    """Return the array in which a pandas series has its cells; None where that is not known."""
    import pandas as pd

    dtype, array = series.dtype, series.array
    if isinstance(dtype, np.dtype):
        return series.to_numpy()
    if isinstance(dtype, pd.CategoricalDtype):
        return array.codes
    if isinstance(dtype, pd.ArrowDtype) or getattr(dtype, "storage", None) == "pyarrow":
        return array.__arrow_array__()
    return getattr(array, "_data", None)  # Nullable numbers


def _of_array(array: NDArray[np.generic]) -> _Column:
    root: Any = array
    while isinstance(root.base, np.ndarray):
        root = root.base
    if array.ndim != 1 or not array.size or not array.strides[0]:
        return _Column((), root)
    first = array.__array_interface__["data"][0]
    last = first + (len(array) - 1) * array.strides[0]
    stop = max(first, last) + array.itemsize
    return _Column((Extent(min(first, last), stop, abs(array.strides[0]), array.itemsize),), root)


def _arrow_parts(cells: object) -> Sequence[pa.Array] | None:
    """Return a column of polars or Arrow as Arrow arrays, none of them copied."""
    import narwhals.stable.v2 as nw

    if nw.dependencies.is_polars_series(cells):
        import polars as pl

        level = pl.CompatLevel.newest()
        return [chunk.to_physical().to_arrow(compat_level=level) for chunk in cells.get_chunks()]
    pyarrow = nw.dependencies.get_pyarrow()
    if pyarrow is None or not isinstance(cells, pyarrow.Array | pyarrow.ChunkedArray):
        return None
    return cells.chunks if isinstance(cells, pyarrow.ChunkedArray) else [cells]


def _arrow_extent(array: pa.Array) -> Extent | None:
    """Return where the values of an Arrow array lie, or the places of its texts.

    Of bits the whole bytes: neighbouring slices share one.
    """
    from pyarrow import types

    array = array.indices if types.is_dictionary(array.type) else getattr(array, "storage", array)
    kind, buffers = array.type, array.buffers()
    try:
        bits = kind.bit_width
    except ValueError:
        views = types.is_string_view(kind) or types.is_binary_view(kind)
        large = types.is_large_string(kind) or types.is_large_binary(kind)
        small = types.is_string(kind) or types.is_binary(kind)
        bits = 128 * views + 64 * large + 32 * small
    if not bits or len(buffers) < 2 or buffers[1] is None:
        return None
    start = buffers[1].address + -(-array.offset * bits // 8)
    stop = buffers[1].address + (array.offset + len(array)) * bits // 8
    size = max(bits // 8, 1)
    return Extent(start, stop, size, size)


_ACCEPTED = (
    "a DataFrame (pandas, polars, pyarrow, Dask), a lazy table of polars or Ibis, a dict of "
    "columns, a structured array, the path of a .parquet, .arrow, .csv or .csv.gz file, a folder "
    "or a list of .parquet files, a table of a database by dp.sql(...), a DuckDB relation, or an "
    "iterable of tables"
)


def no_rows(names: Iterable[str]) -> RowSource:
    """Return a table of these columns without a row in it."""
    return ColumnRows({name: np.empty(0) for name in names}, 0)


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
    if (frame := _open_frame(data)) is not None:
        return frame
    if isinstance(data, str | PathLike) and not sql_table.is_database(data):
        return _open_path(data)
    if parquet.is_list_of_files(data):
        return parquet.open_parquet(parquet.files_of_all(data))
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
        warn(
            "data= has rows of a synthetic table: errors do not count the noise that they were "
            "made with. Use lm(), glm(), table(), mean() or quantile() of the dp_synth result",
            SyntheticWarning,
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
    if path.is_dir() or parquet.is_pattern(path) or path.suffix.lower() == ".parquet":
        return parquet.open_parquet(parquet.files_of(path))
    if sql_table.is_database_file(path):
        raise FrameError(
            f'{str(path)!r} is a database: write dp.sql({str(path)!r}, table="..."), or in '
            "commands and study files the URL duckdb:///FILE?table=... or sqlite:///FILE?table=..."
        )
    if path.suffix.lower() in parquet.SUFFIXES:
        return parquet.open_arrow_file(path)
    if not is_delimited(path):
        raise FrameError(
            f"{str(path)!r} does not have the suffix .parquet, .arrow or .csv: read the file "
            "yourself and give the DataFrame, or write it as Parquet"
        )
    parquet.require_file(path)
    return open_delimited(path, mode)


def _open_frame(data: Any) -> RowSource | None:
    """Open a data frame in memory; None for anything else."""
    import narwhals.stable.v2 as nw

    if nw.dependencies.is_narwhals_dataframe(data):
        data = data.to_native()
    if nw.dependencies.is_pandas_dataframe(data) and data.columns.nlevels > 1:
        raise FrameError(
            "the columns of the data have names of several levels (a MultiIndex): write "
            'data.columns = data.columns.map("_".join), and these names in the codebook'
        )
    return NativeRows(data) if nw.dependencies.is_into_dataframe(data) else None


def _open_query(data: object) -> RowSource | None:
    """Open a table of a database, or a lazy table; None where it is neither."""
    import narwhals.stable.v2 as nw

    if sql_table.is_database(data):
        return sql_table.DatabaseRows(sql_table.as_table(data).engine())
    native = nw.to_native(data, pass_through=True)
    if nw.dependencies.is_duckdb_relation(native):
        return sql_table.DatabaseRows(duckdb_relation(native))
    query = sql_table.open_lazy(native)
    return None if query is None else sql_table.DatabaseRows(query)


def _open_table(data: Any) -> RowSource | None:
    """Open an array, a mapping or a table of Dask; None where it is neither."""
    import narwhals.stable.v2 as nw

    if isinstance(data, np.ndarray):
        return open_structured(data)
    pyarrow = nw.dependencies.get_pyarrow()
    if pyarrow is not None and isinstance(data, pyarrow.RecordBatch):
        return NativeRows(pyarrow.Table.from_batches([data]))
    lazy = nw.dependencies.is_narwhals_lazyframe(data)
    if not lazy and nw.dependencies.is_dask_dataframe(data):
        return open_dask(data)
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
    if nw.dependencies.is_into_series(data):
        raise FrameError("a single Series is not a table: write series.to_frame()")
    return open_mapping(data) if isinstance(data, Mapping) else None


def _open_items(items: Iterable[object], tables: Tables) -> Iterator[RowSource]:
    """Open tables one after the other, none of them twice."""
    names_by_file: dict[Hashable, str] = {}
    for number, item in enumerate(items, start=1):
        source = _open_item(item)
        tables.require_new(item, f"item {number}")
        if isinstance(source, DelimitedRows | parquet.ParquetRows | parquet.ArrowFileRows):
            parquet.require_once(source.files, names_by_file)
        yield source


def _open_item(item: object) -> RowSource:
    """Open one table of an iterable. The message does not quote it: it might be a cell."""
    if isinstance(item, PathLike):
        return _open_path(item)
    table = frame if (frame := _open_frame(item)) is not None else _open_table(item)
    if table is None:
        raise FrameError(f"the items of an iterable must be tables: give {_ACCEPTED}")
    if isinstance(table, DaskRows):
        raise FrameError(
            "a Dask DataFrame cannot be an item of an iterable: give it alone, or join several "
            "with dask.dataframe.concat"
        )
    return table


# Tables that come one after the other: a list, read as often as needed, or an iterable, once.


class ListedRows(Untyped):
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

    def chunks(self, columns: tuple[str, ...], block_rows: int) -> Iterator[Chunk]:
        """Blocks of at most `block_rows` rows of the columns, table after table."""
        require(self, columns)
        return chain.from_iterable(source.chunks(columns, block_rows) for source in self._sources)


class StreamRows(Untyped):
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
