"""Gaussian noise on moments about a released line, for least squares with few rows.

Theorem
    Every round is a Gaussian mechanism, given what the rounds before released; their multipliers
    are fixed beforehand, so together they satisfy (ε, δ) with the exact trade-off of one Gaussian
    mechanism, or ρ-zCDP: ``1/m² = Σ 1/m_j²`` (docs/theory.md, Theorem 55). The coordinates, radii
    and lines of a round, and whether it reads all rows or those chosen by coins (Theorem 96), are
    functions of released values and public facts.
Sensitivity
    In each round a row is an integer vector that depends on that row and released values alone.
    A row of weight q is √q times as long, and its powers count q times: no two differ by more than
    rows of weight 0 and 1 do.
    Sums of powers have the sensitivity of :func:`dpmodels.mechanisms.add_noise.gaussian_count`;
    numbers of rows by size, one cell in each of d columns, √(2d), or √d for a row more; numbers of
    rows by length in two tables 2, or √2; moments of scores, in Frobenius norm, √2, or 1
    (:func:`dpmodels.statistics.score_moments.score_moments`); sizes of residuals along the terms
    1, or ½ (:func:`dpmodels.statistics.score_moments.residual_sizes`).
Noise
    Independent discrete Gaussians of at least 2²⁰ steps, by :data:`SHARES` of the budget: on sums
    of each column and its square, twice, on numbers of rows by the size of each column about its
    mean, on moments of terms and residuals in three rounds, with σ on the diagonal and σ/√2 off it,
    on sizes of residuals along the terms, and on numbers of rows by length of the terms, and by
    residual on both sides of the line. Each of the first two rounds of moments gives a better line,
    residual sd and axes; the result is made of the last.
Numerics
    exact: in every round an integer statistic and integer noise of exact law; floating point is
    used between rounds on released values only.
Source
    This package. Weights for long terms are those of Mallows; see Krasker and Welsch (1982),
    "Efficient bounded-influence regression estimation", JASA 77. Noise in X'X is multiplied by the
    coefficients that are left, which are near 0 about a released line: the noise in a coefficient
    is then that of the score. Axes towards rare levels and far rows are shortened to keep them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import ClassVar, NamedTuple

import numpy as np

from dpmodels.design import Scaling
from dpmodels.formula import Block
from dpmodels.formula.values import Category
from dpmodels.mechanisms.add_noise import (
    ROUND_UP,
    SMALLEST_SCALE,
    NoisyMoments,
    add_noise,
    gaussian_count,
    hand_over,
    noised_rows,
    noised_symmetric,
)
from dpmodels.mechanisms.measures import OfPasses
from dpmodels.mechanisms.protocol import Facts, Plan
from dpmodels.mechanisms.regression.product_moments import put_products
from dpmodels.noise import Entropy
from dpmodels.noise.lattice import choose_lattice
from dpmodels.postprocess import score_rounds
from dpmodels.postprocess.ellipsoid import Cells
from dpmodels.postprocess.score_rounds import LENGTHS, RESIDUALS, Limits, kept_fraction, kept_whole
from dpmodels.privacy import GaussianEvent, Guarantee, gaussian_multiplier, split_gaussian
from dpmodels.released import Ball, MechanismInfo, MomentNoise, MomentsRelease
from dpmodels.statistics import Passes, Statistic
from dpmodels.statistics.passes import column_counts
from dpmodels.statistics.score_moments import (
    ColumnPowers,
    power_sums,
    residual_sizes,
    score_lengths,
    score_moments,
)
from dpmodels.statistics.statistic import measured_as
from dpmodels.typing import Flags, Floats, Indices

# Of the budget: choices, within 10 % of the best on simulated rows of many shapes.
SHARES = {
    "powers": 0.04,
    "columns": 0.02,
    "narrowed": 0.03,
    "rough": 0.13,
    "better": 0.18,
    "sizes": 0.04,
    "lengths": 0.03,
    "final": 0.53,
}
# A choice: bounds may be thousands of times too wide.
OCTAVES = 24
# Choices for rounds that read some of the rows: how many they are at least, the noise in a count of
# them, and that in an entry of their moments, both as fractions of all.
FEWEST_ROWS, COUNT_ERROR, MOMENT_ERROR = 100_000, 0.005, 0.005
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
class Scores(OfPasses):
    """A line first, then the moments of terms and residuals about it.

    Made for few rows, many terms and factors. Reads the rows eight times. Weighted rows are
    moments of weighted least squares. Of a large table with a public number of rows five of the
    eight rounds read one row in k, by coins, about 100,000 or as many as their noise asks for,
    where the first round tells all variances from noise.

    Examples
    --------
    >>> from dpmodels.mechanisms import Facts
    >>> from dpmodels.privacy import ZCDP, adjacency
    >>> plan = Scores().plan(Facts(3, adjacency("replace"), centred=True), ZCDP(0.5))
    >>> len(plan.events), plan.events[-1].describe()
    (8, 'Gaussian, multiplier 1.37361')
    """

    info: ClassVar[MechanismInfo] = MechanismInfo(
        name="scores",
        theorem="(eps, delta)-DP or rho-zCDP, Gaussian rounds composed exactly",
        sensitivity="L2 of each round: sums, numbers by size, moments of terms and residuals",
        noise="discrete Gaussian, variance s^2 on the diagonal and s^2/2 off it",
        numerics="exact lattice",
        source="moments about a released line in released axes; this package",
    )

    def plan(self, facts: Facts, guarantee: Guarantee) -> Plan:
        """Divide a budget between the rounds; BudgetError for a pure guarantee."""
        budget_multiplier = gaussian_multiplier(guarantee) * ROUND_UP
        multipliers = split_gaussian(budget_multiplier, list(SHARES.values()))
        scales = {name: m * ROUND_UP for name, m in zip(SHARES, multipliers, strict=True)}
        changed = 2 if facts.adjacency.n_public else 1
        for name in ("powers", "narrowed"):
            scales[name] *= gaussian_count(facts, 1.0).total
        scales["lengths"] *= math.sqrt(2 * changed)
        scales["columns"] *= math.sqrt(changed * facts.columns)
        for name in ("rough", "better", "final"):
            scales[name] *= math.sqrt(changed)
        scales["sizes"] *= changed / 2
        scales["whole"] = budget_multiplier
        lattice = choose_lattice(facts.columns, max(scales.values()))
        events = tuple(map(GaussianEvent, multipliers))
        return Plan(guarantee, events, lattice, facts, scales=scales)

    def release(self, statistic: Statistic, plan: Plan, entropy: Entropy) -> MomentsRelease:
        """Read and add noise, round by round."""
        passes = measured_as(Passes, statistic, "moments")
        columns, chosen = _located(passes, plan, entropy, _fewest(passes, plan))
        mean, covariance, weight, rows, response, _, fraction, variances = columns
        # Rows of a mean weight of 1, as the coordinates and radii are for.
        gain = math.sqrt(rows / weight)
        units = _units(passes, plan) * gain
        radius, cut = score_rounds.radii(plan.facts.columns, plan.scales["whole"], rows)
        square = score_rounds.LONGEST**2 * plan.facts.columns
        noise = math.sqrt(2) * plan.scales["final"] * square / rows
        levels = factor_levels(passes.blocks[:-1], passes.scaling)
        far_rows = score_rounds.FarRows(levels, variances, noise)
        coordinates = score_rounds.within_reach(
            score_rounds.first_coordinates(mean, covariance), far_rows, radius
        )
        for name, learn in (
            ("rough", score_rounds.rough_coordinates),
            ("better", score_rounds.better_coordinates),
        ):
            transform = coordinates.transform(radius, cut) * units
            noisy, _ = _moments(chosen, transform, radius, name, plan, entropy)
            coordinates = learn(coordinates, _means(noisy, rows * fraction, radius, cut))
            coordinates = score_rounds.within_reach(coordinates, far_rows, radius)
        transform = coordinates.transform(radius, cut) * units
        uneven = _unevenness(chosen, transform, plan, entropy)
        left = response - score_rounds.explained_variance(coordinates, covariance)
        terms, residuals = _lengths(passes, coordinates, left, units, plan, entropy)
        multiplier = plan.scales["final"] / math.sqrt(1 + plan.facts.adjacency.n_public)
        limits = score_rounds.chosen_limits(terms, residuals, uneven, rows, multiplier)
        radius, cut = limits.radius, limits.cut
        transform = coordinates.transform(radius, cut) * units
        noisy, n_rows = _moments(passes, transform, radius, "final", plan, entropy)
        public = passes.scaling
        middle = np.append(coordinates.centre, coordinates.line[0])
        middle[-1] += coordinates.line[1:] @ coordinates.centre
        shortened, shortened_sd = terms.beyond(radius / math.sqrt(coordinates.parameters))
        ball = Ball(
            public.centre + public.scale * middle,
            radius * math.sqrt(2) / gain,
            shortened,
            shortened_sd,
            coordinates.axes(radius, cut),
            weight,
            *_kept(noisy, limits, rows),
            limits.shift * radius / cut,
            np.append(coordinates.spread, 1.0),
            limits.skew * radius / cut,
            limits.one_sided,
        )
        noisy = _without_gain(noisy, gain)
        return hand_over(self.info, plan, noisy, n_rows, ball=ball)


def _fewest(passes: Passes, plan: Plan) -> float:
    """Return how many rows say well enough where the rows lie, by the noise of the rounds."""
    if passes.weighted:
        return math.inf
    counts, moments = plan.scales["columns"], plan.scales["rough"] * 2 * (plan.facts.columns + 1)
    return max(FEWEST_ROWS, counts / COUNT_ERROR, moments / MOMENT_ERROR)


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
    """Release where columns lie."""
    return _located(passes, plan, entropy, math.inf)[0]


def _located(
    passes: Passes, plan: Plan, entropy: Entropy, fewest: float
) -> tuple[ColumnLocations, Passes]:
    """Release where columns lie, and return passes for rounds that only look for the rows.

    If the first sums tell all variances from noise these read rows chosen by coins, `fewest`
    expected; docs/theory.md, Theorem 96.
    """
    ranges = column_ranges(passes.blocks, passes.scaling)
    first = released_powers(passes, ranges, "powers", plan, entropy)
    is_resolved = bool((first.variance >= WELL_RESOLVED * first.variance_noise).all())
    chosen = passes.thinned(fewest, entropy) if is_resolved else passes
    distance, inner, rows = column_distances(chosen, first.mean, plan, entropy)
    narrow = np.minimum(np.maximum(distance, first.noise) ** 2, first.variance)
    variance = np.where(first.hidden, narrow, first.variance)
    second = released_powers(
        chosen, ranges.narrowed(first.mean, variance), "narrowed", plan, entropy
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
    passes: Passes, ranges: ColumnRanges, name: str, plan: Plan, entropy: Entropy
) -> PowerLocations:
    """Release the sums of columns and of their squares within ranges."""
    scale, unit = plan.scales[name], gaussian_count(plan.facts, 1.0)
    finer = choose_lattice(len(ranges.column), scale)
    exact, n_rows = passes.measured(power_sums, ranges.powers, finer).cross()
    steps = max(scale * finer.radius, SMALLEST_SCALE)
    count, _ = noised_rows(exact[:1], scale * unit.rows / unit.total * finer.radius, entropy)
    rows = max(float(count[0]) / finer.radius, 1.0)
    if plan.facts.adjacency.n_public:
        rows = max(min(rows, float(n_rows)), 1.0)
    means = add_noise(exact[1:], steps, entropy) / finer.steps * ranges.radius / rows
    noise = steps / finer.steps * ranges.radius / rows / ranges.weight
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
    passes: Passes, centre: Floats, plan: Plan, entropy: Entropy
) -> tuple[Floats, Floats, float]:
    """Return by column distances that most rows are within, and beyond, and the rows' number."""
    public = passes.scaling
    farthest = public.row_norm + float(np.linalg.norm(centre))
    about = replace(public, centre=public.centre + public.scale * centre, row_norm=farthest)
    exact, _ = passes.rescaled(about).measured(column_counts, OCTAVES).cross()
    counts, noise_sd = noised_rows(exact.ravel(), plan.scales["columns"], entropy)
    within = np.cumsum(counts.reshape(exact.shape), axis=1)
    rows = max(float(within[:, -1].mean()), 1.0)
    distances = farthest * 2.0 ** (-np.arange(OCTAVES, -1, -1) / 2)
    within, noise = within / rows, noise_sd / rows
    outer = score_rounds.radius_of_most(distances, within, noise)
    return outer, score_rounds.radius_of_few(distances, within, noise), rows


def _unevenness(passes: Passes, transform: Floats, plan: Plan, entropy: Entropy) -> Floats:
    """Return by how much more residuals vary a standard deviation of z up, shape (terms,).

    In units of their size, at most 1 in all, and 0 for all terms where noise hides it.
    """
    finer = choose_lattice(plan.facts.columns + 1, plan.scales["sizes"])
    exact, _ = passes.measured(residual_sizes, transform, finer).cross()
    steps = max(plan.scales["sizes"] * finer.radius**2, SMALLEST_SCALE)
    sizes = noised_rows(exact, steps, entropy)[0]
    size = max(float(sizes[0]), steps)
    uneven = sizes[1:] / size
    noise = score_rounds.RESOLVED_SKEW * (len(sizes) - 1) * (steps / size) ** 2
    square = max(float(uneven @ uneven), noise)
    return np.asarray(uneven * math.sqrt(1 - noise / square) / max(math.sqrt(square), 1.0))


def _lengths(
    passes: Passes,
    coordinates: score_rounds.ScoreCoordinates,
    variance: float,
    units: Floats,
    plan: Plan,
    entropy: Entropy,
) -> tuple[Cells, score_rounds.SignedCells]:
    """Count rows by the length of (1, z), in units of its root mean square, and by residual.

    `variance` is that of all residuals, in scaled units.
    """
    size = math.sqrt(coordinates.parameters)
    limits = (tuple((table[:-1] / math.sqrt(2)).tolist()) for table in (LENGTHS, RESIDUALS))
    transform = coordinates.transform(size, 1.0) * units
    exact, _ = passes.measured(score_lengths, transform, *limits).cross()
    counts, noise_sd = noised_rows(exact, plan.scales["lengths"], entropy)
    terms, above, below = np.split(counts, [len(LENGTHS), len(LENGTHS) + len(RESIDUALS)])
    largest = 2 * float(passes.reach[-1]) / coordinates.residual_sd
    return Cells(LENGTHS, terms, noise_sd), score_rounds.SignedCells(
        Cells(RESIDUALS, above, noise_sd),
        Cells(RESIDUALS, below, noise_sd),
        largest,
        variance / coordinates.residual_sd**2,
    )


def _units(passes: Passes, plan: Plan) -> Floats:
    """Return what entries of a row of the unit ball on the lattice are in scaled units."""
    unit = np.full(plan.facts.columns + 1, passes.scaling.row_norm)
    unit[1:] *= plan.lattice.radius / plan.lattice.steps
    unit[0] = 1.0
    return unit


def _moments(
    passes: Passes, transform: Floats, radius: float, name: str, plan: Plan, entropy: Entropy
) -> tuple[NoisyMoments, int]:
    """Release the moments of (w, w z) and w e in coordinates, in the units of their ball."""
    finer = choose_lattice(plan.facts.columns + 1, plan.scales[name])
    exact, n_rows = passes.measured(score_moments, transform, finer).cross()
    steps = max(plan.scales[name] * finer.radius**2, SMALLEST_SCALE)
    noisy = noised_symmetric(exact, steps, steps / math.sqrt(2), entropy) / finer.steps**2
    sd, longest = steps / finer.steps**2, radius * math.sqrt(2)
    law = MomentNoise(sd * longest**2, sd * longest / math.sqrt(2), sd, sd / math.sqrt(2))
    count, total = float(noisy[0, 0]) * longest**2, noisy[0, 1:] * longest
    return NoisyMoments(count, total, noisy[1:, 1:], law), n_rows


def _without_gain(noisy: NoisyMoments, gain: float) -> NoisyMoments:
    """Return moments of rows over a released number, in units of a ball that much smaller."""
    assert noisy.total is not None
    noise = noisy.noise
    law = replace(noise, count=noise.count / gain**2, mean=noise.mean / gain)
    return NoisyMoments(noisy.count / gain**2, noisy.total / gain, noisy.second, law)


def _kept(noisy: NoisyMoments, limits: Limits, rows: float) -> tuple[float, float]:
    """Return the fraction of residuals that were not cut, by their mean square and by counts.

    And an sd of what it is along a direction of the terms, where it may be another.
    """
    square = max(float(noisy.second[-1, -1]) * 2 * limits.cut**2 / rows, 0.0)
    normal = np.array(kept_whole(square, limits.cut))
    kept, sd = kept_fraction(normal, np.array(limits.kept), np.array(limits.kept_sd))
    return float(kept), score_rounds.UNEVEN * float(sd)


def _means(
    noisy: NoisyMoments, rows: float, radius: float, cut: float
) -> score_rounds.ScoreMoments:
    """Return released moments as means over rows, the residual in its own unit."""
    assert noisy.total is not None
    longest, share = radius * math.sqrt(2), cut / radius
    size = len(noisy.second)
    gram = np.empty((size, size))
    gram[0, 0] = noisy.count
    gram[0, 1:] = gram[1:, 0] = noisy.total[:-1] * longest
    gram[1:, 1:] = noisy.second[:-1, :-1] * longest**2
    score = np.append(noisy.total[-1] * longest, noisy.second[:-1, -1] * longest**2) * share
    off = noisy.noise.off * longest**2
    square = max(float(noisy.second[-1, -1]) * (longest * share) ** 2 / rows, 0.0)
    kept_fraction = kept_whole(square, cut)
    return score_rounds.ScoreMoments(
        gram / rows,
        score / rows / kept_fraction,
        square / kept_fraction**2,
        off / rows,
        off * share / rows / kept_fraction,
        math.sqrt(2) * off * (share / kept_fraction) ** 2 / rows,
    )
