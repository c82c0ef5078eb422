"""P-values and levels adjusted for several tests."""

from __future__ import annotations

import math
from typing import Final

import numpy as np
from scipy.special import erf, ndtri

from dpmodels.typing import Floats

ADJUSTMENTS: Final = {
    "holm": "p-values by Holm's method, intervals by Bonferroni's",
    "bonferroni": "p-values and intervals by Bonferroni's method",
    "sidak": "p-values and intervals by Sidak's method",
    "none": "unadjusted p-values and intervals",
}


def adjusted_pvalues(p_values: Floats, method: str) -> Floats:
    """Return p-values that control the familywise error rate; nan stays nan.

    A test without a p-value counts as one.

    .. [1] Holm, S. (1979). "A simple sequentially rejective multiple test procedure."
       Scandinavian Journal of Statistics 6(2), 65-70.
    """
    tests = len(p_values)
    match method:
        case "none":
            return p_values
        case "sidak":
            return np.asarray(-np.expm1(tests * np.log1p(-p_values)))
        case "bonferroni":
            return np.minimum(tests * p_values, 1.0)
    order = np.argsort(p_values, kind="stable")
    steps = np.maximum.accumulate((tests - np.arange(tests)) * p_values[order])
    adjusted_values = np.empty(tests)
    adjusted_values[order] = np.minimum(steps, 1.0)
    return np.where(np.isnan(p_values), np.nan, adjusted_values)


def simultaneous(level: float, intervals: int, method: str) -> float:
    """Return the level of each interval at which all are covered jointly."""
    if method == "none" or intervals < 2:
        return level
    return float(level ** (1 / intervals)) if method == "sidak" else 1 - (1 - level) / intervals


def largest(sds: Floats, level: float) -> float:
    """Return a bound on the size of all normal variables at once, with at least this probability.

    For any correlation: no correlation lowers the probability below that of independence [1]_.

    .. [1] Sidak, Z. (1967). "Rectangular confidence regions for the means of multivariate normal
       distributions." Journal of the American Statistical Association 62, 626-633.
    """
    from scipy.optimize import brentq

    positive = sds[sds > 0]
    if not len(positive):
        return 0.0
    roots = math.sqrt(2) * positive / positive.max()
    ends = (float(ndtri((1 + coverage) / 2)) for coverage in (level, level ** (1 / len(positive))))
    low, high = next(ends) * (1 - 1e-9), next(ends) * (1 + 1e-9)
    within = brentq(lambda bound: float(np.prod(erf(bound / roots))) - level, low, high)
    return float(within * positive.max())
