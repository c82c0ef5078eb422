"""Facts and plans of mechanisms for the coefficients of a linear predictor."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from dpmodels.privacy import Adjacency, Event, Guarantee
from dpmodels.statistics.losses import Poisson
from dpmodels.statistics.predictors import Predictors
from dpmodels.statistics.protocol import Loss


@dataclass(frozen=True)
class RegressionFacts:
    """Public facts a plan may use; none of them is learnt from a row."""

    predictors: Predictors  # The linear predictor's coordinates and their scaling
    loss: Loss | Poisson  # What is summed over the rows
    adjacency: Adjacency

    @property
    def columns(self) -> int:
        """Coordinates of the linear predictor."""
        return self.predictors.columns


@dataclass(frozen=True)
class RegressionPlan:
    """A calibrated release: everything but the data."""

    guarantee: Guarantee  # What was asked and will hold
    events: tuple[Event, ...]  # What the ledger is charged
    facts: RegressionFacts  # What the plan was made for
    # Public numbers the release needs, by the mechanism's own names.
    scales: Mapping[str, float] = field(default_factory=dict)
