"""What mechanisms for coefficients share: facts, plans, the rows they read and the hand-over."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from dpmodels.design import PrivateDesign
from dpmodels.errors import ArgumentError
from dpmodels.mechanisms.release_terms import release_terms
from dpmodels.privacy import Adjacency, Event, Guarantee
from dpmodels.released import Ball, BoughtCurvature, Card, CoefficientsRelease
from dpmodels.statistics import Statistic
from dpmodels.statistics.gradient import Gradients
from dpmodels.statistics.losses import Poisson
from dpmodels.statistics.multinomial import Multinomial
from dpmodels.statistics.predictors import Predictors
from dpmodels.statistics.protocol import Loss
from dpmodels.typing import Floats


@dataclass(frozen=True)
class RegressionFacts:
    """Public facts a plan may use; none of them is learnt from a row."""

    predictors: Predictors  # The linear predictor's coordinates and their scaling
    loss: Loss | Poisson | Multinomial  # What is summed over the rows
    adjacency: Adjacency

    @property
    def columns(self) -> int:
        """Coordinates of the parameter: those of a linear predictor for each line."""
        return self.predictors.columns * self.lines

    @property
    def lines(self) -> int:
        """Linear predictors of a row: one, or of a multinomial model one for each level."""
        return self.loss.levels if isinstance(self.loss, Multinomial) else 1


@dataclass(frozen=True)
class RegressionPlan:
    """A calibrated release: everything but the data."""

    guarantee: Guarantee  # What was asked and will hold
    events: tuple[Event, ...]  # What the ledger is charged
    facts: RegressionFacts  # What the plan was made for
    # Public numbers the release needs, by the mechanism's own names.
    scales: Mapping[str, float] = field(default_factory=dict)


def bounded_loss(facts: RegressionFacts, name: str) -> Loss:
    """Return the loss, whose gradients are bounded, or say what to use instead."""
    if isinstance(facts.loss, Poisson):
        raise ArgumentError(
            f'mechanism="{name}" needs a loss whose gradients are bounded, which that of '
            'family="poisson" is not; write mechanism="gradients"'
        )
    if isinstance(facts.loss, Multinomial):
        raise ArgumentError(
            f'mechanism="{name}" is proved for one linear predictor, and family="multinomial" has '
            'one for each level; write mechanism="gradients"'
        )
    return facts.loss


def passes(design: PrivateDesign, facts: RegressionFacts) -> Gradients:
    """Take a design's rows for several passes. FrameError if the rows can be read only once."""
    design.require_passes()
    own, public = facts.predictors, facts.adjacency.n_public
    return Gradients((design,), own, facts.loss, own.lattice, count_public=public)


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
    ball: Ball | None = None,
) -> CoefficientsRelease:
    """Make the release; the number of rows read goes along where it is public."""
    # Counting takes a pass over the rows.
    rows = as_gradients(statistic).rows if plan.facts.adjacency.n_public else 0
    return CoefficientsRelease(
        coefficients=coefficients,
        ridge=plan.scales["ridge"],
        gradient=gradient,
        gradient_sd=gradient_sd,
        coefficient_sd=coefficient_sd,
        curvature=curvature,
        ball=ball,
        **release_terms(card, plan, rows),
    )
