"""Fine public cells of numbers: a function of their declared ranges alone."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from dpmodels.formula.functions import by_whole_numbers, in_bins, interval_names, whole_names
from dpmodels.formula.values import Category, Real
from dpmodels.typing import Floats

# How many fine cells a number may have, the most that fit: choices.
SIZES = (128, 96, 64, 48, 32, 24)
# Halvings of the range by which half of the cells lie, and some at bounds other than 0: a choice.
OCTAVES = 16
# The closest edges, in widths of the range: a choice.
CLOSEST = 1e-9


def fine_edges(number: Real, most: int, declared: Sequence[float] = ()) -> tuple[float, ...]:
    """Return the edges of at most about `most` cells of a number, `declared` ones among them.

    Whole numbers have a cell each if they are few. Else edges are equally far apart, or parts of
    octaves from 0 and octaves from both bounds: where bounds are too wide, cells are still narrow
    where the rows are.

    >>> age = Real("age", 0.0, 4.0, lambda columns: columns["age"], step=1.0)
    >>> fine_edges(age, 24)
    (-0.5, 0.5, 1.5, 2.5, 3.5, 4.5)
    >>> wage = Real("wage", 0.0, 1e6, lambda columns: columns["wage"])
    >>> len(fine_edges(wage, 64)), round(fine_edges(wage, 64)[1])
    (59, 15)
    """
    is_whole = by_whole_numbers(number)
    low, high = number.lower, number.upper
    if declared:
        low, high = declared[0] + is_whole / 2, declared[-1] - is_whole / 2
    if is_whole and high - low < most:
        edges = np.arange(low, high + 1) - 0.5
    else:
        edges = _spaced(low, high, most)
    if is_whole:
        edges = np.floor(np.clip(edges, low, high)) + 0.5
        edges = np.concatenate([[low - 0.5], edges[edges < high], [high + 0.5]])
    edges = np.unique(np.concatenate([edges, declared]))
    apart = np.diff(edges, prepend=-math.inf) > CLOSEST * (high - low)
    return tuple(edges[apart | np.isin(edges, declared)].tolist())


def _spaced(low: float, high: float, most: int) -> Floats:
    """Return edges by equal widths, and by octaves from 0 and from both bounds."""
    zero = min(max(0.0, low), high)
    sides = [side for side in (high - zero, low - zero) if side]
    n_parts = most // (2 * len(sides))
    per_octave = max(1, n_parts // OCTAVES)
    fractions = 2.0 ** -(np.arange(1, n_parts + 1) / per_octave)
    octaves = (high - low) * 2.0 ** -np.arange(1.0, min(most // 8, OCTAVES) + 1)
    far = [(bound, sign) for bound, sign in ((low, 1), (high, -1)) if bound != zero]
    parts = [zero + side * fractions for side in sides]
    parts += [bound + sign * octaves for bound, sign in far]
    n_equal = most - sum(map(len, parts))
    return np.concatenate([[zero], np.linspace(low, high, n_equal + 1), *parts])


def in_cells(number: Real, edges: tuple[float, ...]) -> Category:
    """Return the cells of a number as levels; all but the first are open below."""
    is_whole = by_whole_numbers(number)
    names = whole_names(edges, date=number.date) if is_whole else interval_names(edges)
    return Category(number.code, names, in_bins(number, np.array(edges)))
