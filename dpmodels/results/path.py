"""Coefficients of a private linear regression by penalty: ridge and lasso."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Final, Literal, NoReturn

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dpmodels.arguments import real, several, truth
from dpmodels.errors import ArgumentError, NotAvailable, said
from dpmodels.inference.adjusted import largest
from dpmodels.inference.noisy_variance import TOLD
from dpmodels.postprocess.paths import lasso_path, ridge_path
from dpmodels.postprocess.solve import FLOOR
from dpmodels.results.base import STAMP, Tabulated, caption_of, reading_line, release_row
from dpmodels.results.estimate_table import EstimateTable, estimate_table
from dpmodels.results.lm_fit import LinearFit
from dpmodels.typing import Floats

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.axes import Axes

Penalty = Literal["ridge", "lasso"]
_PATHS: Final = {"ridge": ridge_path, "lasso": lasso_path}
# Choices: penalties of a grid, the least of them over the first, and the first of a ridge, at which
# a term that goes with no other keeps a thousandth of its slope.
PENALTIES, LEAST, FIRST_RIDGE = 50, {"ridge": 1e-6, "lasso": 1e-3}, 1e3
# A choice: how often noise alone leaves all slopes at 0.
LEVEL = 0.95
_NO_INTERVAL = (
    "after a penalty, and after a choice of terms by the same noisy moments, no interval covers as "
    "often as it says; write .lm(formula) of dp_moments with the terms you mean, which is free, "
    "and whose intervals hold if the terms were not chosen by this release"
)


@dataclass(frozen=True, repr=False, eq=False)
class PathResult(Tabulated):
    """Coefficients by penalty, of released moments: nothing more is read or spent.

    Parameters
    ----------
    linear : LinearFit
        The regression that they are of.
    penalty : {"ridge", "lasso"}
        What is put on the slopes.
    lambdas : array
        Penalties, the largest first; those of a lasso in units of the response.

    Notes
    -----
    Where ``RSS/2n + λ Σ s²β²/2`` (ridge) or ``RSS/2n + λ Σ s|β|`` (lasso) is least, RSS, n and the
    terms' standard deviations s as released, with weights each weighted; the constant has no
    penalty. Of a term whose variance is not told from its noise s is half its public range:
    :attr:`scaled_by` says which. What `dp_lm` puts on X'X where noise hides it is there too, so
    that the path ends at its coefficients.

    :attr:`noise_lambda` is the penalty at which sampling and privacy noise alone, were there no
    slopes at all, would leave every slope of a lasso at 0 in about 95 of 100 releases. It says
    nothing of slopes beside others that there are. There are no intervals.

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

    @property
    def simulated(self) -> bool:
        """True if released inside ``dp.simulation``: then nothing here is private."""
        return self.linear.release.simulated

    @property
    def stamp(self) -> str | None:
        """What tables and pictures of a simulation are stamped with; None where it is none."""
        return STAMP if self.simulated else None

    @cached_property
    def standardised(self) -> Standardised:
        """The equations in units of the terms' spreads."""
        return Standardised(self.linear)

    @cached_property
    def _solved(self) -> tuple[Floats, Floats]:
        own = self.standardised
        return _PATHS[self.penalty](own.gram, own.cross, self.lambdas)

    @property
    def params(self) -> xr.DataArray:
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
        by = ["sd" if told else "half-range" for told in self.standardised.told.tolist()]
        return pd.Series(by, index=list(self.linear.call.names[:-1]), name="scaled_by")

    @property
    def noise_lambda(self) -> float:
        """The penalty of a lasso below which slopes are not told from noise; nan of a ridge."""
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
            If it is no such number, or none is given of a ridge.
        """
        own = self.noise_lambda if lam is None else real(lam)
        if lam is None and self.penalty == "ridge":
            raise ArgumentError(
                "lam=None: a ridge leaves no slope at 0, and has no penalty that tells slopes from "
                "noise; write at(lam), or lasso_path().at()"
            )
        if not own >= 0:
            raise ArgumentError(f"lam={said(lam)}: expected a number, 0 or more")
        equations = self.standardised
        slopes = _PATHS[self.penalty](equations.gram, equations.cross, np.array([own]))[0]
        return pd.Series(
            equations.own_units(slopes)[0], index=list(self.linear.names), name="params"
        )

    @property
    def _source(self) -> LinearFit:
        return self.linear

    def _estimates(self) -> EstimateTable:
        """Return one row a term and penalty, slopes of 0 among them."""
        steps, names = len(self.lambdas), list(self.linear.names)
        index = pd.MultiIndex.from_product([names, range(1, steps + 1)], names=["term", "step"])
        return estimate_table(
            self,
            index,
            further={"lambda": np.tile(self.lambdas, len(names))},
            labels=list(index.get_level_values(0)),
            intervals=False,
            estimate=self.params.to_numpy().T,
            identified=np.repeat(self.linear.identified, steps),
        )

    def glance(self) -> pd.DataFrame:
        """Return one row: the penalties, and what the release says of all."""
        row: dict[str, object] = {
            "penalty": self.penalty,
            "nlambda": len(self.lambdas),
            "lambda_max": self.lambdas[0],
            "lambda_min": self.lambdas[-1],
            "noise_lambda": self.noise_lambda,
            "nobs": self.linear.nobs,
        }
        return pd.DataFrame([{**row, **release_row(self.linear.release)}])

    def plot(self, ax: Axes | None = None, *, caption: bool = True) -> Axes:
        """Draw the slopes, times the spread of their terms, over the penalty.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.
        caption : bool
            Whether guarantee, neighbours and noise stand under the picture.
        """
        from dpmodels.plots.curves import paths

        return paths(
            self.lambdas,
            self._solved[0],
            list(self.linear.call.names[:-1]),
            (f"Penalty of the {self.penalty}", f"Effect of one spread on {self.linear.response}"),
            mark=self.noise_lambda,
            ax=ax,
            stamp=self.stamp,
            caption=caption_of(self.linear.release) if truth("caption", caption) else None,
        )

    def conf_int(self, level: float = 0.95) -> NoReturn:
        """Not available: the message says why, and what to write."""
        raise NotAvailable(f"conf_int() is not available: {_NO_INTERVAL}")

    def noise_int(self, level: float = 0.95) -> NoReturn:
        """Not available: the message says why, and what to write."""
        raise NotAvailable(f"noise_int() is not available: {_NO_INTERVAL}")

    def _reading(self) -> str:
        return reading_line(self.linear.release)

    def __repr__(self) -> str:
        many = f"{len(self.lambdas)} penalties, {len(self.linear.names)} coefficients"
        return f"<PathResult {self.formula!r}: {self.penalty}, {many}>"


@dataclass(frozen=True)
class Standardised:
    """The equations of a regression, centred, over the rows, in units of the terms' spreads."""

    linear: LinearFit

    @cached_property
    def _centring(self) -> Floats:
        """Parameters of the equations by slopes of own columns, shape (parameters, slopes)."""
        own = self.linear.solved
        first = int(own.intercept)
        slopes = np.linalg.inv(self.linear.to_units[0][first:, first:])
        means = -(own.whole[0] @ own.regressors[:, first:])[None] / self.rows
        return np.asarray(np.vstack([means[:first] @ slopes, slopes]))

    @property
    def rows(self) -> float:
        """The number of rows, or the sum of their weights, as released; at least 1."""
        return max(float(self.linear.solved.whole[0, 0]), 1.0)

    @cached_property
    def _variances(self) -> tuple[Floats, NDArray[np.bool_]]:
        """Variances of the terms in own units, and which are told from their noise."""
        own, first = self.linear.equations, int(self.linear.model.intercept)
        rows = own.regressors[:, first:] @ self._centring[first:] * self.linear.unit
        rows[0] -= own.whole[0] @ rows / self.rows
        squares = np.einsum("ij,ij->j", rows, own.whole @ rows)
        noise = np.array([own.form_sd(np.outer(row, row)) for row in rows.T])
        return squares / self.rows, squares > TOLD * noise

    @property
    def told(self) -> NDArray[np.bool_]:
        """Which terms have a variance that is told from its noise, shape (slopes,)."""
        return self._variances[1]

    @cached_property
    def spreads(self) -> Floats:
        """Standard deviations of the terms, or half their public ranges."""
        call, (values, told) = self.linear.call, self._variances
        half = (call.upper - call.lower)[:-1] / 2
        spread = np.where(told, np.sqrt(np.maximum(values, 0.0)), half)
        return np.where(spread > 0, spread, 1.0)

    @cached_property
    def _ways(self) -> Floats:
        """Parameters of the equations by standardised slopes."""
        return np.asarray(self._centring / self.spreads)

    @cached_property
    def gram(self) -> Floats:
        """Correlations of the terms, with what is put on X'X, shape (slopes, slopes)."""
        own, first = self.linear.solved, int(self.linear.model.intercept)
        slopes = self._ways[first:]
        lifted = slopes.T @ (own.lift(FLOOR)[first:, None] * slopes)
        whole = self._ways.T @ own.gram @ self._ways + lifted
        return np.asarray(whole * self.linear.unit**2 / self.rows)

    @property
    def lifted(self) -> bool:
        """Whether anything is put on X'X, by the solution or the mechanism."""
        own = self.linear
        return own.solved is not own.equations or bool(own.solved.lift(FLOOR).any())

    @cached_property
    def cross(self) -> Floats:
        """Covariances of the terms with the response, in its units, shape (slopes,)."""
        return np.asarray(self._ways.T @ self.linear.solved.cross * self.linear.unit**2 / self.rows)

    @cached_property
    def noise_lambda(self) -> float:
        """What all covariances stay within that are sampling and privacy noise alone."""
        own = self.linear
        law = own.full_law if own.sampled else own.noise_law
        # Without the slopes that a law holds as good as unknown: here there are none.
        noise = replace(law, equations=own.equations).score_covariance(own.theta)
        variances = np.einsum("ij,ij->j", self._ways, noise @ self._ways)
        sds = np.sqrt(np.maximum(variances, 0.0)) * own.unit**2 / self.rows
        return largest(sds, LEVEL)

    def own_units(self, slopes: Floats) -> Floats:
        """Bring standardised slopes, one set a row, to the coefficients of the columns."""
        own = self.linear
        matrix, shift = own.to_units
        first = int(own.model.intercept)
        theta = slopes @ self._ways.T
        if first:
            theta[:, 0] += own.solved.whole[0] @ own.solved.response / self.rows
        constant = theta @ matrix[:first].T + shift[:first]
        return np.hstack([constant, slopes / self.spreads])


def path(linear: LinearFit, penalty: Penalty, lambdas: Iterable[float] | None) -> PathResult:
    """Lay out the penalties of a path: those given, or a grid."""
    if not linear.call.names[:-1]:
        raise NotAvailable(
            f"{penalty}_path() is not available: the model has no terms besides the constant"
        )
    made = PathResult(linear, penalty, np.empty(0))
    if lambdas is None:
        first = FIRST_RIDGE
        if penalty == "lasso":
            first = float(np.abs(made.standardised.cross).max()) or 1.0
        grid = first * np.geomspace(1, LEAST[penalty], PENALTIES)
        return PathResult(linear, penalty, grid)
    given = [real(own) for own in lambdas] if several(lambdas) else []
    if not given or not all(own >= 0 for own in given):
        raise ArgumentError(
            f"lambdas={said(lambdas)}: expected numbers, each 0 or more, such as [1, 0.1, 0.01]"
        )
    return PathResult(linear, penalty, np.array(sorted(set(given), reverse=True)))
