"""A test that several means are equal, which counts the noise in."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import fdtrc

from dpmodels.inference.differences import SMALLEST, difference
from dpmodels.inference.independence import EXCESS
from dpmodels.inference.means import GroupMoments
from dpmodels.typing import Floats

# A choice: the test solves a system of so many equations.
MOST_GROUPS = 200


@dataclass(frozen=True)
class EqualMeans:
    """A test that the means of all groups told from none are equal.

    ``t`` of two groups, ``F`` of more; `df_resid` are the degrees of freedom of the sampling part
    of ``t``, or of the divisor of ``F``. nan for the `reason` given.
    """

    statistic: float
    df: float
    df_resid: float
    pvalue: float
    groups: int
    reason: str = ""


def equal_means(moments: GroupMoments) -> EqualMeans:
    """Test whether groups have equal means, with noise and unequal variances counted in.

    Two groups by `difference`. Of more, the squared length of the contrasts of the means in the
    metric of their covariance, sampling and noise, is judged by Welch's law [1]_: the sampling
    variances alone are estimates, so that each enters his correction by its share of the variance
    of its mean. Laplace noise makes the statistic more variable by its fourth cumulants, and the
    law is stretched to that variance [2]_. Without noise the test is Welch's.

    .. [1] Welch, B. L. (1951). "On the comparison of several mean values: an alternative approach."
       Biometrika 38, 330-336.
    .. [2] Satterthwaite, F. E. (1946). "An approximate distribution of estimates of variance
       components." Biometrics Bulletin 2(6), 110-114.
    """
    told = np.flatnonzero(moments.told)
    if len(told) < 2:
        reason = "fewer than two groups can be told from none at this budget."
        return EqualMeans(math.nan, math.nan, math.nan, math.nan, len(told), reason)
    if len(told) > MOST_GROUPS:
        reason = f"it takes at most {MOST_GROUPS} groups."
        return EqualMeans(math.nan, math.nan, math.nan, math.nan, len(told), reason)
    if len(moments.parts) == 2:
        two = difference(moments)
        error = math.hypot(two.noise_sd, two.sampling_sd)
        return EqualMeans(two.estimate / error, 1.0, two.freedom, two.pvalue, 2)
    return _several(moments, told)


def _several(moments: GroupMoments, told: NDArray[np.intp]) -> EqualMeans:
    drawn = _drawn(moments)[told]
    means, sampling = moments.means[told], moments.joint_sampling_sd[told] ** 2
    covariance = np.diag(sampling) + drawn @ drawn.T
    contrasts = np.column_stack([np.eye(len(told) - 1), -np.ones(len(told) - 1)])
    values, vectors = np.linalg.eigh(contrasts @ covariance @ contrasts.T)
    metric = (vectors / np.sqrt(np.maximum(values, 1e-300))).T @ contrasts
    df = len(told) - 1
    statistic = float(((metric @ means) ** 2).sum()) / df
    excess = EXCESS[moments.noise.law] * float((((metric @ drawn) ** 2).sum(axis=0) ** 2).sum())
    larger = 1 + excess / (2 * df)
    spread = np.diag(covariance)
    weights = 1 / np.maximum(spread, 1e-300)
    unsure = (1 - weights / weights.sum()) ** 2 * (sampling * weights) ** 2
    lacking = float((unsure / np.maximum(moments.independent[told] - 1, 1.0)).sum())
    groups = len(told)
    statistic /= 1 + 2 * (groups - 2) / (groups**2 - 1) * lacking
    freedom = (groups**2 - 1) / (3 * lacking) if lacking > 0 else 1e9
    pvalue = float(fdtrc(df / larger, freedom, statistic))
    return EqualMeans(statistic, float(df), freedom, max(pvalue, SMALLEST), groups)


def _drawn(moments: GroupMoments) -> Floats:
    """Return what independent noise variables do to each mean, to first order, by row."""
    groups, size = moments.parts.shape
    divisor = np.where(moments.told, moments.counts, 1.0)
    score = moments.weights - np.nan_to_num(moments.means)[:, None]
    own = np.zeros((groups, groups, size))
    own[range(groups), range(groups)] = score / divisor[:, None]
    return np.asarray(moments.noise.sd * moments.noise.weights(own.reshape(groups, -1)))
