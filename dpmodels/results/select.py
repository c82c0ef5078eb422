"""The result of a private selection: selected candidates, and values with fresh noise."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, NamedTuple

import numpy as np
import pandas as pd

from dpmodels.errors import NotAvailable
from dpmodels.external_files import one_of
from dpmodels.inference.proportions import count_interval
from dpmodels.inference.ratios import Noise
from dpmodels.inference.screening_tests import (
    Correlations,
    above_next,
    associated_correlations,
    gains,
)
from dpmodels.released import SelectionRelease
from dpmodels.results.call import joined
from dpmodels.results.count_tables import OneTable
from dpmodels.results.estimate_table import EstimateTable, table_of_estimates
from dpmodels.typing import Floats, TableColumns

if TYPE_CHECKING:
    from matplotlib.axes import Axes

NO_VALUES = (
    "no values were bought, and those of the ranking are not released, as selection biases them: "
    "write values=True"
)


COUNT, GAIN = "count", "gain"


class Valued(NamedTuple):
    """Values of the selected candidates, shape (selected,)."""

    values: Floats
    sds: Floats
    variances: Floats  # Of the noise that no two of them share


@dataclass(frozen=True, repr=False, eq=False)
class SelectResult(OneTable):
    """The candidates with the largest scores: released values and public facts only.

    Parameters
    ----------
    score : {"count", "correlation", "z", "gain"}
        The score of the ranking.
    n_requested : int
        The requested number; a maximum, where there is a threshold.
    threshold : float or None
        What the scores of the selected exceed, up to noise.
    share : float
        The fraction of the budget for values; 0 without values.

    Notes
    -----
    The noise of `values` is independent of the ranking: given the selection they are unbiased for
    these rows. :meth:`noise_int` covers the values of these rows, each by itself. Nothing was
    released about candidates that are not selected.
    """

    release: SelectionRelease
    score: Annotated[str, one_of(COUNT, "correlation", "z", GAIN)]
    n_requested: int
    threshold: float | None
    share: float

    @property
    def index(self) -> pd.Index:
        """Labels of the selected candidates."""
        return self._facts.index.take(list(self.release.places))

    @property
    def selected(self) -> tuple[object, ...]:
        """The selected candidates, in order: levels, tuples of levels, or coded columns."""
        return tuple(self.index.to_list())

    @property
    def ncandidates(self) -> int:
        """The number of candidates, which is public."""
        return self._facts.cells

    @property
    def values(self) -> pd.Series[float]:
        """Counts, correlations, z or gains of the selected, with fresh noise of sd `noise_sd`.

        A gain is the share of the response's sum of squares about its mean that the released
        coefficient of a column explains, after those selected before it. nan where the spread of
        the column, or of the response, is not distinguished from 0.
        """
        return pd.Series(self._valued.values, self.index, name=self.score)

    @property
    def noise_sd(self) -> pd.Series[float]:
        """Standard deviation of the noise in each of `values`; of a ratio to first order."""
        return pd.Series(self._valued.sds, self.index, name="noise_sd")

    def above_next(self) -> pd.Series[float]:
        """Return the probability that each value is above the next one, by size.

        From the fresh values and their noise alone, which is taken as normal in correlations; nan
        for the last, as no later candidate was released.
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
                "cumulative() needs columns ranked by gain, and these are ranked by "
                f"{self.score}: write score='gain'"
            )
        values = self.values.cumsum()
        sds = self._correlations.summed_sd(self.release.noise_sd)
        return pd.DataFrame({"r_squared": values, "noise_sd": sds}, index=self.index)

    @property
    def _factor(self) -> float:
        """What a correlation is multiplied by: for z the root of the effective number of rows."""
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
        "the candidates were selected on the same rows, so their sampling errors are not the "
        "usual ones: write noise_int(), or estimate the selected candidates on other rows"
    )

    def _estimates(self) -> EstimateTable:
        index, further = self.index, {}
        numbers: TableColumns = {"estimate": np.nan}
        if self.release.values is not None:
            numbers = {"estimate": self._valued.values, "noise_sd": self._valued.sds}
            further = {"above_next": self.above_next()}
            if self.score == GAIN:
                further["r_squared"] = self.cumulative()["r_squared"]
        ranked = index.to_frame(index=False)
        ranked.insert(0, "place", np.arange(1, len(index) + 1))
        about = [self._facts.variable] * len(index) if self.score == COUNT else list(index)
        return table_of_estimates(
            self, pd.MultiIndex.from_frame(ranked), further=further, labels=about, **numbers
        )

    def _line(self) -> dict[str, object]:
        sizes = {"ncandidates": self.ncandidates, "nselected": len(self.release.places)}
        return {"nobs": self.nobs, **sizes}

    def plot(self, ax: Axes | None = None, *, caption: bool = True) -> Axes:
        """Draw a bar for each selected candidate, best first, with 95 % noise intervals.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.
        caption : bool
            Whether guarantee, neighbours and noise stand under the picture.

        Raises
        ------
        NotAvailable
            If no values were bought, none exceeds its noise, or nothing was above the threshold.
        """
        from dpmodels.plots.bars import ranked

        values, ends, facts = self._valued.values, self.noise_int(), self._facts
        if len(values) and np.isnan(values).all():
            raise NotAvailable("plot() is not available: no value exceeds its noise")
        what = " x ".join(facts.factors) if self.score == COUNT else f"terms with {facts.measured}"
        return ranked(
            [f"{place}. {name}" for place, name in enumerate(joined(self.index), start=1)],
            values,
            (ends["lower"].to_numpy(), ends["upper"].to_numpy()),
            f"{self.score} of {what}, noisy",
            empty="nothing was above the threshold",
            **self._picture(ax, caption),
        )

    @property
    def _size(self) -> str:
        return f"{len(self.release.places)} of {self.ncandidates}"
