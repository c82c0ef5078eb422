"""The result of private counts of states in series whose states depend on each other."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pandas as pd

from dpmodels.errors import ArgumentError, NotAvailable
from dpmodels.formula.periods import periods
from dpmodels.inference.dependence import share_effects
from dpmodels.inference.shares import share_interval
from dpmodels.privacy import MarkovChain, Pufferfish, Quilt
from dpmodels.report import signif
from dpmodels.results.counted import CountedResult
from dpmodels.results.described import described_line, interval_frame
from dpmodels.results.estimate_table import EstimateTable
from dpmodels.typing import Floats

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.axes import Axes

# A choice: probabilities to stay that a curve is drawn at, and the largest of them.
_POINTS: Final = 40
_MOST_STAY: Final = 0.99


@dataclass(frozen=True, repr=False, eq=False)
class StatesResult(CountedResult):
    """Private counts of states over all persons and times: released values and public facts only.

    Parameters
    ----------
    time : str
        The variable that tells when.

    Notes
    -----
    The guarantee is Pufferfish privacy of each state, under the class of chains that was
    assumed; it is not differential privacy. `counts` are whole, not negative and, with the times
    without a state, add up to the places that persons have; `released` are unbiased and may be
    negative: intervals are made from them. :meth:`noise_int` is of counts and rests on the
    noise alone, :meth:`conf_int` of the long-run shares, with the dependence of the class.
    """

    time: str

    @property
    def budget(self) -> Pufferfish:
        """What is guaranteed."""
        guarantee = self.release.guarantee
        assert isinstance(guarantee, Pufferfish)
        return guarantee

    @property
    def chain(self) -> MarkovChain:
        """What was assumed of how states follow each other."""
        return self.budget.model

    @cached_property
    def steps(self) -> int:
        """How many times each person has."""
        return len(periods(self.time, None, self.call.codebook))

    @property
    def quilt(self) -> Quilt:
        """The quilt of the time that needs most noise."""
        own = self.release.quilt
        assert own is not None
        return own

    def proportions(self) -> xr.DataArray:
        """Return shares of the times with a state; nan where there are none."""
        own = self.counts
        total = own.sum()
        return (own / total.where(total > 0)).rename("proportion")

    @property
    def scales(self) -> pd.DataFrame:
        """The noise of a count as it is, and what others would ask for, one a row.

        ``"each time by itself"`` is right for independent states alone; ``"all times
        together"`` is group privacy of a whole series. Columns: ``scale`` of the Laplace
        noise in times, ``ratio`` to the first.
        """
        sigma = np.array([1 / self.budget.eps, self.quilt.scale, self.steps / self.budget.eps])
        names = ["each time by itself", "quilt", "all times together"]
        return pd.DataFrame({"scale": 2 * sigma, "ratio": sigma / sigma[0]}, index=names)

    def _conf_int(self, level: float) -> pd.DataFrame:
        own, found = self._counted, np.empty((self._facts.cells, 2))
        for state, effect in enumerate(self._sampling_effect.tolist()):
            counts, noise = own.parts[:, 0] / effect, own.noise.divided(effect)
            found[state] = [ends[state] for ends in share_interval(counts, noise, level)]
        return interval_frame(self._facts, (found[:, 0], found[:, 1]))

    def _estimates(self) -> EstimateTable:
        return replace(super()._estimates(), unit="times")

    @cached_property
    def _sampling_effect(self) -> Floats:
        try:
            return share_effects(self.chain, self.steps)
        except ArgumentError as error:
            raise NotAvailable(f"conf_int() is not available: {error}") from None

    @property
    def kept(self) -> Floats | None:
        """Shares that the class keeps in the long run, by level; None where it may keep several."""
        return None if self.chain.reducible else self.chain.stationary

    def plot(self, *, ax: Axes | None = None, caption: bool = True) -> Axes:
        """Draw the count of each state with its noise interval."""
        from dpmodels.plots.bars import Panel, bars

        ends = self.noise_int()
        reach = ((ends["upper"] - ends["lower"]) / 2).to_numpy()
        panel = Panel("times, with 95% noise intervals", self._whole[:-1], reach)
        (drawn,) = bars(
            [panel],
            labels=self._facts.labels,
            axes=None if ax is None else [ax],
            stamp=self.stamp,
            caption=self._caption(shown=caption),
        )
        return drawn

    def plot_scale(self, *, ax: Axes | None = None, caption: bool = True) -> Axes:
        """Draw the noise against how often a symmetric chain of as many states stays.

        At the eps and the number of times of this release, with the class that was assumed.
        """
        from dpmodels.plots.scales import scales

        k = len(self.chain.states)
        stays = np.linspace(1 / k, _MOST_STAY, _POINTS)
        start = self.chain.initial if isinstance(self.chain.initial, str) else "any"
        drawn = [
            Pufferfish(self.budget.eps, MarkovChain(self.chain.states, None, (s, s), start))
            for s in stays.tolist()
        ]
        own = self.scales["scale"]
        return scales(
            stays,
            np.array([2 * one.active(self.steps).scale for one in drawn]),
            {str(name): float(own[name]) for name in own.index if name != "quilt"},
            ("probability to stay, of symmetric chains", "noise scale of a count, in times"),
            within=self.chain.stay,
            mark=("this release", float(own["quilt"])),
            ax=ax,
            stamp=self.stamp,
            caption=self._caption(shown=caption),
        )

    def _reading(self) -> str:
        if self.simulated:
            return super()._reading()
        most = signif(math.exp(self.budget.eps), 3)
        return (
            f"Reading: who believes a law of the class has odds of one state against another, of "
            f"anybody at any {self.time}, that this release multiplies or divides by {most} at "
            "the most."
        )

    def _line(self) -> dict[str, Any]:
        own = described_line(self.release, self.ncomplete, self._facts.cells)
        quilt = {"scale": 2 * self.quilt.scale, "influence": self.quilt.influence}
        return {**own, "nobs": self.nobs, "ntimes": self.steps, **quilt}

    @property
    def nobs(self) -> float:
        """Number of times over all persons, with a state or without."""
        return float(self.release.rows or 0)

    @property
    def _size(self) -> str:
        return f"{self._facts.cells} states"
