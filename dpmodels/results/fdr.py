"""The result of a private search for columns that go with a response."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Any, Literal

import pandas as pd

from dpmodels.inference.associated import Correlations
from dpmodels.inference.screened import (
    Logarithms,
    correlations,
    mirrored_p_values,
    noisy_p_values,
    p_values,
)
from dpmodels.outside import Amount, one_of
from dpmodels.postprocess.step_up import METHODS
from dpmodels.released import PValuesRelease, ScreenedRelease
from dpmodels.results.base import Result
from dpmodels.results.call import ScreenCall
from dpmodels.results.discoveries import Discoveries, discoveries
from dpmodels.results.estimate_table import EstimateTable, estimate_table

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Of q by the number of hypotheses: the part that bounds on sums of squares may fail with. A choice.
FAILING = 0.05


@dataclass(frozen=True, repr=False, eq=False)
class FDRResult(Result):
    """Private tests of many columns at a false discovery rate: released values and public facts.

    Parameters
    ----------
    q : float
        The level that was asked for.
    method : {"bh", "by"}
        Benjamini-Hochberg, or Benjamini-Yekutieli for any dependence.

    Notes
    -----
    :meth:`noise_int` is of the correlation of a chosen column with the
    response in these rows: its noise is fresh, so that having been chosen makes
    it no larger. The noise of the denominators is counted in, to first order.
    """

    call: ScreenCall
    release: ScreenedRelease | PValuesRelease
    q: Amount
    method: Annotated[str, one_of(*METHODS)]

    _no_intervals = (
        "correlations of a population have intervals of their own law; tidy() has p-values, and "
        "noise_int() what the noise leaves of these rows' correlations"
    )

    @property
    def names(self) -> tuple[str, ...]:
        """The columns that were looked at, in the order of their choice."""
        return tuple(self.call.names[int(place)] for place in self.release.chosen)

    @property
    def hypotheses(self) -> int:
        """How many columns there are."""
        return len(self.call.names)

    @cached_property
    def pvalues(self) -> pd.Series[float]:
        """P-values of no association, noise and sampling counted in, by column looked at."""
        if isinstance(self.release, PValuesRelease):
            found = noisy_p_values(self.release, self.q)
        else:
            of = mirrored_p_values if self.mirrored else p_values
            found = of(self.release, self.call.alternative, self.least)
        index = pd.Index(self.names, dtype=object, name="hypothesis")
        return pd.Series(found, index, name="p_value")

    @property
    def least(self) -> float:
        """What no p-value is below: how often noise hides more of a variance than is allowed for.

        A twentieth of what the smallest of all p-values is held against.
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

        Columns that were not looked at count as p-values of 1.
        """
        return discoveries(self, self.pvalues, q, method, self.hypotheses)

    @cached_property
    def discoveries(self) -> Discoveries:
        """The rejections at `q` by `method`, or by the rule of the mechanism ``"adapt"``."""
        own = self.fdr(self.q, "by" if self.method == "by" else "bh")
        return replace(own, method="adapt") if self.mirrored else own

    @property
    def mirrored(self) -> bool:
        """Whether false discoveries are counted on the side that was not asked for."""
        return self.release.card.name == "adapt"

    @property
    def valued(self) -> str:
        """What is released of a column: its ``correlation``, or the ``log_p`` of its test."""
        return "log_p" if isinstance(self.release, PValuesRelease) else "correlation"

    @property
    def rejected(self) -> list[str]:
        """The columns that go with the response, smallest p-value first."""
        return self.discoveries.rejected

    def _estimates(self) -> EstimateTable:
        table = self.discoveries.tidy().set_index("hypothesis")
        names = table.index
        further = {"p_adjusted": table["p_adjusted"], "rejected": table["rejected"]}
        found = estimate_table(
            self,
            names,
            further=further,
            labels=names,
            p_value=table["p_value"],
            estimate=self.params[names],
            noise_sd=self.bse_noise[names],
        )
        return replace(found, noise=lambda level: self.noise_int(level).loc[names])

    def plot(self, ax: Axes | None = None, *, caption: bool = True) -> Axes:
        """Draw sorted p-values, on a scale of -log10, with the line that they are held against.

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

    def _line(self) -> dict[str, Any]:
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
