"""A mechanism on the rows of a survey design, after a cap of the weights of units was released.

Theorem
    Numbers of units by the public cell of their total weight are released first; given the cap that
    follows from them, the rows of a unit take at most a public number k of places
    (:mod:`dpmodels.design.parts`), and the mechanism is that of rows of persons who have k
    each. Multipliers are fixed beforehand, so together they satisfy (ε, δ) with the exact trade-off
    of one Gaussian mechanism if the mechanism has Gaussian noise only, else ρ-zCDP, or ε
    (docs/theory.md, Theorem 73).
Sensitivity
    A unit is in one cell, and where scores are bought by stratum in one stratum too: √2 for each of
    the two where it is replaced and 1 where it is added or removed, 2 and 1 in absolute values.
    Events are in units of a place: the noise of these numbers is 1/k of what the event says of a
    place. That of the mechanism: k times that of a row, for any weights and cap.
Noise
    Discrete Gaussian, or discrete Laplace where the mechanism has no Gaussian noise, of 3 % of the
    budget for the numbers of units.
Numerics
    exact for the numbers of units: integers, and integer noise of exact law. The cap is a
    floating-point function of released values; places are whole numbers. Otherwise as the
    mechanism.
Source
    This package. Weights and privacy: Seeman, Si and Reiter (2024), "Differentially private
    inference with survey weights", arXiv:2411.04236.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Final

import numpy as np

from dpmodels.design import PrivateDesign
from dpmodels.design.parts import SLOTS
from dpmodels.formula.tally import Sampling
from dpmodels.mechanisms.add_noise import (
    LAPLACE,
    ROUND_UP,
    Law,
    divided_gaussian,
    divided_laplace,
    event_law,
    noised_rows,
)
from dpmodels.mechanisms.measures import OfBase
from dpmodels.mechanisms.protocol import PlanOfStrategy
from dpmodels.mechanisms.weighted_scores import WeightedGradients, WeightedScores
from dpmodels.noise import Entropy
from dpmodels.postprocess import weight_caps
from dpmodels.postprocess.ranges import CellNoise
from dpmodels.postprocess.weight_caps import stratum_factors
from dpmodels.privacy import GaussianEvent, Guarantee, LaplaceEvent, PureDP
from dpmodels.privacy.events import all_gaussian
from dpmodels.released import ScoreCap, UnitCap
from dpmodels.statistics.sampled import UnitWeights
from dpmodels.statistics.statistic import Statistic, measured_as
from dpmodels.typing import Floats

UNITS: Final = "units by weight"
# A choice: by how many units of noise a fit moves where a unit of weight is cut off.
MOVED = 0.1
# Where a step by scores of all weights follows, choices: the noise of a sum of scores over that of
# weights, and the error of the step for a unit of weight that is cut off before it.
NOISE_OF_SCORE, MOVED_BACK = 4.0, 0.08


@dataclass(frozen=True)
class Sampled(OfBase):
    """A cap of weights, then what the mechanism `base` releases of rows that take places."""

    base: Any
    sampling: Sampling = field(repr=False)

    passes: ClassVar[str] = "many"

    def plan(self, facts: Any, guarantee: Guarantee) -> Any:
        """Divide the budget. BudgetError as of the base."""
        rest, event = self._divided(facts, guarantee)
        base_plan = self.base.plan(facts, rest)
        replaced = facts.adjacency.n_public
        moved = (1 + replaced) * (1 + self._by_stratum)
        changed = moved if isinstance(event, LaplaceEvent) else math.sqrt(moved)
        scale = event.multiplier / SLOTS * changed * ROUND_UP
        events, scales = (*base_plan.events, event), {**base_plan.scales, UNITS: scale}
        return replace(base_plan, guarantee=guarantee, events=events, scales=scales)

    def measure(self, design: PrivateDesign, plan: PlanOfStrategy) -> UnitWeights:
        """Prepare to read the rows for their weights and once more."""
        return UnitWeights(design, self.sampling.upper)

    def release(self, statistic: Statistic, plan: PlanOfStrategy, entropy: Entropy) -> Any:
        """Release the numbers of units by weight, then what the mechanism says of capped rows."""
        units = measured_as(UnitWeights, statistic, "moments")
        base_plan = self.base.plan(plan.facts, self._divided(plan.facts, plan.guarantee)[0])
        law = event_law(plan.events[-1])
        ends = cap_grid(self.sampling, in_units=self.sampling.design.psu is not None)
        counts, scale = noised_rows(units.by_weight(ends), plan.scales[UNITS], entropy, law)
        noise = CellNoise("laplace" if law is LAPLACE else "gaussian", law.sd * scale)
        cap = self._cap(ends, counts, noise, _noise(base_plan), plan.facts.columns)
        if self._by_stratum:
            cap = self._with_strata(cap, units, plan, entropy, law)
        cap = replace(cap, population=self.sampling.design.population.get("", math.nan))
        capped = self.base.measure(units.capped(cap.cap), base_plan)
        release = self.base.release(capped, base_plan, entropy)
        if self._takes_step:
            assert cap.scores is not None
            all_weights = units.capped(cap.scores.cap, cap.scores.factors)
            measured = self.base.measure(all_weights, base_plan)
            n_units = max(float(np.sum(counts)), 1.0)
            release = self.base.step(measured, release, cap, base_plan, entropy, n_units)
        return replace(release, guarantee=plan.guarantee, events=plan.events, units=cap)

    @property
    def _by_stratum(self) -> bool:
        return self._takes_step and self.base.levels > 0

    @property
    def _takes_step(self) -> bool:
        return isinstance(self.base, WeightedScores | WeightedGradients)

    def _cap(
        self, ends: Floats, counts: Floats, noise: CellNoise, price: float, columns: int
    ) -> UnitCap:
        takes_step, edges = self._takes_step, np.append(ends[0] / 2, ends)
        if not weight_caps.are_detected(edges, counts, noise):
            public = float(ends[np.searchsorted(ends, self.sampling.upper * (1 - 1e-9))])
            scores = ScoreCap(public) if takes_step else None
            return UnitCap(public, 0.0, math.nan, scores=scores)
        of_score = price * NOISE_OF_SCORE * (2 + math.sqrt(columns))
        words = (of_score, MOVED_BACK) if takes_step else (price, MOVED)
        cap = weight_caps.best_cap(edges, counts, noise, *words, 0.0)
        capped = weight_caps.caps_of_scores(edges, counts, noise, cap)
        return capped if takes_step else replace(capped, scores=None)

    def _with_strata(
        self, cap: UnitCap, units: UnitWeights, plan: PlanOfStrategy, entropy: Entropy, law: Law
    ) -> UnitCap:
        """Release the numbers of units by stratum; without effect where noise hides one."""
        strata = self.sampling.strata
        assert strata is not None
        assert cap.scores is not None
        levels = [str(level) for level in strata.levels]
        exact = units.by_stratum(len(levels))
        noisy, scale = noised_rows(exact, plan.scales[UNITS], entropy, law)
        counts = np.rint(noisy)
        population = self.sampling.design.population
        sizes = np.array([population.get(level, math.inf) for level in levels])
        factors = stratum_factors(counts, law.sd * scale, sizes, population.get("", math.inf))
        if not factors:
            return cap
        scores = replace(cap.scores, strata=tuple(counts.tolist()), factors=factors)
        return replace(cap, scores=scores)

    def _divided(
        self, facts: object, guarantee: Guarantee
    ) -> tuple[Guarantee, GaussianEvent | LaplaceEvent]:
        if isinstance(guarantee, PureDP) or not all_gaussian(
            self.base.plan(facts, guarantee).events
        ):
            rest, (event,) = divided_laplace(guarantee, weight_caps.CAP_SHARE)
            return rest, event
        return divided_gaussian(guarantee, weight_caps.CAP_SHARE)


def strata_used(sampling: Sampling, *, is_domain: bool) -> int:
    """Return how many strata sums of scores are released of.

    Of a domain sampling units without a row in it are not read, and so not counted in their strata.
    """
    misses_units = is_domain and sampling.design.psu is not None
    return 0 if sampling.strata is None or misses_units else len(sampling.strata.levels)


def _noise(plan: PlanOfStrategy) -> float:
    """Return the noise of a sum of weights with a cap of 1."""
    squares = math.fsum(
        event.count * (getattr(event, "eps", 0.0) or 1 / event.multiplier) ** 2
        for event in plan.events
    )
    return math.sqrt(2 / squares) / SLOTS


def cap_grid(sampling: Sampling, *, in_units: bool) -> Floats:
    """Return public caps: divisors of the number of places, in units of a power of ten.

    The largest is at least the largest weight of a row, and ten times that of rows that are summed
    by unit.
    """
    divisors = np.flatnonzero(SLOTS % np.arange(1, SLOTS + 1) == 0) + 1.0
    largest = sampling.upper * (10 if in_units else 1)
    return np.asarray(divisors * 10.0 ** math.ceil(math.log10(largest / SLOTS) - 1e-9))
