"""A release of moments, then the squares of the scores at the least squares that follow from it.

Theorem
    The moments are released by a mechanism of its own, with what the rest of the budget leaves;
    then the squares of the scores by a Gaussian mechanism, or a Laplace one where the moments have
    Laplace noise, given what the moments said. Multipliers are fixed beforehand: together they
    satisfy (ε, δ) with the exact trade-off of one Gaussian mechanism, ρ-zCDP, or ε.
Sensitivity
    A row adds the square of an integer vector of norm at most ``2**bits``, which depends on that
    row and released values alone. In isometric coordinates it is at most 1 long in units of the
    squared norm; two rows' are at most √2 apart, as the inner product of two squares is not
    negative. In absolute values on and above the diagonal it adds at most (p + 1)/2 for p
    parameters, and two rows' are at most twice that apart. Of persons the scores are summed before
    they are held: a person adds one such square however many its rows are, and neighbours in a
    person are as far apart as those in a row. Events are in units of a row, of which a person has
    k: the noise is 1/k of what the event says of a row, so that its multiplier for a person, 1/k of
    that for a row, is that of this noise.
Noise
    Independent discrete Gaussians, of variance s² on the diagonal and s²/2 off it, or discrete
    Laplace noise of one scale, of a twentieth of the budget.
Numerics
    exact: integer statistic, integer noise of exact law; of the moments as their mechanism's.
Source
    White (1980), "A heteroskedasticity-consistent covariance matrix estimator and a direct test for
    heteroskedasticity", Econometrica. Coordinates and clipping: this package. A score
    ``x (y - xβ)`` is measured by a root of Ω, the covariance that the sum of scores would have if
    all residuals had one variance, with the noise of the moments in it. In these units every
    coefficient has the variance 1, and the noise of the squares is the same part of each. A score
    is kept whole while its square is at most :data:`LONGER` times the mean one, or until that part
    is a tenth, or three of Laplace noise, and twice that where there is nothing but sampling: where
    moments are noisy a longer score hardly matters, and with more rows it may be longer. Of persons
    with k places the sampling in Ω is ``k^¾`` times as much: between rows that have nothing to do
    with each other and rows that are all alike, which is k times, and nearer to the latter.
    Liang and Zeger (1986), "Longitudinal data analysis using generalized linear models",
    Biometrika, for sums by person.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace

import numpy as np

from dpmodels.arguments import between, option
from dpmodels.design import Scaling
from dpmodels.errors import ArgumentError
from dpmodels.formula.coding import constant_combination
from dpmodels.mechanisms import add_noise
from dpmodels.mechanisms.add_noise import noised_symmetric
from dpmodels.mechanisms.measures import OfBase, OfPasses
from dpmodels.mechanisms.protocol import CovarianceMechanism, Facts, Plan
from dpmodels.mechanisms.regression.ellipsoid import rows_within
from dpmodels.noise import Entropy
from dpmodels.noise.lattice import Lattice, choose_lattice
from dpmodels.postprocess.normal_equations import NormalEquations, estimate, released_equations
from dpmodels.postprocess.small_samples import Layout
from dpmodels.privacy import ZCDP, Event, GaussianEvent, Guarantee, LaplaceEvent, PureDP
from dpmodels.released import Ball, Meat, MomentsRelease
from dpmodels.statistics import Passes, Statistic
from dpmodels.statistics.passes import Score, person_score_squares, score_squares
from dpmodels.statistics.statistic import measured_as
from dpmodels.typing import Floats

# Choices: the least and the most that the noise of the squares makes up of a variance, and the
# square of the longest score in units of the mean one. Of Laplace noise there is so much more that
# a smaller part would cut more than it saves; sums of rows have fewer that are very long.
LEAST, LONGER = 0.03, {"HC": 200.0, "cluster": 100.0}
MOST = {add_noise.GAUSSIAN: 0.1, add_noise.LAPLACE: 0.3}
# Of the largest eigenvalue of Ω: less cannot be distinguished from 0.
_RESOLVED = 1e-13
SQUARES = "squares of scores"
# A choice: what of the most that rows of a person may add to a variance is taken for ordinary.
ALIKE = 0.75


NOBODY = (
    'vcov="cluster" sums scores by person: write person="id" with the name of the column that says '
    'whose a row is, or vcov="HC"'
)


@dataclass(frozen=True)
class RobustCovariance(OfBase, OfPasses):
    """Moments, and the filling of the sandwich for least squares of the last column."""

    base: CovarianceMechanism  # Releases the moments, with noise of a known law
    intercept: bool = True
    # Public facts about products of columns, which the equations satisfy.
    layout: Layout | None = field(default=None, repr=False, compare=False)
    share: float = 0.05  # The part of the budget that buys the squares of the scores
    # "HC", squares of the scores of rows, White's; or "cluster", of persons, Liang's and Zeger's.
    vcov: str = "HC"

    def __post_init__(self) -> None:
        between("share", self.share, 0.001, 0.9, ", such as 0.05")
        option("vcov", self.vcov, ("HC", "cluster"))

    def plan(self, facts: Facts, guarantee: Guarantee) -> Plan:
        """Divide the budget. BudgetError as of the base, or if no useful lattice is left."""
        rest, event = self._divided(facts, guarantee)
        base_plan = self.base.plan(facts, rest)
        size, replaced = facts.columns - 1 + self.intercept, facts.adjacency.n_public
        multiplier = event.multiplier / self._places(facts)
        if isinstance(event, LaplaceEvent):
            scale = multiplier * (size + 1) / 2 * (1 + replaced) * add_noise.ROUND_UP
        else:
            scale = multiplier * math.sqrt(1 + replaced) * add_noise.ROUND_UP
        _lattice(size, scale, event)
        events, scales = (*base_plan.events, event), {**base_plan.scales, SQUARES: scale}
        return replace(base_plan, guarantee=guarantee, events=events, scales=scales)

    def release(self, statistic: Statistic, plan: Plan, entropy: Entropy) -> MomentsRelease:
        """Release the moments, then the squares of the scores."""
        statistic = measured_as(Passes, statistic, "moments")
        release = self.base.release(statistic, plan, entropy)
        return replace(release, meat=self._squares(statistic, release, plan, entropy))

    def _places(self, facts: Facts) -> int:
        """Return the number of rows per score; ArgumentError if there are no persons."""
        if self.vcov == "HC":
            return 1
        if facts.adjacency.person is None:
            raise ArgumentError(NOBODY)
        return facts.adjacency.places

    def _divided(
        self, facts: Facts, guarantee: Guarantee
    ) -> tuple[Guarantee, GaussianEvent | LaplaceEvent]:
        """Return what the moments are to satisfy, and the event of the rest."""
        if isinstance(self.base.plan(facts, guarantee).events[0], LaplaceEvent):
            pure = guarantee if isinstance(guarantee, ZCDP) else PureDP(guarantee.eps)
            rest, (event,) = add_noise.divided_laplace(pure, self.share)
            return rest, event
        return add_noise.divided_gaussian(guarantee, self.share)

    def _squares(
        self, passes: Passes, release: MomentsRelease, plan: Plan, entropy: Entropy
    ) -> Meat:
        event, scale, places = plan.events[-1], plan.scales[SQUARES], self._places(plan.facts)
        law = add_noise.event_law(event)
        # Off the diagonal Laplace noise is no quieter: along a direction it is at most √2 of that.
        widest = law.sd * (math.sqrt(2) if law is add_noise.LAPLACE else 1.0)
        clipped, transform = _clipped_passes(passes, release.ball)
        equations, theta = solved(release, passes, self.layout, intercept=self.intercept)
        axes, lengths, sampled = whitening(equations, theta, places)
        units = np.full(len(transform) + 1, _radius(release, passes.scaling))
        units[0] = 1.0
        regressors = ((axes / lengths).T @ equations.regressors.T) * units
        score = Score(regressors, equations.residual(theta) * units, transform)
        max_part = MOST[law] * (1 + sampled / len(lengths))
        mean = sampled / max(float(equations.moments[0, 0]) / places, 1.0)
        part = min(max(LONGER[self.vcov] * mean * widest * scale, LEAST), max_part)
        # Of the scores of rows of the ball.
        farthest = 2 * float(np.linalg.norm(score.regressors, 2) * np.linalg.norm(score.residual))
        longest = min(math.sqrt(part / (widest * scale)), places * farthest)
        finer = _lattice(len(lengths), scale, event)
        scaled_score = score._replace(regressors=regressors * (places / longest))
        if self.vcov == "HC":
            statistic = clipped.measured(score_squares, scaled_score, finer)
        else:
            statistic = clipped.measured(person_score_squares, scaled_score, finer, places)
        exact, _ = statistic.cross()
        steps = max(scale * finer.radius**2, add_noise.SMALLEST_SCALE)
        off = steps / law.diagonal
        unit = (longest / finer.steps) ** 2
        squares = noised_symmetric(exact, steps, off, entropy, law) * unit
        person = plan.facts.adjacency.person if self.vcov == "cluster" else None
        noise_sd = widest * steps * unit
        return Meat(squares, axes * lengths, noise_sd, longest**2, self.share, person)


def solved(
    release: MomentsRelease, passes: Passes, layout: Layout | None, *, intercept: bool
) -> tuple[NormalEquations, Floats]:
    """Return the equations as released, and the estimate that a result shows."""
    public = passes.scaling
    ball, row_norm = release.ball, _radius(release, public)
    centre = public.centre if ball is None else ball.centre
    equations = released_equations(
        release,
        row_norm=row_norm,
        shift=None if intercept else centre / public.scale,
        layout=layout,
        constant=not intercept and constant_combination(passes.blocks[:-1]) is not None,
    )
    return equations, estimate(equations, release, row_norm)


def whitening(
    equations: NormalEquations, theta: Floats, places: int
) -> tuple[Floats, Floats, float]:
    """Return axes and lengths of a root of Ω, and the trace of sampling in its units."""
    noise, sampling = _covariances(equations, theta)
    sampling = sampling * places**ALIKE
    values, axes = np.linalg.eigh(noise + sampling)
    lengths = np.sqrt(np.maximum(values, max(_RESOLVED * values[-1], 1e-300)))
    sampled = float(np.einsum("ij,ik,kj->", axes / lengths, sampling, axes / lengths))
    return axes, lengths, sampled


def _radius(release: MomentsRelease, public: Scaling) -> float:
    return public.row_norm if release.ball is None else release.ball.radius


def _clipped_passes(passes: Passes, ball: Ball | None) -> tuple[Passes, Floats]:
    """Return passes over the rows clipped as in a release, and the transform of them."""
    columns = np.eye(passes.scaling.centre.size)
    if ball is None:
        return passes, columns
    if ball.axes is None:
        scaling = replace(passes.scaling, centre=ball.centre, row_norm=ball.radius)
        return passes.rescaled(scaling), columns
    return rows_within(passes, ball)


def _covariances(equations: NormalEquations, theta: Floats) -> tuple[Floats, Floats]:
    """Return that of noise and added rows in a score, and of sampling if variances were equal.

    Their sum is Ω.
    """
    values, axes = np.linalg.eigh(equations.gram)
    gram = (axes * np.maximum(values, 0.0)) @ axes.T
    freedom = max(float(equations.moments[0, 0]) - len(theta), 1.0)
    variance = max(equations.squares_left(theta)[0], 0.0) / freedom
    return equations.noise_in_score(theta) + equations.pull, np.asarray(variance * gram)


def _lattice(columns: int, scale: float, event: Event) -> Lattice:
    return choose_lattice(columns, scale * add_noise.event_law(event).room)
