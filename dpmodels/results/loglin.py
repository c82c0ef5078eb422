"""A log-linear model of one margin of a release."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from scipy.special import ndtr, ndtri

from dpmodels.arguments import truth
from dpmodels.errors import NotAvailable
from dpmodels.inference.independence import MOST_CELLS
from dpmodels.inference.loglinear import LogLinearFit, from_sums, loglinear
from dpmodels.inference.ratios import TOLD
from dpmodels.postprocess.residuals import Term, components, crossed
from dpmodels.results.base import Tabulated, caption_of, checked_level
from dpmodels.results.call import INTERCEPT
from dpmodels.results.estimate_table import EstimateTable, estimate_table
from dpmodels.results.held_margins import HeldMargins
from dpmodels.results.margin import Margin
from dpmodels.results.reading_line import reading_line
from dpmodels.typing import Floats

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.axes import Axes

# What is missing, as a level of its own in a model of several margins.
MISSING = "(missing)"


@dataclass(frozen=True, repr=False, eq=False)
class LogLinear(Tabulated):
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
    shape : tuple of int
        Levels of each variable in the model; one more than declared where what is missing is one.

    Notes
    -----
    Standard errors count sampling and noise, `bse_noise` the noise alone. The
    test of the fit counts both; the deviance is that of the noisy counts, and
    exceeds a chi-square variable by what the noise adds. Of a model that was
    fitted to several margins there is neither.
    """

    margin: Margin
    formula: str
    names: tuple[str, ...]
    model: LogLinearFit
    shape: tuple[int, ...]

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
        declared = tuple(map(slice, self.margin.facts.shape))
        values = self.model.fitted.reshape(self.shape)[declared]
        return self.margin.facts.by_cell(values * self.margin.fit.effect, "fitted")

    @property
    def _source(self) -> HeldMargins:
        return self.margin.fit

    def _estimates(self) -> EstimateTable:
        return estimate_table(self, pd.Index(self.names, name="term"))

    def glance(self) -> pd.DataFrame:
        """Return one row: deviance, and the test of the fit that counts the noise."""
        own = self.model
        row = {"deviance": own.deviance, "df": own.df}
        return pd.DataFrame([{**row, "statistic": own.statistic, "p_value": own.pvalue}])

    def plot(self, ax: Axes | None = None, level: float = 0.95, *, caption: bool = True) -> Axes:
        """Draw the coefficients but the constant with both intervals.

        Words are those of :meth:`MeanResult.plot`.
        """
        from dpmodels.plots.coefficients import Intervals, coefficients

        own = self.params.drop(index=INTERCEPT, errors="ignore")
        ends = (
            one.loc[own.index].to_numpy() for one in (self.noise_int(level), self.conf_int(level))
        )
        fit = self.margin.fit
        return coefficients(
            [Intervals("", np.asarray(own, dtype=np.float64), *ends)],
            labels=[str(name) for name in own.index],
            title="Coefficient (log count)",
            level=level,
            ax=ax,
            stamp=fit.stamp,
            caption=caption_of(fit.release) if truth("caption", caption) else None,
        )

    def _reading(self) -> str:
        return reading_line(self.margin.fit.release)

    def __repr__(self) -> str:
        return f"<LogLinear {self.formula!r}: {len(self.names)} coefficients of {self.margin!r}>"


def loglin(held: HeldMargins, formula: str, terms: tuple[tuple[str, ...], ...]) -> LogLinear:
    """Fit a log-linear model, with all terms that are inside of those given.

    To the table of all its variables where a margin has them, of the rows that are complete in it;
    else to the margins of its terms. What is missing is a level then, but of variables of which
    rows that miss them are not told from 0: these are taken to have none.
    """
    factors = dict.fromkeys(one for term in terms for one in term)
    margin = Margin(held, tuple(sorted(map(held.factors.index, factors))))
    parts = components(tuple(sorted(map(held.factors.index, term))) for term in terms)
    sizes = tuple(held.sizes[i] for i in margin.term)
    size = math.prod(sizes)
    if size > MOST_CELLS:
        raise NotAvailable(
            f"the table of {margin.name!r} has {size:,} cells with those of what is missing, and "
            f"log-linear models are fitted to {MOST_CELLS:,} at most; leave out variables"
        )
    if held.inside(margin.term):
        names, coded = _coded(margin, parts, margin.facts.shape, margin.facts.shape)
        counts = margin.released.to_numpy().ravel() / held.effect
        model = loglinear(counts, coded, *margin.drawn())
        return LogLinear(margin, " ".join(formula.split()), names, model, margin.facts.shape)
    kept = tuple(_kept(held, i) for i in margin.term)
    names, summing = _coded(margin, parts, kept, sizes)
    cells = np.ix_(*map(np.arange, kept))
    rows = np.arange(size).reshape(sizes)[cells].ravel()
    noise = held.noise.divided(held.effect)
    drawn, _ = noise.drawn(margin.term, [np.arange(own) for own in sizes])
    sums = summing.T @ held.unbiased(margin.term).ravel() / held.effect
    model = from_sums(sums, summing[rows], summing.T @ drawn)
    return LogLinear(margin, " ".join(formula.split()), names, model, kept)


def _kept(held: HeldMargins, variable: int) -> int:
    """Return how many levels of a variable have rows, that of what is missing the last."""
    missing = float(held.unbiased((variable,))[-1])
    return held.sizes[variable] - (missing < TOLD * held.noise.cell_sd((variable,)))


def _coded(
    margin: Margin, parts: tuple[Term, ...], kept: tuple[int, ...], sizes: tuple[int, ...]
) -> tuple[tuple[str, ...], Floats]:
    """Return names and columns of treatment coding, shape (cells, coefficients).

    Of a table of so many levels a variable; the first ones that are kept have coefficients.
    """
    names: list[str] = []
    blocks = []
    for part in parts:
        levels = [_named(margin, margin.term.index(i), kept) for i in part]
        names += [":".join(own) or INTERCEPT for own in product(*levels)]
        factors = (
            np.eye(size)[:, 1:most] if i in part else np.ones((size, 1))
            for i, size, most in zip(margin.term, sizes, kept, strict=True)
        )
        blocks.append(crossed(factors))
    return tuple(names), np.hstack(blocks)


def _named(margin: Margin, place: int, kept: tuple[int, ...]) -> list[str]:
    """Name the coefficients of a variable."""
    own, levels = margin.facts.factors[place], margin.facts.levels[place]
    return [f"{own}[T.{level}]" for level in (*levels, MISSING)[1 : kept[place]]]
