"""What a released range cut off: bounds on the distances of rows beyond its ends.

Rows beyond a threshold inside the range are modelled by a generalised Pareto distribution [1]_,
with the tail ``(1 + s z/w)**(-1/s)`` at the distance z beyond the threshold, up to the declared
bound. Scales w and shapes s are weighted by the likelihood of the released counts of the cells
beyond. Shapes go from uniform to one whose variance barely exists; for mean distances on to one
whose mean barely exists, if the counts before the threshold fall as slowly: tails are not assumed
to become heavier farther out. The bounds are weighted quantiles. Rows that
no count detects can be anywhere within the declared bounds, so they hold for rows whose tail goes
on beyond the range as it falls before it, not for all rows.

.. [1] Pickands, J. (1975). "Statistical inference using extreme order statistics." Annals of
   Statistics 3(1), 119-131.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from scipy.special import ndtri

from dpmodels.postprocess.ranges import CellNoise
from dpmodels.released import HeldIn
from dpmodels.typing import Floats

# Shapes that are tried, scales per octave, the numbers of rows beyond the threshold over their
# estimate, and the quantile: choices.
SHAPES = np.array([-1.0, 1e-6, 0.2, 0.45])
PER_OCTAVE, RATIOS, QUANTILE = 2, np.array([0.7, 0.85, 1.0, 1.15, 1.3]), 0.975
# Shapes of mean distances besides, where counts allow for them.
HEAVIER = np.array([0.6, 0.75, 0.9])
# How far a shape may be above its estimate from the counts before the threshold: a choice.
HEAVIER_BY = 0.2
# Rows beyond the innermost of three distances over those beyond the threshold, most and least:
# choices.
INNER, LEAST_INNER = 4.0, 1.5
# The error of a mean of values at the middles of their cells, in widths of the first: a choice.
WITHIN_CELLS = 0.25
# Rows beyond the threshold, in noise sds of a cell: a choice.
TELLING = 10.0


def beyond_range(
    edges: Floats, counts: Floats, noise: CellNoise, low: float, high: float
) -> tuple[float, float, float, float]:
    """Return bounds on what was cut below and above: mean distances, then mean squared ones.

    `edges`, shape (cells + 1,), and `counts`, shape (cells,), are those of the declared range.
    Means are over all complete rows, those inside count 0.
    """
    below = _beyond(-edges[::-1], counts[::-1], noise, -low)
    above = _beyond(edges, counts, noise, high)
    return below[0], above[0], below[1], above[1]


def held_in(edges: Floats, counts: Floats, noise: CellNoise, low: float, high: float) -> HeldIn:
    """Return a range, the share of rows in cells that extend beyond it, and how far they may be."""
    touched = (edges[:-1] < low) | (edges[1:] > high)
    n_rows = max(float(counts.sum()), 1.0)
    return HeldIn(
        low,
        high,
        float(counts[touched].sum()) / n_rows,
        noise.sd * math.sqrt(touched.sum()) / n_rows,
        *beyond_range(edges, counts, noise, low, high),
    )


class Excess(NamedTuple):
    """What values above a threshold exceed it by, over all rows and over those above it."""

    total: float
    mean: float
    mean_sd: float
    square: float


def excess_above(edges: Floats, counts: Floats, noise: CellNoise, end: float) -> Excess:
    """Estimate the sum of what values exceed a threshold by, and their mean with its error.

    The mean is that of the laws and that of the cells above the threshold, by their errors. The
    laws have the error by which they differ from the cells too, beyond the noise of these, and what
    they would have beyond the last edge, which noise may hide.
    """
    if end >= edges[-1]:
        return Excess(0.0, 0.0, 0.0, 0.0)
    tail = _tail(edges, counts, noise, end)
    weights = tail.weights / tail.weights.sum()
    above = np.maximum(tail.above, 1e-300)
    means = np.broadcast_to(tail.first / above, weights.shape)
    mean = float((weights * means).sum())
    square = float((weights * (tail.second / above)).sum())
    variance = float((weights * ((means - mean) ** 2 + (tail.hidden / above) ** 2)).sum())
    mean, mean_sd = _with_cells(mean, variance, edges, counts, noise, end)
    total = float((weights * (tail.numbers[:, None] * tail.first)).sum())
    return Excess(total, mean, mean_sd, max(square, 0.0))


class Beyond(NamedTuple):
    """What values exceed the end of a range by in all, its sd, and sums of squares over sums."""

    total: float
    sd: float
    distance: float


def excess_beyond(edges: Floats, counts: Floats, noise: CellNoise, end: float) -> Beyond:
    """Estimate what values exceed the end of a range by, beyond which noise hides all rows.

    Posterior medians: means rest on the longest tails.
    """
    tail = _tail(edges, counts, noise, end, of=np.where(edges[:-1] < end, counts, 0.0))
    totals = tail.numbers[:, None] * tail.first
    distances = tail.second / np.maximum(tail.first, np.finfo(float).tiny)
    total = _quantile(totals, tail.weights, 0.5)
    sd = (_quantile(totals, tail.weights) - total) / float(ndtri(QUANTILE))
    distance = _quantile(np.broadcast_to(distances, totals.shape), tail.weights, 0.5)
    return Beyond(total, sd, max(distance, float(edges[edges > end][0]) - end))


def _with_cells(
    mean: float, variance: float, edges: Floats, counts: Floats, noise: CellNoise, end: float
) -> tuple[float, float]:
    """Return a mean excess and its error, from that of laws and from numbers by cell."""
    above = edges[:-1] >= end * (1 - 1e-9)
    distances, n_above = (edges[:-1] + edges[1:])[above] / 2 - end, float(counts[above].sum())
    n_above = max(n_above, noise.sd)
    by_cell = float(counts[above] @ distances) / n_above
    cell_sd = noise.sd * float(np.linalg.norm(distances - by_cell)) / n_above
    variance += max((by_cell - mean) ** 2 - cell_sd**2, 0.0)
    part = cell_sd**2 / max(variance + cell_sd**2, 1e-300)
    within = WITHIN_CELLS * float(np.diff(edges)[above][0])
    return part * mean + (1 - part) * by_cell, math.hypot(math.sqrt(variance * part), within)


class _Tail(NamedTuple):
    """Numbers of rows beyond the threshold, shape (n,), and moments and weights of laws."""

    numbers: Floats
    above: Floats
    first: Floats
    second: Floats
    hidden: Floats
    weights: Floats


def _beyond(edges: Floats, counts: Floats, noise: CellNoise, end: float) -> tuple[float, float]:
    """Return the same of the upper side."""
    if end >= edges[-1]:
        return 0.0, 0.0
    heaviest = _shape_before(edges, counts, noise, end) + HEAVIER_BY
    shapes = np.append(SHAPES, HEAVIER[heaviest >= HEAVIER])
    heavier, tail = (_tail(edges, counts, noise, end, of) for of in (shapes, SHAPES))
    shares = tail.numbers[:, None] / max(float(counts.sum()), 1.0)
    return (
        _quantile(shares * heavier.first, heavier.weights),
        _quantile(shares * tail.second, tail.weights),
    )


def _threshold(edges: Floats, beyond: Floats, noise: CellNoise, end: float) -> int:
    """Return the cell at which the tail begins, the farthest with enough rows from it on."""
    inside = np.flatnonzero((edges[:-1] < end) & (beyond >= TELLING * noise.sd))
    return int(inside[-1]) if inside.size else int(np.argmin(edges < end)) - 1


def _shape_before(edges: Floats, counts: Floats, noise: CellNoise, end: float) -> float:
    """Estimate a shape from the distances that k, 2 k and 4 k rows exceed [1]_, or fewer of them.

    k are the rows beyond the threshold; 0 where these are most rows.
    """
    beyond = np.cumsum(counts[::-1])[::-1]
    start = _threshold(edges, beyond, noise, end)
    rows = max(float(beyond[start]), noise.sd)
    inward = np.maximum.accumulate(np.maximum(beyond[start::-1], rows)) / rows
    inner = min(INNER, float(inward[-1]))
    if inner < LEAST_INNER:
        return 0.0
    levels = math.log(inner) * np.array([0.0, 0.5, 1.0])
    outer, middle, nearest = np.interp(levels, np.log(inward), edges[start::-1])
    steps = max(outer - middle, 1e-300) / max(middle - nearest, 1e-300)
    return math.log(steps) * 2 / math.log(inner)


def _tail(
    edges: Floats,
    counts: Floats,
    noise: CellNoise,
    end: float,
    shapes: Floats = SHAPES,
    of: Floats | None = None,
) -> _Tail:
    """Weigh laws of the values beyond a threshold by the released counts.

    The threshold is one that enough rows exceed by the counts `of`, as those by default.
    """
    beyond = np.cumsum((counts if of is None else of)[::-1])[::-1]
    start = _threshold(edges, beyond, noise, end)
    rows = max(float(beyond[start]), noise.sd)
    distances = edges[start:] - edges[start]
    octaves = math.log2(distances[-1] / distances[1]) + 2
    scales = distances[1] / 4 * 2.0 ** np.arange(0, octaves, 1 / PER_OCTAVE)
    w, s = np.repeat(scales, shapes.size)[:, None], np.tile(shapes, scales.size)[:, None]

    def factor(z: Floats) -> Floats:
        return np.asarray(np.maximum(1 + s * z / w, 1e-12))

    tails = factor(distances) ** (-1 / s)
    tails[:, -1] = 0.0
    cells = -np.diff(tails)
    numbers = rows * RATIOS
    gaps = (counts[start:] - numbers[:, None, None] * cells) / noise.sd
    losses = (math.sqrt(2) * np.abs(gaps) if noise.law == "laplace" else gaps**2 / 2).sum(axis=2)
    weights = np.exp(losses.min() - losses)
    ends = np.array([end - edges[start], distances[-1]])
    firsts = w / (1 - s) * factor(ends) ** (1 - 1 / s)
    seconds = 2 * w**2 / ((1 - s) * (1 - 2 * s)) * factor(ends) ** (2 - 1 / s)
    length = ends[1] - ends[0]
    first = firsts[:, 0] - firsts[:, 1]
    second = seconds[:, 0] - seconds[:, 1] - 2 * length * firsts[:, 1]
    above = factor(ends)[:, 0] ** (-1 / s[:, 0])
    return _Tail(numbers, above, first, second, firsts[:, 1], weights)


def _quantile(values: Floats, weights: Floats, prob: float = QUANTILE) -> float:
    order = np.argsort(values, axis=None)
    summed = np.cumsum(weights.ravel()[order])
    return max(float(values.ravel()[order[np.searchsorted(summed, prob * summed[-1])]]), 0.0)
