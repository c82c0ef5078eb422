"""Cells as names of levels that nobody declared."""

from __future__ import annotations

from collections import Counter
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from dpmodels.frames.convert import number, plain, to_float
from dpmodels.typing import Floats

# Characters that a level may have: a choice.
LONGEST: Final = 100
# From here on whole numbers have no place each in double precision.
_EXACT: Final = 2.0**53


def level_counts(values: NDArray[Any]) -> Counter[str]:
    """Count the cells of a column of any dtype by the level they name, each cell on its own.

    A level is a text of up to 100 printable characters, or a whole number below 2**53 in size,
    named by its digits. Text that spells a number is that number, since software gives the same
    cell as text, as an integer or as a float according to other rows: ``1``, ``1.0``, ``True``,
    ``"1"`` and ``"01"`` are all level ``"1"``, as they are to :func:`to_codes` where that is
    declared. All other cells are missing: other numbers, longer text, blank text, and text that no
    table could print. Never raises and never warns.

    >>> import numpy as np
    >>> counts = level_counts(np.array(["x", "01", 1.0, 0.5, " ", None, "x" * 101], dtype=object))
    >>> sorted(counts.items())
    [('1', 2), ('x', 1)]
    """
    if isinstance(values, np.ma.MaskedArray):
        return level_counts(np.ma.getdata(values)[~np.ma.getmaskarray(values)])
    if values.dtype.kind not in "OUST":
        return _of_numbers(to_float(values))
    found: Counter[str] = Counter()
    for cell, times in Counter(map(plain, values.tolist())).items():
        name = _name(cell)
        if name is not None:
            found[name] += times
    return found


def _of_numbers(values: Floats) -> Counter[str]:
    cells, times = np.unique(values[~np.isnan(values)], return_counts=True)
    named = zip(map(_name, cells.tolist()), times.tolist(), strict=True)
    found: Counter[str] = Counter()
    for name, many in named:
        if name is not None:
            found[name] += many
    return found


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
