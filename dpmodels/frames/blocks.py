"""Columns in memory, cut into blocks of rows."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
from numpy.typing import NDArray

from dpmodels.frames.protocol import Chunk

Cut = Callable[[int, int], NDArray[Any]]
"""The rows from a first to before a last, as a 1-D array."""


def blocks(cuts: Mapping[str, Cut], nrows: int, rows: int) -> Iterator[Chunk]:
    """Consecutive blocks of at most `rows` of the `nrows` rows of some columns."""
    for start in range(0, nrows, rows):
        stop = min(start + rows, nrows)
        yield {name: cut(start, stop) for name, cut in cuts.items()}


def cut(column: Any) -> Cut:
    """How to take rows out of a column: as views where the column allows it.

    Parameters
    ----------
    column : ndarray, Series, Arrow array or sequence
        A column of n cells. A sequence of Python objects is read cell by cell: numpy
        would give all cells the type that fits every one of them.

    Returns
    -------
    callable
        ``(start, stop) -> ndarray`` of shape (stop - start,).
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
        from dpmodels.frames.pandas_cells import pandas_cut

        if isinstance(column, pandas.Series):
            return pandas_cut(column)
        if isinstance(column, pandas.Index | pandas.api.extensions.ExtensionArray):
            return pandas_cut(pandas.Series(column))
    if nw.dependencies.is_polars_series(column):
        from dpmodels.frames.polars_cells import polars_cells

        return lambda start, stop: polars_cells(column.slice(start, stop - start))
    pyarrow = nw.dependencies.get_pyarrow()
    if pyarrow is not None and isinstance(column, pyarrow.Array | pyarrow.ChunkedArray):
        from dpmodels.frames.arrow_cells import arrow_cells

        return lambda start, stop: arrow_cells(column.slice(start, stop - start))
    if nw.dependencies.is_into_series(column):
        return cut(nw.from_native(column, series_only=True).to_pandas())
    return None


def _cut_of_sequence(column: Any) -> Cut:
    if hasattr(column, "__array__"):
        return cut(np.asarray(column))
    cells = column if isinstance(column, list | tuple | range) else list(column)
    return lambda start, stop: np.fromiter(cells[start:stop], object, stop - start)
