"""Means, shares, quantiles and regressions from the released cells of a table."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from dpmodels.errors import NotAvailable
from dpmodels.inference.cell_values import CELLS, Nodes, ValueNoise, no_noise
from dpmodels.inference.links import Link
from dpmodels.inference.proportions import DETECTION_SDS
from dpmodels.inference.released_cells import ReleasedCells, noise_of, sampled
from dpmodels.postprocess.graphical.histograms import Histogram
from dpmodels.postprocess.graphical.measurements import Residuals
from dpmodels.postprocess.graphical.values import CellValues
from dpmodels.postprocess.residuals import Term
from dpmodels.typing import Floats

# From columns and response at points, shapes (points, k) and (points,), to scores, (points, k).
PointScores = Callable[[Floats, Floats], Floats]

# Steps of Newton's method, and the step that ends it, in units of the coefficients: choices.
STEPS, TOLERANCE = 50, 1e-9
# The least eigenvalue of information in units of its diagonal, and the noise of the information
# about a coefficient over itself, up to which it is reported: choices.
SINGULAR, CLEAR = 1e-6, 0.25
# The least eigenvalue in these units that is not the rounding of 0.
ROUNDED = 1e-13

HIDDEN = (
    "the model has no estimate: noise hides the regressors, or a combination of them separates "
    "the levels of the response; name fewer terms, cut numbers where most rows are (cuts=), or use "
    "a larger budget"
)


def _squares(columns: Floats) -> Floats:
    return np.asarray((columns**2).sum(axis=0))


@dataclass(frozen=True)
class CellLaw:
    """Estimates and the covariance of their error: of the noise, and of sampling.

    The part of the noise that is of the values of cells is in `values` too, where all of it is
    counted: joint fits count only how means of cells move.
    """

    params: Floats
    noise: Floats
    sampling: Floats
    values: ValueNoise | None = None

    def distances(self, sds: float, *, full: bool) -> tuple[Floats, Floats]:
        """Return how far below and above the estimates their intervals end.

        `sds` is how many standard deviations of a normal error that is. An estimate errs to one
        side by what the total of a tail may be too large, to the other by what it may be too small.
        Squares of these distances add up, as variances do; but as all tails have the same laws, the
        totals may be too large together.
        """
        variance = np.diagonal(self.noise + self.sampling if full else self.noise)
        if self.values is None:
            return (half := sds * np.sqrt(variance)), half
        up, down = np.maximum(self.values.tails, 0.0), np.maximum(-self.values.tails, 0.0)
        rest = np.maximum(variance - _squares(up) - _squares(down), 0.0)
        largest = np.minimum(self.values.largest / sds, 1.0)
        below, above = (
            sds * np.sqrt(rest + np.minimum((largest @ less) ** 2, _squares(less)) + _squares(more))
            for less, more in ((up, down), (down, up))
        )
        return below, above


def ratios(
    table: ReleasedCells, above: Floats, below: Floats, by_rows: Floats | float = 0.0
) -> CellLaw:
    """Estimate ratios of sums over the rows, one a column of `above`; shapes (cells, k).

    nan where the sum below is not distinguished from 0. `by_rows` is by how much more the ratios
    move with the rows of each cell.
    """
    counts = table.corrected
    totals = counts @ below
    hidden = DETECTION_SDS * np.sqrt(np.diagonal(table.noise(below)))
    totals = np.where(totals > np.maximum(hidden, 1.0), totals, np.nan)
    params = counts @ above / totals
    is_estimated = np.isfinite(params)
    scores = np.where(is_estimated, (above - np.nan_to_num(params) * below) / totals, 0.0)
    hide = np.where(is_estimated, 1.0, np.nan)
    hide = np.outer(hide, hide)
    return CellLaw(params, hide * table.noise(scores + by_rows), hide * table.sampling(scores))


def with_hidden(law: CellLaw, is_detected: NDArray[np.bool_]) -> CellLaw:
    """Return the law of some coefficients with nan for the others."""
    params = np.full(len(is_detected), np.nan)
    params[is_detected] = law.params
    noise, sampling = (np.full((len(is_detected), len(is_detected)), np.nan) for _ in range(2))
    for full, part in ((noise, law.noise), (sampling, law.sampling)):
        full[np.ix_(is_detected, is_detected)] = part
    values = law.values and law.values.through(np.eye(len(is_detected))[:, is_detected])
    return CellLaw(params, noise, sampling, values)


def regression(
    table: ReleasedCells,
    columns: Floats,
    response: Floats,
    link: Link,
    nodes: Nodes = CELLS,
    by_values: Callable[[PointScores], tuple[ValueNoise, Floats]] | None = None,
) -> CellLaw:
    """Estimate a generalised linear model by its score equations; points with nan do not count.

    `columns` and `response` are by point of `nodes`. Columns whose sum of squares is not
    distinguished from 0 are left out: nan. Of a function of columns and response, with scores by
    cell, `by_values` gives the noise of the sums by that in the values of cells, and by how much
    more they move with the rows of each cell.
    """
    is_complete = np.isfinite(response) & np.isfinite(columns).all(axis=1)
    design = np.where(is_complete[:, None], np.nan_to_num(columns), 0.0)
    squares = nodes.gathered(design**2)
    noise_sds = np.sqrt(np.diagonal(table.noise(squares)))
    is_detected = table.corrected @ squares > DETECTION_SDS * noise_sds
    if not is_detected.any():
        raise NotAvailable(HIDDEN)
    design = design[:, is_detected]
    y = np.where(is_complete, np.nan_to_num(response), 0.0)
    params, model = np.zeros(design.shape[1]), nodes.spread(table.model.ravel())
    for counts in (model, nodes.spread(table.corrected)):
        params, inverse = _solved(np.where(is_complete, counts, 0.0), design, y, link, params)
    eta = design @ params
    scores = design * (y - link.mean(eta))[:, None]
    of_cells: Floats = nodes.gathered(scores)
    curve = np.where(is_complete[:, None], link.slope(eta)[:, None] * (design @ inverse) ** 2, 0.0)
    curve, values = nodes.gathered(curve), no_noise(len(params))
    by_curve = np.zeros_like(values.covariance)
    if by_values is not None:

        def residuals(x: Floats, y: Floats) -> Floats:
            x = x[:, is_detected]
            return x * (y - link.mean(x @ params))[:, None]

        def curvature(x: Floats, _: Floats) -> Floats:
            x = x[:, is_detected]
            return np.asarray(link.slope(x @ params)[:, None] * (x @ inverse) ** 2)

        values, more = by_values(residuals)
        of_curve, more_curve = by_values(curvature)
        of_cells, curve, by_curve = of_cells + more, curve + more_curve, of_curve.covariance
    meat = sampled(scores, np.maximum(model, 0.0), table.effect)
    noise = inverse @ (table.noise(of_cells) + values.covariance) @ inverse.T
    law = CellLaw(params, noise, inverse @ meat @ inverse.T)
    return with_hidden(identified(law, inverse, table.noise(curve) + by_curve), is_detected)


def _solved(
    counts: Floats, design: Floats, y: Floats, link: Link, start: Floats
) -> tuple[Floats, Floats]:
    """Return the root of the score equations and the inverse of their derivative."""
    params = start
    for _ in range(STEPS):
        eta = design @ params
        information = design.T @ ((counts * link.slope(eta))[:, None] * design)
        if not _least_eigenvalue(information) > ROUNDED:
            raise NotAvailable(HIDDEN)
        step = np.linalg.solve(information, design.T @ (counts * (y - link.mean(eta))))
        params = params + step
        if not np.isfinite(params).all():
            raise NotAvailable(HIDDEN)
        if np.abs(step).max() <= TOLERANCE * (1 + np.abs(params).max()):
            return params, np.asarray(np.linalg.inv(information))
    raise NotAvailable(HIDDEN)


def _least_eigenvalue(information: Floats) -> float:
    scale = np.sqrt(np.maximum(np.diagonal(information), np.finfo(float).tiny))
    return float(np.linalg.eigvalsh(information / scale[:, None] / scale)[0])


@dataclass(frozen=True)
class Scores:
    """A column of a regression that reads one variable: its value at each point of the cells."""

    variable: int
    cells: CellValues
    points: Floats
    missing: float  # Its value at the level of missing values

    @cached_property
    def values(self) -> Floats:
        """The values by level that products with other columns have."""
        return np.append(self.cells.effective(self.points), self.missing)


def pair_regression(
    released: Residuals, columns: Sequence[Scores], intercept: bool
) -> tuple[CellLaw, Floats, Floats, float]:
    """Estimate least squares of the last column from released tables of two variables alone.

    Sums of products of two columns are linear in these tables, so the normal equations are
    unbiased and their noise is known. Returns the estimate without its sampling variance, the
    inverse of the information, what :func:`identified` needs, and the sum of squared residuals, nan
    where noise hides it.
    """
    first = columns[0]
    constant = Scores(first.variable, first.cells, np.ones_like(first.points), 1.0)
    parts = [constant, *columns] if intercept else list(columns)
    products = np.array(
        [[_sum(released, left, right) for right in parts] for left in parts], dtype=np.float64
    )
    information = products[:-1, :-1]
    if not _least_eigenvalue(information) > SINGULAR:
        raise NotAvailable(HIDDEN)
    inverse = np.asarray(np.linalg.inv(information))
    params = inverse @ products[:-1, -1]
    size, of_residual = len(params), np.append(-params, 1.0)
    residual = np.repeat(of_residual[:, None], size, axis=1)
    values, by_rows = _noise_of_values(released, parts, of_residual)
    tables = _products(parts, np.eye(size + 1, size), residual)
    for variable, more in by_rows.items():
        tables[(variable,)] = tables[(variable,)] + more
    noise = inverse @ (noise_of(tables, released) + values.covariance) @ inverse.T
    curve = np.vstack([inverse, np.zeros(size)])
    spread = noise_of(_products(parts, curve, curve), released)
    law = CellLaw(params, noise, np.zeros_like(inverse), values.through(inverse))
    squares, once = float(of_residual @ products @ of_residual), residual[:, :1]
    hidden = math.sqrt(noise_of(_products(parts, once, once), released)[0, 0])
    return law, inverse, spread, squares if squares > DETECTION_SDS * hidden else math.nan


def _noise_of_values(
    released: Residuals, parts: Sequence[Scores], residual: Floats
) -> tuple[ValueNoise, dict[int, Floats]]:
    """Return the noise of ``Σ z_j Σ_a residual_a z_a``, all j but the last, by cell values.

    And by how much more they move with the rows of each level of a variable than by its values.
    """
    size, total, by_rows = len(parts) - 1, no_noise(len(parts) - 1), dict[int, Floats]()
    for variable in {part.variable for part in parts if part.cells.noise.any()}:
        inside = [k for k, part in enumerate(parts) if part.variable == variable]
        cells = parts[inside[0]].cells
        at_ends = cells.at_ends
        sums = np.zeros((len(cells.rows), len(parts)))
        for k, part in enumerate(parts):
            if part.variable != variable:
                sums[:, k] = _sums_by_level(released, variable, part)[:-1]
        of_residual = residual[inside] @ np.array([parts[k].points for k in inside])
        changes, more = (of.by_noise(of_residual, sums[:, :size]) for of in (cells, at_ends))
        outside = (sums @ residual)[:, None]
        for k in inside:
            if k < size:
                points = parts[k].points
                for of, moved in ((cells, changes), (at_ends, more)):
                    inner = of.by_inner_noise((points * of_residual)[:, None])
                    moved[:, [k]] += of.by_noise(points, outside) + inner
        total = total + ValueNoise.of(changes, cells.largest)
        by_rows[variable] = np.append(more, np.zeros((1, size)), axis=0)
    return total, by_rows


def _sums_by_level(released: Residuals, variable: int, part: Scores) -> Floats:
    table = released.table((min(variable, part.variable), max(variable, part.variable)))
    return np.asarray((table if variable < part.variable else table.T) @ part.values)


def identified(law: CellLaw, inverse: Floats, spread: Floats) -> CellLaw:
    """Hide coefficients whose information is not clear of noise.

    ``d' A d`` with ``d = A⁻¹ e_k`` is ``(A⁻¹)_kk``; `spread` has the covariances of its noise.
    """
    variance = np.diagonal(inverse)
    is_clear = np.sqrt(np.diagonal(spread)) <= CLEAR * variance
    hide = np.where(is_clear, 1.0, np.nan)
    return replace(law, params=law.params * hide, noise=law.noise * np.outer(hide, hide))


def are_detected(released: Residuals, columns: Sequence[Scores]) -> NDArray[np.bool_]:
    """Return which columns have a sum of squares that is distinguished from 0."""
    squares = [_product(column, column) for column in columns]
    sds = [math.sqrt(noise_of({term: square[:, None]}, released)[0, 0]) for term, square in squares]
    sums = [float(square @ released.table(term)) for term, square in squares]
    return np.array([total > DETECTION_SDS * sd for total, sd in zip(sums, sds, strict=True)])


def _sum(released: Residuals, left: Scores, right: Scores) -> float:
    term, weights = _product(left, right)
    return float((weights * released.table(term)).sum())


def _products(parts: Sequence[Scores], left: Floats, right: Floats) -> dict[Term, Floats]:
    """Return weights of released tables, by column k: ``(Σ_a left_ak z_a)(Σ_b right_bk z_b)``."""
    tables: dict[Term, Floats] = {}
    for scores, by_left in zip(parts, left, strict=True):
        for second_scores, by_right in zip(parts, right, strict=True):
            term, weights = _product(scores, second_scores)
            table = tables.setdefault(term, np.zeros((weights.size, left.shape[1])))
            table += weights.reshape(-1, 1) * (by_left * by_right)
    return tables


def _product(left: Scores, right: Scores) -> tuple[Term, Floats]:
    if left.variable == right.variable:
        means = left.cells.means(left.points * right.points)
        return (left.variable,), np.append(means, left.missing * right.missing)
    first, second = sorted((left, right), key=lambda scores: scores.variable)
    return (first.variable, second.variable), np.multiply.outer(first.values, second.values)


@dataclass(frozen=True)
class Distribution:
    """A noisy distribution function at increasing edges, from 0 to 1, with its error.

    Of whole numbers edges lie between them, and `step` is 1: quantiles are whole numbers.
    """

    edges: Floats
    values: Floats  # shape (edges,)
    noise_sd: Floats
    full_sd: Floats
    step: float = 0.0

    def quantile(self, prob: float) -> float:
        """Return where the distribution, made monotone, reaches a probability."""
        return self._rounded(_crossing(self.edges, np.maximum.accumulate(self.values), prob))

    def _rounded(self, number: float) -> float:
        if self.step != 1.0:
            return number
        return float(np.clip(round(number), self.edges[0] + 0.5, self.edges[-1] - 0.5))

    def interval(self, prob: float, level: float, *, full: bool) -> tuple[float, float]:
        """Return the cells in which the distribution is not distinguished from `prob`.

        They count as a whole: how rows lie within a cell is not known.
        """
        half = float(ndtri((1 + level) / 2)) * (self.full_sd if full else self.noise_sd)
        upper = np.maximum.accumulate(self.values + half)
        lower = np.minimum.accumulate((self.values - half)[::-1])[::-1]
        first, last = int(np.searchsorted(upper, prob)) - 1, int(np.searchsorted(lower, prob))
        low, high = self.edges[max(first, 0)], self.edges[min(last, len(self.edges) - 1)]
        inside = 0.5 * (self.step == 1.0)
        return float(low) + inside, float(high) - inside


def _crossing(edges: Floats, values: Floats, prob: float) -> float:
    """Return where an increasing function first reaches a value, linear between edges."""
    k = int(np.searchsorted(values, prob, side="left"))
    if k == 0 or k == len(edges):
        return float(edges[min(k, len(edges) - 1)])
    fraction = (prob - values[k - 1]) / (values[k] - values[k - 1])
    return float(edges[k - 1] + fraction * (edges[k] - edges[k - 1]))


def distribution(table: ReleasedCells, edges: Floats, above: Floats, below: Floats) -> Distribution:
    """Return the distribution of a number within a group.

    `above` has a column for each inner edge, 1 for cells of the group up to it; `below`, shape
    (cells, 1), is 1 for all cells of the group in which the number is not missing.
    """
    law = ratios(table, above, np.repeat(below, above.shape[1], axis=1))
    variances = (np.diagonal(law.noise), np.diagonal(law.noise + law.sampling))
    noise_sd, full_sd = (np.concatenate([[0.0], np.sqrt(one), [0.0]]) for one in variances)
    return Distribution(edges, np.concatenate([[0.0], law.params, [1.0]]), noise_sd, full_sd)


def refined(coarse: Distribution, histogram: Histogram) -> Distribution:
    """Return a distribution at the edges of fine cells, by their rows within each coarse cell.

    What is within a coarse cell is taken as the same in all groups.
    """
    cell, weights = histogram.cell, histogram.positive
    below = np.cumsum(weights) - weights
    fraction = (below - below[list(histogram.ends[:-1])][cell]) / histogram.sums(weights)[cell]
    rows_between = np.diff(coarse.values)[cell]
    slope = histogram.noise_slopes
    squares = slope**2
    before = np.cumsum(squares) - squares
    before = np.maximum(before - before[list(histogram.ends[:-1])][cell], 0.0)
    total = histogram.sums(squares)[cell]
    variance = (1 - fraction) ** 2 * before + fraction**2 * np.maximum(total - before, 0.0)

    def between(values: Floats) -> Floats:
        return values[:-1][cell] * (1 - fraction) + values[1:][cell] * fraction

    noise_sd, full_sd = (
        np.append(np.sqrt(between(sd) ** 2 + rows_between**2 * variance), 0.0)
        for sd in (coarse.noise_sd, coarse.full_sd)
    )
    return Distribution(histogram.edges, np.append(between(coarse.values), 1.0), noise_sd, full_sd)
