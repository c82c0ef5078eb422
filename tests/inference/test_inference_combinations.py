"""Intervals of combinations: where a quadratic is negative, and the delta form far from noise."""

import numpy as np
import pytest

from dpmodels.inference.least_squares import Combinations


def test_ends_are_where_the_root_is_the_width():
    combinations = Combinations(*(np.array([v]) for v in (1.0, 0.04, 0.01, 0.02)), np.array([True]))
    for end, sign in zip(combinations.ends(1.96)[0], (1, -1), strict=True):
        assert combinations.root(np.array([end]))[0] == pytest.approx(sign * 1.96)


def test_without_noise_in_squares_it_is_the_delta_form():
    combinations = Combinations(*(np.array([v]) for v in (1.0, 0.04, 0.0, 0.0)), np.array([True]))
    assert combinations.ends(2.0) == pytest.approx(np.array([[0.6, 1.4]]))
    assert combinations.root(np.zeros(1)) == pytest.approx(5.0)


def test_what_noise_may_have_made_has_no_ends():
    combinations = Combinations(*(np.array([v]) for v in (1.0, 0.04, 0.0, 0.3)), np.array([True]))
    assert np.isinf(combinations.ends(2.0)).all()
