"""Tables in memory, data frames or named columns, cut into blocks of rows."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, cast

import numpy as np
from numpy.typing import NDArray

from dpmodels.dates import is_on_clocks
from dpmodels.errors import FrameError
from dpmodels.frames.convert import MISSING, arrow_cells
from dpmodels.frames.protocol import ANY, Cells, Chunk, Kind, coded, unfinished
from dpmodels.frames.require import require
from dpmodels.frames.user_columns import (
    attribute_of,
    base_array,
    cells_of_sequence,
    cells_one_by_one,
    converted_array,
    is_of_pandas,
    length_of,
)
from dpmodels.typing import Array

if TYPE_CHECKING:
    import pandas
    import polars

Cut = Callable[[int, int], Cells]
"""The rows from a first to before a last, as a 1-D array or coded cells."""


def blocks(cuts: Mapping[str, Cut], nrows: int, block_rows: int) -> Iterator[Chunk]:
    """Consecutive blocks of at most `block_rows` of the `nrows` rows of some columns.

    FrameError where a column has fewer rows by now, or more.
    """
    for start in range(0, nrows, block_rows):
        stop = min(start + block_rows, nrows)
        chunk = {name: cut(start, stop) for name, cut in cuts.items()}
        _require_length(chunk, stop - start)
        yield chunk
    _require_length({name: cut(nrows, nrows + 1) for name, cut in cuts.items()}, 0)


def _require_length(chunk: Chunk, n_rows: int) -> None:
    for name, cells in chunk.items():
        if len(cells) != n_rows:
            raise FrameError(
                unfinished(
                    f"the number of rows of column {name!r} changed while it was in use: give "
                    "data that stay as they are"
                )
            )


def cut(column: object) -> Cut:
    """How to take rows out of a column: as views where the column allows it.

    A sequence of Python objects is read cell by cell: numpy would give all cells the type that fits
    every one of them.
    """
    import narwhals.stable.v2 as nw

    if nw.dependencies.is_narwhals_series(column):
        return cut(column.to_native())
    if isinstance(column, np.ndarray):
        array = base_array(column)
        return lambda start, stop: array[start:stop]
    return _cut_of_library(column) or _cut_of_sequence(column)


def _cut_of_library(column: Any) -> Cut | None:
    """Find the cut of a column of pandas, polars or Arrow, or of a library like pandas."""
    import narwhals.stable.v2 as nw

    pandas = nw.dependencies.get_pandas()
    if pandas is not None:
        if isinstance(column, pandas.Series):
            return _cut_of_pandas(column)
        if isinstance(column, pandas.Index):  # Of tuples alone it has levels
            return _cut_of_pandas(pandas.Series(column.to_flat_index()))
        if isinstance(column, pandas.api.extensions.ExtensionArray):
            return _cut_of_pandas(pandas.Series(column))
    if nw.dependencies.is_polars_series(column):
        return lambda start, stop: _polars_cells(column.slice(start, stop - start))
    pyarrow = nw.dependencies.get_pyarrow()
    if pyarrow is not None and isinstance(column, pyarrow.Array | pyarrow.ChunkedArray):
        return lambda start, stop: arrow_cells(column.slice(start, stop - start))
    if nw.dependencies.is_into_series(column):
        return cut(nw.from_native(column, series_only=True).to_pandas())
    return None


def _cut_of_sequence(column: Any) -> Cut:
    if hasattr(column, "__array__") and not isinstance(column, Sequence):
        return cut(converted_array(column))
    return cells_of_sequence(column)


def _cut_of_pandas(series: "pandas.Series[Any]") -> Cut:
    """How to take rows out of a pandas series.

    Views of numpy columns; categories as coded cells; nullable integers and logical values masked,
    since floats would lose digits of ids; nullable floats with NaN; times in a zone as local ones;
    text and Arrow columns as `arrow_cells` gives them; any other extension type as Python objects,
    one by one where it is not of pandas.
    """
    import pandas as pd

    if type(series) is not pd.Series:
        series = pd.Series(series, copy=False)
    dtype: Any = series.dtype
    array: Any = series.array
    if isinstance(dtype, np.dtype):
        values = series.to_numpy()
        return lambda start, stop: values[start:stop]
    if not is_of_pandas(dtype):
        return lambda start, stop: cells_one_by_one(array, start, min(stop, len(series)))
    if isinstance(dtype, pd.CategoricalDtype):
        return _cut_of_categories(array)
    if isinstance(dtype, pd.ArrowDtype) or getattr(dtype, "storage", None) == "pyarrow":
        return _cut_of_arrow(array)
    if isinstance(array, pd.arrays.IntegerArray | pd.arrays.BooleanArray):
        missing, values = np.asarray(array.isna()), array.to_numpy(dtype.numpy_dtype, na_value=0)
        return lambda start, stop: np.ma.MaskedArray(values[start:stop], missing[start:stop])
    if isinstance(dtype, pd.DatetimeTZDtype):
        return lambda start, stop: _local_times(array[start:stop])
    if isinstance(array, pd.arrays.FloatingArray):
        return lambda start, stop: array[start:stop].to_numpy("float64", na_value=MISSING)
    return lambda start, stop: np.asarray(array[start:stop], dtype=object)


def _local_times(array: "pandas.arrays.DatetimeArray") -> NDArray[np.generic]:
    """Give times in a zone as the zone's own, NaT where they have none."""
    times = array.copy()
    times[np.flatnonzero(~is_on_clocks(array.tz_convert(None).to_numpy())).tolist()] = None
    return np.asarray(times.tz_localize(None).to_numpy())


def _cut_of_categories(array: Any) -> Cut:
    labels = np.asarray(array.categories, dtype=object)
    return lambda start, stop: coded(labels, array.codes[start:stop])


def _cut_of_arrow(array: object) -> Cut:
    import pyarrow as pa

    column = pa.array(array)
    return lambda start, stop: arrow_cells(column.slice(start, stop - start))


def _polars_cells(series: "polars.Series") -> Cells:
    """Give the n cells of a polars series, shape (n,).

    Numbers as numbers (integers with nulls: masked; other numbers: NaN for null), logical values
    as bool (with nulls: masked), dates and times as numpy's, those in a zone as local ones, text,
    bytes and categories as coded cells, decimals, integers of 128 bits, times of a clock and Python
    objects as objects, None for null. Other types (durations, lists, structures) are all NaN.
    """
    import polars as pl

    kind = series.dtype
    # Older polars has no such integers; others end the process over an empty part of objects.
    if kind in (pl.Time, pl.Object) or str(kind) in ("Int128", "UInt128"):
        return np.fromiter(series.to_list(), object, len(series))
    if series.null_count() and (kind.is_integer() or kind == pl.Boolean):
        filled = series.fill_null(False if kind == pl.Boolean else 0)
        return np.ma.MaskedArray(filled.to_numpy(), series.is_null().to_numpy())
    if kind in (pl.String, pl.Categorical, pl.Enum, pl.Binary):
        try:
            return arrow_cells(series.to_arrow())
        except ModuleNotFoundError:  # polars works without pyarrow
            return series.to_numpy()
    if kind.is_numeric() or kind == pl.Boolean:
        return series.to_numpy()
    if kind == pl.Datetime:
        return _polars_times(series)
    if kind == pl.Date:
        return series.to_numpy()
    return np.full(len(series), MISSING)


def _polars_times(series: "polars.Series") -> NDArray[np.generic]:
    """Give times, those in a zone as the zone's own, NaT where they have none."""
    import polars as pl

    kind = cast("pl.Datetime", series.dtype)
    if kind.time_zone is None:
        return series.to_numpy()
    instants = series.to_physical().cast(pl.Datetime(kind.time_unit)).to_numpy()
    local = series.set(pl.Series(~is_on_clocks(instants)), None).dt.replace_time_zone(None)
    return local.to_numpy()


@dataclass(frozen=True, slots=True)
class ColumnRows:
    """The rows of 1-D columns (arrays, lists, Series, Arrow arrays) of one length."""

    columns: Mapping[str, object] = field(repr=False)
    nrows: int = field(repr=False)
    rereadable: ClassVar[bool] = True

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the columns."""
        return tuple(self.columns)

    def kind(self, name: str) -> Kind:
        """Anything: a type in memory may follow from the cells."""
        return ANY

    def chunks(self, columns: tuple[str, ...], block_rows: int) -> Iterator[Chunk]:
        """Blocks of at most `block_rows` rows of the columns."""
        require(self, columns)
        return blocks({name: cut(self.columns[name]) for name in columns}, self.nrows, block_rows)


def open_mapping(data: Mapping[object, object]) -> ColumnRows:
    """Open a mapping of names to 1-D array-likes of one length."""
    columns = {name: data[name] for name in data if isinstance(name, str)}
    lengths = {name: _length(name, column) for name, column in columns.items()}
    first = next(iter(lengths), None)
    for name, length in lengths.items():
        if first is not None and length != lengths[first]:
            raise FrameError(
                f"columns {first!r} and {name!r} differ in length: "
                "give columns of one length, one cell for each row"
            )
    return ColumnRows(columns, lengths[first] if first is not None else 0)


def open_structured(data: Array) -> ColumnRows:
    """Open a structured array; for any other a FrameError says how to name columns."""
    names = data.dtype.names
    if names is None:
        raise FrameError(
            "a plain array has no column names: write "
            '{"x": array[:, 0], "y": array[:, 1]} or pandas.DataFrame(array, columns=[...])'
        )
    if data.ndim != 1:
        raise FrameError(
            "a structured array must be one-dimensional, a record for each row: "
            "write array.reshape(-1)"
        )
    return open_mapping({name: data[name] for name in names})


def _length(name: str, column: Any) -> int:
    """Count the cells of a column, from its shape or length alone."""
    shape = attribute_of(column, "shape")
    if isinstance(shape, tuple) and len(shape) == 1:
        return int(shape[0])
    listed = isinstance(column, Sequence) and not isinstance(column, str | bytes)
    streamed = hasattr(column, "__arrow_c_array__") or hasattr(column, "__arrow_c_stream__")
    length = length_of(column) if shape is None and (listed or streamed) else None
    if length is not None:
        return length
    raise FrameError(
        f"column {name!r} is not one-dimensional: give each column as a 1-D array, "
        "a Series or a list with one cell for each row"
    )


@dataclass(frozen=True, slots=True)
class NativeRows:
    """The rows of an eager data frame, cut without copying where the frame allows it."""

    frame: Any = field(repr=False)
    nrows: int = field(init=False, repr=False)
    rereadable: ClassVar[bool] = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "nrows", int(self.frame.shape[0]))

    @property
    def names(self) -> tuple[str, ...]:
        """The column names; a name that is not text is given as ``""``."""
        import narwhals.stable.v2 as nw

        arrow = nw.dependencies.is_pyarrow_table(self.frame)
        names = self.frame.column_names if arrow else self.frame.columns
        return tuple(name if isinstance(name, str) else "" for name in names)

    def kind(self, name: str) -> Kind:
        """Anything: a type in memory may follow from the cells."""
        return ANY

    def chunks(self, columns: tuple[str, ...], block_rows: int) -> Iterator[Chunk]:
        """Blocks of at most `block_rows` rows of the columns."""
        require(self, columns)
        names = self.names
        cuts = {name: cut(self._column(names.index(name))) for name in columns}
        return blocks(cuts, self.nrows, block_rows)

    def _column(self, position: int) -> object:
        """Take a column by its position: names may repeat among unused columns."""
        import narwhals.stable.v2 as nw

        if nw.dependencies.is_pyarrow_table(self.frame):
            return self.frame.column(position)
        if nw.dependencies.is_polars_dataframe(self.frame):
            return self.frame.to_series(position)
        return self.frame.iloc[:, position]
