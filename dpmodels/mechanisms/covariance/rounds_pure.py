"""Laplace noise on moments about a released centre, in a ball of released radius.

Theorem
    Every round is ε_j-differentially private, given what the rounds before released, with shares
    of ε fixed beforehand; together they are ε-differentially private, and so are their ε_j²/2 of
    zCDP. An (ε, δ) guarantee leaves its δ unused. Centre and radius of a round are functions of
    released values and public facts.
Sensitivity
    As told in ``rounds.py``, in L1: of sums of rows that of
    :func:`dpmodels.mechanisms.noisy_count.laplace_count`, of numbers of rows by length 2, or 1 for
    a row more, of the last round that of
    :func:`dpmodels.statistics.moments.absolute_sensitivity`.
Noise
    Independent discrete Laplace of at least 2¹⁰ steps, in three turns: on the sum of the rows held
    in the ball so far (3 % of the budget each), and on their lengths about its mean (2, 2 and 5 %,
    the last up to 37 % for few columns); with the rest on the moments about the third mean, on and
    above the diagonal. Where the mean is not taken off there is one turn, of lengths.
Numerics
    exact: in every round an integer statistic and integer noise of exact law; what happens in
    floating point in between happens to released values.
Source
    This package; ``rounds.py`` names what it is made after.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from dpmodels.design import PrivateDesign
from dpmodels.errors import ArgumentError
from dpmodels.mechanisms.add_noise import (
    LAPLACE,
    hand_over,
    laplace_multipliers,
    laplace_scales,
    noised_moments,
)
from dpmodels.mechanisms.ball_rounds import MOMENTS, found, shares, turn_scales
from dpmodels.mechanisms.noisy_count import laplace_count
from dpmodels.mechanisms.protocol import Facts, Plan
from dpmodels.noise import Entropy
from dpmodels.privacy import Guarantee, LaplaceEvent
from dpmodels.released import Card, MomentsRelease
from dpmodels.statistics import Passes, Statistic, moments

# Of the budget, as in `rounds.py`: choices.
TURNS = ((0.03, 0.02), (0.03, 0.02), (0.03, 0.05))
LEAST = 1.0


@dataclass(frozen=True)
class RoundsPure:
    """Centre and radius first, then the moments, with Laplace noise throughout.

    Reads the rows seven times; twice where the mean is not taken off.

    Examples
    --------
    >>> from dpmodels.mechanisms import Facts
    >>> from dpmodels.privacy import PureDP, adjacency
    >>> plan = RoundsPure().plan(Facts(30, adjacency("replace"), centred=True), PureDP(1.0))
    >>> len(plan.events), plan.events[-1].describe()
    (7, 'Laplace, multiplier 1.21951')
    """

    card: ClassVar[Card] = Card(
        name="rounds_pure",
        theorem="eps-DP, or zCDP at the sum of all rounds' eps^2/2",
        sensitivity="L1 of each round: sums, numbers by length, moments on and above the diagonal",
        noise="discrete Laplace, one scale on and above the diagonal",
        numerics="exact lattice",
        source="moments about a released centre in a ball of released radius; this package",
    )
    passes: ClassVar[str] = "many"

    def plan(self, facts: Facts, guarantee: Guarantee) -> Plan:
        """Divide a budget between the rounds and calibrate their noise.

        BudgetError if the noise leaves no useful lattice.
        """
        wanted = shares(facts, TURNS, LEAST)
        each = laplace_multipliers(guarantee, list(wanted.values()))
        multipliers = dict(zip(wanted, each, strict=True))
        moved = 2.0 if facts.adjacency.n_public else 1.0
        scales = turn_scales(multipliers, moved, lambda own: laplace_count(facts, 1 / own))
        lattice, steps = laplace_scales(facts, multipliers[MOMENTS])
        events = tuple(LaplaceEvent(own) for own in multipliers.values())
        return Plan(guarantee, events, lattice, facts, steps, scales)

    def measure(self, design: PrivateDesign, plan: Plan) -> Passes:
        """Make ready to read the rows, once for each round."""
        return Passes((design,), plan.lattice, count_public=plan.facts.adjacency.n_public)

    def release(self, statistic: Statistic, plan: Plan, entropy: Entropy) -> MomentsRelease:
        """Read and add noise, round by round; rows of one length are not held in another ball."""
        if not isinstance(statistic, Passes):
            raise ArgumentError("statistic= is one of moments; expected what measure() returned")
        seen = found(statistic, plan, entropy, LAPLACE)
        exact, rows = seen.held.measured(moments).cross()
        noisy = noised_moments(exact, plan, entropy, LAPLACE)
        return hand_over(self.card, plan, noisy, rows, ball=seen.ball)
