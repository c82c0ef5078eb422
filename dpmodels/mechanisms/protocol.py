"""What a mechanism is: a card, a plan from public facts, a measure and one release."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from dpmodels.design import PrivateDesign
from dpmodels.design.cells import PrivateCells
from dpmodels.design.levels import PrivateLevels
from dpmodels.design.margins import PrivateMargins
from dpmodels.mechanisms.coefficients import RegressionFacts, RegressionPlan
from dpmodels.mechanisms.count_plan import CountFacts, CountPlan
from dpmodels.mechanisms.margin_plan import MarginFacts, MarginPlan
from dpmodels.mechanisms.quantile_facts import QuantileFacts
from dpmodels.noise import Entropy
from dpmodels.noise.lattice import Lattice
from dpmodels.privacy import Adjacency, Event, Guarantee
from dpmodels.released import (
    AnswersRelease,
    Card,
    CellsRelease,
    CoefficientsRelease,
    CountsRelease,
    LevelsRelease,
    MarginsRelease,
    MomentNoise,
    MomentsRelease,
    PValuesRelease,
    QuantilesRelease,
    RunsRelease,
    ScreenedRelease,
    SelectionRelease,
    SubspaceRelease,
    SumsRelease,
)
from dpmodels.statistics import Statistic
from dpmodels.typing import Floats

# Of parts of the moments that are not released with noise of their own.
SILENT = MomentNoise(math.nan, math.nan, math.nan, math.nan)


@dataclass(frozen=True)
class Facts:
    """Public facts a plan may use; none of them is learnt from a row."""

    columns: int  # Coded columns of the design
    adjacency: Adjacency
    centred: bool  # Whether the mean is taken off
    components: int = 0  # How many components are wanted, from 1 to `columns`; 0 stands for all
    unit: bool = False  # Whether every row is divided by its norm; for the automatic choice


@dataclass(frozen=True)
class Plan:
    """A calibrated release: everything but the data."""

    guarantee: Guarantee  # What was asked and will hold
    events: tuple[Event, ...]  # What the ledger is charged
    lattice: Lattice  # Where rows and noise live
    facts: Facts  # What the plan was made for
    # Scales of the noise in the number of rows, their sum, and the diagonal and the rest of the
    # second moment, in lattice steps; nan for parts that are not released with noise of their
    # own.
    steps: MomentNoise = SILENT
    # Other public numbers the release needs, by the mechanism's own names.
    scales: Mapping[str, float] = field(default_factory=dict)


Known = TypeVar("Known", contravariant=True)
Planned = TypeVar("Planned")
Rows = TypeVar("Rows", contravariant=True)
Released = TypeVar("Released", covariant=True)


class Strategy(Protocol[Known, Planned, Rows, Released]):
    """A way from public facts and rows to a release."""

    card: ClassVar[Card]

    def plan(self, facts: Known, guarantee: Any, /) -> Planned:
        """Calibrate to a guarantee; sees no data and raises before any is read."""

    def measure(self, design: Rows, plan: Planned, /) -> Statistic:
        """Compute the exact statistic that the release is made from."""

    def release(self, statistic: Statistic, plan: Planned, entropy: Entropy, /) -> Released:
        """Add noise and hand over; called once, after the ledger was charged."""


class MomentMechanism:
    """The base of user-supplied mechanisms: a name, the law of its noise, a plan and a release.

    Its class is made without arguments.

    Attributes
    ----------
    name : str
        The word that selects it, an identifier.
    law : {"gaussian", "laplace"}
        The law of its noise, independent on and above the diagonal.
    """

    name: str
    law: str

    def plan(self, facts: Facts, guarantee: Guarantee) -> MomentNoise:
        """Return standard deviations of the noise, from public facts alone.

        They are of the number of rows, of each coordinate of their sum, and of each diagonal and
        off-diagonal entry of their second moment, for rows in the unit ball. The same arguments
        give the same answer.
        """
        raise NotImplementedError

    def release(self, moments: Floats, sd: Floats, draw: Callable[[Floats], Floats]) -> Floats:
        """Return the moments with the planned noise, as a symmetric matrix.

        `moments` is exact: the sum of ``z zᵀ`` over complete rows, ``z = (1, x)``, shape
        (columns + 1, columns + 1). `sd` has the planned standard deviations in the same shape,
        and ``draw(sd)`` draws independent noise, from the only source of random numbers.
        """
        upper = np.triu(draw(sd))
        return np.asarray(moments + upper + np.triu(upper, 1).T)


# As ``mechanism=`` takes it, once its class is registered.
Registered = MomentMechanism | type[MomentMechanism]


class Ranked(NamedTuple):
    """Scores of all candidates, whole numbers, the best the largest.

    All that a neighbour changes them by lies in an interval of length `width`, which begins or
    ends at 0 where they are `monotone`, and else is symmetric. `least` is a threshold, if there is
    one; a score is so many `unit`.
    """

    scores: NDArray[Any]
    width: int
    monotone: bool
    least: int | None = None
    unit: float = 1.0
    about: Any = None  # What was released on the way to the scores
    # Where names change the scores of what is left: the next, once a candidate is named.
    after: Callable[[int], Ranked] | None = None


class Score(Protocol):
    """What candidates are ranked by, and what is told of those that are named."""

    @property
    def size(self) -> int:
        """How many candidates there are."""

    @property
    def own_share(self) -> float:
        """Share of the budget for what has to be released before there are scores."""

    def width(self, adjacency: Adjacency, /) -> float:
        """Return the length of the interval of a neighbour's changes, in the scores' unit."""

    def bought(self, facts: Any, paid: Any, eps: float, /) -> Any:
        """Plan what is released besides the names, for draws of an eps: `events`, `noise_sd`.

        `paid` takes a share of the budget and returns what that guarantees.
        """

    def measure(self, private: Any, facts: Any, /) -> Statistic:
        """Compute the exact statistic that scores and values are made from."""

    def ranked(self, exact: NDArray[Any], facts: Any, bought: Any, entropy: Entropy, /) -> Ranked:
        """Return the exact scores."""

    def valued(
        self,
        exact: NDArray[Any],
        ranked: Ranked,
        places: NDArray[np.int64],
        bought: Any,
        entropy: Entropy,
        /,
    ) -> dict[str, Any]:
        """Release values of what was named with fresh noise, as fields of a release."""


# Of the second moment of rows in the unit ball.
CovarianceMechanism = Strategy[Facts, Plan, PrivateDesign, MomentsRelease]
# Of orthonormal directions of such rows.
SubspaceMechanism = Strategy[Facts, Plan, PrivateDesign, SubspaceRelease]
# Of the coefficients of a linear predictor.
RegressionMechanism = Strategy[RegressionFacts, RegressionPlan, PrivateDesign, CoefficientsRelease]
# Of counts of rows, or of parts of rows, by cell.
CountMechanism = Strategy[CountFacts, CountPlan, PrivateCells, CountsRelease]
# Of sums of rows over runs of cells that stand in an order.
SumsMechanism = Strategy[CountFacts, CountPlan, PrivateCells, SumsRelease | RunsRelease]
# Of counts of cells that rows answer with.
ResponseMechanism = Strategy[CountFacts, Any, PrivateCells, AnswersRelease]
# Of counts of states that depend on each other; its facts and its guarantee are its own.
ChainMechanism = Strategy[Any, Any, PrivateCells, CountsRelease]
# Of counts of rows in margins that agree.
MarginMechanism = Strategy[MarginFacts, MarginPlan, PrivateMargins, MarginsRelease]
# Of counts of rows by cell of several numbers.
CellMechanism = Strategy[CountFacts, CountPlan, PrivateCells, CellsRelease]
# Of levels that nobody declared; each has facts and a plan of its own.
LevelMechanism = Strategy[Any, Any, PrivateLevels, LevelsRelease]
# Of columns by how they go with a response; each has a plan of its own.
ScreeningMechanism = Strategy[Any, Any, PrivateDesign, ScreenedRelease | PValuesRelease]
# Of quantiles by group; each has a plan of its own.
QuantileMechanism = Strategy[QuantileFacts, Any, PrivateCells, QuantilesRelease]
# Of names of candidates, by their scores.
SelectionMechanism = Strategy[Any, Any, Any, SelectionRelease]
