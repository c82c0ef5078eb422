"""Gaussian noise on rows clipped to an ellipsoid that is made tighter round by round.

Theorem
    Every round is a Gaussian mechanism, given what the rounds before released; together they
    satisfy (ε, δ) with the exact trade-off of one Gaussian mechanism, or ρ-zCDP: the multipliers
    compose, ``1/m² = Σ 1/m_j²``. The matrix of a round is a function of released values and public
    facts, and so are the square roots and the way back.
Sensitivity
    In round j a row ``x`` becomes ``T_j x``, held in the unit ball: an integer vector of norm at
    most ``2**bits`` that depends on that row and T_j alone. So the first round, of the augmented
    moments, has the sensitivity of :func:`dpmodels.statistics.moment_sensitivity`, and every
    further one, of the second moment alone, √2 (two orthogonal rows) or 1 (a row more).
Noise
    Independent discrete Gaussians on those integers, in isometric coordinates: σ on the diagonal,
    σ/√2 off it, at least 2²⁰ steps. The last round has three quarters of the budget, the others
    share a quarter. The matrix is the last round's, nearest positive semidefinite and transformed
    back; rows were clipped, so its error has no known law.
Numerics
    exact: in every round an integer statistic and integer noise of exact law; what happens in
    floating point in between happens to released values.
Source
    Biswas, Dong, Kamath, Ullman (2020), "CoinPress: practical private mean and covariance
    estimation", NeurIPS, the zero-mean form. As there, the rows are clipped to the radius
    ``γ² = d + 2√(d log 1/β) + 2 log 1/β`` that a normal row exceeds with probability β, and the
    next ellipsoid is that of ``Z + (η + ν) I``. Their code has β = 0.1, η = √(d/n) + d/2n and ν =
    0. Here β = 0.001, ν is the edge of the noise's spectrum, ``σ√(2d)``, without which directions
    below the noise are blown up, and no round clips wider than rows of the unit ball reach, which
    is what the noise is paid for.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from dpmodels.arguments import between, integer
from dpmodels.mechanisms import add_noise
from dpmodels.mechanisms.add_noise import noised_count, noised_symmetric
from dpmodels.mechanisms.measures import OfPasses
from dpmodels.mechanisms.protocol import Facts, Plan
from dpmodels.noise import Entropy
from dpmodels.noise.lattice import Lattice
from dpmodels.privacy import GaussianEvent, Guarantee, gaussian_multiplier, split_gaussian
from dpmodels.released import MechanismInfo, MomentNoise, MomentsRelease
from dpmodels.statistics import MomentWeights, Passes, Statistic, moment_sensitivity
from dpmodels.statistics.statistic import measured_as
from dpmodels.typing import Floats, Scalars

# The last round's share of the budget, and the chance beta of a longer row: choices.
LAST = 0.75
TAIL = 1e-3
# Choices: further rounds, or a smaller bound, only leave less budget or digits.
MOST_ROUNDS = 20
SMALLEST_BOUND = 1e-9


class Round(NamedTuple):
    """A noisy sum of ``y yᵀ`` over rows brought inward, and its noise on the diagonal."""

    moment: Floats
    sd: float


class Ellipsoid(NamedTuple):
    """A matrix that brings the rows of an ellipsoid into a ball, and the way back."""

    inward: Floats
    outward: Floats

    def radius(self) -> float:
        """Return where rows brought inward are clipped: where normal ones, and all, seldom are."""
        return min(normal_radius(len(self.inward)), float(np.linalg.norm(self.inward, 2)))

    def tightened(self, last_round: Round, n_rows: float) -> Ellipsoid:
        """Return the ellipsoid of the second moment seen, and of what it may miss."""
        columns = len(last_round.moment)
        values, vectors = np.linalg.eigh(last_round.moment / n_rows)
        sampling = math.sqrt(columns / n_rows) + columns / (2 * n_rows)
        noise = last_round.sd / n_rows * math.sqrt(2 * columns)
        roots = np.sqrt(np.maximum(values, 0.0) + sampling + noise)
        inward = (vectors / roots) @ vectors.T @ self.inward
        return Ellipsoid(inward, self.outward @ (vectors * roots) @ vectors.T)

    def widened(self, last_round: Round) -> Floats:
        """Return the nearest positive semidefinite moment, in the rows' own coordinates."""
        values, vectors = np.linalg.eigh(last_round.moment)
        roots = self.outward @ (vectors * np.sqrt(np.maximum(values, 0.0)))
        return np.asarray(roots @ roots.T)


@dataclass(frozen=True)
class CoinPress(OfPasses):
    """Rounds of clipping to an ellipsoid, each learnt from the round before.

    Made for few columns of normal-like rows about the public centre; reads the rows once for each
    round.

    Parameters
    ----------
    rounds : int
        Public number of rounds, 1 to 20.
    largest : float
        Public bound on the largest eigenvalue of the second moment of a row in the unit ball,
        above 0 and at most 1, which always holds. A smaller one clips in the first round already,
        the sum of the rows too.

    Raises
    ------
    ArgumentError
        If either lies outside its range.

    Examples
    --------
    >>> from dpmodels.mechanisms import Facts
    >>> from dpmodels.privacy import ZCDP, adjacency
    >>> plan = CoinPress().plan(Facts(3, adjacency("replace"), centred=False), ZCDP(0.5))
    >>> [event.describe() for event in plan.events]
    ['Gaussian, multiplier 2', 'Gaussian, multiplier 1.1547']
    """

    info: ClassVar[MechanismInfo] = MechanismInfo(
        name="coinpress",
        theorem="(eps, delta)-DP or rho-zCDP, Gaussian rounds composed exactly",
        sensitivity="L2 in isometric coordinates, sqrt(2) or 1 a round",
        noise="discrete Gaussian, variance s^2 on the diagonal and s^2/2 off it, each round",
        numerics="exact lattice",
        source="Biswas, Dong, Kamath, Ullman (2020)",
    )

    rounds: int = 2
    largest: float = 1.0

    def __post_init__(self) -> None:
        rounds = integer("rounds", self.rounds, 1, MOST_ROUNDS, "; write rounds=2")
        object.__setattr__(self, "rounds", rounds)
        what = ", a bound on the largest eigenvalue; write largest=1.0 for none"
        between("largest", self.largest, SMALLEST_BOUND, 1, what)

    def plan(self, facts: Facts, guarantee: Guarantee) -> Plan:
        """Divide a budget between the rounds and calibrate their noise.

        BudgetError for a pure guarantee, which Gaussian noise does not give.
        """
        shares = [(1 - LAST) / max(self.rounds - 1, 1)] * (self.rounds - 1) + [LAST]
        total_multiplier = gaussian_multiplier(guarantee) * add_noise.ROUND_UP
        # No round has less than the first, whose lattice therefore is coarse enough for all.
        first, *further = split_gaussian(total_multiplier, shares)
        lattice, steps = add_noise.gaussian_scales(facts, first)
        alone = moment_sensitivity(facts.adjacency, MomentWeights(0.0, 0.0))
        unit = alone * lattice.radius**2 * add_noise.ROUND_UP
        sigmas = [steps.diagonal]
        sigmas += [max(m * unit, math.sqrt(2) * add_noise.SMALLEST_SCALE) for m in further]
        return Plan(
            guarantee,
            tuple(GaussianEvent(multiplier) for multiplier in (first, *further)),
            lattice,
            facts,
            MomentNoise(steps.count, steps.mean, math.nan, math.nan),
            {f"round {number}": sigma for number, sigma in enumerate(sigmas, start=1)},
        )

    def release(self, statistic: Statistic, plan: Plan, entropy: Entropy) -> MomentsRelease:
        """Read, add noise and tighten the ellipsoid, round by round."""
        statistic = measured_as(Passes, statistic, "moments")
        start, scale = np.eye(plan.facts.columns), math.sqrt(self.largest)
        ellipsoid = Ellipsoid(start / scale, start * scale)
        radius = ellipsoid.radius()
        sigma, *further = plan.scales.values()
        exact, n_rows = statistic.within(ellipsoid.inward / radius).cross()
        count, total = noised_count(exact, plan, entropy)
        stretch = radius * scale
        last_round = _noised_round(exact, sigma, radius, plan.lattice, entropy)
        for sigma in further:
            ellipsoid = ellipsoid.tightened(last_round, max(count, 1.0))
            radius = ellipsoid.radius()
            exact, _ = statistic.within(ellipsoid.inward / radius).cross()
            last_round = _noised_round(exact, sigma, radius, plan.lattice, entropy)
        noise = add_noise.noise_of(plan)
        noisy = add_noise.NoisyMoments(
            count,
            None if total is None else total * stretch,
            ellipsoid.widened(last_round),
            MomentNoise(noise.count, noise.mean * stretch, math.nan, math.nan),
        )
        return add_noise.hand_over(self.info, plan, noisy, n_rows)


def normal_radius(columns: int) -> float:
    """Return a radius that a standard normal row exceeds with probability 0.001 at most.

    Source: Laurent, B. and Massart, P. (2000). "Adaptive estimation of a quadratic functional by
    model selection." Annals of Statistics 28(5), 1302-1338.
    """
    tail = -math.log(TAIL)
    return math.sqrt(columns + 2 * math.sqrt(columns * tail) + 2 * tail)


def _noised_round(
    exact: Scalars, sigma: float, radius: float, lattice: Lattice, entropy: Entropy
) -> Round:
    unit = (radius / lattice.steps) ** 2
    noisy = noised_symmetric(exact[1:, 1:], sigma, sigma / math.sqrt(2), entropy)
    return Round(noisy * unit, sigma * unit)
