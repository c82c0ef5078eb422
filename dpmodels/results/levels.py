"""The result of private levels of variables."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Annotated

import pandas as pd

from dpmodels.arguments import fraction, option
from dpmodels.codebook import Codebook
from dpmodels.inference.proportions import count_detected_with, detected_count_interval
from dpmodels.levels import Level
from dpmodels.released import LevelsRelease
from dpmodels.results.base import Result
from dpmodels.results.call import DescribedCall
from dpmodels.results.estimate_table import EstimateTable, counted_as, table_of_estimates
from dpmodels.variables import Categorical

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# The smallest number of levels of a category.
FEWEST = 2


@dataclass(frozen=True, repr=False, eq=False)
class LevelsResult(Result):
    """Private levels of variables: released values and public facts only.

    Parameters
    ----------
    declared : Codebook
        The given codebook; empty without one.

    Notes
    -----
    :meth:`noise_int` covers the exact counts of these rows, conditional on the release of the
    level: rare levels are released only if their noise is large. Each interval is by itself, from
    the exact distribution of the noise.
    """

    call: DescribedCall
    release: LevelsRelease
    declared: Annotated[Codebook, Codebook.from_dict]

    _no_intervals = "these rows do not identify the levels of a population"

    @property
    def names(self) -> tuple[str, ...]:
        """The variables, in the order of the formula."""
        return tuple(table.measured for table in self.call.tables)

    @cached_property
    def levels(self) -> dict[str, tuple[Level, ...]]:
        """Levels found of each variable, sorted: whole numbers where all of them are, else text."""
        return {
            name: _typed(names) for name, names in zip(self.names, self.release.levels, strict=True)
        }

    @property
    def counts(self) -> pd.Series[float]:
        """Noisy numbers of rows, or persons, by variable and level; each above the threshold."""
        keys = [
            (name, level)
            for name, levels in zip(self.names, self.release.levels, strict=True)
            for level in levels
        ]
        index = pd.MultiIndex.from_tuples(keys, names=["variable", "level"])
        return pd.Series(self.release.values / self.unit, index, name="count")

    @property
    def unit(self) -> int:
        """Rows of the release per counted unit: for persons, their maximum number of rows."""
        adjacency = self.release.adjacency
        return adjacency.places if adjacency.counts_persons else 1

    @property
    def codebook(self) -> Codebook:
        """The given codebook with the levels that were found; public from now on.

        A variable with fewer than two keeps its declaration, or is left out.
        """
        variables = {
            name: self._category(name, levels)
            for name, levels in self.levels.items()
            if len(levels) >= FEWEST
        }
        return self.declared | variables

    def _category(self, name: str, levels: tuple[Level, ...]) -> Categorical:
        before = self.declared.get(name)
        if isinstance(before, Categorical):
            return replace(before, levels=levels)
        return Categorical(levels, label="" if before is None else before.label)

    def found_with(self, probability: float = 0.95) -> int:
        """Return the smallest number of rows at which a level is found with a probability.

        Parameters
        ----------
        probability : float
            In (0, 1).

        Returns
        -------
        int
            A public number, which does not depend on the rows.
        """
        checked = fraction("probability", probability, ", such as 0.95")
        return math.ceil(
            count_detected_with(checked, self.release.scale, self.release.most) / self.unit
        )

    def _noise_int(self, level: float) -> pd.DataFrame:
        release = self.release
        ends = detected_count_interval(release.values, release.scale, release.most, level)
        frame = pd.DataFrame({"lower": ends[0], "upper": ends[1]}, index=self.counts.index)
        return frame / self.unit

    def _estimates(self) -> EstimateTable:
        unit = counted_as(self.release.adjacency)
        return table_of_estimates(self, self.counts.index, unit=unit, estimate=self.counts)

    def _line(self) -> dict[str, object]:
        sizes = {"nlevels": sum(map(len, self.release.levels)), "found_with": self.found_with()}
        return {"nobs": self.nobs, "nvariables": len(self.names), **sizes}

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
            If it is not one of the variables.
        NotAvailable
            If no level of it was found.
        """
        from dpmodels.plots.bars import ranked

        name = self.names[0] if variable is None else option("variable", variable, self.names)
        table = self.tidy()
        levels = table[table["variable"] == name]
        levels = levels.sort_values("estimate", ascending=False, kind="stable")
        return ranked(
            levels["level"].astype(str).tolist(),
            levels["estimate"].to_numpy(),
            (levels["noise_low"].to_numpy(), levels["noise_high"].to_numpy()),
            "rows, noisy; none below the dashed line is released",
            empty="no level was found; see found_with()",
            lower_limit=self.release.most,
            title=name,
            ax=ax,
            stamp=self.stamp,
            caption=self._caption(enabled=caption),
        )

    @property
    def _size(self) -> str:
        return f"{sum(map(len, self.release.levels))} levels"


def _typed(names: tuple[str, ...]) -> tuple[Level, ...]:
    """Return levels as whole numbers where all of them are."""
    if names and all(name.removeprefix("-").isdecimal() for name in names):
        return tuple(sorted(map(int, names)))
    return names
