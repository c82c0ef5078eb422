"""The range of the rows of a column, from released counts by cell.

Windows about zero, or the bound nearest to it, are copies of the declared range, shrunk about its
anchor. A draw takes window j with a probability in proportion to ``exp(-ε b_j - c_j)``, b_j the
rows outside it and c_j a public cost. As the window grows, the mean squared error of the sum of a
power p grows by the factor ``4**p`` an octave, so that costs rise by `STEEP` times its logarithm:
the expected error is then at most a small multiple of that of the smallest window with all rows.
They rise so over the octaves just below the declared range, where an error is largest, and hardly
below, as rows outside must be worth more than all costs.

*What a released range cut off.* Rows beyond a threshold inside the range are modelled by a
generalised Pareto distribution [1]_, with the tail ``(1 + s z/w)**(-1/s)`` at the distance z beyond
the threshold, up to the declared bound. Scales w and shapes s are weighted by the likelihood of the
released counts of the cells beyond. Shapes go from uniform to one whose variance barely exists; for
mean distances on to one whose mean barely exists, if the counts before the threshold fall as
slowly: tails are not assumed to become heavier farther out. The bounds are weighted quantiles. Rows
that no count detects can be anywhere within the declared bounds, so they hold for rows whose tail
goes on beyond the range as it falls before it, not for all rows.

.. [1] Pickands, J. (1975). "Statistical inference using extreme order statistics." Annals of
   Statistics 3(1), 119-131.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import NamedTuple

import numpy as np
from scipy.special import ndtri

from dpmodels.external_files import storable_amount
from dpmodels.noise.sums import half_width
from dpmodels.released import HeldIn
from dpmodels.typing import Flags, Floats, Objects

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
# Choices: an end within this distance of the declared one, in lengths of the range, moves there;
# the error probability of the test that rows are at a bound far from a range.
NEAR, AT_BOUND = 0.05, 0.005
# Significant digits of the range's length to which its ends are rounded.
DIGITS = 3
# Smallest fraction of the rows in detected cells: a choice.
MIN_DETECTED_FRACTION = 0.25


@dataclass(frozen=True)
class CellNoise:
    """The law and the sd of independent noise in counts, and how often two kinds of tests err."""

    law: str
    sd: float
    seldom: float = SELDOM
    at_bound: float = AT_BOUND

    def reach(self, cells: int, tries: int = 1) -> float:
        """Return what noise in any of `tries` sums of cells exceeds with probability `seldom`."""
        return self.sd * _reach(self.law, cells, self.seldom / tries)

    def loss(self, noise: Floats) -> Floats:
        """Return the negative log-density of noise, up to a constant."""
        scaled = noise / self.sd
        return np.asarray(math.sqrt(2) * np.abs(scaled) if self.law == "laplace" else scaled**2 / 2)


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
    beyond or at a bound than noise explains, or if the declared range is hardly longer.
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
    is_at_anchor = anchor in ends[median_cell : median_cell + 2]
    if is_at_anchor and np.flatnonzero(detected).tolist() == [median_cell]:
        return None
    step = 10.0 ** (math.floor(math.log10(below + above)) - DIGITS + 1)
    low = max(math.floor((middle - below) / step) * step, float(ends[0]))
    high = min(math.ceil((middle + above) / step) * step, float(ends[-1]))
    tolerance = NEAR * (high - low)
    low = float(ends[0]) if low - ends[0] < tolerance else low
    high = float(ends[-1]) if ends[-1] - high < tolerance else high
    beyond = (ends[1:] <= low) | (ends[:-1] >= high)
    has_rows_beyond = float(counts[beyond].sum()) > noise.reach(int(beyond.sum()))
    clip = FoundRange(low, high)
    has_rows_beyond |= rows_at_bounds(ends, counts, noise, clip)
    return None if has_rows_beyond or (high - low) * SHORTER > full_length else clip


def cells_with_rows(counts: Floats, noise: CellNoise) -> Flags:
    """Detect which cells have rows, by tests of runs of one to eight cells.

    Cells detected in shorter runs are removed first, so a full cell does not make its empty
    neighbours look occupied.
    """
    remaining, detected = counts.copy(), np.zeros(counts.size, dtype=bool)
    for length in (run for run in RUNS if run <= counts.size):
        sums = np.convolve(remaining, np.ones(length), mode="valid")
        for start in np.flatnonzero(sums > noise.reach(length, counts.size)):
            remaining[start : start + length] = 0.0
            detected[start : start + length] = True
    return detected


def rows_at_bounds(edges: Floats, counts: Floats, noise: CellNoise, clip: FoundRange) -> bool:
    """Detect rows at a declared bound far from a range, by a test that errs more often."""
    distances = np.array([clip.lower - edges[0], edges[-1] - clip.upper])
    has_rows = counts[[0, -1]] > replace(noise, seldom=noise.at_bound).reach(1)
    return bool((has_rows & (distances > SHORTER * (clip.upper - clip.lower))).any())


def _reached(
    radii: Floats, counts: Floats, detected: Flags, noise: CellNoise, price: float, power: int
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


def _end(counts: Floats, detected: Flags, faint: float) -> int:
    """Return the number of cells up to the last pair of cells whose sum exceeds `faint`."""
    top = int(np.flatnonzero(detected)[-1]) + 1 if detected.any() else 1
    while top < counts.size and counts[top : top + 2].sum() > faint:
        top += 1
    while top > 1 and counts[top - 2 : top].sum() < faint:
        top -= 1
    return top


# Windows per octave, and octaves.
WINDOWS_PER_OCTAVE, WINDOW_OCTAVES = 4, 20
# Rise of the costs over the logarithm of the fall of errors, over how many octaves, the least that
# they rise for each power, and how much an octave below. Choices, as are those that follow.
STEEP, STEEP_OCTAVES, LEAST_RISE, FLAT = 1.5, 9, 13.0, 0.05
# By how much rows outside exceed all costs, in the logarithm of probabilities.
SPARE = 14.0


@dataclass(frozen=True)
class Windows:
    """The windows of a declared range, and their costs for a power, 1 or 2.

    `worth` is ε times the rows that are surely not at the anchor.
    """

    lower: float
    upper: float
    power: int
    worth: float

    @cached_property
    def edges(self) -> Floats:
        """The edges of the public cells between windows, shape (cells + 1,)."""
        return range_cells(self.lower, self.upper, WINDOWS_PER_OCTAVE, WINDOW_OCTAVES, 1)

    @cached_property
    def bounds(self) -> Floats:
        """Both ends of each window, the declared range first, shape (windows, 2)."""
        anchor = anchor_of(self.lower, self.upper)
        octaves = np.arange(WINDOWS_PER_OCTAVE * WINDOW_OCTAVES + 1) / WINDOWS_PER_OCTAVE
        fractions = 2.0**-octaves
        return anchor + fractions[:, None] * (np.array([self.lower, self.upper]) - anchor)

    @property
    def costs(self) -> Floats:
        """Costs of the windows, shape (windows,), rising from 0 for the smallest."""
        octaves = np.arange(WINDOWS_PER_OCTAVE * WINDOW_OCTAVES + 1) / WINDOWS_PER_OCTAVE
        costs = -np.minimum(rise(self.power) * octaves, self.most) - FLAT * octaves
        return np.asarray(costs - costs[-1])

    @property
    def most(self) -> float:
        """By how much costs rise over the octaves just below the declared range."""
        full = rise(self.power) * STEEP_OCTAVES
        return min(full, max(self.worth - SPARE, LEAST_RISE * self.power))

    def outside(self, counts: Objects) -> Objects:
        """Return the rows outside each window, from exact counts by cell."""
        middles = (self.edges[1:] + self.edges[:-1]) / 2
        low, high = self.bounds[:, :1], self.bounds[:, 1:]
        return np.asarray(((middles < low) | (middles > high)) @ counts)

    def saved(self, window: int, eps: float) -> float:
        """Return the rows outside a window, beyond those of chance, that its cost makes up for."""
        return float(self.costs[0] - self.costs[window]) / eps


def rise(power: int) -> float:
    """Return by how much costs rise an octave."""
    return STEEP * power * math.log(4)


def needed(power: int) -> float:
    """Return ε times rows with which costs rise over all octaves that they may."""
    return rise(power) * STEEP_OCTAVES + SPARE


# Shapes that are tried, scales per octave, the numbers of rows beyond the threshold over their
# estimate, and the quantile: choices.
SHAPES = np.array([-1.0, 1e-6, 0.2, 0.45])
TAIL_SCALES_PER_OCTAVE, RATIOS, QUANTILE = 2, np.array([0.7, 0.85, 1.0, 1.15, 1.3]), 0.975
KNOWN_SCALES_PER_OCTAVE = 8  # Where the rows of a tail are known: a choice
# The same of an excess with units that noise hides: a mean rests on the longest tails. A choice.
UPPER = 0.6
# Numbers of rows that are tried where it is known with an error, in sds of it: a choice.
DEVIATIONS = np.linspace(-2.0, 2.0, 9)
# The smallest fraction of rows that a law may have beyond the edge of such a number: a choice.
RAREST = 1e-6
# Shapes of mean distances besides, where counts allow for them, and of tails whose rows are known.
HEAVIER, LIGHTER = np.array([0.6, 0.75, 0.9]), np.array([-0.5, -0.25])
# How far a shape may be above its estimate from the counts before the threshold, and one of a tail
# whose rows are known above that from counts before the end: choices.
HEAVIER_BY, KNOWN_BY = 0.2, 0.4
# Twice the variance of a shape above that of the counts before an end, the least of the latter,
# below which estimates are noise, and the part of the rows that they may begin at: choices.
SHAPE_SPREAD, SMALLEST_SHAPE, DEEPEST = 2 * 0.3**2, -0.2, 0.1
# Rows beyond the innermost of three distances over those beyond the threshold, most and least:
# choices.
INNER, LEAST_INNER = 4.0, 1.5
# The error of a mean of values at the middles of their cells, in widths of the first: a choice.
WITHIN_CELLS = 0.25
# Rows beyond the threshold, in noise sds of a cell: a choice.
CLEAR_COUNT_SDS = 10.0
# Shapes above which few rows may determine a mean or a variance, the lower one where the allowance
# for the tail is most of an interval. Choices by simulation: lognormal tails of sd 1 and Student's
# with 3 degrees of freedom are seldom above them, Pareto tails of index 1.5 seldom below.
HEAVY_SHAPE, FALLING_SHAPE = 0.4, 0.2
# Multiples of these rows from which a shape is estimated, and the most of all rows: choices.
DEPTHS, MOST_ROWS = (1.0, 2.0, 4.0), 0.7


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
        tail_shape(edges, counts, noise, low, high),
    )


class Excess(NamedTuple):
    """What values above a threshold exceed it by, over all rows and over those above it."""

    total: float
    upper: float  # A total that the laws exceed with a chance of 1 - UPPER
    number: float  # of rows above the threshold
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
        return Excess(0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
    tail = _tail(edges, counts, noise, end)
    weights = tail.weights / tail.weights.sum()
    above = np.maximum(tail.above, 1e-300)
    means = np.broadcast_to(tail.first / above, weights.shape)
    mean = float((weights * means).sum())
    square = float((weights * (tail.second / above)).sum())
    variance = float((weights * ((means - mean) ** 2 + (tail.hidden / above) ** 2)).sum())
    mean, mean_sd = _with_cells(mean, variance, edges, counts, noise, end)
    totals = np.broadcast_to(tail.numbers * tail.first, weights.shape)
    total, number = (float((weights * part).sum()) for part in (totals, tail.numbers * tail.above))
    mean, mean_sd = storable_amount(mean), storable_amount(mean_sd)
    upper = storable_amount(_quantile(totals, weights, UPPER))
    return Excess(total, upper, number, mean, mean_sd, storable_amount(square))


class Beyond(NamedTuple):
    """Values beyond an end."""

    total: float
    sd: float
    distance: float  # Sums of squares over sums
    rows: float  # The most
    number: float
    number_sd: float


class Outside(NamedTuple):
    """How many rows are beyond an edge, with its sd, and the largest scale of their distances."""

    rows: float
    sd: float
    edge: float
    largest_scale: float = math.inf
    is_light: bool = False  # Whether laws heavier than the counts before the end count less


def excess_beyond(
    edges: Floats, counts: Floats, noise: CellNoise, end: float, outside: Outside | None = None
) -> Beyond:
    """Estimate what values exceed the end of a range by, beyond which noise hides all rows.

    Posterior medians: means rest on the longest tails. Laws begin before the end, and at the end
    where the rows `outside` of it are given, with which `sd` is that of distances alone.
    """
    inside, shapes, prior = np.where(edges[:-1] < end, counts, 0.0), SHAPES, np.ones(1)
    if outside is not None:
        shape = shape_before(edges, counts, noise, end)
        shapes = np.concatenate([LIGHTER, SHAPES, HEAVIER[shape + KNOWN_BY >= HEAVIER]])
        if outside.is_light and CLEAR_COUNT_SDS * noise.sd < DEEPEST * counts.sum():
            heavier = np.maximum(shapes - max(shape, SMALLEST_SHAPE), 0)
            prior = np.exp(-(heavier**2) / SHAPE_SPREAD)
    tail = _tail(edges, counts, noise, end, shapes, inside, outside)
    weights = tail.weights * np.resize(prior, tail.weights.shape[1])
    numbers = tail.numbers if outside is None else tail.numbers[[len(tail.numbers) // 2]]
    distances = tail.second / np.maximum(tail.first, np.finfo(float).tiny)
    values = (np.resize(of, weights.shape) for of in (numbers * tail.first, numbers * tail.above))
    (total, upper), (number, upper_number) = (
        (_quantile(of, weights, 0.5), _quantile(of, weights)) for of in values
    )
    sd, number_sd = np.array([upper - total, upper_number - number]) / float(ndtri(QUANTILE))
    distance = _quantile(np.resize(distances, weights.shape), weights, 0.5)
    distance = max(distance, float(edges[edges > end][0]) - end)
    rows = _quantile(tail.numbers * tail.above, weights)
    return Beyond(total, float(sd), distance, rows, number, float(number_sd))


def shape_before(edges: Floats, counts: Floats, noise: CellNoise, end: float) -> float:
    """Estimate the shape of a tail from the counts before an end, at depths that count by rows.

    Those of the first cell may be at a bound, and no part of a tail.
    """
    return _shape_at(_depths(edges, counts, noise, end) or DEPTHS[:1], edges, counts, noise, end)


def tail_shape(edges: Floats, counts: Floats, noise: CellNoise, low: float, high: float) -> float:
    """Return the heavier shape of the tails that a range cuts off: 0 to 1, which few rows have."""
    shapes = [0.0]
    for side in ((edges, counts, noise, high), (-edges[::-1], counts[::-1], noise, -low)):
        if side[-1] < side[0][-1]:
            depths = _depths(*side)
            shapes.append(_shape_at(depths, *side) if depths else 1.0)
    return min(max(shapes), 1.0)


def _shape_at(
    depths: tuple[float, ...], edges: Floats, counts: Floats, noise: CellNoise, end: float
) -> float:
    inside = np.where(edges[:-1] < end, counts, 0.0)
    shapes = [_shape_before(edges, inside, noise, end, depth) for depth in depths]
    return float(np.average(shapes, weights=depths))


def _depths(edges: Floats, counts: Floats, noise: CellNoise, end: float) -> tuple[float, ...]:
    inside = np.where(edges[:-1] < end, counts, 0.0)
    most, rows = MOST_ROWS * float(inside[1:].sum()), CLEAR_COUNT_SDS * noise.sd
    return tuple(depth for depth in DEPTHS if INNER * rows * depth <= most)


def _with_cells(
    mean: float, variance: float, edges: Floats, counts: Floats, noise: CellNoise, end: float
) -> tuple[float, float]:
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
    """Numbers of rows beyond the threshold, by law or shape (n, 1), and moments of laws."""

    numbers: Floats
    above: Floats
    first: Floats
    second: Floats
    hidden: Floats
    weights: Floats


def _beyond(edges: Floats, counts: Floats, noise: CellNoise, end: float) -> tuple[float, float]:
    if end >= edges[-1]:
        return 0.0, 0.0
    heaviest = _shape_before(edges, counts, noise, end) + HEAVIER_BY
    shapes = np.append(SHAPES, HEAVIER[heaviest >= HEAVIER])
    heavier, tail = (_tail(edges, counts, noise, end, of) for of in (shapes, SHAPES))
    shares = tail.numbers / max(float(counts.sum()), 1.0)
    return (
        storable_amount(_quantile(shares * heavier.first, heavier.weights)),
        storable_amount(_quantile(shares * tail.second, tail.weights)),
    )


def threshold_before(edges: Floats, counts: Floats, noise: CellNoise, end: float) -> float:
    """Return where laws of a tail begin that go on from the counts before an end."""
    beyond = np.cumsum(np.where(edges[:-1] < end, counts, 0.0)[::-1])[::-1]
    return float(edges[_threshold(edges, beyond, CLEAR_COUNT_SDS * noise.sd, end)])


def _threshold(edges: Floats, beyond: Floats, n_rows: float, end: float) -> int:
    """Return the cell at which the tail begins, the farthest with so many rows from it on."""
    inside = np.flatnonzero((edges[:-1] < end) & (beyond >= n_rows))
    return int(inside[-1]) if inside.size else int(np.argmin(edges < end)) - 1


def _shape_before(
    edges: Floats, counts: Floats, noise: CellNoise, end: float, depth: float = 1.0
) -> float:
    """Estimate a shape from the distances that k, 2 k and 4 k rows exceed [1]_, or fewer of them.

    k are the rows beyond the threshold; 0 where these are most rows.
    """
    beyond = np.cumsum(counts[::-1])[::-1]
    start = _threshold(edges, beyond, depth * CLEAR_COUNT_SDS * noise.sd, end)
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
    outside: Outside | None = None,
) -> _Tail:
    """Weigh laws of the values beyond a threshold by the released counts.

    The threshold is one that enough rows exceed by the counts `of`, as those by default; or the end
    where the rows `outside` of it are known. Laws have the known rows beyond an edge before it.
    """
    beyond = np.cumsum((counts if of is None else of)[::-1])[::-1]
    start, deviations = int(np.argmin(edges < end)), 0 * RATIOS
    if outside is None or outside.edge < end:
        start = _threshold(edges, beyond, CLEAR_COUNT_SDS * noise.sd, end)
    distances = edges[start:] - edges[start]
    octaves = math.log2(distances[-1] / distances[1]) + 2
    per_octave = TAIL_SCALES_PER_OCTAVE if outside is None else KNOWN_SCALES_PER_OCTAVE
    scales = distances[1] / 4 * 2.0 ** np.arange(0, octaves, 1 / per_octave)
    if outside is not None:
        scales = scales[scales <= max(outside.largest_scale, float(distances[1]))]
    w, s = np.repeat(scales, shapes.size)[:, None], np.tile(shapes, scales.size)[:, None]

    def factor(z: Floats) -> Floats:
        return np.asarray(np.maximum(1 + s * z / w, 1e-12))

    if outside is None:
        numbers = max(float(beyond[start]), noise.sd) * RATIOS[:, None]
    else:
        deviations, away = DEVIATIONS, max(outside.edge - float(edges[start]), 0.0)
        n_outside = np.maximum(outside.rows + outside.sd * deviations, 0.0)
        numbers = n_outside[:, None] / np.maximum(factor(np.array([away])) ** (-1 / s), RAREST).T
    tails = factor(distances) ** (-1 / s)
    tails[:, -1] = 0.0
    cells = -np.diff(tails)
    losses = noise.loss(counts[start:] - numbers[:, :, None] * cells).sum(axis=2)
    losses += deviations[:, None] ** 2 / 2
    if outside is not None:
        # Quasi-likelihood: no law fits counts that vary by more than their noise.
        losses /= max(float(losses.min()) / (counts[start:].size / 2), 1.0)
    weights = np.exp(losses.min() - losses)
    ends = np.array([end - edges[start], distances[-1]])
    firsts = w / (1 - s) * factor(ends) ** (1 - 1 / s)
    seconds = 2 * w**2 / ((1 - s) * (1 - 2 * s)) * factor(ends) ** (2 - 1 / s)
    length = ends[1] - ends[0]
    first = firsts[:, 0] - firsts[:, 1]
    second = seconds[:, 0] - seconds[:, 1] - 2 * length * firsts[:, 1]
    above = factor(ends)[:, 0] ** (-1 / s[:, 0])
    return _Tail(numbers, above, first, second, firsts[:, 1], weights)


def weighted_quantile(values: Floats, weights: Floats, prob: float) -> float:
    """Return a quantile of weighted values."""
    order = np.argsort(values, axis=None)
    summed = np.cumsum(weights.ravel()[order])
    return float(values.ravel()[order[int(np.searchsorted(summed, prob * summed[-1]))]])


def _quantile(values: Floats, weights: Floats, prob: float = QUANTILE) -> float:
    return max(weighted_quantile(values, weights, prob), 0.0)
