"""Mechanisms that release the names of the largest of many candidates."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from dpmodels.errors import ArgumentError, BudgetError
from dpmodels.mechanisms import selection_plan
from dpmodels.mechanisms.add_noise import GAUSSIAN, LAPLACE
from dpmodels.mechanisms.choose import at_equal_price
from dpmodels.mechanisms.clipping_shells import sparse_scales
from dpmodels.mechanisms.count_noise import gaussian_plan, laplace_plan, law_of, noised_units
from dpmodels.mechanisms.protocol import (
    LEAST_SCALE,
    CountFacts,
    CountPlan,
    Ranked,
    SelectionMechanism,
    release_terms,
)
from dpmodels.mechanisms.selection_plan import LevelScore, SelectionFacts, SelectionPlan
from dpmodels.noise import Entropy, discrete_laplace
from dpmodels.noise.finite import draw_flipped, draw_ranked
from dpmodels.privacy import ZCDP, BoundedRangeEvent, Guarantee, PureDP, PureEvent
from dpmodels.privacy.compose import divide
from dpmodels.released import MechanismInfo, SelectionRelease
from dpmodels.statistics import Statistic
from dpmodels.typing import Integers

Named = tuple[Ranked, Integers, float]


class _Selection:
    info: ClassVar[MechanismInfo]

    def measure(self, private: object, plan: SelectionPlan) -> Statistic:
        """Compute the exact scores."""
        return plan.facts.score.measure(private, plan.facts)

    def release(
        self, statistic: Statistic, plan: SelectionPlan, entropy: Entropy
    ) -> SelectionRelease:
        """Name candidates, and release values with noise of their own where they are bought."""
        exact, n_rows = statistic.cross()
        score = plan.facts.score
        ranked = score.ranked(exact, plan.facts, plan.bought, entropy)
        ranked, places, scale = self._named(ranked, plan, entropy)
        return SelectionRelease(
            places=tuple(places.tolist()),
            scale=scale,
            **score.valued(exact, ranked, places, plan.bought, entropy),
            **release_terms(self.info, plan, n_rows),
        )

    @abstractmethod
    def _named(self, ranked: Ranked, plan: SelectionPlan, entropy: Entropy) -> Named:
        """Return the scores, the places that are named, and the noise of the ranking."""


class DrawLaw(NamedTuple):
    """How candidates are drawn, and what a draw is charged as."""

    draw: selection_plan.Draw
    event: type[PureEvent] | type[BoundedRangeEvent]


class _Drawn(_Selection):
    law: ClassVar[DrawLaw]

    def plan(self, facts: SelectionFacts, guarantee: Guarantee) -> SelectionPlan:
        """Divide the budget; ArgumentError with a threshold."""
        if facts.threshold is not None:
            raise ArgumentError(
                f"mechanism={self.info.name!r} draws a fixed number of candidates; write k= "
                "instead of threshold=, or mechanism='auto'"
            )
        return selection_plan.drawing_plan(facts, guarantee, facts.max_chosen, self.law.event)

    def _named(self, ranked: Ranked, plan: SelectionPlan, entropy: Entropy) -> Named:
        """Draw the candidates, one after the other."""
        return selection_plan.drawn(ranked, plan, self.law.draw, entropy)


@dataclass(frozen=True)
class Peeling(_Drawn):
    """Peeling by the exponential mechanism; of one candidate it is that mechanism.

    The exponential mechanism, one candidate after the other.

    Theorem
        One draw has a privacy loss in an interval of length ε: it is ε-differentially private and
        ε²/8-zCDP. So k of them, each among those that are left, are kε-private and kε²/8-zCDP. An
        (ε, δ) guarantee is met by the sum of the ε, by those of the draws beside Gaussian noise in
        all else, or by zCDP, whichever leaves the draws most.
    Sensitivity
        All scores of a neighbour differ from a table's by numbers in an interval of length r: 1 for
        counts of rows under ``add-remove``, which only rise, 2 under ``replace``.
    Noise
        A candidate is drawn with probability proportional to ``exp((ε/r) s_j)``: the logarithm of
        its ratio to a neighbour's is (ε/r) times the change of s_j, less a constant. All draws
        together have the law of the k largest of ``s_j + G_j`` in their order, with independent
        Gumbel noise of scale r/ε (Durfee and Rogers 2019).
    Numerics
        exact: integer scores, and draws of the exact probabilities.
    Source
        McSherry, Talwar (2007), "Mechanism design via differential privacy", FOCS. Durfee, Rogers
        (2019), "Practical differentially private top-k selection with pay-what-you-get
        composition", NeurIPS. Cesar, Rogers (2021), "Bounding, concentrating, and truncating", ALT,
        for ε²/8.

    Examples
    --------
    >>> from dpmodels.mechanisms.selection_plan import LevelScore
    >>> from dpmodels.privacy import ZCDP, adjacency
    >>> facts = SelectionFacts(LevelScore(9), 2, None, 0.0, adjacency("replace"))
    >>> print(round(Peeling().plan(facts, ZCDP(0.25)).eps, 6))
    1.0
    """

    info: ClassVar[MechanismInfo] = MechanismInfo(
        name="peeling",
        theorem="eps-DP or eps^2/8-zCDP for each draw (bounded range), which compose",
        sensitivity="range of the scores' changes: 1 of counts, 2 where a row is replaced",
        noise="as Gumbel noise on every score",
        numerics="exact lattice",
        source="McSherry and Talwar (2007); Durfee and Rogers (2019)",
    )
    law = DrawLaw(draw_ranked, BoundedRangeEvent)


@dataclass(frozen=True)
class PermuteAndFlip(_Drawn):
    """Permute-and-flip.

    Permute-and-flip, one candidate after the other.

    Theorem
        One draw is ε-differentially private; k of them, each among those that are left, are
        kε-private, and kε²/2-zCDP. An (ε, δ) guarantee is met by the sum of the ε, by those of the
        draws beside Gaussian noise in all else, or by zCDP, whichever leaves the draws most.
    Sensitivity
        All scores of a neighbour differ from a table's by numbers in an interval of length r: 1 for
        counts of rows under ``add-remove``, which only rise, 2 under ``replace``.
    Noise
        Candidates take turns in a random order, and the first is drawn whose coin shows heads,
        which it does with probability ``exp(-(ε/r) (max s - s_j))``. That is the law of the largest
        of ``s_j + E_j``, with independent exponential E_j of mean r/ε (Ding et al. 2021). *Proof of
        ε*, by that law. A constant that is added to all scores changes nothing, so let the
        neighbour's scores s' lie between s and s + r. Fix the noise of all but j: it wins where its
        own reaches t, the largest of the others less s_j; of s' that is t' <= t + r. As ``P(E >=
        t')`` is at least ``exp(-ε) P(E >= t)``, j is drawn with at least exp(-ε) times the
        probability; and s and s' may change places. The expected error is never above that of the
        exponential mechanism of the same ε, and up to half of it.
    Numerics
        exact: integer scores, and coins of the exact probabilities.
    Source
        McKenna and Sheldon (2020), "Permute-and-flip: a new mechanism for differentially private
        selection", NeurIPS. Ding, Kifer, Sayed Mohammad, Steinke, Wang, Xiao, Zhang (2021), "The
        permute-and-flip mechanism is identical to report-noisy-max with exponential noise",
        arXiv:2105.07260.

    Examples
    --------
    >>> from dpmodels.mechanisms.selection_plan import LevelScore
    >>> from dpmodels.privacy import PureDP, adjacency
    >>> facts = SelectionFacts(LevelScore(9), 2, None, 0.0, adjacency("replace"))
    >>> print(round(PermuteAndFlip().plan(facts, PureDP(1.0)).eps, 6))
    0.5
    """

    info: ClassVar[MechanismInfo] = MechanismInfo(
        name="permute_and_flip",
        theorem="eps-DP for each draw, which compose",
        sensitivity="range of the scores' changes: 1 of counts, 2 where a row is replaced",
        noise="coins, as exponential noise on every score",
        numerics="exact lattice",
        source="McKenna and Sheldon (2020)",
    )
    law = DrawLaw(draw_flipped, PureEvent)


Law = Callable[[CountFacts, Guarantee], CountPlan]


@dataclass(frozen=True)
class NoisyCounts(_Selection):
    """The largest of noisy counts, by name alone.

    Noise on the counts of all levels; only the names of the largest are released.

    Theorem
        The noisy counts of all levels are private as those of `geometric` and `gaussian` are, and
        the names are a function of them: ε-differentially private for Δ independent releases that
        are each ε/Δ-private, or as Gaussian noise is.
    Sensitivity
        A row is counted in one level: Δ of :func:`dpmodels.statistics.counts.count_sensitivity`, 1
        where a row is added or removed and 2 where it is replaced, or its root in L2 norm; however
        many levels are named. That is why it serves better than draws, each of which has a part of
        the budget alone, where several are named.
    Noise
        Independent discrete Laplace noise on every count, or discrete Gaussian where so many counts
        have less in the farthest of them. The counts rank the levels or are compared with a
        threshold. They are not released, as the largest are biased upwards.
    Numerics
        exact: integer counts, integer noise of exact law, then comparisons.
    Source
        Dwork and Roth (2014), "The algorithmic foundations of differential privacy", Section 3.3.
        Bhaskar, Laxman, Smith, Thakurta (2010), "Discovering frequent patterns in sensitive data",
        KDD.

    Examples
    --------
    >>> from dpmodels.mechanisms.selection_plan import LevelScore
    >>> from dpmodels.privacy import PureDP, adjacency
    >>> facts = SelectionFacts(LevelScore(9), 2, None, 0.0, adjacency("replace"))
    >>> print(round(NoisyCounts().plan(facts, PureDP(1.0)).noise.scale, 6))
    2.0
    """

    info: ClassVar[MechanismInfo] = MechanismInfo(
        name="noisy_counts",
        theorem="eps-DP, rho-zCDP or (eps, delta)-DP, as noisy counts of all levels",
        sensitivity="L1, 2 (a row may change its level) or 1, or L2, its root",
        noise="discrete Laplace, or discrete Gaussian where that goes less far",
        numerics="exact lattice",
        source="Dwork and Roth (2014), Section 3.3",
    )

    def plan(self, facts: SelectionFacts, guarantee: Guarantee) -> SelectionPlan:
        """Calibrate the noise of all counts; ArgumentError unless scores are counts of levels."""
        score = facts.score
        if not isinstance(score, LevelScore):
            raise ArgumentError(
                "mechanism='noisy_counts', whose noise sites can add, ranks the levels of one "
                "variable: write '~ town', dp.dp_fdr to test columns, or mechanism='peeling' for "
                "columns of one table"
            )
        laws = [laplace_plan] if isinstance(guarantee, PureDP) else [laplace_plan, gaussian_plan]
        plans = [_planned(facts, guarantee, score, law) for law in laws]
        priced = at_equal_price([reach(plan) for plan in plans], plans)
        return plans[priced.index(min(priced))]

    def _named(self, ranked: Ranked, plan: SelectionPlan, entropy: Entropy) -> Named:
        """Add noise to all counts, and name the largest of them."""
        noise = plan.noise
        assert noise is not None
        noisy, _ = noised_units(noise, ranked.scores, entropy)
        places = np.argsort(-noisy, kind="stable")[: plan.facts.max_chosen]
        if ranked.threshold is not None:
            places = places[noisy[places] >= ranked.threshold]
        return ranked, places, noise.scale / noise.units_per_row


def _planned(
    facts: SelectionFacts, guarantee: Guarantee, score: LevelScore, law: Law
) -> SelectionPlan:
    """Divide a budget between all counts and those of what is named, all with noise of one law."""
    gaussian = law is gaussian_plan
    total = guarantee if gaussian or isinstance(guarantee, ZCDP) else PureDP(guarantee.eps)
    valued = score.valued_with(facts)
    all_facts = CountFacts(1, score.size, False, facts.adjacency)
    if valued is None:
        noise = law(all_facts, total)
        return SelectionPlan(
            guarantee, noise.events, facts, 0.0, selection_plan.BoughtCounts(None), noise
        )
    ranking, values = divide(total, (1 - facts.share, facts.share), (gaussian, gaussian))
    noise, value_noise = law(all_facts, ranking), law(valued, values)
    events = (*noise.events, *value_noise.events)
    return SelectionPlan(
        guarantee, events, facts, 0.0, selection_plan.BoughtCounts(value_noise), noise
    )


def reach(plan: SelectionPlan) -> float:
    """Return what the noise of one of all counts exceeds once, on average, in rows."""
    noise = plan.noise
    assert noise is not None
    law = GAUSSIAN if law_of(noise) == "gaussian" else LAPLACE
    return noise.scale / noise.units_per_row * law.beyond(1 / (2 * plan.facts.score.size))


# Of each name. With less, noise on scores of the widest change, 2**40, would not fit 64 bits.
LEAST_EPS = 2.0**-12


@dataclass(frozen=True)
class SparseVector(_Selection):
    """The first scores above a threshold, by name alone.

    The sparse vector technique: what is above a threshold, one candidate after the other.

    Theorem
        The names of the first c candidates whose noisy scores are above a noisy threshold are
        ε-differentially private, in the public order of the candidates; then nothing more is looked
        at. ε²/2-zCDP follows, by which an (ε, δ) guarantee may leave values more.
    Sensitivity
        One row moves every score by Δ at most, half of the length of the interval of its changes;
        all of it where scores are monotone.
    Noise
        The threshold has one draw of discrete Laplace noise of scale Δ/ε₁ for all candidates, each
        score its own, of scale 2cΔ/ε₂, cΔ/ε₂ where scores are monotone, with ε = ε₁ + ε₂ such that
        the variance of their difference is least. Candidates that are not named cost nothing.
        *Proof*: :func:`dpmodels.mechanisms.clipping_shells.sparse_scales`.
    Numerics
        exact: integer scores and noise of exact law, then comparisons.
    Source
        Lyu, Su, Li (2017), "Understanding the sparse vector technique for differential privacy",
        PVLDB, Algorithm 1 alone: other published forms are not private.

    Examples
    --------
    >>> from dpmodels.mechanisms.selection_plan import LevelScore
    >>> from dpmodels.privacy import PureDP, adjacency
    >>> facts = SelectionFacts(LevelScore(9), 2, 100.0, 0.0, adjacency("replace"))
    >>> print(round(SparseVector().plan(facts, PureDP(1.0)).eps, 6))
    1.0
    """

    info: ClassVar[MechanismInfo] = MechanismInfo(
        name="sparse_vector",
        theorem="eps-DP, however many candidates are below the threshold",
        sensitivity="of every score: half of the range of the changes, all of it if monotone",
        noise="discrete Laplace on the threshold and on every score",
        numerics="exact lattice",
        source="Lyu, Su and Li (2017), Algorithm 1",
    )

    def plan(self, facts: SelectionFacts, guarantee: Guarantee) -> SelectionPlan:
        """Divide the budget; ArgumentError without a threshold, BudgetError if it is too small."""
        if facts.threshold is None:
            raise ArgumentError(
                "mechanism='sparse_vector' names the candidates above a threshold; write "
                "threshold= instead of k=, or mechanism='auto'"
            )
        selection = selection_plan.drawing_plan(facts, guarantee, 1, PureEvent)
        if selection.eps < LEAST_EPS * facts.max_chosen:
            raise BudgetError(
                f"the budget leaves eps = {selection.eps:.2g} for a search for "
                f"{facts.max_chosen:,} names, too little to find any; give a larger eps, or a "
                "smaller most="
            )
        return selection

    def _named(self, ranked: Ranked, plan: SelectionPlan, entropy: Entropy) -> Named:
        """Name the first candidates above the threshold."""
        limit = plan.facts.max_chosen
        change = ranked.width if ranked.monotone else ranked.width // 2
        scales = sparse_scales(plan.eps, monotone=ranked.monotone, answers=limit)
        threshold_scale, score_scale = (max(change * scale, LEAST_SCALE) for scale in scales)
        assert ranked.threshold is not None
        threshold = ranked.threshold + int(discrete_laplace(threshold_scale, 1, entropy)[0])
        noise = discrete_laplace(score_scale, len(ranked.scores), entropy).astype(object)
        places = np.flatnonzero(ranked.scores + noise >= threshold)[:limit]
        return ranked, places, score_scale / ranked.unit


SELECTION: dict[str, type[SelectionMechanism]] = {
    "permute_and_flip": PermuteAndFlip,
    "peeling": Peeling,
    "noisy_counts": NoisyCounts,
    "sparse_vector": SparseVector,
}


# Which mechanism names candidates, by public facts alone: whose noise goes least far.
#
# Of m candidates the noise of one exceeds its scale times log m once, on average, where it is
# exponential, Gumbel or Laplace noise; of Gaussian noise that is a quantile.


def auto_selection(facts: SelectionFacts, guarantee: Guarantee) -> tuple[str, str]:
    """Return the name of a mechanism that names candidates and the reason, as it is printed.

    Of two that go as far the first is taken: the expected error of permute-and-flip is never above
    that of the exponential mechanism of the same eps.
    """
    if facts.threshold is not None:
        if isinstance(facts.score, LevelScore):
            return (
                "noisy_counts",
                "each row has one level, so that noise on all counts costs the least.",
            )
        return "sparse_vector", "candidates below the threshold cost no budget."
    width, size = facts.score.width(facts.adjacency), facts.score.size
    farthest = {
        mechanism.info.name: width / mechanism.plan(facts, guarantee).eps * math.log(size)
        for mechanism in (PermuteAndFlip(), Peeling())
    }
    if isinstance(facts.score, LevelScore):
        farthest[NoisyCounts.info.name] = reach(NoisyCounts().plan(facts, guarantee))
    best, second, *_ = sorted(farthest, key=lambda name: farthest[name])
    return best, (
        f"its noise in the ranking reaches {farthest[best]:.3g}; that of {second} would reach "
        f"{farthest[second]:.3g}."
    )
