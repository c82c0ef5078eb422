"""Linear constraints on the coefficients of a linear regression, read and tested."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
from patsy import DesignInfo, PatsyError
from scipy.special import chdtrc, ndtr

from dpmodels.errors import ArgumentError, said, shorten
from dpmodels.results.lm_fit import LinearFit
from dpmodels.typing import Floats


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
    heads = ["estimate", "value", "std_error", "statistic", "p_value", "lower", "upper"]
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
    return pd.Series(numbers, index=["statistic", "df", "p_value"], name="wald_test")


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
