"""Where most rows of a regression lie, and how often the outcome occurs: bought before a fit.

A column seldom fills its declared range: coefficients are fitted to the rows within a released
radius of a released centre, in units of that radius, and from a constant that gives the outcome its
released frequency. Rows farther away are left out, not shortened: where the model holds, it holds
for the rows that are left. What is released:

- numbers of complete rows by outcome, of which a row is in one at most: L2 sensitivity √2 when a
  row is replaced, 1 when it is added or removed, L1 sensitivity 2 and 1;
- the sum of the terms' integer rows in the joint ball: 2 and 1 in units of its radius;
- numbers of rows by their distance from the centre: √2 and 1.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpmodels.errors import BudgetError
from dpmodels.mechanisms.add_noise import (
    GAUSSIAN,
    LAPLACE,
    ROUND_UP,
    UNITS,
    Law,
    add_noise,
)
from dpmodels.mechanisms.coefficients import RegressionFacts
from dpmodels.mechanisms.noisy_mean import shrunk
from dpmodels.noise import Entropy
from dpmodels.released import Ball
from dpmodels.statistics.gradient import Gradients
from dpmodels.statistics.predictors import Predictors
from dpmodels.typing import Floats

# Of the budget: choices.
SHARES = {"outcomes": 0.03, "sum": 0.03, "lengths": 0.04}
# Rows: noise of so many is of no use.
LARGEST = 2.0**30
# A choice: radii are told apart by 19 %, and bounds may be a hundred times too wide.
PER_OCTAVE, OCTAVES = 4, 7
# Choices: the largest share of rows told from noise that is left out, and of rows at all, up to
# twice the standard deviation of the noise.
LEFT_OUT, AT_MOST = 0.02, 0.1
# A choice: by how much the log odds of rows that are left out may differ from the model.
MISFIT = 1.0
# Log odds of the released frequency, at most.
STEEPEST = 30.0


class Near(NamedTuple):
    """The rows that count."""

    predictors: Predictors
    ball: Ball | None  # None where all rows count, as they stand in the codebook's ball


class Most(NamedTuple):
    """What is known of most rows."""

    near: Near
    start: Floats  # Shape (columns,): a constant that gives the outcome its frequency, and zeros


def most_shares(facts: RegressionFacts, law: Law) -> dict[str, float]:
    """Return the shares of the budget that a model of these terms has a use for."""
    own = facts.predictors
    asked = {
        "outcomes": own.intercept,
        "sum": own.intercept and own.terms > 0 and law is GAUSSIAN,
        "lengths": own.terms > 0 and law is GAUSSIAN,
    }
    return {name: share for name, share in SHARES.items() if asked[name]}


def most_scales(
    facts: RegressionFacts, multipliers: Mapping[str, float], law: Law
) -> dict[str, float]:
    """Return the noise scale of each release, in rows, for multipliers by their names.

    BudgetError if noise is beyond what is meaningful.
    """
    replaced = facts.adjacency.n_public
    counted = 1.0 + replaced if law is LAPLACE else math.sqrt(1 + replaced)
    moved = {"outcomes": counted, "sum": 1.0 + replaced, "lengths": counted}
    scales = {name: own * moved[name] * ROUND_UP for name, own in multipliers.items()}
    if any(scale > LARGEST for scale in scales.values()):
        raise BudgetError(
            "the budget asks for more noise than is meaningful; give a larger eps, delta or rho"
        )
    return scales


def steepest(facts: RegressionFacts) -> float:
    """Return the largest constant that :func:`most_rows` starts from, in units of the ball."""
    own = facts.predictors
    return STEEPEST / own.constant if own.intercept else 0.0


def most_rows(
    rows: Gradients, facts: RegressionFacts, scales: Mapping[str, float], entropy: Entropy, law: Law
) -> Most:
    """Release what was planned, and choose centre, radius and constant by it.

    `scales` holds those of :func:`most_scales`, and under ``"sd"`` the noise of a sum of
    gradients, for which the radius is chosen.
    """
    own, start = facts.predictors, np.zeros(facts.columns)
    rate, count, centre = 0.5, math.inf, np.zeros(own.terms)
    if "outcomes" in scales:
        scale = scales["outcomes"]
        whole = rows.outcomes().cross()[0] * UNITS
        found = np.maximum(_noisy(whole, scale, entropy, law), 0.0)
        count = max(float(found.sum()), 1.0)
        rate = float((found[0] + scale) / (found.sum() + 2 * scale))
        start[0] = min(max(math.log(rate / (1 - rate)), -STEEPEST), STEEPEST) / own.constant
    if "sum" in scales:
        finer = UNITS // int(rows.lattice.radius)
        total = _noisy(rows.sums().cross()[0] * finer, scales["sum"], entropy, law)
        centre = shrunk(total / count, scales["sum"] / count)
    if "lengths" not in scales:
        return Most(Near(own, None), start)
    noise, weight = scales["sd"], rate * (1 - rate)
    return Most(near_rows(rows, own, centre, scales["lengths"], noise, weight, entropy), start)


def near_rows(
    rows: Gradients,
    own: Predictors,
    centre: Floats,
    scale: float,
    noise: float,
    weight: float,
    entropy: Entropy,
    shortest: float = 0.0,
) -> Near:
    """Count rows by their distance from a released centre; choose a radius by the counts.

    `centre`, shape (terms,), is in shares of the joint ball's radius, `scale` the noise of a count,
    `noise` that of a sum of gradients, `weight` the mean square of a row's pull. No radius below
    `shortest` is chosen.
    """
    moved = own.within(centre, own.radius)
    ends = _radii(own.radius + float(np.linalg.norm(centre)))
    exact, _ = rows.within(moved).lengths(ends).cross()
    found = Lengths(ends, _noisy(exact * UNITS, scale, entropy, GAUSSIAN), scale)
    at = found.chosen(noise / own.share, weight, own.terms)
    if at is None:
        return Near(own, None)
    at = max(at, int(np.searchsorted(ends, shortest)))
    if ends[at] >= own.radius:
        return Near(own, None)
    scaled, radius = rows.scaling, float(ends[at])
    terms = slice(own.terms)
    place = scaled.centre[terms] + centre * scaled.row_norm * scaled.scale[terms]
    beyond, sd = found.beyond
    ball = Ball(place, radius * scaled.row_norm, float(beyond[at]), float(sd[at]))
    return Near(own.within(centre, radius), ball)


class Lengths(NamedTuple):
    """Released numbers of rows by their distance from a centre, and the noise of each."""

    ends: Floats
    counts: Floats
    sd: float

    @property
    def told(self) -> Floats:
        """The counts that are told from noise, 0 for the others.

        The largest of k normal variables seldom exceeds ``√(2 log k) + 1``.
        """
        faint = self.sd * (math.sqrt(2 * math.log(len(self.ends))) + 1)
        return np.where(self.counts > faint, self.counts, 0.0)

    @property
    def beyond(self) -> tuple[Floats, Floats]:
        """Shares of the rows beyond each end, and their standard deviations."""
        rows = max(float(self.told.sum()), 1.0)
        cells = np.arange(len(self.ends))[::-1]
        return _beyond(self.counts) / rows, self.sd * np.sqrt(cells) / rows

    def chosen(self, noise: float, weight: float, terms: int) -> int | None:
        """Return the place of a radius, None where too little is known of the rows.

        The squared error of a slope is about ``(s² + m²) r²/I² + 1/I``, s the noise in a sum of
        gradients of rows no longer than r, I the curvature of those within r along one of their
        directions, and m what the rows beyond might add where the model does not quite hold.
        """
        ends, told = self.ends, self.told
        middle = ends * 2.0 ** (-0.5 / PER_OCTAVE)
        curvature = weight * np.cumsum(told * middle**2) / terms
        misfit = MISFIT * weight * _beyond(told * ends) / ends
        (beyond, sd), rows = self.beyond, max(float(told.sum()), 1.0)
        known = (_beyond(told) <= LEFT_OUT * rows) & (beyond + 2 * sd <= AT_MOST) & (curvature > 0)
        if not known.any():
            return None
        inside = np.where(known, curvature, 1.0)
        square = (np.hypot(noise, misfit) * ends / inside) ** 2 + 1 / inside
        return int(np.argmin(np.where(known, square, math.inf)))


def _noisy(exact: NDArray[Any], scale: float, entropy: Entropy, law: Law) -> Floats:
    """Release integers of which a row is :data:`UNITS`."""
    return add_noise(exact, max(scale * UNITS, law.smallest), entropy, law) / UNITS


def _radii(farthest: float) -> Floats:
    return np.asarray(farthest * 2.0 ** (-np.arange(PER_OCTAVE * OCTAVES, -1, -1) / PER_OCTAVE))


def _beyond(counts: Floats) -> Floats:
    """Return what is in all cells after each."""
    return np.asarray(counts[::-1].cumsum()[::-1] - counts)
