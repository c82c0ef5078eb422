"""Log-linear models of noisy tables, with the noise counted in."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import chdtrc, xlogy

from dpmodels.errors import NotAvailable
from dpmodels.inference.independence import whitening
from dpmodels.typing import Floats

# Newton's steps, what ends them in units of the coefficients, and where there is no end.
STEPS, NEAR, FAR = 100, 1e-10, 30.0
# Stands for an empty cell where the steps begin.
START = 0.5


@dataclass(frozen=True)
class LogLinearFit:
    """Coefficients of a log-linear model of one table.

    `cov` counts sampling and noise, `noise_cov` the noise alone. `statistic` is what the table
    differs from the fit by, in units of the covariance of that; chi-square with `df` degrees of
    freedom, a multiple of one where the noise has heavy tails, if the model holds. `deviance` is
    that of the counts, those below 0 read as 0.
    """

    params: Floats
    cov: Floats
    noise_cov: Floats
    fitted: Floats
    deviance: float
    df: int
    statistic: float
    pvalue: float


def loglinear(counts: Floats, coded: Floats, drawn: Floats, heavier: Floats) -> LogLinearFit:
    """Fit ``log E(counts) = coded @ params``.

    `counts`, shape (cells,), are unbiased and may be negative, `drawn` and `heavier` as in
    :func:`dpmodels.inference.independence.independence_within`. The estimate solves the score
    equation ``X'(y - μ) = 0`` of Poisson counts, of which the noise is another term with mean 0:
    its covariance is ``I⁻¹ + I⁻¹ X' Σ X I⁻¹``, ``I = X' diag(μ) X`` and Σ that of the noise.
    """
    params = _solved(counts, coded)
    fitted = np.exp(coded @ params)
    inverse = np.linalg.inv(coded.T @ (fitted[:, None] * coded))
    noisy = inverse @ (coded.T @ drawn)
    df = len(counts) - len(params)
    statistic = pvalue = math.nan
    if df:
        left = np.eye(len(counts)) - fitted[:, None] * (coded @ inverse @ coded.T)
        own = left @ drawn
        metric = whitening(left @ (fitted[:, None] * left.T) + own @ own.T, df)
        statistic = float(((metric @ (counts - fitted)) ** 2).sum())
        fourth = float((heavier * ((metric @ own) ** 2).sum(axis=0) ** 2).sum())
        larger = 1 + fourth / (2 * df)
        pvalue = float(chdtrc(df / larger, statistic / larger))
    seen = np.maximum(counts, 0.0)
    deviance = 2 * float((xlogy(seen, seen / fitted) - seen + fitted).sum()) if df else 0.0
    return LogLinearFit(
        params,
        inverse + noisy @ noisy.T,
        noisy @ noisy.T,
        fitted,
        deviance,
        df,
        statistic,
        pvalue,
    )


def _solved(counts: Floats, coded: Floats) -> Floats:
    """Return the root of the score; its function is the slope of a concave one."""
    seen = np.maximum(counts, START)
    root = np.sqrt(seen)
    params = np.linalg.lstsq(root[:, None] * coded, root * np.log(seen), rcond=None)[0]
    wanted = coded.T @ counts

    def value(at: Floats) -> float:
        return float(wanted @ at - np.exp(np.minimum(coded @ at, 700.0)).sum())

    for _ in range(STEPS):
        fitted = np.exp(coded @ params)
        step = np.linalg.lstsq(
            coded.T @ (fitted[:, None] * coded), wanted - coded.T @ fitted, rcond=None
        )[0]
        size = 1.0
        while value(params + size * step) < value(params) - NEAR and size > NEAR:
            size /= 2
        params = params + size * step
        if np.abs(coded @ params).max() > FAR:
            break
        if np.abs(size * step).max() < NEAR:
            return np.asarray(params)
    raise NotAvailable(
        "the log-linear model is not identified: noise leaves a margin of its terms without rows; "
        "give more budget, or leave out terms"
    )
