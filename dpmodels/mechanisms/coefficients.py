"""What mechanisms for coefficients share: the rows they read and the hand-over."""

from __future__ import annotations

import math

from dpmodels.design import PrivateDesign
from dpmodels.mechanisms.regressing import RegressionFacts, RegressionPlan
from dpmodels.noise import simulating
from dpmodels.noise.lattice import MAX_BITS, Lattice
from dpmodels.released import BoughtCurvature, Card, CoefficientsRelease
from dpmodels.statistics import Statistic
from dpmodels.statistics.gradient import Gradients
from dpmodels.typing import Floats


def passes(design: PrivateDesign, facts: RegressionFacts) -> Gradients:
    """Take a design's rows for several passes. FrameError if the rows can be read only once."""
    design.require_passes()
    lattice = Lattice(MAX_BITS, facts.predictors.terms + 1)
    public = facts.adjacency.n_public
    return Gradients((design,), facts.predictors, facts.loss, lattice, count_public=public)


def as_gradients(statistic: Statistic) -> Gradients:
    """Take a statistic for what :func:`passes` made."""
    assert isinstance(statistic, Gradients)
    return statistic


def hand_over(
    card: Card,
    plan: RegressionPlan,
    statistic: Statistic,
    *,
    coefficients: Floats,
    gradient: Floats | None = None,
    gradient_sd: float = math.nan,
    coefficient_sd: float,
    curvature: BoughtCurvature | None = None,
) -> CoefficientsRelease:
    """Make the release; the number of rows read goes along where it is public."""
    return CoefficientsRelease(
        coefficients=coefficients,
        ridge=plan.scales["ridge"],
        gradient=gradient,
        gradient_sd=gradient_sd,
        coefficient_sd=coefficient_sd,
        curvature=curvature,
        rows=as_gradients(statistic).rows if plan.facts.adjacency.n_public else None,
        card=card,
        guarantee=plan.guarantee,
        adjacency=plan.facts.adjacency,
        events=plan.events,
        simulated=simulating(),
    )
