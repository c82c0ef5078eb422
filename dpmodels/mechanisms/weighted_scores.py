"""Rows of capped weights, then one step by scores of all weights, clipped by unit.

Theorem
    Moments of rows that count by capped weights, or coefficients with the curvature at a point near
    them, are released by a mechanism of its own; given them the numbers of units by the length of
    their score, and given these the sum and the squares of the scores, each clipped to a length.
    Multipliers are fixed beforehand: together they satisfy (ε, δ) with the exact trade-off of one
    Gaussian mechanism, ρ-zCDP, or ε (docs/theory.md, Theorems 83, 86, 97, 105 and 107).
Sensitivity
    A unit (a row, or all rows of a sampling unit) is in one cell of length: √2 where it is
    replaced, 1 where it is added or removed; 2 and 1 in absolute values. It adds the square of one
    integer vector: marks of lengths a, and b for its stratum, and its clipped score. The square is
    at most ``1 + a² + b²`` long, √2 times that apart for two units; in absolute values on and above
    the diagonal half of ``(√p + a + b)² + 1 + a² + b²`` for p parameters, and twice that. Events
    are in units of a place, of which a unit has k: the noise is 1/k of what they say of a place.
    Of moments, coefficients and curvature, those of their mechanism.
Noise
    Independent discrete Gaussians, of variance s² on the diagonal and s²/2 off it, or discrete
    Laplace noise of one scale.
Numerics
    exact: integer statistics, integer noise; of moments and coefficients as their mechanism. Scores
    are sums of integers by unit, each of a row a correctly rounded product of two numbers that
    follow from released values and that row alone; the cell of a length is a floating-point
    function of one unit.
Source
    One step from a consistent estimate: Le Cam (1956); van der Vaart (1998), "Asymptotic
    Statistics", 5.7. Linearised errors: Binder (1983), "On the variances of asymptotically normal
    estimators from complex surveys", International Statistical Review 51. Clipping and budget: this
    package. Noise of moments grows with the largest weight times the longest row times the largest
    residual, that of clipped scores with what such products are in a sample.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import ClassVar, Final, TypeVar

import numpy as np

from dpmodels.design import PrivateDesign, Scaling
from dpmodels.mechanisms import add_noise
from dpmodels.mechanisms.measures import OfBase, OfPasses
from dpmodels.mechanisms.protocol import (
    CovarianceMechanism,
    Facts,
    Plan,
    RegressionFacts,
    RegressionMechanism,
    RegressionPlan,
    as_gradients,
)
from dpmodels.mechanisms.regression.objective import Objective
from dpmodels.mechanisms.regression.rate_scores import RateScores
from dpmodels.mechanisms.robust_covariance import ALIKE, SQUARES, solved, whitening
from dpmodels.noise import Entropy
from dpmodels.noise.lattice import FINE_BITS, Lattice, choose_lattice
from dpmodels.postprocess.ranges import CellNoise
from dpmodels.postprocess.small_samples import Layout
from dpmodels.postprocess.unit_scores import first_point, newton_step
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
from dpmodels.released import (
    Ball,
    BoughtCurvature,
    CoefficientsRelease,
    Meat,
    MomentNoise,
    MomentsRelease,
    ScoreCap,
    UnitCap,
    UnitScores,
)
from dpmodels.statistics import Passes, Statistic
from dpmodels.statistics.gradient import GradientScore
from dpmodels.statistics.losses import Logistic, Multinomial, Poisson, Predictors
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
# Noise below this, in squares of a score, is less than rounding to the usual lattice.
FAINT: Final = 2.0**-24
ROUNDS: Final = "rounds of faint scores"
# The change of linear predictors over which differences of scores are a curvature: a choice.
BESIDE: Final = 1e-4
# Ends of cells of lengths, in units of what is expected of a score.
ENDS: Final = 2.0 ** (np.arange(-8, 13) / 2)

# Where weights depend on the response the longest scores are of large weights, and mostly have one
# sign: a choice, above what least squares take.
ALIGNED_RESIDUALS: Final = 1.0
# What is left of all weight within a cap, at the least, where noise hides it: a choice.
LEAST_WITHIN: Final = 0.1
# Times the largest response, above any residual: an expected response is at most e times that.
UNCLIPPED: Final = 3.0

Events = tuple[GaussianEvent, GaussianEvent] | tuple[LaplaceEvent, LaplaceEvent]


@dataclass(frozen=True)
class WeightedScores(OfBase, OfPasses):
    """Moments of capped weights, then sums and squares of the clipped scores of units."""

    base: CovarianceMechanism  # What releases the moments, with noise of a known law
    intercept: bool = True
    # Public facts about products of columns, which the equations satisfy.
    layout: Layout | None = field(default=None, repr=False, compare=False)
    levels: int = 0  # The number of strata whose sums are released too
    n_units: int | None = None  # As of `ScoreNoise`

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
        equations, theta = solved(release, passes, self.layout, intercept=self.intercept)
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
            _in_lengths(to_rows, release.ball),
        )
        noise = self._noise(plan.facts)
        passes = passes.on(noise.lattice_of_rows(plan.lattice, plan))
        exact = passes.measured(ExactScores, score, adjacency.places)
        scores = measured_as(ExactScores, exact, "scores")
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
    faint_rounds: int = 1  # How often scores are released where there is almost no noise
    is_bounded: bool = False  # Whether residuals are at most 1

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
        rest, parts = _divided(guarantee, shares, is_pure=is_pure)
        base_plan: P = planned(rest)
        replaced, n_places = adjacency.n_public, adjacency.places
        square = 1 + math.fsum(mark**2 for mark in self.marks)
        if isinstance(parts[0], LaplaceEvent):
            absolute = (math.sqrt(self.size) + math.fsum(self.marks)) ** 2
            cell, length = 1.0 + replaced, (absolute + square) / 2 * (1 + replaced)
        else:
            cell, length = math.sqrt(1 + replaced), square * math.sqrt(1 + replaced)
        scales, rounds = dict(base_plan.scales), 1
        if parts[1].multiplier / n_places * length < FAINT:
            rounds = self.faint_rounds
            parts = _of_each(parts, rounds)
            scales[ROUNDS] = float(rounds)
        lengths, squares = parts
        scales[LENGTHS] = lengths.multiplier / n_places * cell * add_noise.ROUND_UP
        scales[SQUARES] = squares.multiplier / n_places * length * add_noise.ROUND_UP
        events = base_plan.events + parts * rounds
        plan = replace(base_plan, guarantee=guarantee, events=events, scales=scales)
        self._lattice(plan)
        return plan

    def noised(
        self, exact: ExactScores, strata: ScoreCap, plan: Plan | RegressionPlan, entropy: Entropy
    ) -> Meat:
        """Release how long scores are, then sums and squares of those clipped."""
        law = add_noise.event_law(plan.events[-1])
        finer, n_marks = self._lattice(plan), 1 + self.levels
        factors = strata.factors or (1.0,)
        least = math.sqrt(min(factors) / max(factors))
        steps = max(plan.scales[SQUARES] * finer.radius**2, add_noise.SMALLEST_SCALE)
        off = steps / law.diagonal
        sizes = [math.floor(mark * finer.radius) for mark in self.marks]
        # Of a sum of scores that are at most 1 long.
        sum_sd = law.sd * off / finer.steps / (sizes[0] * least)
        counts, scale = add_noise.noised_rows(
            exact.by_length(ENDS), plan.scales[LENGTHS], entropy, law
        )
        noise = CellNoise("laplace" if law is add_noise.LAPLACE else "gaussian", law.sd * scale)
        # What is cut off a logit may all have one direction, and stands beside the noise in it.
        price = sum_sd * (1.0 if self.is_bounded else math.sqrt(finer.columns))
        longest, cut = longest_score(
            ENDS, counts, noise, price, self.aligned, with_hidden=self.is_bounded
        )
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
        """Return the lattice of the scores."""
        scale = plan.scales[SQUARES] * add_noise.event_law(plan.events[-1]).room
        return self.lattice_of_rows(choose_lattice(self.size, scale), plan)

    def lattice_of_rows(self, lattice: Lattice, plan: Plan | RegressionPlan) -> Lattice:
        """Return a lattice, or a finer one where there is almost no noise."""
        return replace(lattice, bits=FINE_BITS) if ROUNDS in plan.scales else lattice

    def _shares(
        self, adjacency: Adjacency, guarantee: Guarantee, *, is_pure: bool
    ) -> tuple[float, float]:
        """Return the parts of the budget for lengths and for scores."""
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


def _of_each(parts: Events, rounds: int) -> Events:
    """Return the events of each of so many rounds, which together cost what the parts do."""
    first, second = (part.multiplier * add_noise.ROUND_UP for part in parts)
    if isinstance(parts[0], LaplaceEvent):
        return LaplaceEvent(first * rounds), LaplaceEvent(second * rounds)
    root = math.sqrt(rounds)
    return GaussianEvent(first * root), GaussianEvent(second * root)


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


def _in_lengths(to_rows: Floats, ball: Ball | None) -> Floats | None:
    """Return the terms (1, z) of rows in units of the longest that moments leave whole.

    None but about a line: scores are of whole rows then (docs/theory.md, Theorem 101).
    """
    if ball is None or math.isnan(ball.rows):
        return None
    return np.asarray(to_rows[:-1] * (math.sqrt(2) / ball.radius))


@dataclass(frozen=True)
class WeightedGradients(OfBase):
    """Coefficients of capped weights, then sums and squares of the clipped scores of units."""

    base: RegressionMechanism  # What releases coefficients with their curvature
    levels: int = 0  # The number of strata whose sums are released too

    passes: ClassVar[str] = "many"

    def plan(self, facts: RegressionFacts, guarantee: Guarantee) -> RegressionPlan:
        """Divide the budget. BudgetError as of the base, or if no useful lattice is left."""
        return self._noise(facts).plan(partial(self.base.plan, facts), facts.adjacency, guarantee)

    def measure(self, design: PrivateDesign, plan: RegressionPlan) -> Statistic:
        """Prepare to read the rows several times."""
        return self.base.measure(design, plan)

    def release(
        self, statistic: Statistic, plan: RegressionPlan, entropy: Entropy
    ) -> CoefficientsRelease:
        """Release coefficients of capped weights."""
        return self.base.release(statistic, plan, entropy)

    def step(
        self,
        statistic: Statistic,
        release: CoefficientsRelease,
        cap: UnitCap,
        plan: RegressionPlan,
        entropy: Entropy,
        n_units: float,
    ) -> CoefficientsRelease:
        """Release lengths, sums and squares of scores where the curvature of a release leads.

        The rows of `statistic` count by weights up to ``cap.scores.cap``; `n_units` is the noisy
        number of units. Beside almost no noise a log-linear model has two steps before that, and
        the curvature is that of scores on both sides of the last point.
        """
        gradients, strata = as_gradients(statistic), cap.scores
        adjacency, noise = plan.facts.adjacency, self._noise(plan.facts)
        places, bought, is_faint = adjacency.places, release.curvature, ROUNDS in plan.scales
        assert strata is not None
        assert bought is not None
        axes, lengths = _whitening(bought, places)
        # Expected of a score; weights count in units of a larger cap than those of the curvature.
        expected = math.sqrt(len(lengths) / n_units) * cap.cap / strata.cap
        lattice = noise.lattice_of_rows(gradients.lattice, plan)
        predictors = replace(plan.facts.predictors, bits=lattice.bits)
        predictors = _of_counted_rows(release, gradients.scaling, predictors)
        (design,), loss = gradients.designs, _unclipped(plan.facts)
        regressors = (axes / lengths).T * (places / expected)

        def meat_at(point: Floats) -> Meat:
            score = GradientScore(regressors, point, predictors, loss)
            exact = ExactScores(design, lattice, score, places)
            meat = noise.noised(exact, strata, plan, entropy)
            # In units of their mean square, so that every coefficient has a variance of about 1. Of
            # the curvature the part beyond its cap is missing.
            mean = math.sqrt(max(float(np.trace(meat.squares)) / len(lengths), meat.sd))
            unit = mean * strata.cap / cap.cap * max(1 - cap.beyond, LEAST_WITHIN)
            root = axes * lengths * (expected * unit)
            return replace(in_units(meat, 1 / mean), root=root, person=adjacency.person)

        for _ in range(_steps(plan.facts) if is_faint else 1):
            release = _moved(release)
            release = replace(release, meat=meat_at(first_point(release)))
        return _with_curvature(release, meat_at) if is_faint else release

    def _noise(self, facts: RegressionFacts) -> ScoreNoise:
        rounds = _steps(facts) + 2 * facts.columns
        is_bounded = isinstance(facts.loss, Logistic)
        return ScoreNoise(
            facts.columns,
            self.levels,
            ALIGNED_RESIDUALS,
            faint_rounds=rounds,
            is_bounded=is_bounded,
        )


def with_step(
    base: RegressionMechanism, facts: RegressionFacts, levels: int
) -> RegressionMechanism | WeightedGradients:
    """Return a mechanism with a step to all weights; as it is if it releases no curvature."""
    if isinstance(facts.loss, Multinomial) or not getattr(base, "inference", False):
        return base
    if isinstance(base, Objective | RateScores):
        base = replace(base, at_end=True)
    return WeightedGradients(base, levels=levels)


def _steps(facts: RegressionFacts) -> int:
    """Return how many steps lead to the estimate where there is almost no noise."""
    return 2 + isinstance(facts.loss, Poisson)


def _with_curvature(
    release: CoefficientsRelease, meat_at: Callable[[Floats], Meat]
) -> CoefficientsRelease:
    """Return a release with the curvature that differences of scores beside its point have."""
    bought, point = release.curvature, first_point(release)
    assert bought is not None
    rows = float(np.trace(bought.bread))
    lengths = BESIDE * np.sqrt(rows / np.maximum(np.diagonal(bought.bread), FAINT * rows))
    columns, sds = [], []
    for step, length in zip(np.diag(lengths), lengths.tolist(), strict=True):
        below, above = (meat_at(point + sign * step) for sign in (-1, 1))
        assert below.units is not None
        assert above.units is not None
        change = below.root @ below.units.summed - above.root @ above.units.summed
        columns.append(change / (2 * length))
        sd = math.hypot(below.units.summed_sd, above.units.summed_sd)
        largest = max(float(np.linalg.norm(side.root, 2)) for side in (below, above))
        sds.append(largest * sd / (2 * length))
    curvature, law = np.stack(columns), MomentNoise(math.nan, math.nan, max(sds), max(sds))
    bread = (curvature + curvature.T) / 2
    return replace(release, curvature=replace(bought, bread=bread, bread_noise=law))


def _moved(release: CoefficientsRelease) -> CoefficientsRelease:
    """Return a release at the end of a step by its scores; as it is before it has any."""
    bought, meat = release.curvature, release.meat
    assert bought is not None
    if meat is None or meat.units is None:
        return release
    step = newton_step(bought.bread, bought.bread_noise, -meat.root @ meat.units.summed)
    point = first_point(release) + step
    if bought.end is not None:
        return replace(release, curvature=replace(bought, end=point))
    return replace(release, coefficients=point, gradient=np.zeros_like(step))


def _whitening(bought: BoughtCurvature, places: int) -> tuple[Floats, Floats]:
    """Return axes and lengths of a root of the scores' covariance, by the curvature.

    Along directions where noise hides the curvature it counts as that noise.
    """
    values, axes = np.linalg.eigh(bought.bread)
    hidden = 2 * bought.bread_noise.off * math.sqrt(len(values))
    least = max(hidden, 1e-13 * float(values[-1]), 1e-300)
    return axes, np.sqrt(np.maximum(values, least) * places**ALIKE)


def _of_counted_rows(
    release: CoefficientsRelease, public: Scaling, predictors: Predictors
) -> Predictors:
    """Return the predictors of the rows that the curvature counts (docs/theory.md, Theorem 105)."""
    ball = release.ball
    if ball is None:
        return predictors
    terms, norm = slice(predictors.terms), public.row_norm
    # In shares of the codebook's ball.
    centre = (ball.centre - public.centre[terms]) / (norm * public.scale[terms])
    if ball.axes is None:
        return predictors.within(centre, ball.radius / norm)
    axes = np.asarray(np.linalg.inv(ball.axes / norm), dtype=np.float64)
    return predictors.within(centre, ball.radius, axes)


def _unclipped(facts: RegressionFacts) -> Logistic | Poisson:
    """Return the loss of rows whose residuals are not clipped."""
    if isinstance(facts.loss, Poisson):
        return replace(facts.loss, clip=UNCLIPPED * facts.loss.upper)
    assert isinstance(facts.loss, Logistic)
    return facts.loss
