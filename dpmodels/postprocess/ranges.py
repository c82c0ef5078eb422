"""Where the rows of a column are, from released numbers of rows by cell."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from dpmodels.noise.sums import half_width
from dpmodels.typing import Floats

# Cells an octave of the distance from the anchor, octaves, and the narrowest that the widest cell
# is, as a share of the range. Choices: bounds may be a million times too wide.
PER_OCTAVE, OCTAVES, WIDEST = 2, 20, 8
# Cells that stand together, which noise alone seldom fills. Choices.
RUNS, SELDOM = (1, 2, 4, 8), 2e-5
# Next to cells with rows an octave has some where it exceeds so many noise sds: a choice.
NEXT = 1.5
# Exponents of the fall of rows beyond, above the power that is summed; rows that tell of it, in
# units of those that an octave may hide. Choices.
LEAST_FALL, MOST_FALL, TELLING = 1.2, 5.0, 5.0
# What is cut off weighs so much more than noise, which intervals know of, for powers 1 and 2; and
# what is declared has to be so many times as long to be left, likewise. Choices.
WEIGHTS, SHORTER = (1.3, 3.0), (2.0, 4.0)
# An end as near as this to the declared one, in lengths of the range, is there: a choice.
NEAR = 0.05
# Digits that the ends of a range are rounded to, of those of its length.
DIGITS = 3
# Of all rows, so many have to be in cells with rows that are told: a choice.
MIN_DETECTED_FRACTION = 0.25


@dataclass(frozen=True)
class CellNoise:
    """The law of the independent noise in numbers of rows by cell, and its standard deviation."""

    law: str
    sd: float
    seldom: float = SELDOM

    def reach(self, cells: int, tries: int = 1) -> float:
        """Return what noise alone in the sum of some cells exceeds with probability `seldom`.

        That is the probability that any of so many tries does.
        """
        return self.sd * _reach(self.law, cells, self.seldom / tries)


@lru_cache(maxsize=1024)
def _reach(law: str, cells: int, seldom: float) -> float:
    return half_width(law, np.ones(cells), 1.0, 0.0, 1 - 2 * seldom)


@dataclass(frozen=True)
class FoundRange:
    """A range that most rows are in, and the noisy share of the rows in cells that reach beyond."""

    lower: float
    upper: float
    outside: float
    outside_sd: float


def range_cells(
    lower: float,
    upper: float,
    per_octave: int = PER_OCTAVE,
    octaves: int = OCTAVES,
    widest: int = WIDEST,
) -> Floats:
    """Return the ends of public cells of a range, shape (cells + 1,).

    They grow with the distance from zero, or from the end nearest to it, so many in an octave, and
    none is wider than this part of the range: rows beside the anchor are found at any scale.
    """
    anchor, step = anchor_of(lower, upper), (upper - lower) / widest
    fractions = 2.0 ** (np.arange(-per_octave * octaves, 1) / per_octave)
    edges = [np.array([lower, anchor, upper])]
    for reach in (upper - anchor, lower - anchor):
        radii = fractions * abs(reach)
        wide = np.append(np.diff(radii) > step, True)
        start = float(radii[int(np.argmax(wide))])
        pieces = max(math.ceil((abs(reach) - start) / step), 1)
        outer = np.linspace(start, abs(reach), pieces + 1)
        edges.append(anchor + math.copysign(1.0, reach) * np.append(radii[radii < start], outer))
    return np.unique(np.clip(np.concatenate(edges), lower, upper))


def anchor_of(lower: float, upper: float) -> float:
    """Return zero, or the end of a range that is nearest to it."""
    return min(max(0.0, lower), upper)


def found_range(
    ends: Floats, counts: Floats, noise: CellNoise, price: float, power: int
) -> FoundRange | None:
    """Return a range in which a sum of powers is released with less error; None if none is told.

    `ends`, shape (cells + 1,), and `counts`, shape (cells,), are cells and the noisy numbers of
    rows in them. `price` is the noise of the sum for a range of length 1; it grows as
    ``length**power``, the power 1 or 2.

    None where rows are told of in the cell at the anchor alone, which has no scale, where more of
    them are beyond than noise explains, or where what is declared is hardly longer.
    """
    detected = told_cells(counts, noise)
    rows = np.where(detected, np.maximum(counts, 0.0), 0.0)
    if not detected.any() or rows.sum() < MIN_DETECTED_FRACTION * counts.sum():
        return None
    median_cell = int(np.searchsorted(np.cumsum(rows), rows.sum() / 2))
    middle = float(ends[median_cell] + ends[median_cell + 1]) / 2
    outward = (
        (ends[median_cell + 1 :] - middle, counts[median_cell:], detected[median_cell:]),
        (middle - ends[median_cell::-1], counts[median_cell::-1], detected[median_cell::-1]),
    )
    above, below = (_reached(*side, noise, price, power) for side in outward)
    full_length, anchor = float(ends[-1] - ends[0]), anchor_of(float(ends[0]), float(ends[-1]))
    if (
        np.flatnonzero(detected).tolist() == [median_cell]
        and anchor in ends[median_cell : median_cell + 2]
    ):
        return None
    step = 10.0 ** (math.floor(math.log10(below + above)) - DIGITS + 1)
    low = max(math.floor((middle - below) / step) * step, float(ends[0]))
    high = min(math.ceil((middle + above) / step) * step, float(ends[-1]))
    tolerance = NEAR * (high - low)
    low = float(ends[0]) if low - ends[0] < tolerance else low
    high = float(ends[-1]) if ends[-1] - high < tolerance else high
    beyond = (ends[1:] <= low) | (ends[:-1] >= high)
    has_rows_beyond = float(counts[beyond].sum()) > noise.reach(int(beyond.sum()))
    if (high - low) * SHORTER[power - 1] > full_length or has_rows_beyond:
        return None
    number, touched = max(float(counts.sum()), 1.0), (ends[:-1] < low) | (ends[1:] > high)
    sd = noise.sd * math.sqrt(touched.sum())
    return FoundRange(low, high, float(counts[touched].sum()) / number, sd / number)


def told_cells(counts: Floats, noise: CellNoise) -> NDArray[np.bool_]:
    """Tell which cells have rows, in runs of one to eight.

    What shorter runs tell is taken out first, so that a full cell tells nothing of empty ones
    beside it.
    """
    remaining, detected = counts.copy(), np.zeros(counts.size, dtype=bool)
    for length in RUNS:
        if length > counts.size:
            break
        sums = np.convolve(remaining, np.ones(length), mode="valid")
        for start in np.flatnonzero(sums > noise.reach(length, counts.size)):
            remaining[start : start + length] = 0.0
            detected[start : start + length] = True
    return detected


def _reached(
    radii: Floats,
    counts: Floats,
    detected: NDArray[np.bool_],
    noise: CellNoise,
    price: float,
    power: int,
) -> float:
    """Return how far to go to one side for the least error.

    `radii` are the far ends of cells from the middle outwards, `counts` the rows in them.

    Where rows end cannot be told from noise, so that an octave beyond may hide u of them. If the
    number of rows farther than r falls as ``u (c/r)**f`` beyond the last that is told, at c, what a
    range that ends at r cuts off the sum of powers p of the distance is ``u p c**f r**(p - f)/(f -
    p)``, and the noise is ``price r**p``: with a weight w of the one, the sum of their squares is
    least at ``c (w u/price √(p/(f - p)))**(1/f)``, or at c. f is that of the fall from where rows
    are many.
    """
    hidden = math.sqrt(2) * noise.sd
    top = _end(counts, detected, NEXT * hidden)
    beyond = np.cumsum(counts[:top][::-1])[::-1]
    heavy = np.flatnonzero(beyond >= TELLING * hidden)
    start = int(heavy[-1]) if heavy.size else 0
    inner = float(radii[start - 1]) if start else float(radii[0]) / 2
    last = float(radii[top - 1])
    fall = math.log(max(float(beyond[start]), hidden) / hidden + 1) / math.log(last / inner)
    fall = min(max(fall, power + LEAST_FALL), power + MOST_FALL)
    ratio = WEIGHTS[power - 1] * hidden / price * math.sqrt(power / (fall - power))
    return last * float(max(ratio, 1.0) ** (1 / fall))


def _end(counts: Floats, detected: NDArray[np.bool_], faint: float) -> int:
    """Return after how many cells rows end: two that hold more than noise stand at the end."""
    top = int(np.flatnonzero(detected)[-1]) + 1 if detected.any() else 1
    while top < counts.size and counts[top : top + 2].sum() > faint:
        top += 1
    while top > 1 and counts[top - 2 : top].sum() < faint:
        top -= 1
    return top
