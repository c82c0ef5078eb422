"""What a mechanism is: a card, a plan from public facts, and one release."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Protocol

from dpmodels.noise import Entropy
from dpmodels.noise.lattice import Lattice
from dpmodels.privacy import Adjacency, Event, Guarantee
from dpmodels.released import Card, MomentNoise, MomentsRelease
from dpmodels.statistics import Statistic


@dataclass(frozen=True)
class Facts:
    """Public facts a plan may use; none of them is learnt from a row.

    Attributes
    ----------
    columns : int
        Coded columns of the design.
    adjacency : Adjacency
        Who is a neighbour.
    centred : bool
        Whether the sum of the rows is needed.
    """

    columns: int
    adjacency: Adjacency
    centred: bool


@dataclass(frozen=True)
class MomentsPlan:
    """A calibrated release of moments: everything but the data.

    Attributes
    ----------
    guarantee : Guarantee
        What was asked and will hold.
    events : tuple of Event
        What the ledger is charged.
    sensitivity : float
        L2, of the weighted moments in units of the ball's radius squared.
    lattice : Lattice
        Where rows and noise live.
    steps : MomentNoise
        Noise scales in lattice steps.
    facts : Facts
        What the plan was made for.
    """

    guarantee: Guarantee
    events: tuple[Event, ...]
    sensitivity: float
    lattice: Lattice
    steps: MomentNoise
    facts: Facts


class CovarianceMechanism(Protocol):
    """A strategy that releases the second moment of rows in the unit ball."""

    card: ClassVar[Card]

    def plan(self, facts: Facts, guarantee: Guarantee) -> MomentsPlan:
        """Calibrate to a guarantee; sees no data and raises before any is read."""
        ...

    def release(self, statistic: Statistic, plan: MomentsPlan, entropy: Entropy) -> MomentsRelease:
        """Add noise and hand over; called once, after the ledger was charged."""
        ...
