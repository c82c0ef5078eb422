"""Which algorithms are beaten in a cell: by t-tests of the differences of their errors."""

import math

import numpy as np
import pytest
from scipy.stats import ttest_1samp

from dpmodels.evaluation.verb import _above

RNG = np.random.default_rng(3)


@pytest.mark.parametrize("shift", [-0.5, 0.0, 0.4, 0.8])
def test_a_mean_is_above_zero_by_a_one_sided_t_test(shift):
    differences = RNG.normal(size=20) + shift
    pvalue = ttest_1samp(differences, 0.0, alternative="greater").pvalue
    assert _above(differences, pvalue * 1.01)
    assert not _above(differences, pvalue * 0.99)


def test_equal_differences_are_above_zero_where_they_are_positive():
    for value in (0.25, 1.0, 3.0, 1e-9):
        assert _above(np.full(5, value), 0.05)
        assert not _above(np.full(5, -value), 0.05)
    assert not _above(np.zeros(5), 0.05)


def test_nothing_is_above_zero_of_one_run_or_of_lost_ones():
    assert not _above(np.array([5.0]), 0.05)
    assert not _above(np.array([5.0, math.nan, 5.0]), 0.05)
