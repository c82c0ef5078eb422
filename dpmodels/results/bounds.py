"""The results of private bounds, levels and quantiles of variables."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Annotated, Any, NamedTuple

import numpy as np
import pandas as pd

from dpmodels.arguments import fraction, option
from dpmodels.codebook import Codebook
from dpmodels.dates import Date, text_of_day
from dpmodels.errors import NotAvailable
from dpmodels.inference.proportions import count_detected_with, detected_count_interval
from dpmodels.levels import Level
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
from dpmodels.released import CellsRelease, LevelsRelease, QuantilesRelease
from dpmodels.results.base import Result, checked_level
from dpmodels.results.call import DescribedCall
from dpmodels.results.count_tables import OneTable, described_line
from dpmodels.results.estimate_table import (
    EstimateTable,
    axis_title,
    counted_as,
    table_of_estimates,
    unit_of,
)
from dpmodels.typing import Axes, Floats
from dpmodels.variables import Categorical, Numeric
from dpmodels.verbs import documented


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
        parts = zip(np.split(release.ends, stops), np.split(release.values, stops), strict=True)
        for place, (ends, counts) in enumerate(parts):
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
        params, tables = self.params, self.call.tables
        further = {**params, "declared_lower": [table.lower for table in tables]}
        further["declared_upper"] = [table.upper for table in tables]
        identified = [bounds.is_narrowed for bounds in self.found.values()]
        return table_of_estimates(
            self, params.index, further=further, estimate=self.outside, identified=identified
        )

    def _line(self) -> dict[str, object]:
        n_narrowed = sum(bounds.is_narrowed for bounds in self.found.values())
        return {"nobs": self.nobs, "nvariables": len(self.names), "ntold": n_narrowed}

    @documented
    def plot(
        self, ax: Axes | None = None, variable: str | None = None, *, caption: bool = True
    ) -> Axes:
        """Draw the noisy counts of one variable by cell, and both ranges.

        Raises
        ------
        ArgumentError
            If it is not one of the variables.
        """
        from dpmodels.plots.coefficients import ranges

        name = self.names[0] if variable is None else option("variable", variable, self.names)
        place = self.names.index(name)
        bounds, facts = self.found[name], self.call.tables[place]
        cells = self._rounds[-1][place][0]
        both = (bounds.lower, bounds.upper), (facts.lower, facts.upper)
        counts = (cells.ends, cells.counts, cells.noise.reach(1))
        return ranges(*counts, *both, name, **self._picture(ax, caption))

    def _size(self) -> str:
        return f"{len(self.names)} variables"


def _found(
    column: Column, first: tuple[CellCounts, float], second: tuple[CellCounts, float]
) -> FoundBounds:
    """Return the bounds of one variable; the declared ones where none are identified."""
    # Both rounds, weighted by their precision.
    weights = [cells.noise.sd**-2 for cells, _ in (first, second)]
    rows = float(np.average([first[1], second[1]], weights=weights))
    estimate = found_bounds((first[0], second[0]), rows, column)
    low, high = column[:2] if estimate is None else estimate
    beyond, cells = outside(second[0], low, high)
    return FoundBounds(low, high, estimate is not None, rows, beyond, cells)


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
        return dict(zip(self.names, map(_typed, self.release.levels), strict=True))

    @property
    def counts(self) -> pd.Series[float]:
        """Noisy numbers of rows, or persons, by variable and level; each above the threshold."""
        pairs = zip(self.names, self.release.levels, strict=True)
        keys = [(name, level) for name, levels in pairs for level in levels]
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
        release, checked = self.release, fraction("probability", probability, ", such as 0.95")
        return math.ceil(count_detected_with(checked, release.scale, release.most) / self.unit)

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

    @documented
    def plot(
        self, ax: Axes | None = None, variable: str | None = None, *, caption: bool = True
    ) -> Axes:
        """Draw the noisy counts of one variable's levels with their noise intervals.

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
        values, low, high = levels[["estimate", "noise_low", "noise_high"]].to_numpy().T
        return ranked(
            levels["level"].astype(str).tolist(),
            values,
            (low, high),
            "rows, noisy; none below the dashed line is released",
            empty="no level was found; see found_with()",
            lower_limit=self.release.most,
            title=name,
            **self._picture(ax, caption),
        )

    def _size(self) -> str:
        return f"{sum(map(len, self.release.levels))} levels"


def _typed(names: tuple[str, ...]) -> tuple[Level, ...]:
    if names and all(name.removeprefix("-").isdecimal() for name in names):
        return tuple(sorted(map(int, names)))
    return names


# Quantiles by group.


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

    @documented
    def plot(self, ax: Axes | None = None, *, caption: bool = True) -> Axes:
        """Draw quantiles by group, with the intervals that were bought."""
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

    def _size(self) -> str:
        return f"{len(self.probs)} probs"


def _long(frame: pd.DataFrame) -> pd.Series[float]:
    """Put the columns under each other, row by row; nan stays."""
    groups = [key if isinstance(key, tuple) else (key,) for key in frame.index]
    keys = [(*group, prob) for group in groups for prob in frame.columns]
    names = [*frame.index.names, frame.columns.name]
    return pd.Series(frame.to_numpy().ravel(), pd.MultiIndex.from_tuples(keys, names=names))
