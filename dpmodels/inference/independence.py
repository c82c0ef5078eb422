"""A chi-square test of independence that counts the noise of the table in."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import reduce

import numpy as np
from scipy.special import chdtrc

from dpmodels.inference.ratios import TOLD, Noise
from dpmodels.typing import Floats

# The test solves a system of this many equations.
MOST_CELLS = 2_000
# Fourth cumulant of the noise, in units of its squared variance.
EXCESS = {"laplace": 3.0, "gaussian": 0.0}


@dataclass(frozen=True)
class Independence:
    """A test of mutual independence of the factors of a table.

    nan where the margins are lost in noise, for the `reason` given; `smallest` is the least
    expected count.
    """

    statistic: float
    pvalue: float
    df: int
    smallest: float
    reason: str = ""


def independence(table: Floats, noise: Noise) -> Independence:
    """Test whether the factors of a noisy table, shape (levels, levels, ...), are independent.

    What the counts exceed the products of their margins by has, if the factors are independent, the
    covariance ``J (N (diag π - π πᵀ) + Σ) Jᵀ``: J the derivative of the excess by the counts, π the
    product of the shares of the margins, Σ that of the noise. The statistic is its squared length
    in the metric of the (pseudo-)inverse, chi-square to first order with the degrees of freedom of
    the plain test, which it becomes without noise [1]_. Laplace noise makes it more variable than
    that by the fourth cumulants: the p-value is that of a multiple of a chi-square variable with
    the same mean and variance [2]_. The plain statistic of a noisy table rejects too often.

    .. [1] Kifer, D. and Rogers, R. (2017). "A new class of private chi-square hypothesis tests."
       AISTATS.
    .. [2] Satterthwaite, F. E. (1946). "An approximate distribution of estimates of variance
       components." Biometrics Bulletin 2(6), 110-114.
    """
    df = table.size - 1 - sum(size - 1 for size in table.shape)
    if table.size > MOST_CELLS:
        return Independence(math.nan, math.nan, df, math.nan, "the table has too many cells.")
    total = float(table.sum())
    margins = [_margin(table, axis) for axis in range(table.ndim)]
    if not _told(table, margins, noise):
        reason = "the total of a level cannot be told from 0 at this budget."
        return Independence(math.nan, math.nan, df, math.nan, reason)
    shares = reduce(np.multiply.outer, [margin / total for margin in margins]).ravel()
    expected = total * shares
    jacobian = np.eye(table.size) - _slope(table.shape, margins, expected, total)
    sampled = total * (np.diag(shares) - np.outer(shares, shares))
    weights = noise.weights(np.eye(table.size))
    drawn = noise.sd * jacobian @ weights
    metric = _metric(jacobian @ sampled @ jacobian.T + drawn @ drawn.T, df)
    statistic = float(((metric @ (table.ravel() - expected)) ** 2).sum())
    excess = EXCESS[noise.law] * float((((metric @ drawn) ** 2).sum(axis=0) ** 2).sum())
    larger = 1 + excess / (2 * df)
    pvalue = float(chdtrc(df / larger, statistic / larger))
    return Independence(statistic, pvalue, df, float(expected.min()))


def _margin(table: Floats, axis: int) -> Floats:
    others = tuple(one for one in range(table.ndim) if one != axis)
    return np.asarray(table.sum(axis=others))


def _told(table: Floats, margins: list[Floats], noise: Noise) -> bool:
    """Whether every level of every factor has rows."""
    for margin in margins:
        sd = noise.sd * math.sqrt(table.size / margin.size)
        if not (margin > max(TOLD * sd, 1.0)).all():
            return False
    return True


def _slope(shape: tuple[int, ...], margins: list[Floats], expected: Floats, total: float) -> Floats:
    """Return the derivative of the expected counts by the counts."""
    places = np.indices(shape).reshape(len(shape), -1)
    slope = np.full((expected.size, expected.size), (1.0 - len(shape)) / total)
    for place, margin in zip(places, margins, strict=True):
        slope += (place[:, None] == place[None, :]) / margin[place][:, None]
    return np.asarray(expected[:, None] * slope)


def _metric(spread: Floats, df: int) -> Floats:
    """Return what makes a covariance of rank df the identity, shape (df, cells)."""
    values, vectors = np.linalg.eigh(spread)
    return np.asarray((vectors[:, -df:] / np.sqrt(np.maximum(values[-df:], 1e-300))).T)
