"""The result of a private search for columns that are associated with a response."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Literal

import numpy as np
import pandas as pd

from dpmodels.arguments import boolean, fraction, option
from dpmodels.external_files import Amount, one_of
from dpmodels.inference.screening_tests import (
    METHODS,
    Correlations,
    Logarithms,
    adjusted,
    correlations,
    cut_offs,
    mirrored,
    mirrored_p_values,
    noisy_p_values,
    p_values,
)
from dpmodels.released import PValuesRelease, ScreenedRelease
from dpmodels.results.base import Printed, Result
from dpmodels.results.call import INTERCEPT, ScreenCall
from dpmodels.results.estimate_table import EstimateTable, table_of_estimates
from dpmodels.results.release_text import caption_of
from dpmodels.typing import Floats

if TYPE_CHECKING:
    from matplotlib.axes import Axes


# A choice: probability that bounds on sums of squares fail, over q by the number of hypotheses.
FAILING = 0.05


@dataclass(frozen=True, repr=False, eq=False)
class FDRResult(Result):
    """Private tests of many columns at a false discovery rate: released values and public facts.

    Parameters
    ----------
    q : float
        The requested level.
    method : {"bh", "by"}
        Benjamini-Hochberg, or Benjamini-Yekutieli for any dependence.

    Notes
    -----
    :meth:`noise_int` covers the correlation of a selected column with the response in these rows:
    its noise is fresh, so selection does not bias it. The noise of the denominators is included to
    first order.
    """

    call: ScreenCall
    release: ScreenedRelease | PValuesRelease
    q: Amount
    method: Annotated[str, one_of(*METHODS)]

    _no_intervals = (
        "intervals of a population's correlations are not computed; tidy() has p-values, and "
        "noise_int() intervals of these rows' correlations"
    )

    @property
    def names(self) -> tuple[str, ...]:
        """The selected columns, in order of selection."""
        return tuple(self.call.names[int(place)] for place in self.release.chosen)

    @property
    def hypotheses(self) -> int:
        """How many columns there are."""
        return len(self.call.names)

    @cached_property
    def pvalues(self) -> pd.Series[float]:
        """P-values of no association by selected column, allowing for noise and sampling."""
        if isinstance(self.release, PValuesRelease):
            values = noisy_p_values(self.release, self.q)
        else:
            of = mirrored_p_values if self.mirrored else p_values
            values = of(self.release, self.call.alternative, self.least)
        index = pd.Index(self.names, dtype=object, name="hypothesis")
        return pd.Series(values, index, name="p_value")

    @property
    def least(self) -> float:
        """The lower bound on p-values: the error probability of the bounds on noise in variances.

        A twentieth of the threshold of the smallest p-value.
        """
        return FAILING * self.q / self.hypotheses

    @property
    def params(self) -> pd.Series[float]:
        """Noisy correlations with the response; nan where a column's variance is lost in noise.

        With the mechanism ``"dp_bh"`` noisy logarithms of p-values, cut off at that of
        ``q/(2 m)``.
        """
        return pd.Series(self._values.values, self.pvalues.index, name=self.valued)

    @property
    def bse_noise(self) -> pd.Series[float]:
        """Standard deviations of the privacy noise in them."""
        return pd.Series(self._values.sd(1.0), self.pvalues.index, name="noise_sd")

    def fdr(self, q: float = 0.1, method: Literal["bh", "by"] = "bh") -> Discoveries:
        """Step up at another level, or by the other method, as the method of other results does.

        Columns that were not selected count as p-values of 1.
        """
        return discoveries(self, self.pvalues, q, method, self.hypotheses)

    @cached_property
    def discoveries(self) -> Discoveries:
        """The rejections at `q` by `method`, or by the rule of the mechanism ``"adapt"``."""
        result = self.fdr(self.q, "by" if self.method == "by" else "bh")
        return replace(result, method="adapt") if self.mirrored else result

    @property
    def mirrored(self) -> bool:
        """Whether false discoveries are estimated from the opposite tail."""
        return self.release.info.name == "adapt"

    @property
    def valued(self) -> str:
        """What is released of a column: its ``correlation``, or the ``log_p`` of its test."""
        return "log_p" if isinstance(self.release, PValuesRelease) else "correlation"

    @property
    def rejected(self) -> list[str]:
        """The columns that are associated with the response, smallest p-value first."""
        return self.discoveries.rejected

    def _estimates(self) -> EstimateTable:
        table = self.discoveries.tidy().set_index("hypothesis")
        names = table.index
        further = {"p_adjusted": table["p_adjusted"], "rejected": table["rejected"]}
        estimates = table_of_estimates(
            self,
            names,
            further=further,
            labels=names,
            p_value=table["p_value"],
            estimate=self.params[names],
            noise_sd=self.bse_noise[names],
        )
        return replace(estimates, noise=lambda level: self.noise_int(level).loc[names])

    def plot(self, ax: Axes | None = None, *, caption: bool = True) -> Axes:
        """Draw sorted p-values, on a scale of -log10, with the line of their thresholds.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.
        caption : bool
            Whether guarantee, neighbours and noise stand under the picture.
        """
        return self.discoveries.plot(ax, caption=caption)

    def _noise_int(self, level: float) -> pd.DataFrame:
        law = "laplace" if isinstance(self.release, PValuesRelease) else self.release.law
        low, high = self._values.interval(1.0, law, level)
        return pd.DataFrame({"lower": low, "upper": high}, self.pvalues.index)

    @cached_property
    def _values(self) -> Correlations | Logarithms:
        if isinstance(self.release, PValuesRelease):
            return Logarithms(self.release.logs, self.release.log_sd)
        return correlations(self.release)

    def _line(self) -> dict[str, object]:
        return {
            "nobs": self.nobs,
            "nhypotheses": self.hypotheses,
            "nlooked": len(self.names),
            "nrejected": len(self.rejected),
            "q": self.q,
            "method": self.discoveries.method,
        }

    @property
    def _size(self) -> str:
        return f"{len(self.names)} of {self.hypotheses} columns"


# Hypotheses that are rejected at a false discovery rate, for any p-values.


@dataclass(frozen=True, repr=False, eq=False)
class Discoveries(Printed):
    """Rejections at a false discovery rate: post-processing of a result's p-values.

    Parameters
    ----------
    formula : str
        Of the result.
    names : tuple of str
        The hypotheses that have p-values.
    p_values : ndarray, shape (tests,)
        nan where a hypothesis cannot be tested, which counts as a p-value of 1.
    hypotheses : int
        How many there are, those without p-values among them.
    q : float
        The level.
    method : {"bh", "by", "adapt"}
        Benjamini-Hochberg, Benjamini-Yekutieli for any dependence, or by p-values near 1.
    stamp : str or None
        The warning on tables and pictures of a simulation.
    caption : str or None
        The caption of pictures.
    """

    formula: str
    names: tuple[str, ...]
    p_values: Floats
    hypotheses: int
    q: float
    method: str
    stamp: str | None
    caption: str | None = None

    @property
    def rejected(self) -> list[str]:
        """The hypotheses that are rejected, smallest p-value first."""
        table = self.tidy()
        return [str(name) for name in table["hypothesis"][table["rejected"]]]

    def tidy(self) -> pd.DataFrame:
        """Return one row a tested hypothesis, smallest p-value first.

        ``hypothesis, p_value, p_adjusted, rejected``.
        """
        if self.method == "adapt":
            values = mirrored(self.p_values)
        else:
            values = adjusted(self.p_values, self.hypotheses, self.method)
        table = pd.DataFrame(
            {
                "hypothesis": self.names,
                "p_value": self.p_values,
                "p_adjusted": values,
                "rejected": values <= self.q,
            }
        )
        return table.sort_values("p_value", kind="stable", ignore_index=True)

    def plot(self, ax: Axes | None = None, *, caption: bool = True) -> Axes:
        """Draw sorted p-values, on a scale of -log10, with their thresholds.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.
        caption : bool
            Whether guarantee, neighbours and noise stand under the picture.
        """
        from dpmodels.plots.curves import step_up

        table = self.tidy().dropna()
        rejected = table["rejected"].to_numpy()
        if self.method == "adapt":
            lines = np.full(len(table), table["p_value"][rejected].max() if rejected.any() else 0.5)
        else:
            lines = cut_offs(self.hypotheses, self.q, self.method)
        return step_up(
            table["p_value"].to_numpy(),
            rejected,
            lines,
            ax=ax,
            stamp=self.stamp,
            caption=self.caption if boolean("caption", caption) else None,
        )

    def __repr__(self) -> str:
        return (
            f"<Discoveries of {self.formula!r}: {len(self.rejected)} of {self.hypotheses} "
            f"rejected at a false discovery rate of {self.q:g}>"
        )


class Tested(Result):
    """A result that has p-values of several hypotheses."""

    if TYPE_CHECKING:

        @property
        def pvalues(self) -> pd.Series[float]:
            """P-values by hypothesis."""

    def fdr(self, q: float = 0.1, method: Literal["bh", "by"] = "bh") -> Discoveries:
        """Reject hypotheses at a false discovery rate: post-processing of the p-values.

        An intercept is not a hypothesis; one without a p-value is not rejected, but counts.

        Parameters
        ----------
        q : float
            The expected share of true null hypotheses among those rejected, in (0, 1).
        method : {"bh", "by"}
            Benjamini-Hochberg, for independent or positively dependent tests, or
            Benjamini-Yekutieli for any dependence.

        Raises
        ------
        ArgumentError
            If `q` is not between 0 and 1, or the method not known.
        """
        return discoveries(self, self.pvalues, q, method)


def discoveries(
    result: Result, p_values: pd.Series[float], q: float, method: str, hypotheses: int | None = None
) -> Discoveries:
    """Step up over the p-values of a result, except that of an intercept.

    `hypotheses` is how many there are, where some have no p-value.
    """
    level, how = fraction("q", q, ", such as 0.1"), option("method", method, tuple(METHODS))
    tested = p_values[p_values.index != INTERCEPT]
    return Discoveries(
        result.call.formula,
        tuple(map(str, tested.index)),
        np.asarray(tested, dtype=np.float64),
        len(tested) if hypotheses is None else hypotheses,
        level,
        how,
        result.stamp,
        caption_of(result.release),
    )
