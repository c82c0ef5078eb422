"""The result of a private generalised linear model."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import expit, ndtr, ndtri

from dpmodels.errors import ArgumentError, NotAvailable
from dpmodels.inference.sandwich import Sandwich, sandwich
from dpmodels.released import CoefficientsRelease
from dpmodels.results.base import NO_SCORE, Refused, Result, per_row
from dpmodels.results.call import LINKS, CoefficientsCall
from dpmodels.results.described import interval_columns
from dpmodels.typing import Coder, Floats

if TYPE_CHECKING:
    from matplotlib.axes import Axes


# Mechanisms that buy what intervals are made from.
BUYERS = ("objective", "gradients")


@dataclass(frozen=True, repr=False)
class GLMResult(Result):
    """A private logistic or Poisson regression: released values and public facts only.

    Notes
    -----
    Where curvature was bought and stands clear of its noise, what is known of
    the gradient, as the ridge's pull, is taken off the coefficients and there
    are standard errors. Elsewhere the
    coefficients are as released, and whatever needs more raises
    ``NotAvailable`` with the reason.
    """

    call: CoefficientsCall
    release: CoefficientsRelease
    coder: Coder | None = field(default=None, repr=False)

    @cached_property
    def sandwich(self) -> Sandwich | None:
        """Estimate and covariances in units of the ball, None where there are none."""
        return sandwich(self.release)

    @property
    def params(self) -> pd.Series[float]:
        """Coefficients of the coded columns in their own units."""
        own = self.sandwich
        ball = self.release.coefficients if own is None else own.estimate
        return self._series(self.call.matrix @ ball, "params")

    @property
    def params_released(self) -> pd.Series[float]:
        """Coefficients as released, pulled towards 0 by the ridge."""
        return self._series(self.call.matrix @ self.release.coefficients, "params_released")

    @property
    def bse(self) -> pd.Series[float]:
        """Standard errors for the population: sampling and privacy noise."""
        return self._series(np.hypot(self.bse_noise, self.bse_sampling), "bse")

    @property
    def bse_noise(self) -> pd.Series[float]:
        """Standard deviations of the privacy noise alone."""
        own = self._clear("bse_noise")
        return self._series(self._sds(own.noise_root), "bse_noise")

    @property
    def bse_sampling(self) -> pd.Series[float]:
        """Standard errors that there would be without privacy noise."""
        own = self._clear("bse_sampling")
        return self._series(self._sds(own.sampling_root), "bse_sampling")

    @property
    def tvalues(self) -> pd.Series[float]:
        """Coefficients over standard errors, of normal law about the truth."""
        return self._series(self.params.to_numpy() / self.bse.to_numpy(), "tvalues")

    @property
    def pvalues(self) -> pd.Series[float]:
        """Two-sided p-values for a coefficient of 0."""
        return self._series(2 * ndtr(-np.abs(self.tvalues.to_numpy())), "pvalues")

    @property
    def classes(self) -> tuple[str, ...]:
        """The two levels of the response, the modelled one last; empty where it is a number."""
        return self.call.levels

    def cov_params(self) -> pd.DataFrame:
        """Return the covariance of the coefficients about the population's, if there is one."""
        own = self._clear("cov_params()")
        root = self.call.matrix @ np.hstack([own.noise_root, own.sampling_root])
        return self._frame(root @ root.T)

    def _conf_int(self, level: float) -> pd.DataFrame:
        self._clear("conf_int()")
        return self._interval(self.bse, level)

    def _noise_int(self, level: float) -> pd.DataFrame:
        self._clear("noise_int()")
        return self._interval(self.bse_noise, level)

    def tidy(self) -> pd.DataFrame:
        """Return one row a coefficient, by broom's conventions.

        ``term, estimate`` and, where they exist, ``std_error, statistic, p_value,
        noise_sd, noise_low, noise_high, conf_low, conf_high``; 95 % intervals.
        """
        table: dict[str, Any] = {"estimate": self.params}
        if self.sandwich is not None:
            table |= {
                "std_error": self.bse,
                "statistic": self.tvalues,
                "p_value": self.pvalues,
                "noise_sd": self.bse_noise,
                **interval_columns(self.noise_int(), self.conf_int()),
            }
        return pd.DataFrame(table).reset_index()

    def _line(self) -> dict[str, Any]:
        return {
            "nobs": self.nobs,
            "nterms": len(self.call.names),
            "family": self.call.family,
            "ridge": self.release.ridge,
        }

    def plot(self, level: float = 0.95, ax: Axes | None = None) -> Axes:
        """Draw coefficients and both intervals, as :meth:`LMResult.plot`, where there are any."""
        from dpmodels.plots.points import coefficients

        self._clear("plot()")
        own = int(self.call.intercept)
        shown = list(self.call.names[own:])
        if not shown:
            raise ArgumentError("plot(): the model has no terms besides the constant")
        of = self.call.levels[1] if self.call.levels else self.call.response
        return coefficients(
            self.params[shown].to_numpy(),
            self.noise_int(level).loc[shown].to_numpy(),
            self.conf_int(level).loc[shown].to_numpy(),
            labels=shown,
            title=f"Coefficient ({of}, {LINKS[self.call.family]})",
            ax=ax,
            stamp=self.stamp,
        )

    @property
    def _size(self) -> str:
        return self.call.family

    def decision_function(self, newdata: object) -> Floats:
        """Return the linear predictor of new, public rows: log odds, or the logarithm of a mean.

        Parameters
        ----------
        newdata : frame
            Public rows with the variables of the right-hand side.

        Returns
        -------
        ndarray, shape (rows,)
            nan for incomplete rows.

        Raises
        ------
        NotAvailable
            Where the formula has no terms.
        """
        if self.coder is None:
            raise NotAvailable("predictions need terms to code rows by: the formula has none")
        return self.call.linear(np.asarray(self.params, dtype=np.float64), self.coder(newdata))

    def predict(self, newdata: object) -> Floats:
        """Return the expected response of new, public rows, as :meth:`decision_function`.

        Probabilities of the second level, or means; nan for incomplete rows.
        """
        linear = self.decision_function(newdata)
        binomial = self.call.family == "binomial"
        return np.asarray(expit(linear) if binomial else np.exp(np.minimum(linear, 700.0)))

    scores, fittedvalues, resid = per_row("predict(newdata)")
    score = Refused(NO_SCORE)
    llf = Refused(
        "of the private rows was not released; for public rows compare predict(newdata) with "
        "their response"
    )

    @property
    def why_not(self) -> str:
        """The reason why there are no standard errors; empty where there are."""
        if self.sandwich is not None:
            return ""
        if self.release.curvature is not None:
            return (
                "not identified at this budget: the curvature bought for it does not stand clear "
                "of its noise; a larger budget, more rows, fewer terms, or levels that the terms "
                "do not separate are needed"
            )
        if self.release.card.name in BUYERS:
            return "no share of the budget was spent on it: fit with inference=True"
        return (
            f'mechanism="{self.release.card.name}" has no intervals that are known to cover: fit '
            'with mechanism="objective" or "gradients"'
        )

    def _clear(self, name: str) -> Sandwich:
        if self.sandwich is None:
            raise NotAvailable(f"{name} is not available: {self.why_not}")
        return self.sandwich

    def _sds(self, root: Floats) -> Floats:
        return np.asarray(np.linalg.norm(self.call.matrix @ root, axis=1))

    def _series(self, values: NDArray[np.floating], name: str) -> pd.Series[float]:
        return pd.Series(values, index=pd.Index(self.call.names, name="term"), name=name)

    def _frame(self, values: Floats) -> pd.DataFrame:
        names = list(self.call.names)
        return pd.DataFrame(values, index=pd.Index(names, name="term"), columns=names)

    def _interval(self, sd: pd.Series[float], level: float) -> pd.DataFrame:
        width = float(ndtri((1 + level) / 2))
        return pd.DataFrame({"lower": self.params - width * sd, "upper": self.params + width * sd})
