"""The range of the rows of a column, from released counts by cell."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpmodels.noise.sums import half_width
from dpmodels.typing import Floats

# Cells per octave of the distance from the anchor, octaves, and the range over the widest cell.
# Choices: declared bounds may be a million times too wide.
PER_OCTAVE, OCTAVES, WIDEST = 2, 20, 8
# Lengths of runs of cells that are tested, and the error probability of each test. Choices.
RUNS, SELDOM = (1, 2, 4, 8), 2e-5
# Noise sds from which an octave next to occupied cells counts as occupied: a choice.
NEXT = 1.5
# Tail exponents above the power that is summed, smallest and largest; rows needed to estimate the
# exponent, in units of the rows that an octave may hide. Choices.
LEAST_FALL, MOST_FALL, TELLING = 1.2, 5.0, 5.0
# Weight of clipping relative to noise, which intervals account for, for powers 1 and 2, and how
# many times as long the declared range must be to be replaced. Choices.
WEIGHTS, SHORTER = (1.3, 3.0), 2.0
# An end within this distance of the declared one, in lengths of the range, moves there: a choice.
NEAR = 0.05
# Significant digits of the range's length to which its ends are rounded.
DIGITS = 3
# Smallest fraction of the rows in detected cells: a choice.
MIN_DETECTED_FRACTION = 0.25


@dataclass(frozen=True)
class CellNoise:
    """The distribution of the independent noise in counts by cell, and its standard deviation."""

    law: str
    sd: float
    seldom: float = SELDOM

    def reach(self, cells: int, tries: int = 1) -> float:
        """Return the bound that noise in the sum of some cells exceeds with probability `seldom`.

        That is the probability that any of `tries` sums exceeds it.
        """
        return self.sd * _reach(self.law, cells, self.seldom / tries)


@lru_cache(maxsize=1024)
def _reach(law: str, cells: int, seldom: float) -> float:
    return half_width(law, np.ones(cells), 1.0, 0.0, 1 - 2 * seldom)


class FoundRange(NamedTuple):
    """A range of most rows."""

    lower: float
    upper: float


def range_cells(
    lower: float,
    upper: float,
    per_octave: int = PER_OCTAVE,
    octaves: int = OCTAVES,
    widest: int = WIDEST,
) -> Floats:
    """Return the edges of public cells of a range, shape (cells + 1,).

    Cells widen with the distance from zero, or from the end nearest to it, with `per_octave` per
    octave, up to the length of the range over `widest`: rows near the anchor are resolved at any
    scale.
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
    """Return zero, or the end of the range nearest to it."""
    return min(max(0.0, lower), upper)


def found_range(
    ends: Floats, counts: Floats, noise: CellNoise, price: float, power: int
) -> FoundRange | None:
    """Return a range in which a sum of powers is released with less error; or None.

    `ends`, shape (cells + 1,), and `counts`, shape (cells,), are edges of cells and noisy counts.
    `price` is the noise of the sum for a range of length 1; it grows as ``length**power``, the
    power 1 or 2.

    None if rows are detected only in the cell at the anchor, which has no scale, if more rows are
    beyond than noise explains, or if the declared range is hardly longer.
    """
    detected = cells_with_rows(counts, noise)
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
    if (high - low) * SHORTER > full_length or has_rows_beyond:
        return None
    return FoundRange(low, high)


def cells_with_rows(counts: Floats, noise: CellNoise) -> NDArray[np.bool_]:
    """Detect which cells have rows, by tests of runs of one to eight cells.

    Cells detected in shorter runs are removed first, so a full cell does not make its empty
    neighbours look occupied.
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
    """Return the distance to one side with the smallest error.

    `radii` are the outer edges of cells from the middle outwards, `counts` the rows in them.

    Noise may hide u rows in an octave beyond the last detected one. If the number of rows farther
    than r falls as ``u (c/r)**f`` beyond the last detected distance c, clipping at r reduces the
    sum of powers p of the distance by ``u p c**f r**(p - f)/(f - p)``, and the noise is ``price
    r**p``: with a weight w of the former the sum of squares is smallest at ``c (w u/price √(p/(f -
    p)))**(1/f)``, or at c. f is estimated from where there are many rows.
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
    """Return the number of cells up to the last pair of cells whose sum exceeds `faint`."""
    top = int(np.flatnonzero(detected)[-1]) + 1 if detected.any() else 1
    while top < counts.size and counts[top : top + 2].sum() > faint:
        top += 1
    while top > 1 and counts[top - 2 : top].sum() < faint:
        top -= 1
    return top
