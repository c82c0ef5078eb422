"""A log-linear model of one margin of a release."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import xarray as xr
from scipy.special import ndtr, ndtri

from dpmodels.errors import NotAvailable
from dpmodels.inference.independence import MOST_CELLS
from dpmodels.inference.loglinear import LogLinearFit, loglinear
from dpmodels.postprocess.residuals import components, crossed
from dpmodels.results.base import Printed, checked_level
from dpmodels.typing import Floats

if TYPE_CHECKING:
    from dpmodels.results.margin import Margin


@dataclass(frozen=True, repr=False, eq=False)
class LogLinear(Printed):
    """A log-linear model of private counts: released values and public facts only.

    Parameters
    ----------
    margin : Margin
        What it is a model of.
    formula : str
        The model.
    names : tuple of str
        Of the coefficients.
    model : LogLinearFit
        Coefficients and their covariance, by place.

    Notes
    -----
    Standard errors count sampling and noise, `bse_noise` the noise alone. The
    test of the fit counts both; the deviance is that of the noisy counts, and
    exceeds a chi-square variable by what the noise adds.
    """

    margin: Margin
    formula: str
    names: tuple[str, ...]
    model: LogLinearFit

    @cached_property
    def params(self) -> pd.Series[float]:
        """Coefficients of the logarithm of the expected count."""
        return pd.Series(self.model.params, index=list(self.names))

    @property
    def bse(self) -> pd.Series[float]:
        """Standard errors, of sampling and noise."""
        return pd.Series(np.sqrt(np.diagonal(self.model.cov)), index=list(self.names))

    @property
    def bse_noise(self) -> pd.Series[float]:
        """Standard errors of the noise alone: the distance to the coefficients of these rows."""
        return pd.Series(np.sqrt(np.diagonal(self.model.noise_cov)), index=list(self.names))

    @property
    def tvalues(self) -> pd.Series[float]:
        """Coefficients over their standard errors."""
        return self.params / self.bse

    @property
    def pvalues(self) -> pd.Series[float]:
        """Two-sided p-values of coefficients of 0, by the normal law."""
        return pd.Series(2 * ndtr(-np.abs(self.tvalues)), index=list(self.names))

    def cov_params(self) -> pd.DataFrame:
        """Return the covariance of the coefficients."""
        return pd.DataFrame(self.model.cov, list(self.names), list(self.names))

    def conf_int(self, level: float = 0.95) -> pd.DataFrame:
        """Return intervals of the population's coefficients: noise and sampling.

        Parameters
        ----------
        level : float
            Coverage, in (0, 1), of each interval by itself.
        """
        return self._ends(self.bse, level)

    def noise_int(self, level: float = 0.95) -> pd.DataFrame:
        """Return intervals of the coefficients of these rows: privacy noise only.

        Parameters
        ----------
        level : float
            Coverage, in (0, 1), of each interval by itself.
        """
        return self._ends(self.bse_noise, level)

    def _ends(self, errors: pd.Series[float], level: float) -> pd.DataFrame:
        half = float(ndtri((1 + checked_level(level)) / 2)) * errors
        return pd.DataFrame({"lower": self.params - half, "upper": self.params + half})

    @property
    def df_resid(self) -> int:
        """Cells less coefficients."""
        return self.model.df

    @property
    def deviance(self) -> float:
        """Twice the log-likelihood lost against a coefficient a cell, noise included."""
        return self.model.deviance

    @property
    def fitted(self) -> xr.DataArray:
        """Expected counts of the complete rows, by cell."""
        shape = self.margin.facts.shape
        effect = self.margin.fit.effect
        return self.margin._labelled(self.model.fitted.reshape(shape) * effect, "fitted")

    def tidy(self) -> pd.DataFrame:
        """Return one row a coefficient."""
        ends = self.conf_int()
        values = {
            "term": list(self.names),
            "estimate": self.params.to_numpy(),
            "std_error": self.bse.to_numpy(),
            "noise_sd": self.bse_noise.to_numpy(),
            "statistic": self.tvalues.to_numpy(),
            "p_value": self.pvalues.to_numpy(),
            "conf_low": ends["lower"].to_numpy(),
            "conf_high": ends["upper"].to_numpy(),
        }
        return pd.DataFrame(values)

    def glance(self) -> pd.DataFrame:
        """Return one row: deviance, and the test of the fit that counts the noise."""
        own = self.model
        row = {"deviance": own.deviance, "df": own.df}
        return pd.DataFrame([{**row, "statistic": own.statistic, "p_value": own.pvalue}])

    def __repr__(self) -> str:
        return f"<LogLinear {self.formula!r}: {len(self.names)} coefficients of {self.margin!r}>"


def loglin(margin: Margin, formula: str, terms: tuple[tuple[str, ...], ...]) -> LogLinear:
    """Fit a log-linear model of a margin, with all terms that are inside of those given."""
    if margin.facts.cells > MOST_CELLS:
        raise NotAvailable(
            f"the table of {margin.name!r} has {margin.facts.cells:,} cells, and log-linear models "
            f"are fitted to {MOST_CELLS:,} at most; leave out variables"
        )
    names, coded = _coded(margin, terms)
    effect = margin.fit.effect
    counts = margin.released.to_numpy().ravel() / effect
    tidy = " ".join(formula.split())
    return LogLinear(margin, tidy, names, loglinear(counts, coded, *margin.drawn()))


def _coded(margin: Margin, terms: tuple[tuple[str, ...], ...]) -> tuple[tuple[str, ...], Floats]:
    """Return names and columns of treatment coding, shape (cells, coefficients)."""
    facts = margin.facts
    parts = components(tuple(sorted(map(facts.factors.index, term))) for term in terms)
    names: list[str] = []
    blocks = []
    for part in parts:
        levels = [[f"{facts.factors[i]}[T.{level}]" for level in facts.levels[i][1:]] for i in part]
        names += [":".join(own) or "Intercept" for own in product(*levels)]
        factors = (
            np.eye(size)[:, 1:] if i in part else np.ones((size, 1))
            for i, size in enumerate(facts.shape)
        )
        blocks.append(crossed(factors))
    return tuple(names), np.hstack(blocks)
