"""From ``breaks=`` to the bins of a number: how many, or their ends, as users write them."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np

from dpmodels.arguments import finite, several
from dpmodels.dates import day_of, text_of_day
from dpmodels.errors import ArgumentError, said, shorten
from dpmodels.formula.bins import (
    beside,
    by_whole_numbers,
    equal_parts,
    in_bins,
    interval_names,
    whole_names,
)
from dpmodels.formula.tally import MAX_CELLS
from dpmodels.formula.values import Category, Real


def binned(number: Real, breaks: object) -> tuple[Category, tuple[float, ...]]:
    """Return the bins of a number as levels, and their ends; ArgumentError for what are none."""
    ends = _ends(breaks, number)
    names = interval_names(ends)
    if by_whole_numbers(number):
        ends = _whole_ends(breaks, ends, number)
        names = whole_names(ends, date=number.date)
    return Category(number.code, names, in_bins(number, np.array(ends))), ends


def _whole_ends(breaks: object, ends: tuple[float, ...], number: Real) -> tuple[float, ...]:
    """Move ends between whole numbers, each of which is in one bin."""
    if isinstance(breaks, int | np.integer):
        return equal_parts(number, int(breaks))
    moved = beside(ends)
    if any(not low < high for low, high in pairwise(moved)):
        raise ArgumentError(
            f"breaks={shorten(repr(list(ends)))}: {shorten(number.code)!r} goes by whole numbers, "
            "and one of the bins holds none; write ends that are farther apart"
        )
    return moved


def _ends(breaks: object, number: Real) -> tuple[float, ...]:
    """Return the ends of the bins, or say what they are."""
    if isinstance(breaks, int | np.integer) and not isinstance(breaks, bool):
        if not 2 <= breaks <= MAX_CELLS:
            raise ArgumentError(
                f"breaks={breaks}: expected a number of bins from 2 to {MAX_CELLS:,}, or their ends"
            )
        if not number.lower < number.upper:
            raise ArgumentError(
                f"breaks={breaks}: the declared range of {shorten(number.code)!r} is the point "
                f"{number.lower:g}; write the ends of the bins"
            )
        return tuple(np.linspace(number.lower, number.upper, int(breaks) + 1).tolist())
    if not several(breaks):
        raise ArgumentError(
            f"breaks={said(breaks)}: expected a number of bins or their ends, chosen without "
            "the rows; write breaks=20 or breaks=[0, 10, 20]"
        )
    ends = tuple(_end(one, number) for one in breaks)
    listed = shorten(repr(list(ends)))
    if len(ends) < 3 or any(not low < high for low, high in pairwise(ends)):
        raise ArgumentError(f"breaks={listed}: expected three ends or more, increasing")
    if ends[0] < number.lower or ends[-1] > number.upper:
        raise ArgumentError(
            f"breaks={listed}: they reach outside the declared range of {shorten(number.code)!r}, "
            f"{_shown(number.lower, number)} to {_shown(number.upper, number)}; rows are clipped "
            "to that"
        )
    return ends


def _end(given: object, number: Real) -> float:
    """Return one end, of days as a day since 1970-01-01."""
    if not number.date:
        return finite("breaks", given)
    day = day_of(given)
    if math.isnan(day):
        raise ArgumentError(
            f"breaks= holds {said(given)}: {shorten(number.code)!r} is a date; write days, such as "
            f'"{_shown(number.lower, number)}", or a number of bins'
        )
    return day


def _shown(end: float, number: Real) -> str:
    return text_of_day(end) if number.date else f"{end:.10g}"
