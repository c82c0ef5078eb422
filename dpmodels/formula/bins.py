"""Bins of whole numbers and of days: which they hold, and what they are called."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import pairwise

import numpy as np

from dpmodels.dates import text_of_day
from dpmodels.formula.values import Columns, Real
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
    exact = np.array(ends)
    place = math.floor(math.log10(float(np.diff(exact).min()))) - 2
    # As far as powers of ten are exact rounding by them is.
    own = np.round(exact, -place) if abs(place) <= 22 else [round(end, -place) for end in ends]
    near = np.asarray(own) + 0.0
    usual = (near == 0) | ((np.abs(near) >= 1e-4) & (np.abs(near) < 1e9))
    texts = [
        repr(end).removesuffix(".0") if plain else repr(end)
        for end, plain in zip(near.tolist(), usual.tolist(), strict=True)
    ]
    names = [f"({low}, {high}]" for low, high in pairwise(texts)]
    return ("[" + names[0][1:], *names[1:])


def in_bins(number: Real, breaks: Floats) -> Callable[[Columns], Floats]:
    """Return what finds the bin of each row, nan outside; each but the first is open below."""

    def codes(columns: Columns) -> Floats:
        values = number.evaluate(columns)
        cell = np.maximum(np.searchsorted(breaks, values, side="left") - 1.0, 0.0)
        inside = (values >= breaks[0]) & (values <= breaks[-1])
        return np.where(inside, cell, np.nan)

    return codes
