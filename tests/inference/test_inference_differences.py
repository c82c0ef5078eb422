"""Differences of means: Welch's test without noise, interval and p-value that agree with it."""

import numpy as np
import pytest
from scipy import stats

from dpmodels.inference.means import SMALLEST, GroupMoments, difference
from dpmodels.inference.proportions import Noise
from dpmodels.statistics.shares import shares

NONE = Noise("laplace", 1e-12, 0)


def moments(groups, noise=NONE):
    parts = [shares(np.asarray(group), 2, 2**40).sum(axis=1) / 2**40 for group in groups]
    return GroupMoments(np.array(parts), noise)


@pytest.fixture
def rng():
    return np.random.default_rng(5)


@pytest.mark.parametrize("sizes", [(2, 3), (5, 40), (200, 300)])
def test_without_noise_it_is_welchs(sizes, rng):
    groups = rng.beta(2, 3, sizes[0]), rng.beta(2, 3.4, sizes[1])
    change = difference(moments(groups))
    exact = stats.ttest_ind(*groups, equal_var=False)
    assert change.estimate == pytest.approx(groups[0].mean() - groups[1].mean(), abs=1e-9)
    assert change.freedom == pytest.approx(exact.df, rel=1e-5)
    assert change.pvalue == pytest.approx(exact.pvalue, rel=1e-4)
    assert change.interval(0.9, population=True) == pytest.approx(
        exact.confidence_interval(0.9), abs=1e-6
    )


def test_without_noise_one_mean_is_students(rng):
    values = rng.beta(2, 3, 30)
    change = difference(moments([values]), less=0.35)
    assert change.pvalue == pytest.approx(stats.ttest_1samp(values, 0.35).pvalue, rel=1e-4)


@pytest.mark.parametrize(
    "noise", [Noise("laplace", 4.0, 0), Noise("gaussian", 4.0, 7)], ids=("laplace", "balanced")
)
def test_the_interval_of_one_less_the_p_value_ends_at_zero(noise, rng):
    change = difference(moments([rng.beta(2, 3, 300), rng.beta(2, 2, 300)], noise))
    assert 1e-6 < change.pvalue < 1
    ends = change.interval(1 - change.pvalue, population=True)
    assert min(abs(end) for end in ends) == pytest.approx(0, abs=1e-5)


def test_a_huge_difference_has_the_smallest_p_value(rng):
    """However many standard errors it is: the tail far out is not 1/2."""
    noise = Noise("laplace", 2.0, 0)
    change = difference(moments([rng.uniform(0.9, 1, 20_000), rng.uniform(0, 0.1, 20_000)], noise))
    assert change.estimate / np.hypot(change.noise_sd, change.sampling_sd) > 300
    assert change.pvalue == SMALLEST


def test_noise_makes_the_interval_longer_and_the_p_value_larger(rng):
    groups = [rng.beta(2, 3, 300), rng.beta(2, 2.3, 300)]
    plain, noisy = (difference(moments(groups, Noise("laplace", sd, 0))) for sd in (1e-9, 10.0))
    assert noisy.pvalue > plain.pvalue
    assert np.ptp(noisy.interval(0.95, population=True)) > np.ptp(
        plain.interval(0.95, population=True)
    )
    assert np.ptp(noisy.interval(0.95, population=True)) > np.ptp(
        noisy.interval(0.95, population=False)
    )


def test_equal_rows_are_no_evidence():
    change = difference(moments([np.full(50, 0.5), np.full(50, 0.5)], Noise("laplace", 1.0, 0)))
    assert change.pvalue > 0.5


def test_a_lost_group_gives_no_test(rng):
    change = difference(moments([rng.beta(2, 3, 300), rng.beta(2, 3, 5)], Noise("laplace", 4.0, 0)))
    assert not change.known
    assert np.isnan(change.pvalue)
    assert change.interval(0.95, population=True) == (-np.inf, np.inf)
