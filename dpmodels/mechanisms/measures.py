"""The exact statistics that several mechanisms are made from, as the bases of their classes."""

from __future__ import annotations

from typing import Any, ClassVar

from dpmodels.design import PrivateDesign
from dpmodels.design.cells import PrivateCells
from dpmodels.mechanisms.protocol import Calibrated, CountPlan, Plan, RegressionPlan, passes
from dpmodels.released import MechanismInfo
from dpmodels.statistics import Passes, Statistic, moments
from dpmodels.statistics.counts import counts
from dpmodels.statistics.gradient import Gradients


class OfBase:
    """A mechanism whose promise is that of the mechanism it is made of."""

    base: Any

    @property
    def info(self) -> MechanismInfo:
        """The promise of that mechanism."""
        promise: MechanismInfo = self.base.info
        return promise


class OfMoments:
    """A mechanism that reads augmented moments, once."""

    def measure(self, design: PrivateDesign, plan: Plan) -> Statistic:
        """Compute the exact augmented moments."""
        return moments(design, plan.lattice)


class OfPasses:
    """A mechanism that reads the rows several times."""

    passes: ClassVar[str] = "many"

    def measure(self, design: PrivateDesign, plan: Plan) -> Statistic:
        """Prepare to read the rows, once for each step."""
        return Passes((design,), plan.lattice)


class OfGradients:
    """A mechanism of coefficients, which reads the rows several times."""

    def measure(self, design: PrivateDesign, plan: RegressionPlan) -> Gradients:
        """Prepare to read the rows. FrameError if they can be read only once."""
        return passes(design, plan.facts)


class OfCells:
    """A mechanism of numbers of whole rows by cell."""

    def measure(self, private: PrivateCells, plan: Calibrated) -> Statistic:
        """Compute the exact counts of the cells."""
        return counts(private, 1)


class OfParts:
    """A mechanism of counts of rows, or of parts of rows, by cell."""

    def measure(self, private: PrivateCells, plan: CountPlan) -> Statistic:
        """Compute the exact counts, in the units of the plan."""
        return counts(private, plan.units_per_row)
