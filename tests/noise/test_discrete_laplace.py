import mpmath
import numpy as np
import pytest
from scipy import stats

from dpmodels.errors import ArgumentError
from dpmodels.noise import discrete_laplace, discrete_laplace_variance, secure, seeded

DRAWS = 1_000_000


@pytest.mark.product
@pytest.mark.parametrize("scale", [2.0**20, 2.0**43, 3e12])
def test_large_scales_agree_with_the_laplace_law(scale):
    draws = discrete_laplace(scale, DRAWS, seeded(61))
    # Kolmogorov-Smirnov, false-alarm rate 1e-7; the lattice moves the statistic by 2^-21 at most.
    assert stats.kstest(draws / scale, "laplace").pvalue > 1e-7


@pytest.mark.parametrize(("scale", "low_bit"), [(2.0**20, 0), (2.0**43, 0), (2.0**43, 24)])
def test_low_bits_are_uniform_at_large_scales(scale, low_bit):
    draws = discrete_laplace(scale, DRAWS, seeded(62))
    recorded = np.bincount((draws >> low_bit) & 255, minlength=256)
    # Chi-square on 255 degrees of freedom, false-alarm rate 1e-7; the law's own distance from
    # uniform on these bits is below (2^32/2^43)².
    assert ((recorded - DRAWS / 256) ** 2 / (DRAWS / 256)).sum() < stats.chi2.isf(1e-7, 255)


@pytest.mark.parametrize("scale", [0.3, 0.5, 1.0, 3.0, 10.0, 1000.5, 2.0**30, 2.0**56])
def test_mean_and_variance(scale):
    draws = discrete_laplace(scale, DRAWS, seeded(63)).astype(np.float64)
    variance = discrete_laplace_variance(scale)
    error = np.sqrt(np.var(draws**2) / DRAWS)
    # Two z-tests at 5.5 standard errors: false-alarm rate 4e-8 each.
    assert abs(draws.mean()) < 5.5 * np.sqrt(variance / DRAWS)
    assert abs((draws**2).mean() - variance) < 5.5 * error


@pytest.mark.parametrize("scale", [2.0**-7, 0.05, 0.3, 1.0, 7.3, 1e6, 2.0**56])
def test_the_variance_is_exact_to_a_float(scale):
    with mpmath.workprec(400):
        ratio = mpmath.exp(-1 / mpmath.mpf(scale))
        exact = float(2 * ratio / (1 - ratio) ** 2)
    assert discrete_laplace_variance(scale) == pytest.approx(exact, rel=1e-14, abs=0)


def test_the_smallest_scale_is_zero_but_for_exp_128():
    assert not discrete_laplace(2.0**-7, 10_000, secure()).any()


def test_seeded_draws_repeat_and_secure_draws_do_not():
    assert (discrete_laplace(1e6, 9, seeded(1)) == discrete_laplace(1e6, 9, seeded(1))).all()
    # All nine equal with probability below 1e-50.
    assert (discrete_laplace(1e6, 9, secure()) != discrete_laplace(1e6, 9, secure())).any()


@pytest.mark.parametrize("scale", [0, -1.0, 2.0**-8, 2.0**57, np.nan, np.inf])
@pytest.mark.parametrize(
    "function", [lambda s: discrete_laplace(s, 1, seeded(1)), discrete_laplace_variance]
)
def test_a_scale_out_of_range_is_refused_with_the_range(function, scale):
    with pytest.raises(ArgumentError, match=r"scale=.* from 2\^-7 to 2\^56"):
        function(scale)


@pytest.mark.parametrize("scale", ["1", None, True])
def test_a_scale_is_a_real_number(scale):
    with pytest.raises(ArgumentError, match="expected a number from"):
        discrete_laplace(scale, 1, seeded(1))
