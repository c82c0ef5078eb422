"""A column of any dtype, cell by cell, as numbers or as level indices."""

from collections.abc import Hashable
from types import NoneType
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from dpmodels.frames.cell import MISSING, number, plain
from dpmodels.frames.levels import LevelCodes
from dpmodels.typing import Floats

_NUMERIC: Final = "biuf"
_CELLS: Final = "OUST"

# Types are compared by id: a foreign metaclass may define how types hash and compare.
_PLAIN_NUMBERS: Final = frozenset(map(id, (float, int, bool, NoneType)))
_PLAIN_CELLS: Final = _PLAIN_NUMBERS | {id(str)}


def to_float(values: NDArray[Any]) -> Floats:
    """Convert a column to numbers, each cell on its own.

    Parameters
    ----------
    values : ndarray, shape (n,)
        A column of any dtype; a masked array's masked cells are missing.

    Returns
    -------
    ndarray of float64, shape (n,)
        Numbers as the nearest float, logical values as 0 and 1, text as the number
        it spells. NaN for everything else: missing values, dates and durations,
        complex numbers with an imaginary part, integers beyond the range of float,
        foreign objects. A float64 array is returned as it is, not copied.

    Notes
    -----
    Never raises and never warns. Text ``"True"`` counts as 1, since pandas reads the
    same cell of a CSV file as a logical value or as text according to other rows.

    Examples
    --------
    >>> import numpy as np
    >>> to_float(np.array([3, "2.5", True, None, "many", [1]], dtype=object))
    array([3. , 2.5, 1. , nan, nan, nan])
    """
    if isinstance(values, np.ma.MaskedArray):
        return np.where(np.ma.getmaskarray(values), MISSING, to_float(np.ma.getdata(values)))
    kind = values.dtype.kind
    with np.errstate(all="ignore"):
        if kind in _NUMERIC:
            return values.astype(np.float64, copy=False)
        if kind == "c":
            return np.where(values.imag == 0, values.real, MISSING).astype(np.float64)
        if kind in _CELLS:
            return _cells_to_float(values)
    return np.full(len(values), MISSING)


def _cells_to_float(values: NDArray[Any]) -> Floats:
    cells = values.tolist()
    if set(map(id, map(type, cells))) <= _PLAIN_NUMBERS:
        try:
            return values.astype(np.float64)
        except OverflowError:
            pass
    return np.fromiter(map(_cell_to_float, cells), np.float64, len(cells))


def _cell_to_float(cell: object) -> float:
    value = plain(cell)
    return number(value) if isinstance(value, str) else value


def to_codes(values: NDArray[Any], levels: tuple[Hashable, ...]) -> NDArray[np.intp]:
    """Convert a column to positions among declared levels, each cell on its own.

    Parameters
    ----------
    values : ndarray, shape (n,)
        A column of any dtype; a masked array's masked cells are missing.
    levels : tuple of str, number or bool
        The declared levels. A level that is neither text nor a number (a date, None,
        NaN) matches no cell.

    Returns
    -------
    ndarray of intp, shape (n,)
        The index of each cell's level, -1 where the cell is missing or not listed.
        Of equal levels the first counts.

    Notes
    -----
    A text cell matches the level of the same text, unstripped and unfolded. A number,
    and a text that is no level but spells a number, matches a level of that number,
    or else a level whose text spells it: ``1``, ``1.0``, ``True``, ``"1"`` and
    ``"1.0"`` all match level ``1``, and all match level ``"1"`` where neither ``1``
    nor their own text is a level. Software that reads a file gives the same cell as
    text, as an integer or as a float according to other rows; here that makes no
    difference. Numbers are compared as float64. Never raises and never warns.

    Examples
    --------
    >>> import numpy as np
    >>> to_codes(np.array(["F", "M", None, "m"], dtype=object), ("F", "M"))
    array([ 0,  1, -1, -1])
    >>> to_codes(np.array([1.0, 2.0, np.nan]), ("1", "2"))
    array([ 0,  1, -1])
    """
    if isinstance(values, np.ma.MaskedArray):
        return np.where(np.ma.getmaskarray(values), -1, to_codes(np.ma.getdata(values), levels))
    codes = LevelCodes(levels)
    kind = values.dtype.kind
    if kind in _NUMERIC or kind == "c":
        return codes.of_numbers(to_float(values))
    if kind in _CELLS:
        cells = values.tolist()
        with np.errstate(all="ignore"):
            if not set(map(id, map(type, cells))) <= _PLAIN_CELLS:
                cells = list(map(plain, cells))
            return np.fromiter(map(codes.__getitem__, cells), np.intp, len(cells))
    return np.full(len(values), -1, dtype=np.intp)
