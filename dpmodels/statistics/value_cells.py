"""Cells of values between limits, found by the leading bits of each value."""

from __future__ import annotations

from functools import lru_cache
from typing import Final, NamedTuple

import numpy as np

from dpmodels.typing import Floats, Integers

# Bits of a float below its exponent and the first six of its digits.
_TRAILING_BITS: Final = 46
# A choice: a table of so many entries stays in a processor's cache.
_MOST_ENTRIES: Final = 2**12


class _CellTable(NamedTuple):
    """By the leading bits of a value, from `first` on: the cell up to a limit with these bits."""

    first: int
    cell: Integers  # Shape (entries,): how many limits have smaller leading bits
    limit: Floats  # Shape (entries,): the limit with these bits, infinite where there is none


def numbers_by_cell(values: Floats, limits: Floats | tuple[float, ...]) -> Integers:
    """Count values up to each limit and above that before, then those above all, and nan."""
    return np.bincount(cells_of(values, limits), minlength=len(limits) + 1)


def cells_of(values: Floats, limits: Floats | tuple[float, ...]) -> Integers:
    """Return for each value how many limits, which ascend, are below it; all of them for nan.

    Values, nan too, have no sign: floats from 0 on are in the order of their bits. Where no two
    limits have the same leading bits one comparison is enough, in a quarter of the time of a search
    or of sorting the values.
    """
    table = _cell_table(tuple(np.asarray(limits, dtype=np.float64).tolist()))
    if table is None:
        return np.asarray(np.searchsorted(limits, values))
    entries = values.view(np.int64) >> _TRAILING_BITS
    np.maximum(entries, table.first, out=entries)
    np.minimum(entries, table.first + len(table.cell) - 1, out=entries)
    entries -= table.first
    cells = table.cell.take(entries, mode="clip")
    cells += values > table.limit.take(entries, mode="clip")
    return cells


@lru_cache(maxsize=64)
def _cell_table(limits: tuple[float, ...]) -> _CellTable | None:
    """Return the table of positive limits; None where leading bits do not tell them apart."""
    if not limits or min(limits) <= 0:
        return None
    leading = np.array(limits).view(np.int64) >> _TRAILING_BITS
    size = int(leading[-1] - leading[0]) + 2
    if size > _MOST_ENTRIES or (np.diff(leading) <= 0).any():
        return None
    limit = np.full(size, np.inf)
    limit[leading - leading[0]] = limits
    entries = leading[0] + np.arange(size)
    return _CellTable(int(leading[0]), np.searchsorted(leading, entries), limit)
