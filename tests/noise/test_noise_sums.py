"""Sums of noise against closed forms, from the middle to as far as anyone may ask."""

import math

import numpy as np
import pytest
from scipy import stats

from dpmodels.noise.sums import FAR, half_width, upper_tail

ONE = np.array([1.0])
LAPLACE_SD = math.sqrt(2)
PLACES = (0.0, 0.1, 1.0, 2.5, 7.0)


@pytest.mark.parametrize("x", PLACES)
def test_one_laplace_variable(x):
    assert upper_tail("laplace", ONE, LAPLACE_SD, 0.0, x) == pytest.approx(
        math.exp(-x) / 2, abs=2e-7
    )


@pytest.mark.parametrize("x", PLACES)
def test_the_sum_of_two_alike(x):
    exact = math.exp(-x) * (2 + x) / 4
    assert upper_tail("laplace", np.ones(2), LAPLACE_SD, 0.0, x) == pytest.approx(exact, abs=1e-8)


@pytest.mark.parametrize("normal_sd", [0.2, 1.0, 5.0])
@pytest.mark.parametrize("x", PLACES)
def test_laplace_and_normal_together(x, normal_sd):
    s, below = normal_sd, stats.norm.cdf
    skewed = math.exp(-x) * below(x / s - s) - math.exp(x) * below(-x / s - s)
    exact = below(-x / s) + math.exp(s * s / 2) * skewed / 2
    result = upper_tail("laplace", ONE, LAPLACE_SD, normal_sd, x)
    assert result == pytest.approx(exact, abs=1e-5)


def test_weights_count_by_their_size():
    weights = np.array([3.0, -3.0, 0.0])
    direct = upper_tail("laplace", np.ones(2), 3 * LAPLACE_SD, 0.0, 4.0)
    assert upper_tail("laplace", weights, LAPLACE_SD, 0.0, 4.0) == pytest.approx(direct, rel=1e-9)


@pytest.mark.parametrize("law", ["laplace", "gaussian"])
@pytest.mark.parametrize("weights", [ONE, np.array([1.0, 0.5, 0.2])])
def test_the_tail_falls_for_ever(law, weights):
    """The inversion repeats itself far out, where a tail of 1/2 would come back."""
    sd = float(np.sqrt((weights**2).sum()))
    close = [upper_tail(law, weights, 1.0, 0.0, x * sd) for x in (12.0, FAR - 0.01)]
    distant = [upper_tail(law, weights, 1.0, 0.0, x * sd) for x in (FAR + 0.01, 42, 60, 1e6)]
    assert max(close) < 1e-7
    assert distant == sorted(distant, reverse=True)
    assert distant[0] < 1e-9


@pytest.mark.parametrize("law", ["laplace", "gaussian"])
@pytest.mark.parametrize("level", [0.5, 0.95, 0.999])
@pytest.mark.parametrize("normal_sd", [0.0, 0.7])
def test_a_half_width_leaves_its_tails(law, level, normal_sd):
    weights = np.array([1.0, -0.4, 0.1])
    width = half_width(law, weights, 2.0, normal_sd, level)
    assert 2 * upper_tail(law, weights, 2.0, normal_sd, width) == pytest.approx(1 - level, rel=1e-3)


def test_no_noise_has_no_width():
    assert half_width("laplace", np.zeros(3), 1.0, 0.0, 0.95) == 0.0
    assert upper_tail("laplace", np.zeros(3), 1.0, 0.0, 0.1) == 0.0
