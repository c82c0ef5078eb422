import math

import numpy as np
import pytest

from dpmodels.privacy import calibrate as under_test
from dpmodels.privacy.calibrate import composed_eps


def test_equal_releases_have_binomial_losses():
    losses, mass = under_test._binomial_losses(0.5, 3)
    p = math.exp(0.5) / (1 + math.exp(0.5))
    assert losses == pytest.approx([-1.5, -0.5, 0.5, 1.5])
    assert mass == pytest.approx([(1 - p) ** 3, 3 * p * (1 - p) ** 2, 3 * p**2 * (1 - p), p**3])


@pytest.mark.parametrize(("eps", "count"), [(0.1, 5000), (1e-3, 50_000), (0.02, 4000)])
def test_binomial_masses_are_those_of_both_hypotheses(eps, count):
    losses, mass = under_test._binomial_losses(eps, count)
    assert mass.sum() == pytest.approx(1, abs=1e-9)
    assert (mass * np.exp(-losses)).sum() == pytest.approx(1, abs=1e-9)


@pytest.mark.parametrize("width", [0.01, 1.0, 30.0])
def test_coarser_losses_keep_both_hypotheses_and_never_lower_the_curve(width):
    fine = np.sort(np.sin(np.arange(10_000.0)) * width)
    mass = np.exp(-(np.linspace(-1, 4, fine.size) ** 2))
    mass /= mass.sum()
    grid, spread = under_test._coarsened(fine, mass)
    assert grid.size == spread.size <= 2048
    assert (spread >= 0).all()
    assert spread.sum() == pytest.approx(1, rel=1e-12)
    assert spread @ np.exp(-grid) == pytest.approx(mass @ np.exp(-fine), rel=1e-10)
    for eps in np.linspace(-width, width, 101):
        before = mass @ -np.expm1(np.minimum(eps - fine, 0))
        after = spread @ -np.expm1(np.minimum(eps - grid, 0))
        assert before <= after + 1e-13
        assert after <= before + (2 * width / 2047)


def test_few_losses_are_left_as_they_are():
    losses, mass = np.array([-1.0, 1.0]), np.array([0.25, 0.75])
    assert under_test._coarsened(losses, mass) == (losses, mass)


def test_extremes_of_the_price():
    assert composed_eps(0.9, math.inf, {1e-3: 1}) == 0
    assert composed_eps(1e-300, math.inf, {0.5: 4}) == pytest.approx(2.0)
    assert composed_eps(1e-6, math.inf, {1e9: 2}) == pytest.approx(2e9)
    assert composed_eps(1e-6, math.inf, {0.1: 100_001}) == math.inf
