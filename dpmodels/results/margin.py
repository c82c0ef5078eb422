"""One margin of a release of several."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd

from dpmodels.errors import ArgumentError
from dpmodels.inference import independence
from dpmodels.inference.independence import MOST_CELLS as MOST_TESTED_CELLS
from dpmodels.inference.margins import MarginNoise
from dpmodels.levels import Level
from dpmodels.postprocess.graphical.measurements import Residuals
from dpmodels.postprocess.protocol import whole
from dpmodels.postprocess.residuals import (
    MOST_CELLS,
    MOST_ROWS,
    Term,
    agreeing,
    components,
    largest,
    rebuilt,
    split,
)
from dpmodels.released import MarginsRelease
from dpmodels.results.base import Tabulated, checked_level
from dpmodels.results.call import DescribedCall, TableCall
from dpmodels.results.count_tables import interval_frame, require_factors, shares_within
from dpmodels.results.estimate_table import EstimateTable, count_table, counted_as
from dpmodels.typing import Array, Axes, DataArray, Floats, Integers
from dpmodels.verbs import documented


@dataclass(frozen=True, eq=False)
class ReleasedMargins:
    """Margins of one release, by the positions of their variables in `factors`."""

    call: DescribedCall
    release: MarginsRelease

    @property
    def effect(self) -> int:
        """The design effect: rows that may be one person's."""
        return self.release.adjacency.design_effect

    @cached_property
    def factors(self) -> tuple[str, ...]:
        """All variables, in order of first mention."""
        return tuple(self.levels)

    @cached_property
    def levels(self) -> Mapping[str, tuple[Level, ...]]:
        """Declared levels of each variable."""
        return {
            factor: levels
            for table in self.call.tables
            for factor, levels in zip(table.factors, table.levels, strict=True)
        }

    @cached_property
    def terms(self) -> tuple[Term, ...]:
        """The requested margins, as positions of their variables in `factors`."""
        positions = {factor: place for place, factor in enumerate(self.factors)}
        return tuple(
            tuple(positions[factor] for factor in table.factors) for table in self.call.tables
        )

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """Levels of each variable, with one more for what is missing or unlisted."""
        return tuple(len(levels) + 1 for levels in self.levels.values())

    @cached_property
    def noise(self) -> MarginNoise:
        """The distribution of the noise in all margins."""
        has_total, release = self.release.rows is not None, self.release
        noised = components(self.terms)[int(has_total) :]
        if release.law == "laplace":
            noised = largest(self.terms)
        sds = dict(zip(noised, release.noise_sds, strict=True))
        places = release.adjacency.places if release.adjacency.counts_persons else 1
        return MarginNoise(release.law, self.sizes, sds, has_total, 1 / places)

    @cached_property
    def _parts(self) -> Mapping[Term, Floats]:
        return split(self.release.values, components(self.terms), self.sizes)

    def inside(self, term: Term) -> bool:
        """Return whether variables occur together in a requested margin."""
        return any(set(term) <= set(margin) for margin in self.terms)

    @cached_property
    def residuals(self) -> Residuals:
        """The components with their noise sds, of any law: independent, as Gaussian ones are.

        Noise that is independent by cell of a margin has components of covariance ``σ² C`` each,
        and least squares combines those of several margins by precision.
        """
        variances = self.noise.variances
        sds = {part: math.sqrt(variances[part]) for part in self._parts}
        return Residuals(self.sizes, self._parts, sds)

    def unbiased(self, term: Term) -> Floats:
        """Return a margin's unbiased counts, the level of what is missing the last."""
        return rebuilt(term, self._parts, self.sizes)

    @cached_property
    def _whole_tables(self) -> dict[Term, Integers]:
        return {}

    def whole(self, term: Term) -> Integers:
        """Return a margin's whole counts: not negative, and consistent where possible."""
        if term in self._whole_tables:
            return self._whole_tables[term]
        unbiased = self.unbiased(term)
        total = max(float(np.rint(self._parts[()])), 0.0)
        if len(term) < 2 or unbiased.size > MOST_CELLS or total > MOST_ROWS:
            counts = whole(unbiased.ravel(), total)
        else:
            lines, columns = self.whole(term[:-1]), self.whole(term[-1:])
            table = unbiased.reshape(-1, unbiased.shape[-1])
            counts = agreeing(table, lines.ravel(), columns)
        self._whole_tables[term] = counts.reshape(unbiased.shape)
        return self._whole_tables[term]


@dataclass(frozen=True, repr=False, eq=False)
class Margin(Tabulated):
    """One margin of private margins: released values and public facts only.

    Parameters
    ----------
    fit : ReleasedMargins
        The release it is of.
    term : tuple of int
        Its variables, as positions in those of the release.
    """

    fit: ReleasedMargins
    term: Term

    @cached_property
    def facts(self) -> TableCall:
        """Its variables and their declared levels."""
        names = tuple(self.fit.factors[i] for i in self.term)
        return TableCall(names, tuple(self.fit.levels[name] for name in names))

    @property
    def factors(self) -> tuple[str, ...]:
        """Its variables."""
        return self.facts.factors

    @property
    def name(self) -> str:
        """The margin as a term of a formula."""
        return ":".join(self.factors)

    @property
    def labels(self) -> list[str]:
        """Names of the cells, with slashes between the levels of one."""
        return self.facts.labels

    def _declared(self, table: Array) -> Array:
        return table[(slice(-1),) * len(self.term)]

    @cached_property
    def _unbiased(self) -> Floats:
        values: Floats = self._declared(self.fit.unbiased(self.term))
        return values

    @property
    def counts(self) -> DataArray:
        """Consistent counts: whole, not negative; a dimension a variable."""
        return self.facts.by_cell(self._declared(self.fit.whole(self.term)), "count")

    @property
    def released(self) -> DataArray:
        """Unbiased counts; sums of them are those of every other margin, with rows that miss it."""
        return self.facts.by_cell(self._unbiased, "released")

    @property
    def noise_sd(self) -> float:
        """Standard deviation of the privacy noise in each of `released`."""
        return self.fit.noise.cell_sd(self.term)

    @property
    def ncomplete(self) -> float:
        """Number of rows that are complete in this margin: the sum of `counts`."""
        return float(self._declared(self.fit.whole(self.term)).sum())

    @property
    def nincomplete(self) -> float:
        """Number of rows with a missing or unlisted level of one of its variables."""
        return float(self.fit.whole(self.term).sum()) - self.ncomplete

    @property
    def ncomplete_sd(self) -> float:
        """Noise standard deviation of the unbiased number of complete rows."""
        return float(np.sqrt(self.fit.noise.product(self.term, self._ones, self._ones)))

    @property
    def _ones(self) -> list[Floats]:
        """Weights of the levels of each variable: 1 of those declared."""
        return [np.append(np.ones(size), 0.0) for size in self.facts.shape]

    def proportions(self, within: str | Iterable[str] = ()) -> DataArray:
        """Return shares of the complete rows, or of those of each level of some variables.

        nan where there are no rows to divide.

        Parameters
        ----------
        within : str or iterable of str
            Variables within whose levels shares add up to 1; R's `margin`.

        Raises
        ------
        ArgumentError
            If one is not a variable of the margin.
        """
        return shares_within(self.counts, require_factors(self.factors, within))

    @documented
    def noise_int(self, level: float = 0.95) -> pd.DataFrame:
        """Return intervals of the counts of these rows: privacy noise only."""
        coverage, counts = checked_level(level), self._unbiased.ravel()
        ends = self.fit.noise.count_interval(self.term, counts, coverage)
        return interval_frame(self.facts, ends)

    @documented
    def conf_int(self, level: float = 0.95) -> pd.DataFrame:
        """Return intervals of the population's shares of the complete rows: noise and sampling."""
        effect = self.fit.effect
        noise, counts = self.fit.noise.divided(effect), self._unbiased.ravel() / effect
        ends = noise.share_interval(self.term, counts, self._ones, checked_level(level))
        return interval_frame(self.facts, ends)

    def drawn(self, first: Term = ()) -> tuple[Floats, Floats]:
        """Return independent parts of the noise of the cells, some variables before the others.

        In units of effective rows, as `MarginNoise.drawn` does.
        """
        noise = self.fit.noise.divided(self.fit.effect)
        columns, cumulants = noise.drawn(self.term, [np.arange(size) for size in self.facts.shape])
        cells = np.arange(self.facts.cells).reshape(self.facts.shape)
        return columns[np.moveaxis(cells, first, range(len(first))).ravel()], cumulants

    def chi2_test(self, given: str | Iterable[str] = ()) -> independence.Independence:
        """Test whether the variables are independent, allowing for the noise.

        Parameters
        ----------
        given : str or iterable of str
            Variables at whose levels the others are tested: conditional independence.

        Raises
        ------
        ArgumentError
            If fewer than two variables are left, or one is not of this margin.
        """
        conditions = require_factors(self.factors, given)
        axes = tuple(self.factors.index(name) for name in conditions)
        sizes = [size for axis, size in enumerate(self.facts.shape) if axis not in axes]
        if len(sizes) < 2:
            raise ArgumentError(
                f"a test of independence needs two variables or more, and margin {self.name!r} "
                f"leaves {len(sizes)}: write chi2_test('a', 'b'), or chi2_test('a', 'b', "
                "given='c')"
            )
        effect = self.fit.effect
        strata = np.moveaxis(self._unbiased / effect, axes, range(len(axes))).reshape(-1, *sizes)
        if strata.size > MOST_TESTED_CELLS:
            degrees = len(strata) * independence.degrees(tuple(sizes))
            return independence.not_identified(degrees, independence.MANY)
        return independence.independence_within(strata, *self.drawn(axes))

    @property
    def _source(self) -> ReleasedMargins:
        return self.fit

    def _estimates(self) -> EstimateTable:
        facts, further = self.facts, {"released": self._unbiased.ravel()}
        sd, label = self.noise_sd, facts.variable
        return count_table(
            self, facts.index, self.counts, noise_sd=sd, further=further, labels=label
        )

    @documented
    def plot(self, ax: Axes | None = None, level: float = 0.95, *, caption: bool = True) -> Axes:
        """Draw the counts with their noise intervals.

        Parameters
        ----------
        level : float
            Coverage of the noise bars, in (0, 1).
        """
        from dpmodels.plots.bars import Panel, one_panel

        width = self.fit.noise.width(self.term, checked_level(level))
        counts = self.counts.to_numpy().ravel()
        unit = counted_as(self.fit.release.adjacency)
        title = f"{unit} by {self.name}, with {level:.0%} noise intervals"
        panel = Panel(title, counts, np.full(len(counts), width))
        return one_panel(panel, self.labels, **self._picture(ax, caption))

    def __repr__(self) -> str:
        return f"<Margin {self.name!r} of {self.fit.call.formula!r}: {self.facts.cells} cells>"
