"""Pandas series as numpy arrays: views where the series holds a numpy array."""

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dpmodels.frames.cell import MISSING

if TYPE_CHECKING:
    import pandas

    from dpmodels.frames.blocks import Cut


def pandas_cut(series: "pandas.Series[Any]") -> "Cut":
    """How to take rows out of a pandas series.

    Parameters
    ----------
    series : pandas.Series
        n cells of any dtype.

    Returns
    -------
    callable
        ``(start, stop) -> ndarray``: views of numpy columns; categories as objects,
        None for missing; the nullable numbers as float; text and Arrow columns as
        `arrow_cells` gives them; any other extension type as Python objects.
    """
    import pandas as pd

    dtype: Any = series.dtype
    array: Any = series.array
    if isinstance(dtype, np.dtype):
        whole = series.to_numpy()
        return lambda start, stop: whole[start:stop]
    if isinstance(dtype, pd.CategoricalDtype):
        return _categorical_cut(array)
    if isinstance(dtype, pd.ArrowDtype) or getattr(dtype, "storage", None) == "pyarrow":
        return _arrow_cut(array)
    if isinstance(array, pd.arrays.IntegerArray | pd.arrays.FloatingArray | pd.arrays.BooleanArray):
        return lambda start, stop: array[start:stop].to_numpy("float64", na_value=MISSING)
    return lambda start, stop: np.asarray(array[start:stop], dtype=object)


def _categorical_cut(array: Any) -> "Cut":
    labels = np.append(np.asarray(array.categories, dtype=object), [None])
    codes: NDArray[Any] = array.codes
    return lambda start, stop: labels[codes[start:stop]]


def _arrow_cut(array: Any) -> "Cut":
    import pyarrow as pa

    from dpmodels.frames.arrow_cells import arrow_cells

    column = pa.array(array)
    return lambda start, stop: arrow_cells(column.slice(start, stop - start))
