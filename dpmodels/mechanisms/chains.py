"""Mechanisms that hide states of series, under a Pufferfish guarantee."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from dpmodels.design.cells import PrivateCells
from dpmodels.mechanisms.add_noise import ROUND_UP
from dpmodels.mechanisms.protocol import LEAST_SCALE, ChainMechanism, refuse_noise, release_terms
from dpmodels.noise import Entropy, discrete_laplace, discrete_laplace_variance
from dpmodels.privacy import Adjacency, Event, Pufferfish, PufferfishEvent, Quilt
from dpmodels.released import CountsRelease, MechanismInfo
from dpmodels.statistics import Statistic
from dpmodels.statistics.counts import state_counts

# By how much one state moves all counts together.
MOVED = 2
# Beyond, draws leave 64 bits.
MOST_SCALE = 2.0**50


@dataclass(frozen=True)
class SeriesFacts:
    """Public facts a plan may use; none of them is learnt from a row."""

    states: int  # Levels that are counted
    steps: int  # Times of each person
    series: str  # What the secrets are of, in words that a ledger compares
    adjacency: Adjacency  # How many rows of a person count: one a time


@dataclass(frozen=True)
class QuiltPlan:
    """A calibrated release: everything but the data."""

    guarantee: Pufferfish
    events: tuple[Event, ...]
    facts: SeriesFacts
    quilt: Quilt
    scale: float  # Of the noise in each count, in rows
    noise_sd: float


@dataclass(frozen=True)
class QuiltCounts:
    """Markov quilt mechanism for counts of states.

    Counts of states in series of persons whose states depend on each other.

    Theorem
        Let the series of different persons be independent, each of a law of one public class of
        Markov chains, and let it be independent of the states which of them are missing. The
        release is ε-Pufferfish private: each answer is at most e^ε times as likely given a person's
        state at a time as given another one there, for all persons, times, pairs of states and laws
        of the class. It is not differentially private. Proof: given which states are missing,
        counts are a function of the series alone, and one state moves them by 2 in L1 norm or not
        at all; with the noise below the law changes by at most exp(m/σ) where m states do. The
        quilt theorem of :mod:`dpmodels.privacy.quilts` has the rest, other persons being among what
        is independent of the near states. As missingness is independent of the states, its law is
        the same given either state, and means over it keep the bound.
    Sensitivity
        2 in L1 norm for one state: the state of a person at a time is that of the first complete
        row of both, so that further rows count nothing. σ is the largest over times of the least
        over quilts of near/(ε - influence): 1/ε where states are independent, which is the
        geometric mechanism's noise, T/ε where no quilt is quieter than all T states together.
    Noise
        Independent discrete Laplace noise of scale 2σ on every count, the missing states' too.
    Numerics
        exact: integer statistic, integer noise of exact law; influences and scales are rounded up.
    Source
        Song, Wang, Chaudhuri (2017), "Pufferfish privacy mechanisms for correlated data", SIGMOD.

    Examples
    --------
    >>> from dpmodels.privacy import adjacency, markov_chain
    >>> facts = SeriesFacts(2, 1000, "activity by minute", adjacency("replace"))
    >>> chain = markov_chain(["rest", "walk"], stay=0.9, initial="stationary")
    >>> plan = QuiltCounts().plan(facts, Pufferfish(1.0, chain))
    >>> round(plan.scale, 1), plan.quilt.describe()
    (63.5, '12 before and 12 after, 23 near')
    """

    info: ClassVar[MechanismInfo] = MechanismInfo(
        name="quilt",
        theorem="eps-Pufferfish private for each state, not differentially private",
        sensitivity="L1, 2 a state; near states by the quilt",
        noise="discrete Laplace, one scale",
        numerics="exact lattice",
        source="Song, Wang and Chaudhuri (2017)",
    )

    def plan(self, facts: SeriesFacts, guarantee: Pufferfish) -> QuiltPlan:
        """Find the quilts; BudgetError if the noise is beyond what is meaningful."""
        quilt = guarantee.active(facts.steps)
        scale = max(MOVED * quilt.scale * ROUND_UP, LEAST_SCALE)
        if scale > MOST_SCALE:
            refuse_noise(scale, "rows in each count", "eps")
        event = PufferfishEvent(guarantee.eps, guarantee.model.digest, facts.series)
        sd = math.sqrt(discrete_laplace_variance(scale))
        return QuiltPlan(guarantee, (event,), facts, quilt, scale, sd)

    def measure(self, private: PrivateCells, plan: QuiltPlan) -> Statistic:
        """Compute the exact counts."""
        return state_counts(private)

    def release(self, statistic: Statistic, plan: QuiltPlan, entropy: Entropy) -> CountsRelease:
        """Add the planned noise to the exact counts."""
        exact, n_rows = statistic.cross()
        noise = discrete_laplace(plan.scale, exact.size, entropy)
        return CountsRelease(
            values=(exact + noise.astype(object)).astype(np.float64),
            law="laplace",
            noise_sd=plan.noise_sd,
            step=1.0,
            quilt=plan.quilt,
            **release_terms(self.info, plan, n_rows),
        )


CHAINS: dict[str, type[ChainMechanism]] = {"quilt": QuiltCounts}
