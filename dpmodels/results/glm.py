"""The result of a private generalised linear model."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import expit, ndtr

from dpmodels.errors import ArgumentError, NotAvailable, shorten
from dpmodels.inference.sandwich import FAR, Sandwich, least_noise, sandwich
from dpmodels.released import CoefficientsRelease
from dpmodels.results.base import NO_SCORE, Refused, per_row
from dpmodels.results.call import LINKS, CoefficientsCall
from dpmodels.results.described import interval_columns
from dpmodels.results.discoveries import Tested
from dpmodels.results.legend import labelled
from dpmodels.typing import Coder, Floats

if TYPE_CHECKING:
    from matplotlib.axes import Axes


# Mechanisms that buy what intervals are made from.
BUYERS = ("objective", "gradients")


@dataclass(frozen=True, repr=False)
class GLMResult(Tested):
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
    def held(self) -> CoefficientsCall:
        """The call in the units of the ball that the rows were read in."""
        return self.call.held_in(self.release.ball)

    @cached_property
    def sandwich(self) -> Sandwich | None:
        """Estimate and covariances in units of the ball, None where there are none."""
        return sandwich(self.release)

    @cached_property
    def _found(self) -> dict[tuple[float, bool], Floats]:
        """Ends of intervals, which are searched for once."""
        return {}

    @cached_property
    def _open(self) -> list[str]:
        """Numbers whose curvature may be noise alone.

        Those of levels are of ordinary size where no row shows them. That of a number is as
        large, in units of its range, as the range is wide, and moves all others by what is not
        known of it.
        """
        names = self.call.names
        swamped = [] if self.sandwich is None else np.flatnonzero(self.sandwich.swamped).tolist()
        return [names[i] for i in swamped if names[i] != "Intercept" and _is_number(names[i])]

    def _ends(self, level: float, *, full: bool = True) -> Floats:
        """Return ends for the population or for the rows' own, shape (coefficients, 2).

        nan where the population's are open, which hold the others.
        """
        own, key = self.sandwich, (level, full)
        if key in self._found:
            return self._found[key]
        ends = np.full((len(self.call.names), 2), np.nan)
        if own is not None and own.far <= FAR and not self._open:
            for at, way in enumerate(self.held.matrix):
                if full or math.isfinite(self._ends(level)[at, 0]):
                    low, high = own.interval(way, level, full=full)
                    ends[at] = (low, high) if math.isfinite(high - low) else np.nan
        if not full:
            wide = self._ends(level)
            ends = np.clip(np.where(np.isnan(ends), wide, ends), wide[:, :1], wide[:, 1:])
        self._found[key] = ends
        return ends

    @property
    def identified(self) -> pd.Series[bool]:
        """Of which coefficients noise leaves the size open on no side."""
        known = np.isfinite(self._ends(0.95)).all(axis=1)
        return pd.Series(known, index=pd.Index(self.call.names, name="term"), name="identified")

    @property
    def params(self) -> pd.Series[float]:
        """Coefficients of the coded columns in their own units."""
        own = self.sandwich
        known = own is not None and self.identified.any()
        ball = own.estimate if own is not None and known else self.release.coefficients
        return self._series(self.held.matrix @ ball, "params")

    @property
    def params_released(self) -> pd.Series[float]:
        """Coefficients as released, pulled by the ridge towards a constant alone."""
        return self._series(self.held.matrix @ self.release.coefficients, "params_released")

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
        """Distances from 0 in standard errors, of normal law about the truth."""
        own, known = self._clear("tvalues"), self.identified.to_numpy()
        each = [
            own.statistic(way) if there else math.nan
            for way, there in zip(self.held.matrix, known, strict=True)
        ]
        return self._series(np.array(each), "tvalues")

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
        return self._series(np.linalg.norm(self.held.matrix @ root, axis=1), "noise_least")

    @property
    def classes(self) -> tuple[str, ...]:
        """The two levels of the response, the modelled one last; empty where it is a number."""
        return self.call.levels

    def cov_params(self) -> pd.DataFrame:
        """Return the covariance of the coefficients about the population's, if there is one."""
        own = self._clear("cov_params()")
        root = self.held.matrix @ np.hstack([own.noise_root, own.sampling_root])
        known = np.where(self.identified, 1.0, np.nan)
        return self._frame((root @ root.T) * np.outer(known, known))

    def _conf_int(self, level: float) -> pd.DataFrame:
        self._clear("conf_int()")
        return self._interval(self._ends(level))

    def _noise_int(self, level: float) -> pd.DataFrame:
        self._clear("noise_int()")
        return self._interval(self._ends(level, full=False))

    def tidy(self) -> pd.DataFrame:
        """Return one row a coefficient, by broom's conventions.

        ``term, estimate`` and, where any is identified, ``std_error, statistic,
        p_value, noise_sd, noise_low, noise_high, conf_low, conf_high``; 95 %
        intervals, nan where a coefficient is not.
        """
        table: dict[str, Any] = {"estimate": self.params}
        if self.identified.any():
            table |= {
                "std_error": self.bse,
                "statistic": self.tvalues,
                "p_value": self.pvalues,
                "noise_sd": self.bse_noise,
                **interval_columns(self.noise_int(), self.conf_int()),
            }
        tidy = pd.DataFrame(table).reset_index()
        return labelled(tidy, self.call.codebook, label=self.call.names)

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
        params = np.asarray(self.params, dtype=np.float64)
        return self.call.linear(params, self.coder, newdata)

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
        if self.identified.any():
            return ""
        if self.sandwich is not None and self.sandwich.far > FAR:
            return (
                "not identified at this budget: the noise in the linear predictor is so large that "
                "its errors do not add up; a larger budget, more rows or fewer terms are needed"
            )
        if self._open:
            return (
                "not identified at this budget: noise swamps the curvature of "
                f"{shorten(', '.join(self._open))}, whose part in the other coefficients is not "
                "known; narrower bounds, a larger budget, more rows or fewer terms are needed"
            )
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
        if self.sandwich is None or not self.identified.any():
            raise NotAvailable(f"{name} is not available: {self.why_not}")
        return self.sandwich

    def _sds(self, root: Floats) -> Floats:
        sds = np.linalg.norm(self.held.matrix @ root, axis=1)
        return np.where(self.identified, sds, np.nan)

    def _series(self, values: NDArray[np.floating], name: str) -> pd.Series[float]:
        return pd.Series(values, index=pd.Index(self.call.names, name="term"), name=name)

    def _frame(self, values: Floats) -> pd.DataFrame:
        names = list(self.call.names)
        return pd.DataFrame(values, index=pd.Index(names, name="term"), columns=names)

    def _interval(self, ends: Floats) -> pd.DataFrame:
        names = pd.Index(self.call.names, name="term")
        return pd.DataFrame(ends, index=names, columns=["lower", "upper"])


def _is_number(name: str) -> bool:
    """Whether a coefficient is of a number, or of one within levels, by its name."""
    return any("[" not in part for part in name.split(":"))
