"""Bins of whole numbers and of days: which they hold, and what they are called."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from dpmodels.dates import text_of_day
from dpmodels.formula.values import Real
from dpmodels.typing import Floats


def by_whole_numbers(number: Real) -> bool:
    """Whether a number takes whole values alone; days are whole numbers."""
    return number.step == 1.0 and number.lower == math.floor(number.lower)


def equal_parts(number: Real, most: int) -> tuple[float, ...]:
    """Return the ends of at most so many bins of equally many values; the last may have fewer.

    Ends lie half a step beside the values.

    >>> equal_parts(Real("k", 0.0, 6.0, lambda columns: columns["k"], step=1.0), 3)
    (-0.5, 2.5, 5.5, 6.5)
    """
    values = int(number.upper - number.lower) + 1
    width = math.ceil(values / most)
    return (*(np.arange(0, values, width) + number.lower - 0.5).tolist(), number.upper + 0.5)


def beside(ends: Sequence[float]) -> tuple[float, ...]:
    """Return the ends, half a step beside whole numbers, of bins that are open below but the first.

    >>> beside([0, 2, 5.5])
    (-0.5, 2.5, 5.5)
    """
    return (math.ceil(ends[0]) - 0.5, *(math.floor(end) + 0.5 for end in ends[1:]))


def held(ends: Floats) -> tuple[Floats, Floats]:
    """Return the first and the last whole number of each bin."""
    return ends[:-1] + 0.5, ends[1:] - 0.5


def whole_names(ends: Sequence[float], *, date: bool) -> tuple[str, ...]:
    """Name bins by the whole numbers, or the days, that they hold.

    >>> whole_names([-0.5, 0.5, 3.5], date=False)
    ('0', '1 to 3')
    """
    text = text_of_day if date else "{:.0f}".format
    bins = [(low + 0.5, high - 0.5) for low, high in pairwise(ends)]
    return tuple(text(low) if low == high else f"{text(low)} to {text(high)}" for low, high in bins)


def interval_names(ends: Sequence[float]) -> tuple[str, ...]:
    """Name bins by their ends, to a hundredth of the narrowest.

    >>> interval_names([0, 18, 40.5, 100])
    ('[0, 18]', '(18, 40.5]', '(40.5, 100]')
    """
    narrowest = min(high - low for low, high in pairwise(ends))
    place = math.floor(math.log10(narrowest)) - 2
    texts = [_rounded(end, place) for end in ends]
    names = [f"({low}, {high}]" for low, high in pairwise(texts)]
    return ("[" + names[0][1:], *names[1:])


def _rounded(end: float, place: int) -> str:
    """Print a number to a power of ten, without an exponent where that is usual."""
    near = round(end, -place) + 0.0
    usual = near == 0 or 1e-4 <= abs(near) < 1e9
    return np.format_float_positional(near, trim="-") if usual else f"{near!r}"
