"""Slopes and weights written by hand are derivatives, and noise sds those of the delta method."""

import math

import numpy as np
import pytest
from differences import derivative, symmetric_derivative

from dpmodels.inference.correlations import canonical, correlation_of, residuals
from dpmodels.inference.count_model import CumulativeLogits, LevelLogits, estimate, maximum
from dpmodels.inference.independence import _slope
from dpmodels.inference.links import IDENTITY, LOG, LOGIT
from dpmodels.inference.means import GroupMoments, _noise_root, central_weights, difference
from dpmodels.inference.proportions import Noise, SumNoise
from dpmodels.inference.response import independence_of_shares
from dpmodels.inference.survival import GroupedTimes, hazard_ratios
from dpmodels.postprocess.normal_equations import NormalEquations
from dpmodels.postprocess.protocol import Spread
from dpmodels.postprocess.survival import at_risk

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


def test_thresholds_that_do_not_rise_have_no_probabilities():
    model = CumulativeLogits(DESIGN[:, 1:], 4)
    for thresholds in ([0.2, 0.2, 1.4], [0.2, -0.1, 1.4]):
        assert np.isnan(model.logs(np.array([0.4, -0.7, *thresholds]))).all()


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


def partial(moments, n_given):
    """The correlation of the last two columns, n_given the first ones."""
    free = moments[-2:, -2:] - moments[-2:, :n_given] @ np.linalg.solve(
        moments[:n_given, :n_given], moments[:n_given, -2:]
    )
    return free[0, 1] / math.sqrt(free[0, 0] * free[1, 1])


@pytest.mark.parametrize("n_given", [1, 3])
def test_the_noise_of_a_correlation_is_that_of_the_delta_method(n_given):
    entries = np.eye(5)
    result = correlation_of(equations(entries[:, :n_given]), entries[:, -2:], 3_000 - n_given - 1)
    exact = partial(MOMENTS, n_given)
    assert abs(exact) > 0.1
    assert result.estimate == pytest.approx(exact, rel=1e-4)
    assert result.noise_sd == pytest.approx(
        first_order_sd(lambda moments: partial(moments, n_given)), rel=1e-3
    )


@pytest.mark.parametrize("rho", [-0.8, 0.0, 0.3])
def test_the_noise_of_a_correlation_at_any_value(rho):
    entries = np.eye(5)
    posed = equations(entries[:, :3])
    result = correlation_of(posed, entries[:, -2:], 2_996)
    squares = np.diagonal(residuals(posed, entries[:, -2:]).scatter)

    def distance(moments):
        n_given = moments[-2:, :3] @ np.linalg.solve(moments[:3, :3], moments[:3, -2:])
        free = (moments[-2:, -2:] - n_given) / np.sqrt(np.outer(squares, squares))
        return free[0, 1] - rho * (free[0, 0] + free[1, 1]) / 2

    assert math.sqrt(result.noise_variance(rho)) == pytest.approx(
        first_order_sd(distance), rel=1e-3
    )


def test_the_noise_of_canonical_correlations_is_that_of_the_delta_method():
    fit = canonical(equations(np.eye(5)[:, :-1]), 2)

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
    fit = canonical(equations(np.eye(5)[:, :-1]), 2)
    left, right = ROWS[:, 1:3] @ fit.left, ROWS[:, 3:] @ fit.right
    result = [np.corrcoef(left[:, k], right[:, k])[0, 1] for k in range(2)]
    assert result == pytest.approx(fit.correlations.tolist(), rel=1e-6)
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


def test_the_noise_of_a_difference_is_that_of_the_delta_method():
    parts = np.array([parts_of(RNG.beta(2, 5, 900), 2), parts_of(RNG.beta(3, 2, 500), 2)])
    moments = GroupMoments(parts, Noise("gaussian", 0.7, 0))

    def means(of):
        of = of.reshape(2, 3)
        return of @ np.array([0, 0.5, 1]) / of.sum(axis=1)

    slopes = derivative(means, parts.ravel(), 1e-4)
    result = difference(moments)
    assert result.estimate == pytest.approx(means(parts)[0] - means(parts)[1])
    assert result.noise_sd == pytest.approx(0.7 * np.linalg.norm(slopes[0] - slopes[1]), rel=1e-6)
    swapped = difference(moments, pair=(1, 0))
    assert swapped.estimate == pytest.approx(-result.estimate)
    only = difference(GroupMoments(parts[:1], Noise("gaussian", 0.7, 0)), less=0.2)
    assert only.estimate == pytest.approx(means(parts)[0] - 0.2)
    assert only.noise_sd == pytest.approx(0.7 * np.linalg.norm(slopes[0]), rel=1e-6)
    root = _noise_root(moments)
    assert root @ root.T == pytest.approx(0.49 * slopes @ slopes.T, rel=1e-6, abs=1e-15)
    # Welch's degrees of freedom.
    variances = result.sampling_sd**2, moments.mean_sampling_sd**2
    assert variances[0] == pytest.approx(variances[1].sum())
    welch = variances[0] ** 2 / (variances[1] ** 2 / (moments.counts - 1)).sum()
    assert result.freedom == pytest.approx(welch)


def grouped(cells):
    """Three groups in four intervals; the last group is followed for three of them."""
    terms = np.array([[0.0, 0.0], [1.0, 0.5], [0.0, 2.0]])
    halved = np.array([0.5, 0.5, 0.0, 0.5])
    return GroupedTimes(terms, cells, halved, np.array([4, 4, 3]))


CELLS = RNG.uniform(40, 90, (3, 2, 5))
BETA = np.array([0.4, -0.3])


def test_the_score_of_hazards_has_its_information_and_its_influence():
    times = grouped(CELLS)
    score, information = times.score(BETA)
    slope = derivative(lambda beta: times.score(beta)[0], BETA)
    assert -slope == pytest.approx(information, rel=1e-6, abs=1e-5)

    def of_cells(cells):
        return grouped(cells.reshape(CELLS.shape)).score(BETA)[0]

    influence = times.influence(BETA)
    by_difference = derivative(of_cells, CELLS.ravel(), 1e-4).reshape(influence.shape)
    assert influence == pytest.approx(by_difference, rel=1e-5, abs=1e-7)
    # Of all rows they add up to the score.
    assert np.einsum("pgkc,gkc->p", influence, CELLS) == pytest.approx(score, rel=1e-9)


def test_ratios_of_hazards_have_the_errors_of_the_delta_method():
    """Of independent noise in each cell, and of rows that are as likely as their cells say."""

    def spread(weights):
        squares = weights.reshape(len(weights), -1) ** 2
        return Spread(squares.sum(axis=1), (squares**2).sum(axis=1))

    def ratios(cells, effect=1):
        return hazard_ratios(
            grouped(cells.reshape(CELLS.shape)), spread, SumNoise("gaussian", 0.1, 0.0), effect
        )

    result = ratios(CELLS)
    slopes = derivative(lambda cells: ratios(cells).coefficients, CELLS.ravel(), 1e-3)
    assert result.spread.squares == pytest.approx((slopes**2).sum(axis=1), rel=1e-4)
    assert result.spread.fourths == pytest.approx((slopes**4).sum(axis=1), rel=1e-4)
    sampled = np.sqrt(slopes**2 @ CELLS.ravel())
    assert result.sampling_sd == pytest.approx(sampled, rel=1e-4)
    assert ratios(CELLS, 4).sampling_sd == pytest.approx(2 * sampled, rel=1e-4)


def test_exposure_and_its_derivatives():
    times = grouped(CELLS)
    risk = at_risk(CELLS)[:, :-1] - times.halved * CELLS[:, 0, :-1]
    events = CELLS[:, 1, :-1]
    exact = -events / np.log1p(-events / risk)
    exposure, by_risk, by_event = times.exposure
    assert exposure == pytest.approx(exact * times.followed)

    def along(risk, events):
        return -events / np.log1p(-events / risk)

    step = 1e-4
    ends = [along(risk + move, events) for move in (step, -step)]
    assert by_risk == pytest.approx((ends[0] - ends[1]) / (2 * step), rel=1e-6)
    ends = [along(risk, events + move) for move in (step, -step)]
    assert by_event == pytest.approx((ends[0] - ends[1]) / (2 * step), rel=1e-6)


@pytest.mark.parametrize("model", [LevelLogits(DESIGN, 4), CumulativeLogits(DESIGN[:, 1:], 4)])
def test_parameters_of_counts_move_as_their_influence_says(model):
    result = estimate(model, COUNTS, 1e-3, 2.0)
    # At the maximum the score is 0.
    score = np.einsum("xk,xkq->q", COUNTS, model.slopes(result.params))
    assert np.abs(score).max() < 1e-4

    def params(counts):
        return maximum(model, counts.reshape(COUNTS.shape), 1e-3)

    by_difference = derivative(params, COUNTS.ravel(), 1e-2)
    assert pytest.approx(by_difference, rel=2e-2, abs=2e-4) == result.influence.T
    noise = result.noise_root @ result.noise_root.T
    assert noise == pytest.approx(1e-6 * result.influence.T @ result.influence)
    sampling = result.sampling_root @ result.sampling_root.T
    weighed = 2 * COUNTS.reshape(-1, 1) * result.influence
    assert sampling == pytest.approx(result.influence.T @ weighed)


@pytest.mark.parametrize("shape", [(3, 4), (2, 3, 2)])
def test_the_independence_of_shares_is_tested_by_the_delta_method(shape):
    size = math.prod(shape)
    shares = RNG.dirichlet(np.full(size, 8.0))
    root = RNG.normal(size=(size, size + 2)) * 0.01
    covariance = root @ root.T

    def excess(values):
        of = values.reshape(shape)
        fitted = np.ones(())
        for axis in range(len(shape)):
            margin = of.sum(axis=tuple(k for k in range(len(shape)) if k != axis))
            fitted = np.multiply.outer(fitted, margin)
        return values - fitted.ravel()

    # Shares add up to 1: noise in their sum moves nothing.
    centred = covariance - covariance.sum(0) * shares[:, None]
    centred = centred - (centred.sum(1))[:, None] * shares
    slopes = derivative(excess, shares)
    spread = slopes @ centred @ slopes.T
    test = independence_of_shares(shares, centred, shape, 1.0)
    df = size - 1 - sum(n - 1 for n in shape)
    inverse = np.linalg.pinv(spread, rcond=1e-7, hermitian=True)
    assert np.linalg.matrix_rank(spread, tol=1e-9) >= df
    values, vectors = np.linalg.eigh(spread)
    away = vectors[:, -df:].T @ excess(shares)
    assert test.statistic == pytest.approx((away**2 / values[-df:]).sum(), rel=1e-5)
    assert inverse.shape == (size, size)
