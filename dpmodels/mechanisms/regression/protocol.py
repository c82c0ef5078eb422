"""What a mechanism for the coefficients of a linear predictor is."""

from __future__ import annotations

from typing import ClassVar, Protocol

from dpmodels.design import PrivateDesign
from dpmodels.mechanisms.regressing import RegressionFacts, RegressionPlan
from dpmodels.noise import Entropy
from dpmodels.privacy import Guarantee
from dpmodels.released import Card, CoefficientsRelease
from dpmodels.statistics import Statistic


class RegressionMechanism(Protocol):
    """A strategy that releases the coefficients of a linear predictor."""

    card: ClassVar[Card]

    def plan(self, facts: RegressionFacts, guarantee: Guarantee) -> RegressionPlan:
        """Calibrate to a guarantee; sees no data and raises before any is read."""
        ...

    def measure(self, design: PrivateDesign, plan: RegressionPlan) -> Statistic:
        """Make the statistic that the release is made from."""
        ...

    def release(
        self, statistic: Statistic, plan: RegressionPlan, entropy: Entropy
    ) -> CoefficientsRelease:
        """Add noise and hand over; called once, after the ledger was charged."""
        ...
