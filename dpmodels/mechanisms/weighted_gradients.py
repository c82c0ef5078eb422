"""A generalised linear model of capped weights, then one step by scores of all weights.

Theorem
    Coefficients, and the curvature at a point near them, are released by a mechanism of its own, of
    rows that count by capped weights; given them numbers of units by the length of their score, and
    sum and squares of clipped scores, as in :mod:`dpmodels.mechanisms.weighted_scores`. Multipliers
    are fixed beforehand: together they satisfy (ε, δ) with the exact trade-off of one Gaussian
    mechanism, ρ-zCDP, or ε (docs/theory.md, Theorem 86).
Sensitivity
    Of lengths, and of squares with marks, those of :mod:`dpmodels.mechanisms.weighted_scores`: a
    unit is in one cell, and adds the square of one integer vector, whatever its weights, rows and
    residuals. Of the coefficients and the curvature, those of their mechanism.
Noise
    Independent discrete Gaussians, or discrete Laplace noise where the coefficients have pure
    noise.
Numerics
    exact for scores: a row's is one correctly rounded product of two numbers that follow from
    released values and that row alone; otherwise as the mechanism of the coefficients.
Source
    One step from a consistent estimate: Le Cam (1956). Linearised errors: Binder (1983), "On the
    variances of asymptotically normal estimators from complex surveys", International Statistical
    Review 51. Clipping and budget: this package.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import partial
from typing import ClassVar, Final

import numpy as np

from dpmodels.design import PrivateDesign, Scaling
from dpmodels.mechanisms import protocol
from dpmodels.mechanisms.measures import OfBase
from dpmodels.mechanisms.regression.objective import Objective
from dpmodels.mechanisms.regression.rate_scores import RateScores
from dpmodels.mechanisms.robust_covariance import ALIKE
from dpmodels.mechanisms.weighted_scores import ScoreNoise, in_units
from dpmodels.noise import Entropy
from dpmodels.postprocess.unit_scores import first_point
from dpmodels.privacy import Guarantee
from dpmodels.released import Ball, BoughtCurvature, CoefficientsRelease, UnitCap
from dpmodels.statistics import Statistic
from dpmodels.statistics.gradient import GradientScore
from dpmodels.statistics.losses import Logistic, Multinomial, Poisson, Predictors
from dpmodels.statistics.score_moments import UnitScores
from dpmodels.typing import Floats

# Where weights depend on the response the longest scores are of large weights, and mostly have one
# sign: a choice, above what least squares take.
ALIGNED: Final = 1.0
# What is left of all weight within a cap, at the least, where noise hides it: a choice.
LEAST_WITHIN: Final = 0.1
# Two rows of the joint ball are no farther apart, in shares of its radius.
FARTHEST: Final = 2.0
# Times the largest response, above any residual: an expected response is at most e times that.
UNCLIPPED: Final = 3.0


@dataclass(frozen=True)
class WeightedGradients(OfBase):
    """Coefficients of capped weights, then sums and squares of the clipped scores of units.

    Parameters
    ----------
    base : RegressionMechanism
        What releases coefficients with their curvature.
    levels : int
        The number of strata whose sums are released too, 0 for none.
    """

    base: protocol.RegressionMechanism
    levels: int = 0

    passes: ClassVar[str] = "many"

    def plan(
        self, facts: protocol.RegressionFacts, guarantee: Guarantee
    ) -> protocol.RegressionPlan:
        """Divide the budget. BudgetError as of the base, or if no useful lattice is left."""
        return self._noise(facts).plan(partial(self.base.plan, facts), facts.adjacency, guarantee)

    def measure(self, design: PrivateDesign, plan: protocol.RegressionPlan) -> Statistic:
        """Prepare to read the rows several times."""
        return self.base.measure(design, plan)

    def release(
        self, statistic: Statistic, plan: protocol.RegressionPlan, entropy: Entropy
    ) -> CoefficientsRelease:
        """Release coefficients of capped weights."""
        return self.base.release(statistic, plan, entropy)

    def step(
        self,
        statistic: Statistic,
        release: CoefficientsRelease,
        cap: UnitCap,
        plan: protocol.RegressionPlan,
        entropy: Entropy,
        n_units: float,
    ) -> CoefficientsRelease:
        """Release lengths, sums and squares of scores where the curvature of a release leads.

        The rows of `statistic` count by weights up to ``cap.scores.cap``; `n_units` is the noisy
        number of units.
        """
        gradients, strata, bought = protocol.as_gradients(statistic), cap.scores, release.curvature
        places, person = plan.facts.adjacency.places, plan.facts.adjacency.person
        assert strata is not None
        assert bought is not None
        point = first_point(release)
        axes, lengths = _whitening(bought, places)
        # Expected of a score; weights count in units of a larger cap than those of the curvature.
        unit = math.sqrt(len(lengths) / n_units) * cap.cap / strata.cap
        to_units, predictors = _of_all_rows(release, gradients.scaling, plan.facts.predictors)
        score = GradientScore(
            (axes / lengths).T * to_units * (places / unit),
            point * to_units,
            predictors,
            _unclipped(plan.facts),
        )
        (design,) = gradients.designs
        public = plan.facts.adjacency.n_public
        exact = UnitScores(design, gradients.lattice, score, places, count_public=public)
        meat = self._noise(plan.facts).noised(exact, strata, plan, entropy)
        # In units of their mean square, so that every coefficient has a variance of about 1. Of the
        # curvature the part beyond its cap is missing.
        mean = math.sqrt(max(float(np.trace(meat.squares)) / len(lengths), meat.sd))
        unit *= mean * strata.cap / cap.cap * max(1 - cap.beyond, LEAST_WITHIN)
        meat = replace(in_units(meat, 1 / mean), root=axes * lengths * unit, person=person)
        return replace(release, meat=meat)

    def _noise(self, facts: protocol.RegressionFacts) -> ScoreNoise:
        return ScoreNoise(facts.columns, self.levels, ALIGNED)


def with_step(
    base: protocol.RegressionMechanism, facts: protocol.RegressionFacts, levels: int
) -> protocol.RegressionMechanism | WeightedGradients:
    """Return a mechanism with a step to all weights; as it is if it releases no curvature."""
    if isinstance(facts.loss, Multinomial) or not getattr(base, "inference", False):
        return base
    if isinstance(base, Objective | RateScores):
        base = replace(base, at_end=True)
    return WeightedGradients(base, levels=levels)


def _whitening(bought: BoughtCurvature, places: int) -> tuple[Floats, Floats]:
    """Return axes and lengths of a root of the scores' covariance, by the curvature.

    Along directions where noise hides the curvature it counts as that noise.
    """
    values, axes = np.linalg.eigh(bought.bread)
    hidden = 2 * bought.bread_noise.off * math.sqrt(len(values))
    least = max(hidden, 1e-13 * float(values[-1]), 1e-300)
    return axes, np.sqrt(np.maximum(values, least) * places**ALIKE)


def _of_all_rows(
    release: CoefficientsRelease, public: Scaling, predictors: Predictors
) -> tuple[Floats, Predictors]:
    """Return predictors that leave no row out, and what those of the release are in their units."""
    ball, ones = release.ball, np.ones(predictors.columns)
    if ball is None:
        return ones, predictors
    centre, radius, axes = _in_joint_ball(ball, public, predictors)
    if np.linalg.norm(centre) > 1:
        return ones, predictors.within(centre, radius, axes)
    farthest = FARTHEST * float(np.linalg.norm(axes, 2))
    ones[int(predictors.intercept) :] = farthest / radius
    return ones, predictors.within(centre, farthest, axes)


def _in_joint_ball(
    ball: Ball, public: Scaling, predictors: Predictors
) -> tuple[Floats, float, Floats]:
    """Return centre, radius and axes of a released ball in shares of the codebook's."""
    terms, norm = slice(predictors.terms), public.row_norm
    centre = (ball.centre - public.centre[terms]) / (norm * public.scale[terms])
    if ball.axes is None:
        return centre, ball.radius / norm, np.eye(predictors.terms)
    return centre, ball.radius, np.asarray(np.linalg.inv(ball.axes / norm), dtype=np.float64)


def _unclipped(facts: protocol.RegressionFacts) -> Logistic | Poisson:
    if isinstance(facts.loss, Poisson):
        return replace(facts.loss, clip=UNCLIPPED * facts.loss.upper)
    assert isinstance(facts.loss, Logistic)
    return facts.loss
