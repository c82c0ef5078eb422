"""Gaussian noise on moments about a released centre, in a ball of released radius.

Theorem
    Every round is a Gaussian mechanism, given what the rounds before released; their multipliers
    are fixed beforehand, so together they satisfy (ε, δ) with the exact trade-off of one Gaussian
    mechanism, or ρ-zCDP: ``1/m² = Σ 1/m_j²``. Centre and radius of a round, and whether the last
    is of moments or of increments, are functions of released values and public facts.
Sensitivity
    In each round a row is held in the unit ball of that round's centre and radius: an integer
    vector of norm at most ``2**bits`` that depends on that row and released values alone. So sums
    of rows have the sensitivity of :func:`dpmodels.mechanisms.noisy_count.gaussian_count`, numbers
    of rows by length √2, or 1 for a row more, since a row is in one cell at most. The last round
    has that of :func:`dpmodels.statistics.moment_sensitivity`, or increments that of
    :func:`dpmodels.statistics.increments.increment_sensitivity`.
Noise
    Independent discrete Gaussians of at least 2²⁰ steps, in three turns: on the sum of the rows
    held in the ball so far (2 % of the budget each), and on their lengths about its mean (1, 1 and
    3 %, the last up to 26 % for few columns); with the rest on the moments about the third mean, σ
    on the diagonal and σ/√2 off it. Where the mean is not taken off there is one turn, of lengths
    about the public centre; and the last round may be of increments as in ``shells``.
Numerics
    exact: in every round an integer statistic and integer noise of exact law; what happens in
    floating point in between happens to released values.
Source
    This package. Learning where rows are before their moments is of Biswas, Dong, Kamath, Ullman
    (2020), "CoinPress", NeurIPS; choosing a radius by released lengths of Amin, Dick, Kulesza,
    Munoz, Vassilvitskii (2019), "Differentially private covariance estimation", NeurIPS. The
    radius weighs the noise, which falls with it, against the squares of the rows that it cuts off,
    as far as the released lengths tell of them. The noise of the last round has a known law in
    known coordinates, so the moments are read as those of ``gauss`` are; they are of the rows held
    in the ball, and the share of those that were longer is released too.
"""

from __future__ import annotations

import math
from dataclasses import astuple, dataclass, replace
from functools import partial
from typing import ClassVar

from dpmodels.design import PrivateDesign
from dpmodels.errors import ArgumentError
from dpmodels.mechanisms.add_noise import (
    ROUND_UP,
    SMALLEST_SCALE,
    gaussian_scales,
    hand_over,
    noised_moments,
)
from dpmodels.mechanisms.ball_rounds import MOMENTS, Found, found, shares, turn_scales
from dpmodels.mechanisms.clipping_shells import accumulated, shell_noise, shells
from dpmodels.mechanisms.increments_gain import increments_gain
from dpmodels.mechanisms.noisy_count import gaussian_count
from dpmodels.mechanisms.protocol import Facts, Plan
from dpmodels.noise import Entropy
from dpmodels.privacy import GaussianEvent, Guarantee, gaussian_multiplier, split_gaussian
from dpmodels.released import Card, MomentNoise, MomentsRelease
from dpmodels.statistics import Passes, Statistic, clipped_moments, moments

# Of the budget, turn by turn to the sum and to the lengths; see `shares` for the last. Choices: a
# tenth at most is lost where nothing is learnt, but for few columns.
TURNS = ((0.02, 0.01), (0.02, 0.01), (0.02, 0.03))
LEAST = 0.5
# A choice: increments have an estimate whose error has no known law.
WORTH = 0.72
# Names of scales, of the noise in the number of rows and in the sum of the increments.
COUNT, DIAGONAL = "count", "diagonal"


@dataclass(frozen=True)
class Rounds:
    """Centre and radius first, then the moments about the one within the other.

    Made for rows that do not fill the box of the codebook: counts at the edge of their bounds, and
    bounds that are too wide. Reads the rows seven times; twice where the mean is not taken off.

    Examples
    --------
    >>> from dpmodels.mechanisms import Facts
    >>> from dpmodels.privacy import ZCDP, adjacency
    >>> plan = Rounds().plan(Facts(30, adjacency("replace"), centred=True), ZCDP(0.5))
    >>> len(plan.events), plan.events[-1].describe()
    (7, 'Gaussian, multiplier 1.06')
    """

    card: ClassVar[Card] = Card(
        name="rounds",
        theorem="(eps, delta)-DP or rho-zCDP, Gaussian rounds composed exactly",
        sensitivity="L2 of each round: sums, numbers by length, moments in isometric coordinates",
        noise="discrete Gaussian, variance s^2 on the diagonal and s^2/2 off it",
        numerics="exact lattice",
        source="moments about a released centre in a ball of released radius; this package",
    )
    passes: ClassVar[str] = "many"

    def plan(self, facts: Facts, guarantee: Guarantee) -> Plan:
        """Divide a budget between the rounds and calibrate their noise.

        Raises
        ------
        BudgetError
            For a pure guarantee, which Gaussian noise does not give.
        """
        wanted = shares(facts, TURNS, LEAST)
        whole = gaussian_multiplier(guarantee) * ROUND_UP
        multipliers = dict(zip(wanted, split_gaussian(whole, list(wanted.values())), strict=True))
        last, moved = multipliers[MOMENTS], math.sqrt(2) if facts.adjacency.n_public else 1.0
        scales = turn_scales(multipliers, moved, partial(gaussian_count, facts))
        lattice, steps = gaussian_scales(facts, last)
        if not facts.centred:
            coarse, increments, own_scales = shell_noise(facts, last)
            shrink = (coarse.radius / lattice.radius) ** 2
            steps = MomentNoise(*(max(step * shrink, SMALLEST_SCALE) for step in astuple(steps)))
            lattice, scales = coarse, scales | own_scales
            scales |= {COUNT: increments.count, DIAGONAL: increments.diagonal}
        events = tuple(GaussianEvent(own) for own in multipliers.values())
        return Plan(guarantee, events, lattice, facts, steps, scales)

    def measure(self, design: PrivateDesign, plan: Plan) -> Passes:
        """Make ready to read the rows, once for each round."""
        return Passes((design,), plan.lattice, count_public=plan.facts.adjacency.n_public)

    def release(self, statistic: Statistic, plan: Plan, entropy: Entropy) -> MomentsRelease:
        """Read and add noise, round by round; rows of one length are not held in another ball."""
        if not isinstance(statistic, Passes):
            raise ArgumentError("statistic= is one of moments; expected what measure() returned")
        seen = found(statistic, plan, entropy)
        if seen.lengths is not None and not plan.facts.centred:
            gain = increments_gain(seen.lengths, plan)
            if gain.ratio < WORTH:
                return self._increments(seen.at(gain.radius), plan, entropy)
        exact, rows = seen.held.measured(moments).cross()
        noisy = noised_moments(exact, plan, entropy)
        return hand_over(self.card, plan, noisy, rows, ball=seen.ball)

    def _increments(self, seen: Found, plan: Plan, entropy: Entropy) -> MomentsRelease:
        """Release increments within the ball instead of moments."""
        exact = seen.held.measured(clipped_moments, shells(plan.facts.columns)[-1])
        diagonal = plan.scales[DIAGONAL]
        own = MomentNoise(plan.scales[COUNT], math.nan, diagonal, diagonal / math.sqrt(2))
        noisy, estimate, rows = accumulated(exact, replace(plan, steps=own), entropy)
        return hand_over(self.card, plan, noisy, rows, estimate, seen.ball)
