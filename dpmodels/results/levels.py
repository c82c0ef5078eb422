"""The result of private levels of variables."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Annotated

import pandas as pd

from dpmodels.arguments import share, word
from dpmodels.codebook import Codebook
from dpmodels.inference.thresholded import count_interval, found_with
from dpmodels.levels import Level
from dpmodels.released import LevelsRelease
from dpmodels.results.base import Result
from dpmodels.results.call import DescribedCall
from dpmodels.results.estimate_table import EstimateTable, counted_as, estimate_table
from dpmodels.variables import Categorical

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# So many levels make a category.
FEWEST = 2


@dataclass(frozen=True, repr=False, eq=False)
class LevelsResult(Result):
    """Private levels of variables: released values and public facts only.

    Parameters
    ----------
    declared : Codebook
        The codebook that was given; empty where none was.

    Notes
    -----
    :meth:`noise_int` is of the exact counts of these rows, given that the level
    was released: rare levels are released for their noise, which the interval
    knows of. Each is by itself, on the exact law of the noise.
    """

    call: DescribedCall
    release: LevelsRelease
    declared: Annotated[Codebook, Codebook.from_dict]

    _no_intervals = "which levels a population has is not told by those of these rows"

    @property
    def names(self) -> tuple[str, ...]:
        """The variables, in the order of the formula."""
        return tuple(own.measured for own in self.call.tables)

    @cached_property
    def levels(self) -> dict[str, tuple[Level, ...]]:
        """Levels found of each variable, sorted: whole numbers where all of them are, else text."""
        return {
            name: _typed(own) for name, own in zip(self.names, self.release.levels, strict=True)
        }

    @property
    def counts(self) -> pd.Series[float]:
        """Noisy numbers of rows, or persons, by variable and level; each above the threshold."""
        keys = [
            (name, level)
            for name, own in zip(self.names, self.release.levels, strict=True)
            for level in own
        ]
        index = pd.MultiIndex.from_tuples(keys, names=["variable", "level"])
        return pd.Series(self.release.values / self.unit, index, name="count")

    @property
    def unit(self) -> int:
        """How many of the release's rows one is here: of persons the places they have."""
        own = self.release.adjacency
        return own.places if own.counts_persons else 1

    @property
    def codebook(self) -> Codebook:
        """The given codebook with the levels that were found; public from now on.

        A variable with fewer than two is left as it was given, or out.
        """
        found = {
            name: self._category(name, own)
            for name, own in self.levels.items()
            if len(own) >= FEWEST
        }
        return self.declared | found

    def _category(self, name: str, levels: tuple[Level, ...]) -> Categorical:
        before = self.declared.get(name)
        if isinstance(before, Categorical):
            return replace(before, levels=levels)
        return Categorical(levels, label="" if before is None else before.label)

    def found_with(self, probability: float = 0.95) -> int:
        """Return the least number of rows with which a level is found with a probability.

        Parameters
        ----------
        probability : float
            In (0, 1).

        Returns
        -------
        int
            A public number, which no row has a part in.
        """
        own = share("probability", probability, ", such as 0.95")
        return math.ceil(found_with(own, self.release.scale, self.release.most) / self.unit)

    def _noise_int(self, level: float) -> pd.DataFrame:
        release = self.release
        ends = count_interval(release.values, release.scale, release.most, level)
        frame = pd.DataFrame({"lower": ends[0], "upper": ends[1]}, index=self.counts.index)
        return frame / self.unit

    def _estimates(self) -> EstimateTable:
        unit = counted_as(self.release.adjacency)
        return estimate_table(self, self.counts.index, unit=unit, estimate=self.counts)

    def _line(self) -> dict[str, object]:
        found = {"nlevels": sum(map(len, self.release.levels)), "found_with": self.found_with()}
        return {"nobs": self.nobs, "nvariables": len(self.names), **found}

    def plot(
        self, ax: Axes | None = None, variable: str | None = None, *, caption: bool = True
    ) -> Axes:
        """Draw the noisy counts of one variable's levels with their noise intervals.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.
        variable : str, optional
            Which one; the first by default.
        caption : bool
            Whether guarantee, neighbours and noise stand under the picture.

        Raises
        ------
        ArgumentError
            If it is none of the variables.
        NotAvailable
            If no level of it was found.
        """
        from dpmodels.plots.bars import ranked

        name = self.names[0] if variable is None else word("variable", variable, self.names)
        table = self.tidy()
        own = table[table["variable"] == name]
        own = own.sort_values("estimate", ascending=False, kind="stable")
        return ranked(
            own["level"].astype(str).tolist(),
            own["estimate"].to_numpy(),
            (own["noise_low"].to_numpy(), own["noise_high"].to_numpy()),
            "rows, noisy; none below the dashed line is released",
            empty="no level was found; see found_with()",
            lower_limit=self.release.most,
            title=name,
            ax=ax,
            stamp=self.stamp,
            caption=self._caption(shown=caption),
        )

    @property
    def _size(self) -> str:
        return f"{sum(map(len, self.release.levels))} levels"


def _typed(names: tuple[str, ...]) -> tuple[Level, ...]:
    """Return levels as whole numbers where all of them are."""
    if names and all(name.removeprefix("-").isdecimal() for name in names):
        return tuple(sorted(map(int, names)))
    return names
