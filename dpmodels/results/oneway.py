"""The table of a one-way analysis of variance, as R's ``aov`` prints it, with the noise in it."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pandas as pd
from scipy.special import fdtrc

from dpmodels.errors import FormulaError, shorten
from dpmodels.postprocess.solve import least_squares
from dpmodels.results.estimates import Estimates
from dpmodels.results.lm import LMResult

NOTES = (
    "F is the distance of the group means in the metric of sampling and noise: with noise it is "
    "less than the ratio of the mean squares. Residuals have one variance, as in R's aov.",
    "Sums of squares have their bias by noise taken off; noise sd is theirs.",
)


def aov(fit: LMResult) -> Estimates:
    """Test that all groups have one mean; FormulaError but for one term and a constant.

    Under the null, and for every noise, the group effects' distance from 0 is χ² to first order; it
    is held against F with the residuals' degrees of freedom, which it has without noise.
    """
    if len(fit.terms) != 1 or not fit.model.intercept:
        raise FormulaError(
            f"aov() of {shorten(fit.call.formula)!r}: expected one term, such as "
            '"wage ~ region"; for more write .lm(formula).anova()'
        )
    own = fit.linear
    statistic, df, _ = own.slopes_test()
    told = math.isfinite(statistic)
    freedom = max(fit.df_resid / fit.release.adjacency.design_effect, 1.0)
    left, left_sd = own.scale
    rest, rest_sd = left * fit.df_resid, left_sd * fit.df_resid
    between, between_sd = _between(fit, rest)
    table = {
        "term": [next(iter(fit.terms)), "Residuals"],
        "df": [df, fit.df_resid],
        "sumsq": [between, rest],
        "noise_sd": [between_sd, rest_sd],
        "meansq": [between / df if df else math.nan, left],
        "statistic": [statistic / df if told else math.nan, math.nan],
        "p_value": [float(fdtrc(df, freedom, statistic / df)) if told else math.nan, math.nan],
        "identified": [told, True],
    }
    share, share_sd = own.rsquared
    explained = f"eta squared: {share:.3g}, noise sd {share_sd:.2g}." * math.isfinite(share)
    lacking = fit.df_model - int(df)
    fewer = f"Of {lacking} groups noise hides how they differ; df are without them."
    notes = (*NOTES, *filter(None, [explained, fewer * bool(lacking and told)]))
    return Estimates(fit, "One-way analysis of variance", pd.DataFrame(table), notes, test="F")


def _between(fit: LMResult, rest: float) -> tuple[float, float]:
    """Return the sum of squares between groups, no less than 0, and its noise sd."""
    own = fit.linear.equations
    null = replace(own, regressors=own.regressors[:, :1], more=None)
    whole = least_squares(null)
    total = null.squares_left(whole)[0]
    g, apart = own.residual(fit.linear.theta), null.residual(whole)
    unit = float(fit.call.divisor[-1]) ** 2
    sd = own.form_sd(np.outer(apart, apart) - np.outer(g, g))
    return max(total * unit - rest, 0.0), sd * unit
