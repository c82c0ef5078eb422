"""Slopes and weights written by hand are derivatives, and noise sds those of the delta method."""

import math

import numpy as np
import pytest
from differences import derivative, symmetric_derivative

from dpmodels.inference.correlations import canonical, correlation_of, residuals
from dpmodels.inference.count_model import CumulativeLogits, LevelLogits
from dpmodels.inference.independence import _slope
from dpmodels.inference.links import IDENTITY, LOG, LOGIT
from dpmodels.inference.means import GroupMoments, central_weights
from dpmodels.inference.ratios import Noise
from dpmodels.postprocess.normal_equations import NormalEquations

RNG = np.random.default_rng(11)
DESIGN = np.column_stack([np.ones(5), RNG.normal(size=(5, 2))])
COUNTS = RNG.uniform(1, 20, (5, 4))
# Columns with unequal correlations, and noise far below them.
MIXED = np.array([[2, 0.5, 1, -0.8], [0, 1.5, 0.6, 0.9], [0, 0, 1.2, 0.7], [0, 0, 0, 1]])
ROWS = np.column_stack([np.ones(3_000), RNG.normal(size=(3_000, 4)) @ MIXED / 9])
MOMENTS = ROWS.T @ ROWS
VARIANCE = RNG.uniform(1e-4, 9e-4, (5, 5))
VARIANCE += VARIANCE.T


def equations(regressors):
    """Normal equations of some columns of the rows, a constant the first."""
    return NormalEquations(MOMENTS, VARIANCE, regressors, np.eye(5)[:, -1], True)


def first_order_sd(statistic):
    """The sd of a statistic of the moments, by differences and independent noise."""
    return math.sqrt((symmetric_derivative(statistic, MOMENTS) ** 2 * VARIANCE).sum())


@pytest.mark.parametrize("link", [IDENTITY, LOG, LOGIT], ids=lambda link: link.name)
def test_a_links_slope_and_bend_are_the_derivatives_of_its_mean(link):
    eta = np.array([-2.3, -0.4, 0.0, 0.7, 3.1])
    assert np.diag(link.slope(eta)) == pytest.approx(derivative(link.mean, eta), abs=1e-8)
    assert np.diag(link.bend(eta)) == pytest.approx(derivative(link.slope, eta), abs=1e-8)


@pytest.mark.parametrize(
    "model_and_params",
    [
        (LevelLogits(DESIGN, 4), np.linspace(-0.6, 0.8, 9)),
        (CumulativeLogits(DESIGN[:, 1:], 4), np.array([0.4, -0.7, -1.1, 0.2, 1.4])),
    ],
    ids=["multinomial", "ordinal"],
)
def test_slopes_of_log_probabilities(model_and_params):
    model, params = model_and_params
    assert np.exp(model.logs(params)).sum(axis=1) == pytest.approx(np.ones(5))
    assert model.slopes(params) == pytest.approx(derivative(model.logs, params), abs=1e-7)

    def score(at):
        return np.einsum("xk,xkq->q", COUNTS, model.slopes(at))

    information = -derivative(score, params, 1e-5)
    assert model.observed(params, COUNTS) == pytest.approx(information, rel=1e-6, abs=1e-5)


def test_cumulative_odds_fall_where_a_slope_is_positive():
    model = CumulativeLogits(np.array([[0.5], [2.0]]), 3)
    below = np.exp(model.logs(np.array([1.5, -0.3, 0.9])))[:, 0]
    assert np.log(below / (1 - below)) == pytest.approx([-0.3 - 0.75, -0.3 - 3.0])


@pytest.mark.parametrize("shape", [(3, 4), (2, 3, 2)])
def test_expected_counts_move_with_the_counts(shape):
    table = RNG.uniform(5, 30, shape)

    def margin(of, axis):
        return of.sum(axis=tuple(k for k in range(len(shape)) if k != axis))

    def expected(counts):
        of = counts.reshape(shape)
        fitted = np.ones(())
        for axis in range(len(shape)):
            fitted = np.multiply.outer(fitted, margin(of, axis))
        return (fitted / of.sum() ** (len(shape) - 1)).ravel()

    margins = [margin(table, axis) for axis in range(len(shape))]
    slope = _slope(shape, margins, expected(table.ravel()), float(table.sum()))
    assert slope == pytest.approx(derivative(expected, table.ravel()), rel=1e-6, abs=1e-8)


def partial(moments, given):
    """The correlation of the last two columns, given the first ones."""
    free = moments[-2:, -2:] - moments[-2:, :given] @ np.linalg.solve(
        moments[:given, :given], moments[:given, -2:]
    )
    return free[0, 1] / math.sqrt(free[0, 0] * free[1, 1])


@pytest.mark.parametrize("given", [1, 3])
def test_the_noise_of_a_correlation_is_that_of_the_delta_method(given):
    entries = np.eye(5)
    found = correlation_of(equations(entries[:, :given]), entries[:, -2:], 3_000 - given - 1)
    exact = partial(MOMENTS, given)
    assert abs(exact) > 0.1
    assert found.estimate == pytest.approx(exact, rel=1e-4)
    assert found.noise_sd == pytest.approx(
        first_order_sd(lambda moments: partial(moments, given)), rel=1e-3
    )


@pytest.mark.parametrize("rho", [-0.8, 0.0, 0.3])
def test_the_noise_of_a_correlation_at_any_value(rho):
    entries = np.eye(5)
    posed = equations(entries[:, :3])
    found = correlation_of(posed, entries[:, -2:], 2_996)
    squares = np.diagonal(residuals(posed, entries[:, -2:]).scatter)

    def distance(moments):
        given = moments[-2:, :3] @ np.linalg.solve(moments[:3, :3], moments[:3, -2:])
        free = (moments[-2:, -2:] - given) / np.sqrt(np.outer(squares, squares))
        return free[0, 1] - rho * (free[0, 0] + free[1, 1]) / 2

    assert math.sqrt(found.noise_variance(rho)) == pytest.approx(first_order_sd(distance), rel=1e-3)


def test_the_noise_of_canonical_correlations_is_that_of_the_delta_method():
    fit = canonical(equations(np.eye(5)[:, :1]), 2)

    def values(moments):
        centred = moments[1:, 1:] - np.outer(moments[0, 1:], moments[0, 1:]) / moments[0, 0]
        left, right = (np.linalg.cholesky(centred[at, at]) for at in (slice(2), slice(2, 4)))
        whitened = np.linalg.solve(right, np.linalg.solve(left, centred[:2, 2:]).T)
        return np.linalg.svd(whitened)[1]

    assert fit.correlations == pytest.approx(values(MOMENTS), rel=1e-6)
    assert fit.separated.all()
    sds = [first_order_sd(lambda moments, k=k: values(moments)[k]) for k in range(2)]
    assert fit.noise_sd == pytest.approx(sds, rel=1e-3)


def test_the_variates_of_canonical_correlations_have_them():
    fit = canonical(equations(np.eye(5)[:, :1]), 2)
    left, right = ROWS[:, 1:3] @ fit.left, ROWS[:, 3:] @ fit.right
    found = [np.corrcoef(left[:, k], right[:, k])[0, 1] for k in range(2)]
    assert found == pytest.approx(fit.correlations.tolist(), rel=1e-6)
    unit = (left - left.mean(0)).T @ (right - right.mean(0))
    assert unit == pytest.approx(np.diag(fit.correlations), abs=1e-6)


def parts_of(values, degree):
    """The sums of Bernstein's polynomials over some values."""
    return np.array(
        [
            sum(math.comb(degree, i) * t**i * (1 - t) ** (degree - i) for t in values)
            for i in range(degree + 1)
        ]
    )


@pytest.mark.parametrize("degree", [2, 4])
def test_central_weights_sum_central_powers(degree):
    values = RNG.beta(2, 5, 40)
    for power in range(degree + 1):
        weights = central_weights(degree, power, np.array([0.3]))[0]
        assert weights @ parts_of(values, degree) == pytest.approx(((values - 0.3) ** power).sum())


@pytest.mark.parametrize("degree", [2, 4])
def test_the_noise_of_means_and_variances_is_that_of_the_delta_method(degree):
    parts = np.array([parts_of(RNG.beta(2, 5, 900), degree), parts_of(RNG.beta(3, 2, 500), degree)])
    moments = GroupMoments(parts, Noise("gaussian", 0.7, 0))
    ones = np.arange(degree + 1) / degree
    twos = np.array([math.comb(i, 2) / math.comb(degree, 2) for i in range(degree + 1)])

    def mean(of):
        return of @ ones / of.sum()

    def variance(of):
        count = of.sum()
        return (of @ twos - (of @ ones) ** 2 / count) / count

    for group, of in enumerate(parts):
        count = of.sum()
        sd = 0.7 * np.linalg.norm(derivative(mean, of, 1e-4))
        assert moments.mean_noise_sd[group] == pytest.approx(sd, rel=1e-6)
        assert moments.variances[group] == pytest.approx(variance(of) * count / (count - 1))
        sd = 0.7 * np.linalg.norm(derivative(variance, of, 1e-4)) * count / (count - 1)
        assert moments.variance_noise_sd[group] == pytest.approx(sd, rel=1e-6)


def test_noise_of_a_balanced_table_is_that_of_the_projection():
    """With a public total, the mean of all parts' noise is subtracted from each."""
    left, right = RNG.normal(size=(2, 3))
    noise = Noise("gaussian", 1.3, 7)
    projection = np.eye(7) - 1 / 7
    padded = [np.concatenate([weights, np.zeros(4)]) for weights in (left, right)]
    exact = 1.3**2 * padded[0] @ projection @ padded[1]
    assert noise.product(left, right) == pytest.approx(exact)
    free = Noise("gaussian", 1.3, 0)
    assert free.product(left, right) == pytest.approx(1.3**2 * left @ right)
