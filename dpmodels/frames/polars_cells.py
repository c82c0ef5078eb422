"""Polars series as numpy arrays: views where there is nothing missing."""

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dpmodels.frames.cell import MISSING

if TYPE_CHECKING:
    import polars


def polars_cells(series: "polars.Series") -> NDArray[Any]:
    """Give the cells of a polars series.

    Parameters
    ----------
    series : polars.Series
        n cells of any polars type.

    Returns
    -------
    ndarray, shape (n,)
        Numbers as numbers (with nulls: float, NaN for null), logical values as bool
        (with nulls: objects), text, categories, bytes, decimals, integers of 128 bits
        and Python objects as objects, None for null. Types that are neither numbers
        nor text (dates, durations, lists, structures) are all NaN.
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
