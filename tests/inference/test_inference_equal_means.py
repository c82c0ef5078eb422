"""The test of equal means: Welch's without noise, and of its size with it."""

import numpy as np
import pytest
from scipy.stats import binom, ttest_ind

from dpmodels.inference.means import MOST_GROUPS, GroupMoments, equal_means, power_weights
from dpmodels.inference.proportions import Noise

QUIET = Noise("gaussian", 0.0, 0)


def parts(groups, noise=QUIET, rng=None):
    """Bernstein parts of numbers in [0, 1] by group, with noise."""
    weights = np.stack([power_weights(2, power) for power in range(3)])
    sums = np.array([[(x**power).sum() for power in range(3)] for x in groups])
    exact = np.linalg.solve(weights, sums.T).T
    if rng is None:
        return exact
    draw = rng.laplace if noise.law == "laplace" else rng.normal
    scale = noise.sd / np.sqrt(2) if noise.law == "laplace" else noise.sd
    return exact + draw(0, scale, exact.shape)


def welch(groups):
    """Welch's F and its degrees of freedom, as in his paper."""
    sizes, means = (np.array([f(x) for x in groups]) for f in (len, np.mean))
    weights = sizes / np.array([np.var(x, ddof=1) for x in groups])
    count, grand = len(groups), (weights * means).sum() / weights.sum()
    lacking = ((1 - weights / weights.sum()) ** 2 / (sizes - 1)).sum()
    top = (weights * (means - grand) ** 2).sum() / (count - 1)
    bottom = 1 + 2 * (count - 2) / (count**2 - 1) * lacking
    return top / bottom, (count**2 - 1) / (3 * lacking)


def test_without_noise_it_is_welchs_test():
    rng = np.random.default_rng(0)
    groups = [rng.beta(2, value, size) for value, size in ((3, 40), (4, 25), (3, 90), (8, 15))]
    test = equal_means(GroupMoments(parts(groups), QUIET))
    statistic, freedom = welch(groups)
    assert (test.statistic, test.df_resid) == pytest.approx((statistic, freedom), rel=1e-9)
    assert test.df == 3
    two = equal_means(GroupMoments(parts(groups[:2]), QUIET))
    expected = ttest_ind(*groups[:2], equal_var=False)
    assert (two.statistic, two.df) == (pytest.approx(expected.statistic), 1)
    assert two.pvalue == pytest.approx(expected.pvalue, rel=1e-3)


def test_several_groups_agree_with_two_of_them():
    rng = np.random.default_rng(1)
    noise = Noise("gaussian", 3.0, 0)
    groups = [rng.beta(2, 3, 400), rng.beta(2, 4, 150)]
    noisy_parts = parts(groups, noise, rng)
    lost = np.vstack([noisy_parts, np.zeros(3)])
    two, three = (equal_means(GroupMoments(table, noise)) for table in (noisy_parts, lost))
    assert (two.groups, three.groups) == (2, 2)
    assert three.statistic == pytest.approx(two.statistic**2)
    assert three.pvalue == pytest.approx(two.pvalue, rel=0.05)


@pytest.mark.product
@pytest.mark.parametrize("law", ["laplace", "gaussian"])
def test_it_keeps_its_size_where_noise_is_most_of_the_error(law):
    rng = np.random.default_rng()
    noise, runs, level = Noise(law, 12.0, 0), 600, 0.05
    sizes = (300, 500, 1500)
    rejected = sum(
        equal_means(
            GroupMoments(parts([rng.beta(2, 6, size) for size in sizes], noise, rng), noise)
        ).pvalue
        < level
        for _ in range(runs)
    )
    # False alarms: 1e-6, if the size is at most 0.06; forgetting the noise rejects in most runs.
    assert rejected <= binom.isf(1e-6, runs, 0.06)


def test_it_says_why_there_is_none():
    none = equal_means(GroupMoments(np.zeros((3, 3)), Noise("laplace", 5.0, 0)))
    assert np.isnan(none.pvalue)
    assert "fewer than two groups" in none.reason
    of_many = equal_means(GroupMoments(np.full((MOST_GROUPS + 1, 3), 100.0), QUIET))
    assert "at most 200 groups" in of_many.reason


def test_groups_together_have_the_noise_of_the_sum():
    noise = Noise("laplace", 2.0, 13)
    together = GroupMoments(np.full((4, 3), 50.0), noise).together
    assert together.counts.tolist() == [600.0]
    # Of a public total of 13 parts, 12 are summed: the noise is that of the one left.
    variance = 12 * 4.0 * (1 - 12 / 13) ** 2 + 4.0 * (12 / 13) ** 2
    assert together.count_sd**2 == pytest.approx(variance)
