"""The discrete Gaussian law on the integers, sampled exactly."""

from fractions import Fraction
from functools import lru_cache

import mpmath

from dpmodels.noise.blocks import draw
from dpmodels.noise.envelope import fit_envelope
from dpmodels.noise.law import Law
from dpmodels.noise.protocol import Entropy
from dpmodels.noise.scale import checked_scale
from dpmodels.noise.table import Table, tabulate
from dpmodels.typing import Integers

_LOWEST, _HIGHEST = 2.0**-7, 2.0**58
# From here on sigma² - variance is below 2^-53 sigma² (Poisson summation).
_CONTINUOUS_FROM = 2.0


def discrete_gaussian(sigma: float, size: int, entropy: Entropy) -> Integers:
    """Draw from P(x) proportional to exp(-x²/(2 sigma²)), x an integer, exactly.

    The law is that of the rational number the float `sigma` is. It is exact:
    a candidate is accepted or refused by comparing uniform bits with a
    threshold whose error is bounded, and where the bound leaves it open, by
    integer arithmetic and further bits (see `dpmodels.noise.blocks`).

    Adding it to an integer statistic of L2 sensitivity s costs
    rho = s²/(2 sigma²) of zero-concentrated differential privacy, as the
    continuous Gaussian does. An observer who can time the call is outside
    this statement.

    `sigma` is in lattice steps, 2^-7 to 2^58; int64 of shape (size,) comes back.

    Source: Canonne, Kamath, Steinke (2020), The Discrete Gaussian for Differential Privacy.

    ArgumentError if `sigma` or `size` is outside its range.
    """
    return draw(_table(checked_scale("sigma", sigma, _LOWEST, _HIGHEST)), size, entropy)


def discrete_gaussian_variance(sigma: float) -> float:
    """Give the variance of `discrete_gaussian`, to the precision of a float.

    It is at most sigma², and equal to it as a float from sigma = 2 on.

    ArgumentError if `sigma` is outside its range.
    """
    sigma = checked_scale("sigma", sigma, _LOWEST, _HIGHEST)
    if sigma >= _CONTINUOUS_FROM:
        return sigma * sigma
    with mpmath.workprec(128):
        squares = [m * m for m in range(1, 32)]
        weights = [mpmath.exp(-square / (2 * mpmath.mpf(sigma) ** 2)) for square in squares]
        return float(2 * mpmath.fdot(squares, weights) / (1 + 2 * mpmath.fsum(weights)))


@lru_cache(maxsize=64)
def _table(sigma: float) -> Table:
    return tabulate(fit_envelope(Law(Fraction(0), 1 / (2 * Fraction(sigma) ** 2))))
