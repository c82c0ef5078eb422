"""Estimates from the released tables of a synthetic table, with intervals."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from scipy.special import ndtr, ndtri

from dpmodels.arguments import boolean, option
from dpmodels.errors import ArgumentError, FormulaError, NotAvailable, shorten
from dpmodels.formula.coding import Block, Design, Factor
from dpmodels.formula.cut_columns import on_levels
from dpmodels.formula.parse import parsed_formula
from dpmodels.formula.response import TwoSided, two_levels, two_sided
from dpmodels.formula.sides import one_measured, parse_sides
from dpmodels.formula.values import Real
from dpmodels.inference.cell_estimates import (
    HIDDEN,
    CellLaw,
    Distribution,
    Scores,
    are_detected,
    distribution,
    identified,
    pair_regression,
    ratios,
    regression,
    with_hidden,
)
from dpmodels.inference.cell_values import corrected_response, noise_by_values, refined
from dpmodels.inference.links import IDENTITY, OF_FAMILY
from dpmodels.inference.released_cells import MOST_CELLS, ReleasedCells, sampled
from dpmodels.postprocess.graphical.histograms import CLEAR_SDS
from dpmodels.postprocess.graphical.sampling import sample
from dpmodels.postprocess.residuals import Term, cells
from dpmodels.results.base import Tabulated, checked_level, stamp_of
from dpmodels.results.call import INTERCEPT, TableCall, joined
from dpmodels.results.estimate_table import EstimateTable, table_of_estimates
from dpmodels.results.release_text import caption_of, reading_line
from dpmodels.results.synthetic_source import SyntheticSource
from dpmodels.typing import Floats, Integers

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Rows that stand for the model where the table of all columns is too large: a choice.
DRAWN_ROWS = 100_000
# Of the range of a number, the step of derivatives by the values of its cells: a choice.
STEP = 1e-6

INDEPENDENCE = "conditional independence"
INTERACTION = "no interaction beyond the released tables"
EVEN = "an even spread of rows within cells"


@dataclass(frozen=True, repr=False, eq=False)
class SyntheticEstimates(Tabulated):
    """Estimates from a synthetic table: released values and public facts only.

    Parameters
    ----------
    fit : SyntheticSource
        The synthetic table.
    title : str
        What they are.
    formula : str
        As written.
    index : Index
        Their names.
    law : CellLaw
        The estimates, with the covariances of their noise and of sampling.
    assumes : str
        What the model has to be right about; empty where the released tables determine them.
    within : (float, float)
        What the estimates lie between.
    distributions : tuple of Distribution
        By group, of quantiles.
    """

    fit: SyntheticSource
    title: str
    formula: str
    index: pd.Index
    law: CellLaw
    assumes: str = ""
    within: tuple[float, float] = (-math.inf, math.inf)
    distributions: tuple[Distribution, ...] = ()

    @property
    def is_regression(self) -> bool:
        """Whether the estimates are coefficients, which are tested against 0."""
        return self.index.name == "term"

    @property
    def params(self) -> pd.Series[float]:
        """The estimates."""
        return self._series(self.law.params)

    @property
    def bse(self) -> pd.Series[float]:
        """Standard errors, of sampling and noise."""
        return self._series(np.sqrt(np.diagonal(self.law.noise + self.law.sampling)))

    @property
    def bse_noise(self) -> pd.Series[float]:
        """Standard errors of the noise alone: the distance to the estimates on these rows."""
        return self._series(np.sqrt(np.diagonal(self.law.noise)))

    @property
    def tvalues(self) -> pd.Series[float]:
        """Coefficients over their standard errors."""
        return self.params / self.bse if self.is_regression else self._series(np.nan)

    @property
    def pvalues(self) -> pd.Series[float]:
        """Two-sided p-values of coefficients of 0, by the normal distribution."""
        return self._series(2 * ndtr(-np.abs(self.tvalues)))

    def cov_params(self) -> pd.DataFrame:
        """Return the covariance of the estimates, of sampling and noise."""
        return pd.DataFrame(self.law.noise + self.law.sampling, self.index, self.index)

    def conf_int(self, level: float = 0.95) -> pd.DataFrame:
        """Return intervals of the population's values: noise and sampling.

        Parameters
        ----------
        level : float
            Coverage, in (0, 1), of each interval by itself.
        """
        return self._intervals(checked_level(level), full=True)

    def noise_int(self, level: float = 0.95) -> pd.DataFrame:
        """Return intervals of the values of these rows: privacy noise only.

        Parameters
        ----------
        level : float
            Coverage, in (0, 1), of each interval by itself.
        """
        return self._intervals(checked_level(level), full=False)

    def _intervals(self, level: float, *, full: bool) -> pd.DataFrame:
        if self.distributions:
            probs = self.index.get_level_values("prob").unique()
            ends = [
                one.interval(prob, level, full=full) for one in self.distributions for prob in probs
            ]
            return pd.DataFrame(ends, self.index, ["lower", "upper"])
        half = float(ndtri((1 + level) / 2)) * (self.bse if full else self.bse_noise)
        limits = {"lower": self.params - half, "upper": self.params + half}
        return pd.DataFrame(limits).clip(*self.within)

    def _series(self, values: object) -> pd.Series[float]:
        return pd.Series(values, index=self.index, dtype=np.float64)

    @property
    def _source(self) -> SyntheticSource:
        return self.fit

    @property
    def stamp(self) -> str | None:
        """The warning on tables of a simulation, else None."""
        return stamp_of(self.fit.release)

    def _estimates(self) -> EstimateTable:
        labels = list(self.index) if self.is_regression else None
        return table_of_estimates(self, self.index, labels=labels)

    def plot(self, ax: Axes | None = None, level: float = 0.95, *, caption: bool = True) -> Axes:
        """Draw the estimates but the constant with both intervals.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.
        level : float
            Coverage of the intervals, in (0, 1).
        caption : bool
            Whether guarantee, neighbours and noise stand under the picture.
        """
        from dpmodels.plots.coefficients import Intervals, coefficients

        params = self.params.drop(index=INTERCEPT, errors="ignore")
        both = (self.noise_int(level), self.conf_int(level))
        intervals = (ends.loc[params.index].to_numpy() for ends in both)
        return coefficients(
            [Intervals("", np.asarray(params, dtype=np.float64), *intervals)],
            labels=joined(params.index),
            title="Coefficient" if self.is_regression else self.title,
            level=level,
            at=0.0 if self.is_regression else None,
            ax=ax,
            stamp=self.stamp,
            caption=caption_of(self.fit.release) if boolean("caption", caption) else None,
        )

    def _reading(self) -> str:
        return reading_line(self.fit.release)

    def __repr__(self) -> str:
        return (
            f"<SyntheticEstimates {self.formula!r}: {len(self.index)} of {self.fit.call.formula!r}>"
        )


# The table of the columns of a formula.


@dataclass(frozen=True, eq=False)
class LevelGrid:
    """All cells of the table of some columns, and what formulas read in each."""

    fit: SyntheticSource
    term: Term

    @cached_property
    def table(self) -> ReleasedCells:
        """The model and the released margins of the table."""
        fit, size = self.fit, cells(self.term, self.fit.sizes)
        if size > MOST_CELLS:
            raise NotAvailable(
                f"the table of {fit.named(self.term)!r} has {size:,} cells; "
                f"estimates are made of at most {MOST_CELLS:,}: name fewer columns"
            )
        effect = fit.release.adjacency.design_effect
        return ReleasedCells(self.term, fit.model.table(self.term), fit.released, effect)

    @cached_property
    def codes(self) -> Integers:
        """The level of each column in each cell, shape (columns, cells)."""
        shape = tuple(self.fit.sizes[i] for i in self.term)
        return np.indices(shape).reshape(len(shape), -1)

    @cached_property
    def columns(self) -> Mapping[str, Floats]:
        """The values of each column by name, shape (cells,)."""
        columns = self.fit.columns
        return {
            columns[i].name: columns[i].values[codes]
            for i, codes in zip(self.term, self.codes, strict=True)
        }

    @cached_property
    def assumes(self) -> str:
        """What the model has to be right about for a function of all columns."""
        if any(set(self.term) <= set(part) for part in self.fit.released.tables):
            return ""
        return INTERACTION if self.fit.model.contains(self.term) else INDEPENDENCE


def _grid(fit: SyntheticSource, places: Sequence[int]) -> LevelGrid:
    return LevelGrid(fit, tuple(sorted(set(places))))


# Regressions.


def regressed(fit: SyntheticSource, formula: str, family: str) -> SyntheticEstimates:
    """Fit a regression of a family to a synthetic table."""
    family = option("family", family, ("gaussian", *OF_FAMILY))
    sides = two_sided(formula, fit.call.codebook)
    if sides.offset:
        raise FormulaError(f"{shorten(formula)!r} has an offset, which is not available here")
    if family == "binomial":
        sides = two_levels(sides)
        if not sides.response.names[0].endswith("]"):
            raise FormulaError(
                f"the response of {shorten(formula)!r} is a number; a binomial model has a "
                "response of two levels"
            )
    terms, places = _read(fit, sides.terms)
    response, last = _read(fit, sides.response)
    grid = _grid(fit, [*places, *last])
    by_pairs = _scores(fit, terms, response) if family == "gaussian" else None
    law = (
        _joint(grid, terms, response, sides, family)
        if by_pairs is None
        else _pairwise(grid, terms, response, by_pairs, intercept=sides.intercept)
    )
    names = [INTERCEPT] * sides.intercept + list(sides.terms.names)
    index = pd.Index(names, name="term", dtype=object)
    title = "Linear model" if family == "gaussian" else f"Generalised linear model ({family})"
    assumes = "" if by_pairs is not None or _is_additive(grid, terms) else grid.assumes
    return SyntheticEstimates(fit, title, " ".join(formula.split()), index, law, assumes)


def _read(fit: SyntheticSource, design: Design) -> tuple[Design, list[int]]:
    """Return a design that reads the columns of the table, and their positions."""
    places: list[int] = []

    def read(factor: Factor) -> Factor:
        at_level, positions = on_levels(factor, fit.columns)
        places.extend(positions)
        return at_level

    blocks = tuple(
        replace(block, factors=tuple(map(read, block.factors))) for block in design.blocks
    )
    return replace(design, blocks=blocks), places


def _is_additive(grid: LevelGrid, terms: Design) -> bool:
    """Whether a model of these terms without products has all of its columns in one clique."""
    products = any(len(block.factors) > 1 for block in terms.blocks)
    return not products and grid.fit.model.contains(grid.term)


def _coded(design: Design, columns: Mapping[str, Floats]) -> Floats:
    """Return coded columns, shape (cells, columns)."""
    out = np.empty((len(design.names), len(next(iter(columns.values())))))
    design.evaluate(columns, out)
    return out.T


def _joint(
    grid: LevelGrid, terms: Design, response: Design, sides: TwoSided, family: str
) -> CellLaw:
    def design_of(values: Mapping[str, Floats]) -> Floats:
        coded = _coded(terms, values) if terms.names else np.empty((grid.codes.shape[1], 0))
        return np.insert(coded, 0, 1.0, axis=1) if sides.intercept else coded

    link, counts = OF_FAMILY.get(family, IDENTITY), grid.table.model.ravel()

    def by_values(params: Floats) -> Floats:
        def scores(values: Mapping[str, Floats]) -> Floats:
            x = design_of(values)
            return x * (_coded(response, values)[:, 0] - link.mean(x @ params))[:, None]

        return _value_noise(grid.fit, grid.term, grid.codes, counts, scores)

    y = _joint_response(grid, response)
    return regression(grid.table, design_of(grid.columns), y, link, by_values)


def _joint_response(grid: LevelGrid, response: Design) -> Floats:
    """Return the response by cell, corrected where it is a function of one number."""
    read = {i for block in response.blocks for i in _places_of(grid.fit, block)}
    place = read.pop()
    if read or grid.fit.columns[place].histogram is None:
        return _coded(response, grid.columns)[:, 0]
    (block,) = response.blocks
    values = np.append(_by_level(grid.fit, place, block, is_response=True)[0], np.nan)
    return np.asarray(values[grid.codes[grid.term.index(place)]])


def _places_of(fit: SyntheticSource, block: Block) -> set[int]:
    """Return the columns of the table that a block reads."""
    return {i for factor in block.factors for i in on_levels(factor, fit.columns)[1]}


def _scores(fit: SyntheticSource, terms: Design, response: Design) -> list[Scores] | None:
    """Return the columns of a model as scores of one column of the table each.

    None where a term has several, a pair was not released, or values are missing.
    """
    scores = []
    for block in (*terms.blocks, *response.blocks):
        read = _places_of(fit, block)
        if len(read) != 1 or fit.has_missing(place := read.pop()):
            return None
        counts = np.maximum(fit.released.table((place,))[:-1], 0.0)
        coded = _by_level(fit, place, block, is_response=block in response.blocks)
        # The level of missing values is no level of these rows: the mean has the least noise.
        means = coded @ counts / max(counts.sum(), 1.0)
        scores += [Scores(place, values) for values in np.column_stack([coded, means])]
    places = sorted({score.variable for score in scores})
    pairs = {(i, j) for i in places for j in places if i < j}
    return scores if pairs <= set(fit.released.tables) and len(scores) > 1 else None


def _by_level(fit: SyntheticSource, place: int, block: Block, *, is_response: bool) -> Floats:
    """Return the columns of a block by level of the one column that it reads, but the missing."""
    column = fit.columns[place]

    def coded(values: Floats) -> Floats:
        return np.stack(block.coded({column.name: values}))

    return _corrected(fit, place, coded) if is_response else column.means(coded)


def _corrected(fit: SyntheticSource, place: int, function: Callable[[Floats], Floats]) -> Floats:
    """Return a response by level, corrected for what its cells hide; not that of the missing."""
    column = fit.columns[place]
    means, histogram = column.means(function), column.histogram
    if histogram is None:
        return means
    least = max(CLEAR_SDS * math.sqrt(fit.released.cell_variance((place,))), 1.0)
    rows = np.maximum(fit.released.table((place,))[:-1], least)
    variances = histogram.variances(function(histogram.points))
    lines = zip(np.atleast_2d(means), np.atleast_2d(variances), strict=True)
    return np.array([corrected_response(*line, rows) for line in lines]).reshape(means.shape)


def _value_noise(
    fit: SyntheticSource,
    term: Term,
    codes: Integers,
    counts: Floats,
    scores: Callable[[Mapping[str, Floats]], Floats],
) -> Floats:
    """Return the covariance of sums of scores by the noise in the values of cells.

    `codes`, shape (columns, cells), are levels, and `scores` a function of the values by column.
    """
    values = {
        fit.columns[i].name: fit.columns[i].values[of] for i, of in zip(term, codes, strict=True)
    }
    total: Floats = np.zeros((1, 1))
    for place, of_column in zip(term, codes, strict=True):
        column = fit.columns[place]
        if column.histogram is None:
            continue
        step = STEP * (column.edges[-1] - column.edges[0])
        above, below = (
            scores({**values, column.name: values[column.name] + sign * step}) for sign in (1, -1)
        )
        moved = counts[:, None] * np.nan_to_num(above - below) / (2 * step)
        size = len(column.levels) + 1
        slopes = np.array([np.bincount(of_column, one, size)[:-1] for one in moved.T]).T
        total = total + noise_by_values(column.histogram, slopes)
    return total


def _pairwise(
    grid: LevelGrid, terms: Design, response: Design, columns: Sequence[Scores], *, intercept: bool
) -> CellLaw:
    """Fit by pairs; the meat of the sandwich is that of the model."""
    fit, term = grid.fit, grid.term
    is_detected = are_detected(fit.released, columns)
    if not is_detected[-1] or not is_detected[:-1].any():
        raise NotAvailable(HIDDEN)
    columns = [one for one, is_used in zip(columns, is_detected, strict=True) if is_used]
    law, inverse, spread = pair_regression(fit.released, columns, intercept)
    if cells(term, fit.sizes) <= MOST_CELLS:
        codes, counts = grid.codes, grid.table.model.ravel()
    else:
        drawn = sample(fit.model, DRAWN_ROWS, fit.random_words("meat", 0))
        codes = drawn[:, list(term)].T
        counts = np.full(DRAWN_ROWS, fit.model.n_rows / DRAWN_ROWS)
    coded = np.column_stack([one.values[codes[term.index(one.variable)]] for one in columns])
    design = np.insert(coded[:, :-1], 0, 1.0, axis=1) if intercept else coded[:, :-1]
    scores = design * (coded[:, -1] - design @ law.params)[:, None]
    meat = sampled(scores, counts, fit.release.adjacency.design_effect)

    def by_values(values: Mapping[str, Floats]) -> Floats:
        x = _coded(terms, values)[:, is_detected[:-1]]
        x = np.insert(x, 0, 1.0, axis=1) if intercept else x
        return x * (_coded(response, values)[:, 0] - x @ law.params)[:, None]

    noise = law.noise + inverse @ _value_noise(fit, term, codes, counts, by_values) @ inverse.T
    law = replace(law, noise=noise, sampling=inverse @ meat @ inverse.T)
    law = identified(law, inverse, spread)
    return with_hidden(law, np.insert(is_detected[:-1], 0, True) if intercept else is_detected[:-1])


# Shares, means and quantiles.


def shares(fit: SyntheticSource, formula: str) -> SyntheticEstimates:
    """Return the shares of the cells of some columns."""
    codes = fit.codes
    parsed = parsed_formula(formula, codes)
    named = dict.fromkeys(code for term in parsed.predictors for code in term)
    unknown = next((code for code in named if code not in codes), None)
    if parsed.response or not named or unknown is not None:
        what = "names no column" if unknown is None else f"names {unknown!r}"
        raise FormulaError(
            f"formula {shorten(formula)!r} {what}; write columns of the synthetic table, such as "
            f"'~ {shorten(' + '.join(codes[:2]))}'"
        )
    places = [codes.index(code) for code in named]
    grid = _grid(fit, places)
    group, n_groups, is_complete = _groups(grid, places)
    above = _indicators(group, n_groups)
    law = ratios(grid.table, above, np.repeat(is_complete[:, None] * 1.0, n_groups, axis=1))
    return SyntheticEstimates(
        fit, "Shares", parsed.text, _index(fit, places), law, grid.assumes, (0.0, 1.0)
    )


def means(fit: SyntheticSource, formula: str) -> SyntheticEstimates:
    """Return means of a number by group."""
    grid, y, places, number, at_level = _measured(fit, formula, "mean()")
    group, n_groups, _ = _groups(grid, places, np.isfinite(y))
    below = _indicators(group, n_groups)
    law = ratios(grid.table, below * np.nan_to_num(y)[:, None], below)
    totals = grid.table.model.ravel() @ below

    def by_values(values: Mapping[str, Floats]) -> Floats:
        return below * np.asarray(at_level.evaluate(values))[:, None] / np.maximum(totals, 1.0)

    counts = grid.table.model.ravel()
    law = replace(
        law, noise=law.noise + _value_noise(fit, grid.term, grid.codes, counts, by_values)
    )
    title, text = f"Means of {number.code}", " ".join(formula.split())
    ends = (number.lower, number.upper)
    return SyntheticEstimates(fit, title, text, _index(fit, places), law, grid.assumes, ends)


def quantiles(
    fit: SyntheticSource, formula: str, probs: float | Sequence[float]
) -> SyntheticEstimates:
    """Return quantiles of a number by group."""
    levels = tuple(np.atleast_1d(np.asarray(probs, dtype=np.float64)).tolist())
    if not levels or not all(0 < prob < 1 for prob in levels):
        raise ArgumentError(f"probs={shorten(repr(probs))}: expected numbers in (0, 1)")
    grid, y, places, number, _ = _measured(fit, formula, "quantile()")
    column = next((one for one in fit.columns if one.category.code == number.code), None)
    if column is None or not column.edges:
        raise FormulaError(
            f"{shorten(number.code)!r} is not a number of the synthetic table; quantiles are of "
            "its columns in cells"
        )
    group, n_groups, _ = _groups(grid, places, np.isfinite(y))
    n_inner = len(column.edges) - 2
    cell = grid.codes[grid.term.index(fit.columns.index(column))]
    distributions = []
    for k in range(n_groups):
        below = (group == k)[:, None] * 1.0
        above = below * (cell[:, None] <= np.arange(n_inner))
        coarse = distribution(grid.table, np.array(column.edges), above, below)
        of_column = coarse if column.histogram is None else refined(coarse, column.histogram)
        distributions.append(replace(of_column, step=number.step))
    is_even = column.histogram is None and np.diff(column.edges).max() > (number.step or 0.0)
    params = np.array([one.quantile(prob) for one in distributions for prob in levels])
    unknown = np.full((len(params), len(params)), np.nan)
    keys = _index(fit, places)
    frame = keys.to_frame(index=False).loc[np.repeat(np.arange(n_groups), len(levels))]
    index = pd.MultiIndex.from_frame(frame.assign(prob=np.tile(levels, n_groups)))
    return SyntheticEstimates(
        fit,
        f"Quantiles of {number.code}",
        " ".join(formula.split()),
        index,
        CellLaw(params, unknown, unknown),
        grid.assumes or EVEN * bool(is_even),
        distributions=tuple(distributions),
    )


def _measured(
    fit: SyntheticSource, formula: str, method: str
) -> tuple[LevelGrid, Floats, list[int], Real, Real]:
    """Return the table, the number by cell, the columns that group rows, and the number twice.

    That is as written, and of the columns of the table.
    """
    number, factors = one_measured(parse_sides(formula, fit.call.codebook), method)
    at_level, read = on_levels(number, fit.columns)
    places = []
    for factor in factors:
        if factor.code not in fit.codes:
            raise FormulaError(f"{shorten(factor.code)!r} is not a column of the synthetic table")
        places.append(fit.codes.index(factor.code))
    grid = _grid(fit, [*read, *places])
    assert isinstance(at_level, Real)
    y = np.asarray(at_level.evaluate(grid.columns))
    if len(read) == 1:
        name, evaluate = fit.columns[read[0]].name, at_level.evaluate
        levels = _corrected(fit, read[0], lambda x: np.asarray(evaluate({name: x})))
        y = np.append(levels, np.nan)[grid.codes[grid.term.index(read[0])]]
    return grid, y, places, number, at_level


def _groups(
    grid: LevelGrid, places: Sequence[int], is_complete: np.ndarray | None = None
) -> tuple[Integers, int, np.ndarray]:
    """Return the group of each cell, -1 where it is incomplete, and how many groups there are."""
    group = np.zeros(grid.codes.shape[1], dtype=np.int64)
    complete = np.ones(len(group), dtype=bool) if is_complete is None else is_complete
    size = 1
    for place in places:
        codes, n_levels = grid.codes[grid.term.index(place)], len(grid.fit.columns[place].levels)
        complete = complete & (codes < n_levels)
        group, size = group * n_levels + codes, size * n_levels
    return np.where(complete, group, -1), size, complete


def _indicators(group: Integers, n_groups: int) -> Floats:
    return np.asarray(group[:, None] == np.arange(n_groups), dtype=np.float64)


def _index(fit: SyntheticSource, places: Sequence[int]) -> pd.Index:
    columns = [fit.columns[place] for place in places]
    if not columns:
        return pd.Index(["(all)"], name="group")
    facts = [(column.category.code, column.levels) for column in columns]
    return TableCall(*zip(*facts, strict=True)).index
