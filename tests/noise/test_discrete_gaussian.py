import numpy as np
import pytest
from scipy import stats

from dpmodels.errors import ArgumentError
from dpmodels.noise import discrete_gaussian, secure, seeded

DRAWS = 1_000_000


@pytest.mark.parametrize("sigma", [2.0**20, 2.0**43, 3e12])
def test_large_scales_agree_with_the_normal_law(sigma):
    draws = discrete_gaussian(sigma, DRAWS, seeded(51))
    # Kolmogorov-Smirnov, false-alarm rate 1e-7.
    assert stats.kstest(draws / sigma, "norm").pvalue > 1e-7


@pytest.mark.parametrize(("sigma", "low_bit"), [(2.0**20, 0), (2.0**43, 0), (2.0**43, 34)])
def test_low_bits_are_uniform_at_large_scales(sigma, low_bit):
    draws = discrete_gaussian(sigma, DRAWS, seeded(52))
    recorded = np.bincount((draws >> low_bit) & 255, minlength=256)
    # Chi-square on 255 degrees of freedom, false-alarm rate 1e-7; the law's own distance from
    # uniform on these bits is below exp(-2 pi² 4) of its mass.
    assert ((recorded - DRAWS / 256) ** 2 / (DRAWS / 256)).sum() < stats.chi2.isf(1e-7, 255)


def exact_variance(sigma):
    if sigma > 8:  # Equal to a float.
        return sigma**2
    values = np.arange(1, 40 * max(1, round(sigma)))
    weights = np.exp(-(values**2) / (2 * sigma**2))
    return 2 * (values**2) @ weights / (1 + 2 * weights.sum())


@pytest.mark.parametrize("sigma", [0.3, 0.5, 1.0, 3.0, 10.0, 1000.5, 2.0**30, 2.0**58])
def test_mean_and_variance(sigma):
    draws = discrete_gaussian(sigma, DRAWS, seeded(53)).astype(np.float64)
    variance = exact_variance(sigma)
    error = np.sqrt(np.var(draws**2) / DRAWS)
    # Two z-tests at 5.5 standard errors: false-alarm rate 4e-8 each.
    assert abs(draws.mean()) < 5.5 * np.sqrt(variance / DRAWS)
    assert abs((draws**2).mean() - variance) < 5.5 * error


def test_the_smallest_scale_is_zero_but_for_exp_8192():
    assert not discrete_gaussian(2.0**-7, 10_000, secure()).any()


def test_seeded_draws_repeat_and_secure_draws_do_not():
    assert (discrete_gaussian(1e6, 9, seeded(1)) == discrete_gaussian(1e6, 9, seeded(1))).all()
    # All nine equal with probability below 1e-50.
    assert (discrete_gaussian(1e6, 9, secure()) != discrete_gaussian(1e6, 9, secure())).any()


@pytest.mark.parametrize("sigma", [0, -1.0, 2.0**-8, 2.0**59, np.nan, np.inf, -np.inf])
def test_a_scale_out_of_range_is_refused_with_the_range(sigma):
    with pytest.raises(ArgumentError, match=r"sigma=.* from 2\^-7 to 2\^58"):
        discrete_gaussian(sigma, 1, seeded(1))


@pytest.mark.parametrize("sigma", ["1", None, True, 1j, np.array([1.0, 2.0])])
def test_a_scale_is_a_real_number(sigma):
    with pytest.raises(ArgumentError, match="expected a number from"):
        discrete_gaussian(sigma, 1, seeded(1))


def test_numpy_scalars_and_integers_are_scales():
    expected = discrete_gaussian(3.0, 20, seeded(2))
    for sigma in (3, np.float64(3), np.float32(3), np.int32(3)):
        assert (discrete_gaussian(sigma, 20, seeded(2)) == expected).all()
