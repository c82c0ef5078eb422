"""Log-linear models of noisy tables, with the noise counted in."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import chdtrc, xlogy

from dpmodels.errors import NotAvailable
from dpmodels.inference.independence import whitening
from dpmodels.typing import Floats

# Newton's steps, what ends them in units of the coefficients, and logarithms of expected counts
# below and above which there is no end.
STEPS, NEAR, NONE, FAR = 100, 1e-10, -18.0, 30.0
# Stands for no rows where the steps begin.
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
    fit = from_sums(coded.T @ counts, coded, coded.T @ drawn)
    fitted = fit.fitted
    inverse = fit.cov - fit.noise_cov
    df = len(counts) - len(fit.params)
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
    return replace(fit, deviance=deviance, df=df, statistic=statistic, pvalue=pvalue)


def from_sums(sums: Floats, coded: Floats, drawn: Floats) -> LogLinearFit:
    """Fit the same model to ``X'y`` alone, of which noise is made of `drawn`.

    These are sums of margins, so no table of all variables is needed; nothing is told of the fit.
    """
    params = _solved(sums, coded)
    fitted = np.exp(coded @ params)
    inverse = np.linalg.inv(coded.T @ (fitted[:, None] * coded))
    moved = inverse @ drawn
    noise = np.asarray(moved @ moved.T)
    untold = (math.nan, 0, math.nan, math.nan)
    return LogLinearFit(params, np.asarray(inverse + noise), noise, fitted, *untold)


def _solved(wanted: Floats, coded: Floats) -> Floats:
    """Return the root of the score, which is the slope of a concave function.

    The first column of the coding is constant.
    """
    params = np.zeros(len(wanted))
    params[0] = math.log(max(float(wanted[0]), START) / len(coded))

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
        logs = coded @ params
        if logs.min() < NONE or logs.max() > FAR:
            break
        if np.abs(size * step).max() < NEAR:
            return np.asarray(params)
    raise NotAvailable(
        "the log-linear model is not identified: a cell in the margins of its terms has no rows, "
        "or noise leaves it none; leave out terms, or give more budget"
    )
