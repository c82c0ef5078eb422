"""Candidates fitted to some of the rows, of which the others choose one.

Theorem
    A coin for each place, or each person, parts the rows. The k candidates are fitted to one side,
    each for a part of the budget, and compose; the other side draws one of them by the exponential
    mechanism. One neighbour differs from the other in a row of one side, so that the whole costs
    what the fits cost together: the draw is calibrated to cost a row of its side no more. All
    candidates are paid for, whichever is drawn, and so may be known; their scores are never.

    *Proof.* Given the coins, which fall whatever the rows are, two neighbours differ on one side
    alone. If that is where candidates are fitted, the draw is made of the fits and of rows that
    are the same: post-processing. If not, the fits have the same law, and given them the two draws
    are as hard to tell apart as one of the fits' own events, or, under a pure guarantee, as ε says.
    A mixture over the coins tells no more than the coins with it. Where a row is added its coin is
    its own, and those of the other rows are as likely as without it. A group of rows, some of them
    on either side, is reached row by row: multipliers of Gaussian noise and eps add up along the
    way, at most what the events cost the group.
Sensitivity
    A row's misses under all candidates, above the least of them, are held in [0, r] each
    (:meth:`dpmodels.statistics.gradient.Gradients.misses`), r by the fits alone: of the Brier score
    8/27 of the largest distance of two linear predictors in the ball, or 1, so that candidates that
    are alike are told apart by less noise. So totals move by at most r one against another, twice
    that where a row is replaced.
Noise
    A candidate of total m is drawn with probability proportional to ``exp(-ε₀ m / r)``, half of ε₀
    where a row is replaced: its loss lies in an interval of length ε₀. Under a pure guarantee ε₀ is
    its ε. Else it is the larger of the largest ε of a pure event of the fits, and of
    ``2 log(Φ(μ/2)/Φ(-μ/2))``, 1/μ the multiplier of all their Gaussian noise together
    (:func:`dpmodels.privacy.gaussian_to_bounded_range`).
Numerics
    exact, for coins, misses and draw; the fits are as their mechanism has them, here idealised.
Source
    McSherry, F. and Talwar, K. (2007), "Mechanism design via differential privacy", FOCS, for the
    draw. Chaudhuri, K. and Vinterbo, S. (2013), "A stability-based validation procedure for
    differentially private machine learning", NeurIPS, for private validation. Durfee, D. and
    Rogers, R. (2019), "Practical differentially private top-k selection with pay-what-you-get
    composition", NeurIPS, for bounded range.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property

import numpy as np

from dpmodels.design import PrivateDesign, Scaling
from dpmodels.mechanisms.coefficients import (
    RegressionFacts,
    RegressionPlan,
    bounded_loss,
    passes,
)
from dpmodels.mechanisms.protocol import RegressionMechanism
from dpmodels.noise import Entropy
from dpmodels.noise.finite import draw_finite
from dpmodels.privacy import (
    ZCDP,
    ApproxDP,
    Event,
    GaussianEvent,
    Guarantee,
    LaplaceEvent,
    PureDP,
    PureEvent,
    compose_gaussians,
    gaussian_multiplier,
    gaussian_to_bounded_range,
)
from dpmodels.privacy.compose import pure_eps
from dpmodels.released import Card, CoefficientsRelease, Tuning
from dpmodels.statistics import Statistic
from dpmodels.statistics.gradient import MISS
from dpmodels.statistics.held_out import HeldOut
from dpmodels.statistics.predictors import Predictors
from dpmodels.typing import Floats

# Of 256 rows, those that candidates are fitted to: a choice.
FITTED = 192
# Room for the rounding of a few products.
ROOM = 1 - 1e-12
# Of rounding in r: candidates' predictors and their scores in floating point.
MORE = 2
# A total that is worse by so many of the draw's units is drawn twenty times as seldom.
TOLD = math.log(20.0)


@dataclass(frozen=True)
class TunedPlan:
    """A calibrated choice: the plans of all candidates, and what all of it is charged."""

    guarantee: Guarantee
    events: tuple[Event, ...]
    facts: RegressionFacts
    fits: tuple[RegressionPlan, ...]
    scales: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Tuned:
    """The candidate that foretells rows best which none was fitted to.

    Parameters
    ----------
    candidates : tuple of mechanisms
        Two or more, of one kind, alike but for an option.

    Examples
    --------
    >>> from dpmodels.mechanisms.coefficients import RegressionFacts
    >>> from dpmodels.mechanisms.regression.output import Output
    >>> from dpmodels.privacy import ZCDP, adjacency
    >>> from dpmodels.statistics.losses import Logistic
    >>> from dpmodels.statistics.predictors import Predictors
    >>> predictors = Predictors(3, True, 0.9, 0.0, 1.0)
    >>> facts = RegressionFacts(predictors, Logistic(), adjacency("replace"))
    >>> plan = Tuned((Output(10.0), Output(100.0))).plan(facts, ZCDP(0.5))
    >>> print(*(event.describe() for event in plan.events), sep="; ")
    Gaussian, multiplier 1.41421 x 2
    >>> round(plan.scales["range"], 3)
    1.614
    """

    candidates: tuple[RegressionMechanism, ...]

    @cached_property
    def card(self) -> Card:
        """The candidates' own, and that one of several was chosen."""
        own = self.candidates[0].card
        return replace(own, name=f"{own.name}, tuned")

    def plan(self, facts: RegressionFacts, guarantee: Guarantee) -> TunedPlan:
        """Give every candidate an equal part of the budget, and the draw as much as all of them.

        ArgumentError and BudgetError are the candidates'.
        """
        bounded_loss(facts, self.card.name)
        fits = self._fits(facts, guarantee)
        events = _together(fits)
        parts = math.sqrt(len(fits))
        if not (isinstance(guarantee, ZCDP) or any(isinstance(e, GaussianEvent) for e in events)):
            # The draw has all of eps, which no event of a fit has.
            events, parts = (PureEvent(guarantee.eps),), len(fits)
        scales = {"range": _range(events), "noisier": parts * 256 / FITTED}
        return TunedPlan(guarantee, events, facts, fits, scales)

    def _fits(self, facts: RegressionFacts, guarantee: Guarantee) -> tuple[RegressionPlan, ...]:
        part = ROOM / len(self.candidates)

        def planned(own: Guarantee) -> tuple[RegressionPlan, ...]:
            return tuple(each.plan(facts, own) for each in self.candidates)

        match guarantee:
            case PureDP(eps):
                return planned(PureDP(eps * part))
            case ZCDP(rho):
                return planned(ZCDP(rho * part))
        # The exact trade-off of Gaussian noise is divided; else eps and delta, which add up.
        fits = planned(ZCDP(0.5 / gaussian_multiplier(guarantee) ** 2 * part))
        if all(isinstance(event, GaussianEvent) for own in fits for event in own.events):
            return fits
        return planned(ApproxDP(guarantee.eps * part, guarantee.delta * part))

    def measure(self, design: PrivateDesign, plan: TunedPlan) -> Statistic:
        """Part the rows; they are read as the release goes."""
        design.require_passes()
        fitted, held = design.sides(FITTED)
        return HeldOut(passes(fitted, plan.facts), passes(held, plan.facts))

    def release(
        self, statistic: Statistic, plan: TunedPlan, entropy: Entropy
    ) -> CoefficientsRelease:
        """Fit all candidates, and let the held-out rows draw one."""
        assert isinstance(statistic, HeldOut)
        facts, loss = plan.facts, bounded_loss(plan.facts, self.card.name)
        fits = [
            own.release(statistic.fitted, each, entropy)
            for own, each in zip(self.candidates, plan.fits, strict=True)
        ]
        scaled = statistic.held.scaling
        points = np.stack([in_codebook(own, facts.predictors, scaled) for own in fits])
        most = math.ceil(loss.apart(spread(points, facts.predictors)) * MISS)
        totals, _ = statistic.held.misses(points, most + MORE).cross()
        unit = Fraction(plan.scales["range"]) / ((1 + facts.adjacency.n_public) * (most + MORE))
        chosen = draw_finite(totals, unit, entropy)
        tuning = Tuning(
            ridges=tuple(own.ridge for own in fits),
            chosen=chosen,
            score=loss.score,
            held_out=1 - FITTED / 256,
            told_apart=TOLD / float(unit) / MISS,
            noisier=plan.scales["noisier"],
        )
        own = fits[chosen]
        return replace(own, guarantee=plan.guarantee, events=plan.events, tuning=tuning)


def in_codebook(release: CoefficientsRelease, public: Predictors, scaled: Scaling) -> Floats:
    """Return coefficients in units of the codebook's ball, shape (columns,).

    Those of a smaller ball that a release has found are of rows about its centre.
    """
    ball, found = release.ball, release.coefficients.copy()
    if ball is None:
        return found
    own = int(public.intercept)
    found[own:] *= public.radius * scaled.row_norm / ball.radius
    if own:
        centre = (ball.centre - scaled.centre[:-1]) / (scaled.row_norm * scaled.scale[:-1])
        away = float(found[own:] @ centre) * public.share / public.radius
        found[0] -= away / public.constant
    return found


def spread(points: Floats, public: Predictors) -> float:
    """Return how far apart the linear predictors of two candidates can be at a row of the ball.

    `points` has the shape (candidates, columns).
    """
    apart = points[:, None] - points[None]
    own = int(public.intercept)
    terms = np.linalg.norm(apart[..., own:], axis=-1) * public.share
    constant = np.abs(apart[..., :own]).sum(axis=-1) * public.constant
    return float((terms + constant).max())


def _together(fits: Sequence[RegressionPlan]) -> tuple[Event, ...]:
    """Return the events of all plans, each kind once."""
    counts: Counter[Event] = Counter()
    for own in fits:
        for event in own.events:
            counts[replace(event, count=1)] += event.count
    return tuple(replace(event, count=count) for event, count in counts.items())


def _range(events: Sequence[Event]) -> float:
    """Return the length of an interval of losses that costs no more than some of the events."""
    normal = [own for own in events if isinstance(own, GaussianEvent)]
    pure = [pure_eps(own) for own in events if isinstance(own, PureEvent | LaplaceEvent)]
    multipliers = [own.multiplier for own in normal for _ in range(own.count)]
    gaussian = gaussian_to_bounded_range(compose_gaussians(multipliers)) if normal else 0.0
    return max([gaussian, *pure])
