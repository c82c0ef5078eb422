"""Estimates from the released tables of a synthetic table, with intervals."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product

import numpy as np
import pandas as pd
from scipy.special import ndtr, ndtri

from dpmodels.arguments import fraction, lists_values, option
from dpmodels.errors import ArgumentError, FormulaError, NotAvailable, shorten
from dpmodels.formula.coding import Design, Factor
from dpmodels.formula.cut_columns import naming, on_levels
from dpmodels.formula.parse import parsed_formula, quote
from dpmodels.formula.response import TwoSided, two_levels, two_sided
from dpmodels.formula.sides import measured, one_measured, parse_sides
from dpmodels.formula.values import Category, Real
from dpmodels.inference.cell_estimates import (
    HIDDEN,
    CellLaw,
    Distribution,
    PointScores,
    Scores,
    are_detected,
    distribution,
    identified,
    pair_regression,
    ratios,
    refined,
    regression,
    with_hidden,
)
from dpmodels.inference.cell_values import Nodes, ValueMoves
from dpmodels.inference.links import IDENTITY, OF_FAMILY
from dpmodels.inference.released_cells import MOST_CELLS, sampled
from dpmodels.postprocess.graphical.sampling import sample, uniform
from dpmodels.postprocess.residuals import Term, cells
from dpmodels.results.base import Tabulated, checked_level
from dpmodels.results.call import INTERCEPT, TableCall, joined
from dpmodels.results.estimate_table import EstimateTable, table_of_estimates
from dpmodels.results.synthetic_source import LevelGrid, SyntheticSource, grid_of
from dpmodels.typing import Axes, Floats, Integers
from dpmodels.verbs import documented

# Rows that stand for the model where the table of all columns is too large: a choice.
DRAWN_ROWS = 100_000

EVEN = "an even spread of rows within cells"
LEFT_OUT = "no effect of terms without an estimate"


@dataclass(frozen=True, repr=False, eq=False)
class SyntheticEstimates(Tabulated):
    """Estimates from a synthetic table: released values and public facts only."""

    fit: SyntheticSource
    title: str
    formula: str  # As written
    index: pd.Index  # Names of the estimates
    law: CellLaw  # The estimates, with the covariances of their noise and of sampling
    assumes: str = ""  # About the model; empty where the released tables determine the estimates
    within: tuple[float, float] = (-math.inf, math.inf)  # What the estimates lie between
    distributions: tuple[Distribution, ...] = ()  # By group, of quantiles
    date: bool = False  # Whether they are dates, in days since 1970-01-01

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
        """Distances of coefficients from 0, in standard errors that they have at 0."""
        return self._series(self.law.roots() if self.is_regression else np.nan)

    @property
    def pvalues(self) -> pd.Series[float]:
        """Two-sided p-values of coefficients of 0, by the normal distribution."""
        return self._series(2 * ndtr(-np.abs(self.tvalues)))

    def cov_params(self) -> pd.DataFrame:
        """Return the covariance of the estimates, of sampling and noise."""
        return pd.DataFrame(self.law.noise + self.law.sampling, self.index, self.index)

    def conf_int(self, level: float = 0.95) -> pd.DataFrame:
        """Return intervals of the population's values: noise and sampling.

        They have the values that the estimate does not contradict by the noise that it has there,
        as that of sums of squares counts more the farther a value is from 0. They end nearer on the
        side to which the tail beyond a released range cannot err, as it is not negative; standard
        errors are those of the other side. P values are those of the intervals. At a level above
        .95 an interval of a coefficient may be infinite.

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
            pairs = product(self.distributions, self.index.get_level_values("prob").unique())
            ends = [of_group.interval(prob, level, full=full) for of_group, prob in pairs]
            return pd.DataFrame(ends, self.index, ["lower", "upper"])
        below, above = self.law.distances(float(ndtri((1 + level) / 2)), full=full)
        limits = {"lower": self.params - below, "upper": self.params + above}
        return pd.DataFrame(limits).clip(*self.within)

    def _series(self, values: object) -> pd.Series[float]:
        return pd.Series(values, index=self.index, dtype=np.float64)

    @property
    def _source(self) -> SyntheticSource:
        return self.fit

    def _estimates(self) -> EstimateTable:
        labels = list(self.index) if self.is_regression else None
        return table_of_estimates(self, self.index, labels=labels)

    @documented
    def plot(self, ax: Axes | None = None, level: float = 0.95, *, caption: bool = True) -> Axes:
        """Draw the estimates but the constant with both intervals."""
        is_shown = np.array([name != INTERCEPT for name in self.index])
        return self._draw_intervals(
            self.params,
            ax,
            level,
            caption,
            rows=is_shown,
            labels=joined(self.index[is_shown]),
            title="Coefficient" if self.is_regression else self.title,
            at=0.0 if self.is_regression else None,
        )

    def __repr__(self) -> str:
        return (
            f"<SyntheticEstimates {self.formula!r}: {len(self.index)} of {self.fit.call.formula!r}>"
        )


# Regressions.


def regressed(fit: SyntheticSource, formula: str, family: str) -> SyntheticEstimates:
    """Fit a regression of a family to a synthetic table."""
    family = option("family", family, ("gaussian", *OF_FAMILY))
    with naming(fit.columns):
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
    grid = grid_of(fit, [*places, *last])
    by_pairs = _scores(fit, terms, response) if family == "gaussian" else None
    if by_pairs is None:
        law = _joint(grid, terms, response, sides, family)
    else:
        law = _pairwise(grid, terms, response, by_pairs, intercept=sides.intercept)
    index = pd.Index([INTERCEPT] * sides.intercept + list(terms.names), name="term", dtype=object)
    title = "Linear model" if family == "gaussian" else f"Generalised linear model ({family})"
    # A model without products whose columns are in one clique needs no other assumption.
    is_additive = not any(len(block.factors) > 1 for block in terms.blocks)
    is_determined = by_pairs is not None or (is_additive and fit.model.contains(grid.term))
    hides = bool(np.isnan(law.sampling).any())
    assumes = _assumed("" if is_determined else grid.assumes, LEFT_OUT * hides, grid.assumes_tails)
    return SyntheticEstimates(fit, title, " ".join(formula.split()), index, law, assumes)


def _assumed(*assumptions: str) -> str:
    return " and ".join(filter(None, assumptions))


def _read(fit: SyntheticSource, design: Design) -> tuple[Design, list[int]]:
    """Return a design that reads the columns of the table, and their positions."""
    places: list[int] = []

    def read(factor: Factor) -> Factor:
        at_level, positions = on_levels(factor, fit.columns)
        places.extend(positions)
        return at_level

    blocks = (replace(block, factors=tuple(map(read, block.factors))) for block in design.blocks)
    return replace(design, blocks=tuple(blocks)), places


def _coded(design: Design, columns: Mapping[str, Floats]) -> Floats:
    out = np.empty((len(design.names), len(next(iter(columns.values())))))
    design.evaluate(columns, out)
    return out.T


def _with_constant(terms: Design, values: Mapping[str, Floats], *, intercept: bool) -> Floats:
    n_points = len(next(iter(values.values())))
    coded = _coded(terms, values) if terms.names else np.empty((n_points, 0))
    return np.insert(coded, 0, 1.0, axis=1) if intercept else coded


def _joint(
    grid: LevelGrid, terms: Design, response: Design, sides: TwoSided, family: str
) -> CellLaw:
    link, (points, nodes) = OF_FAMILY.get(family, IDENTITY), grid.points

    def coded(values: Mapping[str, Floats]) -> tuple[Floats, Floats]:
        x = _with_constant(terms, values, intercept=sides.intercept)
        return x, _coded(response, values)[:, 0]

    def by_values(scores: PointScores, k: int) -> ValueMoves:
        return grid.moves(lambda values, _: scores(*coded(values)), k)

    return regression(grid.table, *coded(points), link, nodes, by_values)


def _scores(fit: SyntheticSource, terms: Design, response: Design) -> list[Scores] | None:
    """Return the columns of a model as scores of one column of the table each.

    None where a term has several, a pair was not released, or values are missing.
    """
    scores = []
    for block in (*terms.blocks, *response.blocks):
        read = {i for factor in block.factors for i in on_levels(factor, fit.columns)[1]}
        if len(read) != 1 or fit.has_missing(place := read.pop()):
            return None
        cells = fit.columns[place].cells
        coded = block.coded({fit.columns[place].name: cells.points})
        # The level of missing values is no level of these rows: the mean has the least noise.
        weights = cells.rows[cells.cell] * cells.weights
        scores += [
            Scores(place, cells, line, float(line @ weights / weights.sum())) for line in coded
        ]
    places = sorted({score.variable for score in scores})
    pairs = {(i, j) for i in places for j in places if i < j}
    return scores if pairs <= set(fit.released.tables) and len(scores) > 1 else None


def _pairwise(
    grid: LevelGrid, terms: Design, response: Design, columns: Sequence[Scores], *, intercept: bool
) -> CellLaw:
    """Fit by pairs; the meat of the sandwich is that of the model, with their squared residuals."""
    fit = grid.fit
    is_detected = are_detected(fit.released, columns)
    if not is_detected[-1] or not is_detected[:-1].any():
        raise NotAvailable(HIDDEN)
    is_used = np.insert(is_detected[:-1], 0, True) if intercept else is_detected[:-1]
    columns = [one for one, is_used in zip(columns, is_detected, strict=True) if is_used]
    law, inverse, squares = pair_regression(fit.released, columns, intercept)
    if cells(grid.term, fit.sizes) <= MOST_CELLS:
        points, nodes = grid.points
        counts = np.maximum(nodes.spread(grid.table.model.ravel()), 0.0)
    else:
        points = _drawn(fit, grid.term)
        counts = np.full(DRAWN_ROWS, fit.model.n_rows / DRAWN_ROWS)
    design = _with_constant(terms, points, intercept=intercept)[:, is_used]
    residuals = np.nan_to_num(_coded(response, points)[:, 0] - design @ law.params)
    scores = np.nan_to_num(design) * residuals[:, None]
    meat = sampled(scores, counts, fit.release.adjacency.design_effect)
    if math.isfinite(squares):
        meat *= squares / (counts @ residuals**2)
    law = identified(replace(law, sampling=inverse @ meat @ inverse.T))
    return with_hidden(law, is_used)


def _drawn(fit: SyntheticSource, term: Term) -> Mapping[str, Floats]:
    entropy = fit.random_words("meat", 0)
    codes = sample(fit.model, DRAWN_ROWS, entropy)
    values = {}
    for i in term:
        (low, high), fraction = fit.columns[i].cells.two_points
        of = np.minimum(codes[:, i], len(low) - 1)
        numbers = np.where(uniform(DRAWN_ROWS, entropy) < fraction[of], low[of], high[of])
        values[fit.columns[i].name] = np.where(of == codes[:, i], numbers, np.nan)
    return values


# Shares, means and quantiles.


def shares(fit: SyntheticSource, formula: str) -> SyntheticEstimates:
    """Return the shares of the cells of some columns."""
    codes = fit.codes
    parsed = parsed_formula(formula, codes)
    named = dict.fromkeys(code for term in parsed.predictors for code in term)
    position = {code: i for i, name in enumerate(codes) for code in (name, quote(name))}
    unknown = next((code for code in named if code not in position), None)
    if parsed.response or not named or unknown is not None:
        what = "has a left side" if parsed.response else "names no column"
        what = what if unknown is None else f"names {unknown!r}"
        raise FormulaError(
            f"formula {shorten(formula)!r} {what}; write columns of the synthetic table, such as "
            f"'~ {shorten(' + '.join(quote(column.name) for column in fit.columns[:2]))}'"
        )
    places = list(dict.fromkeys(position[code] for code in named))
    grid = grid_of(fit, places)
    group, n_groups, is_complete = _groups(grid, places)
    above = _indicators(group, n_groups)
    law = ratios(grid.table, above, np.repeat(is_complete[:, None] * 1.0, n_groups, axis=1))
    facts = (parsed.text, _index(fit, places), law, grid.assumes, (0.0, 1.0))
    return SyntheticEstimates(fit, "Shares", *facts)


def means(fit: SyntheticSource, formula: str) -> SyntheticEstimates:
    """Return means of a number by group."""
    grid, y, places, number, at_level = _measured(fit, formula, "mean()")
    group, n_groups, _ = _groups(grid, places, np.isfinite(y))
    below = _indicators(group, n_groups)
    fraction = below / np.maximum(grid.table.model.ravel() @ below, 1.0)

    def scores(values: Mapping[str, Floats], nodes: Nodes) -> Floats:
        return nodes.at(fraction) * np.asarray(at_level.evaluate(values))[:, None]

    values, by_rows, _ = grid.moves(scores, n_groups)
    law = ratios(grid.table, below * np.nan_to_num(y)[:, None], below, by_rows)
    law = replace(law, noise=law.noise + values.covariance, values=values)
    title, text = f"Means of {number.code}", " ".join(formula.split())
    index, ends = _index(fit, places), (number.lower, number.upper)
    assumes = _assumed(grid.assumes, grid.assumes_tails)
    return SyntheticEstimates(fit, title, text, index, law, assumes, ends, date=number.date)


def quantiles(
    fit: SyntheticSource, formula: str, probs: float | Sequence[float]
) -> SyntheticEstimates:
    """Return quantiles of a number by group."""
    every = probs if lists_values(probs) else [probs]
    levels = tuple(fraction("probs", prob) for prob in every)
    if not levels:
        raise ArgumentError("probs=[]: expected numbers between 0 and 1, such as 0.5")
    grid, y, places, number, _ = _measured(fit, formula, "quantile()")
    named = (column for column in fit.columns if number.code in (column.category.code, column.name))
    column = next(named, None)
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
    params = np.array(
        [distribution.quantile(prob) for distribution in distributions for prob in levels]
    )
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
        date=number.date,
    )


def _measured(
    fit: SyntheticSource, formula: str, method: str
) -> tuple[LevelGrid, Floats, list[int], Real, Real]:
    """Return the table, the number by cell, the columns that group rows, and the number twice.

    That is as written, and of the columns of the table.
    """
    with naming(fit.columns):
        sides = parse_sides(formula, fit.call.codebook)
        number, factors = one_measured(sides, method)
    first = sides.described[0]
    described, read = on_levels(first if isinstance(first, Category) else number, fit.columns)
    places = []
    for factor in factors:
        if factor.code not in fit.codes:
            raise FormulaError(f"{shorten(factor.code)!r} is not a column of the synthetic table")
        places.append(fit.codes.index(factor.code))
    at_level = measured(described)
    grid = grid_of(fit, [*read, *places])
    if len(read) == 1:
        column = fit.columns[read[0]]
        values = np.asarray(at_level.evaluate({column.name: column.cells.points}))
        levels = np.append(column.cells.effective(values), np.nan)
        y = levels[grid.codes[grid.term.index(read[0])]]
    else:
        points, nodes = grid.points
        at_points = np.asarray(at_level.evaluate(points))
        is_complete = np.isfinite(at_points)
        sums = nodes.gathered(np.column_stack([np.nan_to_num(at_points), is_complete]))
        y = np.where(sums[:, 1] > 0.5, sums[:, 0], np.nan)
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
