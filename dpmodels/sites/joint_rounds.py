"""Mechanisms of many rounds, whose noise all sites of a release add round by round.

Theorem
    Theorem 69: a mechanism asks in each round for a sum of integers over the sites. Each of S sites
    adds discrete Gaussian noise of the round's scale over ``√S``, and the masked sum goes back to
    all. Of S sites h are honest. Against all others together every round is a Gaussian release
    of the planned multiplier (:mod:`dpmodels.sites.summing`), whatever the answers before; the
    rounds compose as those of one curator.
Sensitivity
    Of each round as of the mechanism: a round is a function of the answers before and of public
    facts, and its integers add over disjoint rows.
Noise
    That of the mechanism for a budget whose multipliers are ``√(S (1 + SLACK)/h)`` times as
    large. The mechanism is planned for that budget, so that it knows the noise it gets; the ledger
    is charged for what the honest sites add.
Numerics
    exact lattice. Where a site's noise would have too few steps, all sites take finer ones.
Source
    This package; Bonawitz et al. (2017) for the masks.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction

import numpy as np

from dpmodels.errors import ArgumentError
from dpmodels.mechanisms.add_noise import ROUND_UP, SMALLEST_SCALE
from dpmodels.mechanisms.choose import gaussian_alone
from dpmodels.mechanisms.counts import Factorisation, Grid, Tree, Wavelet
from dpmodels.mechanisms.counts.ranges import Ranges
from dpmodels.mechanisms.counts.ranges import Rounds as CountRounds
from dpmodels.mechanisms.covariance.adaptive import Shells
from dpmodels.mechanisms.covariance.rounds import Rounds
from dpmodels.mechanisms.lumped import Lumped
from dpmodels.mechanisms.margins import Graph, Residual
from dpmodels.mechanisms.protocol import PlanOfStrategy
from dpmodels.mechanisms.regression import Ellipsoid, Moments, NoisyGradients, Scores
from dpmodels.mechanisms.regression.rate_scores import RateScores
from dpmodels.mechanisms.robust_covariance import RobustCovariance
from dpmodels.mechanisms.scalar import RankTree, Refined
from dpmodels.mechanisms.screening import ScreenCentred
from dpmodels.mechanisms.selection import NoisyCounts
from dpmodels.noise import Entropy, NoiseOfSites, discrete_gaussian
from dpmodels.noise.discrete import Part
from dpmodels.privacy import ZCDP, Guarantee, gaussian_multiplier
from dpmodels.privacy.events import GaussianEvent, all_gaussian
from dpmodels.sites.protocol import POOLED
from dpmodels.typing import Exact

# Each of whose rounds is a sum of integers over disjoint rows, with Gaussian noise.
IN_ROUNDS: tuple[type[object], ...] = (
    *(Rounds, Shells, Ellipsoid, Scores, RateScores, NoisyGradients),
    *(CountRounds, Ranges, Tree, Grid, Wavelet, Factorisation, RankTree, Refined, Residual, Graph),
    *(NoisyCounts, ScreenCentred),
)
# Of the variance, for shifts that are not divided evenly between the sites: a choice.
SLACK = 2.0**-10


def in_rounds(strategy: object) -> bool:
    """Whether a mechanism asks for sums of integers over disjoint rows, one after the other."""
    if isinstance(strategy, RobustCovariance | Lumped):
        return isinstance(strategy.base, Moments) or in_rounds(strategy.base)
    if isinstance(strategy, CountRounds) and len(strategy.shares) > 1:
        return False  # It draws a range by the exponential mechanism
    return isinstance(strategy, IN_ROUNDS)


def widening(sites: int, honest: int) -> float:
    """Return the noise of all sites over what the honest ones add for the guarantee.

    >>> round(widening(10, 9), 4), round(widening(3, 3), 4)
    (1.0546, 1.0005)
    """
    return math.sqrt(sites * (1 + SLACK) / honest) * ROUND_UP


def planning(
    plan_of: Callable[[Guarantee], PlanOfStrategy], sites: int, honest: int, protocol: str
) -> Callable[[Guarantee], PlanOfStrategy]:
    """Return a function that plans for the noise of all sites and charges for the honest ones'.

    Scales and guarantee of the plan are those of all sites' noise, and a mechanism takes its noise
    from them alone; its events are those of the honest sites' noise.
    """
    wide = widening(sites, honest)

    def plan(guarantee: Guarantee) -> PlanOfStrategy:
        multiplier = gaussian_multiplier(guarantee) * wide
        with gaussian_alone():
            widened = plan_of(ZCDP(0.5 / multiplier**2))
        if not all_gaussian(widened.events):
            raise ArgumentError(
                f"protocol={protocol!r}: sites add Gaussian noise, and this mechanism has noise of "
                f"other laws; write mechanism='auto', or {POOLED}"
            )
        events = (replace(event, multiplier=event.multiplier / wide) for event in widened.events)
        return replace(widened, events=tuple(events))

    return plan


Events = Sequence[GaussianEvent]


class InOneProcess(NoiseOfSites):
    """The noise of all sites, in this process: what masked sums come to, without the masks."""

    def __init__(self, sites: int, honest: int, events: Events, entropy: Entropy) -> None:
        self.sites = sites
        self.honest = honest
        self.events = events  # Gaussian, planned, for the honest sites' noise
        self._entropy = entropy
        self.numbers = 0  # Sent by each site so far
        self.rounds = 0

    def answer(self, parts: Sequence[Part]) -> list[Exact]:
        """Return the sums with the noise of every site."""
        self.numbers += sum(exact.size for exact, _ in parts)
        self.rounds += 1
        finer = fineness(parts, self.sites, self.honest, self.events)
        return [
            self.noisy(exact, self._noise(exact, scale, finer), finer) for exact, scale in parts
        ]

    def _noise(self, exact: Exact, scale: float, finer: int) -> Exact:
        """Draw the noise of each site, shape (sites, size)."""
        share = scale * finer / math.sqrt(self.sites)
        draws = (discrete_gaussian(share, exact.size, self._entropy) for _ in range(self.sites))
        return np.array([draw.astype(object) for draw in draws])

    def noisy(self, exact: Exact, noise: Exact, finer: int) -> Exact:
        """Add the noise of all sites, given in the finer steps."""
        total = noise.sum(axis=0)
        if finer > 1:
            total = np.array([Fraction(int(step), finer) for step in total], dtype=object)
        return np.asarray(exact + total.reshape(exact.shape))


class Coalition(InOneProcess):
    """What the aggregator and the last sites see: all answers, less the noise of these sites."""

    def __init__(self, sites: int, honest: int, events: Events, entropy: Entropy) -> None:
        super().__init__(sites, honest, events, entropy)
        self.seen: list[float] = []

    def noisy(self, exact: Exact, noise: Exact, finer: int) -> Exact:
        """Add the noise of all sites; record what is left without that of the last."""
        honest = super().noisy(exact, noise[: self.honest], finer)
        self.seen += honest.astype(np.float64).ravel().tolist()
        return super().noisy(exact, noise, finer)


def fineness(parts: Sequence[Part], sites: int, honest: int, events: Events) -> int:
    """Return into how many steps each of a round is divided, a power of two; by public facts.

    Then a site's noise has 2²⁰ steps, and what `SLACK` is for is covered.
    """
    scales = np.array([scale for _, scale in parts]) / widening(sites, honest)
    sizes = np.array([exact.size for exact, _ in parts])
    multiplier = max(event.multiplier for event in events)
    uneven = multiplier * math.sqrt((honest**2 // 4) * float((sizes / scales**2).sum()) / SLACK)
    coarse = SMALLEST_SCALE * math.sqrt(honest) / float(scales.min())
    return 1 << max(0, math.ceil(math.log2(max(uneven, coarse, 1.0))))
