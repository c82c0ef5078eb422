"""The result of a private selection: what was named, and values with fresh noise."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from dpmodels.errors import NotAvailable
from dpmodels.inference.ranked import above_next
from dpmodels.inference.ratios import Noise
from dpmodels.inference.shares import count_interval
from dpmodels.released import SelectionRelease
from dpmodels.results.base import Result
from dpmodels.results.call import DescribedCall, TableCall, joined
from dpmodels.results.legend import labelled
from dpmodels.typing import Floats

if TYPE_CHECKING:
    from matplotlib.axes import Axes

NO_VALUES = (
    "no values were bought, and those that the ranking went by are not told, as the largest of "
    "them are too large: write values=True"
)


@dataclass(frozen=True, repr=False, eq=False)
class SelectResult(Result):
    """The largest of many things by name: released values and public facts only.

    Parameters
    ----------
    score : str
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
    score: str
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
    def selected(self) -> tuple[Any, ...]:
        """What was named, best first as it was drawn: levels, or tuples of levels."""
        return tuple(self.index.to_list())

    @property
    def ncandidates(self) -> int:
        """How many things there were to choose among: a public number."""
        return self._facts.cells

    @property
    def values(self) -> pd.Series[float]:
        """Counts of what was named, with fresh noise of sd `noise_sd`."""
        return pd.Series(self._values, self.index, name=self.score)

    @property
    def noise_sd(self) -> float:
        """Standard deviation of the noise in each of `values`."""
        return self.release.noise_sd

    @property
    def _values(self) -> Floats:
        if self.release.values is None:
            raise NotAvailable(f"values are not available: {NO_VALUES}")
        return self.release.values

    def above_next(self) -> pd.Series[float]:
        """Return how probable it is that each one's value is above that of the next.

        From the fresh values and the law of their noise alone; nan for the last, as nothing that
        follows was released.
        """
        found = above_next(self._values, self.noise_sd, self.release.law)
        return pd.Series(found, self.index, name="above_next")

    def _noise_int(self, level: float) -> pd.DataFrame:
        noise = Noise(self.release.law, self.noise_sd, 0, self.release.step)
        lower, upper = count_interval(self._values, noise, level)
        return pd.DataFrame({"lower": lower, "upper": upper}, index=self.index)

    _no_intervals = (
        "the rows that the values are of have chosen what is valued, so that what sampling adds to "
        "them is not that of a value named beforehand: write noise_int(), or value what was named "
        "on other rows"
    )

    def tidy(self) -> pd.DataFrame:
        """Return one row a thing named, with its value, noise and interval where bought."""
        index = self.index
        table = pd.DataFrame({"place": np.arange(1, len(index) + 1)}, index=index)
        if self.release.values is not None:
            ends = self.noise_int()
            table = table.assign(
                value=self._values,
                noise_sd=self.noise_sd,
                noise_low=ends["lower"],
                noise_high=ends["upper"],
                above_next=self.above_next(),
            )
        own = table.reset_index()
        own.insert(0, "place", own.pop("place"))
        return labelled(own, self.call.codebook, label=[self._facts.variable] * len(own))

    def _line(self) -> dict[str, Any]:
        named = {"ncandidates": self.ncandidates, "nselected": len(self.release.places)}
        return {"nobs": self.nobs, **named}

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw a bar for each thing named, best first, with 95 % noise intervals.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.

        Raises
        ------
        NotAvailable
            If no values were bought, or nothing was above the threshold.
        """
        from dpmodels.plots.ranked import ranked

        values, ends = self._values, self.noise_int()
        return ranked(
            joined(self.index),
            values,
            (ends["lower"].to_numpy(), ends["upper"].to_numpy()),
            f"{self.score} of {' x '.join(self._facts.factors)}, noisy",
            ax=ax,
            stamp=self.stamp,
        )

    @property
    def _size(self) -> str:
        return f"{len(self.release.places)} of {self.ncandidates}"
