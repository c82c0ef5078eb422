"""A regression on capped weights, then one step by scores of all weights, clipped by unit.

Theorem
    Moments of rows that count by capped weights are released by a mechanism of its own; given them
    the numbers of units by the length of their score, and given these the sum and the squares of
    the scores, each clipped to a length. Multipliers are fixed beforehand: together they satisfy
    (ε, δ) with the exact trade-off of one Gaussian mechanism, ρ-zCDP, or ε (docs/theory.md, Theorem
    83).
Sensitivity
    A unit (a row, or all rows of a sampling unit) is in one cell of length: √2 where it is
    replaced, 1 where it is added or removed; 2 and 1 in absolute values. It adds the square of one
    integer vector: marks of lengths a, and b for its stratum, and its clipped score. The square is
    at most ``1 + a² + b²`` long, √2 times that apart for two units; in absolute values on and above
    the diagonal half of ``(√p + a + b)² + 1 + a² + b²`` for p parameters, and twice that. Events
    are in units of a place, of which a unit has k: the noise is 1/k of what they say of a place.
Noise
    Independent discrete Gaussians, of variance s² on the diagonal and s²/2 off it, or discrete
    Laplace noise of one scale.
Numerics
    exact: integer statistics, integer noise; of the moments as their mechanism. Scores are sums of
    integers by unit; the cell of a length is a floating-point function of one unit.
Source
    One step from a consistent estimate: Le Cam (1956); van der Vaart (1998), "Asymptotic
    Statistics", 5.7. Clipping and budget: this package. Noise of moments grows with the largest
    weight times the longest row times the largest residual, that of clipped scores with what such
    products are in a sample.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Final, TypeVar

import numpy as np

from dpmodels.design import Scaling
from dpmodels.mechanisms import add_noise
from dpmodels.mechanisms.measures import OfBase, OfPasses
from dpmodels.mechanisms.protocol import CovarianceMechanism, Facts, Plan, RegressionPlan
from dpmodels.mechanisms.robust_covariance import SQUARES, solved, whitening
from dpmodels.noise import Entropy
from dpmodels.noise.lattice import Lattice, choose_lattice
from dpmodels.postprocess.ranges import CellNoise
from dpmodels.postprocess.small_samples import Layout
from dpmodels.postprocess.weight_caps import ALIGNED, longest_score
from dpmodels.privacy import (
    ZCDP,
    Adjacency,
    GaussianEvent,
    Guarantee,
    LaplaceEvent,
    PureDP,
    PureEvent,
    gaussian_multiplier,
)
from dpmodels.released import Meat, MomentsRelease, ScoreCap, UnitCap, UnitScores
from dpmodels.statistics import Passes, Statistic
from dpmodels.statistics.passes import Score
from dpmodels.statistics.score_moments import UnitScores as ExactScores
from dpmodels.statistics.statistic import measured_as
from dpmodels.typing import Floats

LENGTHS: Final = "units by length of score"
# Of the budget, for lengths and for scores where moments need the rest: choices by simulation.
SHARES: Final = (0.06, 0.5)
# What moments need of a budget of rho, times the public number of units, and the least part of it:
# the first line may then be a few sampling errors away, which a step leads back from. Choices.
ENOUGH, LEAST_MOMENTS = 130.0, 0.2
# Lengths of marks beside a score of length 1: the first makes the noise of the sum least.
MARKS: Final = (1.0, 0.25)
# Part of the variance of scores that sampling is not taken for less than: a choice.
LEAST_SAMPLED: Final = 0.03
# Ends of cells of lengths, in units of what is expected of a score.
ENDS: Final = 2.0 ** (np.arange(-8, 13) / 2)

Events = tuple[GaussianEvent, GaussianEvent] | tuple[LaplaceEvent, LaplaceEvent]


@dataclass(frozen=True)
class WeightedScores(OfBase, OfPasses):
    """Moments of capped weights, then sums and squares of the clipped scores of units.

    Parameters
    ----------
    base : CovarianceMechanism
        What releases the moments, with noise of a known law.
    intercept : bool
        Whether the model has a constant.
    layout : Layout or None
        Public facts about products of columns, which the equations satisfy.
    levels : int
        The number of strata whose sums are released too, 0 for none.
    n_units : int or None
        The number of units, where it is public before rows are read: of many, scores get more of a
        budget with Gaussian noise.
    """

    base: CovarianceMechanism
    intercept: bool = True
    layout: Layout | None = field(default=None, repr=False, compare=False)
    levels: int = 0
    n_units: int | None = None

    def plan(self, facts: Facts, guarantee: Guarantee) -> Plan:
        """Divide the budget. BudgetError as of the base, or if no useful lattice is left."""
        return self._noise(facts).plan(partial(self.base.plan, facts), facts.adjacency, guarantee)

    def release(self, statistic: Statistic, plan: Plan, entropy: Entropy) -> MomentsRelease:
        """Release the moments of capped weights."""
        return self.base.release(statistic, plan, entropy)

    def step(
        self,
        statistic: Statistic,
        release: MomentsRelease,
        cap: UnitCap,
        plan: Plan,
        entropy: Entropy,
        n_units: float,
    ) -> MomentsRelease:
        """Release lengths, sums and squares of scores at the estimate that moments give.

        The rows of `statistic` count by weights up to ``cap.scores.cap``; `n_units` is the noisy
        number of units.
        """
        passes = measured_as(Passes, statistic, "moments")
        strata, adjacency = cap.scores, plan.facts.adjacency
        assert strata is not None
        equations, theta = solved(release, passes.scaling, self.layout, intercept=self.intercept)
        axes, lengths, sampled = whitening(equations, theta, adjacency.places)
        # Expected of a score; weights count in units of a larger cap than those of the moments.
        n_units = max(float(equations.moments[0, 0]) / adjacency.places, 1.0)
        expected = max(sampled, LEAST_SAMPLED * len(lengths)) / n_units
        unit = math.sqrt(expected) * cap.cap / strata.cap
        to_rows = _rows_of(release, passes.scaling)
        score = Score(
            (axes / lengths).T @ equations.regressors.T @ to_rows * (adjacency.places / unit),
            equations.residual(theta) @ to_rows,
            np.eye(len(to_rows) - 1),
        )
        exact = passes.measured(ExactScores, score, adjacency.places)
        scores, noise = measured_as(ExactScores, exact, "scores"), self._noise(plan.facts)
        meat = noise.noised(scores, strata, plan, entropy)
        # In the units of the moments, from which the part beyond their cap is missing.
        meat = in_units(meat, unit * strata.cap / cap.cap * (1 - cap.beyond))
        meat = replace(meat, root=axes * lengths, person=adjacency.person)
        return replace(release, meat=meat)

    def _noise(self, facts: Facts) -> ScoreNoise:
        size = facts.columns - 1 + self.intercept
        return ScoreNoise(size, self.levels, n_units=self.n_units)


P = TypeVar("P", Plan, RegressionPlan)


@dataclass(frozen=True)
class ScoreNoise:
    """Noise of lengths, sums and squares of scores of so many parameters, by so many strata."""

    size: int
    levels: int
    aligned: float = ALIGNED  # The part of what is cut off scores that has one direction
    n_units: int | None = None  # Public: with many units scores get more of the budget

    @property
    def marks(self) -> tuple[float, ...]:
        """Lengths of the marks beside a score: of all units, and of the units of a stratum."""
        return MARKS if self.levels else MARKS[:1]

    def plan(
        self, planned: Callable[[Guarantee], P], adjacency: Adjacency, guarantee: Guarantee
    ) -> P:
        """Divide the budget between what is `planned` by a base and scores.

        BudgetError as of the base, or if no useful lattice is left.
        """
        is_pure = isinstance(planned(guarantee).events[0], LaplaceEvent | PureEvent)
        shares = self._shares(adjacency, guarantee, is_pure=is_pure)
        rest, (lengths, squares) = _divided(guarantee, shares, is_pure=is_pure)
        base_plan: P = planned(rest)
        replaced, n_places = adjacency.n_public, adjacency.places
        square = 1 + math.fsum(mark**2 for mark in self.marks)
        if isinstance(squares, LaplaceEvent):
            absolute = (math.sqrt(self.size) + math.fsum(self.marks)) ** 2
            cell, length = 1.0 + replaced, (absolute + square) / 2 * (1 + replaced)
        else:
            cell, length = math.sqrt(1 + replaced), square * math.sqrt(1 + replaced)
        scales = {
            **base_plan.scales,
            LENGTHS: lengths.multiplier / n_places * cell * add_noise.ROUND_UP,
            SQUARES: squares.multiplier / n_places * length * add_noise.ROUND_UP,
        }
        events = (*base_plan.events, lengths, squares)
        plan = replace(base_plan, guarantee=guarantee, events=events, scales=scales)
        self._lattice(plan)
        return plan

    def noised(
        self, exact: ExactScores, strata: ScoreCap, plan: Plan | RegressionPlan, entropy: Entropy
    ) -> Meat:
        """Release how long scores are, then sums and squares of those clipped."""
        law = add_noise.LAPLACE if isinstance(plan.events[-1], LaplaceEvent) else add_noise.GAUSSIAN
        finer, n_marks = self._lattice(plan), 1 + self.levels
        factors = np.array(strata.factors or (1.0,))
        least = math.sqrt(factors.min() / factors.max())
        steps = max(plan.scales[SQUARES] * finer.radius**2, add_noise.SMALLEST_SCALE)
        off = steps if law is add_noise.LAPLACE else steps / math.sqrt(2)
        sizes = [math.floor(mark * finer.radius) for mark in self.marks]
        # Of a sum of scores that are at most 1 long.
        sum_sd = law.sd * off / finer.steps / (sizes[0] * least)
        counts, scale = add_noise.noised_rows(
            exact.by_length(ENDS), plan.scales[LENGTHS], entropy, law
        )
        noise = CellNoise("laplace" if law is add_noise.LAPLACE else "gaussian", law.sd * scale)
        price = sum_sd * math.sqrt(finer.columns)
        longest, cut = longest_score(ENDS, counts, noise, price, self.aligned)
        integers = exact.squares(longest, finer, self.marks, least, self.levels)
        noisy, step = (
            add_noise.noised_symmetric(integers, steps, off, entropy, law),
            longest / finer.steps,
        )
        sums, squares = noisy[:n_marks, n_marks:] * step, noisy[n_marks:, n_marks:] * step**2
        units = UnitScores(sums[0] / (sizes[0] * least), summed_sd=sum_sd * longest, cut=cut)
        if self.levels:
            sd = law.sd * off * step / sizes[1]
            units = replace(units, by_stratum=sums[1:] / sizes[1], by_stratum_sd=sd)
        widest = law.sd * (math.sqrt(2) if law is add_noise.LAPLACE else 1.0)
        is_pure, adjacency = law is add_noise.LAPLACE, plan.facts.adjacency
        budget_part = math.fsum(self._shares(adjacency, plan.guarantee, is_pure=is_pure))
        sd = widest * steps * step**2
        return Meat(squares, np.eye(finer.columns), sd, longest**2, budget_part, units=units)

    def _lattice(self, plan: Plan | RegressionPlan) -> Lattice:
        is_laplace = isinstance(plan.events[-1], LaplaceEvent)
        scale = plan.scales[SQUARES] * (add_noise.ROOM if is_laplace else 1.0)
        return choose_lattice(self.size, scale)

    def _shares(
        self, adjacency: Adjacency, guarantee: Guarantee, *, is_pure: bool
    ) -> tuple[float, float]:
        for_lengths, for_scores = SHARES
        if is_pure or self.n_units is None:
            return SHARES
        rho = 0.5 * (adjacency.places / gaussian_multiplier(guarantee)) ** 2  # Of a unit
        needed = max(ENOUGH / max(rho * self.n_units, ENOUGH), LEAST_MOMENTS)
        return for_lengths, max(1 - for_lengths - needed, for_scores)


def _divided(
    guarantee: Guarantee, shares: tuple[float, float], *, is_pure: bool
) -> tuple[Guarantee, Events]:
    """Return what the base is to satisfy, and the events of lengths and of scores."""
    if is_pure:
        pure = guarantee if isinstance(guarantee, ZCDP) else PureDP(guarantee.eps)
        rest, (first, second) = add_noise.divided_laplace(pure, *shares)
        return rest, (first, second)
    rest_rho, event = add_noise.divided_gaussian(guarantee, math.fsum(shares))
    parts = [event.multiplier * math.sqrt(math.fsum(shares) / share) for share in shares]
    lengths, squares = (GaussianEvent(part * add_noise.ROUND_UP) for part in parts)
    return rest_rho, (lengths, squares)


def in_units(meat: Meat, unit: float) -> Meat:
    """Return scores in other units, of which `unit` are 1 of theirs."""
    scores, square = meat.units, unit**2
    assert scores is not None
    by_stratum = None if scores.by_stratum is None else scores.by_stratum * unit
    sums = replace(scores, summed=scores.summed * unit, by_stratum=by_stratum)
    sds = {name: getattr(scores, name) * unit for name in ("summed_sd", "by_stratum_sd", "cut")}
    squares = {name: getattr(meat, name) * square for name in ("squares", "sd", "most")}
    return replace(meat, **squares, units=replace(sums, **sds))


def _rows_of(release: MomentsRelease, public: Scaling) -> Floats:
    """Return the matrix from rows (1, u) of the codebook's ball to those of the equations.

    No row is clipped: all are in the codebook's ball.
    """
    ball, size = release.ball, len(public.centre)
    matrix = np.eye(size + 1)
    matrix[1:, 1:] *= public.row_norm
    if ball is None:
        return matrix
    matrix[1:, 0] = (public.centre - ball.centre) / public.scale
    if ball.axes is not None:
        matrix[1:] = np.linalg.solve(ball.axes, matrix[1:])
    return matrix
