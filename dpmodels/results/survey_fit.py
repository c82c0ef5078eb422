"""The result of a logistic regression of randomised answers."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

from dpmodels.errors import NotAvailable
from dpmodels.inference.links import LOGIT, Link
from dpmodels.inference.sandwich import NormalLaw
from dpmodels.released import AnswersFitRelease
from dpmodels.results.base import per_row
from dpmodels.results.call import CoefficientsCall
from dpmodels.results.coefficient_model import CoefficientModel
from dpmodels.results.derived_table import Estimates
from dpmodels.results.estimate_table import EstimateTable, table_of_estimates
from dpmodels.results.public_rows import PublicRows
from dpmodels.typing import Coder, Floats

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True, repr=False)
class SurveyFitResult(CoefficientModel):
    """A logistic regression of the truth behind randomised answers.

    Notes
    -----
    Coefficients solve the corrected score or, with ``method="likelihood"``, maximise the likelihood
    of the randomised answers; errors are robust (sandwich), within strata where there are some.
    :meth:`noise_int` is about logistic regression of these respondents' true answers; of the
    likelihood only if the model is correct, since otherwise the two fits weight respondents
    differently. :meth:`conf_int` is about the population's. nan where not identified.
    """

    call: CoefficientsCall
    release: AnswersFitRelease
    coder: Coder | None = field(default=None, repr=False)

    @property
    def params(self) -> pd.Series[float]:
        """Coefficients of the coded columns in their own units."""
        return self._series(self.release.coefficients, "params")

    @property
    def identified(self) -> bool:
        """Whether the answers identify all coefficients."""
        return bool(np.isfinite(self.release.covariance).all())

    @property
    def bse(self) -> pd.Series[float]:
        """Standard errors for the population: sampling and privacy noise, robust."""
        return self._series(_roots(self.release.covariance), "bse")

    @property
    def bse_noise(self) -> pd.Series[float]:
        """Standard deviations of what the device adds."""
        return self._series(_roots(self.release.noise_covariance), "bse_noise")

    @property
    def tvalues(self) -> pd.Series[float]:
        """Coefficients in standard errors."""
        return (self.params / self.bse).rename("tvalues")

    @property
    def pvalues(self) -> pd.Series[float]:
        """Two-sided p-values for a coefficient of 0."""
        return self._series(2 * ndtr(-np.abs(self.tvalues.to_numpy())), "pvalues")

    @property
    def llf(self) -> float:
        """Logarithm of the answers' probability; of weighted ones a pseudo-likelihood.

        Only ``method="likelihood"`` maximises it.
        """
        return self.release.log_likelihood

    @property
    def llnull(self) -> float:
        """The same with a constant alone."""
        return self.release.log_likelihood_null

    @property
    def pseudo_rsquared(self) -> float:
        """McFadden's: 1 less the ratio of the log-likelihood to that of a constant."""
        return 1 - self.llf / self.llnull if self.llnull < 0 else math.nan

    @property
    def classes(self) -> tuple[str, ...]:
        """The two levels of the response, the modelled one last."""
        return self.call.levels

    @property
    def ncomplete(self) -> float:
        """The number of respondents in the fit."""
        return float(self.release.complete)

    def cov_params(self) -> pd.DataFrame:
        """Return the covariance of the coefficients about the population's."""
        names = list(self.call.names)
        index = pd.Index(names, name="term")
        return pd.DataFrame(self.release.covariance, index=index, columns=names)

    def _noise_int(self, level: float) -> pd.DataFrame:
        return self._ends(self.bse_noise, level)

    def _conf_int(self, level: float) -> pd.DataFrame:
        return self._ends(self.bse, level)

    def _ends(self, sds: pd.Series[float], level: float) -> pd.DataFrame:
        half = float(ndtri((1 + level) / 2)) * sds
        return pd.DataFrame({"lower": self.params - half, "upper": self.params + half})

    def _estimates(self) -> EstimateTable:
        names = self.call.names
        return table_of_estimates(
            self, pd.Index(names, name="term"), labels=names, identified=np.isfinite(self.bse)
        )

    def ratios(self, level: float = 0.95) -> Estimates:
        """Return odds ratios with their intervals at a level: coefficients exponentiated."""
        return self._ratios(level)

    def _line(self) -> dict[str, object]:
        return {
            "nobs": self.nobs,
            "ncomplete": self.ncomplete,
            "nterms": len(self.call.names),
            "local_eps": self.release.channel.eps,
            "llf": self.llf,
            "llnull": self.llnull,
        }

    def plot(
        self,
        level: float = 0.95,
        ax: Axes | None = None,
        *,
        standardize: Literal["range"] | None = None,
        exponentiate: bool = False,
        caption: bool = True,
    ) -> Axes:
        """Draw the coefficients, or odds ratios, as :func:`dp.coefplot` does."""
        from dpmodels.results.coefficient_plot import coefplot

        words: dict[str, Any] = {"standardize": standardize, "exponentiate": exponentiate}
        return coefplot(self, **words, level=level, ax=ax, caption=caption)

    def _response(self, rows: PublicRows) -> Floats:
        return self._link.mean(rows.linear(self.release.coefficients))

    @property
    def _link(self) -> Link:
        return LOGIT

    @property
    def _expected(self) -> str:
        return f"P({self.call.levels[1]})"

    scores, fittedvalues, resid = per_row("predict(newdata)")

    def _law(self, method: str) -> NormalLaw:
        if not self.identified:
            raise NotAvailable(
                f"{method} is not available: the answers do not identify all coefficients"
            )
        release = self.release
        return NormalLaw(self.call.names, release.coefficients, release.covariance)

    def _series(self, values: NDArray[np.floating], name: str) -> pd.Series[float]:
        return pd.Series(values, index=pd.Index(self.call.names, name="term"), name=name)

    @property
    def _size(self) -> str:
        return f"{len(self.call.names)} coefficients"


def _roots(covariance: Floats) -> Floats:
    return np.sqrt(np.maximum(np.diagonal(covariance), 0.0))
