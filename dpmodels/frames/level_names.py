"""Cells as names of levels that nobody declared."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from dpmodels.frames.convert import number, plain, to_float

# Characters that a level may have: a choice.
LONGEST: Final = 100
# From here on whole numbers have no place each in double precision.
_EXACT: Final = 2.0**53


def level_names(values: NDArray[Any]) -> NDArray[Any]:
    """Return the level that each cell of a column of any dtype names, None where none.

    A level is a text of up to 100 printable characters, or a whole number below 2**53 in size,
    named by its digits. Text that spells a number is that number, since software gives the same
    cell as text, as an integer or as a float according to other rows: ``1``, ``1.0``, ``True``,
    ``"1"`` and ``"01"`` are all level ``"1"``, as they are to :func:`to_codes` where that is
    declared. All other cells are missing: other numbers, longer text, blank text, and text that no
    table could print. Never raises and never warns.

    >>> import numpy as np
    >>> level_names(np.array(["x", "01", 1.0, 0.5, " ", None, "x" * 101], dtype=object)).tolist()
    ['x', '1', '1', None, None, None, None]
    """
    if isinstance(values, np.ma.MaskedArray):
        found = level_names(np.ma.getdata(values))
        found[np.ma.getmaskarray(values)] = None
        return found
    if values.dtype.kind in "OUST":
        names = _Names()
        cells = map(plain, values.tolist())
        return np.fromiter((names[cell] for cell in cells), object, len(values))
    numbers, at = np.unique(to_float(values), return_inverse=True)
    own: NDArray[Any] = np.fromiter(map(_name, numbers.tolist()), object, len(numbers))
    return own[at]


class _Names(dict[str | float, str | None]):
    """The name of a cell, worked out once for each that is met."""

    def __missing__(self, cell: str | float) -> str | None:
        name = self[cell] = _name(cell)
        return name


def _name(cell: str | float) -> str | None:
    """Return the level that a plain cell names; None for none."""
    value = cell
    if isinstance(value, str):
        if len(value) > LONGEST or not value.isprintable() or not value.strip():
            return None
        value = number(value)
        if value != value:
            return str(cell)
    if not abs(value) < _EXACT or value != int(value):
        return None
    return str(int(value))
