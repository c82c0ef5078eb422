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
  twice, as in :mod:`dpmodels.mechanisms.regression.column_location`: in bounds a thousand
  times too wide the first mean is farther from the rows than they are from each other;
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

from dpmodels.mechanisms import quantile_of_norms
from dpmodels.mechanisms.add_noise import (
    GAUSSIAN,
    LAPLACE,
    ROUND_UP,
    Law,
    gaussian_count,
    noised_rows,
)
from dpmodels.mechanisms.protocol import Facts, Plan, RegressionFacts, RegressionPlan
from dpmodels.mechanisms.regression.column_location import (
    column_distances,
    column_ranges,
    released_columns,
    released_powers,
)
from dpmodels.noise import Entropy
from dpmodels.noise.lattice import choose_lattice
from dpmodels.postprocess.normal_equations import RESOLVED
from dpmodels.postprocess.score_rounds import shrunk_covariance
from dpmodels.released import Ball
from dpmodels.statistics.gradient import Gradients
from dpmodels.statistics.losses import Poisson, Predictors
from dpmodels.typing import Floats

# Of the budget of a logistic regression: choices.
SHARES: Final = {
    "outcomes": 0.02,
    "powers": 0.02,
    "columns": 0.02,
    "narrowed": 0.02,
    "closer": 0.02,
    "nearest": 0.02,
    "second": 0.04,
    "lengths": 0.03,
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
# A choice: a variance of so many standard deviations of its noise is taken as it is.
CLEAR = 5.0
# A choice: ends of cells are 19 % apart, in units of the mean square's root.
LENGTHS: Floats = 2.0 ** (np.arange(-4, 17) / 4)


class Location(NamedTuple):
    """Released facts about most rows."""

    inner: quantile_of_norms.RowsWithin
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
    rate, offset = 0.5, predictors.known[0] if predictors.known is not None else 0.0
    if "outcomes" in scales:
        exact, scale = rows.outcomes().cross()[0], scales["outcomes"]
        outcomes = np.maximum(quantile_of_norms.noised_counts(exact, scale, entropy, law), 0.0)
        rate = float((outcomes[0] + scale) / (outcomes.sum() + 2 * scale))
    inner = quantile_of_norms.RowsWithin(predictors, None)
    if "lengths" in scales:
        location = centred(rows, plan, entropy)
        outer = uncorrelated(rows, location, plan, entropy)
        inner = rows_within_axes(rows, outer, scales["sd"], rate * (1 - rate), plan, entropy)
        if predictors.known is not None:
            offset += predictors.known[1] * float(np.clip(location.means[-2], -1.0, 1.0))
    if "outcomes" in scales:
        odds = math.log(rate / (1 - rate)) - offset
        start[0] = min(max(odds, -STEEPEST), STEEPEST) / predictors.constant
    return Location(inner, start)


def _columns(facts: RegressionFacts) -> Facts:
    return Facts(facts.predictors.lattice.columns, facts.adjacency, centred=True)


class Centred(NamedTuple):
    """Released means of the joint columns, in shares of their ball, and axes for the terms."""

    means: Floats
    axes: Floats  # Shape (terms, terms): turn terms into such of about unit variance
    rows: float


def centred(rows: Gradients, plan: RegressionPlan, entropy: Entropy) -> Centred:
    """Release where the columns lie, and how widely.

    A level's column is taken to spread no less than one of a tenth of the rows, so that a row of a
    rare level is not far away. A number spreads as its variance says where that is clear, and
    elsewhere as a distance that most rows are within, which is 0 of a number that few rows have.
    Without an intercept columns are not centred.
    """
    public, joint = plan.facts.predictors, rows.passes()
    columns = Plan(plan.guarantee, (), public.lattice, _columns(plan.facts), scales=plan.scales)
    located = released_columns(joint, columns, entropy)
    means, covariance = located.mean, located.covariance
    ranges, terms = column_ranges(joint.blocks, joint.scaling), slice(public.terms)
    variance, at = np.diag(covariance).copy(), ranges.numbers
    closer = replace(columns, scales={"columns": plan.scales["closer"]})
    distance, _, _ = column_distances(joint, means, closer, entropy)
    narrow = np.minimum((distance / OF_MOST) ** 2, variance)
    narrow = np.where(variance < CLEAR * located.noise, narrow, variance)
    last = released_powers(joint, ranges.narrowed(means, narrow), "nearest", columns, entropy)
    means[at], ratio = last.mean[at], np.ones_like(variance)
    ratio[at] = np.sqrt(last.variance[at] / variance[at])
    covariance = covariance * np.outer(ratio, ratio)
    least = RAREST * ranges.half**2
    least[at] = 0.0
    np.fill_diagonal(covariance, np.maximum(np.diag(covariance), least))
    if not public.intercept:
        covariance = covariance + np.outer(means, means)
    norm = joint.scaling.row_norm
    return Centred(means / norm, _root(covariance[terms, terms], RESOLVED) * norm, located.weight)


def _root(covariance: Floats, least: float) -> Floats:
    """Return the inverse of a root of a covariance, whose variances are `least` at the least."""
    values, vectors = np.linalg.eigh(covariance)
    return np.asarray(vectors / np.sqrt(np.maximum(values, least)) @ vectors.T)


def uncorrelated(
    rows: Gradients, location: Centred, plan: RegressionPlan, entropy: Entropy
) -> Predictors:
    """Release second moments in these axes; return predictors in axes without correlations.

    Correlations are shrunk by what of them may be noise, variances are not: in longer axes of rare
    levels those without cases would count. No row exceeds the radius within the declared ranges.
    """
    public = plan.facts.predictors
    if not public.terms:
        return public
    centre = location.means[: public.terms] * public.intercept
    centre /= max(float(np.linalg.norm(centre)), 1.0)
    radius = WIDE * math.sqrt(public.terms)
    # No expected response is smaller than the largest that counts, so that all weights are 1.
    loss = Poisson(0.5 * math.exp(-public.largest_known), FAR)
    unweighted, terms = replace(plan.facts, loss=loss), slice(int(public.intercept), None)
    within = rows.within(public.within(centre, radius, location.axes), loss)
    origin, scale = np.zeros(unweighted.columns), plan.scales["second"]
    moment, noise = quantile_of_norms.weighted_squares(within, origin, unweighted, scale, entropy)
    unit = (radius / public.share) ** 2 / (location.rows * loss.upper)
    second, sd = moment[terms, terms] * unit, noise.off * unit
    edge = sd * math.sqrt(public.terms)
    variance = np.maximum(np.diag(second), max(2 * edge, FLATTEST))
    covariance, _ = shrunk_covariance(second, sd, np.ones(public.terms))
    ratio = np.sqrt(variance / np.diag(covariance))
    axes = _root(covariance * np.outer(ratio, ratio), max(edge, FLATTEST)) @ location.axes
    ranges, norm = column_ranges(rows.passes().blocks, rows.scaling), rows.scaling.row_norm
    middle, half = ranges.middle[: public.terms] / norm, ranges.half[: public.terms] / norm
    away = half + np.abs(middle - centre) + 1 / public.lattice.steps
    farthest = float(np.linalg.norm(np.abs(axes) @ away))
    return public.within(centre, min(farthest, 2 * float(np.linalg.norm(axes, 2))), axes)


def rows_within_axes(
    rows: Gradients,
    outer: Predictors,
    noise: float,
    weight: float,
    plan: RegressionPlan,
    entropy: Entropy,
) -> quantile_of_norms.RowsWithin:
    """Count rows by their length in released axes; choose a radius by the counts.

    `noise` and `weight` are as for
    :func:`dpmodels.mechanisms.quantile_of_norms.rows_within_quantile`.
    """
    if not outer.terms:
        return quantile_of_norms.RowsWithin(outer, None)
    ends = math.sqrt(outer.terms) * LENGTHS
    ends = np.append(ends[ends < outer.radius], outer.radius)
    exact = rows.within(outer).lengths(ends).cross()[0]
    lengths = quantile_of_norms.Lengths(ends, *noised_rows(exact, plan.scales["lengths"], entropy))
    at = lengths.chosen(noise / outer.share, weight, outer.terms, whitened=True)
    at = len(ends) - 1 if at is None else at
    (beyond, sd), scaled, terms = lengths.beyond, rows.scaling, slice(outer.terms)
    radius, axes = float(ends[at]), np.array(outer.axes)
    place = scaled.centre[terms] + outer.placed * scaled.row_norm * scaled.scale[terms]
    onto = np.linalg.inv(axes) * scaled.row_norm
    ball = Ball(place, radius, float(beyond[at]), float(sd[at]), onto)
    return quantile_of_norms.RowsWithin(outer.within(outer.placed, radius, axes), ball)
