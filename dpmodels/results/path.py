"""Coefficients of a private linear regression by penalty: ridge and lasso."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Final, Literal, NoReturn

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dpmodels.arguments import lists_values, real
from dpmodels.errors import ArgumentError, NotAvailable, quoted
from dpmodels.inference.sandwich import DETECTION_SDS
from dpmodels.inference.screening_tests import largest
from dpmodels.postprocess.normal_equations import FLOOR
from dpmodels.postprocess.paths import lasso_path, ridge_path
from dpmodels.results.base import Tabulated
from dpmodels.results.call import release_row
from dpmodels.results.estimate_table import EstimateTable, table_of_estimates
from dpmodels.results.lm_fit import LinearFit
from dpmodels.typing import Axes, DataArray, Floats
from dpmodels.verbs import documented

Penalty = Literal["ridge", "lasso"]
_PATHS: Final = {"ridge": ridge_path, "lasso": lasso_path}
# Choices: the number of penalties, the least over the first, and the first of a ridge, which keeps
# a thousandth of the slope of a term that is uncorrelated with the others.
PENALTIES, LEAST, FIRST_RIDGE = 50, {"ridge": 1e-6, "lasso": 1e-3}, 1e3
# A choice: how often noise alone leaves all slopes at 0.
LEVEL = 0.95
_NO_INTERVAL = (
    "after a penalty, or a choice of terms by the same noisy moments, no interval has its "
    "nominal coverage; write .lm(formula) of dp_moments with the terms you mean, which is free, "
    "and whose intervals are valid if the terms were not chosen by this release"
)


@dataclass(frozen=True, repr=False, eq=False)
class PathResult(Tabulated):
    """Coefficients by penalty, from released moments: no further data or budget are used.

    Parameters
    ----------
    linear : LinearFit
        The regression.
    penalty : {"ridge", "lasso"}
        The penalty on the slopes.
    lambdas : array
        Penalties, the largest first; those of a lasso in units of the response.

    Notes
    -----
    Coefficients minimise ``RSS/2n + λ Σ s²β²/2`` (ridge) or ``RSS/2n + λ Σ s|β|`` (lasso), with
    RSS, n and the terms' standard deviations s as released, each weighted if there are weights; the
    constant has no penalty. For a term whose variance does not exceed its noise, s is half its
    public range: see :attr:`scaled_by`. The ridge that `dp_lm` puts on X'X where noise hides it is
    included, so that the path ends at its coefficients.

    :attr:`noise_lambda` is the penalty at which a lasso sets all slopes to 0 in about 95 of 100
    releases if all true slopes are 0. It does not apply where some true slopes are not 0. There are
    no intervals.

    Examples
    --------
    >>> import dpmodels as dp
    >>> from dpmodels.datasets import load_randhie, randhie_codebook
    >>> words = {"codebook": randhie_codebook(), "eps": 2, "delta": 1e-6}
    >>> with dp.simulation(seed=1):
    ...     fit = dp.dp_lm("mdvis ~ lncoins + idp + disea", load_randhie(), **words)
    >>> path = fit.lasso_path()
    >>> path.params.sizes["penalty"]
    50
    >>> bool((path.at(path.lambdas[0]).drop("Intercept") == 0).all())
    True
    """

    linear: LinearFit
    penalty: Penalty
    lambdas: Floats = field(repr=False)

    @property
    def formula(self) -> str:
        """The model."""
        return self.linear.call.formula

    @cached_property
    def standardised(self) -> Standardised:
        """The equations in units of the terms' spreads."""
        return Standardised(self.linear)

    @cached_property
    def _solved(self) -> tuple[Floats, Floats]:
        equations = self.standardised
        return _PATHS[self.penalty](equations.gram, equations.cross, self.lambdas)

    @property
    def params(self) -> DataArray:
        """Coefficients in the columns' own units, by penalty and term."""
        import xarray as xr

        coords = {"penalty": self.lambdas, "term": list(self.linear.names)}
        return xr.DataArray(self.standardised.own_units(self._solved[0]), coords, name="params")

    @property
    def df(self) -> pd.Series[float]:
        """Slopes that are not 0 (lasso), or effective degrees of freedom (ridge), by penalty."""
        return pd.Series(self._solved[1], index=pd.Index(self.lambdas, name="lambda"), name="df")

    @property
    def identified(self) -> pd.Series[bool]:
        """Whether `dp_lm` identifies each coefficient; see :attr:`LMResult.identified`."""
        return pd.Series(self.linear.identified, index=list(self.linear.names), name="identified")

    @property
    def scaled_by(self) -> pd.Series[str]:
        """What the penalty of each term is scaled by: its ``"sd"``, or its ``"half-range"``."""
        by = ["sd" if is_sd else "half-range" for is_sd in self.standardised.has_variance.tolist()]
        return pd.Series(by, index=list(self.linear.call.names[:-1]), name="scaled_by")

    @property
    def noise_lambda(self) -> float:
        """The penalty of a lasso below which slopes may be noise; nan for a ridge."""
        return self.standardised.noise_lambda if self.penalty == "lasso" else math.nan

    @property
    def kept(self) -> tuple[str, ...]:
        """Terms whose slope is not 0 in the lasso at :attr:`noise_lambda`."""
        slopes = self.at().drop("Intercept", errors="ignore")
        return tuple(map(str, slopes.index[slopes != 0]))

    def at(self, lam: float | None = None) -> pd.Series[float]:
        """Return the coefficients at one penalty, in the columns' own units.

        Parameters
        ----------
        lam : float, optional
            0 or more; :attr:`noise_lambda` by default, which a lasso has.

        Raises
        ------
        ArgumentError
            If it is not such a number, or is missing for a ridge.
        """
        penalty = self.noise_lambda if lam is None else real(lam)
        if lam is None and self.penalty == "ridge":
            raise ArgumentError(
                "lam=None: a ridge leaves no slope at 0, so it has no default penalty; write "
                "at(lam), or lasso_path().at()"
            )
        if not penalty >= 0:
            raise ArgumentError(f"lam={quoted(lam)}: expected a number, 0 or more")
        equations = self.standardised
        slopes = _PATHS[self.penalty](equations.gram, equations.cross, np.array([penalty]))[0]
        return pd.Series(equations.own_units(slopes)[0], list(self.linear.names), name="params")

    @property
    def _source(self) -> LinearFit:
        return self.linear

    def _estimates(self) -> EstimateTable:
        """Return one row a term and penalty, slopes of 0 among them."""
        n_steps, names = len(self.lambdas), list(self.linear.names)
        index = pd.MultiIndex.from_product([names, range(1, n_steps + 1)], names=["term", "step"])
        return table_of_estimates(
            self,
            index,
            further={"lambda": np.tile(self.lambdas, len(names))},
            labels=list(index.get_level_values(0)),
            intervals=False,
            estimate=self.params.to_numpy().T,
            identified=np.repeat(self.linear.identified, n_steps),
        )

    def glance(self) -> pd.DataFrame:
        """Return one row: the penalties, and the facts of the release."""
        row: dict[str, object] = {"penalty": self.penalty, "nlambda": len(self.lambdas)}
        row |= {"lambda_max": self.lambdas[0], "lambda_min": self.lambdas[-1]}
        row |= {"noise_lambda": self.noise_lambda, "nobs": self.linear.nobs}
        return pd.DataFrame([{**row, **release_row(self.linear.release)}])

    @documented
    def plot(self, ax: Axes | None = None, *, caption: bool = True) -> Axes:
        """Draw the slopes, times the spread of their terms, over the penalty."""
        from dpmodels.plots.curves import paths

        return paths(
            self.lambdas,
            self._solved[0],
            list(self.linear.call.names[:-1]),
            (f"Penalty of the {self.penalty}", f"Effect of one spread on {self.linear.response}"),
            mark=self.noise_lambda,
            **self._picture(ax, caption),
        )

    def conf_int(self, level: float = 0.95) -> NoReturn:
        """Not available: the message gives the reason and an alternative."""
        raise NotAvailable(f"conf_int() is not available: {_NO_INTERVAL}")

    def noise_int(self, level: float = 0.95) -> NoReturn:
        """Not available: the message gives the reason and an alternative."""
        raise NotAvailable(f"noise_int() is not available: {_NO_INTERVAL}")

    def __repr__(self) -> str:
        sizes = f"{len(self.lambdas)} penalties, {len(self.linear.names)} coefficients"
        return f"<PathResult {self.formula!r}: {self.penalty}, {sizes}>"


@dataclass(frozen=True)
class Standardised:
    """The equations of a regression, centred, over the rows, in units of the terms' spreads."""

    linear: LinearFit

    @cached_property
    def _centring(self) -> Floats:
        """The map from slopes of own columns to parameters, shape (parameters, slopes)."""
        equations = self.linear.solved
        first = int(equations.intercept)
        slopes = np.linalg.inv(self.linear.to_units[0][first:, first:])
        means = -(equations.whole[0] @ equations.regressors[:, first:])[None] / self.n_rows
        return np.asarray(np.vstack([means[:first] @ slopes, slopes]))

    @property
    def n_rows(self) -> float:
        """The number of rows, or the sum of their weights, as released; at least 1."""
        return max(float(self.linear.solved.whole[0, 0]), 1.0)

    @cached_property
    def _variances(self) -> tuple[Floats, NDArray[np.bool_]]:
        """Variances of the terms in own units, and which exceed their noise."""
        equations, first = self.linear.equations, int(self.linear.model.intercept)
        rows = equations.regressors[:, first:] @ self._centring[first:] * self.linear.unit
        rows[0] -= equations.whole[0] @ rows / self.n_rows
        squares = np.einsum("ij,ij->j", rows, equations.whole @ rows)
        noise = np.array([equations.form_sd(np.outer(row, row)) for row in rows.T])
        return squares / self.n_rows, squares > DETECTION_SDS * noise

    @property
    def has_variance(self) -> NDArray[np.bool_]:
        """Which terms have a variance that exceeds its noise, shape (slopes,)."""
        return self._variances[1]

    @cached_property
    def spreads(self) -> Floats:
        """Standard deviations of the terms, or half their public ranges."""
        half, (values, has_variance) = self.linear.widths / 2, self._variances
        spread = np.where(has_variance, np.sqrt(np.maximum(values, 0.0)), half)
        return np.where(spread > 0, spread, 1.0)

    @cached_property
    def _parameters_by_slope(self) -> Floats:
        """The map from standardised slopes to parameters of the equations."""
        return np.asarray(self._centring / self.spreads)

    @cached_property
    def gram(self) -> Floats:
        """Correlations of the terms, with the ridge on X'X, shape (slopes, slopes)."""
        equations, first = self.linear.solved, int(self.linear.model.intercept)
        slopes = self._parameters_by_slope[first:]
        lifted = slopes.T @ (equations.lift(FLOOR)[first:, None] * slopes)
        gram = self._parameters_by_slope.T @ equations.gram @ self._parameters_by_slope + lifted
        return np.asarray(gram * self.linear.unit**2 / self.n_rows)

    @property
    def lifted(self) -> bool:
        """Whether the solution or the mechanism puts a ridge on X'X."""
        fit = self.linear
        return fit.solved is not fit.equations or bool(fit.solved.lift(FLOOR).any())

    @cached_property
    def cross(self) -> Floats:
        """Covariances of the terms with the response, in its units, shape (slopes,)."""
        products = self._parameters_by_slope.T @ self.linear.solved.cross
        return np.asarray(products * self.linear.unit**2 / self.n_rows)

    @cached_property
    def noise_lambda(self) -> float:
        """The bound on all covariances if they are sampling and privacy noise alone."""
        fit = self.linear
        law = fit.full_law if fit.sampled else fit.noise_law
        # Without the law's restriction on hidden slopes: under the null there are none.
        noise = replace(law, equations=fit.equations).score_covariance(fit.theta)
        slopes = self._parameters_by_slope
        variances = np.einsum("ij,ij->j", slopes, noise @ slopes)
        sds = np.sqrt(np.maximum(variances, 0.0)) * fit.unit**2 / self.n_rows
        return largest(sds, LEVEL)

    def own_units(self, slopes: Floats) -> Floats:
        """Convert standardised slopes, one set a row, to the coefficients of the columns."""
        fit = self.linear
        matrix, shift = fit.to_units
        first = int(fit.model.intercept)
        theta = slopes @ self._parameters_by_slope.T
        if first:
            theta[:, 0] += fit.solved.whole[0] @ fit.solved.response / self.n_rows
        constant = theta @ matrix[:first].T + shift[:first]
        return np.hstack([constant, slopes / self.spreads])


def path(linear: LinearFit, penalty: Penalty, lambdas: Iterable[float] | None) -> PathResult:
    """Return the path at the given penalties, or at a grid."""
    if not linear.call.names[:-1]:
        raise NotAvailable(
            f"{penalty}_path() is not available: the model has no terms besides the constant"
        )
    template = PathResult(linear, penalty, np.empty(0))
    if lambdas is None:
        first = FIRST_RIDGE
        if penalty == "lasso":
            first = float(np.abs(template.standardised.cross).max()) or 1.0
        grid = first * np.geomspace(1, LEAST[penalty], PENALTIES)
        return PathResult(linear, penalty, grid)
    values = [real(value) for value in lambdas] if lists_values(lambdas) else []
    if not values or not all(value >= 0 for value in values):
        raise ArgumentError(
            f"lambdas={quoted(lambdas)}: expected numbers, each 0 or more, such as [1, 0.1, 0.01]"
        )
    return PathResult(linear, penalty, np.array(sorted(set(values), reverse=True)))
