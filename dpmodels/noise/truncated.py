"""The discrete Laplace law held within a bound, sampled exactly, and its distribution."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np

from dpmodels.noise.coins import exp_coins
from dpmodels.noise.discrete import discrete_laplace
from dpmodels.noise.protocol import Entropy
from dpmodels.noise.uniform import uniform_integer
from dpmodels.typing import Floats, Integers

# Bits that the mass at the bound is worked out to, and by how much it is taken for more.
_BITS, _UP = 256, 1 + 2.0**-100


def truncated_laplace(scale: float, most: int, size: int, entropy: Entropy) -> Integers:
    """Draw from P(x) proportional to exp(-|x|/scale), x an integer within `most`, exactly.

    Where the bound is not below the scale, Laplace draws beyond it are drawn again; below it, a
    whole number uniform within the bound is accepted with probability ``exp(-|x|/scale)``. Either
    way a draw is accepted with probability 1/3 or more, whatever the budget. `scale` as for
    :func:`discrete_laplace`; int64 of shape (size,) comes back.

    >>> from dpmodels.noise import seeded
    >>> int(abs(truncated_laplace(10.0, 7, 1000, seeded(1))).max())
    7
    """
    if most < scale:
        return _of_uniform(Fraction(scale), most, size, entropy)
    drawn = discrete_laplace(scale, size, entropy)
    beyond = np.flatnonzero(np.abs(drawn) > most)
    while beyond.size:
        drawn[beyond] = discrete_laplace(scale, beyond.size, entropy)
        beyond = beyond[np.abs(drawn[beyond]) > most]
    return drawn


def _of_uniform(scale: Fraction, most: int, size: int, entropy: Entropy) -> Integers:
    drawn = np.empty(size, dtype=np.int64)
    waiting = np.arange(size)
    while waiting.size:
        proposed = [uniform_integer(2 * most + 1, entropy) - most for _ in range(waiting.size)]
        drawn[waiting] = proposed
        accepted = exp_coins(np.abs(drawn[waiting]), 1 / scale, entropy)
        waiting = waiting[~accepted]
    return drawn


def least_bound(scale: float, chance: float) -> int:
    """Return the least bound that a draw reaches, on one side, with at most this probability.

    With ``q = exp(-1/scale)`` a draw is k, or -k, with probability ``(1 - q) q**k / (1 + q - 2
    q**(k + 1))``, which falls with k: it is at most `chance` from ``log((1 - q + 2 q chance) /
    (chance (1 + q))) * scale`` on. `chance` is in (0, 1); it is met to the last bit.
    """
    import mpmath

    with mpmath.workprec(_BITS):
        q, share = mpmath.exp(-1 / _exactly(scale)), _exactly(chance)
        least = mpmath.log((1 - q + 2 * q * share) / (share * (1 + q))) * _exactly(scale)
        bound = max(int(mpmath.ceil(least)) - 1, 1)
        while (1 - q) * q**bound / (1 + q - 2 * q ** (bound + 1)) * _UP > share:
            bound += 1
        return bound


def _exactly(number: float) -> Any:
    import mpmath

    own = Fraction(number)
    return mpmath.mpf(own.numerator) / own.denominator


def below(x: Floats, scale: float, most: int) -> Floats:
    """Return the probability of a draw of at most x, whole numbers.

    >>> import numpy as np
    >>> below(np.array([-3.0, -2.0, 0.0, 2.0]), 1.0, 2).round(3)
    array([0.   , 0.067, 0.749, 1.   ])
    """
    ratio = math.exp(-1 / scale)
    whole = 1 + ratio - 2 * ratio ** (most + 1)
    held = np.clip(x, -most - 1, most)
    # Sums of q**k from |x| to the bound, of the smaller side.
    size = np.where(held < 0, -held, held + 1)
    tail = np.maximum(np.exp(-size / scale) - ratio ** (most + 1), 0.0) / whole
    return np.where(held < 0, tail, 1 - tail)
