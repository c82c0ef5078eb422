"""The range of nearly all rows of a column, from two rounds of noisy counts by cell.

If noise is as large as a tail, no count shows where the rows end, but counts locate most of them.
On each side of a middle m, half of the rows are modelled by a generalised Pareto distribution with
the tail ``(1 + s z/w)**(-1/s)``, z the distance from m: uniform for the shape s = -1, exponential
near 0, heavier above 0. All m, and w and s of both sides, are weighted by the likelihood of the
counts of all rounds. An end of the range lies `FARTHER` times as far from m as the point with the
fraction `TAIL` of the rows beyond, a compromise between clipping rows and adding noise; of its
weighted values the quantile at `CAREFUL` is taken.

Counts override the model. Let the noise in the rows beyond each edge of a cell stay within its
bound for all cells at once, which fails with probability at most `SELDOM` on each side. Then,
for any data, an end that moves inwards has at most the fraction `RULED_OUT` of the rows beyond it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from dpmodels.postprocess.ranges import (
    CellNoise,
    FoundRange,
    anchor_of,
    cells_with_rows,
    range_cells,
    rows_at_bounds,
    weighted_quantile,
)
from dpmodels.typing import Flags, Floats

# Shapes of the tails that are tried: a choice, as are all constants below.
SHAPES = np.array([-1.0, 1e-6, 0.15])
# Ends of the range by the model: fraction beyond, multiple of the distance, quantile.
TAIL, FARTHER, CAREFUL = 0.03, 2.0, 0.65
# Fractions of the rows that may be beyond an end by the counts: estimated, and with noise bound.
BEYOND, RULED_OUT = 1.5e-3, 0.02
# Cells of the first round on one side of zero, each half as wide as the next; and of ranges so long
# that they say nothing about the scale.
OCTAVES, MORE_OCTAVES, NO_SCALE = 24, 42, 2e9
# Tail fraction and quantile for the window of the second round.
WINDOW, WINDOW_WEIGHT = 0.08, 0.7
# Cells of the window: minimum, maximum, and rows in each, in noise sds, in between.
LEAST_PIECES, MOST_PIECES, PIECE = 24, 192, 12.0
# Tail widths tried per octave, and the narrowest cell over the smallest width.
WIDTHS, NARROWEST = 2, 4
# Probability that noise alone makes some cell look occupied.
SELDOM = 1e-3
# Log-likelihood gain over an empty column from which rows are detected.
MIN_LOG_LIKELIHOOD_GAIN = 10.0
# Rows beside those at the anchor from which their range is fitted, in noise sds of a cell, and its
# quantile over the weighted ends.
OTHERS, EVEN = 3.0, 0.5
# The declared range stays unless it is this many times as long; an end if this near, in lengths.
SHORTER, NEAR = 1.5, 0.05
# Significant digits of the range's length to which its ends are rounded.
DIGITS = 3


class Column(NamedTuple):
    """The declared range and step of a number."""

    lower: float
    upper: float
    step: float  # 0 if continuous


@dataclass(frozen=True)
class CellCounts:
    """Noisy counts by cell: edges `ends`, shape (cells + 1,), and `counts`, shape (cells,)."""

    ends: Floats
    counts: Floats
    noise: CellNoise


def complete_rows(counts: Floats, rows: float | None) -> float:
    """Return the number of complete rows; `rows` is the public number of rows, if any.

    `counts` are noisy counts by cell, the incomplete rows last.
    """
    return float(counts[:-1].sum()) if rows is None else rows - float(counts[-1])


def first_cells(column: Column) -> Floats:
    """Return the edges of cells whose widths double from zero, or from the bound nearest to it."""
    octaves = _octaves(column.upper - column.lower)
    return _at_steps(range_cells(column.lower, column.upper, 1, octaves, 1), column)


def _octaves(length: float) -> int:
    return OCTAVES if length < NO_SCALE else MORE_OCTAVES


def next_cells(first: CellCounts, rows: float, column: Column, next_sd: float) -> Floats:
    """Return the edges of equal cells around most rows, and of cells that double outwards.

    The first cells again if no rows are detected.
    """
    fitted = _Fit.of((first,), rows)
    if fitted is None:
        return first.ends
    low, high = fitted.reach(WINDOW, WINDOW_WEIGHT)
    low, high = max(low, column.lower), min(high, column.upper)
    pieces = round(min(max(rows / (PIECE * next_sd), LEAST_PIECES), MOST_PIECES))
    away = (high - low) / pieces * (2.0 ** np.arange(1, 64) - 1)
    ends = np.concatenate([np.linspace(low, high, pieces + 1), low - away, high + away])
    inner = ends[(ends > column.lower) & (ends < column.upper)]
    return _at_steps(np.unique(np.concatenate([inner, column[:2]])), column)


def found_bounds(
    rounds: tuple[CellCounts, ...], rows: float, column: Column
) -> tuple[float, float] | None:
    """Return a range that contains nearly all of `rows` rows; None to keep the declared range.

    The last round decides where rows end. Rows at the anchor alone have no scale.
    """
    fitted = _Fit.of(rounds, rows)
    if fitted is None or not _has_rows_elsewhere(rounds, rows, column):
        return None
    last = rounds[-1]
    low, high = fitted.reach(TAIL, CAREFUL)
    high = _as_counted(high, last, rows)
    reflected = CellCounts(-last.ends[::-1], last.counts[::-1], last.noise)
    low = -_as_counted(-low, reflected, rows)
    low, high = rounded_range(low, high, column)
    if not low < high or (high - low) * SHORTER > column.upper - column.lower:
        return None
    tolerance = NEAR * (high - low)
    low = column.lower if low - column.lower < tolerance else low
    return low, column.upper if column.upper - high < tolerance else high


def bounds_beside_anchor(
    cells: CellCounts, rows: float, column: Column
) -> tuple[float, float] | None:
    """Return a range of the anchor and of rows beside it that are detected together only.

    None where the anchor has less than half of the rows, where some other cell has rows by itself,
    which then have a scale, where noise hides all rows beside the anchor, where there are rows at
    a bound far away, or where the declared range is hardly longer.
    """
    anchor = anchor_of(column.lower, column.upper)
    beside = np.where(_at(anchor, cells), 0.0, cells.counts)
    n_beside = rows - rows_at_anchor(cells, column)
    has_no_range = n_beside <= OTHERS * cells.noise.sd or cells_with_rows(beside, cells.noise).any()
    if has_no_range or not most_at_anchor(cells, rows, column):
        return None
    fitted = _Fit.of((CellCounts(cells.ends, beside, cells.noise),), n_beside, -math.inf)
    if fitted is None:
        return None
    low, high = fitted.reach(TAIL, EVEN)
    low, high = rounded_range(min(low, anchor), max(high, anchor), column)
    is_shorter = (high - low) * SHORTER <= column.upper - column.lower
    is_left = rows_at_bounds(cells.ends, beside, cells.noise, FoundRange(low, high))
    return (low, high) if is_shorter and not is_left else None


def most_at_anchor(cells: CellCounts, rows: float, column: Column) -> bool:
    """Whether more than half of the rows are in the cells at zero, or at the nearest bound."""
    return rows_at_anchor(cells, column) > rows / 2


def rows_at_anchor(cells: CellCounts, column: Column) -> float:
    """Return the noisy number of rows in the cells at zero, or at the nearest bound."""
    return float(cells.counts[_at(anchor_of(column.lower, column.upper), cells)].sum())


def _at(anchor: float, cells: CellCounts) -> Flags:
    return np.asarray((cells.ends[:-1] <= anchor) & (cells.ends[1:] >= anchor))


def outside(last: CellCounts, low: float, high: float) -> tuple[float, int]:
    """Return the noisy count in cells entirely beyond a range, and the number of these cells."""
    beyond = (last.ends[1:] <= low) | (last.ends[:-1] >= high)
    return float(last.counts[beyond].sum()), int(beyond.sum())


@dataclass(frozen=True)
class _Falls:
    """Tail distributions of the distance from the middle on one side."""

    widths: Floats
    shapes: Floats

    def beyond(self, distances: Floats) -> Floats:
        """Return the fraction of all rows beyond each distance, shape (tails, distances)."""
        scaled = np.maximum(distances, 0.0) / self.widths[:, None] * self.shapes[:, None]
        return np.asarray(0.5 * np.maximum(1 + scaled, 1e-12) ** (-1 / self.shapes[:, None]))

    def distance(self, beyond: float) -> Floats:
        """Return the distance with the fraction `beyond` of all rows beyond it, for each tail."""
        return np.asarray(((0.5 / beyond) ** self.shapes - 1) / self.shapes * self.widths)


@dataclass(frozen=True)
class _Fit:
    """Weights of middles and tails, shape (middles, tails below, tails above)."""

    middles: Floats
    ends: Floats
    falls: _Falls
    weights: Floats

    @classmethod
    def of(
        cls, rounds: tuple[CellCounts, ...], rows: float, gain: float = MIN_LOG_LIKELIHOOD_GAIN
    ) -> _Fit | None:
        """Compute the weights by likelihood; None if no rows are detected."""
        ends = rounds[-1].ends
        middles, length = (ends[1:] + ends[:-1]) / 2, float(ends[-1] - ends[0])
        narrowest = length * 2.0 ** -(_octaves(length) + 2)
        narrowest = max(float(np.diff(ends).min()) / NARROWEST, narrowest)
        widths = narrowest * 2.0 ** np.arange(0, math.log2(length / narrowest) + 1, 1 / WIDTHS)
        falls = _Falls(np.repeat(widths, SHAPES.size), np.tile(SHAPES, widths.size))
        losses = sum(_losses(cells, middles, falls, rows) for cells in rounds)
        without = sum(float(cells.noise.loss(cells.counts).sum()) for cells in rounds)
        best = float(np.min(losses))
        if not without - best > gain:
            return None
        return cls(middles, ends, falls, np.exp(best - losses))

    def reach(self, beyond: float, weight: float) -> tuple[float, float]:
        """Return both ends, `FARTHER` times as far as the point with `beyond` of the rows beyond.

        They never lie inside the middle's cell. `weight` is the quantile over the weighted ends.
        """
        away = FARTHER * self.falls.distance(beyond)
        low = np.minimum(self.middles[:, None] - away, self.ends[:-1, None])
        high = np.maximum(self.middles[:, None] + away, self.ends[1:, None])
        below, above = self.weights.sum(axis=2), self.weights.sum(axis=1)
        return -weighted_quantile(-low, below, weight), weighted_quantile(high, above, weight)


def _losses(cells: CellCounts, middles: Floats, falls: _Falls, rows: float) -> Floats:
    """Return the negative log-likelihood of counts, for each middle and pair of tails."""
    losses = np.empty((middles.size, falls.widths.size, falls.widths.size))
    for row, middle in enumerate(middles):
        at = min(max(int(np.searchsorted(cells.ends, middle)) - 1, 0), cells.counts.size - 1)
        below = rows * falls.beyond(middle - cells.ends[: at + 1])
        above = rows * falls.beyond(cells.ends[at + 1 :] - middle)
        below[:, 0], above[:, -1] = 0.0, 0.0
        sides = (
            cells.noise.loss(cells.counts[:at] - np.diff(below)).sum(axis=1),
            cells.noise.loss(cells.counts[at + 1 :] + np.diff(above)).sum(axis=1),
        )
        inside = rows - below[:, -1:] - above[:, 0]
        losses[row] = sides[0][:, None] + sides[1] + cells.noise.loss(cells.counts[at] - inside)
    return losses


def _as_counted(high: float, last_round: CellCounts, rows: float) -> float:
    """Move an upper end inwards or outwards where the counts beyond an edge require it."""
    cells = last_round.counts.size
    beyond = np.cumsum(last_round.counts[::-1])[::-1]
    reach = np.array([last_round.noise.reach(left, cells) for left in range(cells, 0, -1)])
    is_light = beyond <= np.minimum(RULED_OUT * rows - reach, BEYOND * rows)
    at_least = np.maximum(beyond - reach, last_round.counts - reach[-1])
    heavy = np.flatnonzero(at_least > BEYOND * rows)
    if is_light.any():
        high = min(high, float(last_round.ends[int(np.argmax(is_light))]))
    return max(high, float(last_round.ends[heavy[-1] + 1])) if heavy.size else high


def _has_rows_elsewhere(rounds: tuple[CellCounts, ...], rows: float, column: Column) -> bool:
    """Whether cells away from the anchor have rows; true if the anchor has less than half."""
    anchor = anchor_of(column.lower, column.upper)
    away = [
        (cells.ends[1:] < anchor) | (cells.ends[:-1] > anchor + column.step / 4) for cells in rounds
    ]
    if rounds[-1].counts[~away[-1]].sum() < rows / 2:
        return True
    return any(
        (cells_with_rows(cells.counts, cells.noise) & of_round).any()
        for cells, of_round in zip(rounds, away, strict=True)
    )


def _at_steps(ends: Floats, column: Column) -> Floats:
    """Move edges between the steps of a stepped number."""
    if not column.step:
        return ends
    steps = np.floor((ends[1:-1] - column.lower) / column.step) + 0.5
    inner = np.unique(column.lower + column.step * steps)
    edges = inner[(inner > column.lower) & (inner < column.upper)]
    return np.concatenate([[column.lower], edges, [column.upper]])


def rounded_range(low: float, high: float, column: Column) -> tuple[float, float]:
    """Round ends outwards to a few digits, or to the nearest steps, within the declared range."""
    low, high = max(low, column.lower), min(high, column.upper)
    if column.step:
        # Cells end between two steps.
        low = math.floor((low - column.lower) / column.step + 0.5)
        high = math.ceil((high - column.lower) / column.step - 0.5)
        low, high = (column.lower + column.step * end for end in (low, max(high, low + 1)))
    else:
        unit = 10.0 ** (math.floor(math.log10(high - low)) - DIGITS + 1)
        low, high = math.floor(low / unit) * unit, math.ceil(high / unit) * unit
    return max(low, column.lower), min(high, column.upper)
