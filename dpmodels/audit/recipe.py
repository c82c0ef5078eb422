"""What is audited: any function from a table to something released."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr
from numpy.typing import NDArray

from dpmodels.typing import Floats

# A recipe may have the attributes batch(rows, runs) -> array of shape (runs, k), law ("gaussian")
# and score(values of shape (m, k)) -> array of shape (m,); see `dpmodels.audit.verb.audit`.
Recipe = Callable[[Any], Any]


def released(value: object) -> Floats:
    """Lay out a released value as one line of numbers, always in the same order.

    Parameters
    ----------
    value : number, array, mapping, xarray, pandas, or a result with ``tidy()``
        Words and categories become a number of their own each; None and what
        cannot be read become nan.

    Returns
    -------
    ndarray of float64, shape (k,)

    Examples
    --------
    >>> released({"mean": 2.5, "n": 4}), released([[1, 2], [3, 4]]).tolist()
    (array([2.5, 4. ]), [1.0, 2.0, 3.0, 4.0])
    """
    match value:
        case Mapping():
            return _joined([released(part) for part in value.values()])
        case xr.DataArray() | pd.Series() | pd.Index():
            return _flat(value.to_numpy())
        case xr.Dataset():
            return _joined([_flat(part.to_numpy()) for part in value.data_vars.values()])
        case pd.DataFrame():
            return _joined([_flat(value[name].to_numpy()) for name in value.columns])
        case str() | bytes() | None:
            return np.array([_number(value)])
        case list() | tuple() if not _is_numeric(value):
            return _joined([released(part) for part in value])
    if hasattr(value, "tidy"):
        return released(value.tidy())
    return _flat(np.asarray(value))


def _is_numeric(value: Any) -> bool:
    try:
        return np.asarray(value).dtype.kind in "biuf"
    except ValueError:
        return False


def _joined(parts: list[Floats]) -> Floats:
    return np.concatenate(parts) if parts else np.empty(0)


def _flat(array: NDArray[Any]) -> Floats:
    if array.dtype.kind == "c":
        array = np.stack([array.real, array.imag], axis=-1)
    if array.dtype.kind in "biuf":
        return np.ravel(array).astype(np.float64)
    return np.array([_number(cell) for cell in np.ravel(array)], dtype=np.float64)


def _number(cell: Any) -> float:
    """Give a word a number of its own below 2**52: the same at every call."""
    if cell is None:
        return float("nan")
    if isinstance(cell, str | bytes):
        code = pd.util.hash_array(np.array([str(cell)], dtype=object))[0]
        return float(int(code) >> 12)
    try:
        return float(cell)
    except (TypeError, ValueError):
        return _number(repr(cell))
