"""Shares behind randomised answers: formulas, respondents by brute force, tests."""

import math
from dataclasses import replace
from functools import reduce
from types import SimpleNamespace as Fit

import numpy as np
import pytest
from differences import derivative
from scipy import stats

from dpmodels.inference.response import (
    ReadAnswers,
    ReadBits,
    fit_of_answers,
    independence_of_answers,
    independence_of_shares,
    kept_information,
    score_interval,
)
from dpmodels.models.survey import INFO
from dpmodels.postprocess.response import device_loss, matrix, truth_of
from dpmodels.privacy import PureDP, adjacency
from dpmodels.released import AnswersRelease, Channel
from dpmodels.released.answers import exact

WARNER = Channel(truth_of(1.0, 2), (0.5, 0.5), 1.0, "Warner")
FORCED = Channel(0.6, (0.5, 0.2, 0.3), device_loss(0.6, 0.2), "forced")


def released(values, channels, **more):
    options = {"weights": None, "squares": None, "rows": 0, "info": INFO, "guarantee": PureDP(1.0)}
    options |= {"adjacency": adjacency("replace"), "events": (), "simulated": False}
    return AnswersRelease(
        values=np.atleast_2d(values), channels=tuple(channels), **(options | more)
    )


def cells(read):
    size = read.given.shape[1]
    return read.shares(np.eye(size), np.ones((size, size)))


def test_errors_of_two_levels_are_those_of_the_formulas():
    n, eps = 8_000.0, 1.0
    cell_values = cells(ReadAnswers(released([n * 0.6, n * 0.4], [WARNER])))
    privacy = math.exp(eps) / (n * (math.exp(eps) - 1) ** 2)
    share = cell_values.values[1]
    assert cell_values.noise == pytest.approx([privacy] * 2)
    assert math.sqrt(privacy) == pytest.approx(0.0107, abs=5e-5)
    total = privacy + share * (1 - share) / n
    assert cell_values.variance == pytest.approx([total] * 2, rel=2 / n)
    assert cell_values.design_effect == pytest.approx(
        cell_values.variance / (share * (1 - share) / n)
    )
    assert cell_values.private == pytest.approx([privacy / total] * 2, rel=2 / n)


def test_a_share_outside_of_0_and_1_has_no_design_effect():
    inside, outside = (
        cells(ReadAnswers(released(1_000 * np.array(share), [WARNER])))
        for share in ([0.6, 0.4], [0.2, 0.8])
    )
    assert outside.values[0] < 0 < 1 < outside.values[1]
    assert np.isnan(outside.design_effect).all()
    assert np.isfinite(outside.variance).all()
    assert np.isfinite(inside.design_effect).all()


def test_errors_of_more_levels_are_those_of_the_multinomial():
    answers = np.array([400.0, 250.0, 350.0])
    read = ReadAnswers(released(answers, [FORCED]))
    cell_values, share = cells(read), answers / 1_000
    back = np.linalg.inv(matrix([FORCED]))
    expected = back @ (np.diag(share) - np.outer(share, share)) @ back.T / 999
    np.testing.assert_allclose(cell_values.values, back @ share)
    np.testing.assert_allclose(cell_values.variance, np.diagonal(expected))
    np.testing.assert_allclose(read.covariance(cell_values.lines), expected, atol=1e-18)


def test_noise_is_the_variance_given_the_truth_of_any_device():
    probabilities, truths = matrix([FORCED]), np.array([0.2, 0.5, 0.3])
    spread = np.diag(probabilities @ truths) - (probabilities * truths) @ probabilities.T
    back = np.linalg.inv(probabilities)
    table = cells(ReadAnswers(released(1_000 * probabilities @ truths, [FORCED])))
    np.testing.assert_allclose(table.noise, np.diagonal(back @ spread @ back.T) / 1_000)


def drawn(seed=1):
    """Respondents in strata, with weights; answers to a randomised question and an exact one."""
    rng = np.random.default_rng(seed)
    strata = np.repeat([0, 1, 2], [200, 300, 100])
    answers = rng.integers(0, 2, 600) * 2 + (rng.uniform(size=600) < 0.3 + 0.2 * strata)
    return strata, answers.astype(int), rng.uniform(0.5, 3, 600)


def summed(strata, answers, weights):
    sums = np.zeros((3, 3, 4))
    for power in range(3):
        np.add.at(sums[power], (strata, answers), weights**power)
    return released(
        sums[0],
        [WARNER, exact(2)],
        weights=sums[1],
        squares=sums[2],
        strata=("a", "b", "c"),
    )


def taylor(strata, weights, numbers, population=None):
    """The textbook's linearised variance of a weighted mean, respondent by respondent."""
    factor = np.full(3, 1 / weights.sum())
    if population is not None:
        factor = population / np.bincount(strata, weights)
    values, total = weights * factor[strata], 0.0
    mean = (values[:, None] * numbers).sum(axis=0) / values.sum()
    for stratum in range(3):
        is_in_stratum = strata == stratum
        about = mean
        if population is not None:
            about = (weights[is_in_stratum, None] * numbers[is_in_stratum]).sum(axis=0) / weights[
                is_in_stratum
            ].sum()
        scores = values[is_in_stratum, None] * (numbers[is_in_stratum] - about)
        away = scores - scores.mean(axis=0)
        total += is_in_stratum.sum() / (is_in_stratum.sum() - 1) * (away**2).sum(axis=0)
    return mean, total


@pytest.mark.parametrize("population", [None, np.array([0.5, 0.2, 0.3])])
def test_weights_and_strata_are_those_of_respondents_by_brute_force(population):
    strata, answers, weights = drawn()
    shares = None if population is None else tuple(population)
    read = ReadAnswers(replace(summed(strata, answers, weights), shares=shares))
    cell_values = cells(read)
    mean, variance = taylor(strata, weights, read.turned.T[answers], population)
    np.testing.assert_allclose(cell_values.values, mean)
    np.testing.assert_allclose(cell_values.variance, variance)


def test_a_share_within_a_level_has_the_error_of_a_ratio():
    strata, answers, weights = drawn(2)
    read = ReadAnswers(summed(strata, answers, weights))
    level = np.array([0.0, 1.0, 0.0, 1.0])
    shares = read.shares(np.eye(4)[3:], level[None, :])
    numbers = read.turned.T[answers]
    share = (weights @ numbers[:, 3]) / (weights @ (numbers @ level))
    line = (numbers[:, 3] - share * (numbers @ level)) * weights.sum()
    _, variance = taylor(strata, weights, (line / (weights @ (numbers @ level)))[:, None])
    assert shares.values[0] == pytest.approx(share)
    assert shares.variance[0] == pytest.approx(variance[0])


def test_a_stratum_that_nobody_answered_in_is_left_to_the_others():
    values = [[30.0, 20.0], [0.0, 0.0]]
    read_answers = ReadAnswers(released(values, [WARNER], strata=("a", "b"), shares=(0.4, 0.6)))
    alone = ReadAnswers(released(values[:1], [WARNER]))
    np.testing.assert_allclose(cells(read_answers).values, cells(alone).values)


def test_no_answers_give_no_shares():
    cell_values = cells(ReadAnswers(released([0.0, 0.0], [WARNER])))
    assert np.isnan(cell_values.values).all()


def test_the_score_interval_is_wilsons():
    low, high = score_interval(np.array([0.2]), np.array([0.2 * 0.8 / 50]), np.array([50.0]), 0.95)
    expected = stats.binomtest(10, 50).proportion_ci(0.95, method="wilson")
    assert (low[0], high[0]) == pytest.approx((expected.low, expected.high))
    low, high = score_interval(np.array([0.0]), np.array([0.0]), np.array([50.0]), 0.95)
    expected = stats.binomtest(0, 50).proportion_ci(0.95, method="wilson")
    assert (low[0], high[0]) == pytest.approx((0.0, expected.high), abs=1e-12)


def test_intervals_cover():
    """Of 400 tables 95 % are covered; fewer than 350 or all at a rate below 1e-6."""
    rng, share = np.random.default_rng(4), 0.1
    answers = rng.binomial(500, matrix([WARNER])[1] @ [1 - share, share], 400)
    n_covered = 0
    for answer in answers:
        cell_values = cells(ReadAnswers(released([500.0 - answer, float(answer)], [WARNER])))
        low, high = cell_values.interval(0.95)
        n_covered += low[1] <= share <= high[1]
    assert 350 <= n_covered < 400


def test_independence_is_pearsons_on_the_answers():
    table = np.array([[120.0, 80.0, 0.0], [90.0, 110.0, 0.0]])
    test = independence_of_answers(table, [WARNER, FORCED], [np.full(2, 0.5), np.full(3, 1 / 3)])
    expected = stats.chi2_contingency(table[:, :2], correction=False)
    assert (test.statistic, test.pvalue, test.df) == pytest.approx(expected[:3])


def test_independence_of_shares_is_that_of_answers_to_first_order():
    rng = np.random.default_rng(8)
    truths = rng.multinomial(40_000, [0.3, 0.2, 0.3, 0.2])
    answers = sum(
        rng.multinomial(n, p) for n, p in zip(truths, matrix([WARNER, exact(2)]).T, strict=True)
    )
    read = ReadAnswers(released(answers.astype(float), [WARNER, exact(2)]))
    cell_values = cells(read)
    wald = independence_of_shares(
        cell_values.values, read.covariance(cell_values.lines), (2, 2), 1.0
    )
    pearson = stats.chi2_contingency(answers.reshape(2, 2), correction=False)
    assert wald.df == 1
    assert wald.statistic == pytest.approx(pearson[0], rel=0.02)


@pytest.mark.parametrize("shape", [(2, 3), (2, 2, 2)])
def test_independence_of_shares_has_the_derivative_of_what_it_compares(shape):
    rng, axes = np.random.default_rng(4), range(len(shape))
    shares, root = (
        rng.dirichlet(np.ones(math.prod(shape))),
        rng.normal(size=(math.prod(shape),) * 2),
    )

    def away(values):
        table, total = values.reshape(shape), values.sum()
        margins = [table.sum(axis=tuple(k for k in axes if k != axis)) / total for axis in axes]
        return (table - total * reduce(np.multiply.outer, margins)).ravel()

    slope, covariance = derivative(away, shares), root @ root.T
    result = independence_of_shares(shares, covariance, shape, 1.0)
    inverse = np.linalg.pinv(slope @ covariance @ slope.T, rcond=1e-8)
    assert result.statistic == pytest.approx(away(shares) @ inverse @ away(shares), rel=1e-5)


def test_a_level_that_is_not_there_leaves_no_test():
    test = independence_of_shares(np.array([0.6, 0.5, -0.05, -0.05]), np.eye(4), (2, 2), 1.0)
    assert math.isnan(test.pvalue)
    assert test.reason


def test_goodness_of_fit_is_of_the_answers_expected():
    test = fit_of_answers(np.array([60.0, 40.0]), np.array([0.5, 0.5]), 1.0)
    assert test.pvalue == pytest.approx(stats.chisquare([60, 40]).pvalue)


def test_information_is_kept_as_the_shares_of_answers_leave_it():
    """At even shares (e^eps - 1)^2 / (e^eps + k - 1)^2; of two levels one in the design effect."""
    for levels in (2, 4):
        channel = Channel(truth_of(1.0, levels), (1 / levels,) * levels, 1.0, "k-ary")
        even = np.full(levels, 1 / levels)
        assert kept_information(channel, even) == pytest.approx(truth_of(1.0, levels) ** 2)
        assert kept_information(exact(levels), even) == pytest.approx(1.0)
    share, chance = 0.05, matrix([WARNER])[1] @ [0.95, 0.05]
    information = kept_information(WARNER, np.array([1 - share, share]))
    effect = chance * (1 - chance) / WARNER.truth**2 / (share * (1 - share))
    assert information == pytest.approx(1 / effect)
    assert information < WARNER.truth**2


@pytest.mark.parametrize("estimates", [(1.2, -0.3, 0.4), (0.7, 0.5, -0.1)])
def test_likeliest_shares_of_bits_are_those_of_the_simplex_nearest_to_the_estimates(estimates):
    read = Fit(truths=np.append(estimates, 1 - sum(estimates)))
    *shares, without = ReadBits.likeliest.func(read)
    grid = np.stack(np.meshgrid(*[np.linspace(0, 1, 201)] * 2), axis=-1).reshape(-1, 2)
    simplex = np.column_stack([grid, 1 - grid.sum(axis=1)])[grid.sum(axis=1) <= 1 + 1e-9]
    distances = ((simplex - estimates) ** 2).sum(axis=1)
    assert shares == pytest.approx(simplex[distances.argmin()], abs=5e-3)
    assert min(shares) >= 0
    assert (sum(shares), without) == (pytest.approx(1.0), 0.0)
