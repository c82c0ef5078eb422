"""Columns of classes that other code defines: subclasses of arrays, series and lists, sequences.

Code of such a class may raise an error whose text has a cell, or only at some cell, so that one row
would decide whether a call fails. Where the base class is known, its own code reads the column.
Otherwise the cells are read one by one, and a cell that cannot be read is missing.
"""

from collections import deque
from collections.abc import Callable, Sequence, Sized
from contextlib import suppress
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpmodels.errors import FrameError
from dpmodels.frames.convert import MISSING
from dpmodels.frames.protocol import unfinished

Values: TypeAlias = NDArray[np.generic]
_BUILTIN: Final = (list, tuple, range)


def base_array(array: Values) -> Values:
    """Return an array without the class that was derived from numpy's; masked arrays stay masked.

    >>> import numpy as np
    >>> type(base_array(np.array([1.0, 2.0]).view(np.recarray))).__name__
    'ndarray'
    """
    if isinstance(array, np.ma.MaskedArray):
        if type(array) is np.ma.MaskedArray and type(array.data) is np.ndarray:
            return array
        cells = np.ndarray.view(array, np.ndarray)
        return np.ma.MaskedArray(cells, np.asarray(np.ma.MaskedArray.mask.fget(array)))  # type: ignore[attr-defined]
    return np.asarray(array)


def converted_array(column: object) -> Values:
    """Convert a column by its class's own `__array__`; an error in it is not quoted."""
    with suppress(Exception):
        return base_array(np.asarray(column))
    raise FrameError(
        unfinished(
            "a column is of a class that numpy cannot convert to an array; the reason is not "
            "shown, as it may quote cells: give an array or a list"
        )
    )


def cells_of_sequence(column: Sequence[object]) -> Callable[[int, int], Values]:
    """How to take Python objects out of a sequence, as an array of them."""
    if isinstance(column, deque):  # whose middle is slow to reach by position
        column = list(deque.__iter__(column))
    base = next((kind for kind in _BUILTIN if isinstance(column, kind)), None)

    def cells_between(start: int, stop: int) -> Values:
        if base is None:
            stop = min(stop, length_of(column) or 0)
            return cells_one_by_one(column, start, stop)
        part = base.__getitem__(column, slice(start, stop))  # type: ignore[call-overload]
        return np.fromiter(part, object, len(part))

    return cells_between


def cells_one_by_one(column: Sequence[object], start: int, stop: int) -> Values:
    """Read the cells from `start` to before `stop`; those that cannot be read are missing."""
    cells = np.full(max(stop - start, 0), MISSING, dtype=object)
    for position in range(len(cells)):
        with suppress(Exception):
            cells[position] = column[start + position]
    return cells


def length_of(column: Sized) -> int | None:
    """Return the length of a column; None where it has none or its code fails."""
    with suppress(Exception):
        return len(column)
    return None


def attribute_of(column: object, name: str) -> object:
    """Return an attribute of a column; None where it has none or its code fails."""
    with suppress(Exception):
        return getattr(column, name)
    return None


def is_of_pandas(dtype: object) -> bool:
    """Whether pandas itself defines an extension type, and not a subclass of other code."""
    return type(dtype).__module__.partition(".")[0] == "pandas"
