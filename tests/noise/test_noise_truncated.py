"""Discrete Laplace noise held within a bound: its law, and the least bound of a mass."""

import math

import numpy as np
import pytest
from scipy import stats

from dpmodels.noise import seeded
from dpmodels.noise.discrete import below, least_bound, truncated_laplace


def masses(scale, limit):
    weights = np.exp(-np.abs(np.arange(-limit, limit + 1)) / scale)
    return weights / weights.sum()


@pytest.mark.parametrize(("scale", "limit"), [(0.4, 2), (3.0, 4), (20.0, 150)])
def test_draws_follow_the_law(scale, limit):
    draws = truncated_laplace(scale, limit, 40_000, seeded(7))
    result = np.bincount(draws + limit, minlength=2 * limit + 1)
    expected = masses(scale, limit) * 40_000
    is_expected = expected > 5
    result = np.append(result[is_expected], result[~is_expected].sum())
    expected = np.append(expected[is_expected], expected[~is_expected].sum())
    is_expected = expected > 0
    # False alarms: 1e-6.
    assert stats.chisquare(result[is_expected], expected[is_expected]).pvalue > 1e-6


@pytest.mark.parametrize(("scale", "limit"), [(0.4, 2), (3.0, 4), (20.0, 150)])
def test_the_distribution_is_the_sum_of_masses(scale, limit):
    places = np.arange(-limit - 2, limit + 3, dtype=float)
    expected = np.concatenate([[0, 0], np.cumsum(masses(scale, limit)), [1, 1]])
    np.testing.assert_allclose(below(places, scale, limit), expected, rtol=0, atol=1e-14)


@pytest.mark.parametrize("scale", [2.0**-7, 0.3, 1.0, 40.0, 1e5])
@pytest.mark.parametrize("chance", [0.4, 1e-3, 1e-9, 1e-300])
def test_the_bound_is_the_least_that_has_no_more_mass(scale, chance):
    def log_mass(bound):
        q = math.exp(-1 / scale)
        log_mass = math.log1p(q - 2 * q ** (bound + 1))
        return math.log(-math.expm1(-1 / scale)) - bound / scale - log_mass

    bound = least_bound(scale, chance)
    assert log_mass(bound) <= math.log(chance) + 1e-9
    assert bound == 1 or log_mass(bound - 1) > math.log(chance) - 1e-9


def test_a_bound_far_below_the_scale_is_drawn_as_fast():
    """Drawn again until within the bound, such draws never ended; chi-square at 1e-9."""
    scale, limit, size = 2.0**40, 3, 14_000
    draws = truncated_laplace(scale, limit, size, seeded(3))
    counts = np.bincount(draws + limit, minlength=2 * limit + 1)
    assert ((counts - size / 7) ** 2 / (size / 7)).sum() < 53.0
    scale, limit = 4.0, 3
    draws = truncated_laplace(scale, limit, size, seeded(4))
    chances = np.exp(-np.abs(np.arange(-limit, limit + 1)) / scale)
    expected = size * chances / chances.sum()
    counts = np.bincount(draws + limit, minlength=2 * limit + 1)
    assert ((counts - expected) ** 2 / expected).sum() < 53.0
