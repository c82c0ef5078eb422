"""Noise and sampling error of survival curves from counts by interval.

To first order the noise of a curve is linear in that of the counts, with its derivatives as
weights. Sampling errors are Greenwood's: a point of a curve is treated as a proportion of
`effective` uncensored rows with the same information (Rothman), and its interval solves
``(estimate - s)² <= kappa² (s (1 - s) / effective + variance of the noise)`` for s.

Proportional hazards from noisy counts of events and of rows at risk, by group and interval.

*Theorem.* By group and interval let R rows be at risk and D have the event, of released counts n;
let ``E = D / -log(1 - D/R)`` be the exposure, so that D/E is the interval's cumulative hazard [3]_.
With means ``m_k`` of the groups' terms x, weighted by ``E exp(xβ)`` in interval k, the score of
Cox's partial likelihood is ``U(β) = Σ D (x - m_k)``. Where hazards are proportional its mean at the
true β is 0 to first order, whatever the intervals. Its derivatives are ``x - m_k`` by D and ``B =
-D_k exp(xβ) (x - m_k) / Σ E exp(xβ)`` by E, so that a row adds a public vector l of its cell [4]_.
As E is homogeneous in the counts and ``Σ E B = 0`` in every interval, the l of all rows add up to
U. To first order the root is off by ``I⁻¹ Σ l e`` for noise e in the counts, and about the
population's by that and ``I⁻¹ Σ n l``, of covariance ``I⁻¹ (Σ n l lᵀ) I⁻¹``, whether or not hazards
are proportional.

.. [1] Greenwood, M. (1926). "The natural duration of cancer." Reports on Public Health and Medical
   Subjects 33, HMSO.
.. [2] Rothman, K. J. (1978). "Estimation of confidence limits for the cumulative probability of
   survival in life table analysis." Journal of Chronic Diseases 31(8), 557-560.
.. [3] Prentice, R. L. and Gloeckler, L. A. (1978). "Regression analysis of grouped survival data
   with application to breast cancer data." Biometrics 34(1), 57-67.
.. [4] Lin, D. Y. and Wei, L. J. (1989). "The robust inference for the Cox proportional hazards
   model." JASA 84(408), 1074-1078.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final, NamedTuple

import numpy as np
from scipy.optimize import lsq_linear
from scipy.special import chdtrc

from dpmodels.inference.proportions import SumNoise
from dpmodels.postprocess.protocol import Spread
from dpmodels.postprocess.survival import DETECTION_SDS, Followed, at_risk
from dpmodels.typing import Floats, Integers

# From weights of counts, shape (..., rows of cells, cells), to the noise in sums with them.
Noise = Callable[[Floats], Spread]


def joint_noise(spread: Noise, rows: int, cells: int, *, public: bool) -> Noise:
    """Return the noise in sums over several rows of cells with independent noise.

    `spread` is for one row of cells, shape (..., cells), without a public total. If the total of
    `rows` such rows and one more count is `public`, sums are adjusted to it: their variance falls
    by their squared covariance with the total over the total's variance. Covariances are computed
    by polarisation.
    """
    plus, minus = (spread(np.eye(cells) + side).squares for side in (1.0, -1.0))
    with_total = (plus - minus) / 4 * public
    total_variance = rows * float(spread(np.ones(cells)).squares) + 1.0

    def noise(weights: Floats) -> Spread:
        parts = spread(weights)
        explained = (weights @ with_total).sum(axis=-1) ** 2 / total_variance
        squares = np.maximum(parts.squares.sum(axis=-1) - explained, 0.0)
        return Spread(squares, parts.fourths.sum(axis=-1))

    return noise


def risk_weights(cells: int) -> Floats:
    """Return the weights of rows at risk, shape (intervals, endings, cells)."""
    upper = np.triu(np.ones((cells, cells)))
    return np.stack([upper, upper], axis=1)


def hazard_weights(curve: Followed, cells: int) -> Floats:
    """Return derivatives of the hazards by the counts, shape (intervals, endings, cells)."""
    size = len(curve.risk)
    at = np.arange(size)
    weights = -curve.hazard[:, None, None] * risk_weights(cells)[:size]
    weights[at, 0, at] += curve.hazard * curve.halved
    weights[at, 1, at] += 1.0
    return np.asarray(weights / np.maximum(curve.exposed, 0.5)[:, None, None])


def survival_weights(curve: Followed, cells: int) -> Floats:
    """Return derivatives of the survival curve by the counts, shape (intervals, endings, cells)."""
    weights = -hazard_weights(curve, cells)
    before = np.append(1.0, curve.survival)[:-1]
    weights *= before[:, None, None]
    for k in range(1, len(weights)):
        weights[k] += (1 - curve.hazard[k]) * weights[k - 1]
    return weights


@dataclass(frozen=True)
class NoisyShares:
    """Proportions of `effective` rows, with their noise and sampling errors."""

    values: Floats
    spread: Spread
    noise: SumNoise
    effective: Floats

    @property
    def noise_sd(self) -> Floats:
        """Standard deviation of the noise."""
        return np.asarray(self.noise.sd * np.sqrt(self.spread.squares))

    def noise_interval(self, level: float) -> tuple[Floats, Floats]:
        """Return intervals for the proportions of these rows, within 0 and 1."""
        width = self.noise.widths(self.spread, np.zeros(()), level)
        return np.maximum(self.values - width, 0.0), np.minimum(self.values + width, 1.0)

    @property
    def _rows(self) -> Floats:
        return np.maximum(self.effective, 0.5)

    @property
    def std_error(self) -> Floats:
        """Standard error for the population: noise and sampling."""
        sampled = self.values * (1 - self.values) / self._rows
        return np.sqrt(self.noise_sd**2 + sampled)

    def interval(self, level: float) -> tuple[Floats, Floats]:
        """Return intervals for the proportions of the population."""
        rows = self._rows
        sampled = np.sqrt(self.values * (1 - self.values) / rows)
        width = self.noise.widths(self.spread, sampled, level)
        sd = self.std_error
        kappa = np.divide(width, sd, out=np.full(len(sd), 2.0), where=sd > 0)
        return _solved(self.values, kappa**2, 1 / rows, self.noise_sd**2)


def _solved(values: Floats, kappa: Floats, per_row: Floats, noisy: Floats) -> tuple[Floats, Floats]:
    """Solve ``(value - s)² <= kappa (each s (1 - s) + noisy)`` for s within 0 and 1."""
    a = 1 + kappa * per_row
    b = values + kappa * per_row / 2
    root = np.sqrt(np.maximum(b * b - a * (values**2 - kappa * noisy), 0.0))
    return np.maximum((b - root) / a, 0.0), np.minimum((b + root) / a, 1.0)


def cumulative_interval(
    values: Floats, spread: Spread, noise: SumNoise, exposed: Floats, level: float
) -> tuple[Floats, Floats]:
    """Return intervals of cumulative hazards, sums of Poisson counts over `exposed`.

    They solve ``(value - s)² <= kappa² (s / exposed + variance of the noise)`` for s.
    """
    rows = np.maximum(exposed, 0.5)
    noisy = noise.sd**2 * spread.squares
    sampled = values / rows
    width = noise.widths(spread, np.sqrt(sampled), level)
    variance = noisy + sampled
    kappa = np.divide(width**2, variance, out=np.full(len(rows), 4.0), where=variance > 0)
    middle = values + kappa / (2 * rows)
    root = np.sqrt(middle**2 - values**2 + kappa * noisy)
    return np.maximum(middle - root, 0.0), middle + root


# The log-rank test of noisy counts, with the noise in its variance.
#
# For each group it sums, over the intervals, the events less the expected ones: the events of all
# groups times its fraction of the rows at risk. To first order the noise of this is linear in that
# of the counts, so its covariance is known and is added to the hypergeometric one of sampling.
#
# Rows censored within an interval of several values may have been at risk in any part of it, in
# each group, so that the expected events lie between two bounds; the least statistic within them
# is tested. Whatever the order of times, it is at most that of the true expected events.
#
# .. [1] Mantel, N. (1966). "Evaluation of survival data and two new rank order statistics arising
#    in its consideration." Cancer Chemotherapy Reports 50(3), 163-170.


@dataclass(frozen=True)
class LogRank:
    """A test that all curves are equal; arrays have the shape (groups,).

    Under the hypothesis `statistic` is chi-square with `df` degrees of freedom, or smaller: where
    `is_least`, it is the least over all orders of times within intervals. `observed` events
    are unbiased and may be negative; `noise_sd` is that of their difference from `expected`.
    """

    statistic: float
    df: int
    pvalue: float
    observed: Floats
    expected: Floats
    noise_sd: Floats
    is_least: bool


def log_rank(
    events: Floats, groups: Sequence[Followed], noise: Noise, sd: float, effect: int
) -> LogRank:
    """Test that the hazards of all groups are equal.

    `events`, shape (groups, cells), are unbiased counts; `groups` are curves over the same first
    intervals; `noise` maps weights of shape (..., 2 groups, cells) to the noise of sums, in units
    of `sd`. `effect` is the design effect.
    """
    cells = events.shape[1]
    events = events[:, : len(groups[0].risk)]
    exposed = np.stack([group.exposed for group in groups])
    total = np.maximum(exposed.sum(axis=0), 1.0)
    share = exposed / total
    all_events = events.sum(axis=0)
    observed, expected = events.sum(axis=1), (share * all_events).sum(axis=1)
    fitted = np.stack([group.events for group in groups]).sum(axis=0)
    away = np.eye(len(groups))[:, :, None] - share[:, None, :]
    weights = _weights(away, fitted / total, groups[0].halved, cells)
    noisy = sd**2 * _covariance(weights, noise)
    left = np.maximum(total - fitted, 0.0) / np.maximum(total - 1, 1.0)
    sampling = effect * np.einsum("k,gk,hgk->gh", fitted * left, share, away)
    bounds = [observed - side for side in reversed(_expected_bounds(groups, all_events))]
    return _tested(observed, expected, bounds, sampling, noisy)


def _expected_bounds(groups: Sequence[Followed], all_events: Floats) -> tuple[Floats, Floats]:
    low, high = (
        np.stack([group.risk - at_start * group.censored for group in groups])
        for at_start in (np.ceil(groups[0].halved), 0.0)
    )
    others_low, others_high = (side.sum(axis=0) - side for side in (low, high))
    ends = [
        all_events * exposed / np.maximum(exposed + others, 1.0)
        for exposed, others in ((low, others_high), (high, others_low))
    ]
    return np.minimum(*ends).sum(axis=1), np.maximum(*ends).sum(axis=1)


def _weights(away: Floats, hazard: Floats, halved: Floats, cells: int) -> Floats:
    """Return derivatives of the differences by all counts, shape (groups, 2 groups, cells).

    `away`, shape (groups, groups, intervals), are those by events at fixed proportions at risk.
    """
    weighed = hazard * away
    ends = ((0, 0), (0, 0), (0, cells - away.shape[-1]))
    risk = np.cumsum(np.pad(weighed, ends), axis=-1)
    derivatives = [np.pad(derivative, ends) - risk for derivative in (halved * weighed, away)]
    return np.stack(derivatives, axis=2).reshape(len(away), -1, cells)


def _covariance(weights: Floats, noise: Noise) -> Floats:
    """Return the covariances of sums, in units of the noise variance, by polarisation."""
    covariance = np.empty((len(weights),) * 2)
    for k, row in enumerate(weights):
        covariance[k] = (noise(row + weights).squares - noise(row - weights).squares) / 4
    return covariance


def _tested(
    observed: Floats, expected: Floats, bounds: Sequence[Floats], sampling: Floats, noisy: Floats
) -> LogRank:
    df = len(observed) - 1
    inverse = np.linalg.pinv((sampling + noisy)[:df, :df], hermitian=True)
    difference = (observed - expected)[:df]
    low, high = (np.asarray(side[:df]) for side in bounds)
    is_least = bool((low < high).any())
    if is_least:
        values, vectors = np.linalg.eigh(inverse)
        root = np.sqrt(np.maximum(values, 0.0))[:, None] * vectors.T
        high = np.maximum(high, np.nextafter(low, np.inf))
        difference = lsq_linear(root, np.zeros(df), (low, high), method="bvls").x
    statistic = float(difference @ inverse @ difference)
    noise_sd = np.sqrt(np.maximum(np.diag(noisy), 0.0))
    p = float(chdtrc(df, statistic))
    return LogRank(statistic, df, p, observed, expected, np.asarray(noise_sd), is_least)


# Most Newton steps, and the length of one, in standard errors, at which they end.
STEPS: Final = 50
NEAR: Final = 1e-9
# Largest hazard of an interval, and the smallest, below which it is as good as 0.
HIGHEST: Final = 0.99
LOWEST: Final = 1e-4


class HazardRatios(NamedTuple):
    """Logarithms of hazard ratios, their sampling and noise errors; nan if not identified."""

    coefficients: Floats
    sampling_sd: Floats
    spread: Spread


@dataclass(frozen=True, eq=False)
class GroupedTimes:
    """Counts by group and interval, with the coded `terms` of each group, shape (groups, terms).

    `cells`, shape (groups, 2, intervals + 1), are unbiased counts of censored rows and of events,
    the last of those followed to the end; `halved` is the fraction of the rows censored in an
    interval that is not at risk in it, and `ends` how many intervals each group is followed for.
    """

    terms: Floats
    cells: Floats
    halved: Floats
    ends: Integers

    @cached_property
    def followed(self) -> Floats:
        """1 where a group is followed in an interval, else 0."""
        return (np.arange(len(self.halved)) < self.ends[:, None]).astype(float)

    @cached_property
    def events(self) -> Floats:
        """Events by group and interval."""
        return np.asarray(self.cells[:, 1, :-1] * self.followed)

    @cached_property
    def exposure(self) -> tuple[Floats, Floats, Floats]:
        """Exposed rows, and their derivatives by the rows at risk and by the events."""
        risk = at_risk(self.cells)[:, :-1] - self.halved * self.cells[:, 0, :-1]
        risk = np.maximum(risk, 0.5)
        hazard = np.clip(self.cells[:, 1, :-1] / risk, -HIGHEST, HIGHEST)
        hazard = np.where(np.abs(hazard) < LOWEST, LOWEST, hazard)
        log = -np.log1p(-hazard)
        by_event = (log - hazard / (1 - hazard)) / log**2
        return risk * hazard / log * self.followed, hazard / log - hazard * by_event, by_event

    def weighted(self, coefficients: Floats) -> tuple[Floats, Floats, Floats]:
        """Return terms less their means, (groups, intervals, terms), shares and their factors."""
        factors = self.followed * np.exp(self.terms @ coefficients)[:, None]
        factors /= np.maximum((self.exposure[0] * factors).sum(axis=0), np.finfo(float).tiny)
        shares = self.exposure[0] * factors
        means = np.einsum("gk,gp->kp", shares, self.terms)
        return np.asarray(self.terms[:, None, :] - means), shares, factors

    def score(self, coefficients: Floats) -> tuple[Floats, Floats]:
        """Return the score and the information."""
        centred, shares, _ = self.weighted(coefficients)
        each = shares * self.events.sum(axis=0)
        information = np.einsum("gk,gkp,gkq->pq", each, centred, centred)
        return np.einsum("gk,gkp->p", self.events, centred), information

    def influence(self, coefficients: Floats) -> Floats:
        """Return what a row of each cell adds to the score, shape (terms, groups, 2, cells)."""
        centred, _, factors = self.weighted(coefficients)
        by_exposure = -centred * (factors * self.events.sum(axis=0))[:, :, None]
        _, by_risk, by_event = (slope[:, :, None] * by_exposure for slope in self.exposure)
        before = np.cumsum(by_risk, axis=1)
        censored = before - self.halved[:, None] * by_risk
        event = before + by_event + centred * self.followed[:, :, None]
        endings = [np.concatenate([ending, before[:, -1:]], axis=1) for ending in (censored, event)]
        return np.moveaxis(np.stack(endings, axis=1), -1, 0)

    def detected(self, coefficients: Floats, noise: Noise, sd: float) -> bool:
        """Return whether the information exceeds the noise of the events in every direction."""
        values, vectors = np.linalg.eigh(self.score(coefficients)[1])
        centred, shares, _ = self.weighted(coefficients)
        by_event = np.zeros((len(values), *self.cells.shape))
        variances = np.einsum("gk,gkp->pk", shares, (centred @ vectors) ** 2)
        by_event[:, :, 1, :-1] = variances[:, None, :] * self.followed
        squares = noise(by_event.reshape(len(values), -1, self.cells.shape[-1])).squares
        return bool((values > DETECTION_SDS * sd * np.sqrt(squares)).all())


def hazard_ratios(times: GroupedTimes, noise: Noise, sums: SumNoise, effect: int) -> HazardRatios:
    """Return the root of the score with its errors.

    A term that does not vary between the groups that are followed is not identified; nor is any if
    the information is below five standard deviations of its noise in some direction.
    """
    out = np.full((4, times.terms.shape[1]), np.nan)
    _, information = times.score(np.zeros(len(out[0])))
    varying = np.diagonal(information) > 0
    reduced = replace(times, terms=times.terms[:, varying])
    root = _root(reduced)
    if root is not None and reduced.detected(root, noise, sums.sd):
        inverse = np.linalg.inv(reduced.score(root)[1])
        influence = np.tensordot(inverse, reduced.influence(root), axes=1)
        spread = noise(influence.reshape(len(root), -1, influence.shape[-1]))
        sampled = effect * np.einsum("pgec,gec->p", influence**2, times.cells)
        out[:, varying] = root, np.sqrt(np.maximum(sampled, 0.0)), spread.squares, spread.fourths
    return HazardRatios(out[0], out[1], Spread(out[2], out[3]))


def _root(times: GroupedTimes) -> Floats | None:
    coefficients = np.zeros(times.terms.shape[1])
    for _ in range(STEPS):
        score, information = times.score(coefficients)
        values, vectors = np.linalg.eigh(information)
        if not len(values) or not values[0] > NEAR * values[-1]:
            return None
        step = (vectors / values) @ (vectors.T @ score)
        if score @ step < NEAR**2:
            return coefficients
        coefficients = coefficients + step
    return None
