"""The cap of sampling weights, from released numbers of units by their weight.

Squared sums of the scores of strata: what errors of means, counts and regressions share.

For n units of a stratum of N the squared scores count ``n/(n - 1) (1 - n/N)`` times, and the square
of the stratum's sum, over n, is taken off. Where noise hides that square it stays.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Final, NamedTuple

import numpy as np
from scipy.special import ndtri

from dpmodels.external_files import storable_amount
from dpmodels.postprocess.ranges import CellNoise, Excess, excess_above
from dpmodels.released import ScoreCap, UnitCap
from dpmodels.typing import Floats, Indices

# How far the excess of capped units may be unlike what is put back, as a fraction: a choice.
UNLIKE: Final = 0.25
# Strata are used where their noise is below this fraction of the squares, and where the units of
# each are so many noise sds: choices.
CLEAR: Final = 0.1
DETECTED: Final = 4.0


def unit_factors(n_units: Floats, sampled: Floats | float) -> Floats:
    """Return the factors of squared scores, from the fraction of the population that is sampled.

    A noisy fraction of 1 or more has no effect.

    >>> unit_factors(np.array([2.0, 5.0]), np.array([0.5, 1.0]))
    array([1.  , 1.25])
    """
    left = 1 - sampled
    return np.asarray(n_units / (n_units - 1) * np.where(left > 0, left, 1.0))


def noise_of_squares(sums: Floats, variance: Floats | float, n_units: Floats) -> Floats:
    """Return the noise sd of the squared sums of strata over their units, added up.

    `sums`, shape (strata, scores), have noise of the variance given.
    """
    squares = (4 * sums**2 * variance + 2 * variance**2) / n_units**2
    return np.asarray(np.sqrt(squares.sum(axis=0)))


# Cells per octave of weights, and of totals of units, which vary less: choices.
PER_OCTAVE, OF_TOTALS = 4, 8
# Noise sds from which cells are occupied, and how many times as large weights may be as those that
# are detected: choices.
CLEAR_COUNT_SDS, BEYOND = 3.0, 4.0
# Weights of rows from this fraction of their bound on are a cell by themselves: many may have been
# trimmed there. A choice.
AT_BOUND = 1 - 2.0**-10
# Expected number of cells that are taken for occupied by noise alone: a choice.
FALSE_ALARMS = 0.001
# Of the budget, for the numbers of units by weight, at the least: a choice.
CAP_SHARE = 0.03
# Below this noise sd a whole number is told from the next: noise is six times as small as a half.
TOLD_SD = 1 / 12
# The part of what is cut off scores that has one direction: a choice.
ALIGNED = 0.35


class WeightCap(NamedTuple):
    """A cap, and by how much the weights above it exceed it: mean, error, and mean square."""

    cap: float
    mean_excess: float
    mean_excess_sd: float
    square_excess: float


def weight_edges(
    lower: float, upper: float, per_octave: int = PER_OCTAVE, *, at_bound: bool = False
) -> Floats:
    """Return the edges of public cells of weights, shape (cells + 1,), the first below `lower`.

    With `at_bound` the last cell is of weights at their bound.
    """
    n_cells = max(math.ceil(math.log2(upper / lower) * per_octave - 1e-9), 1)
    inner = upper * 2.0 ** (-np.arange(n_cells, 0, -1) / per_octave)
    return np.concatenate([inner, [upper * AT_BOUND] * at_bound, [upper]])


def best_cap(
    edges: Floats, counts: Floats, noise: CellNoise, price: float, moved: float, side: float
) -> WeightCap:
    """Return the cap under which a weighted sum has the least predicted error.

    `price` is the noise of the sum for a cap of 1, `moved` what it moves by for each unit of weight
    that is cut off, and `side` how many times as much noise the sums of capped units have, 0 where
    nothing is put back. With the excess ``E(c)`` and its mean ``e(c)`` estimated from the released
    counts the cap minimises ``(price c)² + max(moved √(E(c)² + s(c)²), side price e(c))²`` over the
    edges of the cells. ``s(c)`` is the error of ``e(c)`` times the units above c, over
    :data:`UNLIKE`, where it is put back: else the least of many noisy estimates decides, one that
    noise made too small. ``E(c)`` is not less than two noise sds below the sum over cells: of
    lumps, as whole weights have, a tail that is fitted may fall too fast.
    """
    edges, counts = _occupied(edges, counts, noise)
    excesses, totals, _ = _cut_off(edges, counts, noise)
    means = np.array([excess.mean for excess in excesses])
    sds = [excess.number * excess.mean_sd / UNLIKE * (side > 0) for excess in excesses]
    moves = np.maximum(moved * np.hypot(totals, sds), side * price * means)
    best = int(np.argmin(np.hypot(price * edges[1:], moves)))
    return WeightCap(float(edges[best + 1]), *excesses[best][3:])


def public_cap(bound: float, largest: float) -> WeightCap:
    """Return the cap where noise hides all units: a public bound.

    Units are taken to have up to :data:`BEYOND` times it, or up to their `largest` weight, and any
    weight up to there to be as likely.
    """
    length = (min(largest / bound, BEYOND) - 1) * bound
    return WeightCap(bound, length / 2, length / math.sqrt(12), length**2 / 3)


def _cut_off(
    edges: Floats, counts: Floats, noise: CellNoise
) -> tuple[list[Excess], Floats, Floats]:
    """Return what exceeds the upper end of each cell, how much in all, and the noise sd of that."""
    beyond = np.maximum(np.sqrt(edges[1:] * edges[:-1]) - edges[1:, None], 0.0)
    sds = np.asarray(noise.sd * np.linalg.norm(beyond, axis=1))
    excesses = [excess_above(edges, counts, noise, float(cap)) for cap in edges[1:]]
    totals = np.maximum([excess.total for excess in excesses], beyond @ counts - 2 * sds)
    return excesses, totals, sds


def longest_score(
    limits: Floats,
    counts: Floats,
    noise: CellNoise,
    price: float,
    aligned: float = ALIGNED,
    *,
    with_hidden: bool = False,
) -> tuple[float, float]:
    """Return a length to which scores are clipped, and the sum of what that cuts off.

    `counts` are numbers of units by length, in cells that end at `limits`, and `price` is the noise
    of the sum for a length of 1. A part `aligned` of what is cut off is taken to have one
    direction. The sum is the root of the square of its estimate and of that estimate's noise sd;
    `with_hidden` a quantile by the laws given all cells, and a length is chosen by the larger of
    the two, beyond the cells in which units are detected too: units that noise hides are few, and
    may be most of what is cut off (docs/theory.md, Theorem 107). Numbers of units are whole: with
    little noise they are known.
    """
    every_edge = np.append(limits[0] / 2, limits)
    counts = np.rint(counts) if noise.sd < TOLD_SD else counts
    edges, occupied = _occupied(every_edge, counts, noise)
    _, totals, sds = _cut_off(edges, occupied, noise)
    cut = chosen_by = np.hypot(totals, sds)
    if with_hidden:
        excesses = [excess_above(every_edge, counts, noise, float(end)) for end in limits]
        cut = np.array([excess.upper for excess in excesses])
        chosen_by = np.maximum(np.pad(chosen_by, (0, len(limits) - len(chosen_by))), cut)
    best = int(np.argmin(np.hypot(price * limits[: len(cut)], aligned * chosen_by)))
    return float(limits[best]), float(cut[best])


def caps_of_scores(edges: Floats, counts: Floats, noise: CellNoise, cap: WeightCap) -> UnitCap:
    """Return a cap with the fraction of weight beyond it, and the cap of sums of scores.

    That is the largest weight that may be expected.
    """
    edges, counts = _occupied(edges, counts, noise)
    scores, middles = ScoreCap(float(edges[-1])), np.sqrt(edges[1:] * edges[:-1])
    detected = np.where(counts > CLEAR_COUNT_SDS * noise.sd, counts, 0.0)
    # Of all units whose cells are beyond: noise adds up, with the sign that it has.
    above = edges[:-1] >= cap.cap * (1 - 1e-9)
    n_above, n_sd = max(float(counts[above].sum()), 0.0), noise.sd * math.sqrt(above.sum())
    excess = n_above * cap.mean_excess
    # Units above the cap have it each, also where noise hides their cells one by one.
    capped = max(float(detected @ np.minimum(middles, cap.cap)), n_above * cap.cap)
    weight = max(capped + excess, noise.sd * cap.cap)
    sd = math.hypot(n_sd * cap.mean_excess, n_above * cap.mean_excess_sd) / weight
    beyond = storable_amount(excess / weight)
    return UnitCap(cap.cap, beyond, storable_amount(sd), scores=scores)


def stratum_factors(
    counts: Floats, noise_sd: float, sizes: Floats, population: float
) -> tuple[float, ...]:
    """Return the factors of squared scores by stratum; none where noise hides a stratum.

    For n units of N: ``n/(n - 1) (1 - n/N)``. `sizes` are numbers of units in the population by
    stratum and `population` that of all; infinite where not declared.
    """
    if float(counts.min()) < max(DETECTED * noise_sd, 2.0) - 1e-9:
        return ()
    is_declared = bool(np.isfinite(sizes).all())
    sampled = counts / sizes if is_declared else float(counts.sum()) / population
    return tuple(unit_factors(counts, sampled).tolist())


def are_detected(edges: Floats, counts: Floats, noise: CellNoise) -> bool:
    """Return whether noise does not hide all units."""
    return bool(_detected(edges, counts, noise)[0].size)


def share_for_cap(edges: Floats, noise_sd: float, n_units: int, *, adds_up: bool) -> float:
    """Return the share of a budget for numbers of units by weight, from public facts alone.

    So much that half of the units are detected where they have weights of one size, up to
    :data:`BEYOND` times another. `noise_sd` is that of a cell for the whole budget, of which parts
    add up as those of ε, or as those of ρ.
    """
    widest = float((_window_ends(edges) - np.arange(len(edges) - 1)).max())
    sd = n_units / 2 / (ndtri(1 - FALSE_ALARMS / (len(edges) - 1)) * math.sqrt(widest))
    return float((noise_sd / max(sd, 1e-100)) ** (1 if adds_up else 2))


def _window_ends(edges: Floats) -> Indices:
    """Return for each cell the end of those up to :data:`BEYOND` times its lower edge."""
    at = np.arange(len(edges) - 1)
    ends = np.searchsorted(edges, BEYOND * edges[:-1] * (1 - 1e-9))
    return np.asarray(ends.clip(at + 1, len(at)))


def _detected(edges: Floats, counts: Floats, noise: CellNoise) -> tuple[Indices, Indices]:
    """Return cells from which on units are detected, and the end of the cells added up for each.

    By sums of the cells from an edge to :data:`BEYOND` times that: the noise of all cells above an
    edge would hide units, or be mistaken for some, where there are many.
    """
    sums, at = np.append(0.0, np.cumsum(counts)), np.arange(len(counts))
    ends = _window_ends(edges)
    n_cells, position = np.unique(ends - at, return_inverse=True)
    rare = replace(noise, seldom=FALSE_ALARMS)
    thresholds = np.array([rare.reach(n, tries=len(counts)) for n in n_cells.tolist()])
    return np.flatnonzero(sums[ends] - sums[at] > thresholds[position]), ends


def _occupied(edges: Floats, counts: Floats, noise: CellNoise) -> tuple[Floats, Floats]:
    """Leave out cells far above those in which units are detected, if any are."""
    detected, ends = _detected(edges, counts, noise)
    if not detected.size:
        return edges, counts
    n_left = int(ends[detected[-1]])
    return edges[: n_left + 1], counts[:n_left]
