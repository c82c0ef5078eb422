"""The result of private bounds of variables."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import numpy as np
import pandas as pd

from dpmodels.arguments import option
from dpmodels.codebook import Codebook
from dpmodels.dates import Date, text_of_day
from dpmodels.noise.sums import half_width
from dpmodels.postprocess.ranges import CellNoise
from dpmodels.postprocess.spreads import (
    SELDOM,
    CellCounts,
    Column,
    complete_rows,
    found_bounds,
    outside,
)
from dpmodels.released import CellsRelease
from dpmodels.results.base import Result
from dpmodels.results.call import DescribedCall
from dpmodels.results.estimate_table import EstimateTable, table_of_estimates
from dpmodels.variables import Numeric

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class FoundBounds(NamedTuple):
    """The private bounds of one variable."""

    lower: float
    upper: float
    is_narrowed: bool  # Whether the bounds differ from the declared ones
    rows: float  # Noisy number of complete rows
    outside: float  # Noisy number of those in cells that reach beyond the bounds
    cells: int  # How many cells these are


@dataclass(frozen=True, repr=False, eq=False)
class BoundsResult(Result):
    """Private bounds of variables: released values and public facts only.

    Parameters
    ----------
    declared : Codebook
        The codebook that was given.

    Notes
    -----
    :meth:`noise_int` covers the share of these rows in cells that reach beyond the found bounds,
    which is an upper bound on the share outside. Its denominator is the released number of complete
    rows, treated as exact.
    """

    call: DescribedCall
    release: CellsRelease
    declared: Annotated[Codebook, Codebook.from_dict]

    _no_intervals = (
        "the distribution of the share of a population beyond bounds found on its rows is not known"
    )

    @property
    def names(self) -> tuple[str, ...]:
        """The variables, in the order of the formula."""
        return tuple(table.measured for table in self.call.tables)

    @cached_property
    def _rounds(self) -> tuple[tuple[tuple[CellCounts, float], ...], ...]:
        """Each variable's cells and number of complete rows, by round."""
        release, n_variables = self.release, len(self.names)
        stops = np.cumsum([size + 1 for size in release.sizes])[:-1]
        n_rows = None if release.rows is None else float(release.rows)
        rounds = []
        for place, (ends, counts) in enumerate(
            zip(np.split(release.ends, stops), np.split(release.values, stops), strict=True)
        ):
            noise = CellNoise(release.law, release.noise_sds[place // n_variables], SELDOM)
            cells = CellCounts(ends, counts[:-1], noise)
            rounds.append((cells, complete_rows(counts, n_rows)))
        return tuple(rounds[:n_variables]), tuple(rounds[n_variables:])

    @cached_property
    def found(self) -> dict[str, FoundBounds]:
        """The private bounds of each variable."""
        first, second = self._rounds
        return {
            table.measured: _found(Column(table.lower, table.upper, table.step or 0.0), *rounds)
            for table, *rounds in zip(self.call.tables, first, second, strict=True)
        }

    @property
    def codebook(self) -> Codebook:
        """The declared codebook with the bounds that were found; public from now on."""
        narrower = {}
        for name, bounds in self.found.items():
            variable = self.declared[name]
            ends: tuple[Any, Any] = (bounds.lower, bounds.upper)
            if isinstance(variable, Date):
                ends = (text_of_day(bounds.lower), text_of_day(bounds.upper))
            assert isinstance(variable, Numeric | Date)
            narrower[name] = replace(variable, lower=ends[0], upper=ends[1])
        return self.declared | narrower

    @property
    def params(self) -> pd.DataFrame:
        """Found bounds: ``lower, upper``, a row a variable."""
        rows = [(bounds.lower, bounds.upper) for bounds in self.found.values()]
        return pd.DataFrame(rows, pd.Index(self.names, name="variable"), ["lower", "upper"])

    @property
    def outside(self) -> pd.Series[float]:
        """Noisy share of the complete rows in cells that reach beyond the found bounds."""
        shares = [bounds.outside / max(bounds.rows, 1.0) for bounds in self.found.values()]
        return pd.Series(shares, self.params.index, name="outside")

    def _noise_int(self, level: float) -> pd.DataFrame:
        law, sd = self.release.law, self.release.noise_sds[-1]
        halves = [
            half_width(law, np.ones(bounds.cells), sd, 0.0, level) / max(bounds.rows, 1.0)
            for bounds in self.found.values()
        ]
        ends = {"lower": self.outside - halves, "upper": self.outside + halves}
        return pd.DataFrame(ends).clip(0.0, 1.0)

    def _estimates(self) -> EstimateTable:
        tables = self.call.tables
        further = {
            **self.params,
            "declared_lower": [table.lower for table in tables],
            "declared_upper": [table.upper for table in tables],
        }
        identified = [bounds.is_narrowed for bounds in self.found.values()]
        return table_of_estimates(
            self,
            self.params.index,
            further=further,
            estimate=self.outside,
            identified=identified,
        )

    def _line(self) -> dict[str, object]:
        n_narrowed = sum(bounds.is_narrowed for bounds in self.found.values())
        return {"nobs": self.nobs, "nvariables": len(self.names), "ntold": n_narrowed}

    def plot(
        self, ax: Axes | None = None, variable: str | None = None, *, caption: bool = True
    ) -> Axes:
        """Draw the noisy counts of one variable by cell, and both ranges.

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
        """
        from dpmodels.plots.points import ranges

        name = self.names[0] if variable is None else option("variable", variable, self.names)
        place = self.names.index(name)
        bounds, facts = self.found[name], self.call.tables[place]
        cells = self._rounds[-1][place][0]
        return ranges(
            cells.ends,
            cells.counts,
            cells.noise.reach(1),
            (bounds.lower, bounds.upper),
            (facts.lower, facts.upper),
            name,
            ax=ax,
            stamp=self.stamp,
            caption=self._caption(enabled=caption),
        )

    @property
    def _size(self) -> str:
        return f"{len(self.names)} variables"


def _found(
    column: Column, first: tuple[CellCounts, float], second: tuple[CellCounts, float]
) -> FoundBounds:
    """Return the bounds of one variable; the declared ones where none are identified."""
    rows = _together(first, second)
    estimate = found_bounds((first[0], second[0]), rows, column)
    low, high = column[:2] if estimate is None else estimate
    beyond, cells = outside(second[0], low, high)
    return FoundBounds(low, high, estimate is not None, rows, beyond, cells)


def _together(*rounds: tuple[CellCounts, float]) -> float:
    """Average the numbers of rows of both rounds, weighted by their precision."""
    numbers = [rows for _, rows in rounds]
    return float(np.average(numbers, weights=[cells.noise.sd**-2 for cells, _ in rounds]))
