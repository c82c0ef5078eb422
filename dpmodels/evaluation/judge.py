"""What errors of several algorithms on the same tables say of which to take.

*Regret* is an algorithm's mean error over the least of any in the setting. It is *competitive*
there if a one-sided t-test of its errors less those of the best, run by run on the same tables,
does not put it above at 5 % over the number of the others.
"""

from __future__ import annotations

import math
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from dpmodels.typing import Floats

ALPHA: Final = 0.05


class Judged(NamedTuple):
    """Of one setting, arrays of shape (algorithms,)."""

    mean: Floats
    se: Floats
    p95: Floats
    regret: Floats
    competitive: NDArray[np.bool_]


def judged(error: Floats, coverage: Floats, level: float) -> Judged:
    """Judge errors of shape (algorithms, repeats), none but of those whose intervals hold.

    Where coverage is not nan, an algorithm that covers less than `level` is out of the comparison,
    by the same test.
    """
    many, repeats = error.shape
    mean = error.mean(axis=1)
    se = error.std(axis=1, ddof=1) / math.sqrt(repeats) if repeats > 1 else np.full(many, np.nan)
    others = max(many - 1, 1)
    valid = np.array([not _above(level - own, ALPHA / many) for own in coverage])
    among = np.where(valid, mean, np.inf) if valid.any() else mean
    best = int(np.argmin(among))
    least = mean[best]
    regret = np.divide(mean, least, out=np.where(mean > 0, np.inf, 1.0), where=least > 0)
    beaten = np.array([_above(own - error[best], ALPHA / others) for own in error])
    return Judged(mean, se, np.quantile(error, 0.95, axis=1), regret, ~beaten & valid)


def _above(differences: Floats, alpha: float) -> bool:
    """Tell whether a mean is above 0, by a t-test; of equal numbers, whether they are."""
    repeats = len(differences)
    if np.isnan(differences).any() or repeats < 2:
        return False
    mean, se = differences.mean(), differences.std(ddof=1) / math.sqrt(repeats)
    if se <= 1e-12 * abs(mean):
        return bool(mean > 0)
    return bool(stats.t.sf(mean / se, repeats - 1) < alpha)
