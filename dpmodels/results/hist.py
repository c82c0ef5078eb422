"""The result of a private histogram."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import pandas as pd
import xarray as xr
from numpy.typing import NDArray

from dpmodels.errors import ArgumentError
from dpmodels.formula.bins import by_whole_numbers, held
from dpmodels.formula.sides import one_measured, sides
from dpmodels.formula.values import Real
from dpmodels.outside import array
from dpmodels.released import CountsRelease
from dpmodels.results.base import Result
from dpmodels.results.call import DescribedCall, TableCall
from dpmodels.results.table import TableResult
from dpmodels.typing import Floats

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True, repr=False, eq=False)
class HistResult(Result):
    """A private histogram: released values and public facts only.

    Parameters
    ----------
    breaks : ndarray, shape (bins + 1,)
        Public ends of the bins, each but the first open at its lower end; of whole numbers and
        of days since 1970-01-01 half a step beside them.
    variable : str
        What is counted.

    Notes
    -----
    :meth:`noise_int` is of counts, :meth:`conf_int` of the bins' shares of all
    counted rows.
    """

    call: DescribedCall
    release: CountsRelease
    breaks: Annotated[Floats, array, "edge"]
    variable: str

    @cached_property
    def table(self) -> TableResult:
        """The same as a table of counts."""
        return TableResult(self.call, self.release)

    @property
    def _facts(self) -> TableCall:
        return self.call.tables[0]

    @property
    def counts(self) -> xr.DataArray:
        """Consistent counts, by group and bin: whole, not negative, adding up."""
        return self.table.counts

    @property
    def released(self) -> xr.DataArray:
        """Unbiased counts with independent noise, but for the public total."""
        return self.table.released

    @property
    def density(self) -> xr.DataArray:
        """Share of the group's counted rows by unit of the variable; nan without rows."""
        groups = self._facts.factors[:-1]
        shares = self.table.proportions(groups)
        return (shares / np.diff(self.breaks)).rename("density")

    @cached_property
    def _number(self) -> Real:
        """What is counted, as the formula has it."""
        return one_measured(sides(self.call.formula, self.call.codebook), "the result")[0]

    @property
    def _ends(self) -> tuple[NDArray[Any], NDArray[Any]]:
        """Ends of the bins; of whole numbers and days the first and the last in each."""
        number = self._number
        if not (by_whole_numbers(number) and (self.breaks % 1 == 0.5).all()):
            return self.breaks[:-1], self.breaks[1:]
        first, last = (ends.astype(np.int64) for ends in held(self.breaks))
        if not number.date:
            return first, last
        # pandas knows no days, and its nanoseconds are not enough for all years.
        first, last = (ends.astype("datetime64[D]") for ends in (first, last))
        return first.astype("datetime64[s]"), last.astype("datetime64[s]")

    @property
    def mids(self) -> Floats:
        """Middles of the bins."""
        return np.asarray((self.breaks[1:] + self.breaks[:-1]) / 2)

    def _noise_int(self, level: float) -> pd.DataFrame:
        return self.table.noise_int(level)

    def _conf_int(self, level: float) -> pd.DataFrame:
        return self.table.conf_int(level)

    def tidy(self) -> pd.DataFrame:
        """Return one row a bin: ends, counts, density, noise and 95 % intervals."""
        own = self.table.tidy().rename(columns={self._facts.factors[-1]: "bin"})
        groups = len(own) // len(self.mids)
        ends = dict(zip(("low", "high"), self._ends, strict=True))
        for place, (name, values) in enumerate(ends.items()):
            own.insert(len(self._facts.factors) + place, name, np.tile(values, groups))
        return own.assign(density=self.density.to_numpy().ravel())

    def glance(self) -> pd.DataFrame:
        """Return one row about the whole release."""
        return self.table.glance()

    def plot(self, ax: Axes | None = None, group: object = None, level: float = 0.95) -> Axes:
        """Draw the bins with their noise intervals.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.
        group : level or tuple of levels, optional
            Which group; needed where there are any.
        level : float
            Coverage of the noise bars, in (0, 1).

        Raises
        ------
        ArgumentError
            If the group is not one of the declared ones.
        """
        from dpmodels.plots.bars import hist

        place = self._place(group)
        own = slice(place * len(self.mids), (place + 1) * len(self.mids))
        bars = self.noise_int(level).to_numpy()[own]
        name = self.variable if group is None else f"{self.variable}, {group}"
        drawn = hist(
            self.breaks,
            self.counts.to_numpy().ravel()[own],
            bars,
            name,
            counted="persons" if self.release.adjacency.counts_persons else "rows",
            ax=ax,
            stamp=self.stamp,
        )
        if self._number.date:
            drawn.xaxis_date()
        return drawn

    def _place(self, group: object) -> int:
        levels = self._facts.levels[:-1]
        if not levels:
            if group is None:
                return 0
            raise ArgumentError("group= is given, and the histogram has no groups: leave it out")
        index = TableCall(self._facts.factors[:-1], levels).index
        if group not in index:
            raise ArgumentError(
                f"group= is not one of the groups of {', '.join(self._facts.factors[:-1])}; write "
                f"one of them, such as group={index[0]!r}"
            )
        return int(index.get_loc(group))  # type: ignore[arg-type]

    @property
    def _size(self) -> str:
        return f"{len(self.mids)} bins"
