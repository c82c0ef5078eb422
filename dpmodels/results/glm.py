"""The result of a private generalised linear model."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import ndtr

from dpmodels.inference.links import OF_FAMILY, Link
from dpmodels.inference.sandwich import Sandwich, least_noise
from dpmodels.released import CoefficientsRelease
from dpmodels.results.base import NO_LLF, NO_SCORE, Refused, per_row
from dpmodels.results.call import CoefficientsCall
from dpmodels.results.estimate_table import EstimateTable, estimate_table
from dpmodels.results.estimated import Estimated
from dpmodels.results.estimates import Estimates
from dpmodels.results.glm_fit import CoefficientsFit
from dpmodels.results.public_rows import PublicRows, public_rows
from dpmodels.typing import Coder, Floats

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True, repr=False)
class GLMResult(Estimated):
    """A private logistic or Poisson regression: released values and public facts only.

    Notes
    -----
    Where curvature was bought and stands clear of its noise along some way,
    what is known of the gradient, as the ridge's pull, is taken off the
    coefficients, and there are standard errors of those that are identified:
    where the curvature is less than five times its noise, intervals and tests
    are by inversion of the score, not coefficient ± 1.96 standard errors.
    Errors and intervals of other coefficients are nan; where none is
    identified the coefficients are as released, and whatever needs more raises
    ``NotAvailable`` with the reason.
    """

    call: CoefficientsCall
    release: CoefficientsRelease
    coder: Coder | None = field(default=None, repr=False)

    @cached_property
    def linear(self) -> CoefficientsFit:
        """The coefficients, and the laws of their combinations."""
        return CoefficientsFit(self.call, self.release)

    @property
    def sandwich(self) -> Sandwich | None:
        """Estimate and covariances in units of the ball, None where there are none."""
        return self.linear.sandwich

    @property
    def why_not(self) -> str:
        """The reason why there are no standard errors; empty where there are."""
        return self.linear.why_not

    @property
    def identified(self) -> pd.Series[bool]:
        """Of which coefficients noise leaves the size open on no side."""
        index = pd.Index(self.call.names, name="term")
        return pd.Series(self.linear.identified, index=index, name="identified")

    @property
    def params(self) -> pd.Series[float]:
        """Coefficients of the coded columns in their own units."""
        return self._series(self.linear.params, "params")

    @property
    def params_released(self) -> pd.Series[float]:
        """Coefficients as released, pulled by the ridge towards a constant alone."""
        matrix = self.linear.held.matrix
        return self._series(matrix @ self.release.coefficients, "params_released")

    @property
    def bse(self) -> pd.Series[float]:
        """Standard errors for the population: sampling and privacy noise."""
        return self._series(np.hypot(self.bse_noise, self.bse_sampling), "bse")

    @property
    def bse_noise(self) -> pd.Series[float]:
        """Standard deviations of the privacy noise alone."""
        return self._sds(self._law("bse_noise").known.noise_root, "bse_noise")

    @property
    def bse_sampling(self) -> pd.Series[float]:
        """Standard errors that there would be without privacy noise."""
        return self._sds(self._law("bse_sampling").known.sampling_root, "bse_sampling")

    @property
    def tvalues(self) -> pd.Series[float]:
        """Distances from 0 in standard errors, of normal law about the truth."""
        law, ones = self._law("tvalues"), np.eye(len(self.call.names))
        return self._series(law.roots(ones, 0 * ones[0]), "tvalues")

    @property
    def pvalues(self) -> pd.Series[float]:
        """Two-sided p-values for a coefficient of 0."""
        return self._series(2 * ndtr(-np.abs(self.tvalues.to_numpy())), "pvalues")

    @property
    def noise_least(self) -> pd.Series[float]:
        """Standard deviations that the noise of released coefficients has at the least.

        By the bought curvature and its noise, or by the public number of rows;
        nan where neither is there.
        """
        rows = self.release.rows
        most = rows / 4 if rows is not None and self.call.family == "binomial" else None
        root = least_noise(self.release, most)
        if root is None:
            return self._series(np.full(len(self.call.names), np.nan), "noise_least")
        return self._series(np.linalg.norm(self.linear.held.matrix @ root, axis=1), "noise_least")

    @property
    def classes(self) -> tuple[str, ...]:
        """The two levels of the response, the modelled one last; empty where it is a number."""
        return self.call.levels

    def cov_params(self) -> pd.DataFrame:
        """Return the covariance of the coefficients about the population's, if there is one."""
        known = np.where(self.identified, 1.0, np.nan)
        return self._frame(self._law("cov_params()").covariance() * np.outer(known, known))

    def _conf_int(self, level: float) -> pd.DataFrame:
        return self._interval("conf_int()", level, full=True)

    def _noise_int(self, level: float) -> pd.DataFrame:
        return self._interval("noise_int()", level, full=False)

    def _estimates(self) -> EstimateTable:
        names = self.call.names
        return estimate_table(self, pd.Index(names, name="term"), labels=names)

    def ratios(self, level: float = 0.95) -> Estimates:
        """Return odds ratios, or rate ratios, with their intervals: coefficients exponentiated.

        Parameters
        ----------
        level : float
            Coverage of the intervals, in (0, 1).

        Raises
        ------
        NotAvailable
            Where there are no standard errors.
        """
        return self._ratios(level)

    def _line(self) -> dict[str, Any]:
        return {
            "nobs": self.nobs,
            "nterms": len(self.call.names),
            "family": self.call.family,
            "ridge": self.release.ridge,
        }

    def plot(
        self,
        level: float = 0.95,
        ax: Axes | None = None,
        *,
        standardize: Literal["range"] | None = "range",
        exponentiate: bool = False,
        caption: bool = True,
    ) -> Axes:
        """Draw the coefficients, or odds or rate ratios: words are those of :func:`dp.coefplot`."""
        from dpmodels.results.coefficient_plot import coefplot

        self._law("plot()")
        words: dict[str, Any] = {"standardize": standardize, "exponentiate": exponentiate}
        return coefplot(self, **words, level=level, ax=ax, caption=caption)

    @property
    def _size(self) -> str:
        return self.call.family

    def decision_function(self, newdata: object, *, clip: bool = False) -> Floats:
        """Return the linear predictor of new, public rows: log odds, or the logarithm of a mean.

        Parameters
        ----------
        newdata : frame
            Public rows with the variables of the right-hand side.
        clip : bool, default False
            Whether numbers outside the codebook's bounds are held in them, as the
            rows of the fit were; else such rows are nan, and a warning counts them.

        Returns
        -------
        ndarray, shape (rows,)
            nan for incomplete rows.

        Raises
        ------
        NotAvailable
            Where the formula has no terms.

        Warns
        -----
        OutsideWarning
            With the number of public rows outside the bounds.
        """
        return public_rows(self.coder, newdata, clip=clip).linear(self.linear.params)

    def _response(self, rows: PublicRows) -> Floats:
        return self._link.mean(rows.linear(self.linear.params))

    @property
    def _link(self) -> Link:
        return OF_FAMILY[self.call.family]

    @property
    def _expected(self) -> str:
        levels, response = self.call.levels, self.call.response
        if levels == ("False", "True"):
            return f"P({response.removesuffix('[T.True]')})"
        return f"P({levels[1]})" if levels else response

    scores, fittedvalues, resid = per_row("predict(newdata)")
    score = Refused(NO_SCORE)
    llf = Refused(NO_LLF)

    def _law(self, asked: str) -> CoefficientsFit:
        return self.linear.require_law(asked)

    def _sds(self, root: Floats, name: str) -> pd.Series[float]:
        sds = np.linalg.norm(self.linear.held.matrix @ root, axis=1)
        return self._series(np.where(self.identified, sds, np.nan), name)

    def _series(self, values: NDArray[np.floating], name: str) -> pd.Series[float]:
        return pd.Series(values, index=pd.Index(self.call.names, name="term"), name=name)

    def _frame(self, values: Floats) -> pd.DataFrame:
        names = list(self.call.names)
        return pd.DataFrame(values, index=pd.Index(names, name="term"), columns=names)

    def _interval(self, asked: str, level: float, *, full: bool) -> pd.DataFrame:
        names = pd.Index(self.call.names, name="term")
        ends = self._law(asked).ends(np.eye(len(names)), level, full=full)
        return pd.DataFrame(ends, index=names, columns=["lower", "upper"])
