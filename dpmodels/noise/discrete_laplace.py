"""The discrete Laplace (two-sided geometric) law on the integers, sampled exactly."""

import math
from fractions import Fraction
from functools import lru_cache

from dpmodels.noise.blocks import draw
from dpmodels.noise.envelope import fit_envelope
from dpmodels.noise.law import Law
from dpmodels.noise.protocol import Entropy
from dpmodels.noise.scale import checked_scale
from dpmodels.noise.table import Table, tabulate
from dpmodels.typing import Integers

# At 2^56 a draw outside int64 has probability exp(-128).
_LOWEST, _HIGHEST = 2.0**-7, 2.0**56


def discrete_laplace(scale: float, size: int, entropy: Entropy) -> Integers:
    """Draw from P(x) proportional to exp(-|x|/scale), x an integer, exactly.

    The law is that of the rational number the float `scale` is. It is exact:
    a candidate is accepted or refused by comparing uniform bits with a
    threshold whose error is bounded, and where the bound leaves it open, by
    integer arithmetic and further bits (see `dpmodels.noise.blocks`).

    Adding it to an integer statistic of L1 sensitivity s is
    (s/scale)-differentially private. An observer who can time the call is
    outside this statement.

    Parameters
    ----------
    scale : float
        Scale in lattice steps, 2^-7 to 2^56.
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
        If `scale` or `size` is outside its range.

    References
    ----------
    Ghosh, Roughgarden, Sundararajan (2009), Universally Utility-Maximizing
    Privacy Mechanisms (the geometric mechanism).

    Examples
    --------
    >>> from dpmodels.noise import seeded
    >>> draws = discrete_laplace(1000.0, 100_000, seeded(1))
    >>> draws.dtype, bool(abs(draws).mean().round(-2) == 1000)
    (dtype('int64'), True)
    """
    return draw(_table(checked_scale("scale", scale, _LOWEST, _HIGHEST)), size, entropy)


def discrete_laplace_variance(scale: float) -> float:
    """Give the variance of `discrete_laplace`, to the precision of a float.

    Parameters
    ----------
    scale : float
        Scale in lattice steps, 2^-7 to 2^56.

    Returns
    -------
    float
        1/(2 sinh²(1/(2 scale))), a little below 2 scale².

    Raises
    ------
    ArgumentError
        If `scale` is outside its range.

    Examples
    --------
    >>> discrete_laplace_variance(1.0)
    1.84...
    """
    half = 0.5 / checked_scale("scale", scale, _LOWEST, _HIGHEST)
    return 0.5 / math.sinh(half) ** 2


@lru_cache(maxsize=64)
def _table(scale: float) -> Table:
    return tabulate(fit_envelope(Law(1 / Fraction(scale), Fraction(0))))
