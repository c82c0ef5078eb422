"""Noisy sums of clipped residuals about a released rate, for counts of unknown size.

Theorem
    Every round is a Gaussian mechanism, given what the rounds before released; their multipliers
    are fixed beforehand, so together they satisfy (ε, δ) with the exact trade-off of one Gaussian
    mechanism, or ρ-zCDP: ``1/m² = Σ 1/m_j²`` (docs/theory.md, Theorem 57).
Sensitivity
    In each round a row is an integer vector that depends on that row, public facts and released
    values alone, among them the parameter, the bound on residuals and the axes. Sums of powers and
    numbers of rows by the size of columns: as in :mod:`dpmodels.mechanisms.regression.scores`.
    Numbers of rows by response, and by length: √2, or 1 for a row more or fewer; by the size of the
    residual and the expected response, in two tables, 2 or √2. Sums of gradients, a residual in
    [-1, 1] of its bound times a row of the unit ball: 2 or 1. Second moments: √2 or 1. Curvature
    and squared gradients together: as in :mod:`dpmodels.mechanisms.quantile_of_norms`. An offset
    moves the residual alone, whose bound it leaves as it is.
Noise
    Independent discrete Gaussians of at least 2²⁰ steps, by :data:`SHARES` of the budget. Two
    gradients have a step each. The last bound on residuals is chosen by their sizes after these;
    with ``inference`` the last gradient is released with its curvature and squares, otherwise it
    has a step too.
Numerics
    exact: in every round an integer statistic and integer noise of exact law; floating point is
    used between rounds on released values only.
Source
    This package. For clipped residuals see Cantoni and Ronchetti (2001), "Robust inference for
    generalized linear models", JASA 96; their bias is not corrected, but kept small by the bound.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import ClassVar, NamedTuple

import numpy as np

from dpmodels.arguments import boolean
from dpmodels.errors import ArgumentError
from dpmodels.mechanisms.add_noise import ROUND_UP, noised_rows
from dpmodels.mechanisms.gradient_noise import noisy_gradient
from dpmodels.mechanisms.measures import OfGradients
from dpmodels.mechanisms.protocol import (
    RegressionFacts,
    RegressionPlan,
    as_gradients,
    coefficient_terms,
)
from dpmodels.mechanisms.quantile_of_norms import Lengths, both_matrices, weighted_squares
from dpmodels.mechanisms.regression import row_location
from dpmodels.mechanisms.regression.gradients import Start
from dpmodels.noise import Entropy
from dpmodels.noise.lattice import choose_lattice
from dpmodels.postprocess import nearest_psd
from dpmodels.privacy import GaussianEvent, Guarantee, gaussian_multiplier, split_gaussian
from dpmodels.released import CoefficientsRelease, MechanismInfo
from dpmodels.statistics import Statistic
from dpmodels.statistics.gradient import Gradients
from dpmodels.statistics.losses import Poisson, Predictors
from dpmodels.typing import Floats

# Of the budget: choices, by simulated rows of several shapes.
SHARES = {
    "powers": 0.02,
    "columns": 0.02,
    "narrowed": 0.02,
    "closer": 0.02,
    "nearest": 0.02,
    "responses": 0.03,
    "second": 0.04,
    "lengths": 0.03,
    "first": 0.06,
    "deviations": 0.05,
    "curved": 0.1,
    "next": 0.12,
    "last": 0.3,
    "both": 0.17,
}
# In units of the noise that one sum of gradients would have with the whole budget: a choice.
RIDGE = 0.5
# A choice: ends of cells are 19 % apart, of counts whose declared bound may be thousands of times
# too wide.
SIZES: Floats = 2.0 ** (np.arange(-56, 1) / 4)
# Choices: a tail is read from where it has so many noise sds of rows, and this share of all, and
# where it has so many times as many; that it falls by this factor at least in between.
CLEAR, TAIL, WIDER, SLOWEST = 4.0, 0.01, 5.0, 1.5
# Choices: what clipping may take from a sum of residuals, in its standard deviations; the share of
# all expected responses that may be cut from the largest; how far these may be above the mean.
BIAS, CUT, SPREAD = 0.3, 0.01, 4.0
# A choice: the bound of the first step, which may be biased, in units of what residuals need.
EARLY = 0.5
# A choice: squared gradients in units of curvature, where both are bought together.
SQUARES = 0.3


@dataclass(frozen=True)
class RateScores(OfGradients):
    """Noisy sums of residuals for a Poisson regression, with a bound on residuals that is bought.

    Parameters
    ----------
    inference : bool
        Whether a share of the budget buys what intervals need.
    clip : float, optional
        A public bound on residuals, in units of the response; None to buy it.
    at_end : bool
        Whether the last step is taken, and the curvature that where it ends: for scores of all
        weights, which then have no gradient before them.

    Raises
    ------
    ArgumentError
        If `inference` is not a truth value.

    Examples
    --------
    >>> from dpmodels.mechanisms.protocol import RegressionFacts
    >>> from dpmodels.privacy import ZCDP, adjacency
    >>> from dpmodels.statistics.losses import Poisson
    >>> from dpmodels.statistics.losses import Predictors
    >>> predictors = Predictors(3, True, 0.9, 15.0, 15.0)
    >>> facts = RegressionFacts(predictors, Poisson(30.0, 11.0), adjacency("replace"))
    >>> plan = RateScores().plan(facts, ZCDP(0.5))
    >>> len(plan.events), plan.events[-1].describe()
    (14, 'Gaussian, multiplier 2.42536')
    """

    info: ClassVar[MechanismInfo] = MechanismInfo(
        name="scores",
        theorem="(eps, delta)-DP or rho-zCDP, Gaussian rounds composed exactly",
        sensitivity="L2 of each round: sums, numbers by size, clipped residuals times terms",
        noise="discrete Gaussian on every sum, number and matrix",
        numerics="exact lattice",
        source="residuals about a released rate, clipped at a released bound; this package",
    )

    inference: bool = True
    clip: float | None = None
    at_end: bool = field(default=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        boolean("inference", self.inference)

    def plan(self, facts: RegressionFacts, guarantee: Guarantee) -> RegressionPlan:
        """Divide the budget between the rounds and calibrate their noise.

        ArgumentError for another loss. BudgetError for a pure guarantee, which Gaussian noise does
        not give.
        """
        if not isinstance(facts.loss, Poisson):
            raise ArgumentError(
                'mechanism="scores" of dp_glm is for family="poisson"; write mechanism="objective" '
                'for two levels and "gradients" for more'
            )
        whole = gaussian_multiplier(guarantee) * ROUND_UP
        unused = set() if self.inference else {"both"}
        unused |= set() if facts.predictors.terms else {"second", "lengths"}
        names = [name for name in SHARES if name not in unused]
        multipliers = split_gaussian(whole, [SHARES[name] for name in names])
        scales = dict(zip(names, (m * ROUND_UP for m in multipliers), strict=True))
        changed = 1.0 + facts.adjacency.n_public
        located = {name: scales[name] for name in row_location.SHARES.keys() & scales.keys()}
        scales |= row_location.location_scales(facts, located)
        for name in ("responses", "curved"):
            scales[name] *= math.sqrt(changed)
        scales["deviations"] *= math.sqrt(2 * changed)
        for name in ("first", "next", "last"):
            scales[name] *= changed
        if self.inference:
            scales["both"] *= math.sqrt(changed) * math.hypot(1.0, SQUARES)
        # What is too faint for any lattice is refused here, before the charge.
        choose_lattice(2 * facts.predictors.lattice.columns, max(scales.values()) / SQUARES)
        scales["ridge"] = RIDGE * whole * changed
        return RegressionPlan(guarantee, tuple(map(GaussianEvent, multipliers)), facts, scales)

    def release(
        self, statistic: Statistic, plan: RegressionPlan, entropy: Entropy
    ) -> CoefficientsRelease:
        """Learn sizes, make two steps, and release what is left to the root."""
        joint, scales, facts = as_gradients(statistic), plan.scales, plan.facts
        centred = row_location.centred(joint, plan, entropy)
        sizes = _sizes(joint, self.clip, plan, entropy)
        outer = row_location.uncorrelated(joint, centred, plan, entropy)
        square = min(sizes.mean / sizes.clip**2, 1.0)
        located = scales["last"], square, plan, entropy
        near = row_location.rows_within_axes(joint, outer, *located)
        start = _start(near.predictors, sizes, centred, scales["ridge"])
        loss = Poisson(sizes.largest, sizes.clip * (EARLY if self.clip is None else 1.0))
        rows, bounded = joint.within(near.predictors, loss), replace(facts, loss=loss)
        start, _, _ = _stepped(rows, start, bounded, scales["first"], entropy)
        loss = _last_loss(rows, start.point, bounded, scales, entropy)
        loss = loss if self.clip is None else replace(loss, clip=self.clip)
        rows, bounded = joint.within(near.predictors, loss), replace(facts, loss=loss)
        curved, law = weighted_squares(rows, start.point, bounded, scales["curved"], entropy)
        least = (law.off + scales["ridge"] * loss.clip) * np.eye(len(curved))
        start = start._replace(shape=nearest_psd(curved) + least)
        start, _, _ = _stepped(rows, start, bounded, scales["next"], entropy)
        point = start.point
        start, gradient, sd = _stepped(rows, start, bounded, scales["last"], entropy)
        if self.at_end:
            point, gradient = start.point, np.zeros_like(gradient)
        bought = None
        if self.inference:
            noise = scales["both"]
            bought = both_matrices(rows, point, bounded, noise, entropy, rougher=1 / SQUARES)
        return CoefficientsRelease(
            coefficients=point if self.inference else start.point,
            gradient=gradient if self.inference else None,
            gradient_sd=sd if self.inference else math.nan,
            coefficient_sd=0.0 if self.inference else math.nan,
            curvature=bought,
            ball=near.ball,
            clip=loss.clip,
            **coefficient_terms(self.info, plan, statistic),
        )


def _start(public: Predictors, sizes: Sizes, centred: row_location.Centred, ridge: float) -> Start:
    """Start at the constant that gives the mean, or what comes nearest to it.

    Second moments of turned terms are about those of unit variances.
    """
    offset = 0.0
    if public.known is not None:
        offset = public.known[0] + public.known[1] * float(np.clip(centred.means[-2], -1.0, 1.0))
    point, second = np.zeros(public.columns), np.ones(public.columns)
    level = math.log(sizes.mean) - offset
    if public.terms:
        second *= (public.share / public.radius) ** 2
    if public.intercept:
        second[0] = public.constant**2
        point[0] = level / public.constant
    else:
        means = np.array(public.axes) @ centred.means[: public.terms]
        point = means * (level * public.radius / public.share)
    shape = centred.rows * sizes.mean * second + ridge * sizes.clip
    return Start(point, np.diag(shape), np.diag(second))


def _stepped(
    rows: Gradients, start: Start, facts: RegressionFacts, scale: float, entropy: Entropy
) -> tuple[Start, Floats, float]:
    """Release the gradient at a point; return the next point, the gradient and its noise."""
    noisy, length = noisy_gradient(rows, start.point, facts, scale, entropy), facts.loss.length
    gradient = noisy.gradient * length
    return start._replace(point=start.point + start.step(gradient)), gradient, noisy.sd * length


# Sizes of responses and residuals, read from noisy numbers of rows.


class Sizes(NamedTuple):
    """What is released of the response: its mean, a bound on residuals, and on expected ones."""

    mean: float
    clip: float
    largest: float


class SizeCounts(NamedTuple):
    """Noisy numbers of rows by size, in cells that end at `ends`, and the noise of each."""

    ends: Floats
    counts: Floats
    sd: float

    @property
    def detected(self) -> Floats:
        """Numbers of rows that are clear of the noise, 0 for the others."""
        return Lengths(*self).detected

    @property
    def middles(self) -> Floats:
        """The middle of each cell; 0 of the first."""
        return np.append(0.0, (self.ends[1:] + self.ends[:-1]) / 2)

    def bound(self, noise: float) -> float | None:
        """Return a size beyond which so little is left that it hardly moves a sum; None if unseen.

        `noise` is that of a sum of numbers clipped at 1. A tail is taken to fall exponentially from
        the last size that many rows are beyond, as it does from a smaller one on.
        """
        beyond, rows = self.counts[::-1].cumsum()[::-1] - self.counts, self.detected.sum()
        noises = self.sd * np.sqrt(np.arange(len(self.ends))[::-1])
        clear = np.flatnonzero(beyond > np.maximum(TAIL * rows, CLEAR * noises))
        if not len(clear):
            return None
        outer = int(clear[-1])
        bound = last = float(self.ends[outer + 1])
        wider = np.flatnonzero(beyond[:outer] >= WIDER * beyond[outer])
        first, n_wider = 0.0, rows
        if len(wider):
            first, n_wider = float(self.ends[wider[-1]]), beyond[wider[-1]]
        fall = math.log(max(n_wider / beyond[outer], SLOWEST))
        width = max(last - first, last / 4) / fall
        spread = math.sqrt(float(self.detected @ self.middles**2))
        for _ in range(50):
            allowed = BIAS * math.hypot(noise * bound, spread)
            bound = last + width * max(math.log(beyond[outer] * width / allowed), 0.0)
        return bound

    def largest(self) -> float | None:
        """Return a size beyond which there is :data:`CUT` of the sum at most; None if unseen."""
        parts = self.detected * self.middles
        beyond = parts[::-1].cumsum()[::-1] - parts
        return float(self.ends[np.argmax(beyond <= CUT * parts.sum())]) if parts.any() else None


def _sizes(rows: Gradients, clip: float | None, plan: RegressionPlan, entropy: Entropy) -> Sizes:
    public, scales = plan.facts.loss, plan.scales
    assert isinstance(public, Poisson)
    ends = public.upper * SIZES
    exact = rows.responses(ends).cross()[0]
    sizes = SizeCounts(ends, *noised_rows(exact, scales["responses"], entropy))
    n_rows = max(float(sizes.detected.sum()), 1.0)
    mean = float(sizes.detected @ sizes.middles) / n_rows
    mean = min(max(mean, sizes.sd * float(ends[0]) / n_rows, float(ends[0])), public.upper)
    bound = clip or sizes.bound(scales["last"]) or public.clip
    return Sizes(mean, bound, max(bound, SPREAD * mean))


def _last_loss(
    rows: Gradients,
    point: Floats,
    facts: RegressionFacts,
    scales: Mapping[str, float],
    entropy: Entropy,
) -> Poisson:
    """Release rows by residual and by expected response; return the bounds of both."""
    loss, public = facts.loss, facts.predictors
    assert isinstance(loss, Poisson)
    ends = max(math.e * loss.upper, public.middle + public.reach) * SIZES
    exact = rows.deviations(point, ends).cross()[0]
    counts, sd = noised_rows(exact.ravel(), scales["deviations"], entropy)
    residuals, expected = (SizeCounts(ends, part, sd) for part in counts.reshape(2, -1))
    largest = min(expected.largest() or loss.upper, math.e * loss.upper)
    return Poisson(largest, residuals.bound(scales["last"]) or loss.clip)
