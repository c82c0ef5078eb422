"""Numbers of rows by cell of many variables, in cells that are cut finer where the rows are.

Theorem
    Two rounds: numbers of rows by public cells of every variable, then by cells that were cut by
    what the first round released. The second is private for whatever was released before it, so
    the two compose adaptively: the release is ε-differentially private with ε the sum of both for
    Laplace noise, ρ-zCDP with ρ the sum for Gaussian noise, which at (ε, δ) has the exact trade-off
    of one Gaussian release.
Sensitivity
    Of each round that of counts in as many tables as there are variables d
    (:func:`dpmodels.statistics.counts.count_sensitivity`): a row is in one cell of each variable,
    or incomplete there. L1 norm d, 2d where a row is replaced; L2 norm √d, √(2d). All are reached.
Noise
    Independent on every count, and on the number of incomplete rows of each variable: discrete
    Laplace, or discrete Gaussian under zCDP, and at (ε, δ) where that is less.
Numerics
    exact: integer statistics, integer noise of exact law, then a division. Cells are floats made
    of public facts and released numbers. Ranges are computed from them by
    :mod:`dpmodels.postprocess.spreads`.
Source
    This package; learning a range from a noisy histogram of geometric cells is of Karwa, Vadhan
    (2018), "Finite sample differentially private confidence intervals", ITCS.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import ClassVar

import numpy as np

from dpmodels import privacy
from dpmodels.design.cells import PrivateCells
from dpmodels.errors import ArgumentError
from dpmodels.mechanisms.add_noise import ROUND_DOWN, part_without_delta
from dpmodels.mechanisms.count_noise import (
    gaussian_plan,
    gaussian_sums,
    laplace_plan,
    laplace_sums,
    law_of,
    noised_counts,
    noised_mean,
    noised_units,
    one_mean,
    paired_plan,
)
from dpmodels.mechanisms.protocol import CountFacts, CountPlan, release_terms
from dpmodels.noise import Entropy
from dpmodels.noise.finite import draw_finite
from dpmodels.postprocess import far_points, ranges, spreads
from dpmodels.postprocess.protocol import balanced
from dpmodels.postprocess.ranges import found_range
from dpmodels.postprocess.spreads import Column, complete_rows
from dpmodels.privacy import ZCDP, Guarantee, LaplaceEvent, PureDP
from dpmodels.privacy.compose import divide
from dpmodels.released import CellsRelease, CountsRelease, HeldIn, MechanismInfo
from dpmodels.statistics import Statistic
from dpmodels.statistics.counts import CellPasses, place_counts
from dpmodels.statistics.statistic import measured_as
from dpmodels.typing import Floats

# Of the budget, for each round: a choice. The second one decides on the range.
SHARES = (0.4, 0.6)


@dataclass(frozen=True)
class Ranges:
    """Counts of rows by cell of each variable, in two rounds. Reads the rows twice.

    Examples
    --------
    >>> from dpmodels.privacy import PureDP, adjacency
    >>> plan = Ranges().plan(CountFacts(10, 10, False, adjacency("replace")), PureDP(1.0))
    >>> [round(event.multiplier, 2) for event in plan.events], plan.events[0].count
    ([50.0, 33.33], 20)
    """

    info: ClassVar[MechanismInfo] = MechanismInfo(
        name="ranges",
        theorem="eps-DP, rho-zCDP or (eps, delta)-DP, two rounds composed",
        sensitivity="of each round L1, 2 a variable (a row may change its cell), or L2, its root",
        noise="discrete Laplace, or discrete Gaussian where that is less",
        numerics="exact lattice",
        source="Karwa and Vadhan (2018); this package",
    )
    passes: ClassVar[str] = "many"

    def plan(self, facts: CountFacts, guarantee: Guarantee) -> CountPlan:
        """Divide a budget between the rounds; BudgetError if noise is beyond what is meaningful."""
        plans = []
        if not isinstance(guarantee, ZCDP):
            parts = divide(PureDP(guarantee.eps), SHARES, (False, False))
            plans.append([laplace_plan(facts, part) for part in parts])
        if not isinstance(guarantee, PureDP):
            parts = divide(guarantee, SHARES, (True, True))
            plans.append([gaussian_plan(facts, part) for part in parts])
        first, second = min(plans, key=lambda rounds: rounds[1].noise_sd)
        events = (*first.events, *second.events)
        return replace(second, guarantee=guarantee, events=events, first=first)

    def measure(self, private: PrivateCells, plan: CountPlan) -> CellPasses:
        """Make ready to read the rows, once for each round."""
        return CellPasses((private,), 1)

    def release(self, statistic: Statistic, plan: CountPlan, entropy: Entropy) -> CellsRelease:
        """Count in public cells, then in cells that are cut by what came out."""
        if not isinstance(statistic, CellPasses) or plan.first is None:
            raise ArgumentError("statistic= holds counts; expected what measure() returned")
        columns = [Column(number.lower, number.upper, number.step) for number in statistic.numbers]
        ends = [spreads.first_cells(column) for column in columns]
        first, n_rows = _counted(statistic, ends, plan.first, entropy)
        counts_by_column = np.split(first, np.cumsum([len(edges) for edges in ends])[:-1])
        noise = ranges.CellNoise(law_of(plan), plan.first.noise_sd, spreads.SELDOM)
        public_rows = float(n_rows) if plan.facts.adjacency.n_public else None
        finer = []
        for column, edges, counts in zip(columns, ends, counts_by_column, strict=True):
            cells = spreads.CellCounts(edges, counts[:-1], noise)
            number = complete_rows(counts, public_rows)
            finer.append(spreads.next_cells(cells, number, column, plan.noise_sd))
        second, n_rows = _counted(statistic, finer, plan, entropy)
        return CellsRelease(
            values=np.concatenate([first, second]),
            ends=np.concatenate([*ends, *finer]),
            sizes=tuple(len(edges) - 1 for edges in (*ends, *finer)),
            law=law_of(plan),
            noise_sds=(plan.first.noise_sd, plan.noise_sd),
            **release_terms(self.info, plan, n_rows),
        )


def _counted(
    statistic: CellPasses, ends: list[Floats], plan: CountPlan, entropy: Entropy
) -> tuple[Floats, int]:
    """Release the numbers of rows in cells, and after those of each variable its incomplete."""
    exact, n_rows = statistic.cut(tuple(ends)).cross()
    return noised_counts(
        Ranges.info, plan, exact * plan.units_per_row, n_rows, entropy
    ).values, n_rows


# Of the budget, for the range: a choice. Where nothing is gained, Laplace noise is 18 % larger.
RANGE_SHARE = 0.15
# With more noise than this fraction of the rows, too few cells are detected: a choice.
FAINT = 0.01
# With fewer rows: the noise in cells over the rows that a tail can be fitted to, and the most of
# the budget for that. Shares of a first look, and the least and the most of a draw; steps of its
# costs, per row. Choices.
FITTED, MOST_SHARE = 0.033, 0.25
LOOK, LEAST_DRAWN, DRAWN = 0.048, 0.1, 0.5
COST_STEPS = 2**20
# Shortest window over its distance from zero: a choice.
COARSE = 1e-9
# The first look: the range is searched if its inner part, so many times shorter, has this many
# times the rows of the rest. Choices.
INNER, TIMES = 9.0, 2


@dataclass(frozen=True)
class Rounds:
    """A range that covers most rows, then means or variances of the rows clipped to it.

    Means and variances of values clipped to a range that is found first.

    Theorem
        Rounds: numbers of rows by public cell of the measured number, then the parts of
        ``geometric`` or ``gaussian`` (of ``paired`` for one mean), for the number held in a range
        that is a function of the earlier releases and public facts, and the rows at points far
        beyond it (Theorems 110 and 114). Each is differentially private for any range, so
        together they are ε-differentially private for the sum of their ε, or ρ-zCDP for the sum of
        their ρ, by adaptive composition. An (ε, δ) guarantee is met by Laplace noise and leaves its
        δ unused. With few rows a first look decides whether a range is searched at all, numbers of
        rows by cell how much of the budget a draw of the range takes, and what is left goes to the
        parts: charged are the look and parts with all the rest, as one number with Laplace noise,
        which costs the most (Theorems 62 and 67).
    Sensitivity
        In a search a complete row adds 1 to one cell, all groups together:
        :func:`dpmodels.statistics.counts.place_counts`. A row adds parts and numbers at points that
        are not negative and have the sum 1, whatever the range and the points: the sensitivity of
        :func:`dpmodels.statistics.counts.count_sensitivity`. In L1 norm both are 2 where a row is
        replaced and 1 where it is added or removed, in L2 norm √2 and 1. The look is one sum, to
        which a row adds 1, -2 or 0: 3 where a row is replaced, 2 where it is added or removed. The
        draw is among nested windows by the rows outside: one row moves all these numbers in one
        direction, by 1 or not, so that privacy losses are in an interval of length ε (Theorem 67).
    Noise
        Independent discrete Laplace noise, under zCDP discrete Gaussian noise. With many rows 15 %
        of the budget is for the numbers of rows by cell; the noise of the mean falls with the
        range, and what it cuts off is weighed against that by the fall of the released numbers of
        rows (:func:`dpmodels.postprocess.ranges.found_range`). With fewer rows 4.8 % is for the
        look: less than two thirds of the rows within a ninth of the range, about zero or the bound
        nearest to it, and the declared range stays. Otherwise up to 25 %, the more the fewer rows
        there are, is for numbers of rows by cell, and 10 to 50 %, the more the fewer rows are not
        at zero, for a draw by the exponential mechanism (:mod:`dpmodels.postprocess.ranges`): a row
        outside counts for twice as much in it as in noisy numbers of the same cost. The release is
        of the rows held in the range, with the share of those outside and bounds on how far they
        may be. Where rows are detected at points beyond, it is of a range up to the farthest of
        these.
    Numerics
        exact: in all rounds an integer statistic and integer noise of exact law, and a draw of
        exact law; ranges and costs are floating-point functions of released numbers.
    Source
        This package; learning where rows are before their mean is of Karwa, Vadhan (2018), "Finite
        sample differentially private confidence intervals", ITCS.

    Made for bounds that are too wide. Reads the rows twice.

    Parameters
    ----------
    shares : tuple of float
        Of the budget: for one search of the range; or for a first look, numbers of rows by cell
        that follow if most rows are in a small part of the declared range, and the most for a
        draw of the range. What is not used goes to the parts.

    Examples
    --------
    >>> from dpmodels.privacy import PureDP, adjacency
    >>> plan = Rounds().plan(CountFacts(1, 7, True, adjacency("replace")), PureDP(1.0))
    >>> [round(event.multiplier, 2) for event in plan.events]
    [13.33, 2.35]
    """

    info: ClassVar[MechanismInfo] = MechanismInfo(
        name="rounds",
        theorem="eps-DP or rho-zCDP, rounds composed",
        sensitivity="of each round L1, 2, or L2, sqrt(2) (a row may change its group), or 1",
        noise="discrete Laplace, discrete Gaussian under zCDP",
        numerics="exact lattice",
        source="numbers held in a released range; this package",
    )
    passes: ClassVar[str] = "many"
    shares: tuple[float, ...] = (RANGE_SHARE,)

    def plan(self, facts: CountFacts, guarantee: Guarantee) -> CountPlan:
        """Divide a budget between the rounds and calibrate their noise.

        ArgumentError if these are not means or variances of one number. BudgetError if the noise is
        beyond what is meaningful.
        """
        if facts.tables != 1 or not facts.divided:
            raise ArgumentError(
                "mechanism='rounds' is for means and variances of one variable (dp_mean, dp_var, "
                "dp_ttest); write mechanism='auto'"
            )
        if len(self.shares) == 1:
            first = _cells_plan(facts, guarantee, self.shares[0])
        else:
            sums = gaussian_sums if isinstance(guarantee, privacy.ZCDP) else laplace_sums
            part = part_without_delta(guarantee, self.shares[0])
            # Of rows in the inner part less a multiple of the others.
            moved = float(1 + TIMES if facts.adjacency.n_public else max(1, TIMES))
            first = sums(facts, part, moved)
        parts_plan = _parts_plan(facts, guarantee, self.shares[0])
        parts = parts_plan.events if len(self.shares) == 1 else _as_one(parts_plan.events)
        events = (*first.events, *parts)
        return replace(parts_plan, guarantee=guarantee, events=events, first=first)

    def measure(self, private: PrivateCells, plan: CountPlan) -> CellPasses:
        """Prepare to read the rows once for each round."""
        return CellPasses((private,), plan.units_per_row)

    def release(self, statistic: Statistic, plan: CountPlan, entropy: Entropy) -> CountsRelease:
        """Find a range, then release the parts of the rows clipped to it."""
        statistic = measured_as(CellPasses, statistic, "counts")
        if len(self.shares) == 1:
            clip_range = _release_range(statistic, plan, entropy)
        else:
            clip_range, spent = self._searched(statistic, plan, entropy)
            parts_plan = _parts_plan(plan.facts, plan.guarantee, spent)
            plan = replace(parts_plan, guarantee=plan.guarantee, events=plan.events)
            statistic = statistic.in_units(plan.units_per_row)
        noised = noised_mean if _paired(plan) else noised_counts
        if clip_range is None:
            return noised(self.info, plan, *statistic.cross(), entropy)
        lower, upper = statistic.measured.lower, statistic.measured.upper
        beyond = far_points.points_beyond(clip_range, lower, upper, statistic.groups)
        exact, n_rows = statistic.clipped(clip_range.lower, clip_range.upper, beyond).cross()
        if not beyond:
            return replace(noised(self.info, plan, exact, n_rows, entropy), held=clip_range)
        parts = statistic.designs[0].tallies[0].parts
        inner, outer = np.split(exact[:-1].reshape(statistic.groups, -1), [parts], axis=1)
        release = noised(self.info, plan, np.append(inner, exact[-1]), n_rows, entropy)
        release = replace(release, held=clip_range)
        values, _ = noised_units(replace(plan, units_per_row=1), outer, entropy)
        lines = (values / plan.units_per_row).reshape(statistic.groups, -1, len(beyond))
        return _with_points(release, lines, beyond)

    def _searched(
        self, statistic: CellPasses, plan: CountPlan, entropy: Entropy
    ) -> tuple[HeldIn | None, float]:
        """Return the range that looks and searches find, and the share of the budget they took."""
        number, (look, count, most) = statistic.measured, self.shares
        if not number.lower < number.upper or not _inner_rows(statistic, plan, entropy) > 0:
            return None, look
        cells, n_rows = _cell_counts(statistic, plan, count, entropy)
        column = Column(number.lower, number.upper, 0.0)
        apart = n_rows - spreads.rows_at_anchor(cells, column) - math.sqrt(2) * cells.noise.sd
        share = _draw_share(plan, max(apart, 1.0), most, _power(statistic))
        eps = _draw_eps(plan.guarantee, share)
        windows = ranges.Windows(number.lower, number.upper, _power(statistic), eps * apart)
        window = _drawn(statistic, windows, eps, entropy)
        at_anchor = spreads.most_at_anchor(cells, n_rows, column)
        hidden = windows.saved(window, eps) * at_anchor
        return _held_in_window(windows, window, cells, hidden), look + count + share


def _with_points(
    release: CountsRelease, counts: Floats, beyond: tuple[float, ...]
) -> CountsRelease:
    """Return the parts of a longer range, up to points beyond it where counts show rows.

    `counts` has the shape (groups, lines, points), with two lines for persons in several groups.
    """
    clip_range, noise = release.held, ranges.CellNoise(release.law, release.noise_sd)
    assert clip_range is not None
    is_below = np.array(beyond) < clip_range.lower
    chosen = far_points.detected(counts.reshape(-1, len(beyond)), is_below, noise)
    if not chosen:
        return release
    inner = release.values[:-1].reshape(len(counts), -1)
    outer = counts[:, :, chosen].reshape(len(counts), -1)
    if release.paired:
        inner = inner - np.array([0.5, 0.0, 0.5]) * outer.sum()
    parts = np.append(np.hstack([inner, outer]), release.values[-1])
    parts = balanced(parts, None if release.paired else release.rows)
    limits = far_points.widened(clip_range, [beyond[at] for at in chosen])
    is_of_persons, degree = counts.shape[1] > 1, inner.shape[1] - 1
    of_parts = far_points.parts_joined(limits.points or (), degree, clustered=is_of_persons)
    joined = parts[:-1].reshape(len(counts), -1) @ of_parts
    return replace(release, values=np.append(joined, parts[-1]), held=limits)


def range_shares(facts: CountFacts, guarantee: Guarantee, n_rows: int) -> tuple[float, ...] | None:
    """Return the shares of the budget for a range; None where there are too few rows for one."""
    noise_sd = _cells_plan(facts, guarantee, 1.0).noise_sd
    power = 2 if isinstance(guarantee, privacy.ZCDP) else 1
    if n_rows <= 0 or (noise_sd / (FAINT * n_rows)) ** power <= RANGE_SHARE:
        return (RANGE_SHARE,) if n_rows > 0 else None
    share = (noise_sd / (FITTED * n_rows)) ** power
    return (LOOK, share, DRAWN) if share <= MOST_SHARE else None


def _cells_plan(facts: CountFacts, guarantee: Guarantee, share: float) -> CountPlan:
    calibrated = gaussian_plan if isinstance(guarantee, privacy.ZCDP) else laplace_plan
    return calibrated(replace(facts, divided=False), part_without_delta(guarantee, share))


def _parts_plan(facts: CountFacts, guarantee: Guarantee, spent: float) -> CountPlan:
    """Calibrate the noise of the parts to what a search has left of the budget."""
    calibrated = gaussian_plan if isinstance(guarantee, privacy.ZCDP) else laplace_plan
    if one_mean(facts) and calibrated is laplace_plan:
        calibrated = paired_plan
    return calibrated(facts, part_without_delta(guarantee, 1 - spent))


def _as_one(events: tuple[privacy.Event, ...]) -> tuple[privacy.Event, ...]:
    """Return Laplace events of the same sum of eps as one, which no draw before it exceeds."""
    return tuple(
        LaplaceEvent(event.multiplier / event.count) if isinstance(event, LaplaceEvent) else event
        for event in events
    )


def _inner_rows(statistic: CellPasses, plan: CountPlan, entropy: Entropy) -> float:
    """Release rows in the inner part of the range, about its anchor, less those elsewhere."""
    number, first = statistic.measured, plan.first
    assert first is not None
    anchor = ranges.anchor_of(number.lower, number.upper)
    inner = [anchor + (end - anchor) / INNER for end in (number.lower, number.upper)]
    edges = np.unique([number.lower, *inner, number.upper])
    cells, _ = statistic.over_rows(place_counts, edges).cross()
    weights = [1 if inner[0] <= end <= inner[1] else -TIMES for end in (edges[1:] + edges[:-1]) / 2]
    exact = np.array([sum(w * count for w, count in zip(weights, cells.tolist(), strict=True))])
    noisy, _ = noised_units(first, exact, entropy)
    return float(noisy[0])


def _cell_counts(
    statistic: CellPasses, plan: CountPlan, share: float, entropy: Entropy
) -> tuple[spreads.CellCounts, float]:
    """Release the numbers of rows by cell, for a share of the budget, and of complete rows."""
    number = statistic.measured
    cells_plan = _cells_plan(plan.facts, plan.guarantee, share)
    ends = spreads.first_cells(Column(number.lower, number.upper, 0.0))
    exact, n_rows = statistic.over_rows(place_counts, ends).cross()
    values, law = noised_units(cells_plan, np.append(exact, n_rows - exact.sum()), entropy)
    cells = spreads.CellCounts(
        ends, values[:-1], ranges.CellNoise(law, cells_plan.noise_sd, spreads.SELDOM)
    )
    return cells, complete_rows(values, float(n_rows) if plan.facts.adjacency.n_public else None)


def _power(statistic: CellPasses) -> int:
    return max(statistic.degree // 2, 1)


def _draw_eps(guarantee: Guarantee, share: float) -> float:
    """Return the range of the privacy losses of a draw that costs a share of the budget."""
    match part_without_delta(guarantee, share):
        case privacy.ZCDP(rho):
            return privacy.gaussian_to_bounded_range(1 / math.sqrt(2 * rho)) * ROUND_DOWN
        case privacy.PureDP(eps) | privacy.ApproxDP(eps, _):
            return eps * ROUND_DOWN


def _draw_share(plan: CountPlan, apart: float, most: float, power: int) -> float:
    """Return the share of the budget with which a draw detects so many rows outside a window."""
    short = ranges.needed(power) / (apart * _draw_eps(plan.guarantee, LEAST_DRAWN))
    grows = 2 if isinstance(plan.guarantee, privacy.ZCDP) else 1
    return min(LEAST_DRAWN * max(short, 1.0) ** grows, most)


def _drawn(statistic: CellPasses, windows: ranges.Windows, eps: float, entropy: Entropy) -> int:
    """Draw a window, with a privacy loss in an interval of length `eps` for one row."""
    exact, _ = statistic.over_rows(place_counts, windows.edges).cross()
    costs = np.rint(windows.costs * (COST_STEPS / eps)).astype(np.int64).astype(object)
    levels = windows.outside(exact) * COST_STEPS + costs
    return draw_finite(levels, Fraction(eps) / COST_STEPS, entropy)


def _held_in_window(
    windows: ranges.Windows, window: int, cells: spreads.CellCounts, hidden: float
) -> HeldIn | None:
    """Return a drawn window, and what may lie beyond; `hidden` rows may be as far away again."""
    low, high = windows.bounds[window].tolist()
    # Far from zero floating-point numbers may be too coarse for a window.
    if window == 0 or not high - low > COARSE * max(abs(low), abs(high)):
        return None
    low, high = spreads.rounded_range(low, high, Column(windows.lower, windows.upper, 0.0))
    limits = ranges.held_in(cells.ends, cells.counts, cells.noise, low, high)
    share = hidden / max(float(cells.counts.sum()), 1.0)
    anchor = ranges.anchor_of(windows.lower, windows.upper)
    below, above = min(anchor - low, low - windows.lower), min(high - anchor, windows.upper - high)
    return replace(
        limits,
        below=max(limits.below, share * below),
        above=max(limits.above, share * above),
        below_square=max(limits.below_square, share * below**2),
        above_square=max(limits.above_square, share * above**2),
    )


def _paired(plan: CountPlan) -> bool:
    return one_mean(plan.facts) and law_of(plan) == "laplace"


def _release_range(statistic: CellPasses, plan: CountPlan, entropy: Entropy) -> HeldIn | None:
    number, first = statistic.measured, plan.first
    if first is None or not number.lower < number.upper:
        return None
    ends = ranges.range_cells(number.lower, number.upper)
    exact, n_rows = statistic.over_rows(place_counts, ends).cross()
    cells = noised_counts(Rounds.info, first, exact * first.units_per_row, n_rows, entropy)
    at_bound = far_points.error_at_bounds(statistic.groups)
    noise = ranges.CellNoise(cells.law, first.noise_sd, at_bound=at_bound)
    # Of the sum of places about the middle: half of one noise variable, or the difference of two.
    price = plan.noise_sd / (2 if _paired(plan) else math.sqrt(2))
    found = found_range(ends, cells.values, noise, price, _power(statistic))
    counts = spreads.CellCounts(ends, cells.values, noise)
    if found is not None:
        return ranges.held_in(ends, cells.values, noise, found.lower, found.upper)
    column = Column(number.lower, number.upper, 0.0)
    n_complete = float(cells.values.sum())
    bounds = spreads.bounds_beside_anchor(counts, n_complete, column)
    return bounds and ranges.held_in(ends, cells.values, noise, *bounds)
