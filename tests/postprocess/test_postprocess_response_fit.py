"""Logistic regression through a device: gradients, errors, and the limit without one."""

from dataclasses import replace

import numpy as np
import pytest
import statsmodels.api as sm

from dpmodels.postprocess.response import CorrectedRows, ResponseRows, fitted

RNG = np.random.default_rng(3)
X = np.column_stack([np.ones(1_500), RNG.uniform(size=1_500), RNG.integers(0, 2, 1_500)])
TRUTHS = (RNG.uniform(size=1_500) < 1 / (1 + np.exp(-X @ [-1.0, 1.5, 0.5]))).astype(float)
COIN = RNG.uniform(size=1_500) < 0.7
ANSWERS = np.where(COIN, TRUTHS, RNG.uniform(size=1_500) < 0.25)
ROWS = ResponseRows(X, ANSWERS, np.ones(1_500), np.zeros(1_500, int), 0.7, 0.3 * 0.25)


def test_without_a_device_it_is_logistic_regression():
    fit = fitted(replace(ROWS, answers=TRUTHS, truth=1.0, spoken=0.0))
    expected = sm.Logit(TRUTHS, X).fit(disp=0, cov_type="HC0")
    np.testing.assert_allclose(fit.coefficients, expected.params, rtol=1e-6)
    np.testing.assert_allclose(fit.covariance * 1_499 / 1_500, expected.cov_params(), rtol=1e-5)
    assert fit.log_likelihood == pytest.approx(expected.llf)
    np.testing.assert_allclose(fit.noise_covariance, 0.0, atol=1e-12)


def test_it_is_the_likeliest():
    fit, step = fitted(ROWS), 1e-4
    for way in np.eye(3):
        ends = [ROWS.log_likelihood(fit.coefficients + sign * step * way) for sign in (-1, 1)]
        assert max(ends) < fit.log_likelihood
        assert abs(ends[1] - ends[0]) / (2 * step) < 1e-2


def test_weights_count_as_so_many_respondents():
    times = RNG.integers(1, 4, 1_500)
    weighed = fitted(replace(ROWS, weights=times.astype(float)))
    values = [np.repeat(array, times, axis=0) for array in (X, ANSWERS)]
    size = times.sum()
    repeated = fitted(ResponseRows(*values, np.ones(size), np.zeros(size, int), 0.7, 0.075))
    np.testing.assert_allclose(weighed.coefficients, repeated.coefficients, rtol=1e-5)
    assert (np.diagonal(weighed.covariance) > np.diagonal(repeated.covariance)).all()


def test_the_noise_is_what_the_device_adds_to_the_variance():
    """Of equal weights the efficient fit of the truth is independent of what is added."""
    fit = fitted(ROWS)
    truths, answers = ROWS.expected(fit.coefficients)
    slope = 0.7 * truths * (1 - truths)
    informations = (slope**2 / (answers * (1 - answers)), truths * (1 - truths))
    covariance, covariance_known = (
        np.linalg.inv((X.T * information) @ X) for information in informations
    )
    np.testing.assert_allclose(fit.noise_covariance, covariance - covariance_known, rtol=1e-8)


def test_answers_that_tell_nothing_of_a_column_are_told():
    twice = fitted(replace(ROWS, coded=np.column_stack([X, X[:, 1]])))
    assert np.isnan(twice.covariance).all()
    none = fitted(ResponseRows(*(np.empty(s) for s in ((0, 2), 0, 0)), np.empty(0, int), 0.7, 0.1))
    assert np.isnan(none.covariance).all()


def test_strata_take_their_own_means_off_the_scores():
    strata = ANSWERS.astype(int)
    fit, separate = fitted(ROWS), fitted(replace(ROWS, strata=strata))
    np.testing.assert_array_equal(fit.coefficients, separate.coefficients)
    assert np.diagonal(separate.covariance)[0] < np.diagonal(fit.covariance)[0]


# Corrected scores.

CORRECTED = CorrectedRows(X, ANSWERS, np.ones(1_500), np.zeros(1_500, int), 0.7, 0.3 * 0.25)


def test_corrected_scores_without_a_device_are_those_of_logistic_regression():
    fit = fitted(replace(CORRECTED, answers=TRUTHS, truth=1.0, spoken=0.0))
    expected = fitted(replace(ROWS, answers=TRUTHS, truth=1.0, spoken=0.0))
    np.testing.assert_allclose(fit.coefficients, expected.coefficients, rtol=1e-6)
    np.testing.assert_allclose(fit.covariance, expected.covariance, rtol=1e-5)
    np.testing.assert_allclose(fit.noise_covariance, 0.0, atol=1e-12)


def test_corrected_scores_add_up_to_0_and_are_the_objectives_derivatives():
    fit, step = fitted(CORRECTED), 1e-5
    numbers = (ANSWERS - 0.3 * 0.25) / 0.7
    means = 1 / (1 + np.exp(-X @ fit.coefficients))
    np.testing.assert_allclose(X.T @ (numbers - means), 0.0, atol=1e-3)
    at = fit.coefficients + 0.3
    scores = X.T @ CORRECTED.scores(at)[0]
    for axis, score in zip(np.eye(3), scores, strict=True):
        ends = [CORRECTED.objective(at + sign * step * axis) for sign in (1, -1)]
        assert (ends[0] - ends[1]) / (2 * step) == pytest.approx(score, rel=1e-5)


def test_the_corrected_scores_noise_is_the_devices_variance_given_the_truth():
    """Its mean over all answers is the variance, for both truths."""
    for spoken, truth in ((0.1, 0.7), (0.4, 0.3), (0.02, 0.5)):
        rows = CorrectedRows(*(np.ones(s) for s in ((1, 1), 1, 1)), np.zeros(1, int), truth, spoken)
        added = [
            rows_of(rows, answer).noise_covariance(np.zeros(1), np.eye(1))[0, 0]
            for answer in (0.0, 1.0)
        ]
        for rate in (spoken, spoken + truth):
            mean = (1 - rate) * added[0] + rate * added[1]
            assert mean == pytest.approx(rate * (1 - rate) / truth**2)


def rows_of(rows, answer):
    return replace(rows, answers=np.array([answer]))


def test_answers_beyond_all_probabilities_have_no_corrected_fit():
    rows = CorrectedRows(
        np.ones((50, 1)), np.zeros(50), np.ones(50), np.zeros(50, int), 0.7, 0.3 * 0.25
    )
    assert np.isnan(fitted(rows).covariance).all()


@pytest.mark.product
def test_the_corrected_score_has_the_truths_target_where_the_model_is_wrong():
    """Means of 60 fits: beyond 5.5 standard errors at a rate of 1e-7 for 3 coefficients."""
    rng, gaps = np.random.default_rng(8), {CorrectedRows: [], ResponseRows: []}
    for _ in range(60):
        x = np.sqrt(rng.uniform(size=3_000))
        coded = np.column_stack([np.ones(3_000), x])
        truths = (rng.uniform(size=3_000) < np.where(x > 0.6, 0.75, 0.12)).astype(float)
        lies = rng.uniform(size=3_000) < 0.12
        answers = np.where(lies, 1 - truths, truths)
        target = sm.Logit(truths, coded).fit(disp=0).params
        for kind, errors in gaps.items():
            fit = fitted(kind(coded, answers, np.ones(3_000), np.zeros(3_000, int), 0.76, 0.12))
            errors.append((fit.coefficients - target) / np.sqrt(np.diagonal(fit.noise_covariance)))
    corrected, likeliest = (np.array(errors) for errors in gaps.values())
    assert (np.abs(corrected.mean(axis=0)) < 5.5 / np.sqrt(60)).all()
    assert (corrected.std(axis=0) > 0.3).all()
    assert (corrected.std(axis=0) < 1.5).all()
    assert (np.abs(likeliest.mean(axis=0)) > 1).all()
