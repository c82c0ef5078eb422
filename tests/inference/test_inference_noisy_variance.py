"""Intervals by a noisy variance cover what they say, wherever they are made."""

import numpy as np
import pytest
from scipy.stats import norm

from dpmodels.inference.sandwich import DETECTION_SDS, normal_width

Z = np.linspace(-8, 8, 4_001)
WEIGHTS = norm.pdf(Z) / norm.pdf(Z).sum()


def coverage(strength, level, width=normal_width):
    """Of a new value whose variance is so many sds of its noise, where an interval is made."""
    half = width(strength + Z, 1.0, level)
    is_finite = ~np.isnan(half)
    level_reached = 2 * norm.cdf(half[is_finite] / np.sqrt(strength)) - 1
    return float(WEIGHTS[is_finite] @ level_reached / WEIGHTS[is_finite].sum()), float(
        WEIGHTS[is_finite].sum()
    )


@pytest.mark.parametrize("level", [0.8, 0.95, 0.99])
def test_they_cover_at_least_the_level_whatever_the_variance(level):
    for strength in np.geomspace(0.05, 200, 40):
        level_reached, _ = coverage(strength, level)
        assert level_reached >= level - 1.5e-3


def test_they_cover_the_level_where_the_variance_is_clear():
    for strength, bound in ((5, 0.952), (8, 0.951), (50, 0.9501)):
        levels, is_finite = coverage(strength, 0.95)
        assert 0.9495 < levels < bound
        assert is_finite > 0.998
    assert coverage(3, 0.95)[0] == pytest.approx(0.966, abs=1e-3)


def test_by_the_variance_alone_they_would_not():
    def plain(variance, sd, level):
        return norm.ppf((1 + level) / 2) * np.sqrt(np.where(variance > 0, variance, np.nan))

    assert coverage(3.5, 0.95, plain)[0] < 0.94


def test_a_variance_that_is_lost_has_its_upper_limit_and_an_unknown_one_no_interval():
    z, variances = norm.ppf(0.975), np.array([-1.0, 0.0, DETECTION_SDS - 0.01])
    widths = normal_width(variances, 1.0, 0.95)
    assert widths == pytest.approx(
        z * np.sqrt([DETECTION_SDS, DETECTION_SDS, 2 * DETECTION_SDS - 0.01])
    )
    assert (widths > normal_width(np.array([DETECTION_SDS + 0.01]), 1.0, 0.95) * 0.8).all()
    assert normal_width(np.array([4.0]), 0.0, 0.95) == pytest.approx(2 * norm.ppf(0.975))
    assert np.isnan(normal_width(np.array([1.0]), np.nan, 0.95)).all()
