"""Means, shares, quantiles and regressions from the released cells of a table."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from dpmodels.errors import NotAvailable
from dpmodels.inference.cell_values import Nodes, ValueMoves, ValueNoise, no_noise
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
# The least eigenvalue of information in units of its diagonal, a choice, and how many noise sds the
# information about a coefficient has to be above 0: those of an interval of 95 %.
SINGULAR, CLEAR_SDS = 1e-6, 1.96
# Steps that find the end of an interval: by doubling, up to 10^9 times; then to rounding.
DOUBLINGS, HALVINGS = 30, 50
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
class CurvatureNoise:
    """Relative noise of the curvature along each coefficient.

    If the value of a coefficient is s above the estimate, the estimate errs by the noise of its
    score less s times this.
    """

    variance: Floats  # Shape (k,)
    covariance: Floats  # With the noise of the estimate, shape (k,)
    tails: Floats  # What one noise sd more in the total of each tail adds, shape (tails, k)


@dataclass(frozen=True)
class CellLaw:
    """Estimates and the covariance of their error: of the noise, and of sampling.

    The part of the noise that is of the values of cells is in `values` too. Coefficients have the
    noise of their `curvature`.
    """

    params: Floats
    noise: Floats
    sampling: Floats
    values: ValueNoise | None = None
    curvature: CurvatureNoise | None = None

    def distances(self, sds: float, *, full: bool) -> tuple[Floats, Floats]:
        """Return how far below and above the estimates their intervals end.

        `sds` is how many standard deviations of a normal error that is. The estimate is as far from
        an end as its error may be if that is the value; infinite where the curvature may be 0.
        """
        at_estimates = self._distances_at(np.zeros_like(self.params), sds, full=full)
        if self.curvature is None:
            return at_estimates
        below, above = at_estimates
        below = _crossing_of(lambda x: self._distances_at(-x, sds, full=full)[0], below)
        above = _crossing_of(lambda x: self._distances_at(x, sds, full=full)[1], above)
        is_bounded = self.are_bounded(sds)
        return np.where(is_bounded, below, np.inf), np.where(is_bounded, above, np.inf)

    def are_bounded(self, sds: float) -> NDArray[np.bool_]:
        """Return of which coefficients the curvature is so many standard deviations above 0."""
        assert self.curvature is not None
        variances, zero = np.diag(self.curvature.variance), np.zeros_like(self.params)
        values = self.values and replace(self.values, tails=self.curvature.tails)
        law = CellLaw(zero, variances, np.zeros_like(variances), values)
        return np.asarray(law._distances_at(zero, sds, full=False)[0] < 1)

    def roots(self) -> Floats:
        """Return signed numbers of standard deviations at which intervals end at 0."""
        size, is_above = np.where(self.params == 0, 1.0, np.abs(self.params)), self.params > 0

        def solved(sds: Floats) -> Floats:
            below, above = self._distances_at(-self.params, sds, full=True)
            return np.asarray(size * sds / np.where(is_above, below, above))

        with np.errstate(divide="ignore", invalid="ignore"):
            start = size / np.sqrt(self._variances_at(-self.params, full=True))
            return np.asarray(np.sign(self.params) * _crossing_of(solved, start))

    def _distances_at(
        self, offsets: Floats, sds: float | Floats, *, full: bool
    ) -> tuple[Floats, Floats]:
        """Return how far estimates may be above and below values at `offsets` from them.

        An estimate errs to one side by what the total of a tail may be too large, to the other by
        what it may be too small. Squares of these distances add up, as variances do; but as all
        tails have the same laws, the totals may be too large together.
        """
        variance = self._variances_at(offsets, full=full)
        if self.values is None:
            return (half := sds * np.sqrt(variance)), half
        tails = self.values.tails
        if self.curvature is not None:
            tails = tails - offsets * self.curvature.tails
        up, down = np.maximum(tails, 0.0), np.maximum(-tails, 0.0)
        rest = np.maximum(variance - _squares(up) - _squares(down), 0.0)
        largest = np.minimum(self.values.largest[:, None] / sds, 1.0)
        together = ((largest * less).sum(axis=0) ** 2 for less in (up, down))
        below, above = (
            sds * np.sqrt(rest + np.minimum(most, _squares(less)) + _squares(more))
            for most, less, more in zip(together, (up, down), (down, up), strict=True)
        )
        return below, above

    def _variances_at(self, offsets: Floats, *, full: bool) -> Floats:
        """Return the variances that estimates have if the values are at `offsets` from them."""
        variance = np.diagonal(self.noise + self.sampling if full else self.noise)
        if self.curvature is None:
            return variance
        slope = offsets * self.curvature.variance - 2 * self.curvature.covariance
        return np.asarray(np.maximum(variance + offsets * slope, 0.0))


def _crossing_of(function: Callable[[Floats], Floats], start: Floats) -> Floats:
    """Return the numbers x with ``function(x) = x``, as `function` exceeds smaller ones alone."""
    low, high = np.zeros_like(start), start
    for _ in range(DOUBLINGS):
        is_beyond = function(high) > high
        if not is_beyond.any():
            break
        low, high = np.where(is_beyond, high, low), np.where(is_beyond, 2 * high, high)
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        is_below = function(middle) > middle
        low, high = np.where(is_below, middle, low), np.where(is_below, high, middle)
    return high


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
    spread = np.eye(len(is_detected))[:, is_detected]
    values = law.values and law.values.through(spread)
    curvature = law.curvature and CurvatureNoise(
        spread @ law.curvature.variance,
        spread @ law.curvature.covariance,
        law.curvature.tails @ spread.T,
    )
    return CellLaw(params, noise, sampling, values, curvature)


def regression(
    table: ReleasedCells,
    columns: Floats,
    response: Floats,
    link: Link,
    nodes: Nodes,
    by_values: Callable[[PointScores, int], ValueMoves],
) -> CellLaw:
    """Estimate a generalised linear model by its score equations; points with nan do not count.

    `columns` and `response` are by point of `nodes`. Columns whose sum of squares is not
    distinguished from 0 are left out: nan. Of a function of columns and response, nan where one is,
    `by_values` gives how the sums move with the values of cells.
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

    def errors(x: Floats, y: Floats) -> Floats:
        """Return what moves the coefficients, then what moves their curvature."""
        along = x @ inverse
        eta = x @ params
        curved = link.slope(eta)[:, None] * along**2 / np.diagonal(inverse)
        return np.hstack([along * (y - link.mean(eta))[:, None], curved])

    of_cells = nodes.gathered(np.where(is_complete[:, None], errors(design, y), 0.0))
    values, by_rows, by_points = by_values(
        lambda x, y: errors(x[:, is_detected], y), of_cells.shape[1]
    )
    law = law_of(params, table.noise(of_cells + by_rows) + values.covariance, values)
    of_rows = (nodes.at(of_cells) + by_points)[:, : len(params)]
    law = replace(law, sampling=sampled(of_rows, np.maximum(model, 0.0), table.effect))
    return with_hidden(identified(law), is_detected)


def law_of(params: Floats, covariance: Floats, values: ValueNoise | None = None) -> CellLaw:
    """Return the law of coefficients without sampling.

    `covariance` is of the noise of the coefficients, then of that of their curvature; `values`, if
    there are any, of both.
    """
    k = len(params)
    tails = np.zeros((0, k)) if values is None else values.tails[:, k:]
    variance = np.diagonal(covariance)[k:]
    curvature = CurvatureNoise(variance, np.diagonal(covariance, k), tails)
    first = values and values.through(np.eye(k, 2 * k))
    return CellLaw(params, covariance[:k, :k], np.zeros((k, k)), first, curvature)


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
    scale = np.sqrt(np.maximum(np.diagonal(information), 0.0))
    if not (np.isfinite(information).all() and scale.min() > 0):
        return -math.inf
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
) -> tuple[CellLaw, Floats, float]:
    """Estimate least squares of the last column from released tables of two variables alone.

    Sums of products of two columns are linear in these tables, so the normal equations are
    unbiased and their noise is known. Returns the estimate without its sampling variance, the
    inverse of the information, and the sum of squared residuals, nan where noise hides it.
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
    along = np.vstack([inverse, np.zeros(size)])
    left = np.hstack([along, along])
    residual = np.repeat(of_residual[:, None], size, axis=1)
    right = np.hstack([residual, along / np.diagonal(inverse)])
    values, by_rows = _noise_of_values(released, parts, left, right)
    tables = _products(parts, left, right)
    for variable, more in by_rows.items():
        tables[(variable,)] = tables[(variable,)] + more
    law = law_of(params, noise_of(tables, released) + values.covariance, values)
    squares, once = float(of_residual @ products @ of_residual), residual[:, :1]
    hidden = math.sqrt(noise_of(_products(parts, once, once), released)[0, 0])
    return law, inverse, squares if squares > DETECTION_SDS * hidden else math.nan


def _noise_of_values(
    released: Residuals, parts: Sequence[Scores], left: Floats, right: Floats
) -> tuple[ValueNoise, dict[int, Floats]]:
    """Return the noise by cell values of ``(Σ_a left_ak z_a)(Σ_b right_bk z_b)``, summed over rows.

    And by how much more they move with the rows of each level of a variable than by its values.
    """
    total, by_rows = no_noise(left.shape[1]), dict[int, Floats]()
    for variable in {part.variable for part in parts if part.cells.noise.any()}:
        inside = [k for k, part in enumerate(parts) if part.variable == variable]
        cells = parts[inside[0]].cells
        points = np.array([parts[k].points for k in inside])
        sums = np.zeros((len(cells.rows), len(parts)))
        for k, part in enumerate(parts):
            if part.variable != variable:
                table = released.table(tuple(sorted((variable, part.variable))))
                by_level = (table if variable < part.variable else table.T) @ part.values
                sums[:, k] = by_level[:-1]
        by_left, by_right = points.T @ left[inside], points.T @ right[inside]
        at_points = by_left * by_right * cells.rows[cells.cell][:, None]
        beside, slopes = (
            by_left * (of @ right)[cells.cell] + by_right * (of @ left)[cells.cell]
            for of in (sums, cells.slopes @ sums)
        )
        at_points = at_points + beside
        total = total + ValueNoise.of(cells.by_sums(at_points, slopes), cells.largest)
        total = total + ValueNoise.of(_bent(released, parts, left, right, inside))
        more = cells.at_ends.by_sums(at_points, slopes)
        by_rows[variable] = np.append(more, np.zeros((1, left.shape[1])), axis=0)
    return total, by_rows


def _bent(
    released: Residuals, parts: Sequence[Scores], left: Floats, right: Floats, inside: Sequence[int]
) -> Floats:
    """Return how these sums move if slopes bend at the ends of the variable of some parts.

    By end; squares are less those of the noise (Theorem 115 c).
    """
    cells, moves = parts[inside[0]].cells, [np.zeros(left.shape[1])]
    by_part = cells.by_bends(np.column_stack([parts[k].points for k in inside]))
    pairs = [(k, j) for k, j in product(inside, range(len(parts))) if j not in inside]
    for end in np.flatnonzero(cells.bends.any(axis=1)):
        tables = dict[Term, Floats]()
        for k, j in pairs:
            first, second = parts[k].variable, parts[j].variable
            bent = np.append(by_part[end, inside.index(k)] * cells.bends[end], 0.0)
            weights = np.multiply.outer(bent, parts[j].values)
            weights = (weights if first < second else weights.T).reshape(-1, 1)
            term, factors = tuple(sorted((first, second))), left[k] * right[j] + right[k] * left[j]
            tables[term] = tables.get(term, 0.0) + weights * factors
        total = sum(of.T @ released.table(term).ravel() for term, of in tables.items())
        rest = np.maximum(total**2 - np.diagonal(noise_of(tables, released)), 0.0)
        moves.append(np.copysign(np.sqrt(rest), total))
    return np.array(moves)


def identified(law: CellLaw) -> CellLaw:
    """Hide coefficients that have no bounded interval of 95 %."""
    hide = np.where(law.are_bounded(CLEAR_SDS), 1.0, np.nan)
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
        """Return where the distribution, made monotone, first reaches a probability."""
        edges, values = self.edges, np.maximum.accumulate(self.values)
        k = int(np.searchsorted(values, prob, side="left"))
        if k == 0 or k == len(edges):
            number = float(edges[min(k, len(edges) - 1)])
        else:
            fraction = (prob - values[k - 1]) / (values[k] - values[k - 1])
            number = float(edges[k - 1] + fraction * (edges[k] - edges[k - 1]))
        if self.step != 1.0:
            return number
        return float(np.clip(round(number), edges[0] + 0.5, edges[-1] - 0.5))

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


def distribution(table: ReleasedCells, edges: Floats, above: Floats, below: Floats) -> Distribution:
    """Return the distribution of a number within a group.

    `above` has a column for each inner edge, 1 for cells of the group up to it; `below`, shape
    (cells, 1), is 1 for all cells of the group in which the number is not missing.
    """
    law = ratios(table, above, np.repeat(below, above.shape[1], axis=1))
    variances = (np.diagonal(law.noise), np.diagonal(law.noise + law.sampling))
    noise_sd, full_sd = (
        np.concatenate([[0.0], np.sqrt(variance), [0.0]]) for variance in variances
    )
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
