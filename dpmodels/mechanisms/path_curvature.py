"""Curvature along Newton's step back from a ridge, and squared gradients at its end.

The minimum of a ridged sum is where the gradient of the losses is known but for noise. Where the
step from there to the maximum-likelihood estimate is long, the curvature changes along it: at its
start there is too much, so that the step is too short and intervals miss. Two releases follow the
minimum: the curvature there, from which a step is computed, and then the mean curvature along that
step together with the squared gradients at its end. The difference of two gradients is their mean
curvature times the distance, exactly, however long the step is.

Sensitivity of the first: a row adds ``w z zᵀ`` with a share w of the largest curvature, at most 1
long; two rows are √2 apart at most. Of the second: with slopes p and q at both ends, ``u`` and v
their log odds, a row adds ``(w z zᵀ, q² z zᵀ)``, ``w = 4 (q - p)/(v - u)`` for the logistic loss.
For a fixed q let ``s(q)`` be the largest such w over all p. The pair is as long as
``√(w² + q⁴) ≤ √(s² + q⁴)``. Where ``q ≤ ½`` that is at most ``√(1 + 1/16)``, as ``w ≤ 1``. Above,
``v > 0``, and secants whose other end is in (0, v) are flatter than that from 0, as the logistic
function is concave there. The largest begins at ``u ≤ 0``, where it is the tangent, and the
function is above it up to v: secants from u to ends before v are steeper. So s falls in v while q
rises; on an interval ``[v_i, v_{i+1}]`` the pair is at most ``√(s(v_i)² + q(v_{i+1})⁴)`` long, and
``s(v_i) + q(v_{i+1})²`` in sums of absolute values: on a grid these are below 1.14 and 1.61
(``tests/mechanisms/test_mechanisms_path_curvature.py``). Rounding of w is below 1e-6.

*Long steps.* At the minimum the gradient is the ridge times the coefficients: of a strong effect
many noise standard deviations, and the curvature falls to a part on the way back. There the second
release has the sum of the rows' gradients at a point near the estimate, and curvature and squared
gradients there: two Gaussian releases, together as private as the one they replace
(docs/theory.md, Theorem 112).

The rows of a person take shares of its places, of sum 1 at most; it adds ``Σ share w z zᵀ`` and the
square of ``Σ share q z``. The norms of both are at most ``W = Σ share w`` and ``r²``, ``r = Σ share
q``. ``(W, r)`` lies in the convex hull of 0 and the pairs ``(w, q)``, and ``√(W² + r⁴)`` and ``W +
r²`` are convex and increasing in both: their maxima are those of one row.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from functools import partial

import numpy as np

from dpmodels.mechanisms import quantile_of_norms
from dpmodels.mechanisms.add_noise import GAUSSIAN, ROUND_UP, Law
from dpmodels.mechanisms.gradient_noise import noisy_gradient
from dpmodels.mechanisms.protocol import RegressionFacts
from dpmodels.mechanisms.quantile_of_norms import requested_matrix
from dpmodels.noise import Entropy
from dpmodels.postprocess.unit_scores import newton_step
from dpmodels.privacy import split_gaussian
from dpmodels.released import BoughtCurvature
from dpmodels.statistics.gradient import Gradients
from dpmodels.statistics.losses import Logistic
from dpmodels.typing import Floats

# Of the budget for both: a choice by simulation.
FIRST_SHARE = 0.3
# How far a row moves mean curvature and squared gradients together, proved above.
ALONG = quantile_of_norms.Longest(1.14, 1.61)
# A row's curvature alone, of norm 1: (d + 1)/2 in sums of absolute values.
ALONE = quantile_of_norms.Longest(1.0, 1.0)
# Choices: the step, in log odds for a standard deviation of the terms, and the slope that it leads
# to, with a third of the curvature, from which on scores are bought there; and their part of the
# second share.
LONG, STEEP, SCORE_SHARE = 0.4, 1.7, 0.6
# The variance of a normal curve that is like the logistic one; and choices, how much of the
# curvature's integral is left beyond a step at the least, and by how much one is lengthened.
PROBIT, LEAST_LEFT, SHORTEST, LONGEST = 2.6, 0.04, 1.01, 3.0


def path_shares(share: float) -> dict[str, float]:
    """Return the shares of the two releases in the budget."""
    return {"first": FIRST_SHARE * share, "along": (1 - FIRST_SHARE) * share}


def path_scales(
    facts: RegressionFacts, multipliers: Mapping[str, float], law: Law
) -> dict[str, float]:
    """Return the noise of the two releases, as :func:`bought_scale`.

    In place of the second there may be scores and matrices of one point.
    """
    is_logistic = isinstance(facts.loss, Logistic)
    along = ALONG if is_logistic else quantile_of_norms.APART
    bought = {"first": (multipliers["first"], ALONE), "along": (multipliers["along"], along)}
    scales = {}
    if is_logistic and law is GAUSSIAN and facts.predictors.terms:
        shares = SCORE_SHARE, 1 - SCORE_SHARE
        score, matrices = split_gaussian(multipliers["along"], shares)
        scales["score"] = score * (1.0 + facts.adjacency.n_public) * ROUND_UP
        bought["there"] = matrices * ROUND_UP, quantile_of_norms.LOGISTIC
    return scales | {
        name: quantile_of_norms.bought_scale(facts, multiplier, law, longest)
        for name, (multiplier, longest) in bought.items()
    }


def path_matrices(
    rows: Gradients,
    point: Floats,
    gradient: Floats,
    facts: RegressionFacts,
    scales: Mapping[str, float],
    entropy: Entropy,
    law: Law,
    *,
    at_end: bool = False,
) -> BoughtCurvature:
    """Release the curvature at a released point, and what follows from Newton's step from there.

    `gradient`, shape (columns,), is the known part of that of the losses at the point. With
    `at_end` the second curvature is that where the step ends, not the mean one: its pair is no
    longer, as a tangent is a limit of secants. Else, where the step is long, scores, curvature and
    squares are those of one point near the estimate.
    """
    unit = facts.loss.smoothness
    first = requested_matrix(rows.curvature, point, facts, scales["first"], law, unit)(entropy)
    step = newton_step(*first, gradient)
    factor = 1.0 if at_end or "score" not in scales else _lengthening(facts, point, step)
    end = point + factor * step
    if factor > 1:
        noisy = noisy_gradient(rows, end, facts, scales["score"], entropy)
        bought = quantile_of_norms.both_matrices(rows, end, facts, scales["there"], entropy)
        bought = replace(bought, first=first[0], first_noise=first[1], end=end)
        return replace(bought, score=noisy.gradient, score_sd=noisy.sd)
    along = rows.curvature if at_end else partial(rows.mean_curvature, point)
    requested = requested_matrix(along, end, facts, scales["along"], law, unit)
    requested_meat = quantile_of_norms.squared_gradients(rows, end, facts, scales["along"], law)
    bread, meat = requested(entropy), requested_meat(entropy)
    return BoughtCurvature(
        bread[0], meat[0], bread[1], meat[1], facts.adjacency.person, first[0], first[1], end
    )


def _lengthening(facts: RegressionFacts, point: Floats, step: Floats) -> float:
    """Return how many Newton steps lead to the estimate, 1 where the step is not long.

    The curvature along a slope b is in proportion to ``(1 + b²/v)^(-3/2)`` where log odds are
    normal over the rows and the logistic curve is a normal one of variance v. Its integral is
    ``b/√(1 + b²/v)``.
    """
    predictors = facts.predictors
    terms, unit = slice(int(predictors.intercept), None), predictors.share / predictors.radius
    # Log odds along the terms, a standard deviation of the rows on.
    before, after = (unit * float(np.linalg.norm(at[terms])) for at in (point, step))
    if after <= LONG or before + after <= STEEP:
        return 1.0
    fallen = 1 + before**2 / PROBIT
    undone = before / math.sqrt(fallen) + after / math.sqrt(fallen) ** 3
    left = max(1 - undone**2 / PROBIT, LEAST_LEFT)
    return min(max((undone / math.sqrt(left) - before) / after, SHORTEST), LONGEST)
