"""Noise and sampling error of survival curves from counts by interval.

To first order the noise of a curve is linear in that of the counts, with its derivatives as
weights. Sampling errors are Greenwood's: a point of a curve is treated as a proportion of
`effective` uncensored rows with the same information (Rothman), and its interval solves
``(estimate - s)² <= kappa² (s (1 - s) / effective + variance of the noise)`` for s.

.. [1] Greenwood, M. (1926). "The natural duration of cancer." Reports on Public Health and Medical
   Subjects 33, HMSO.
.. [2] Rothman, K. J. (1978). "Estimation of confidence limits for the cumulative probability of
   survival in life table analysis." Journal of Chronic Diseases 31(8), 557-560.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import lsq_linear
from scipy.special import chdtrc

from dpmodels.inference.proportions import SumNoise
from dpmodels.postprocess.protocol import Spread
from dpmodels.postprocess.survival import Followed
from dpmodels.typing import Floats

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

    Under the hypothesis `statistic` is chi-square with `df` degrees of freedom, or smaller: it is
    the least over all orders of times within intervals of several values. `observed` events
    are unbiased and may be negative; `noise_sd` is that of their difference from `expected`.
    """

    statistic: float
    df: int
    pvalue: float
    observed: Floats
    expected: Floats
    noise_sd: Floats


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
    """Return bounds on the expected events over all orders within intervals, by group."""
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
    if (low < high).any():
        values, vectors = np.linalg.eigh(inverse)
        root = np.sqrt(np.maximum(values, 0.0))[:, None] * vectors.T
        high = np.maximum(high, np.nextafter(low, np.inf))
        difference = lsq_linear(root, np.zeros(df), (low, high), method="bvls").x
    statistic = float(difference @ inverse @ difference)
    noise_sd = np.sqrt(np.maximum(np.diag(noisy), 0.0))
    return LogRank(
        statistic, df, float(chdtrc(df, statistic)), observed, expected, np.asarray(noise_sd)
    )
