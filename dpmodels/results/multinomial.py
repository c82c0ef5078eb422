"""The result of a private multinomial logit."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import ndtr, softmax

from dpmodels.errors import ArgumentError, NotAvailable
from dpmodels.inference.sandwich import Sandwich, ends, sandwich
from dpmodels.inference.told_levels import told_levels
from dpmodels.postprocess.contrasts import against_first
from dpmodels.released import CoefficientsRelease
from dpmodels.results.base import NO_SCORE, Refused, Result, per_row
from dpmodels.results.call import CoefficientsCall
from dpmodels.results.described import interval_columns
from dpmodels.results.legend import labelled
from dpmodels.results.unidentified import is_number, not_identified
from dpmodels.typing import Coder, Floats

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True, repr=False)
class MultinomialResult(Result):
    """A private multinomial logit: released values and public facts only.

    Notes
    -----
    Coefficients of a level are log odds against the reference, the first level
    declared: frames have a row for each term and a column for each other level,
    as statsmodels' ``MNLogit`` has them. They are the same model whichever
    level is the reference, noise included.

    Standard errors and intervals as of
    :class:`dpmodels.results.glm.GLMResult`; those of levels that few rows have
    may be nan while those of others are not.
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
        """Estimate and covariances of contrasts in units of the ball, None where there are none."""
        return sandwich(self.release)

    @cached_property
    def ways(self) -> Floats:
        """What turns released contrasts into coefficients, those of a level one after the other."""
        return np.asarray(np.kron(against_first(len(self.call.levels)), self.held.matrix))

    @cached_property
    def _found(self) -> dict[tuple[float, bool], Floats]:
        """Ends of intervals, which are searched for once."""
        return {}

    @cached_property
    def _open(self) -> list[str]:
        """Numbers whose curvature may be noise alone along some contrast."""
        if self.sandwich is None:
            return []
        swamped = self.sandwich.swamped.reshape(self.call.blocks, -1)
        named = zip(self.call.names, swamped.T, strict=True)
        lost = [name for name, own in named if own.any()]
        return [name for name in lost if name != "Intercept" and is_number(name)]

    @cached_property
    def _told(self) -> NDArray[np.bool_]:
        """Of which coefficients the level, and the reference, are told from noise."""
        own, bought = self.sandwich, self.release.curvature
        if own is None or bought is None:
            return np.zeros(len(self.ways), dtype=bool)
        reference, *others = told_levels(own, bought, len(self.call.levels)).tolist()
        return np.repeat([reference and told for told in others], len(self.call.names))

    def _ends(self, level: float, *, full: bool = True) -> Floats:
        """Return ends for the population or for the rows' own, shape (coefficients, 2)."""
        key = level, full
        if key not in self._found:
            own = None if self._open else self.sandwich
            wide = None if full else self._ends(level)
            found = ends(own, self.ways, level, wide)
            self._found[key] = np.where(self._told[:, None], found, np.nan)
        return self._found[key]

    @property
    def classes(self) -> tuple[str, ...]:
        """The levels of the response, the reference first."""
        return self.call.levels

    @property
    def identified(self) -> pd.DataFrame:
        """Of which coefficients noise leaves the size open on no side."""
        return self._frame(np.isfinite(self._ends(0.95)).all(axis=1))

    @property
    def params(self) -> pd.DataFrame:
        """Coefficients of the coded columns in their own units, by term and level."""
        own = self.sandwich
        known = own is not None and self.identified.any(axis=None)
        ball = own.estimate if own is not None and known else self.release.coefficients
        return self._frame(self.ways @ ball)

    @property
    def params_released(self) -> pd.DataFrame:
        """Coefficients as released, pulled by the ridge towards equal odds."""
        return self._frame(self.ways @ self.release.coefficients)

    @property
    def bse(self) -> pd.DataFrame:
        """Standard errors for the population: sampling and privacy noise."""
        own = self._clear("bse")
        return self._sds(np.hstack([own.noise_root, own.sampling_root]))

    @property
    def bse_noise(self) -> pd.DataFrame:
        """Standard deviations of the privacy noise alone."""
        return self._sds(self._clear("bse_noise").noise_root)

    @property
    def bse_sampling(self) -> pd.DataFrame:
        """Standard errors that there would be without privacy noise."""
        return self._sds(self._clear("bse_sampling").sampling_root)

    @property
    def tvalues(self) -> pd.DataFrame:
        """Distances from 0 in standard errors, of normal law about the truth."""
        own, known = self._clear("tvalues"), self._known
        each = np.full(len(self.ways), np.nan)
        each[known] = [own.statistic(way) for way in self.ways[known]]
        return self._frame(each)

    @property
    def pvalues(self) -> pd.DataFrame:
        """Two-sided p-values for a coefficient of 0."""
        return 2 * self.tvalues.abs().map(lambda size: ndtr(-size))

    def cov_params(self) -> pd.DataFrame:
        """Return the covariance of the coefficients about the population's, if there is one."""
        own = self._clear("cov_params()")
        root = self.ways @ np.hstack([own.noise_root, own.sampling_root])
        known = np.where(self._known, 1.0, np.nan)
        index = self._index
        return pd.DataFrame((root @ root.T) * np.outer(known, known), index=index, columns=index)

    def _conf_int(self, level: float) -> pd.DataFrame:
        self._clear("conf_int()")
        return self._interval(self._ends(level))

    def _noise_int(self, level: float) -> pd.DataFrame:
        self._clear("noise_int()")
        return self._interval(self._ends(level, full=False))

    def tidy(self) -> pd.DataFrame:
        """Return one row a coefficient, by broom's conventions for multinomial models.

        ``y_level, term, estimate`` and, where any is identified, ``std_error,
        statistic, p_value, noise_sd, noise_low, noise_high, conf_low,
        conf_high``; 95 % intervals, nan where a coefficient is not.
        """
        table: dict[str, Any] = {"estimate": self._stacked(self.params)}
        if self.identified.any(axis=None):
            table |= {
                "std_error": self._stacked(self.bse),
                "statistic": self._stacked(self.tvalues),
                "p_value": self._stacked(self.pvalues),
                "noise_sd": self._stacked(self.bse_noise),
                **interval_columns(self.noise_int(), self.conf_int()),
            }
        tidy = pd.DataFrame(table, index=self._index).reset_index()
        return labelled(tidy, self.call.codebook, label=self.call.names * self.call.blocks)

    def _line(self) -> dict[str, Any]:
        return {
            "nobs": self.nobs,
            "nterms": len(self.ways),
            "family": self.call.family,
            "nlevels": len(self.call.levels),
            "ridge": self.release.ridge,
        }

    def plot(self, level: float = 0.95, ax: Axes | None = None) -> Axes:
        """Draw coefficients and both intervals, level by level, where there are any."""
        from dpmodels.plots.points import coefficients

        self._clear("plot()")
        shown = self._index.get_level_values("term") != "Intercept"
        if not shown.any():
            raise ArgumentError("plot(): the model has no terms besides the constant")
        return coefficients(
            self._stacked(self.params)[shown],
            self.noise_int(level)[shown].to_numpy(),
            self.conf_int(level)[shown].to_numpy(),
            labels=[f"{own}: {term}" for own, term in self._index[shown]],
            title=f"Coefficient (against {self.call.levels[0]}, logit link)",
            ax=ax,
            stamp=self.stamp,
        )

    @property
    def _size(self) -> str:
        return f"{self.call.family}, {len(self.call.levels)} levels"

    def decision_function(self, newdata: object) -> pd.DataFrame:
        """Return log odds of new, public rows against the reference, a column for each level.

        Parameters
        ----------
        newdata : frame
            Public rows with the variables of the right-hand side.

        Returns
        -------
        DataFrame
            nan for incomplete rows.

        Raises
        ------
        NotAvailable
            Where the formula has no terms.
        """
        lines = [
            self.call.linear(own, self.coder, newdata) for own in self.params.to_numpy(np.float64).T
        ]
        names = pd.Index(self.call.levels[1:], name="y_level")
        return pd.DataFrame(np.column_stack(lines), columns=names)

    def predict(self, newdata: object) -> pd.DataFrame:
        """Return probabilities of new, public rows, as :meth:`decision_function`.

        A column for each level, the reference first; they add up to 1.
        """
        odds = self.decision_function(newdata)
        whole = np.column_stack([np.zeros(len(odds)), odds.to_numpy(np.float64)])
        known = np.where(np.isnan(whole).any(axis=1), np.nan, 1.0)[:, None]
        names = pd.Index(self.call.levels, name="y_level")
        return pd.DataFrame(softmax(np.nan_to_num(whole), axis=1) * known, columns=names)

    scores, fittedvalues, resid = per_row("predict(newdata)")
    score = Refused(NO_SCORE)
    llf = Refused(
        "of the private rows was not released; for public rows compare predict(newdata) with "
        "their response"
    )

    @property
    def why_not(self) -> str:
        """The reason why there are no standard errors; empty where there are."""
        if self._known.any():
            return ""
        return not_identified(self.release, self.sandwich, self._open)

    @property
    def _known(self) -> Any:
        return np.isfinite(self._ends(0.95)).all(axis=1)

    def _clear(self, name: str) -> Sandwich:
        if self.sandwich is None or not self._known.any():
            raise NotAvailable(f"{name} is not available: {self.why_not}")
        return self.sandwich

    def _sds(self, root: Floats) -> pd.DataFrame:
        return self._frame(np.where(self._known, np.linalg.norm(self.ways @ root, axis=1), np.nan))

    def _frame(self, values: Any) -> pd.DataFrame:
        index = pd.Index(self.call.names, name="term")
        columns = pd.Index(self.call.levels[1:], name="y_level")
        return pd.DataFrame(values.reshape(len(columns), -1).T, index=index, columns=columns)

    @staticmethod
    def _stacked(frame: pd.DataFrame) -> Floats:
        return np.asarray(frame.to_numpy(np.float64).T.ravel())

    @property
    def _index(self) -> pd.MultiIndex:
        keys = (self.call.levels[1:], self.call.names)
        return pd.MultiIndex.from_product(keys, names=["y_level", "term"])

    def _interval(self, found: Floats) -> pd.DataFrame:
        return pd.DataFrame(found, index=self._index, columns=["lower", "upper"])
