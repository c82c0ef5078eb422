"""Where columns lie, by noisy sums of their powers and numbers of rows by size.

The first rounds of moments about a line, and of the location of rows in a generalised linear model:
sums of each column and its square in the declared ranges, numbers of rows by the distance of each
column from its mean, and the sums once more in narrower ranges. Each is released with the noise
that a plan has for it; see :mod:`dpmodels.mechanisms.regression.scores` for sensitivities.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from dpmodels.design import Scaling
from dpmodels.formula import Block
from dpmodels.formula.values import Category
from dpmodels.mechanisms.add_noise import (
    GAUSSIAN,
    LAPLACE,
    ROUND_UP,
    CountNoise,
    Law,
    add_noise,
    gaussian_count,
    laplace_count,
    noised_rows,
)
from dpmodels.mechanisms.protocol import Plan
from dpmodels.mechanisms.regression.product_moments import put_products
from dpmodels.noise import Entropy
from dpmodels.noise.lattice import choose_lattice
from dpmodels.postprocess import score_rounds
from dpmodels.statistics import Passes
from dpmodels.statistics.passes import column_counts
from dpmodels.statistics.score_moments import ColumnPowers, power_sums
from dpmodels.typing import Flags, Floats, Indices

# A choice: bounds may be thousands of times too wide.
OCTAVES = 24
# A choice: a distance that so many rows are within is taken for a standard deviation.
MOST_ROWS = 0.75
# A choice: the residual is in units of the response, whose variance is worth twice the budget.
RESPONSE_WEIGHT = 2.0
# A choice: the second sums are of ranges of so many released sds on both sides.
NARROWED = 3.0
# A choice: a variance, with one sd of its noise, below so many of them is read from numbers of rows
# by size instead, but is not taken for less than the square of so many sds of noise in the mean.
RESOLVED, MEAN_ERRORS = 4.0, 2.0
# A choice: rounds may read some of the rows where all variances are so many sds of their noise.
WELL_RESOLVED = 10.0
# A choice: a variance in a whole range is at least what it is less so many sds of its noise.
CERTAIN = 3.0
# A choice: the noise of a variance counts for so many of its sds where the variance is smaller.
LEAST_SPREAD = 1.5


@dataclass(frozen=True)
class ColumnRanges:
    """Ranges of the scaled columns, and the map in which they are summed.

    A column is counted from the middle of its range in half-ranges, u, so that it is in [-1, 1]. A
    number has u and u² - ½ in the map; of a level's column, which takes two values, u is enough.
    """

    column: Indices  # Shape (entries,): which column an entry of the map is made of
    square: Flags  # Whether it is u² - ½
    shift: Floats  # Of u, subtracted
    radius: float  # Of the ball that the map lies in, weights included
    middle: Floats  # Shape (columns,): of each range, in scaled units
    half: Floats  # Shape (columns,): half its length
    weight: Floats  # Shape (columns,): by which the entries of a column are multiplied
    # Where each factor's columns begin, and what they are, in u, at each of its levels.
    factors: tuple[tuple[int, Floats], ...]

    @property
    def powers(self) -> ColumnPowers:
        """The map, in units of its ball."""
        half = self.half[self.column]
        unit = self.weight[self.column] / self.radius
        return ColumnPowers(
            self.column,
            self.middle[self.column],
            np.where(self.square, 0.0, unit / half),
            np.where(self.square, unit / half**2, 0.0),
            unit * np.where(self.square, 0.5, self.shift),
        )

    @property
    def numbers(self) -> Indices:
        """The columns with squares."""
        return self.column[self.square]

    def narrowed(self, mean: Floats, variance: Floats) -> ColumnRanges:
        """Return ranges of :data:`NARROWED` released sds about the means of numbers."""
        middle, half, at = self.middle.copy(), self.half.copy(), self.numbers
        middle[at] = mean[at]
        half[at] = np.minimum(NARROWED * np.sqrt(variance[at]), half[at])
        return replace(self, middle=middle, half=half)


def column_ranges(blocks: tuple[Block, ...], public: Scaling) -> ColumnRanges:
    """Return the public ranges of coded columns, the response last."""
    start, squared_radius = 0, 0.0
    middles, halves, weights, entries, factors = [], [], [], [], []
    for at, block in enumerate(blocks):
        weight = RESPONSE_WEIGHT if at == len(blocks) - 1 else 1.0
        columns = slice(start, start + len(block.names))
        points = (block.points - public.centre[columns]) / public.scale[columns]
        low, high = points.min(axis=0), points.max(axis=0)
        half = np.where(high > low, (high - low) / 2, 1.0)
        points = (points - (low + high) / 2) / half
        categorical = all(isinstance(factor, Category) for factor in block.factors)
        shift = points.mean(axis=0) if categorical else np.zeros(len(half))
        if categorical and _independent(points):
            factors.append((start, points))
        squared = float(((points - shift) ** 2).sum(axis=1).max())
        for place in range(len(half)):
            entries.append((start + place, False, shift[place]))
            if not categorical or len(np.unique(points[:, place].round(9))) > 2:
                entries.append((start + place, True, 0.0))
                squared += 0.25
        squared_radius += weight**2 * squared
        middles.append((low + high) / 2)
        halves.append(half)
        weights.append(np.full(len(half), weight))
        start = columns.stop
    column, square, shift = zip(*entries, strict=True)
    return ColumnRanges(
        np.array(column, dtype=np.intp),
        np.array(square, dtype=np.bool_),
        np.array(shift),
        math.sqrt(squared_radius) * ROUND_UP or 1.0,
        np.concatenate(middles),
        np.concatenate(halves),
        np.concatenate(weights),
        tuple(factors),
    )


def factor_levels(blocks: tuple[Block, ...], public: Scaling) -> score_rounds.Levels:
    """Return the scaled columns of each factor at its levels."""
    levels, start = [], 0
    for block in blocks:
        columns = slice(start, start + len(block.names))
        if all(isinstance(factor, Category) for factor in block.factors):
            levels.append(
                (columns, (block.points - public.centre[columns]) / public.scale[columns])
            )
        start = columns.stop
    return levels


def _independent(points: Floats) -> bool:
    """Whether shares of the levels follow from the means of their columns."""
    levels, columns = points.shape
    return levels == columns + 1 and bool(np.linalg.matrix_rank(points[1:] - points[0]) == columns)


class ColumnLocations(NamedTuple):
    """Released means and a rough covariance of the scaled columns.

    `weight` is that of all rows and `rows` their number: the same without weights. `response` is
    the variance of the response within its bounds, nan where noise hides it, `noise` that of the
    variances, and `fraction` that of the rows which the second sums are of. `variances` are those
    of terms that are numbers in their whole ranges, less some of their noise.
    """

    mean: Floats
    covariance: Floats
    weight: float
    rows: float
    response: float
    noise: Floats
    fraction: float
    variances: Floats


class PowerLocations(NamedTuple):
    """Released means, and variances that are not smaller than noise allows, in scaled units."""

    mean: Floats
    variance: Floats
    hidden: Flags  # Whether the variance is mostly noise
    noise: Floats  # Of each mean
    variance_noise: Floats  # Of each variance
    weight: float  # Of all rows: their number, if all weights are 1
    n_rows: int  # That were read


def released_columns(passes: Passes, plan: Plan, entropy: Entropy) -> ColumnLocations:
    """Release where columns lie, with Gaussian noise."""
    return locate(passes, plan, entropy, math.inf, GAUSSIAN)[0]


def locate(
    passes: Passes, plan: Plan, entropy: Entropy, fewest: float, law: Law
) -> tuple[ColumnLocations, Passes]:
    """Release where columns lie, and return passes for rounds that only look for the rows.

    If the first sums tell all variances from noise these read rows chosen by coins, `fewest`
    expected; docs/theory.md, Theorem 96.
    """
    ranges = column_ranges(passes.blocks, passes.scaling)
    first = released_powers(passes, ranges, "powers", plan, entropy, law)
    is_resolved = bool((first.variance >= WELL_RESOLVED * first.variance_noise).all())
    chosen = passes.thinned(fewest, entropy) if is_resolved else passes
    distance, inner, rows = column_distances(chosen, first.mean, plan, entropy, law)
    narrow = np.minimum(np.maximum(distance, first.noise) ** 2, first.variance)
    variance = np.where(first.hidden, narrow, first.variance)
    second = released_powers(
        chosen, ranges.narrowed(first.mean, variance), "narrowed", plan, entropy, law
    )
    at = ranges.numbers
    mean = first.mean.copy()
    mean[at] = second.mean[at]
    variance[at] = _counted_variances(first, second, distance, inner)[at]
    covariance = np.diag(variance)
    shares = _put_factors(covariance, ranges, first)
    put_products(covariance, passes.blocks[:-1], passes.scaling, mean, shares)
    rows = max(rows, first.weight) if passes.weighted else first.weight
    response = math.nan if first.hidden[-1] else float(first.variance[-1])
    has_rows = plan.facts.adjacency.n_public and first.n_rows > 0
    fraction = second.n_rows / first.n_rows if has_rows else 1.0
    # Of rows in a narrower range a variance is not larger.
    bounds = [part.variance - CERTAIN * part.variance_noise for part in (first, second)]
    certain = np.where(np.isin(np.arange(len(mean)), at), np.maximum(*bounds), 0.0)
    located = mean, covariance, first.weight, rows, response, second.variance_noise, fraction
    return ColumnLocations(*located, certain[:-1]), chosen


def _counted_variances(
    first: PowerLocations, second: PowerLocations, distance: Floats, inner: Floats
) -> Floats:
    """Return second variances; where noise hides one, that by the distances to the first mean.

    Where most rows are between two distances, and the second mean is so far from the first, most
    rows are on that side, and lie as closely as these two distances.
    """
    is_aside = np.abs(second.mean - first.mean) >= inner
    spread = np.where(is_aside, (distance - inner) / 2, distance)
    counted = np.maximum(spread, MEAN_ERRORS * second.noise) ** 2
    return np.where(second.hidden, np.minimum(counted, second.variance), second.variance)


def released_powers(
    passes: Passes,
    ranges: ColumnRanges,
    name: str,
    plan: Plan,
    entropy: Entropy,
    law: Law = GAUSSIAN,
) -> PowerLocations:
    """Release the sums of columns and of their squares within ranges."""
    scales = powers_noise(plan, name, ranges, law)
    finer = choose_lattice(len(ranges.column), law.room * scales.total)
    exact, n_rows = passes.measured(power_sums, ranges.powers, finer).cross()
    steps = max(scales.total * finer.radius, law.smallest)
    count, _ = noised_rows(exact[:1], scales.rows * finer.radius, entropy, law)
    rows = max(float(count[0]) / finer.radius, 1.0)
    if plan.facts.adjacency.n_public:
        rows = max(min(rows, float(n_rows)), 1.0)
    means = add_noise(exact[1:], steps, entropy, law) / finer.steps * ranges.radius / rows
    noise = law.sd * steps / finer.steps * ranges.radius / rows / ranges.weight
    square, at = ranges.square, ranges.numbers
    mean = np.clip(means[~square] / ranges.weight + ranges.shift[~square], -1.0, 1.0)
    level = np.minimum((1 + mean) / 2, (1 - mean) / 2)
    level = np.clip(np.maximum(level + noise / 4, noise / 2), 0.0, 0.5)
    variance = 4 * level * (1 - level)
    squares = means[square] / ranges.weight[at] + 0.5 - mean[at] ** 2
    # Noise in the mean counts twice as far as that is from the middle of its range.
    spread = noise * np.hypot(1, 2 * mean)
    variance[at] = np.maximum(squares + spread[at], LEAST_SPREAD * spread[at])
    hidden = np.zeros(len(mean), dtype=np.bool_)
    hidden[at] = variance[at] < RESOLVED * spread[at]
    half = ranges.half
    variance = np.clip(variance, 1e-9, 1.0) * half**2
    middle = ranges.middle + half * mean
    return PowerLocations(middle, variance, hidden, noise * half, spread * half**2, rows, n_rows)


def powers_noise(plan: Plan, name: str, ranges: ColumnRanges, law: Law) -> CountNoise:
    """Return the scales of the noise in the number of rows and in sums of powers of columns.

    A plan has the scale in the sums of Gaussian noise, but the multiplier of Laplace noise, as the
    scale depends on how many numbers are summed.
    """
    if law is LAPLACE:
        numbers = replace(plan.facts, columns=len(ranges.column))
        return laplace_count(numbers, 1 / plan.scales[name])
    scale, unit = plan.scales[name], gaussian_count(plan.facts, 1.0)
    return CountNoise(scale * unit.rows / unit.total, scale)


def _put_factors(
    covariance: Floats, ranges: ColumnRanges, released: PowerLocations
) -> dict[int, Floats]:
    """Write what released shares of its levels say of each factor's columns; return the shares."""
    shares = {}
    for start, points in ranges.factors:
        columns = slice(start, start + points.shape[1])
        half = ranges.half[columns]
        mean = (released.mean[columns] - ranges.middle[columns]) / half
        noise = float((released.noise[columns] / half).max()) / 2
        equations = np.vstack([points.T, np.ones(len(points))])
        share = np.linalg.solve(equations, np.append(mean, 1.0))
        share = np.maximum(share + noise / 2, noise)
        share /= share.sum()
        centred = (points - share @ points) * half
        covariance[columns, columns] = (centred.T * share) @ centred
        shares[start] = share
    return shares


def column_distances(
    passes: Passes, centre: Floats, plan: Plan, entropy: Entropy, law: Law = GAUSSIAN
) -> tuple[Floats, Floats, float]:
    """Return by column distances that most rows are within, and beyond, and the rows' number."""
    public = passes.scaling
    farthest = public.row_norm + float(np.linalg.norm(centre))
    about = replace(public, centre=public.centre + public.scale * centre, row_norm=farthest)
    exact, _ = passes.rescaled(about).measured(column_counts, OCTAVES).cross()
    counts, scale = noised_rows(exact.ravel(), plan.scales["columns"], entropy, law)
    within = np.cumsum(counts.reshape(exact.shape), axis=1)
    rows = max(float(within[:, -1].mean()), 1.0)
    distances = farthest * 2.0 ** (-np.arange(OCTAVES, -1, -1) / 2)
    within, noise = within / rows, law.sd * scale / rows
    outer = _radius_of_most(distances, within, noise)
    return outer, _radius_of_few(distances, within, noise), rows


def _radius_of_most(distances: Floats, within: Floats, sd: float) -> Floats:
    """Return by column a distance within which most rows are, infinite where noise hides it.

    `within` are noisy shares of the rows up to each distance, shape (columns, distances), sums of
    cells that have a noise of `sd` each.
    """
    noise = sd * np.sqrt(np.arange(1, len(distances) + 1))
    required = MOST_ROWS + noise
    reached = (within >= required) & (required < 1)
    first = np.argmax(reached, axis=1)
    return np.where(reached.any(axis=1), distances[first], math.inf)


def _radius_of_few(distances: Floats, within: Floats, sd: float) -> Floats:
    """Return by column a distance that most rows are beyond, 0 where noise hides it."""
    noise = sd * np.sqrt(np.arange(1, len(distances) + 1))
    first = np.argmax(within > np.maximum(1 - MOST_ROWS - noise, 0.0), axis=1)
    return np.where(first > 0, distances[first - 1], 0.0)
