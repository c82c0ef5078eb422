"""How clear slopes of least squares will be: from public facts, before the charge."""

from __future__ import annotations

import math

import numpy as np

from dpmodels.design import PrivateDesign
from dpmodels.mechanisms import Facts, Plan
from dpmodels.mechanisms.add_noise import noise_of
from dpmodels.mechanisms.regression import Moments, Scores
from dpmodels.mechanisms.regression.scores import column_ranges
from dpmodels.models.predicted_laws import (
    FILLED,
    NUMBERS,
    Prediction,
    assumed_variances,
    is_one_release,
    noise_edge,
)
from dpmodels.privacy import Guarantee

# Of moments: strengths of X'X, and of a component, read off noisy moments.
LOST_SLOPES, CLEAR_SLOPES = 0.7, 2.0
# Choices by simulation, of the assumed variance of a number in half-ranges over the noise in it:
# below the first no slope has a standard error, from the second on most have.
LOST_LINE, CLEAR_LINE = 0.2, 1.25
# Choices: the likely radius of terms, in root mean squares, times that of residuals, in sds; and by
# how much the noise of one release exceeds that in X'y alone.
EXPECTED_LIMITS, NOISE_IN_GRAM = 2.5, 1.6


def slopes_of_moments(design: PrivateDesign, plan: object, rows: int) -> Prediction | None:
    """Predict least squares of the last column: the strength of X'X along its widest column."""
    variances, lacking = assumed_variances(design)[:-1], "no slope will have a standard error"
    if not len(variances) or not isinstance(plan, Plan):
        return None
    if "narrowed" in plan.scales:
        radius = column_ranges(design.public.blocks, design.scaling).radius
        strength = rows / FILLED / (plan.scales["powers"] * radius)
        return Prediction(strength, LOST_LINE, CLEAR_LINE, lacking, NUMBERS)
    if not is_one_release(plan):
        return None
    strength = rows * float(variances.max()) / noise_edge(plan, len(variances))
    return Prediction(strength, LOST_SLOPES, CLEAR_SLOPES, lacking, NUMBERS)


def predicted_errors(design: PrivateDesign, facts: Facts, guarantee: Guarantee) -> dict[str, float]:
    """Return predicted median noise of slopes times the rows, by mechanism of least squares.

    Of assumed rows, see :func:`assumed_variances`, whose residuals have the variance of the
    response.
    """
    spread = np.sqrt(assumed_variances(design))
    spread, residual_sd = spread[:-1], float(spread[-1])
    once, about = Moments().plan(facts, guarantee), Scores().plan(facts, guarantee)
    noise = 2 * about.scales["final"] / math.sqrt(1 + facts.adjacency.n_public)
    length = math.sqrt(facts.columns) * EXPECTED_LIMITS * residual_sd
    return {
        "moments": float(np.median(NOISE_IN_GRAM * noise_of(once).off / spread**2)),
        "scores": float(np.median(noise * length / spread)),
    }
