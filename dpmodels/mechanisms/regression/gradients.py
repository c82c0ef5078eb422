"""Noisy clipped gradients: a public number of steps, each a sum over all rows.

Theorem
    Every step releases the sum of the rows' gradients at a released parameter with Gaussian noise;
    before them the augmented moments of (1, x, y) are released once, for a start and for the shape
    of the steps. Gaussian releases of multipliers m_i compose to one of multiplier m,
    ``1/m² = Σ 1/m_i²``, with its exact (ε, δ) trade-off, or ``1/(2m²)``-zCDP.
Sensitivity
    A row's gradient is rounded to an integer vector of length at most ``2**bits`` whatever the row
    and the parameter, and summed exactly. The vector follows from that row and the parameter
    alone, wherever it stands (:meth:`dpmodels.statistics.gradient.Gradients.gradient`): so 1 for a
    row more or fewer, 2 for a row replaced, in units of that length. Of a multinomial loss it is
    the vector of all levels, √2 long at most (:mod:`dpmodels.statistics.losses`). Residuals of
    a Poisson regression are held within a public bound first. Numbers of rows by their length: √2
    and 1; a row that is left out for its length adds 0
    (:mod:`dpmodels.mechanisms.quantile_of_norms`). Curvature and squared gradients: as they stand
    in :mod:`dpmodels.mechanisms.quantile_of_norms`.
Noise
    Independent discrete Gaussians on the same integers, or on 2²⁰ times them where less than 2²⁰
    steps are asked for: no scale is below 2²⁰ units. A step is the noisy
    gradient divided by the released second moment; the answer is the mean of the parameters after
    the second half of the steps. With ``inference`` it is the last, and a third of the budget goes
    to one more gradient there, three tenths to its curvature and squared gradients
    (:mod:`dpmodels.mechanisms.quantile_of_norms`). 4 % go to the lengths of rows about their noisy
    mean. What is released of several levels is in contrasts (below).
Numerics
    exact: integer statistics, integer noise of exact law. Parameters are rounded to integers
    before they meet a row. Scales are 1e-12 larger than computed, for the rounding of the plan;
    nothing is left to cover in the statistics.
Source
    Song, Chaudhuri, Sarwate (2013), "Stochastic gradient descent with differentially private
    updates", GlobalSIP; Bassily, Smith, Thakurta (2014), "Private empirical risk minimization:
    efficient algorithms and tight error bounds", FOCS. Balle, Wang (2018) for the calibration.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import ClassVar, NamedTuple

import numpy as np

from dpmodels.arguments import between, boolean, integer
from dpmodels.mechanisms import protocol, quantile_of_norms
from dpmodels.mechanisms.add_noise import (
    GAUSSIAN,
    ROUND_UP,
    NoisyMoments,
    gaussian_scales,
    noised_moments,
    shrunk,
)
from dpmodels.mechanisms.gradient_noise import noisy_gradient
from dpmodels.mechanisms.measures import OfGradients
from dpmodels.mechanisms.protocol import RegressionFacts
from dpmodels.mechanisms.regression.row_location import location_scales
from dpmodels.noise import Entropy
from dpmodels.noise.lattice import choose_lattice
from dpmodels.postprocess import nearest_psd
from dpmodels.postprocess.normal_equations import RESOLVED, contrasts
from dpmodels.privacy import Event, GaussianEvent, Guarantee, gaussian_multiplier, split_gaussian
from dpmodels.released import CoefficientsRelease, MechanismInfo
from dpmodels.statistics import Statistic
from dpmodels.statistics.gradient import Gradients
from dpmodels.statistics.losses import Huber, Loss, Multinomial, Poisson, Predictors
from dpmodels.typing import Floats

# Choices: the number of steps, and of the budget what the moments take.
STEPS = 10
START_SHARE = 0.25
# Of the whole budget, with inference: choices.
LAST_SHARE = 0.33
MATRICES_SHARE = 0.3
# Of the whole budget, for the numbers of rows by length: a choice.
LENGTHS_SHARE = 0.04
# A choice: in a smaller ball the moments that steps are divided by would be lost in their noise.
SHORTEST = 0.25
# In units of the noise that one sum of gradients would have with the whole budget: a choice.
RIDGE = 0.5


class Start(NamedTuple):
    """Where the steps begin, the matrix they are divided by, and the rows' second moment."""

    point: Floats
    shape: Floats
    moment: Floats

    def step(self, gradient: Floats) -> Floats:
        """Return a step that moves the linear predictor by at most 1 in the mean square."""
        step = -np.linalg.solve(self.shape, gradient)
        # Rounding may make the least of positive forms negative.
        square = max(float(step @ self.moment @ step), 1.0)
        return np.asarray(step / math.sqrt(square))


@dataclass(frozen=True)
class NoisyGradients(OfGradients):
    """Noisy gradients for a logistic, a Poisson or a multinomial regression, or a classifier.

    Parameters
    ----------
    steps : int
        Sums of gradients, among which the budget is divided: a public number.
    share : float
        The part of the budget that the moments take, between 0 and 1.
    inference : bool
        Whether :data:`LAST_SHARE` of the budget goes to a last gradient at the answer, and
        :data:`MATRICES_SHARE` to its curvature and squared gradients.

    Raises
    ------
    ArgumentError
        If one of them has another value.

    Examples
    --------
    >>> from dpmodels.mechanisms.protocol import RegressionFacts
    >>> from dpmodels.privacy import ZCDP, adjacency
    >>> from dpmodels.statistics.losses import Logistic
    >>> from dpmodels.statistics.losses import Predictors
    >>> predictors = Predictors(3, True, 0.9, 0.5, 1.0)
    >>> facts = RegressionFacts(predictors, Logistic(), adjacency("replace"))
    >>> plan = NoisyGradients(steps=3, inference=False).plan(facts, ZCDP(0.5))
    >>> print(*(event.describe() for event in plan.events), sep="; ")
    Gaussian, multiplier 2.04124; Gaussian, multiplier 2.04124 x 3; Gaussian, multiplier 5
    """

    info: ClassVar[MechanismInfo] = MechanismInfo(
        name="gradients",
        theorem="(eps, delta)-DP or rho-zCDP, composition of Gaussian releases",
        sensitivity="integer gradients of length at most 1; 2 (replace) or 1",
        noise="discrete Gaussian on every sum of gradients",
        numerics="exact lattice",
        source="Song et al. (2013), Bassily et al. (2014), all rows in each step",
    )

    steps: int = STEPS
    share: float = START_SHARE
    inference: bool = True

    def __post_init__(self) -> None:
        boolean("inference", self.inference)
        steps = integer("steps", self.steps, 1, 10_000, f"; write steps={STEPS}")
        object.__setattr__(self, "steps", steps)
        between("share", self.share, 0.001, 0.9, f", such as {START_SHARE}")

    def plan(self, facts: RegressionFacts, guarantee: Guarantee) -> protocol.RegressionPlan:
        """Divide the budget between the moments and the steps.

        BudgetError for a pure guarantee, which Gaussian noise does not give.
        """
        multiplier = gaussian_multiplier(guarantee) * ROUND_UP
        bought = [LAST_SHARE, MATRICES_SHARE] if self.inference else []
        bought = [*bought, LENGTHS_SHARE] if facts.predictors.terms else bought
        left = 1 - sum(bought)
        steps = [left * (1 - self.share) / self.steps] * self.steps
        first, *rest = split_gaussian(multiplier, [left * self.share, *steps, *bought])
        change = (1.0 + facts.adjacency.n_public) * ROUND_UP
        scales = {"start": first, "noise": rest[0] * change, "ridge": RIDGE * multiplier * change}
        events: tuple[Event, ...] = (GaussianEvent(first), GaussianEvent(rest[0], self.steps))
        bought_multipliers = rest[self.steps :]
        if self.inference:
            scales["last"] = bought_multipliers[0] * change
            scales["both"] = quantile_of_norms.bought_scale(facts, bought_multipliers[1], GAUSSIAN)
        if facts.predictors.terms:
            scales |= location_scales(facts, {"lengths": bought_multipliers[-1]})
        events = (*events, *map(GaussianEvent, bought_multipliers))
        choose_lattice(facts.columns, scales["noise"])
        _moments_plan(facts, guarantee, first)
        return protocol.RegressionPlan(guarantee, events, facts, scales)

    def release(
        self, statistic: Statistic, plan: protocol.RegressionPlan, entropy: Entropy
    ) -> CoefficientsRelease:
        """Buy the moments, then make the steps."""
        rows, facts, scales = protocol.as_gradients(statistic), plan.facts, plan.scales
        ball, start = _start(rows, plan, entropy)
        rows, point, points = rows.within(ball.predictors), start.point, []
        for _ in range(self.steps):
            noisy = noisy_gradient(rows, point, facts, scales["noise"], entropy)
            slope = levelled(noisy.gradient, facts)
            point = point + start.step(slope + scales["ridge"] * point)
            points.append(point)
        # The mean has less noise; the last is nearer to where the last gradient vanishes.
        averaged = points[-1:] if self.inference else points[self.steps // 2 :]
        answer = np.asarray(np.mean(averaged, axis=0))
        last, sd, curvature = None, math.nan, None
        if self.inference:
            noisy = noisy_gradient(rows, answer, facts, scales["last"], entropy)
            length = facts.loss.length
            last, sd = effect_coding(noisy.gradient * length, facts), noisy.sd * length
            bought = quantile_of_norms.both_matrices(rows, answer, facts, scales["both"], entropy)
            curvature = replace(
                bought,
                bread=effect_coding(bought.bread, facts),
                meat=effect_coding(bought.meat, facts),
            )
        return CoefficientsRelease(
            coefficients=effect_coding(answer, facts),
            gradient=last,
            gradient_sd=sd,
            coefficient_sd=0.0 if self.inference else math.nan,
            curvature=curvature,
            ball=ball.ball,
            **protocol.coefficient_terms(self.info, plan, statistic),
        )


def _moments_plan(facts: RegressionFacts, guarantee: Guarantee, multiplier: float) -> protocol.Plan:
    joint = protocol.Facts(facts.predictors.lattice.columns, facts.adjacency, centred=True)
    lattice, steps = gaussian_scales(joint, multiplier)
    return protocol.Plan(guarantee, (GaussianEvent(multiplier),), lattice, joint, steps)


def _start(
    rows: Gradients, plan: protocol.RegressionPlan, entropy: Entropy
) -> tuple[quantile_of_norms.RowsWithin, Start]:
    """Release the moments of (1, x, y); take a Newton step from the constant that fits best."""
    facts, scales = plan.facts, plan.scales
    joint_plan = _moments_plan(facts, plan.guarantee, scales["start"])
    exact, _ = rows.moments(joint_plan.lattice).cross()
    noisy = noised_moments(exact, joint_plan, entropy)
    assert noisy.total is not None
    count, public = max(noisy.count, 1.0), facts.predictors
    means = public.middle + public.reach * noisy.total[-public.responses :] / count
    law = constant_model(means, facts.loss)
    if public.known is not None:
        middle, reach = public.known
        offset = middle + reach * float(np.clip(noisy.total[public.terms] / count, -1.0, 1.0))
        law = law._replace(linear=law.linear - offset)
    near = quantile_of_norms.RowsWithin(public, None)
    if "lengths" in scales:
        centre = np.zeros(public.terms)
        if public.intercept:
            centre = shrunk(noisy.total[: public.terms] / count, noisy.noise.mean / count)
        noise = scales.get("last", scales["noise"] / math.sqrt(plan.events[1].count))
        least = public.radius * SHORTEST
        near = quantile_of_norms.rows_within_quantile(
            rows, public, centre, scales["lengths"], noise, law.square, entropy, least
        )
    second, sums, cross = _predictor_moments(noisy, near.predictors)
    predictors = near.predictors
    identity, base = np.eye(predictors.columns), np.zeros(predictors.columns)
    scale = (1 + float(predictors.placed @ predictors.placed)) * (
        predictors.share / (predictors.radius or 1.0)
    ) ** 2
    off = max(noisy.noise.off * max(scale, 1.0), RESOLVED * count)
    second = nearest_psd(second) + 2 * off * identity
    if public.intercept:
        base[0] = 1 / public.constant
    else:
        base = np.asarray(np.linalg.solve(second, sums), dtype=np.float64)
    point = np.asarray(np.kron(law.linear, base), dtype=np.float64)
    shape = np.asarray(np.kron(law.bend, second), dtype=np.float64)
    moment = np.asarray(np.kron(np.eye(facts.lines), second / count), dtype=np.float64)
    start = Start(point, shape + scales["ridge"] * np.eye(facts.columns), moment)
    slope = levelled(np.kron(law.mean, sums) - cross, facts) / facts.loss.length
    return near, start._replace(point=point + start.step(slope))


def _predictor_moments(
    noisy: NoisyMoments, predictors: Predictors
) -> tuple[Floats, Floats, Floats]:
    """Return noisy sums of ``z zᵀ``, of z and of ``y ⊗ z`` from those of joint rows.

    Of a category y has a line for each level, which add up to 1.
    """
    assert noisy.total is not None
    joint = np.empty((len(noisy.total) + 1,) * 2)
    joint[0, 0] = noisy.count
    joint[0, 1:] = joint[1:, 0] = noisy.total
    joint[1:, 1:] = noisy.second
    size, left = predictors.terms + 1, predictors.responses
    if predictors.known is not None:
        joint = np.delete(np.delete(joint, size, axis=0), size, axis=1)
    to_predictors = np.diag(np.full(size, predictors.share / (predictors.radius or 1.0)))
    if predictors.centre:
        to_predictors[1:, 0] = -to_predictors[1, 1] * predictors.placed
    to_predictors[0, 0] = predictors.constant
    to_predictors = to_predictors[0 if predictors.intercept else 1 :]
    moments = to_predictors @ joint[:-left]
    second, sums, cross = moments[:, :-left] @ to_predictors.T, moments[:, 0], moments[:, -left:]
    products = predictors.middle * sums + predictors.reach * cross.T
    if left > 1:
        products = np.vstack([sums - products.sum(axis=0), products])
    return second, sums, products.ravel()


# A model of the constant alone, by a released mean: where steps towards coefficients begin.

# Frequencies of levels, and a mean of what is counted, are taken for so much at the least.
RAREST = 1e-3


class Constant(NamedTuple):
    """A model of the constant alone, with a line for each linear predictor.

    In units of the longest gradient.
    """

    mean: Floats  # Shape (lines,): of the response
    linear: Floats  # Shape (lines,): the linear predictors
    bend: Floats  # Shape (lines, lines): twice the curvature of a row, which steps are divided by
    square: float  # Mean square of a row's pull along one way


def constant_model(means: Floats, loss: Loss | Poisson | Multinomial) -> Constant:
    """Return the model for released means of the responses, shape (responses,)."""
    if isinstance(loss, Multinomial):
        return _levels(means, loss)
    if isinstance(loss, Huber):
        # From a margin of 0. Where the round part is narrow, few rows are in it.
        curvature = np.array([[min(loss.smoothness, 1.0)]])
        return Constant(np.array([0.5]), np.zeros(1), curvature, 0.5)
    (mean,) = means.tolist()
    constant = _counted(mean, loss) if isinstance(loss, Poisson) else _odds(mean)
    bounded, linear, bend, square = constant
    return Constant(np.array([bounded]), np.array([linear]), np.array([[bend]]), square)


def _counted(mean: float, loss: Poisson) -> tuple[float, float, float, float]:
    bounded = float(np.clip(mean, RAREST * min(loss.upper, 1), loss.upper))
    return bounded, math.log(bounded), 2 * bounded / loss.clip, bounded / loss.clip**2


def _odds(mean: float) -> tuple[float, float, float, float]:
    bounded = float(np.clip(mean, RAREST, 1 - RAREST))
    square = bounded * (1 - bounded)
    return bounded, math.log(bounded / (1 - bounded)), min(2 * square, 0.25), square


def _levels(means: Floats, loss: Multinomial) -> Constant:
    bounded = np.maximum([1 - means.sum(), *means], RAREST)
    bounded = bounded / bounded.sum()
    linear, spread = np.log(bounded), np.diag(bounded) - np.outer(bounded, bounded)
    square = float(np.trace(spread)) / (loss.levels - 1) / loss.length**2
    return Constant(bounded, linear - linear.mean(), 2 * spread / loss.length, square)


# Released values of all levels of a category, brought to contrasts between them.
#
# Mechanisms read parameters, gradients and matrices with a line for each level, of which one is
# superfluous: those of a row add to 0 over the levels. Independent noise of one standard deviation
# in all coordinates, and of √2 times that on the diagonal of a matrix, is the same along any
# orthonormal axes: what of it falls outside the contrasts is left, free of charge. Coordinates for
# all levels but the reference would have that noise in full, and some of theirs besides.


def levelled(values: Floats, facts: RegressionFacts) -> Floats:
    """Take the mean over the levels off values of all of them, shape (columns,)."""
    if facts.lines == 1:
        return values
    lines = values.reshape(facts.lines, -1)
    return np.asarray((lines - lines.mean(axis=0)).ravel())


def effect_coding(values: Floats, facts: RegressionFacts) -> Floats:
    """Return a vector, shape (columns,), or a symmetric matrix in contrasts."""
    if facts.lines == 1:
        return values
    turn = np.kron(contrasts(facts.lines).T, np.eye(facts.predictors.columns))
    return np.asarray(turn @ values if values.ndim == 1 else turn @ values @ turn.T)
