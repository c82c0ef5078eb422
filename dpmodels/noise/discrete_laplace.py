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

    `scale` is in lattice steps, 2^-7 to 2^56; int64 of shape (size,) comes back.

    Source: Ghosh, Roughgarden, Sundararajan (2009), Universally Utility-Maximizing Privacy
    Mechanisms (the geometric mechanism).

    ArgumentError if `scale` or `size` is outside its range.
    """
    return draw(_table(checked_scale("scale", scale, _LOWEST, _HIGHEST)), size, entropy)


def discrete_laplace_variance(scale: float) -> float:
    """Give the variance of `discrete_laplace`, to the precision of a float.

    It is 1/(2 sinh²(1/(2 scale))), a little below 2 scale².

    ArgumentError if `scale` is outside its range.
    """
    half = 0.5 / checked_scale("scale", scale, _LOWEST, _HIGHEST)
    return 0.5 / math.sinh(half) ** 2


@lru_cache(maxsize=64)
def _table(scale: float) -> Table:
    return tabulate(fit_envelope(Law(1 / Fraction(scale), Fraction(0))))
