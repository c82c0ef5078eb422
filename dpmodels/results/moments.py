"""The result of a joint release of moments: pay once, model many times."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import ClassVar

import numpy as np
import pandas as pd
from scipy.special import fdtrc, ndtri

from dpmodels.arguments import boolean
from dpmodels.errors import FormulaError, shorten
from dpmodels.formula import Design
from dpmodels.formula.response import two_sets, two_sided
from dpmodels.postprocess.normal_equations import least_squares
from dpmodels.released import MomentsRelease
from dpmodels.results import cov
from dpmodels.results.base import Derivation, checked_level, per_row
from dpmodels.results.call import MomentsCall
from dpmodels.results.cca import CCAResult
from dpmodels.results.cov import Part
from dpmodels.results.derived_table import DefaultPlot, Estimates
from dpmodels.results.estimate_table import EstimateTable, table_of_estimates, unit_of
from dpmodels.results.lm import LMResult
from dpmodels.results.lm_fit import LinearModel
from dpmodels.results.pca import PCAResult
from dpmodels.typing import Coder, DataArray
from dpmodels.verbs import documented


@dataclass(frozen=True, repr=False)
class MomentsResult(DefaultPlot):
    """Private moments of coded columns: released values and public facts only.

    Notes
    -----
    Every method takes a formula over the released variables, ``~ .`` for all of them, None for all
    released columns, and computes from the one release, at no further cost. Rows count if they are
    complete in all released columns, and were clipped to the ball of the joint release.
    """

    call: MomentsCall
    release: MomentsRelease
    coders: Callable[[Design], Coder] | None = field(default=None, repr=False)

    def _coder(self, design: Design) -> Coder | None:
        return None if self.coders is None else self.coders(design)

    @cached_property
    def whole(self) -> cov.CovResult:
        """All released columns."""
        return self.cov()

    def cov(self, formula: str | None = None) -> cov.CovResult:
        """Return the covariance matrix of a formula's columns.

        Parameters
        ----------
        formula : str, optional
            A right-hand side; all released columns by default.

        Raises
        ------
        FormulaError
            If it codes to a column that was not released.
        """
        return self._derive(cov.CovResult, "cov", formula=formula)

    def cor(self, formula: str | None = None) -> DataArray:
        """Return the correlations of a formula's columns, ``variable × variable_``; as `cov`."""
        return self.cov(formula).cor

    def mean(self, formula: str | None = None, level: float = 0.95) -> pd.DataFrame:
        """Return the means of a formula's columns with their noise.

        Parameters
        ----------
        formula : str, optional
            A right-hand side; all released columns by default.
        level : float
            Coverage of the noise intervals, in (0, 1).

        Returns
        -------
        DataFrame
            Per column, in its own unit: ``mean, noise_sd`` and the noise
            interval ``lower, upper`` for the non-private mean of these rows,
            within the public range. Where rows were shortened it allows for that.

        Raises
        ------
        FormulaError
            If it codes to a column that was not released.
        """
        width = float(ndtri((1 + checked_level(level)) / 2))
        fit = self.cov(formula)
        assert fit.center is not None
        assert fit.center_noise_sd is not None
        mean, sd = fit.center.to_numpy(), fit.center_noise_sd.to_numpy()
        reach = width * sd + fit._shift
        lower = np.maximum(mean - reach, fit.call.lower)
        upper = np.minimum(mean + reach, fit.call.upper)
        table = {"mean": mean, "noise_sd": sd, "lower": lower, "upper": upper}
        return pd.DataFrame(table, index=pd.Index(fit.call.names, name="variable"))

    def pca(
        self,
        formula: str | None = None,
        ncomp: int | None = None,
        center: bool = True,
        scale: str | None = "range",
    ) -> PCAResult:
        """Return the principal components of a formula's columns, as :meth:`CovResult.pca`.

        ``center=False`` does not take off the released means: it analyses the
        second moment about 0. The formula is as in :meth:`cov`.
        """
        return self._derive(
            PCAResult, "pca", formula=formula, ncomp=ncomp, center=center, scale=scale
        )

    def lm(self, formula: str) -> LMResult:
        """Return the linear regression of one released column on others.

        Parameters
        ----------
        formula : str
            Such as ``"wage ~ educ + exper"``, over the released variables.

        Raises
        ------
        FormulaError
            If it has no response, or codes to a column that was not released.
        """
        return self._derive(LMResult, "lm", formula=formula)

    @documented
    def cor_test(
        self, x: str, y: str | None = None, *, given: str | Sequence[str] = (), level: float = 0.95
    ) -> Estimates:
        """Test a correlation of two columns, or a partial one, as R's ``cor.test``.

        Parameters
        ----------
        x, y : str
            Released columns, or variables and expressions that code to one each; or both in one
            formula ``"~ x + y"``.
        given : str or sequence of str
            Columns, variables or expressions to condition on.

        Returns
        -------
        Estimates
            ``column1, column2, estimate, noise_sd, statistic, df, p_value, conf_low, conf_high,
            noise_low, noise_high, identified``, one row.

        Raises
        ------
        ArgumentError, FormulaError
            For other than two columns, one that is in `given` too, or one that was not released.

        Notes
        -----
        Not identified where a variance is less than four sds of its noise, or noise hides a column
        of `given`. The noise interval is of the correlation of these rows. The test of 0 is
        Student's with the noise in its variance, the confidence interval Fisher's widened for the
        noise: as in R, the former assumes independent columns, the latter joint normality.
        """
        return cov.cor_test(self, x, y, given, checked_level(level))

    def pcor(self, formula: str | None = None) -> DataArray:
        """Return partial correlations, each pair given all other columns of the formula.

        ``variable × variable_``; nan where one is not identified. The formula is as in `cov`.
        """
        return cov.pcor(self.call, self.release, cov.columns_of(self.call, formula).names)

    def cca(self, formula: str) -> CCAResult:
        """Return the canonical correlations of two sets of released columns.

        Parameters
        ----------
        formula : str
            Such as ``"x1 + x2 ~ y1 + y2"``, over the released variables.

        Raises
        ------
        FormulaError
            If a side is empty, both name one column, or one was not released.
        """
        return self._derive(CCAResult, "cca", formula=formula)

    def aov(self, formula: str) -> Estimates:
        """Test that all groups have the same mean, as R's ``aov`` of one term.

        Parameters
        ----------
        formula : str
            Such as ``"wage ~ region"``, over the released variables.

        Returns
        -------
        Estimates
            Rows for the groups and the residuals: ``term, df, sumsq, noise_sd, meansq, statistic,
            p_value, identified``. F and its p-value allow for sampling and noise; `noise_sd` is
            that of the sum of squares. Without noise all are R's.

        Raises
        ------
        FormulaError
            If it has other than one term and a constant, or codes to a column that was not
            released.
        """
        return aov(self.lm(formula))

    @property
    def nobs(self) -> float:
        """Number of rows: the public one, or the released one where it is private."""
        return self.whole.nobs

    @property
    def ncomplete(self) -> float:
        """Released number of rows complete in all columns; noise sd ``release.noise.count``."""
        return self.whole.ncomplete

    _estimated = "Mean"

    def _estimates(self) -> EstimateTable:
        fit, names = self.whole, self.call.names
        return table_of_estimates(
            self,
            pd.Index(names, name="column"),
            further={"sd": fit.sd.to_numpy(), "sd_noise_sd": fit.sd_noise_sd.to_numpy()},
            labels=names,
            unit=[unit_of(self.call.codebook, name) for name in names],
            estimate=np.nan if fit.center is None else fit.center,
            noise_sd=np.nan if fit.center is None else fit.center_noise_sd,
        )

    def _line(self) -> dict[str, object]:
        columns = len(self.call.names)
        return {"nobs": self.nobs, "ncomplete": self.ncomplete, "ncolumns": columns}

    def _size(self) -> str:
        return f"{len(self.call.names)} columns"

    def _part(
        self, columns: Part, result: Callable[[MomentsCall, MomentsRelease], object]
    ) -> Derivation:
        """Return the derivation of a result of some columns, with a note on the joint release."""

        def named(call: MomentsCall, release: MomentsRelease) -> object:
            return result(columns.named(call, release), release)

        return Derivation(columns.call, named, columns.take)

    def _cov(self, formula: str | None) -> Derivation:
        coded = cov.columns_of(self.call, formula)
        result = partial(cov.CovResult, coder=self._coder(coded))
        return self._part(cov.part(self.call, coded), result)

    def _pca(
        self, formula: str | None, ncomp: int | None, center: bool, scale: str | None
    ) -> Derivation:
        centred = boolean("center", center)
        coded = cov.columns_of(self.call, formula)
        columns = cov.part(replace(self.call, center=centred), coded)
        part = self._part(columns, partial(PCAResult, coder=self._coder(coded)))
        return part._replace(call=cov.rescaled(columns.call, ncomp, scale))

    def _lm(self, formula: str) -> Derivation:
        cov.check_variables(formula, self.call)
        sides = two_sided(formula, self.call.codebook, absorb=True)
        coder = self._coder(sides.terms) if sides.terms.names else None
        model = LinearModel(sides.intercept, fixed=sides.fixed)
        result = partial(LMResult, model=model, coder=coder)
        return self._part(cov.part(self.call, sides.joint), result)

    def _cca(self, formula: str) -> Derivation:
        cov.check_variables(formula, self.call)
        columns = cov.part(self.call, two_sets(formula, self.call.codebook).joint)
        return self._part(columns, CCAResult)

    derivations: ClassVar = {"cov": _cov, "pca": _pca, "lm": _lm, "cca": _cca}
    _no_intervals = "write .cov(formula).conf_int(), .lm(formula).conf_int(), or .mean(formula)"
    scores, fittedvalues, resid = per_row("pca().transform(newdata)")


# The table of a one-way analysis of variance, as R's ``aov`` prints it, with the noise in it.

NOTES = (
    "F is a Wald statistic that allows for sampling and noise: with noise it is less than the "
    "ratio of the mean squares.",
    "F assumes equal residual variances, as in R's aov.",
    "Sums of squares are corrected for noise bias; noise sd is that of the sum of squares.",
)


def aov(fit: LMResult) -> Estimates:
    """Test that all groups have one mean; FormulaError but for one term and a constant.

    Under the null, and for every noise, the group effects' distance from 0 is χ² to first order; it
    is compared with F with the residuals' degrees of freedom, its distribution without noise.
    """
    if len(fit.terms) != 1 or not fit.model.intercept:
        raise FormulaError(
            f"aov() of {shorten(fit.call.formula)!r}: expected one term, such as "
            '"wage ~ region"; for more write .lm(formula).anova()'
        )
    linear = fit.linear
    statistic, df, _ = linear.slopes_test()
    is_identified = math.isfinite(statistic)
    freedom = max(fit.df_resid / fit.release.adjacency.design_effect, 1.0)
    left, left_sd = linear.scale
    rest, rest_sd = left * fit.df_resid, left_sd * fit.df_resid
    between, between_sd = _between(fit, rest)
    p_value = float(fdtrc(df, freedom, statistic / df)) if is_identified else math.nan
    table = {
        "term": [next(iter(fit.terms)), "Residuals"],
        "df": [df, fit.df_resid],
        "sumsq": [between, rest],
        "noise_sd": [between_sd, rest_sd],
        "meansq": [between / df if df else math.nan, left],
        "statistic": [statistic / df if is_identified else math.nan, math.nan],
        "p_value": [p_value, math.nan],
        "identified": [is_identified, True],
    }
    share, share_sd = linear.rsquared
    explained = f"eta squared: {share:.3g}, noise sd {share_sd:.2g}." * math.isfinite(share)
    lacking = fit.df_model - int(df)
    fewer = f"Noise hides the differences of {lacking} groups; df are without them."
    notes = (*NOTES, *filter(None, [explained, fewer * bool(lacking and is_identified)]))
    return Estimates(fit, "One-way analysis of variance", pd.DataFrame(table), notes, test="F")


def _between(fit: LMResult, rest: float) -> tuple[float, float]:
    """Return the sum of squares between groups, no less than 0, and its noise sd."""
    equations = fit.linear.equations
    null = replace(equations, regressors=equations.regressors[:, :1], added_rows=None)
    solution = least_squares(null)
    total = null.squares_left(solution)[0]
    residual, null_residual = equations.residual(fit.linear.theta), null.residual(solution)
    unit = float(fit.call.divisor[-1]) ** 2
    sd = equations.form_sd(np.outer(null_residual, null_residual) - np.outer(residual, residual))
    return max(total * unit - rest, 0.0), sd * unit
