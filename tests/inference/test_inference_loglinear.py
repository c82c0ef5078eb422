"""Log-linear models: statsmodels' where there is no noise, and errors that count it."""

import numpy as np
import pytest
import statsmodels.api as sm
from scipy import stats

from dpmodels.errors import NotAvailable
from dpmodels.inference.margins import loglinear

CODED = np.column_stack([np.ones(6), np.kron([0, 1], np.ones(3)), np.tile(np.eye(3)[:, 1:].T, 2).T])
COUNTS = np.array([120.0, 80, 40, 200, 150, 60])


def test_without_noise_it_is_the_poisson_model():
    fit = loglinear(COUNTS, CODED, np.zeros((6, 1)), np.zeros(1))
    peer = sm.GLM(COUNTS, CODED, family=sm.families.Poisson()).fit(tol=1e-12)
    np.testing.assert_allclose(fit.params, peer.params, rtol=1e-8)
    np.testing.assert_allclose(fit.cov, peer.cov_params(), rtol=1e-8, atol=1e-12)
    assert fit.deviance == pytest.approx(peer.deviance)
    assert fit.statistic == pytest.approx(peer.pearson_chi2, rel=1e-6)
    assert fit.pvalue == pytest.approx(stats.chi2.sf(peer.pearson_chi2, 2), rel=1e-6)


def test_errors_count_sampling_and_noise():
    """Mean squares of 400 fits: within bounds that chance leaves once in a million, of four."""
    rng, sd, runs = np.random.default_rng(3), 12.0, 400
    mean = np.exp(CODED @ np.array([5.0, 0.4, -0.3, -0.8]))
    fits = [
        loglinear(rng.poisson(mean) + rng.normal(0, sd, 6), CODED, sd * np.eye(6), np.zeros(6))
        for _ in range(runs)
    ]
    away = np.array(
        [(fit.params - [5.0, 0.4, -0.3, -0.8]) / np.sqrt(np.diag(fit.cov)) for fit in fits]
    )
    squares = (away**2).sum(axis=0)
    alarm = 1e-6 / 16
    # To the second order errors of estimated errors are in them: a tenth.
    assert (squares > 0.9 * stats.chi2.ppf(alarm, runs)).all()
    assert (squares < 1.1 * stats.chi2.isf(alarm, runs)).all()
    assert all((np.diag(fit.noise_cov) < np.diag(fit.cov)).all() for fit in fits[:5])
    rejected = np.mean([fit.pvalue < 0.05 for fit in fits])
    assert abs(rejected - 0.05) < 1.3 * stats.norm.isf(alarm) * np.sqrt(0.0475 / runs)


def test_what_noise_leaves_without_rows_is_said():
    with pytest.raises(NotAvailable, match="not identified"):
        loglinear(np.array([50.0, 60, -40, 70, 10, -20]), CODED, np.eye(6), np.zeros(6))


def test_a_noisy_count_of_exactly_none_has_no_logarithm():
    interacted = np.column_stack([CODED, CODED[:, [1]] * CODED[:, 2:]])
    with pytest.raises(NotAvailable, match="not identified"):
        loglinear(np.array([497.0, 2, 498, 499, 501, 0]), interacted, np.eye(6), np.zeros(6))


def test_a_statistic_of_laplace_noise_has_the_variance_of_its_fourth_moments():
    """Of noise alone: a projection on two dimensions, each cell with a third in it.

    The variance of its square is 2 * 2 + 6 * 3 / 3**2 = 6, so it is 1.5 times a chi-square of
    2 / 1.5 degrees of freedom.
    """
    noise = np.random.default_rng(3).laplace(size=6) / np.sqrt(2)
    fit = loglinear(1e8 + 1e6 * noise, CODED, 1e6 * np.eye(6), np.full(6, 3.0))
    table = noise.reshape(2, 3)
    table = table - table.mean(axis=0) - table.mean(axis=1, keepdims=True) + table.mean()
    assert fit.df == 2
    assert fit.statistic == pytest.approx((table**2).sum(), rel=0.05)
    assert fit.pvalue == pytest.approx(stats.chi2.sf(fit.statistic / 1.5, 2 / 1.5), rel=0.01)
