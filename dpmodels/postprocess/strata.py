"""Squared sums of the scores of strata: what errors of means, counts and regressions share.

For n units of a stratum of N the squared scores count ``n/(n - 1) (1 - n/N)`` times, and the square
of the stratum's sum, over n, is taken off. Where noise hides that square it stays.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from dpmodels.typing import Floats

# How far the excess of capped units may be unlike what is put back, as a fraction: a choice.
UNLIKE: Final = 0.25
# Strata are used where their noise is below this fraction of the squares, and where the units of
# each are so many noise sds: choices.
CLEAR: Final = 0.1
DETECTED: Final = 4.0


def unit_factors(n_units: Floats, sampled: Floats | float) -> Floats:
    """Return the factors of squared scores, from the fraction of the population that is sampled.

    A noisy fraction of 1 or more has no effect.

    >>> unit_factors(np.array([2.0, 5.0]), np.array([0.5, 1.0]))
    array([1.  , 1.25])
    """
    left = 1 - sampled
    return np.asarray(n_units / (n_units - 1) * np.where(left > 0, left, 1.0))


def noise_of_squares(sums: Floats, variance: Floats | float, n_units: Floats) -> Floats:
    """Return the noise sd of the squared sums of strata over their units, added up.

    `sums`, shape (strata, scores), have noise of the variance given.
    """
    squares = (4 * sums**2 * variance + 2 * variance**2) / n_units**2
    return np.asarray(np.sqrt(squares.sum(axis=0)))
