"""The tables and tests of a linear regression as labelled frames."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from patsy import DesignInfo, PatsyError
from scipy.special import chdtrc, ndtr, ndtri

from dpmodels.errors import ArgumentError, NotAvailable, said, shorten
from dpmodels.results.header import release_row
from dpmodels.results.lm_fit import LinearFit
from dpmodels.typing import Floats

if TYPE_CHECKING:
    from dpmodels.results.lm import LMResult


def noise(fit: LMResult) -> pd.DataFrame:
    """Return the noise panel, one row a coefficient."""
    table = {
        "coef": fit.params,
        "noise_sd": fit.bse_noise,
        "sampling_sd": fit.bse_sampling if sampled(fit) else math.nan,
        **fit.noise_int(),
        "identified": fit.identified,
    }
    return pd.DataFrame(table)


def tidy(fit: LMResult) -> pd.DataFrame:
    """Return one row a coefficient; nan where what needs the number of rows has none."""
    known, own = sampled(fit), fit.noise_int()
    conf = fit.conf_int() if known else own * math.nan
    table = {
        "estimate": fit.params,
        "std_error": fit.bse if known else math.nan,
        "statistic": fit.tvalues if known else math.nan,
        "p_value": fit.pvalues if known else math.nan,
        "conf_low": conf["lower"],
        "conf_high": conf["upper"],
        "noise_sd": fit.bse_noise,
        "noise_low": own["lower"],
        "noise_high": own["upper"],
        "identified": fit.identified,
    }
    return pd.DataFrame(table).rename_axis("term").reset_index()


def sampled(fit: LMResult) -> bool:
    """Whether the variance of the residuals can be estimated, which takes the number of rows."""
    return not math.isnan(fit.df_resid)


def glance(fit: LMResult) -> pd.DataFrame:
    """Return one row about the fit."""
    row: dict[str, Any] = {
        "r_squared": fit.rsquared,
        "adj_r_squared": fit.rsquared_adj,
        "sigma": float(np.sqrt(fit.scale)),
        **dict(zip(("statistic", "df", "p_value"), slopes_test(fit), strict=True)),
        "nobs": fit.nobs,
        "df_residual": fit.df_resid,
        "strength": fit.strength,
        "nidentified": int(fit.identified.sum()),
        **release_row(fit.release),
    }
    return pd.DataFrame([row])


def slopes_test(fit: LMResult) -> tuple[float, float, float]:
    """Return χ², degrees of freedom and p-value of all slopes being 0; nan where not available."""
    own, slopes = fit.linear, len(fit.call.names) - 1
    if not slopes or not sampled(fit):
        return math.nan, float(slopes), math.nan
    conditions = np.eye(len(own.names))[-slopes:]
    statistic = max(own.distance(own.full_law, conditions, np.zeros(slopes)), 0.0)
    return statistic, float(slopes), float(chdtrc(slopes, statistic))


def require_identified(fit: LMResult) -> None:
    """Refuse what needs a standard error of every coefficient."""
    if not fit.identified.all():
        raise NotAvailable(
            "cov_params() and get_prediction() are not available: not all coefficients are "
            "identified at this budget; conf_int() says which"
        )


def prediction(fit: LMResult, rows: Floats, level: float) -> pd.DataFrame:
    """Return means of rows of regressors, shape (parameters, rows), with intervals."""
    require_identified(fit)
    own = fit.linear
    mean, se = own.params @ rows, own.sds(own.full_law, rows.T)
    width, spread = float(ndtri((1 + level) / 2)), np.hypot(se, math.sqrt(fit.scale))
    table = {
        "mean": mean,
        "mean_se": se,
        "mean_ci_lower": mean - width * se,
        "mean_ci_upper": mean + width * se,
        "obs_ci_lower": mean - width * spread,
        "obs_ci_upper": mean + width * spread,
    }
    return pd.DataFrame(table)


def t_test(fit: LinearFit, constraints: object, level: float) -> pd.DataFrame:
    """Return one row a combination."""
    matrix, values, labels = read_constraints(fit, constraints)
    sds, rows = fit.sds(fit.full_law, matrix), []
    for own, value, known in zip(matrix, values, sds.tolist(), strict=True):
        coef = float(own @ fit.params)
        least = fit.distance(fit.full_law, own[None, :], np.array([value]))
        z = math.copysign(math.sqrt(max(least, 0.0)), coef - value)
        lower, upper = fit.interval(fit.full_law, own, level)
        sd = known if math.isfinite(upper - lower) else math.inf
        rows.append((coef, value, sd, z, 2 * float(ndtr(-abs(z))), lower, upper))
    heads = ["coef", "value", "std_err", "z", "pvalue", "lower", "upper"]
    return pd.DataFrame(rows, index=pd.Index(labels), columns=heads)


def wald_test(fit: LinearFit, constraints: object) -> pd.Series[float]:
    """Return statistic, degrees of freedom and p-value."""
    matrix, values, _ = read_constraints(fit, constraints)
    if np.linalg.matrix_rank(matrix) < len(matrix):
        raise ArgumentError(
            f"constraints: {len(matrix)} of them are linearly dependent; leave out those that "
            "follow from others"
        )
    statistic = max(fit.distance(fit.full_law, matrix, values), 0.0)
    freedom = float(len(matrix))
    numbers = [statistic, freedom, float(chdtrc(freedom, statistic))]
    return pd.Series(numbers, index=["statistic", "df", "pvalue"], name="wald_test")


def read_constraints(fit: LinearFit, constraints: object) -> tuple[Floats, Floats, list[str]]:
    """Return matrix, right-hand sides and labels of linear constraints.

    Raises
    ------
    ArgumentError
        If they cannot be read.
    """
    names = list(fit.names)
    matrix, values = (
        _spelt(names, constraints) if isinstance(constraints, str) else _numbers(constraints)
    )
    shaped = matrix.ndim == 2 and matrix.shape[1] == len(names) and len(matrix) == len(values)
    if not shaped or not len(matrix) or not np.isfinite(matrix).all():
        raise ArgumentError(
            f"constraints= of shape {matrix.shape}: expected rows of {len(names)} finite numbers, "
            f"one a coefficient of {shorten(str(names), 120)}"
        )
    if not matrix.any(axis=1).all():
        raise ArgumentError("constraints=: one of them names no coefficient; leave it out")
    labels = [_label(names, row) for row in matrix]
    return matrix, values, labels


def _label(names: list[str], row: Floats) -> str:
    """Write a combination as it would be typed."""
    parts = [
        f"{'-' if c < 0 else '+'} {'' if abs(c) == 1 else f'{abs(c):g}*'}{name}"
        for c, name in zip(row.tolist(), names, strict=True)
        if c
    ]
    text = " ".join(parts)
    return text.removeprefix("+ ") if text.startswith("+") else text.replace("- ", "-", 1)


def _spelt(names: list[str], constraints: str) -> tuple[Floats, Floats]:
    try:
        read = DesignInfo(names).linear_constraint(constraints)
    except (PatsyError, ValueError) as error:
        raise ArgumentError(
            f"constraints={shorten(repr(constraints))} cannot be read ({type(error).__name__}); "
            f"write 'a = 0' or 'a = b, c = 2' with names of {shorten(str(names), 120)}"
        ) from None
    return np.asarray(read.coefs, float), np.asarray(read.constants, float)[:, 0]


def _numbers(constraints: object) -> tuple[Floats, Floats]:
    left: Any = constraints
    right: Any = 0.0
    if isinstance(constraints, tuple) and len(constraints) == 2:
        left, right = constraints
    try:
        matrix = np.atleast_2d(np.asarray(left, dtype=np.float64))
        values = np.broadcast_to(np.asarray(right, dtype=np.float64).ravel(), len(matrix))
    except (TypeError, ValueError):
        raise ArgumentError(
            f"constraints={said(constraints)}: expected text such as 'a = 0', a matrix of numbers "
            "with one column a coefficient, or that matrix and the values it is held against"
        ) from None
    return matrix, values
