"""The law of combinations of parameters with the other parameters solved for.

At the value b of a combination the score has the variance of residuals that are linear in b: an
interval is where the squared distance is below that variance times a squared quantile.

Fieller, E. C. (1954). "Some problems in interval estimation." Journal of the Royal Statistical
Society B 16, 175-185.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpmodels.typing import Floats

# Not 0, and not a number that anything else comes near.
_LEAST = 1e-300


@dataclass(frozen=True)
class Combinations:
    """The law of combinations of parameters, each of shape (combinations,).

    At ``b = middle + t`` the variance is ``fixed - 2 t across + t² bend``. `known` are those of
    which the release tells anything.
    """

    middle: Floats
    fixed: Floats
    across: Floats
    bend: Floats
    known: NDArray[np.bool_]

    def ends(self, width: float) -> Floats:
        """Return where t² is `width` squared times the variance, shape (combinations, 2)."""
        a = 1 - width**2 * self.bend
        bounded = a > 0
        half = width**2 * self.across
        root = np.sqrt(np.where(bounded, half**2 + a * width**2 * self.fixed, 0.0))
        divisor = np.where(bounded, a, 1.0)
        low = np.where(bounded, self.middle - (half + root) / divisor, -np.inf)
        return np.column_stack(
            [low, np.where(bounded, self.middle + (root - half) / divisor, np.inf)]
        )

    def root(self, values: Floats) -> Floats:
        """Return the signed root of the statistic at `values`."""
        t = values - self.middle
        variance = self.fixed - 2 * t * self.across + t**2 * self.bend
        return np.asarray(-t / np.sqrt(np.maximum(variance, _LEAST)))
