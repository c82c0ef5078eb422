"""The result of a private linear regression."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import ndtr

from dpmodels.errors import NotAvailable
from dpmodels.formula.parse import quote, variables_in
from dpmodels.inference.links import IDENTITY, Link
from dpmodels.inference.sandwich import DETECTION_SDS, normal_width
from dpmodels.released import MomentsRelease
from dpmodels.results.base import checked_level, per_row
from dpmodels.results.call import INTERCEPT, MomentsCall
from dpmodels.results.coefficient_model import CoefficientModel, in_unit
from dpmodels.results.derived_table import Estimates, fixed_rows, tested
from dpmodels.results.estimate_table import EstimateTable, slope_unit, table_of_estimates, unit_of
from dpmodels.results.lm_fit import LinearFit, LinearModel, ParametersLaw
from dpmodels.results.path import PathResult, path
from dpmodels.results.public_rows import PublicRows
from dpmodels.typing import Axes, Coder, Floats

_ROWS = 4096  # of a prediction, at a time
# Fractions by which rows on one side of a line exceed those on the other, from which few rows may
# determine its constant, and up to which they do not: choices by simulation.
MOST_ONE_SIDED, LEAST_ONE_SIDED = 0.42, 0.2
FIXED_NOTE = (
    "The first factor: the expected response where all terms are 0. Further factors: differences "
    "from their first level."
)


@dataclass(frozen=True, repr=False)
class LMResult(CoefficientModel):
    """A private linear regression: released values and public facts only.

    Parameters
    ----------
    model : LinearModel
        Whether there is a constant, weights, and fixed effects.

    Notes
    -----
    Names are statsmodels', distributions normal and χ². Standard errors, tests and :meth:`conf_int`
    are for the population: they allow for the privacy noise in X'X and X'y, and for sampling, with
    residuals of equal variance (in proportion to 1/weight with weights), of any variance after
    ``vcov="HC"``, or correlated within persons after ``vcov="cluster"``. :meth:`noise_int` is for
    the non-private estimate on these rows. Under ``mechanism="scores"`` that estimate is weighted
    least squares: a row whose terms are ``L`` long along the released axes has the weight ``min(1,
    r/L)**2``, for a released radius ``r``. Where the relation bends, or few rows are far away, the
    coefficients with equal weights may lie outside both intervals: only much longer ones would hold
    for them whatever the rows are. Both are infinite where a coefficient is not identified; with
    weights and a private number of rows, :meth:`conf_int` needs one of these two ``vcov``.

    Under ``mechanism="scores"`` residuals count up to a released size, which the table prints: a
    few codes far out (99999) move least squares, but hardly these coefficients and intervals.
    Declare them with ``dp.Numeric(missing=[99999])``.

    Fixed effects, and the constant that they contain, are left out of ``params`` and all numbers by
    coefficient; :meth:`fixed_effects` has them.
    """

    call: MomentsCall
    release: MomentsRelease
    model: LinearModel
    coder: Coder | None = field(default=None, repr=False)

    @cached_property
    def linear(self) -> LinearFit:
        """The equations of the model, and the laws of its parameters."""
        return LinearFit(self.call, self.release, self.model)

    @property
    def _coefficients(self) -> tuple[str, ...]:
        return self.linear.names

    @cached_property
    def _shown(self) -> list[int]:
        """Positions of the coefficients that are not of fixed effects."""
        fixed = [INTERCEPT] * bool(self.model.fixed)
        fixed += [name for code in self.model.fixed for name in self._terms.columns[code]]
        return [at for at, name in enumerate(self.linear.names) if name not in fixed]

    @property
    def _names(self) -> pd.Index[str]:
        names = [self.linear.names[position] for position in self._shown]
        return pd.Index(names, dtype=object, name="term")

    def _series(self, values: Floats, name: str) -> pd.Series[float]:
        return pd.Series(values[self._shown], index=self._names, name=name)

    def _ends(self, ends: Floats) -> pd.DataFrame:
        return pd.DataFrame(ends[self._shown], index=self._names, columns=["lower", "upper"])

    @property
    def params(self) -> pd.Series[float]:
        """Coefficients of the coded columns in their own units.

        Along directions where noise hides X'X a ridge from its released spectrum keeps them small;
        coefficients that load on such a direction are not :attr:`identified`.
        """
        return self._series(self.linear.params, "params")

    @property
    def identified(self) -> pd.Series[bool]:
        """Whether each coefficient's 95 % noise interval is finite.

        Where it is infinite, the release does not identify the coefficient: its own sum of squares,
        the other terms partialled out, is less than four of its noise sds; or more than a quarter
        of it, or of its variance, rests on the assumption that levels of too few rows are like the
        others, or on the ridge along directions that noise hides. Where X'X is weak, intervals of
        the other coefficients allow for slopes along such directions of twice the root mean square
        slope, in standard deviations.
        """
        return pd.Series(self.linear.identified[self._shown], self._names, name="identified")

    @property
    def bse(self) -> pd.Series[float]:
        """Standard errors, sampling and noise; infinite where not identified.

        Where intervals are searched for, at a :attr:`strength` below 2, the
        half length of the 95 % interval over 1.96.
        """
        return self._bse(self._sds(self.linear.about_population), "bse")

    @property
    def bse_noise(self) -> pd.Series[float]:
        """Standard deviations of the privacy noise alone; infinite where not identified."""
        return self._bse(self._sds(self.linear.about_rows), "bse_noise")

    @property
    def bse_sampling(self) -> pd.Series[float]:
        """Standard errors without the privacy noise; infinite where not identified."""
        total_sd, noise = self._sds(self.linear.about_population), self._sds(self.linear.about_rows)
        noise_sd = np.where(self.linear.identified, noise, 0.0)
        return self._bse(np.sqrt(np.maximum(total_sd**2 - noise_sd**2, 0.0)), "bse_sampling")

    def _sds(self, law: ParametersLaw) -> Floats:
        return law.errors(np.eye(len(law.names)))

    def _bse(self, sds: Floats, name: str) -> pd.Series[float]:
        return self._series(np.where(self.linear.identified, sds, np.inf), name)

    @property
    def tvalues(self) -> pd.Series[float]:
        """Signed roots of the score statistics that :meth:`conf_int` inverts.

        ``params / bse`` where a coefficient's own sum of squares is ten of its
        noise sds or more; nan where the coefficient is not identified.
        """
        ones = np.eye(len(self.linear.names))
        return self._series(self.linear.about_population.roots(ones, 0 * ones[0]), "tvalues")

    @property
    def pvalues(self) -> pd.Series[float]:
        """Two-sided p-values for a coefficient of 0, consistent with :meth:`conf_int`."""
        pvalues = 2 * ndtr(-np.abs(self.tvalues.to_numpy()))
        return pd.Series(pvalues, self._names, name="pvalues")

    def cov_params(self) -> pd.DataFrame:
        """Return the covariance of the coefficients, sampling and noise, in the delta form.

        Raises
        ------
        NotAvailable
            If a coefficient is not identified.
        """
        _require_identified(self.identified.to_numpy())
        covariance, names = self.linear.about_population.covariance(), list(self._names)
        covariance = covariance[np.ix_(self._shown, self._shown)]
        return pd.DataFrame(covariance, index=names, columns=names)

    def fixed_effects(self, level: float = 0.95) -> Estimates:
        """Return the fixed effects of ``y ~ x | firm + year`` by level, as fixest's ``fixef``.

        Of the first factor the expected response where all terms are 0, of each further one the
        differences from its first level.

        Parameters
        ----------
        level : float
            Coverage of the intervals, in (0, 1), each by itself.

        Returns
        -------
        Estimates
            ``factor, level, estimate, std_error, statistic, p_value, conf_low, conf_high``.

        Raises
        ------
        NotAvailable
            If the formula has no fixed effects.
        """
        if not self.model.fixed:
            raise NotAvailable(
                "fixed_effects() is not available: the formula has none, as in 'y ~ x | firm'"
            )
        coverage = checked_level(level)
        keys, rows = fixed_rows(self._terms, self.model.fixed)
        law = self._law("fixed_effects()")
        columns = tested(law, rows, rows @ law.params, coverage, "none")
        table = pd.DataFrame({**keys, **columns})
        title = f"Fixed effects of {self._expected}{in_unit(self._unit)}"
        return Estimates(self, title, table, (FIXED_NOTE,), coverage)

    def _interval(self, level: float, *, population: bool) -> pd.DataFrame:
        fit = self.linear
        return self._ends(fit.full_ends(level) if population else fit.noise_ends(level))

    @property
    def _extra_variables(self) -> tuple[str, ...]:
        return () if self.model.weights is None else (self.model.weights,)

    def _law(self, method: str) -> ParametersLaw:
        return self.linear.about_population

    @property
    def _cap_shift(self) -> tuple[Floats, Floats]:
        shift, shift_sd = self.linear.cap_shift
        return shift[self._shown], shift_sd[self._shown]

    @property
    def rsquared(self) -> float:
        """Share of the response's variance that is explained, in [0, 1]; nan if lost in noise."""
        return self.linear.rsquared[0]

    @property
    def rsquared_adj(self) -> float:
        """`rsquared` less what as many terms explain by chance; nan if lost in noise."""
        slopes = 0 if self.model.sampled else len(self.linear.names) - self.model.intercept
        return 1 - (1 - self.rsquared) * (self.df_resid + slopes) / self.df_resid

    @property
    def scale(self) -> float:
        """Variance of the residuals, of weight 1, in squared units of the response.

        nan where it is lost in noise: below twice :attr:`scale_noise_sd`.
        """
        value, sd = self.linear.scale
        return value if value > DETECTION_SDS * sd else math.nan

    @property
    def has_heavy_tail(self) -> bool:
        """Whether few rows far from the line may determine the intercept.

        Many more rows are on one side of the line than on the other, or the allowance for cut
        residuals of one sign is most of the intercept's variance and they may be. Intervals of
        Pareto responses of index 1.5 cover from a half to four fifths. False where no residuals
        were cut, or none by a counted tail.
        """
        ball = self.release.ball
        named = self.sampled and self.linear.names[0] == INTERCEPT
        if ball is None or ball.skew is None or not named:
            return False
        excess = abs(ball.one_sided)
        if excess > MOST_ONE_SIDED:
            return True
        even = replace(self, release=replace(self.release, ball=replace(ball, skew=None)))
        is_most = bool(2 * even.bse.iloc[0] ** 2 < self.bse.iloc[0] ** 2)
        return is_most and not excess < LEAST_ONE_SIDED

    @property
    def scale_noise_sd(self) -> float:
        """Noise sd of :attr:`scale`."""
        return self.linear.scale[1]

    @property
    def nobs(self) -> float:
        """Number of rows used: complete ones, as released."""
        return self.linear.nobs

    @property
    def df_resid(self) -> float:
        """Degrees of freedom of the residuals, at least 1."""
        return self.linear.freedom

    @property
    def df_model(self) -> int:
        """Number of slopes."""
        return len(self.call.names) - 1

    @property
    def slopes_test(self) -> tuple[float, float, float]:
        """χ², degrees of freedom and p-value of all identified slopes being 0."""
        slopes = [at for at in self._shown if self.linear.names[at] != INTERCEPT]
        return self.linear.slopes_test(slopes)

    @property
    def strength(self) -> float:
        """How far X'X exceeds its noise: 1 over the edge of the noise in units of X'X.

        Below 2 intervals are searched for, by score inversion over all
        parameters; below 0.5 few coefficients are :attr:`identified`.
        """
        return self.linear.equations.strength

    def _response(self, rows: PublicRows) -> Floats:
        intercepts = np.ones((int(self.model.intercept), len(rows.outside)))
        return self._mean(np.vstack([intercepts, rows.coded]))

    def _mean(self, rows: Floats) -> Floats:
        """Return the expected response of rows, by columns, nan where it is not identified."""
        identified = np.asarray(np.isfinite(rows).all(axis=0))
        complete = np.flatnonzero(identified)
        for batch in np.split(complete, range(_ROWS, len(complete), _ROWS)):
            identified[batch] = self.linear.identifies(rows[:, batch].T)
        if len(complete) and not identified.any():
            raise NotAvailable(
                "predict() is not available: every row needs a coefficient that is not "
                "identified at this budget; conf_int() shows which"
            )
        return np.where(identified, self.linear.params @ np.where(identified, rows, 0.0), math.nan)

    def get_prediction(
        self, newdata: object, level: float = 0.95, *, clip: bool = False
    ) -> pd.DataFrame:
        """Return the response expected of public rows, as for :meth:`predict`, with its intervals.

        Returns
        -------
        DataFrame
            ``mean, mean_se, mean_ci_lower, mean_ci_upper`` for the population's mean, by the law of
            :meth:`conf_int`, and ``obs_ci_lower, obs_ci_upper`` for one row. The latter two need
            :attr:`scale` and are left out with weights and a private number of rows.

        Raises
        ------
        NotAvailable
            Where no row's expected response is identified.

        Notes
        -----
        ``obs_ci`` assumes a normal residual with the variance of all residuals: coverage differs
        for two levels, whole numbers, skewed or heavy-tailed residuals. After ``vcov="HC"`` it is
        the average variance, as in statsmodels: `level` of new rows like those of the fit are
        covered, fewer where residuals vary more and more where they vary less. It allows for the
        noise in that variance, and covers more than `level` where that is large.
        """
        table, fit = super().get_prediction(newdata, level, clip=clip), self.linear
        if len(table) and not np.isfinite(table["mean"]).any():
            _require_identified(self.linear.identified)
        value, sd = fit.scale
        if math.isnan(value):
            return table
        spread = normal_width(table["mean_se"].to_numpy() ** 2 + value, sd, level)
        mean = table["mean"]
        return table.assign(obs_ci_lower=mean - spread, obs_ci_upper=mean + spread)

    @property
    def _link(self) -> Link:
        return IDENTITY

    @property
    def _unit(self) -> str:
        return unit_of(self.call.codebook, self.linear.response)

    @property
    def _absorbed(self) -> set[str]:
        return {name for code in self.model.fixed for name in variables_in(code)}

    @property
    def _means(self) -> dict[str, float]:
        means = dict(zip(self.call.names, self.linear.term_means.tolist(), strict=False))
        plain = {quote(name): name for name in self._terms.design.variables}
        return {plain[code]: mean for code, mean in means.items() if code in plain}

    @property
    def _expected(self) -> str:
        return self.linear.response

    @property
    def sampled(self) -> bool:
        """Whether there are standard errors: they need the number of rows, or ``vcov="HC"``."""
        return self.linear.sampled

    def ridge_path(self, lambdas: Sequence[float] | None = None) -> PathResult:
        """Return coefficients by ridge penalty, from 1,000 to 0.001; else as :meth:`lasso_path`."""
        return path(self._without_fixed("ridge_path()"), "ridge", lambdas)

    def lasso_path(self, lambdas: Sequence[float] | None = None) -> PathResult:
        """Return coefficients by lasso penalty, at no privacy cost.

        Parameters
        ----------
        lambdas : sequence of float, optional
            Penalties, 0 or more; 50 by default, from where all slopes are 0 to a thousandth of it.

        Raises
        ------
        ArgumentError, NotAvailable
            If they are not such numbers; if there is no slope.
        """
        return path(self._without_fixed("lasso_path()"), "lasso", lambdas)

    def _without_fixed(self, method: str) -> LinearFit:
        """Return the equations, or refuse those of fixed effects, which have no penalty."""
        if self.model.fixed:
            raise NotAvailable(
                f"{method} is not available: fixed effects have no penalty; write "
                f"'+ {self.model.fixed[0]}' in place of '| {self.model.fixed[0]}'"
            )
        return self.linear

    def noise(self) -> pd.DataFrame:
        """Return the noise panel.

        By coefficient ``estimate, noise_sd, sampling_sd, lower, upper, identified``.
        """
        table = {
            "estimate": self.params,
            "noise_sd": self.bse_noise,
            "sampling_sd": self.bse_sampling if self.sampled else math.nan,
            **self.noise_int(),
            "identified": self.identified,
        }
        return pd.DataFrame(table)

    def _estimates(self) -> EstimateTable:
        codebook, response, index = self.call.codebook, self.linear.response, self._names
        units = [slope_unit(codebook, response, term) for term in index]
        return table_of_estimates(self, index, labels=list(index), unit=units)

    def _line(self) -> dict[str, object]:
        return {
            "r_squared": self.rsquared,
            "adj_r_squared": self.rsquared_adj,
            "sigma": float(np.sqrt(self.scale)),
            **dict(zip(("statistic", "df", "p_value"), self.slopes_test, strict=True)),
            "nobs": self.nobs,
            "df_residual": self.df_resid,
            "strength": self.strength,
            "nidentified": int(self.identified.sum()),
        }

    def _size(self) -> str:
        return f"{len(self._shown)} coefficients"

    def plot(
        self,
        level: float = 0.95,
        ax: Axes | None = None,
        *,
        standardize: Literal["range", "sd"] | None = None,
        caption: bool = True,
    ) -> Axes:
        """Draw the coefficients, without the constant: parameters as in :func:`dp.coefplot`."""
        from dpmodels.results.coefficient_plot import coefplot

        return coefplot(self, standardize=standardize, level=level, ax=ax, caption=caption)

    scores, fittedvalues, resid = per_row("predict(newdata)")


def _require_identified(identified: NDArray[np.bool_]) -> None:
    if not identified.all():
        raise NotAvailable(
            "cov_params() and get_prediction() are not available: not all coefficients are "
            "identified at this budget; conf_int() shows which"
        )
