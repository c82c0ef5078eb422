"""What results of one table of counts by declared levels have in common."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from dpmodels.inference.shares import count_interval
from dpmodels.postprocess.totals import whole
from dpmodels.released import CountsRelease
from dpmodels.results.base import Result
from dpmodels.results.call import DescribedCall, TableCall
from dpmodels.results.described import Counted, counted, interval_frame
from dpmodels.results.estimate_table import EstimateTable, count_table
from dpmodels.typing import Integers

if TYPE_CHECKING:
    import xarray as xr


@dataclass(frozen=True, repr=False, eq=False)
class CountedResult(Result):
    """Counts by cell: released values and public facts only."""

    call: DescribedCall
    release: CountsRelease

    if TYPE_CHECKING:

        def proportions(self) -> xr.DataArray:
            """Return shares of the complete, by cell."""

    @property
    def _facts(self) -> TableCall:
        return self.call.tables[0]

    @cached_property
    def _counted(self) -> Counted:
        return counted(self.call, self.release)

    @cached_property
    def _whole(self) -> Integers:
        """All counts, the incomplete last."""
        own = self._counted
        return whole(np.append(own.parts[:, 0], own.incomplete), self.release.rows)

    @property
    def counts(self) -> xr.DataArray:
        """Consistent counts: whole, not negative, adding up; a dimension a factor."""
        return self._facts.by_cell(self._whole[:-1], "count")

    @property
    def released(self) -> xr.DataArray:
        """Unbiased counts with independent noise, but for the public total."""
        return self._facts.by_cell(self._counted.parts[:, 0], "released")

    @property
    def ncomplete(self) -> float:
        """Number of all that are complete: the sum of `counts`."""
        return float(self._whole[:-1].sum())

    def noise_sd(self, cells: int = 1) -> float:
        """Return the noise standard deviation of a sum of released counts.

        Parameters
        ----------
        cells : int
            How many cells are added up.
        """
        own = self._counted.noise
        return float(own.sd * np.sqrt((own.weights(np.ones(cells)) ** 2).sum()))

    def _estimates(self) -> EstimateTable:
        return count_table(
            self,
            self._facts.index,
            self._whole[:-1],
            noise_sd=self.noise_sd(),
            further={"released": self._counted.parts[:, 0]},
            labels=self._facts.variable,
        )

    def _noise_int(self, level: float) -> pd.DataFrame:
        own = self._counted
        return interval_frame(self._facts, count_interval(own.parts[:, 0], own.noise, level))
