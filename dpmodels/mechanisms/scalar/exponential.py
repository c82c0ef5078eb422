"""The exponential mechanism for quantiles, by groups or not.

Theorem
    Each draw has density proportional to ``exp(-c u)`` on the cells of a public grid over the
    declared range; the privacy loss of all groups' draws for one quantile lies in an interval of
    length ε, so they are ε-differentially private and ε²/8-zCDP. Counts of complete rows have
    discrete Laplace noise. An (ε, δ) guarantee is met by the sum of the ε or by zCDP, whichever
    leaves less noise. `bracketed` buys draws and numbers of rows so with a share of the budget, and
    with the rest counts of cells that follow from the drawn values and nothing else of the rows:
    both are composed adaptively (Theorem 64), and leave the δ of an (ε, δ) guarantee unused.
Sensitivity
    u is how many rows the rank p N is away from the ranks of the rows in a cell, 0 inside. A row
    more or fewer moves u by -p or 1 - p above the quantile and by p or -(1 - p) below it, so by a
    function of the cell in an interval of length ``r = max(1, 2p, 2 - 2p)``. A row replaced inside
    a group moves u by -1, 0 or 1, an interval of length 2; one that leaves a group and enters
    another moves two of them, 2r. So c = ε/r under ``add-remove``, however many groups; under
    ``replace`` ε/2 without groups, ε/(2r) with: for the median groups are free of charge. A p
    adjusted by the released counts is nearer 1/2, where r is at most as wide. Cells beside draws
    are disjoint, those of all groups together too: L1 norm 2 and L2 norm √2 where a row is
    replaced, else 1, whatever values were drawn.
Noise
    Rank errors have two tails of e^-c a row where rows are in all cells, longer ones where cells
    without rows are many, so that draws alone have no intervals. Ranks that noise could take out of
    the rows are moved inside: :class:`dpmodels.mechanisms.scalar.exponential.Drawing`. On counts
    beside draws discrete Laplace noise, under zCDP discrete Gaussian, independent of the cells.
Numerics
    exact: integer ranks, and draws of the exact law on the grid.
Source
    McSherry, Talwar (2007), "Mechanism design via differential privacy", FOCS. Smith (2011),
    "Privacy-preserving statistical estimation with optimal convergence rates", STOC, for
    quantiles. Cesar, Rogers (2021), "Bounding, concentrating, and truncating", ALT, for ε²/8.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import ClassVar

import numpy as np

from dpmodels import privacy
from dpmodels.mechanisms.add_noise import ROUND_DOWN, part_without_delta
from dpmodels.mechanisms.measures import OfCells
from dpmodels.mechanisms.protocol import LEAST_SCALE, PlanOf, refuse_noise, release_terms
from dpmodels.mechanisms.quantile_facts import LARGEST_SCALE, QuantileFacts
from dpmodels.mechanisms.quantile_rounds import RoundsPlan, doubling_ends, noisy_cells, rounds_plan
from dpmodels.noise import Entropy, discrete_laplace, discrete_laplace_variance
from dpmodels.noise.finite import draw_finite
from dpmodels.postprocess.hierarchy import Hierarchy
from dpmodels.released import MechanismInfo, QuantilesRelease
from dpmodels.statistics import Statistic
from dpmodels.typing import Floats, Scalars

# Of the budget: the counts. A choice.
COUNT_SHARE = 0.05
# Adjusted ranks are rounded to this fraction of the rows: a choice, finer than any noise.
RANK_STEPS = 2**30
# Halvings in the search for the rho that an (eps, delta) guarantee amounts to.
HALVINGS = 40
# The conversion's own rounding, of eps and beside it.
CONVERSION = 1e-10


@dataclass(frozen=True)
class QuantilePlan(PlanOf[QuantileFacts]):
    """Calibrated draws of quantiles."""

    middle: tuple[float, ...]  # Concentration of the draws of each quantile, by row
    count_scale: float  # Of the Laplace noise in the counts


@dataclass(frozen=True)
class Exponential(OfCells):
    """The exponential mechanism for quantiles.

    Examples
    --------
    >>> from dpmodels.privacy import PureDP, adjacency
    >>> from dpmodels.mechanisms.quantile_facts import Grid
    >>> facts = QuantileFacts((0.5,), 4, Grid(1000), None, adjacency("replace"))
    >>> print(round(Exponential().plan(facts, PureDP(1.0)).middle[0], 6))
    0.475
    """

    count_share: float = COUNT_SHARE  # Of the budget

    info: ClassVar[MechanismInfo] = MechanismInfo(
        name="exponential",
        theorem="eps-DP or eps^2/8-zCDP, exponential mechanism (bounded range)",
        sensitivity="range of the rank error: 2 within a group, 2 max(1, 2p, 2 - 2p) between two",
        noise="exponential tails in ranks; counts: discrete Laplace",
        numerics="exact lattice",
        source="McSherry and Talwar (2007); Smith (2011)",
    )

    def plan(self, facts: QuantileFacts, guarantee: privacy.Guarantee) -> QuantilePlan:
        """Calibrate the concentrations to a guarantee.

        BudgetError if the noise is beyond what is meaningful.
        """
        n_quantiles = len(facts.probs)
        share = (1 - self.count_share) / n_quantiles
        paid = _paid_as(guarantee, share)
        eps = _paid_eps(paid, share, 8)
        multiplier = 1 / _paid_eps(paid, self.count_share, 2)
        scale = multiplier * count_changes(facts) / ROUND_DOWN
        if scale > LARGEST_SCALE:
            refuse_noise(scale, "rows in the number of rows", "eps or rho")
        events: tuple[privacy.Event, ...] = (
            privacy.BoundedRangeEvent(eps, n_quantiles),
            privacy.LaplaceEvent(multiplier),
        )
        middle = tuple(eps / loss_range(facts, p) * ROUND_DOWN for p in facts.probs)
        return QuantilePlan(guarantee, events, facts, middle, max(scale, LEAST_SCALE))

    def release(
        self, statistic: Statistic, plan: QuantilePlan, entropy: Entropy
    ) -> QuantilesRelease:
        """Draw the quantiles."""
        exact, n_rows = statistic.cross()
        facts = plan.facts
        table = exact[:-1].reshape(facts.groups, -1)
        noise = discrete_laplace(plan.count_scale, facts.groups, entropy)
        noisy = (table.sum(axis=1) + noise.astype(object)).astype(np.float64)
        count_sd = math.sqrt(discrete_laplace_variance(plan.count_scale))
        values = np.full((facts.groups, len(facts.probs), 3), math.nan)
        drawn_probs = np.full(values.shape[:2], math.nan)
        for group, count in enumerate(noisy.tolist()):
            if count > max(DETECTED * count_sd, 1.0):
                ranks = np.concatenate([[0], np.cumsum(table[group].astype(np.int64))])
                values[group, :, 0], drawn_probs[group] = _group(ranks, plan, count, entropy)
        return QuantilesRelease(
            values=values,
            drawn=drawn_probs,
            counts=noisy,
            count_sd=np.full(facts.groups, count_sd),
            rank_sd=np.tile(math.sqrt(2) / np.array(plan.middle), (facts.groups, 1)),
            **release_terms(self.info, plan, n_rows),
        )


# Of the budget: draws, with as much for the numbers of rows as where there is nothing else. Rank
# errors fall as the inverse of a share: two thirds leave 1.5 times those of draws that have all,
# and intervals fall in length with what is left.
DRAWS = 0.69


@dataclass(frozen=True)
class BracketedPlan(QuantilePlan):
    """Calibrated draws, and the counts beside them: everything but the data."""

    cells: RoundsPlan


@dataclass(frozen=True)
class Bracketed(OfCells):
    """Drawn quantiles, and counts of cells that double with their distance from them.

    Examples
    --------
    >>> from dpmodels.mechanisms.quantile_facts import Grid
    >>> from dpmodels.privacy import PureDP, adjacency
    >>> facts = QuantileFacts((0.5,), 1, Grid(1000), 0.95, adjacency("replace"))
    >>> plan = Bracketed().plan(facts, PureDP(1.0))
    >>> round(plan.middle[0], 6), [round(scale, 3) for scale in plan.cells.scales]
    (0.32, [6.452])
    """

    info: ClassVar[MechanismInfo] = MechanismInfo(
        name="bracketed",
        theorem="eps-DP or rho-zCDP, a draw of bounded range and a round of counts",
        sensitivity="that of exponential; of the counts 2 in L1, sqrt(2) in L2, or 1",
        noise="exponential tails in ranks; counts: discrete Laplace, under zCDP discrete Gaussian",
        numerics="exact lattice",
        source="Smith (2011); Dwork, Rothblum and Vadhan (2010); Woodruff (1952)",
    )

    def plan(self, facts: QuantileFacts, guarantee: privacy.Guarantee) -> BracketedPlan:
        """Calibrate draws and counts; BudgetError if noise is beyond what is meaningful."""
        draws = Exponential(COUNT_SHARE / DRAWS).plan(facts, part_without_delta(guarantee, DRAWS))
        cells = rounds_plan(facts, part_without_delta(guarantee, 1 - DRAWS), (1.0,), (1,))
        events = (*draws.events, *cells.events)
        return BracketedPlan(guarantee, events, facts, draws.middle, draws.count_scale, cells)

    def release(
        self, statistic: Statistic, plan: BracketedPlan, entropy: Entropy
    ) -> QuantilesRelease:
        """Draw the quantiles of each group, then count on both sides of them."""
        drawn = Exponential().release(statistic, plan, entropy)
        exact, n_rows = statistic.cross()
        facts, grid = plan.facts, plan.facts.grid
        values = drawn.values.copy()
        max_rows = float(n_rows) if facts.adjacency.n_public else math.inf
        for group, table in enumerate(exact[:-1].reshape(facts.groups, -1)):
            cells = grid.cell(values[group, :, 0])
            ends = doubling_ends(grid, cells[~np.isnan(cells)].astype(np.intp))
            sums = np.add.reduceat(table, ends[:-1])
            noisy = noisy_cells(sums, Hierarchy(len(sums)), plan.cells, 0, max_rows, entropy)
            for place in np.flatnonzero(~np.isnan(cells)):
                if facts.level is None:
                    break
                first, last = noisy.interval(facts.probs[place], facts.level)
                values[group, place, 1] = grid.lower[ends[first]]
                values[group, place, 2] = grid.upper[ends[last + 1] - 1]
        return replace(drawn, values=values, **release_terms(self.info, plan, n_rows))


def loss_range(facts: QuantileFacts, prob: float) -> float:
    """Return the length of the interval that a neighbour moves the rank errors in.

    All groups together; see the module's *Sensitivity*.
    """
    changed = max(1.0, 2 * prob, 2 - 2 * prob)
    if not facts.adjacency.n_public:
        return changed
    return 2 * changed if facts.groups > 1 else 2.0


def count_changes(facts: QuantileFacts) -> int:
    """Return the L1 sensitivity of the numbers of complete rows of all groups."""
    return 2 if facts.adjacency.n_public and facts.groups > 1 else 1


def _paid_as(guarantee: privacy.Guarantee, share: float) -> privacy.Guarantee:
    """Return the guarantee by which the draws are paid for.

    An (eps, delta) guarantee is met by rho-zCDP of the largest rho, to four digits, where that
    lets a draw of the share given have a larger eps than the sum of all eps does.
    """
    if not isinstance(guarantee, privacy.ApproxDP):
        return guarantee
    granted = guarantee.eps * (1 - CONVERSION) - CONVERSION

    def met(rho: float) -> bool:
        return privacy.zcdp_to_approx(rho, guarantee.delta) <= granted

    low = high = share * guarantee.eps**2 / 8
    if not met(low):
        return guarantee
    while met(high):
        low, high = high, 2 * high
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if met(middle) else (low, middle)
    return privacy.ZCDP(low * ROUND_DOWN)


def _paid_eps(guarantee: privacy.Guarantee, share: float, squares: int) -> float:
    """Return the eps of a release that costs a share of the budget.

    Its square is so many times its rho: 8 for a draw of bounded range, 2 for a pure release.
    """
    if isinstance(guarantee, privacy.ZCDP):
        return math.sqrt(squares * share * guarantee.rho) * ROUND_DOWN
    return share * guarantee.eps * ROUND_DOWN


def _group(
    ranks: Scalars, plan: QuantilePlan, n_rows: float, entropy: Entropy
) -> tuple[Floats, Floats]:
    """Draw the quantiles of one group; return them with the probabilities they are drawn at."""
    facts = plan.facts
    places, drawn_probs = (np.full(len(facts.probs), math.nan) for _ in range(2))
    for i, prob in enumerate(facts.probs):
        drawn_probs[i] = Drawing(prob, facts.grid.cells, n_rows).middle(plan.middle[i])
        if not math.isnan(drawn_probs[i]):
            cell = draw_cell(
                ranks, _drawn_fraction(prob, float(drawn_probs[i])), plan.middle[i], entropy
            )
            at = np.array([cell])
            places[i] = facts.grid.within(at, at + 1, np.array([0.5]))[0]
    return places, drawn_probs


def _drawn_fraction(prob: float, drawn_prob: float) -> Fraction:
    """Return the requested probability, or the adjusted one rounded towards 1/2."""
    if drawn_prob == prob:
        return Fraction(repr(prob))
    towards = math.ceil if drawn_prob < 0.5 else math.floor
    return Fraction(towards(drawn_prob * RANK_STEPS), RANK_STEPS)


# Draws by rank errors, and at which ranks, so that noise leaves quantiles among the rows.

# Products of ranks below are machine integers.
MACHINE = 2**62
# A count is detected if it exceeds this many of its noise sds: a choice.
DETECTED = 4.0
# Weight of the empty range in cells at the quantile, at most: where a rank is moved to, since
# rows are in many cells as a rule; and where there is a quantile at all, were they in one. Choices.
NEAR, MISSED = 16.0, 0.05


@dataclass(frozen=True)
class Drawing:
    """Public terms of the draws for one quantile of one group.

    A draw falls a rank error of 1/c rows away, c its concentration, where rows are; but cells
    without rows above the largest or below the smallest all have one rank error and may be nearly
    all of the grid. They weigh less than m cells at the quantile where the rank wanted is
    ``log(grid/m) / c`` rows from their end.
    """

    prob: float  # The quantile, from 0 to 1
    grid: int  # Cells of the grid
    rows: float  # Released number of the group's rows, above 0

    def reach(self, concentration: float, weight: float) -> float:
        """Return how far from the end of the rows a rank has to be, as a share of them."""
        # Half a row more, so that the first and the last are met without noise.
        return (max(math.log(self.grid / weight), 0.0) / concentration + 0.5) / self.rows

    def middle(self, concentration: float) -> float:
        """Return the probability to draw the quantile at; nan if there are too few rows."""
        if self.reach(concentration, MISSED) > 0.5:
            return math.nan
        reach = self.reach(concentration, NEAR)
        return min(max(self.prob, reach), 1 - reach)


def draw_cell(ranks: Scalars, prob: Fraction, concentration: float, entropy: Entropy) -> int:
    """Draw a cell of the grid by the rank errors of all.

    `ranks`, shape (cells + 1,), are the rows below each cell's lower end, last all rows; the
    concentration is by row.
    """
    unit = Fraction(concentration) / prob.denominator
    return draw_finite(rank_errors(ranks, prob), unit, entropy)


def rank_errors(ranks: Scalars, prob: Fraction) -> Scalars:
    """Return how far the wanted rank is from those of each cell, times the denominator of prob."""
    n_rows = int(ranks[-1])
    wide = n_rows * prob.denominator < MACHINE
    scaled = (ranks if wide else ranks.astype(object)) * prob.denominator
    target = prob.numerator * n_rows
    return np.asarray(np.maximum(np.maximum(scaled[:-1] - target, target - scaled[1:]), 0))
