"""Tests that zCDP allows: at the edge of what the divergences of two events may be."""

import numpy as np
import pytest
from scipy.stats import norm

from dpmodels.privacy.concentrated import least_rho, zcdp_misses, zcdp_profile

RATES = np.array([1e-6, 1e-3, 0.05, 0.3, 0.5, 0.9, 0.999])


@pytest.mark.parametrize("rho", [1e-4, 0.1, 0.5, 2.0])
def test_the_best_event_uses_up_rho(rho):
    np.testing.assert_allclose(least_rho(1 - zcdp_misses(RATES, rho), RATES), rho, rtol=1e-6)


@pytest.mark.parametrize("rho", [0.1, 2.0])
def test_gaussian_noise_of_the_same_rho_misses_more(rho):
    gaussian = norm.cdf(norm.isf(RATES) - np.sqrt(2 * rho))
    assert (zcdp_misses(RATES, rho) < gaussian).all()


@pytest.mark.parametrize("rho", [1e-4, 0.1, 2.0])
def test_the_curve_is_its_own_inverse_and_its_ends_are_certain(rho):
    np.testing.assert_allclose(zcdp_misses(zcdp_misses(RATES, rho), rho), RATES, rtol=1e-9)
    assert zcdp_misses(np.array([0.0, 1.0]), rho).tolist() == [1.0, 0.0]


@pytest.mark.parametrize("rho", [0.1, 2.0])
def test_no_event_exceeds_the_profile(rho):
    alarms = np.linspace(0, 1, 401)
    for eps in (0.0, 0.3, 1.0, 3.0):
        largest = (1 - zcdp_misses(alarms, rho) - np.exp(eps) * alarms).max()
        assert largest <= float(zcdp_profile(np.array(eps), rho)) + 1e-10


def test_rates_keep_their_shape_and_huge_budgets_allow_everything():
    assert zcdp_misses(np.full((2, 3), 0.05), 0.5).shape == (2, 3)
    assert zcdp_misses(np.array([0.05]), 1e100).tolist() == [0.0]
