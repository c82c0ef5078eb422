"""Columns in memory, cut into blocks of rows."""

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import narwhals.stable.v2 as nw
import numpy as np
from numpy.typing import NDArray

from dpmodels.frames.arrow_cells import arrow_cells
from dpmodels.frames.cell import MISSING
from dpmodels.frames.protocol import Chunk

if TYPE_CHECKING:
    import pandas
    import polars

Cut = Callable[[int, int], NDArray[Any]]
"""The rows from a first to before a last, as a 1-D array."""


def blocks(cuts: Mapping[str, Cut], nrows: int, rows: int) -> Iterator[Chunk]:
    """Consecutive blocks of at most `rows` of the `nrows` rows of some columns."""
    for start in range(0, nrows, rows):
        stop = min(start + rows, nrows)
        yield {name: cut(start, stop) for name, cut in cuts.items()}


def cut(column: Any) -> Cut:
    """How to take rows out of a column: as views where the column allows it.

    A sequence of Python objects is read cell by cell: numpy would give all cells the type that fits
    every one of them.
    """
    if nw.dependencies.is_narwhals_series(column):
        return cut(column.to_native())
    if isinstance(column, np.ndarray):
        return lambda start, stop: column[start:stop]
    return _cut_of_library(column) or _cut_of_sequence(column)


def _cut_of_library(column: Any) -> Cut | None:
    """Find the cut of a column of pandas, polars or Arrow, or of a library like pandas."""
    pandas = nw.dependencies.get_pandas()
    if pandas is not None:
        if isinstance(column, pandas.Series):
            return _cut_of_pandas(column)
        if isinstance(column, pandas.Index | pandas.api.extensions.ExtensionArray):
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
    if hasattr(column, "__array__"):
        return cut(np.asarray(column))
    cells = column if isinstance(column, list | tuple | range) else list(column)
    return lambda start, stop: np.fromiter(cells[start:stop], object, stop - start)


def _cut_of_pandas(series: "pandas.Series[Any]") -> Cut:
    """How to take rows out of a pandas series.

    Views of numpy columns; categories as objects, None for missing; the nullable numbers as float;
    text and Arrow columns as `arrow_cells` gives them; any other extension type as Python objects.
    """
    import pandas as pd

    dtype: Any = series.dtype
    array: Any = series.array
    if isinstance(dtype, np.dtype):
        whole = series.to_numpy()
        return lambda start, stop: whole[start:stop]
    if isinstance(dtype, pd.CategoricalDtype):
        return _cut_of_categories(array)
    if isinstance(dtype, pd.ArrowDtype) or getattr(dtype, "storage", None) == "pyarrow":
        return _cut_of_arrow(array)
    if isinstance(array, pd.arrays.IntegerArray | pd.arrays.FloatingArray | pd.arrays.BooleanArray):
        return lambda start, stop: array[start:stop].to_numpy("float64", na_value=MISSING)
    return lambda start, stop: np.asarray(array[start:stop], dtype=object)


def _cut_of_categories(array: Any) -> Cut:
    labels = np.append(np.asarray(array.categories, dtype=object), [None])
    codes: NDArray[Any] = array.codes
    return lambda start, stop: labels[codes[start:stop]]


def _cut_of_arrow(array: Any) -> Cut:
    import pyarrow as pa

    column = pa.array(array)
    return lambda start, stop: arrow_cells(column.slice(start, stop - start))


def _polars_cells(series: "polars.Series") -> NDArray[Any]:
    """Give the n cells of a polars series, shape (n,).

    Numbers as numbers (with nulls: float, NaN for null), logical values as bool (with nulls:
    objects), text, categories, bytes, decimals, integers of 128 bits and Python objects as objects,
    None for null. Types that are neither numbers nor text (dates, durations, lists, structures) are
    all NaN.
    """
    import polars as pl

    kind = series.dtype
    if str(kind) in ("Int128", "UInt128"):  # which older polars lacks
        return np.fromiter(series.to_list(), object, len(series))
    if kind.is_numeric() or kind in (
        pl.Boolean,
        pl.String,
        pl.Categorical,
        pl.Enum,
        pl.Binary,
        pl.Object,
    ):
        return series.to_numpy()
    return np.full(len(series), MISSING)
