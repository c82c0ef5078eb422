"""Centre, axes and radius of most rows of a regression, released before a fit.

A column seldom fills its declared range, and one that fills little of it may stand beside one that
fills all. Coefficients are fitted to the rows within a released radius of a released centre, along
released axes in which the terms have about unit variance and no correlation, so that noise does not
depend on how widely a column was declared. Rows farther away are left out, not shortened: where the
model holds, it holds for the rows that are left. What is released, by Gaussian noise, and the
first alone under pure noise:

- numbers of complete rows by outcome, of which a row is in one at most: L2 sensitivity √2 when a
  row is replaced, 1 when it is added or removed, L1 sensitivity 2 and 1;
- sums of columns and of their squares, three times, and numbers of rows by the size of each column,
  twice, as in :mod:`dpmodels.mechanisms.regression.scores`: in bounds a thousand times too wide
  the first mean is farther from the rows than they are from each other;
- second moments of the terms in axes by these, of rows within a public radius: L2 sensitivity √2
  when a row is replaced, 1 when it is added or removed;
- numbers of rows by their length in the final axes: √2 and 1.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Final, NamedTuple

import numpy as np

from dpmodels.mechanisms.add_noise import (
    GAUSSIAN,
    LAPLACE,
    ROUND_UP,
    Law,
    gaussian_count,
    noised_rows,
)
from dpmodels.mechanisms.protocol import Facts, Plan, RegressionFacts, RegressionPlan
from dpmodels.mechanisms.quantile_of_norms import (
    Lengths,
    RowsWithin,
    noised_counts,
    weighted_squares,
)
from dpmodels.mechanisms.regression.product_moments import put_products
from dpmodels.mechanisms.regression.scores import (
    ColumnRanges,
    PowerLocations,
    column_distances,
    column_ranges,
    put_factors,
    released_powers,
)
from dpmodels.noise import Entropy
from dpmodels.noise.lattice import choose_lattice
from dpmodels.postprocess.normal_equations import RESOLVED
from dpmodels.released import Ball
from dpmodels.statistics import Passes
from dpmodels.statistics.gradient import Gradients
from dpmodels.statistics.losses import Poisson, Predictors
from dpmodels.typing import Flags, Floats, Indices

# Of the budget of a logistic regression: choices.
SHARES: Final = {
    "outcomes": 0.02,
    "powers": 0.015,
    "columns": 0.015,
    "narrowed": 0.02,
    "closer": 0.015,
    "nearest": 0.02,
    "second": 0.03,
    "lengths": 0.04,
}
# Log odds of the released frequency, at most.
STEEPEST = 30.0
# A bound on residuals that none comes near.
FAR = 2.0**200
# Choices: the variance, in half-ranges, of a level's column at the least; of turned terms along any
# axis; the radius, in units of the mean square's root, in which second moments are released.
RAREST, FLATTEST, WIDE = 0.36, 0.02, 2.5
# A choice: a distance that most rows are within, in standard deviations.
OF_MOST = 2.0
# Choices: how much longer than √d most rows of d numbers are at the most; by which power of their
# number columns of levels are less fine.
LONGER, MORE_LEVELS = 1.5, 0.2
# Choices, in octaves of the mean square's root: cells of lengths are 9 % apart where a radius is
# likely, and wider farther out, as the noise of all cells beyond a radius adds up.
LENGTHS: Floats = 2.0 ** np.append(
    np.concatenate([np.arange(-4, 0) / 4, np.arange(8) / 8, np.arange(4, 11) / 4]), [3.0, 4.0]
)


class Location(NamedTuple):
    """Released facts about most rows."""

    inner: RowsWithin
    start: Floats  # Shape (columns,): a constant that gives the outcome its frequency, and zeros


def location_shares(facts: RegressionFacts, law: Law) -> dict[str, float]:
    """Return the shares of the budget that a logistic regression of these terms needs."""
    has_axes = facts.predictors.terms > 0 and law is GAUSSIAN
    is_used = {"outcomes": facts.predictors.intercept}
    return {name: share for name, share in SHARES.items() if is_used.get(name, has_axes)}


def location_scales(
    facts: RegressionFacts, multipliers: Mapping[str, float], law: Law = GAUSSIAN
) -> dict[str, float]:
    """Return the noise scale of each release, in rows, for multipliers by their names.

    BudgetError if noise leaves no useful lattice.
    """
    changed, columns = 1.0 + facts.adjacency.n_public, _columns(facts)
    powers, counted = gaussian_count(columns, 1.0).total, math.sqrt(changed)
    sensitivities = {
        "outcomes": changed if law is LAPLACE else counted,
        "powers": powers,
        "columns": counted * math.sqrt(columns.columns),
        "narrowed": powers,
        "closer": counted * math.sqrt(columns.columns),
        "nearest": powers,
        "second": counted,
        "lengths": counted,
    }
    scales = {name: value * sensitivities[name] * ROUND_UP for name, value in multipliers.items()}
    if scales:
        choose_lattice(2 * columns.columns, max(scales.values()))
    return scales


def steepest(facts: RegressionFacts) -> float:
    """Return the largest constant, in units of the ball, that :func:`locate_rows` tries."""
    predictors = facts.predictors
    return STEEPEST / predictors.constant if predictors.intercept else 0.0


def locate_rows(rows: Gradients, plan: RegressionPlan, entropy: Entropy, law: Law) -> Location:
    """Release what was planned for a logistic regression; choose rows and constant by it.

    The radius is chosen for the noise ``plan.scales["sd"]`` of a sum of gradients.
    """
    predictors, scales, start = plan.facts.predictors, plan.scales, np.zeros(plan.facts.columns)
    rate, known = 0.5, predictors.known[0] if predictors.known is not None else 0.0
    if "outcomes" in scales:
        exact, scale = rows.outcomes().cross()[0], scales["outcomes"]
        outcomes = np.maximum(noised_counts(exact, scale, entropy, law), 0.0)
        rate = float((outcomes[0] + scale) / (outcomes.sum() + 2 * scale))
    inner = RowsWithin(predictors, None)
    if "lengths" in scales:
        location = centred(rows, plan, entropy)
        outer, squares = uncorrelated(rows, location, plan, entropy)
        weight, size = rate * (1 - rate), math.sqrt(squares.sum())
        inner = rows_within_axes(rows, outer, size, scales["sd"], weight, plan, entropy)
        if predictors.known is not None:
            known += predictors.known[1] * float(np.clip(location.means[-1], -1.0, 1.0))
    if "outcomes" in scales:
        odds = math.log(rate / (1 - rate)) - known
        start[0] = min(max(odds, -STEEPEST), STEEPEST) / predictors.constant
    return Location(inner, start)


def _columns(facts: RegressionFacts) -> Facts:
    return Facts(facts.predictors.lattice.columns, facts.adjacency, centred=True)


class Centred(NamedTuple):
    """Released means of the columns before the response, in shares of the joint ball, and axes."""

    means: Floats
    # Shape (terms, terms): turn numbers into such of about unit variance, without correlations with
    # each other and with levels, and levels among themselves half the way to that.
    axes: Floats
    squares: Floats  # Shape (terms,): variances of turned terms
    reach: Floats  # Shape (terms,): how far a term is from its centre at most
    is_level: Flags  # Shape (terms,)
    rows: float


def centred(rows: Gradients, plan: RegressionPlan, entropy: Entropy) -> Centred:
    """Release where the columns lie, and how widely; levels by their first means alone.

    A level's column is taken to spread no less than one of a tenth of the rows, so that a row of a
    rare level is not far away. Without an intercept columns are not centred.
    """
    public, joint = plan.facts.predictors, rows.passes()
    columns = Plan(plan.guarantee, (), public.lattice, _columns(plan.facts), scales=plan.scales)
    blocks, norm, terms = joint.blocks[:-1] or joint.blocks, joint.scaling.row_norm, public.terms
    ranges = column_ranges(blocks, joint.scaling, 1.0)
    first = released_powers(joint, ranges, "powers", columns, entropy)
    at = ranges.numbers[ranges.numbers < terms]
    mean, variance = _numbers(joint, ranges, at, first, columns, entropy)
    covariance = np.diag(variance)
    put_products(covariance, blocks, joint.scaling, mean, put_factors(covariance, ranges, first))
    if not public.intercept:
        covariance = covariance + np.outer(mean, mean)
    is_level = ~np.isin(np.arange(terms), at)
    axes, squares = _turned(covariance[:terms, :terms], is_level, RESOLVED), np.ones(terms)
    levels, half = np.ix_(is_level, is_level), ranges.half[:terms][is_level]
    spread = covariance[:terms, :terms][levels] / np.outer(half, half)
    np.fill_diagonal(spread, np.maximum(np.diag(spread), RAREST))
    values, vectors = np.linalg.eigh(spread)
    values = np.sqrt(np.maximum(values, RESOLVED))
    axes[levels] = vectors / np.sqrt(values) @ vectors.T / half
    squares[is_level] = np.diag(vectors * values @ vectors.T)
    reach = ranges.half + np.abs(ranges.middle - mean * public.intercept)
    return Centred(mean / norm, axes * norm, squares, reach[:terms] / norm, is_level, first.weight)


def _numbers(
    joint: Passes,
    ranges: ColumnRanges,
    at: Indices,
    first: PowerLocations,
    columns: Plan,
    entropy: Entropy,
) -> tuple[Floats, Floats]:
    """Release twice how far most numbers are from their means, and their powers within that.

    The L2 sensitivity is that of numbers alone, as other columns are not counted and not summed.
    """
    centre, of_numbers = np.zeros(columns.facts.columns), ranges.of_numbers(at)
    mean, variance = first.mean.copy(), first.variance.copy()
    if not len(at):
        return mean, variance
    share = math.sqrt(len(at) / columns.facts.columns)
    smallest = np.where(first.hidden[at], first.noise[at], math.inf)
    for counts, powers, sds in (("columns", "narrowed", 1.0), ("closer", "nearest", OF_MOST)):
        counted = replace(columns, scales={"columns": columns.scales[counts] * share})
        centre[: len(mean)] = mean
        distance, _ = column_distances(joint, centre, counted, entropy, at)
        variance[at] = np.minimum(np.maximum(distance / sds, smallest) ** 2, variance[at])
        narrow, smallest = of_numbers.narrowed(mean, variance), np.zeros(len(at))
        last = released_powers(joint, narrow, powers, columns, entropy)
        mean[at], variance[at] = last.mean[at], last.variance[at]
    return mean, variance


def _turned(covariance: Floats, is_level: Flags, least: float) -> Floats:
    """Return lines that turn numbers into such without correlations, with levels neither.

    Their variances are 1, or where a direction has less than `least`, smaller. Levels stay.
    """
    axes, numbers = np.eye(len(is_level)), ~is_level
    across = covariance[np.ix_(numbers, is_level)]
    levels = covariance[np.ix_(is_level, is_level)] + least * np.eye(int(is_level.sum()))
    slopes = np.linalg.solve(levels, across.T).T
    root = _root(covariance[np.ix_(numbers, numbers)] - slopes @ across.T, least)
    axes[np.ix_(numbers, numbers)] = root
    axes[np.ix_(numbers, is_level)] = -root @ slopes
    return axes


def _root(covariance: Floats, least: float) -> Floats:
    """Return the inverse of a root of a covariance, whose variances are `least` at the least."""
    values, vectors = np.linalg.eigh(covariance)
    return np.asarray(vectors / np.sqrt(np.maximum(values, least)) @ vectors.T)


def uncorrelated(
    rows: Gradients, location: Centred, plan: RegressionPlan, entropy: Entropy
) -> tuple[Predictors, Floats]:
    """Release second moments in these axes; return predictors in axes without correlations.

    And the mean squares of their terms. A column of levels is then finer than one of a number as
    often as that has standard deviations: the radius is one of the longest rows, and a level is
    never far from its mean. No row is farther than its columns' ranges allow.
    """
    public = plan.facts.predictors
    if not public.terms:
        return public, np.ones(0)
    centre = location.means[: public.terms] * public.intercept
    centre /= max(float(np.linalg.norm(centre)), 1.0)
    radius = WIDE * math.sqrt(public.terms)
    # No expected response is smaller than the largest that counts, so that all weights are 1.
    loss = Poisson(0.5 * math.exp(-public.largest_known), FAR)
    unweighted, terms = replace(plan.facts, loss=loss), slice(int(public.intercept), None)
    within = rows.within(public.within(centre, radius, location.axes), loss)
    origin, scale = np.zeros(unweighted.columns), plan.scales["second"]
    moment, noise = weighted_squares(within, origin, unweighted, scale, entropy)
    unit = (radius / public.share) ** 2 / (location.rows * loss.upper)
    least = max(2 * noise.off * unit * math.sqrt(public.terms), FLATTEST)
    is_level, squares = location.is_level, location.squares.copy()
    axes = _turned(moment[terms, terms] * unit, is_level, least) @ location.axes
    n_levels, n_numbers = int(is_level.sum()), int((~is_level).sum())
    if n_levels and n_numbers:
        farthest = float(np.linalg.norm(np.abs(axes[~is_level]) @ location.reach))
        length = min(LONGER + math.sqrt(n_numbers), farthest)
        finer = length / math.sqrt(n_numbers) / n_levels**MORE_LEVELS
        axes[is_level] *= finer
        squares[is_level] *= finer**2
    farthest = float(np.linalg.norm(np.abs(axes) @ location.reach)) * ROUND_UP
    radius = min(farthest, 2 * float(np.linalg.norm(axes, 2)))
    return public.within(centre, radius, axes), squares


def rows_within_axes(
    rows: Gradients,
    outer: Predictors,
    size: float,
    noise: float,
    weight: float,
    plan: RegressionPlan,
    entropy: Entropy,
) -> RowsWithin:
    """Count rows by their length in released axes; choose a radius by the counts.

    `size` is the root of their mean square length, `noise` and `weight` are as for
    :func:`dpmodels.mechanisms.quantile_of_norms.rows_within_quantile`.
    """
    if not outer.terms:
        return RowsWithin(outer, None)
    ends = size * LENGTHS
    ends = np.append(ends[ends < outer.radius], outer.radius)
    exact = rows.within(outer).lengths(ends).cross()[0]
    lengths = Lengths(ends, *noised_rows(exact, plan.scales["lengths"], entropy))
    at = lengths.chosen(noise / outer.share, weight, outer.terms, size)
    at = len(ends) - 1 if at is None else at
    (beyond, sd), scaled, terms = lengths.beyond, rows.scaling, slice(outer.terms)
    radius, axes = float(ends[at]), np.array(outer.axes)
    place = scaled.centre[terms] + outer.placed * scaled.row_norm * scaled.scale[terms]
    onto = np.linalg.inv(axes) * scaled.row_norm
    ball = Ball(place, radius, float(beyond[at]), float(sd[at]), onto)
    return RowsWithin(outer.within(outer.placed, radius, axes), ball)
