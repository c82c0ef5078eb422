"""The discrete Gaussian's privacy curve against the continuous one's, and the margin between."""

import math

import numpy as np
import pytest

from dpmodels.mechanisms.add_noise import SMALLEST_SCALE
from dpmodels.privacy import ApproxDP, gaussian_delta, gaussian_eps, gaussian_multiplier

# Times (1 + eps m)²/σ², of δ: what exact sums come to at most, at the worst eps.
EXCESS = 0.042
CASES = [(eps, m) for eps in (0.1, 1.0, 5.0) for m in (0.5, 1.0, 4.0, 8.0)]


def discrete_delta(eps, sigma, shift):
    """Return the hockey-stick divergence of a discrete Gaussian from its shift, by summation."""
    reach = math.ceil(14 * sigma) + shift
    x = np.arange(-reach, reach + shift + 1, dtype=np.float64)
    weight = np.exp(-(x**2) / (2 * sigma**2))
    shifted = np.exp(-((x - shift) ** 2) / (2 * sigma**2))
    return float(np.maximum(shifted - math.exp(eps) * weight, 0).sum() / weight.sum())


@pytest.mark.parametrize(("eps", "multiplier"), CASES)
@pytest.mark.parametrize("sigma", [2**7, 2**9, 2**11])
def test_the_excess_is_of_the_order_of_the_inverse_variance(eps, multiplier, sigma):
    continuous = gaussian_delta(eps, multiplier)
    if continuous < 1e-12:
        pytest.skip("delta is below what a float sum resolves")
    discrete = discrete_delta(eps, float(sigma), round(sigma / multiplier))
    # Rounding of the sum itself: 1e-13 of the total mass.
    assert (discrete - 1e-13) / continuous - 1 < EXCESS * (1 + eps * multiplier) ** 2 / sigma**2


@pytest.mark.parametrize("delta", [1e-12, 1e-9, 1e-6, 1e-2])
@pytest.mark.parametrize("eps", [0.01, 0.1, 1.0, 5.0, 20.0])
def test_the_calibration_keeps_more_than_the_excess_at_the_smallest_scale(eps, delta):
    multiplier = gaussian_multiplier(ApproxDP(eps, delta))
    fraction_left = 1 - gaussian_delta(eps, multiplier) / delta
    assert fraction_left > EXCESS * (1 + eps * multiplier) ** 2 / SMALLEST_SCALE**2


@pytest.mark.parametrize(("sigma", "delta", "times"), [(0.5, 1e-9, 4), (1.0, 1e-9, 1.6)])
def test_noise_of_few_steps_loses_more_than_it_is_priced_at(sigma, delta, times):
    """Why counts are noised in parts of a row."""
    eps = gaussian_eps(delta, sigma)
    assert discrete_delta(eps, sigma, 1) > times * delta
