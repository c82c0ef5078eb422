"""Candidates tried on some of the rows, of which the others draw one, fitted anew to all.

Theorem
    A coin for each place, or each person, parts the rows. The k candidates are fitted to one side,
    each for a k-th of the trial's budget; the other side draws one of them by the exponential
    mechanism, which is calibrated to cost a row of its side no more than the trial's events cost a
    row of the other. The one that was drawn is fitted to all rows for the rest. Trials and draw
    together cost the trial's events, the whole those and one fit's. The scores are never released.

    *Proof.* Given the coins, which fall whatever the rows are, two neighbours differ on one side
    alone. If that is where candidates are tried, the draw is made of the trials and of rows that
    are the same: post-processing. If not, the trials have the same law, and given them the two
    draws are as hard to tell apart as the trial's events, or some of them. A mixture over the coins
    tells no more than the coins with it. Where a row is added its coin is its own, and those of the
    other rows are as likely as without it. A group of rows, some of them on either side, is reached
    row by row: multipliers of Gaussian noise, eps and what fails add up along the way, at most to
    what the events cost the group. The last fit composes with both; its events are the same
    whichever candidate was drawn, or the guarantee that each of them keeps is charged.
Sensitivity
    A row's misses under all candidates, above the least of them, are held in [0, r] each
    (:meth:`dpmodels.statistics.gradient.Gradients.misses`), r by the trials alone: of the Brier
    score 8/27 of the largest distance of two linear predictors in the ball, or 1, so that
    similar candidates are compared with less noise. So totals move by at most r one against
    another, twice that where a row is replaced.
Noise
    A candidate of total m is drawn with probability proportional to ``exp(-ε₀ m / r)``, half of ε₀
    where a row is replaced: its loss lies in an interval of length ε₀. That is the trial's eps
    where eps adds up. Under zCDP, and of Gaussian noise alone, it is the larger of the largest eps
    of a pure event of the trial, and of ``2 log(Φ(μ/2)/Φ(-μ/2))``, 1/μ the multiplier of all its
    Gaussian noise together (:func:`dpmodels.privacy.gaussian_to_bounded_range`).
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
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import NamedTuple

import numpy as np

from dpmodels import privacy
from dpmodels.design import Scaling
from dpmodels.design.parts import FACES
from dpmodels.errors import BudgetError
from dpmodels.mechanisms import protocol
from dpmodels.mechanisms.add_noise import part_without_delta
from dpmodels.mechanisms.measures import OfGradients
from dpmodels.noise import Entropy
from dpmodels.noise.finite import draw_finite
from dpmodels.privacy import LaplaceEvent, PureEvent, compose_gaussians
from dpmodels.privacy.compose import pure_eps
from dpmodels.privacy.events import all_gaussian
from dpmodels.released import CoefficientsRelease, MechanismInfo, Tuning
from dpmodels.statistics import Statistic
from dpmodels.statistics.gradient import MISS
from dpmodels.statistics.losses import Predictors
from dpmodels.typing import Floats

# Of as many rows as a coin has faces, those that candidates are tried on: a choice.
FITTED = 192
# Of the budget, for trials and draw: a choice. With less the draw is of noise.
TRIED = 0.4
# Covers the rounding of a few products.
ROOM = 1 - 1e-12
# Of rounding in r: candidates' predictors and their scores in floating point.
MORE = 2
# A total that is worse by so many of the draw's units is drawn twenty times as seldom.
DISTINCT = math.log(20.0)


class Trials(NamedTuple):
    """Plans of all candidates on one side, what they and the draw are charged, and its range."""

    fits: tuple[protocol.RegressionPlan, ...]
    events: tuple[privacy.Event, ...]
    range: float


@dataclass(frozen=True)
class TunedPlan(protocol.PlanOf[protocol.RegressionFacts]):
    """A calibrated choice: all plans, and what all of it is charged."""

    trials: Trials
    fits: tuple[protocol.RegressionPlan, ...]  # To all rows, of which one is made


@dataclass(frozen=True)
class Tuned(OfGradients):
    """A fit by the candidate that predicts held-out rows best.

    Parameters
    ----------
    candidates : tuple of mechanisms
        Two or more, of one kind, alike but for an option.

    Examples
    --------
    >>> from dpmodels.mechanisms.protocol import RegressionFacts
    >>> from dpmodels.mechanisms.regression.objective import Output
    >>> from dpmodels.privacy import ZCDP, adjacency
    >>> from dpmodels.statistics.losses import Logistic
    >>> from dpmodels.statistics.losses import Predictors
    >>> predictors = Predictors(3, True, 0.9, 0.0, 1.0)
    >>> facts = RegressionFacts(predictors, Logistic(), adjacency("replace"))
    >>> plan = Tuned((Output(10.0), Output(100.0))).plan(facts, ZCDP(0.5))
    >>> print(*(event.describe() for event in plan.events), sep="; ")
    Gaussian, multiplier 2.23607 x 2; Gaussian, multiplier 1.29099
    >>> round(plan.trials.range, 3)
    1.014
    """

    candidates: tuple[protocol.RegressionMechanism, ...]

    @cached_property
    def info(self) -> MechanismInfo:
        """The candidates' own, and that one of several was chosen."""
        info = self.candidates[0].info
        return replace(info, name=f"{info.name}, tuned")

    def plan(self, facts: protocol.RegressionFacts, guarantee: privacy.Guarantee) -> TunedPlan:
        """Divide the budget between trials, with the draw, and the fit.

        The exact trade-off of Gaussian noise where there is no other, else eps and delta, which add
        up. ArgumentError and BudgetError are the candidates'.
        """
        protocol.bounded_loss(facts, self.info.name)
        if isinstance(guarantee, privacy.ApproxDP):
            zcdp_plan = self._divided(
                facts, privacy.ZCDP(0.5 / privacy.gaussian_multiplier(guarantee) ** 2)
            )
            if all_gaussian(zcdp_plan.events):
                return replace(zcdp_plan, guarantee=guarantee)
        return self._divided(facts, guarantee)

    def _divided(self, facts: protocol.RegressionFacts, guarantee: privacy.Guarantee) -> TunedPlan:
        trials = self._trials(facts, _part(guarantee, TRIED))
        fits, events = self._fits(facts, _part(guarantee, 1 - TRIED))
        return TunedPlan(guarantee, (*trials.events, *events), facts, trials, fits)

    def _planned(
        self, facts: protocol.RegressionFacts, guarantee: privacy.Guarantee
    ) -> tuple[protocol.RegressionPlan, ...]:
        return tuple(candidate.plan(facts, guarantee) for candidate in self.candidates)

    def _trials(self, facts: protocol.RegressionFacts, guarantee: privacy.Guarantee) -> Trials:
        part = _part(guarantee, 1 / len(self.candidates))
        try:
            fits = self._planned(facts, part)
        except BudgetError as error:
            raise BudgetError(f"tune: a trial has {part.describe()}, but {error}") from None
        events = _together(fits)
        match guarantee:
            case privacy.ZCDP():
                return Trials(fits, events, _range(events))
            case privacy.ApproxDP(eps, delta) if any(
                isinstance(event, privacy.GaussianEvent) for event in events
            ):
                return Trials(fits, (privacy.ApproxEvent(eps, delta),), eps)
        return Trials(fits, (PureEvent(guarantee.eps),), guarantee.eps)

    def _fits(
        self, facts: protocol.RegressionFacts, guarantee: privacy.Guarantee
    ) -> tuple[tuple[protocol.RegressionPlan, ...], tuple[privacy.Event, ...]]:
        """Plan the last fit for each candidate, and what it is charged whichever is drawn."""
        fits = self._planned(facts, guarantee)
        if len({fit.events for fit in fits}) == 1:
            return fits, fits[0].events
        if isinstance(guarantee, privacy.ApproxDP):
            return fits, (privacy.ApproxEvent(guarantee.eps, guarantee.delta),)
        if isinstance(guarantee, privacy.ZCDP):
            guarantee = privacy.PureDP(math.sqrt(2 * guarantee.rho) * ROOM)
            fits = self._planned(facts, guarantee)
        return fits, (PureEvent(guarantee.eps),)

    def release(
        self, statistic: Statistic, plan: TunedPlan, entropy: Entropy
    ) -> CoefficientsRelease:
        """Try all candidates, let the held-out rows draw one, and fit it to all rows."""
        facts, loss = plan.facts, protocol.bounded_loss(plan.facts, self.info.name)
        rows = protocol.as_gradients(statistic)
        fitted, held_out = rows.sides(FITTED, entropy)
        tried = [
            candidate.release(fitted, fit_plan, entropy)
            for candidate, fit_plan in zip(self.candidates, plan.trials.fits, strict=True)
        ]
        points = np.stack([in_codebook(trial, facts.predictors, rows.scaling) for trial in tried])
        cap = MORE + math.ceil(loss.largest_difference(spread(points, facts.predictors)) * MISS)
        totals, _ = held_out.misses(points, cap).cross()
        unit = Fraction(plan.trials.range) / ((1 + facts.adjacency.n_public) * cap)
        chosen = draw_finite(totals, unit, entropy)
        release = self.candidates[chosen].release(rows, plan.fits[chosen], entropy)
        tuning = Tuning(
            ridges=tuple(fit_plan.scales["ridge"] for fit_plan in plan.fits),
            chosen=chosen,
            score=loss.score,
            held_out=1 - FITTED / FACES,
            told_apart=DISTINCT / float(unit) / MISS,
            share=TRIED,
        )
        return replace(release, guarantee=plan.guarantee, events=plan.events, tuning=tuning)


def in_codebook(release: CoefficientsRelease, public: Predictors, scaled: Scaling) -> Floats:
    """Return coefficients in units of the codebook's ball, shape (columns,).

    Those of a smaller ball that a release has found are of rows about its centre, in its axes.
    """
    ball, coefficients = release.ball, release.coefficients.copy()
    if ball is None:
        return coefficients
    first_term = int(public.intercept)
    if ball.axes is not None:
        coefficients[first_term:] = np.linalg.solve(ball.axes.T, coefficients[first_term:])
    coefficients[first_term:] *= public.radius * scaled.row_norm / ball.radius
    if first_term:
        centre = (ball.centre - scaled.centre[:-1]) / (scaled.row_norm * scaled.scale[:-1])
        away = float(coefficients[first_term:] @ centre) * public.share / public.radius
        coefficients[0] -= away / public.constant
    return coefficients


def spread(points: Floats, public: Predictors) -> float:
    """Bound the difference of two candidates' linear predictors at a row of the ball.

    `points` has the shape (candidates, columns).
    """
    differences = points[:, None] - points[None]
    first_term = int(public.intercept)
    terms = np.linalg.norm(differences[..., first_term:], axis=-1) * public.share
    constant = np.abs(differences[..., :first_term]).sum(axis=-1) * public.constant
    return float((terms + constant).max())


def _part(guarantee: privacy.Guarantee, part: float) -> privacy.Guarantee:
    fraction = part * ROOM
    if isinstance(guarantee, privacy.ApproxDP):
        return privacy.ApproxDP(guarantee.eps * fraction, guarantee.delta * fraction)
    return part_without_delta(guarantee, fraction)


def _together(fits: Sequence[protocol.RegressionPlan]) -> tuple[privacy.Event, ...]:
    """Return the events of all plans, each kind once."""
    counts: Counter[privacy.Event] = Counter()
    for fit in fits:
        for event in fit.events:
            counts[replace(event, count=1)] += event.count
    return tuple(replace(event, count=count) for event, count in counts.items())


def _range(events: Sequence[privacy.Event]) -> float:
    """Return the length of an interval of losses that costs no more than some of the events."""
    normal = [event for event in events if isinstance(event, privacy.GaussianEvent)]
    pure = [pure_eps(event) for event in events if isinstance(event, PureEvent | LaplaceEvent)]
    multipliers = [event.multiplier for event in normal for _ in range(event.count)]
    gaussian = privacy.gaussian_to_bounded_range(compose_gaussians(multipliers)) if normal else 0.0
    return max([gaussian, *pure])
