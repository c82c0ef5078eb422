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

    Parameters
    ----------
    sigma : float
        Scale in lattice steps, 2^-7 to 2^58.
    size : int
        How many draws, at least 0.
    entropy : Entropy
        Where the random words come from: `dpmodels.noise.source`.

    Returns
    -------
    ndarray of int64, shape (size,)

    Raises
    ------
    ArgumentError
        If `sigma` or `size` is outside its range.

    References
    ----------
    Canonne, Kamath, Steinke (2020), The Discrete Gaussian for Differential
    Privacy.

    Examples
    --------
    >>> from dpmodels.noise import seeded
    >>> draws = discrete_gaussian(1000.0, 100_000, seeded(1))
    >>> draws.dtype, bool(abs(draws.std() / 1000 - 1) < 0.02)
    (dtype('int64'), True)
    """
    return draw(_table(checked_scale("sigma", sigma, _LOWEST, _HIGHEST)), size, entropy)


def discrete_gaussian_variance(sigma: float) -> float:
    """Give the variance of `discrete_gaussian`, to the precision of a float.

    Parameters
    ----------
    sigma : float
        Scale in lattice steps, 2^-7 to 2^58.

    Returns
    -------
    float
        At most sigma², and equal to it as a float from sigma = 2 on.

    Raises
    ------
    ArgumentError
        If `sigma` is outside its range.

    Examples
    --------
    >>> discrete_gaussian_variance(0.5)
    0.215...
    >>> discrete_gaussian_variance(1024.0)
    1048576.0
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
