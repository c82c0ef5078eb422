"""Whether two tables in memory are one: the same object, or views of the same memory.

Objects and addresses are compared, never cells. Tables are one where they share memory in every
column that both have. One shared column proves nothing: tables of different rows may share a column
of ones. A value broadcast to all rows is left out. A column whose memory is not known here (a
tuple, an extension type) counts as different, and then only the identity of the object counts.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from weakref import ref

import numpy as np
from numpy.typing import NDArray

from dpmodels.errors import FrameError

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

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
