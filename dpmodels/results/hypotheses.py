"""Tests of linear hypotheses about coefficients, one by one, together and by term."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
from scipy.special import chdtrc, ndtr

from dpmodels.errors import ArgumentError
from dpmodels.inference.adjusted import adjusted, simultaneous
from dpmodels.inference.protocol import CoefficientsLaw
from dpmodels.results.constraints import read_constraints
from dpmodels.results.terms import Terms
from dpmodels.typing import Floats


def t_test(law: CoefficientsLaw, terms: Terms, constraints: object, level: float) -> pd.DataFrame:
    """Return one row a combination."""
    matrix, values, labels = read_constraints(terms, constraints)
    ends = law.intervals(matrix, level)
    z = law.roots(matrix, values)
    table = {
        "estimate": matrix @ law.params,
        "value": values,
        "std_error": law.errors(matrix),
        "statistic": z,
        "p_value": 2 * ndtr(-np.abs(z)),
        "lower": ends[:, 0],
        "upper": ends[:, 1],
    }
    return pd.DataFrame(table, index=pd.Index(labels))


def tested(
    law: CoefficientsLaw, ways: Floats, estimates: Floats, level: float, adjust: str
) -> dict[str, Floats]:
    """Return columns of estimates that are combinations to first order, nan where not identified.

    An interval is that of the combination, about the estimate; p-values and intervals are adjusted
    for their number.
    """
    away = estimates - ways @ law.params
    z = law.roots(ways, -away)
    ends = law.intervals(ways, simultaneous(level, len(ways), adjust)) + away[:, None]
    table = {
        "estimate": estimates,
        "std_error": law.errors(ways),
        "statistic": z,
        "p_value": adjusted(2 * ndtr(-np.abs(z)), adjust),
        "conf_low": ends[:, 0],
        "conf_high": ends[:, 1],
    }
    told = law.told(ways)
    return {name: np.where(told, own, np.nan) for name, own in table.items()}


def wald_test(law: CoefficientsLaw, terms: Terms, constraints: object) -> pd.Series[float]:
    """Return statistic, degrees of freedom and p-value; nan where one is not identified."""
    matrix, values, _ = read_constraints(terms, constraints)
    if np.linalg.matrix_rank(matrix) < len(matrix):
        raise ArgumentError(
            f"constraints: {len(matrix)} of them are linearly dependent; leave out those that "
            "follow from others"
        )
    numbers = [_statistic(law, matrix, values), float(len(matrix))]
    numbers.append(float(chdtrc(numbers[1], numbers[0])))
    return pd.Series(numbers, index=["statistic", "df", "p_value"], name="wald_test")


def anova(law: CoefficientsLaw, terms: Terms, typ: int) -> pd.DataFrame:
    """Return one row a term: ``term, statistic, df, p_value, identified``."""
    rows = []
    for term in terms.columns:
        matrix = terms.matrix(term) if typ == 3 else _marginal(law, terms, term)
        statistic = _statistic(law, matrix, np.zeros(len(matrix)))
        rows.append((term, statistic, len(matrix)))
    table = pd.DataFrame(rows, columns=["term", "statistic", "df"])
    table["p_value"] = chdtrc(table["df"], table["statistic"])
    return table.assign(identified=table["statistic"].notna())


def _statistic(law: CoefficientsLaw, matrix: Floats, values: Floats) -> float:
    if not (np.isfinite(matrix).all() and law.told(matrix).all()):
        return math.nan
    return max(law.distance(matrix, values), 0.0)


def _marginal(law: CoefficientsLaw, terms: Terms, term: str) -> Floats:
    """Return the coefficients of a term as they would be without the terms that hold it.

    With V the covariance, t its coefficients and r those of the terms above: ``t - V_tr V_rr⁻¹ r``
    is uncorrelated with r, so it is the generalised least squares estimate of t where r is 0, and
    its Wald statistic that of both less that of r [1]_.

    .. [1] Fox, J. and Weisberg, S. (2019). An R Companion to Applied Regression. Third edition.
    """
    own, above = terms.matrix(term), terms.matrix(*terms.above(term))
    if not len(above):
        return own
    held = law.covariance()
    sds = np.sqrt(np.diagonal(above @ held @ above.T))
    if not (np.isfinite(sds) & (sds > 0)).all():
        return np.full_like(own, math.nan)
    scaled = above / sds[:, None]
    shares = np.linalg.lstsq(scaled @ held @ scaled.T, scaled @ held @ own.T, rcond=None)[0]
    return np.asarray(own - shares.T @ scaled)
