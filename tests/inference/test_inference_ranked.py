"""How sure an order is, against draws; correlations of noisy scatters to first order."""

import math

import numpy as np
import pytest

from dpmodels.inference.screening_tests import above_next, associated_correlations


@pytest.mark.parametrize("law", ["gaussian", "laplace"])
def test_the_probability_is_that_of_the_difference_of_two_noises(law):
    rng = np.random.default_rng(1)
    draw = rng.normal if law == "gaussian" else rng.laplace
    sd = 2.0 if law == "gaussian" else 2.0 * math.sqrt(2)
    values = np.array([5.0, 4.0, 4.5, -3.0])
    result = above_next(values, np.full(4, sd**2), law)
    noise = draw(0.0, 2.0, (2, 200_000))
    for place, gap in enumerate(-np.diff(values)):
        # Six standard errors of a share: a false alarm in 5e8.
        outcome = float((noise[0] - noise[1] < gap).mean())
        assert result[place] == pytest.approx(outcome, abs=6 * 0.5 / math.sqrt(200_000))
    assert math.isnan(result[-1])
    assert above_next(values[:0], values[:0], law).size == 0


def test_correlations_have_the_noise_of_the_delta_method():
    rng, sd, runs = np.random.default_rng(2), 3.0, 4000
    exact = np.array([60.0, 100.0, 400.0])
    result = associated_correlations(exact[:1], exact[1:2], exact[2], sd)
    assert result.values[0] == pytest.approx(0.3)
    noisy = exact + rng.normal(0, sd, (runs, 3))
    draws = noisy[:, 0] / np.sqrt(noisy[:, 1] * noisy[:, 2])
    # The sd of so many draws is known to 1.1 percent; 6 of these and the second order.
    assert result.sd(sd)[0] == pytest.approx(draws.std(), rel=0.08)
    low, high = result.interval(sd, "gaussian", 0.95)
    assert low[0] < 0.3 < high[0]
    assert high[0] - low[0] == pytest.approx(2 * 1.96 * result.sd(sd)[0], rel=1e-3)


def test_what_is_not_told_from_none_has_no_correlation():
    result = associated_correlations(np.array([5.0, 5.0]), np.array([3.0, 900.0]), 400.0, 1.0)
    assert np.isnan(result.values).tolist() == [True, False]
    low, high = result.interval(1.0, "laplace", 0.9)
    assert (low[0], high[0]) == (-1.0, 1.0)
