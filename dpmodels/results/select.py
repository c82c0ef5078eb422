"""The result of a private selection: what was named, and values with fresh noise."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import numpy as np
import pandas as pd

from dpmodels.errors import NotAvailable
from dpmodels.inference.ratios import Noise
from dpmodels.inference.screened import Correlations, above_next, associated_correlations, gains
from dpmodels.inference.shares import count_interval
from dpmodels.outside import one_of
from dpmodels.released import SelectionRelease
from dpmodels.results.base import Result
from dpmodels.results.call import DescribedCall, TableCall, joined
from dpmodels.results.estimate_table import EstimateTable, estimate_table
from dpmodels.typing import Floats

if TYPE_CHECKING:
    from matplotlib.axes import Axes

NO_VALUES = (
    "no values were bought, and those that the ranking went by are not told, as the largest of "
    "them are too large: write values=True"
)


COUNT, GAIN = "count", "gain"


class Valued(NamedTuple):
    """Values of what was named, shape (selected,)."""

    values: Floats
    sds: Floats
    variances: Floats  # Of the noise that no two of them share


@dataclass(frozen=True, repr=False, eq=False)
class SelectResult(Result):
    """The largest of many things by name: released values and public facts only.

    Parameters
    ----------
    score : {"count", "correlation", "z", "gain"}
        What they were ranked by.
    asked : int
        How many were asked for; at most, where there is a threshold.
    threshold : float or None
        What those named are above, but for noise.
    share : float
        Of the budget, for the values; 0 for none.

    Notes
    -----
    `values` have noise that the ranking had no part in: given what was named
    they are unbiased for these rows, whoever was named by chance. :meth:`noise_int`
    is of these rows' own values, each by itself, on the law of that noise.
    Nothing of what is not named was released.
    """

    call: DescribedCall
    release: SelectionRelease
    score: Annotated[str, one_of(COUNT, "correlation", "z", GAIN)]
    asked: int
    threshold: float | None
    share: float

    @property
    def _facts(self) -> TableCall:
        return self.call.tables[0]

    @property
    def index(self) -> pd.Index:
        """Labels of what was named."""
        return self._facts.index.take(list(self.release.places))

    @property
    def selected(self) -> tuple[object, ...]:
        """What was named, in order: levels, tuples of levels, or coded columns."""
        return tuple(self.index.to_list())

    @property
    def ncandidates(self) -> int:
        """How many things there were to choose among: a public number."""
        return self._facts.cells

    @property
    def values(self) -> pd.Series[float]:
        """Counts, correlations, z or gains of what was named, with fresh noise of sd `noise_sd`.

        A gain is the share of the response's sum of squares about its mean that the released
        coefficient of a column takes off, after those named before it. nan for a correlation with a
        column whose spread is not told from none, and where that of the response is not.
        """
        return pd.Series(self._valued.values, self.index, name=self.score)

    @property
    def noise_sd(self) -> pd.Series[float]:
        """Standard deviation of the noise in each of `values`; of a ratio to first order."""
        return pd.Series(self._valued.sds, self.index, name="noise_sd")

    def above_next(self) -> pd.Series[float]:
        """Return how probable it is that each one's value is above that of the next, by size.

        From the fresh values and the law of their noise alone, taken for normal in correlations;
        nan for the last, as nothing that follows was released.
        """
        valued = self._valued
        law = self.release.law if self.score == COUNT else "gaussian"
        sizes = valued.values if self.score in (COUNT, GAIN) else np.abs(valued.values)
        return pd.Series(above_next(sizes, valued.variances, law), self.index, name="above_next")

    @cached_property
    def _valued(self) -> Valued:
        release = self.release
        if release.values is None:
            raise NotAvailable(f"values are not available: {NO_VALUES}")
        if self.score == COUNT:
            sds = np.full(len(release.values), release.noise_sd)
            return Valued(release.values, sds, sds**2)
        correlations, factor = self._correlations, self._factor
        sds, variances = (
            correlations.sd(release.noise_sd),
            correlations.own_variance(release.noise_sd),
        )
        return Valued(factor * correlations.values, factor * sds, factor**2 * variances)

    @cached_property
    def _correlations(self) -> Correlations:
        release = self.release
        assert release.values is not None
        assert release.scatters is not None
        assert release.response is not None
        if release.slopes is not None:
            return gains(
                release.values, release.scatters, release.response, release.slopes, release.noise_sd
            )
        return associated_correlations(
            release.values, release.scatters, release.response, release.noise_sd
        )

    def cumulative(self) -> pd.DataFrame:
        """Return R² of the released fit, column by column, and the sd of the noise in it.

        The sum of the gains so far, shape (selected, 2). NotAvailable for what was not ranked by
        gain, or where no values were bought.
        """
        if self.score != GAIN:
            raise NotAvailable(
                f"cumulative() is of columns ranked by gain, and these are by {self.score}: write "
                "score='gain'"
            )
        values = self.values.cumsum()
        sds = self._correlations.summed_sd(self.release.noise_sd)
        return pd.DataFrame({"r_squared": values, "noise_sd": sds}, index=self.index)

    @property
    def _factor(self) -> float:
        """What a correlation is multiplied by: of z the root of how many rows are no kin."""
        if self.score != "z":
            return 1.0
        release = self.release
        return math.sqrt(max(release.count or 0.0, 0.0) / release.adjacency.design_effect)

    def _noise_int(self, level: float) -> pd.DataFrame:
        release, valued = self.release, self._valued
        if self.score == COUNT:
            noise = Noise(release.law, release.noise_sd, 0, release.step)
            ends = count_interval(valued.values, noise, level)
        else:
            interval = self._correlations.interval(release.noise_sd, release.law, level)
            ends = (self._factor * interval[0], self._factor * interval[1])
        return pd.DataFrame({"lower": ends[0], "upper": ends[1]}, index=self.index)

    _no_intervals = (
        "the rows that the values are of have chosen what is valued, so that what sampling adds to "
        "them is not that of a value named beforehand: write noise_int(), or value what was named "
        "on other rows"
    )

    def _estimates(self) -> EstimateTable:
        index, further = self.index, {}
        numbers: dict[str, Any] = {"estimate": np.nan}
        if self.release.values is not None:
            numbers = {"estimate": self._valued.values, "noise_sd": self._valued.sds}
            further = {"above_next": self.above_next()}
            if self.score == GAIN:
                further["r_squared"] = self.cumulative()["r_squared"]
        ranked = index.to_frame(index=False)
        ranked.insert(0, "place", np.arange(1, len(index) + 1))
        about = [self._facts.variable] * len(index) if self.score == COUNT else list(index)
        return estimate_table(
            self, pd.MultiIndex.from_frame(ranked), further=further, labels=about, **numbers
        )

    def _line(self) -> dict[str, object]:
        sizes = {"ncandidates": self.ncandidates, "nselected": len(self.release.places)}
        return {"nobs": self.nobs, **sizes}

    def plot(self, ax: Axes | None = None, *, caption: bool = True) -> Axes:
        """Draw a bar for each thing named, best first, with 95 % noise intervals.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.
        caption : bool
            Whether guarantee, neighbours and noise stand under the picture.

        Raises
        ------
        NotAvailable
            If no values were bought, none is told from its noise, or nothing was
            above the threshold.
        """
        from dpmodels.plots.bars import ranked

        values, ends, facts = self._valued.values, self.noise_int(), self._facts
        if len(values) and np.isnan(values).all():
            raise NotAvailable("plot() is not available: no value is told from its noise")
        what = " x ".join(facts.factors) if self.score == COUNT else f"terms with {facts.measured}"
        return ranked(
            [f"{place}. {name}" for place, name in enumerate(joined(self.index), start=1)],
            values,
            (ends["lower"].to_numpy(), ends["upper"].to_numpy()),
            f"{self.score} of {what}, noisy",
            empty="nothing was above the threshold",
            ax=ax,
            stamp=self.stamp,
            caption=self._caption(enabled=caption),
        )

    @property
    def _size(self) -> str:
        return f"{len(self.release.places)} of {self.ncandidates}"
