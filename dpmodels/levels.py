"""Levels of a variable, and whether they are told apart where they are read as numbers."""

from __future__ import annotations

import math
from typing import Final

from dpmodels.errors import CodebookError

Level = str | int | float | bool

# From here on whole numbers have no place each in double precision.
_EXACT: Final = 2**53


def as_number(level: Level) -> float:
    """Return the number that a level is or spells, nan if it is none."""
    try:
        return float(level)
    except (ValueError, OverflowError):
        return math.nan


def require_distinct(levels: tuple[Level, ...], listed: str) -> None:
    """Refuse levels that are one where they are read as numbers.

    Text that spells small numbers is left alone, as "1" and "01": cells of text match it exactly,
    and whole numbers below 2**53 have one text each that Python prints.
    """
    first: dict[float, Level] = {}
    for level in levels:
        value = as_number(level)
        other = first.setdefault(value, level) if value == value else level
        both_text = isinstance(level, str) and isinstance(other, str)
        if other is not level and not (both_text and abs(value) < _EXACT):
            raise CodebookError(
                f"levels {listed}: {other!r} and {level!r} are one number in double precision, in "
                'which numbers are compared: tell them apart by a letter, for example "id 1"'
            )
