"""The log-rank test of noisy counts, with the noise in its variance.

Of each group it adds up, over the intervals, its events less those expected of it: the events of
all groups times its share of the rows at risk. To first order the noise of that is linear in that
of the counts, so its covariance is known and is added to the hypergeometric one of sampling.

.. [1] Mantel, N. (1966). "Evaluation of survival data and two new rank order statistics arising in
   its consideration." Cancer Chemotherapy Reports 50(3), 163-170.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import chdtrc

from dpmodels.inference.survival import Noise
from dpmodels.postprocess.survival import Followed
from dpmodels.typing import Floats


@dataclass(frozen=True)
class LogRank:
    """A test that all curves are one; arrays have the shape (groups,).

    `statistic` is chi-square with `df` degrees of freedom if they are. `observed` events are
    unbiased and may be negative; `noise_sd` is that of their difference from the `expected` ones.
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
    """Test that the hazards of all groups are the same.

    `events`, shape (groups, cells), are unbiased counts; `groups` are followed over the same first
    intervals, and `noise` is that of sums of all counts, with `sd` for one. It takes weights of
    shape (..., 2 groups, cells). Sampling takes `effect` rows for one.
    """
    cells = events.shape[1]
    events = events[:, : len(groups[0].risk)]
    exposed = np.stack([own.exposed for own in groups])
    total = np.maximum(exposed.sum(axis=0), 1.0)
    share = exposed / total
    all_events = events.sum(axis=0)
    expected = (share * all_events).sum(axis=1)
    fitted = np.stack([own.events for own in groups]).sum(axis=0)
    away = np.eye(len(groups))[:, :, None] - share[:, None, :]
    weights = _weights(away, fitted / total, groups[0].halved, cells)
    noisy = sd**2 * _covariance(weights, noise)
    left = np.maximum(total - fitted, 0.0) / np.maximum(total - 1, 1.0)
    drawn = effect * np.einsum("k,gk,hgk->gh", fitted * left, share, away)
    return _tested(events.sum(axis=1), expected, drawn, noisy)


def _weights(away: Floats, hazard: Floats, halved: Floats, cells: int) -> Floats:
    """Return derivatives of the differences by all counts, shape (groups, 2 groups, cells).

    `away`, shape (groups, groups, intervals), are those by events at shares that stay.
    """
    weighed = hazard * away
    ends = ((0, 0), (0, 0), (0, cells - away.shape[-1]))
    risk = np.cumsum(np.pad(weighed, ends), axis=-1)
    both = [np.pad(own, ends) - risk for own in (halved * weighed, away)]
    return np.stack(both, axis=2).reshape(len(away), -1, cells)


def _covariance(weights: Floats, noise: Noise) -> Floats:
    """Return the covariances of sums, in units of the variance of the noise, by polarisation."""
    found = np.empty((len(weights),) * 2)
    for place, own in enumerate(weights):
        found[place] = (noise(own + weights).squares - noise(own - weights).squares) / 4
    return found


def _tested(observed: Floats, expected: Floats, drawn: Floats, noisy: Floats) -> LogRank:
    df = len(observed) - 1
    both, difference = (drawn + noisy)[:df, :df], (observed - expected)[:df]
    statistic = float(difference @ np.linalg.pinv(both, hermitian=True) @ difference)
    noise_sd = np.sqrt(np.maximum(np.diag(noisy), 0.0))
    return LogRank(
        statistic, df, float(chdtrc(df, statistic)), observed, expected, np.asarray(noise_sd)
    )
