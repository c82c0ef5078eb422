"""Undeclared levels, with noisy counts of those that have enough rows.

Theorem
    Every level that a row names is counted, noise of the discrete Laplace law held within ±k is
    added, and the level is released with its noisy count n if n > k. For one variable under
    ``add-remove`` that is (ε, δ)-differentially private with ``q = exp(-ε)`` and ``δ = (1 - q)
    q**k / (1 + q - 2 q**(k + 1))``, the probability p(k) of noise k. Under ``replace``, and for d
    variables, it is Δ such releases on counts of their own, at ε/Δ and δ/Δ each: their deltas add
    up, as do their ε.
Sensitivity
    Δ = d, the number of variables, where a row is added or removed: it changes one count of each
    by 1, or none where it is incomplete. Δ = 2d where it is replaced: it may leave one level and
    enter another.
Proof
    Let a level have c rows on one side and c + 1 on the other. A level without rows has noise of k
    at most and is never released, so that nothing has to be said of levels that no row names. With
    c = 0 the one more row releases it with probability p(k) = δ, by the noise k alone. With c >= 1
    the outcomes n > k of either side have probabilities p(n - c) and p(n - c - 1), whose ratio is
    within exp(±ε) but for the last one of each side: n = c + 1 + k, which c cannot reach, and n =
    c - k, which c + 1 cannot. Each has probability δ. *Not released* has probability ``P(Z <= k -
    c)`` with c rows and ``P(Z <= k - c - 1)`` with c + 1: the second is less than the first, which
    is at most ``p(-k)`` more than ``exp(ε)`` times the second, as p(z + 1) <= exp(ε) p(z). Where
    n = c - k is among what is not released it is not counted twice. So whatever is asked of the
    release exceeds exp(ε) times its probability on the other side by at most δ.
Noise
    Independent on every level that has a row; scale 1/ε rounded up, in rows. k is the least for
    which δ is met (:func:`dpmodels.noise.discrete.least_bound`).
Numerics
    exact: integer counts and noise, an integer threshold; k is found in 256 bits, rounded up.
Source
    Desfontaines, Voss, Gipson, Mandayam (2022), "Differentially private partition selection",
    PoPETs, who show that no rule releases any level more often. Korolova, Kenthapadi, Mishra,
    Ntoulas (2009), "Releasing search queries and clicks privately", WWW, for thresholds.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from dpmodels.design.cells import PrivateLevels
from dpmodels.errors import BudgetError
from dpmodels.mechanisms.add_noise import ROUND_UP
from dpmodels.mechanisms.protocol import LEAST_SCALE, PlanOf, refuse_noise, release_terms
from dpmodels.noise import Entropy
from dpmodels.noise.discrete import least_bound, truncated_laplace
from dpmodels.privacy import Adjacency, ApproxDP, ApproxEvent, Guarantee
from dpmodels.released import LevelsRelease, MechanismInfo
from dpmodels.statistics import Statistic
from dpmodels.statistics.counts import counted_levels

# In rows; noise beyond is of no use, and counts and noise fit integers. A choice.
LARGEST_SCALE = 2.0**40


@dataclass(frozen=True)
class LevelFacts:
    """Public facts a plan may use; none of them is learnt from a row."""

    variables: int
    adjacency: Adjacency


@dataclass(frozen=True)
class LevelPlan(PlanOf[LevelFacts]):
    """A calibrated release of levels."""

    scale: float  # Of the noise, in rows, before it is truncated
    threshold: int  # k: noise is truncated at it, and released noisy counts exceed it


@dataclass(frozen=True)
class Partition:
    """Truncated geometric noise and the threshold that goes with it.

    Examples
    --------
    >>> from dpmodels.privacy import adjacency
    >>> plan = Partition().plan(LevelFacts(1, adjacency("add-remove")), ApproxDP(1.0, 1e-6))
    >>> round(plan.scale, 6), plan.threshold
    (1.0, 14)
    """

    info: ClassVar[MechanismInfo] = MechanismInfo(
        name="partition",
        theorem="(eps, delta)-DP, each level by itself; deltas add up",
        sensitivity="2 counts a variable (a row may change its level) or 1",
        noise="discrete Laplace, held within the threshold",
        numerics="exact lattice",
        source="Desfontaines, Voss, Gipson and Mandayam (2022)",
    )

    def plan(self, facts: LevelFacts, guarantee: Guarantee) -> LevelPlan:
        """Calibrate noise and threshold.

        BudgetError without a delta, or if the noise is beyond what is meaningful.
        """
        if not isinstance(guarantee, ApproxDP):
            raise BudgetError(
                f"undeclared levels cannot be released with {guarantee.describe()}, because a "
                "level may occur in a single row; write delta=1e-6, well below 1/n, or declare "
                "the levels"
            )
        changed = facts.variables * (2 if facts.adjacency.n_public else 1)
        eps, delta = guarantee.eps / changed, guarantee.delta / changed
        scale = max(ROUND_UP / eps, LEAST_SCALE)
        if scale > LARGEST_SCALE:
            refuse_noise(scale, "rows in each count", "eps")
        events = (ApproxEvent(eps, delta, count=changed),)
        return LevelPlan(guarantee, events, facts, scale, least_bound(scale, delta))

    def measure(self, private: PrivateLevels, plan: LevelPlan) -> Statistic:
        """Count the rows of every level that a row names."""
        return counted_levels(private)

    def release(self, statistic: Statistic, plan: LevelPlan, entropy: Entropy) -> LevelsRelease:
        """Add noise to every count, and release the levels whose noisy count is large enough."""
        exact, n_rows = statistic.cross()
        levels, values = [], []
        for counter in exact:
            names = np.array(sorted(counter), dtype=object)
            counts = np.array([counter[name] for name in names], dtype=np.int64)
            noisy = counts + truncated_laplace(plan.scale, plan.threshold, len(names), entropy)
            is_released = noisy > plan.threshold
            levels.append(tuple(names[is_released].tolist()))
            values.append(noisy[is_released].astype(np.float64))
        return LevelsRelease(
            values=np.concatenate(values),
            levels=tuple(levels),
            scale=plan.scale,
            most=plan.threshold,
            **release_terms(self.info, plan, n_rows),
        )
