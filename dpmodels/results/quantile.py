"""The result of private quantiles by group."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from dpmodels.errors import NotAvailable
from dpmodels.released import QuantilesRelease
from dpmodels.results.base import checked_level
from dpmodels.results.count_tables import OneTable, described_line
from dpmodels.results.estimate_table import EstimateTable, axis_title, table_of_estimates, unit_of
from dpmodels.typing import Floats

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True, repr=False)
class QuantileResult(OneTable):
    """Private quantiles by group: released values and public facts only.

    Parameters
    ----------
    probs : tuple of float
        Which quantiles.
    level : float or None
        Coverage of the intervals that were bought.
    grid : int
        Public cells of the declared range, or its steps.

    Notes
    -----
    A group that has too few rows for this budget has nan for its quantiles,
    and the whole range for their intervals.
    """

    release: QuantilesRelease
    probs: tuple[float, ...]
    level: float | None
    grid: int

    @property
    def _quantiles(self) -> QuantilesRelease:
        return self.release

    def _frame(self, places: Floats) -> pd.DataFrame:
        """Label places by group and prob, in the unit of the number."""
        facts = self._facts
        offsets = facts.width * places
        if facts.step is not None:
            offsets = facts.step * np.rint(offsets / facts.step)
        values = facts.lower + offsets
        return pd.DataFrame(values, self._facts.index, pd.Index(self.probs, name="prob"))

    @property
    def _places(self) -> Floats:
        """Quantiles on the range from 0 to 1, rising with their probs."""
        quantiles = self._quantiles.values[:, :, 0]
        return np.where(np.isnan(quantiles), np.nan, np.fmax.accumulate(quantiles, axis=1))

    @property
    def params(self) -> pd.DataFrame:
        """Quantiles, a row a group and a column a prob."""
        return self._frame(self._places)

    @property
    def drawn(self) -> pd.DataFrame:
        """Probabilities that the mechanism aimed at: the probs, or closer to the middle."""
        probs = pd.Index(self.probs, name="prob")
        return pd.DataFrame(self._quantiles.drawn, self._facts.index, probs)

    @property
    def counts(self) -> pd.Series[float]:
        """Released numbers of complete rows; noise sd `count_noise_sd`."""
        return pd.Series(self._quantiles.counts, index=self._facts.index, name="count")

    @property
    def count_noise_sd(self) -> pd.Series[float]:
        """Standard deviation of the privacy noise in each of `counts`."""
        return pd.Series(self._quantiles.count_sd, index=self._facts.index, name="count_noise_sd")

    @property
    def rank_noise_sd(self) -> pd.DataFrame:
        """Standard deviation of the privacy noise in the rank of each quantile, in rows."""
        probs = pd.Index(self.probs, name="prob")
        return pd.DataFrame(self._quantiles.rank_sd, self._facts.index, probs)

    def conf_int(self, level: float | None = None) -> pd.DataFrame:
        """Return intervals for the population's quantiles: noise and sampling.

        Parameters
        ----------
        level : float, optional
            The coverage that was bought, by default.

        Returns
        -------
        DataFrame
            ``lower, upper`` by group and prob.

        Raises
        ------
        NotAvailable
            If intervals of this level were not bought.

        Notes
        -----
        They contain the values that the noisy ranks, given noise and sampling, do not rule out. No
        density is estimated, so values that many rows share are covered as well. An end is that of
        the declared range where too few rows lie that far out.
        """
        if self.level is None or (level is not None and checked_level(level) != self.level):
            bought = "none were" if self.level is None else f"those of level {self.level} were"
            raise NotAvailable(
                f"intervals of quantiles are released with the quantiles, and {bought} bought: "
                "write dp_quantile(..., level=0.95), with mechanism='refined' or 'auto'"
            )
        low, high = np.moveaxis(self._quantiles.values[:, :, 1:], 2, 0)
        lower = np.fmin(np.nan_to_num(low, nan=0.0), self._places)
        upper = np.fmax(np.nan_to_num(high, nan=1.0), self._places)
        ends = {"lower": _long(self._frame(lower)), "upper": _long(self._frame(upper))}
        return pd.DataFrame(ends)

    _no_intervals = (
        "the noise of a quantile is known in ranks (rank_noise_sd); its size in values depends "
        "on nearby private rows: see conf_int()"
    )

    def _estimates(self) -> EstimateTable:
        values = _long(self.params)
        variable = self._facts.variable
        unit = unit_of(self.call.codebook, variable)
        table = table_of_estimates(self, values.index, labels=variable, unit=unit, estimate=values)
        # The only intervals are those of the level that was bought.
        return replace(table, total=lambda level: self.conf_int())

    def plot(self, ax: Axes | None = None, *, caption: bool = True) -> Axes:
        """Draw quantiles by group, with the intervals that were bought.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.
        caption : bool
            Whether guarantee, neighbours and noise stand under the picture.
        """
        from dpmodels.plots.heat import quantiles

        facts, values = self._facts, self.params.to_numpy()
        ends = np.full((*values.shape, 2), np.nan)
        if self.level is not None:
            ends = self.conf_int().to_numpy().reshape(ends.shape)
        axes = quantiles(
            values,
            ends,
            probs=self.probs,
            groups=facts.labels,
            title=axis_title(f"Quantiles of {facts.measured}", self.call.codebook),
            across=" / ".join(facts.factors),
            level=self.level,
            **self._picture(ax, caption),
        )
        if facts.date:
            axes.xaxis_date()
        return axes

    def _line(self) -> dict[str, object]:
        complete = float(self.counts.sum())
        return described_line(self.release, complete, self._facts.cells)

    @property
    def _size(self) -> str:
        return f"{len(self.probs)} probs"


def _long(frame: pd.DataFrame) -> pd.Series[float]:
    """Put the columns under each other, row by row; nan stays."""
    groups = [key if isinstance(key, tuple) else (key,) for key in frame.index]
    keys = [(*group, prob) for group in groups for prob in frame.columns]
    names = [*frame.index.names, frame.columns.name]
    return pd.Series(frame.to_numpy().ravel(), pd.MultiIndex.from_tuples(keys, names=names))
