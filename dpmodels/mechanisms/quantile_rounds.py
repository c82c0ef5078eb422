"""Rounds of noisy counts of cells that earlier rounds chose, and quantiles made of the last.

In each round a row adds 1 to the node it lies in on every level of a tree above the round's cells.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri

from dpmodels import privacy
from dpmodels.mechanisms.add_noise import ROUND_UP, SMALLEST_SCALE, laplace_multipliers
from dpmodels.mechanisms.protocol import LEAST_SCALE, refuse_noise, release_terms
from dpmodels.mechanisms.quantile_facts import LARGEST_SCALE, Grid, QuantileFacts
from dpmodels.noise import (
    Entropy,
    discrete_gaussian,
    discrete_laplace,
    discrete_laplace_variance,
    noisy_sums,
)
from dpmodels.postprocess.hierarchy import Hierarchy, NoisyCells, agreeing, rising, split_levels
from dpmodels.released import MechanismInfo, QuantilesRelease
from dpmodels.statistics import Statistic
from dpmodels.statistics.counts import count_sensitivity
from dpmodels.typing import Floats, Indices, Objects, Scalars

# Where the cells of the next round are cut: by noisy counts of this one alone.

# Of the first round.
FIRST_CELLS = 64
# For each quantile, by the rounds that are left: its noise is looked at through the one window,
# its interval through the other. Choices; more cells have more noise in their sums.
NEAR = {1: 5, 2: 12, 3: 16}
AROUND = {1: 5, 2: 10, 3: 16}
# More for the last round, where their noise stays below so much of the sampling variance; and at
# most so many for all quantiles together.
SPARE, MOST, MOST_TOGETHER = 0.04, 40, 120
# A cell is heavy from so many times the count that pieces have: a choice.
HEAVY = 2.5
# Cells of a tree, by the root of the rows over the noise sd of a count; and how few, how many.
# Choices, tried on rows of many shapes.
EVEN, PIECES = 4.0, (16, 4096)
# Noise sds that a window reaches beyond: of this round, and of the last. Choices.
NOISE_REACH, SLACK = 2.5, 0.3
# Cells on both sides of a drawn value double, from so many halvings of the range on: a choice.
HALVINGS = 20

Ends = Indices


def first_ends(cells: int) -> Ends:
    """Return the ends of the first round's cells, in cells of the grid."""
    return equal_ends(cells, FIRST_CELLS)


def equal_ends(cells: int, max_cells: int) -> Ends:
    """Return the ends of at most so many equal runs of the grid's cells."""
    return _whole_cells(np.linspace(0, cells, min(cells, max_cells) + 1))


def doubling_ends(grid: Grid, drawn: Indices) -> Ends:
    """Return the ends of cells of a grid that double with their distance from drawn ones."""
    middles = (grid.lower[drawn] + grid.upper[drawn]) / 2
    away = 0.5 ** np.arange(HALVINGS)
    places = (middles[:, None] + np.concatenate([-away, away])).ravel()
    cuts = grid.cell(places[(places > 0) & (places < 1)])
    return _whole_cells(np.concatenate([[0, grid.cells], drawn, drawn + 1, cuts]))


def even_ends(ends: Ends, noisy: NoisyCells, facts: QuantileFacts, last_sd: float) -> Ends:
    """Return the ends of cells of equal noisy counts, from the lowest quantile to the highest.

    The rank of a cell is off by its count at most, by noise in proportion to the root of their
    number: so there are the more the larger the counts are over the noise sd of the last round.
    """
    probs, mass = np.array(facts.probs), _mass(noisy)
    n_rows, variance = float(mass.sum()), probs * (1 - probs)
    if not n_rows > 0:
        return equal_ends(int(ends[-1]), PIECES[0])
    reach = NOISE_REACH * np.array([noisy.rank_sd(prob) for prob in facts.probs]) + 0.5
    if facts.level is not None:
        z = float(ndtri((1 + facts.level) / 2)) + SLACK
        reach += z * np.sqrt(noisy.effect * n_rows * variance + PIECES[1] * last_sd**2)
    low, high = (probs * n_rows - reach).min(), (probs * n_rows + reach).max()
    low, high = max(low, 0.0), min(high, n_rows)
    pieces = int(np.clip(EVEN * math.sqrt((high - low) / last_sd), *PIECES))
    middle, half = np.array([(low + high) / 2]), np.array([(high - low) / 2])
    cuts = _cut(ends, mass, middle / n_rows, half, pieces)
    return _whole_cells(np.concatenate([[0, ends[-1]], cuts]))


def _mass(noisy: NoisyCells) -> Floats:
    return np.diff(rising(np.concatenate([[0.0], np.cumsum(noisy.counts)])))


def next_ends(
    ends: Ends, noisy: NoisyCells, facts: QuantileFacts, left: int, last_sd: float
) -> Ends:
    """Return the ends of the next round's cells.

    `left` rounds are to come; the counts of the last have noise of sd `last_sd`. Cells that no
    window touches become one. In those it touches, cuts leave equal noisy counts between them: a
    count that one cell has, wherever in it, is cut evenly, empty cells are put together; what
    is heavy is kept apart from what is beside it, so that values that many rows share are found.
    """
    probs, cells = np.array(facts.probs), len(noisy.counts)
    noise_pieces, interval_pieces = (
        min(pieces_by_round[left] * len(probs), MOST_TOGETHER) for pieces_by_round in (NEAR, AROUND)
    )
    spare = SPARE * noisy.effect * noisy.total / last_sd**2
    if left == 1:
        interval_pieces = int(
            np.clip(
                spare, interval_pieces, max(interval_pieces, min(MOST * len(probs), MOST_TOGETHER))
            )
        )
    variance = probs * (1 - probs)
    now = noisy.noise_sd * np.sqrt(variance * cells + 1)
    last = last_sd * np.sqrt(variance * (noise_pieces + interval_pieces) + 1)
    mass = _mass(noisy)
    noise = NOISE_REACH * now + SLACK * last + 0.5
    cuts = [_cut(ends, mass, probs, noise, noise_pieces)]
    if facts.level is not None:
        z = float(ndtri((1 + facts.level) / 2)) + SLACK
        spread = z * np.sqrt(noisy.effect * noisy.total * variance + last**2)
        cuts.append(_cut(ends, mass, probs, noise + spread, interval_pieces))
    return _whole_cells(np.concatenate([[0, ends[-1]], *cuts]))


def _cut(ends: Ends, mass: Floats, probs: Floats, reach: Floats, pieces: int) -> Floats:
    """Cut the cells within reach of the quantiles' ranks, together into so many pieces.

    Pieces go by the count within reach: of a cell that holds many rows beyond it, only the part
    within. A cell of the grid cannot be cut and takes no piece.
    """
    below = np.concatenate([[0.0], np.cumsum(mass)])
    if not below[-1] > 0:
        return ends.astype(np.float64)
    low, high = np.clip(below[-1] * probs + np.array([[-1.0], [1.0]]) * reach, 0.0, below[-1])
    first = np.searchsorted(below, low, side="right") - 1
    last = np.searchsorted(below, high, side="left")
    cells = np.arange(len(mass))
    touched = ((cells >= first[:, None]) & (cells < last[:, None])).any(axis=0)
    low[1:] = np.maximum(low[1:], np.maximum.accumulate(high)[:-1])
    within = np.minimum(below[1:], high[:, None]) - np.maximum(below[:-1], low[:, None])
    reached = np.where(touched, np.maximum(within, 0.0).sum(axis=0), 0.0)
    heavy = np.where(touched, mass, 0.0) * pieces >= HEAVY * reached.sum()
    borders = np.flatnonzero(np.diff(touched) | np.diff(heavy)) + 1
    sums = np.concatenate([[0.0], np.cumsum(np.where(np.diff(ends) > 1, reached, 0.0))])
    at = np.linspace(0, sums[-1], pieces + 1)[1:-1]
    return np.concatenate([ends[borders], np.interp(at, sums, ends)])


def _whole_cells(ends: Floats) -> Ends:
    return np.unique(np.rint(ends)).astype(np.intp)


# A count is detected if it exceeds this many of its noise sds; quantiles are this many noise sds of
# their rank away from the extremes. Choices.
DETECTED, INSIDE = 3.0, 2.0
# Smallest noise sd that is stated.
LEAST_SD = 1e-6


@dataclass(frozen=True)
class RoundsPlan:
    """A calibrated release: everything but the data."""

    guarantee: privacy.Guarantee
    events: tuple[privacy.Event, ...]
    facts: QuantileFacts
    law: str
    levels: tuple[int, ...]  # Of the tree of each round, at most
    scales: tuple[float, ...]  # Of the noise in the counts of each round, in rows

    @property
    def units(self) -> tuple[int, ...]:
        """Units of a row that noise is drawn in, by round."""
        finest = SMALLEST_SCALE if self.law == "gaussian" else 0.0
        return tuple(math.ceil(max(finest / scale, 1.0)) for scale in self.scales)

    @property
    def noise_sds(self) -> tuple[float, ...]:
        """Standard deviations of the noise in the counts of each round, not below LEAST_SD."""
        if self.law == "gaussian":
            return self.scales
        return tuple(
            max(math.sqrt(discrete_laplace_variance(scale)), LEAST_SD) for scale in self.scales
        )


# Counts one group, whose rows below each end of the grid's cells are given, with noise: the ends
# of the last round's cells, and their counts.
Counted = Callable[[Scalars, RoundsPlan, float, Entropy], tuple[Ends, NoisyCells]]


def rounds_plan(
    facts: QuantileFacts,
    guarantee: privacy.Guarantee,
    shares: tuple[float, ...],
    levels: tuple[int, ...],
) -> RoundsPlan:
    """Calibrate the noise of each round to its share of a budget, by the levels of its tree.

    BudgetError if it is beyond what is meaningful.
    """
    law, scales, events = _priced(shares, levels, facts.adjacency, guarantee)
    if max(scales) > LARGEST_SCALE:
        refuse_noise(max(scales), "rows in each count", "eps or rho")
    smallest = LEAST_SCALE if law == "laplace" else LEAST_SD
    floored = tuple(max(scale, smallest) for scale in scales)
    return RoundsPlan(guarantee, events, facts, law, levels, floored)


def _priced(
    shares: tuple[float, ...],
    levels: tuple[int, ...],
    adjacency: privacy.Adjacency,
    guarantee: privacy.Guarantee,
) -> tuple[str, tuple[float, ...], tuple[privacy.Event, ...]]:
    """Return the law of the noise, its scale in each round and what the rounds cost."""
    if isinstance(guarantee, privacy.ZCDP):
        multipliers = privacy.split_gaussian(privacy.gaussian_multiplier(guarantee), shares)
        changed = (count_sensitivity(adjacency, n_levels, 2) for n_levels in levels)
        scales = tuple(
            change * multiplier * ROUND_UP
            for change, multiplier in zip(changed, multipliers, strict=True)
        )
        return "gaussian", scales, tuple(map(privacy.GaussianEvent, multipliers))
    times = [round(count_sensitivity(adjacency, n_levels, 1)) for n_levels in levels]
    eps_shares = [share / n_levels for share, n_levels in zip(shares, levels, strict=True)]
    paid = laplace_multipliers(guarantee, np.repeat(eps_shares, times).tolist())
    firsts = [paid[sum(times[:turn])] for turn in range(len(times))]
    events = tuple(
        privacy.LaplaceEvent(multiplier, count=n)
        for multiplier, n in zip(firsts, times, strict=True)
    )
    return "laplace", tuple(multiplier * ROUND_UP for multiplier in firsts), events


def noisy_cells(
    cells: Objects,
    hierarchy: Hierarchy,
    plan: RoundsPlan,
    turn: int,
    max_rows: float,
    entropy: Entropy,
) -> NoisyCells:
    """Add a round's noise to the counts of cells and of the nodes above them; make them agree."""
    draw = discrete_gaussian if plan.law == "gaussian" else discrete_laplace
    units = plan.units[turn]
    nodes = np.concatenate(hierarchy.sums(cells))
    (sums,) = noisy_sums([(nodes.astype(object) * units, plan.scales[turn] * units)], draw, entropy)
    noisy = sums.astype(np.float64) / units
    counts = agreeing(hierarchy, split_levels(hierarchy, noisy, 1), 0.0, None).cells[0]
    effect = plan.facts.adjacency.places
    return NoisyCells(counts, plan.law, plan.noise_sds[turn], max_rows, effect, hierarchy)


def quantiles_released(
    info: MechanismInfo, statistic: Statistic, plan: RoundsPlan, entropy: Entropy, counted: Counted
) -> QuantilesRelease:
    """Count each group by rounds, and invert the last counts."""
    exact, n_rows = statistic.cross()
    facts = plan.facts
    max_rows = float(n_rows) if facts.adjacency.n_public else math.inf
    table = exact[:-1].reshape(facts.groups, -1)
    values = np.full((facts.groups, len(facts.probs), 3), math.nan)
    drawn_probs, rank_sds = (np.full(values.shape[:2], math.nan) for _ in range(2))
    numbers, count_sds = np.empty(facts.groups), np.empty(facts.groups)
    for group, group_counts in enumerate(table):
        below = np.concatenate([[0], np.cumsum(group_counts.astype(np.int64))])
        ends, noisy = counted(below, plan, max_rows, entropy)
        numbers[group], count_sds[group] = noisy.counts.sum(), noisy.total_sd
        rank_sds[group] = [noisy.rank_sd(prob) for prob in facts.probs]
        if noisy.total > max(DETECTED * noisy.total_sd, 1.0):
            values[group], drawn_probs[group] = _inverted(ends, noisy, facts)
    return QuantilesRelease(
        values=values,
        drawn=drawn_probs,
        counts=numbers,
        count_sd=count_sds,
        rank_sd=rank_sds,
        **release_terms(info, plan, n_rows),
    )


def _inverted(ends: Ends, noisy: NoisyCells, facts: QuantileFacts) -> tuple[Floats, Floats]:
    """Return the quantiles of one group and the ends of their intervals, and at which shares."""
    reach = [(INSIDE * noisy.rank_sd(prob) + 0.5) / noisy.total for prob in facts.probs]
    away = np.minimum(reach, 0.5)
    drawn_probs = np.clip(facts.probs, away, 1 - away)
    values = np.full((len(drawn_probs), 3), math.nan)
    cells, shares = (
        np.array(array) for array in zip(*map(noisy.quantile, drawn_probs), strict=True)
    )
    values[:, 0] = facts.grid.within(ends[cells], ends[cells + 1], shares)
    if facts.level is not None:
        pairs = [noisy.interval(prob, facts.level) for prob in facts.probs]
        first, last = np.array(pairs).T
        values[:, 1] = facts.grid.lower[ends[first]]
        values[:, 2] = facts.grid.upper[ends[last + 1] - 1]
    return values, drawn_probs
