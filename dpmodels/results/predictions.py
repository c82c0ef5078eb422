"""The response that a model expects of public rows, with intervals."""

from __future__ import annotations

import numpy as np
import pandas as pd

from dpmodels.inference.links import Link
from dpmodels.inference.protocol import CoefficientsLaw
from dpmodels.typing import Floats


def predicted(law: CoefficientsLaw, link: Link, rows: Floats, level: float) -> pd.DataFrame:
    """Return ``mean, mean_se, mean_ci_lower, mean_ci_upper`` of rows, shape (rows, coefficients).

    Intervals of the linear predictor, each by itself, carried over by the link, which increases;
    errors by its slope. nan where a row is incomplete, or needs what is not identified.
    """
    table = np.full((len(rows), 4), np.nan)
    known = np.isfinite(rows).all(axis=1)
    # Equal rows are looked at once.
    each, at = np.unique(rows[known], axis=0, return_inverse=True)
    told = law.told(each)
    own = np.full((len(each), 4), np.nan)
    eta = each[told] @ law.params
    own[told, 0] = link.mean(eta)
    own[told, 1] = np.abs(link.slope(eta)) * law.errors(each[told])
    own[told, 2:] = link.mean(law.intervals(each[told], level))
    table[known] = own[at.ravel()]
    return pd.DataFrame(table, columns=["mean", "mean_se", "mean_ci_lower", "mean_ci_upper"])
