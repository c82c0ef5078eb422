"""The result of a private linear regression."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Literal

import numpy as np
import pandas as pd
from scipy.special import ndtr

from dpmodels.errors import NotAvailable
from dpmodels.inference.least_squares import LeastSquares
from dpmodels.inference.links import IDENTITY, Link
from dpmodels.inference.noisy_variance import TOLD, normal_width
from dpmodels.released import MomentsRelease
from dpmodels.results.base import per_row
from dpmodels.results.call import MomentsCall
from dpmodels.results.estimate_table import EstimateTable, estimate_table, slope_unit
from dpmodels.results.estimated import Estimated
from dpmodels.results.lm_fit import LinearFit, LinearModel, Population
from dpmodels.results.path import PathResult, path
from dpmodels.results.public_rows import PublicRows
from dpmodels.typing import Coder, Floats

if TYPE_CHECKING:
    from matplotlib.axes import Axes
_ROWS = 4096  # of a prediction, at a time


@dataclass(frozen=True, repr=False)
class LMResult(Estimated):
    """A private linear regression: released values and public facts only.

    Parameters
    ----------
    model : LinearModel
        Whether there is a constant, and weights.

    Notes
    -----
    Names are statsmodels', distributions normal and χ². Standard errors, tests and :meth:`conf_int`
    are for the population: they allow for the privacy noise in X'X and X'y, and for sampling, with
    residuals of equal variance (in proportion to 1/weight with weights), of any variance after
    ``vcov="HC"``, or correlated within persons after ``vcov="cluster"``. :meth:`noise_int` is for
    the non-private estimate on these rows. Both are infinite where a coefficient is not identified;
    with weights and a private number of rows, :meth:`conf_int` needs one of these two ``vcov``.
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
    def _names(self) -> pd.Index[str]:
        return pd.Index(self.linear.names, dtype=object, name="term")

    def _series(self, values: Floats, name: str) -> pd.Series[float]:
        return pd.Series(values, index=self._names, name=name)

    def _ends(self, ends: Floats) -> pd.DataFrame:
        return pd.DataFrame(ends, index=self._names, columns=["lower", "upper"])

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
        return pd.Series(self.linear.identified, index=self._names, name="identified")

    @property
    def bse(self) -> pd.Series[float]:
        """Standard errors, sampling and noise; infinite where not identified.

        Where intervals are searched for, at a :attr:`strength` below 2, the
        half length of the 95 % interval over 1.96.
        """
        return self._bse(self._sds(self.linear.full_law), "bse")

    @property
    def bse_noise(self) -> pd.Series[float]:
        """Standard deviations of the privacy noise alone; infinite where not identified."""
        return self._bse(self._sds(self.linear.noise_law), "bse_noise")

    @property
    def bse_sampling(self) -> pd.Series[float]:
        """Standard errors without the privacy noise; infinite where not identified."""
        total_sd, noise = self.bse.to_numpy(), self.bse_noise.to_numpy()
        noise_sd = np.where(self.linear.identified, noise, 0.0)
        return self._bse(np.sqrt(np.maximum(total_sd**2 - noise_sd**2, 0.0)), "bse_sampling")

    def _sds(self, law: LeastSquares) -> Floats:
        return self.linear.errors(law, np.eye(len(self.linear.names)))

    def _bse(self, sds: Floats, name: str) -> pd.Series[float]:
        return self._series(np.where(self.linear.identified, sds, np.inf), name)

    @property
    def tvalues(self) -> pd.Series[float]:
        """Signed roots of the score statistics that :meth:`conf_int` inverts.

        ``params / bse`` where a coefficient's own sum of squares is ten of its
        noise sds or more; nan where the coefficient is not identified.
        """
        fit, ones = self.linear, np.eye(len(self.linear.names))
        return self._series(fit.roots(fit.full_law, ones, 0 * ones[0]), "tvalues")

    @property
    def pvalues(self) -> pd.Series[float]:
        """Two-sided p-values for a coefficient of 0, consistent with :meth:`conf_int`."""
        return self._series(2 * ndtr(-np.abs(self.tvalues.to_numpy())), "pvalues")

    def cov_params(self) -> pd.DataFrame:
        """Return the covariance of the coefficients, sampling and noise, in the delta form.

        Raises
        ------
        NotAvailable
            If a coefficient is not identified.
        """
        self._require_identified()
        fit, names = self.linear, list(self.linear.names)
        return pd.DataFrame(fit.covariance(fit.full_law), index=names, columns=names)

    def _conf_int(self, level: float) -> pd.DataFrame:
        return self._ends(self.linear.full_ends(level))

    def _noise_int(self, level: float) -> pd.DataFrame:
        return self._ends(self.linear.noise_ends(level))

    @property
    def _extra_variables(self) -> tuple[str, ...]:
        return () if self.model.weights is None else (self.model.weights,)

    def _law(self, method: str) -> Population:
        return Population(self.linear)

    @property
    def rsquared(self) -> float:
        """Share of the response's variance that is explained, in [0, 1]; nan if lost in noise."""
        return self.linear.rsquared[0]

    @property
    def rsquared_adj(self) -> float:
        """`rsquared` less what as many terms explain by chance; nan if lost in noise."""
        n_centred = self.nobs - self.model.intercept
        return 1 - (1 - self.rsquared) * max(n_centred, 1.0) / self.df_resid

    @property
    def scale(self) -> float:
        """Variance of the residuals, of weight 1, in squared units of the response.

        nan where it is lost in noise: below twice :attr:`scale_noise_sd`.
        """
        value, sd = self.linear.scale
        return value if value > TOLD * sd else math.nan

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
            identified[batch] = self.linear.told(rows[:, batch].T)
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
            :meth:`conf_int`, and ``obs_ci_lower, obs_ci_upper`` for one row, nan after
            ``vcov="HC"``, since a row's own variance has no estimate, and where the noise in the
            residuals' variance is over half the variance of what is predicted.

        Raises
        ------
        NotAvailable
            Where no row's expected response is identified.

        Notes
        -----
        ``obs_ci`` assumes a normal residual with the common variance: coverage differs for two
        levels, whole numbers, skewed or heavy-tailed residuals. It allows for the noise in that
        variance, and covers more than `level` where that is large.
        """
        table, fit = super().get_prediction(newdata, level, clip=clip), self.linear
        if len(table) and not np.isfinite(table["mean"]).any():
            self._require_identified()
        value, sd = (math.nan, math.nan) if fit.uneven else fit.scale
        spread = normal_width(table["mean_se"].to_numpy() ** 2 + value, sd, level)
        return table.assign(
            obs_ci_lower=table["mean"] - spread, obs_ci_upper=table["mean"] + spread
        )

    def _require_identified(self) -> None:
        """Raise NotAvailable unless every coefficient is identified."""
        if not self.identified.all():
            raise NotAvailable(
                "cov_params() and get_prediction() are not available: not all coefficients are "
                "identified at this budget; conf_int() shows which"
            )

    @property
    def _link(self) -> Link:
        return IDENTITY

    @property
    def _expected(self) -> str:
        return self.linear.response

    @property
    def sampled(self) -> bool:
        """Whether there are standard errors: they need the number of rows, or ``vcov="HC"``."""
        return self.linear.sampled

    def ridge_path(self, lambdas: Sequence[float] | None = None) -> PathResult:
        """Return coefficients by ridge penalty, from 1,000 to 0.001; else as :meth:`lasso_path`."""
        return path(self.linear, "ridge", lambdas)

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
        return path(self.linear, "lasso", lambdas)

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
        return estimate_table(self, index, labels=list(index), unit=units)

    def _line(self) -> dict[str, object]:
        return {
            "r_squared": self.rsquared,
            "adj_r_squared": self.rsquared_adj,
            "sigma": float(np.sqrt(self.scale)),
            **dict(zip(("statistic", "df", "p_value"), self.linear.slopes_test(), strict=True)),
            "nobs": self.nobs,
            "df_residual": self.df_resid,
            "strength": self.strength,
            "nidentified": int(self.identified.sum()),
        }

    @property
    def _size(self) -> str:
        return f"{len(self.linear.names)} coefficients"

    def plot(
        self,
        level: float = 0.95,
        ax: Axes | None = None,
        *,
        standardize: Literal["range", "sd"] | None = "range",
        caption: bool = True,
    ) -> Axes:
        """Draw the coefficients, without the constant: parameters as in :func:`dp.coefplot`."""
        from dpmodels.results.coefficient_plot import coefplot

        return coefplot(self, standardize=standardize, level=level, ax=ax, caption=caption)

    scores, fittedvalues, resid = per_row("predict(newdata)")
