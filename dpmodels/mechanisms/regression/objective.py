"""Objective perturbation: minimise a sum of losses with a random linear term.

Theorem
    Pure noise: ε-differentially private. Gaussian noise, logistic loss: as private at every (ε, δ)
    as one Gaussian release of the planned multiplier, with its exact trade-off, or ρ-zCDP with ρ
    of that multiplier. What is released before and after composes with it: all Gaussian releases
    exactly, pure ones by their ε, and pure noise after Gaussian releases of (ε/10, δ) by the sums.
    Both for the minimum as it is computed, not the true one: given the true
    one, the computed one plus noise of its own is a release too, and is charged.
Sensitivity
    A row's gradient, at most 1 long, of a fixed sign along its z, and its curvature together
    (:mod:`dpmodels.mechanisms.minimise`): a row that pulls with its whole weight does not
    bend the logistic loss, so with a ridge of the noise's own size the curvature costs pure noise
    nothing and Gaussian noise 16 % of its scale. Two rows replaced are one taken off and one
    added; a Gaussian release is twice as far from the second neighbour, as Gaussian differential
    privacy composes along chains of neighbours. Given what is released before, the centre of the
    ridge and the rows that count are fixed: a row still is one summand, 0 where it is left out.
Noise
    b of density proportional to ``exp(-|b|/s)``, or ``N(0, σ²)`` in every coordinate, in the term
    ``⟨b, θ⟩``. Besides, discrete Laplace or Gaussian noise on the coefficients, for their distance
    from the true minimum (:func:`dpmodels.mechanisms.minimise.furthest`): 1 % of the budget, and
    far less than the other noise. Of a logistic regression the ridge is about the constant of the
    outcome's noisy frequency, as far from 0 as that is rare (2 %), and with a delta the rows that
    count are those within a released radius, in released axes about a released centre (18 %, or a
    tenth of ε under pure noise, :mod:`dpmodels.mechanisms.regression.row_location`): a row that is
    left out is one whose z is 0. With ``inference`` a share of the whole, of which the rest is
    divided so, goes to the curvature at the released point, then to the mean curvature along
    Newton's step from there and the squared gradients at its end, or, where that step is long, to
    a sum of gradients, curvature and squares near the estimate
    (:mod:`dpmodels.mechanisms.path_curvature`).
Numerics
    idealised: b is drawn in floating point. The minimiser reaches its tolerance whatever the rows,
    and the noise on the coefficients allows for as much again, of which rounding takes less than a
    half, whatever the rows: their gradients are computed and added to 100 bits
    (:mod:`dpmodels.statistics.double_double`), in one table or over several sites. That is proved
    up to a public number of rows (:func:`dpmodels.mechanisms.minimise.provable_rows`), 2⁴⁰ in up to
    some hundred columns, and the theorem is of tables of at most as many; a longer one is refused
    after the charge. How many passes over the rows it takes, and so its time, depends on them, and
    is not part of the guarantee; no bar counts them.
Source
    Chaudhuri, Monteleoni, Sarwate (2011), "Differentially private empirical risk minimization",
    JMLR, for the method with pure noise. Kifer, Smith, Thakurta (2012), "Private convex empirical
    risk minimization and high-dimensional regression", COLT, with Gaussian noise. Iyengar, Near,
    Song, Thakkar, Thakurta, Wang (2019), "Towards practical differentially private convex
    optimization", IEEE S&P, for approximate minima. Dong, Roth, Su (2022), "Gaussian differential
    privacy", JRSS B, for chains of neighbours.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import ClassVar

import numpy as np

from dpmodels import privacy
from dpmodels.arguments import between, boolean
from dpmodels.errors import BudgetError
from dpmodels.mechanisms import add_noise, protocol
from dpmodels.mechanisms.measures import OfGradients
from dpmodels.mechanisms.minimise import (
    LEAST_RIDGE,
    RIDGE,
    Mask,
    furthest,
    gaussian_scale,
    mask,
    masked,
    minimise,
    provable_rows,
    pure_ridge,
    pure_scale,
    spherical,
    spherical_sd,
    tolerance,
)
from dpmodels.mechanisms.path_curvature import path_matrices, path_scales, path_shares
from dpmodels.mechanisms.protocol import RegressionFacts
from dpmodels.mechanisms.regression import row_location
from dpmodels.noise import Entropy
from dpmodels.noise.uniform import normals
from dpmodels.privacy import gaussian_multiplier
from dpmodels.released import CoefficientsRelease, MechanismInfo
from dpmodels.statistics import Statistic
from dpmodels.statistics.losses import Logistic, Loss
from dpmodels.typing import Floats

# Of the budget, for the distance from the true minimum: a choice.
MASK_SHARE = 0.01
# Rows: noise of so many says nothing of where they lie.
LARGEST = 2.0**30
# Of eps, where noise is pure and there is a delta, for where most rows lie: a choice.
MOST_SHARE = 0.1
# Size of a coefficient in units of the ball, for the choice between two kinds of noise: a guess.
ASSUMED = 4.0


@dataclass(frozen=True)
class Objective(OfGradients):
    """Objective perturbation for a logistic regression or a Huber-loss machine.

    Parameters
    ----------
    inference : bool
        Whether a share of the budget buys what intervals need; logistic loss.
    share : float
        That part of the budget, between 0 and 1.
    ridge : float, optional
        Weight of ``|θ|²/2`` beside the sum of the losses, θ in units of the ball: a public number.
        By default one at which curvature costs next to nothing.
    pure : bool
        Under (eps, delta), whether the linear term has pure noise and the rest Gaussian noise of
        `share`: in few columns less noise and a far smaller ridge, for more noise in the curvature.
        Its eps adds up on a ledger.
    at_end : bool
        Whether the curvature is that at the end of Newton's step, from which another one follows,
        instead of the mean along it.

    Raises
    ------
    ArgumentError
        If one of them has another value.

    Examples
    --------
    >>> from dpmodels.mechanisms.protocol import RegressionFacts
    >>> from dpmodels.privacy import PureDP, adjacency
    >>> from dpmodels.statistics.losses import Logistic, Loss
    >>> from dpmodels.statistics.losses import Predictors
    >>> predictors = Predictors(3, True, 0.9, 0.0, 1.0)
    >>> facts = RegressionFacts(predictors, Logistic(), adjacency("replace"))
    >>> plan = Objective(inference=False).plan(facts, PureDP(1.0))
    >>> print(*(event.describe() for event in plan.events), sep="; ")
    pure, eps 0.97; Laplace, multiplier 100; Laplace, multiplier 50
    >>> round(plan.scales["tilt"], 3)
    2.09
    """

    info: ClassVar[MechanismInfo] = MechanismInfo(
        name="objective",
        theorem="eps-DP, or the exact Gaussian trade-off, for the computed minimum",
        sensitivity="gradient and curvature of a row together, gradient at most 1 long",
        noise="a random linear term in the objective, and noise for the minimiser's tolerance",
        numerics="idealised",
        source="Chaudhuri et al. (2011), Kifer et al. (2012), Iyengar et al. (2019)",
    )

    inference: bool = True
    share: float = 0.35
    ridge: float | None = None
    pure: bool = False
    at_end: bool = field(default=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        boolean("inference", self.inference)
        boolean("pure", self.pure)
        between("share", self.share, 0.001, 0.9, ", such as 0.35")
        if self.ridge is not None:
            units = ", in units of one row's largest gradient, or None"
            between("ridge", self.ridge, 1e-6, 1e12, units)

    def plan(self, facts: RegressionFacts, guarantee: privacy.Guarantee) -> protocol.RegressionPlan:
        """Divide the budget; the noise is pure where that is asked for, or is less.

        Where curvature is bought, Gaussian noise is less in it by far. ArgumentError if the loss
        has gradients without a bound. BudgetError if the ridge is too small for the budget.
        """
        loss = protocol.bounded_loss(facts, self.info.name)
        takes_pure = self.pure and isinstance(guarantee, privacy.ApproxDP)
        if isinstance(guarantee, privacy.PureDP) or takes_pure or not loss.bell:
            return self._pure(facts, loss, guarantee)
        gaussian = self._gaussian(facts, guarantee)
        if self.inference:
            return gaussian
        pure = self._pure(facts, loss, guarantee)
        # The gradient's expected squared error, with the ridge's pull on the coefficients.
        return min(
            (gaussian, pure),
            key=lambda plan: plan.scales["sd"] ** 2 + (ASSUMED * plan.scales["ridge"]) ** 2,
        )

    def release(
        self, statistic: Statistic, plan: protocol.RegressionPlan, entropy: Entropy
    ) -> CoefficientsRelease:
        """Find most rows, draw the linear term, minimise, mask the error, buy what is planned."""
        rows, facts, scales = protocol.as_gradients(statistic), plan.facts, plan.scales
        law = add_noise.GAUSSIAN if scales["gaussian"] else add_noise.LAPLACE
        besides = add_noise.GAUSSIAN if "lengths" in scales else law
        most = row_location.locate_rows(rows, plan, entropy, besides)
        near = rows.within(most.inner.predictors)
        tilt: Floats
        if law is add_noise.GAUSSIAN:
            tilt = normals(facts.columns, entropy) * scales["tilt"]
        else:
            tilt = spherical(facts.columns, scales["tilt"], entropy)
        ridge = scales["ridge"]
        known = ridge * row_location.steepest(facts)
        shortest = tolerance(scales["tilt"], known)
        loss = protocol.bounded_loss(facts, self.info.name)
        offset = facts.predictors.largest_known
        provable = provable_rows(
            facts.columns, loss.smoothness, scales["tilt"], ridge, known, offset
        )
        minimum = minimise(near, loss, ridge, tilt - ridge * most.start, shortest, provable)
        hiding = Mask(scales["step"], scales["mask"])
        point = masked(minimum, hiding, entropy, law)
        gradient, curvature = ridge * (most.start - point), None
        if self.inference:
            within = replace(facts, predictors=most.inner.predictors)
            released = near, point, gradient, within, scales, entropy, besides
            curvature = path_matrices(*released, at_end=self.at_end)
        return CoefficientsRelease(
            coefficients=point,
            gradient=gradient,
            gradient_sd=scales["sd"],
            coefficient_sd=law.sd * hiding.scale * hiding.step,
            curvature=curvature,
            ball=most.inner.ball,
            **protocol.coefficient_terms(self.info, plan, statistic),
        )

    def _shares(self, facts: RegressionFacts, law: add_noise.Law) -> dict[str, float]:
        others = {"mask": MASK_SHARE}
        if isinstance(facts.loss, Logistic):
            others |= row_location.location_shares(facts, law)
        left = 1 - self.share if self.inference else 1.0
        shares = {"tilt": left * (1 - math.fsum(others.values()))}
        shares |= {name: left * share for name, share in others.items()}
        return shares | (path_shares(self.share) if self.inference else {})

    def _bought(
        self, facts: RegressionFacts, multipliers: dict[str, float], law: add_noise.Law
    ) -> dict[str, float]:
        """Return the noise of what is released besides the minimum, where it is planned."""
        before = {name: value for name, value in multipliers.items() if name in row_location.SHARES}
        scales = row_location.location_scales(facts, before, law)
        if any(scale > LARGEST for scale in scales.values()):
            raise BudgetError(add_noise.TOO_MUCH_NOISE)
        if "along" in multipliers:
            scales |= path_scales(facts, multipliers, law)
        return scales

    def _pure(
        self, facts: RegressionFacts, loss: Loss, guarantee: privacy.Guarantee
    ) -> protocol.RegressionPlan:
        """Take pure noise; where there is a delta, Gaussian noise says where most rows lie."""
        left, gaussian = guarantee, dict[str, float]()
        if isinstance(guarantee, privacy.ApproxDP) and loss.bell and facts.predictors.terms:
            share = self.share if self.inference else 0.0
            part = share + (1 - share) * MOST_SHARE
            left = privacy.PureDP((1 - part) * guarantee.eps)
            shares = self._shares(facts, add_noise.GAUSSIAN)
            shares = {name: value for name, value in shares.items() if name not in ("tilt", "mask")}
            besides = privacy.ApproxDP(part * guarantee.eps, guarantee.delta)
            gaussian = add_noise.named_multipliers(besides, shares)
        shares = self._shares(facts, add_noise.LAPLACE)
        shares = {name: value for name, value in shares.items() if name not in gaussian}
        multipliers = add_noise.named_multipliers(left, shares, gaussian=False)
        eps, replaced = 1 / multipliers.pop("tilt"), facts.adjacency.n_public
        ridge = self.ridge or pure_ridge(loss, eps, facts.columns, replaced=replaced)
        scale = pure_scale(loss, eps, ridge, replaced=replaced)
        events: tuple[privacy.Event, ...] = (
            privacy.PureEvent(eps),
            *map(privacy.LaplaceEvent, multipliers.values()),
            *map(privacy.GaussianEvent, gaussian.values()),
        )
        scales = {
            "gaussian": 0.0,
            "tilt": scale,
            "ridge": ridge,
            "sd": spherical_sd(facts.columns, scale),
            **_masking(facts, scale, ridge, multipliers["mask"], add_noise.LAPLACE),
            **self._bought(facts, multipliers, add_noise.LAPLACE),
            **self._bought(facts, gaussian, add_noise.GAUSSIAN),
        }
        return protocol.RegressionPlan(guarantee, events, facts, scales)

    def _gaussian(
        self, facts: RegressionFacts, guarantee: privacy.ApproxDP | privacy.ZCDP
    ) -> protocol.RegressionPlan:
        shares = self._shares(facts, add_noise.GAUSSIAN)
        multipliers = add_noise.named_multipliers(guarantee, shares)
        # Two neighbours of a row more or fewer lie between two that differ in a row.
        tilt = multipliers["tilt"] * (1 + facts.adjacency.n_public) * (1 + 1e-9)
        scale = gaussian_scale(tilt, self.ridge)
        ridge = self.ridge or max(RIDGE * scale, LEAST_RIDGE)
        scales = {
            "gaussian": 1.0,
            "tilt": scale,
            "ridge": ridge,
            "sd": scale,
            **_masking(facts, scale, ridge, multipliers["mask"], add_noise.GAUSSIAN),
            **self._bought(facts, multipliers, add_noise.GAUSSIAN),
        }
        events = tuple(privacy.GaussianEvent(value) for value in multipliers.values())
        return protocol.RegressionPlan(guarantee, events, facts, scales)


def _masking(
    facts: RegressionFacts, tilt: float, ridge: float, multiplier: float, law: add_noise.Law
) -> dict[str, float]:
    """Return step and scale of the noise that hides the minimiser's error."""
    distance = furthest(tilt, ridge, ridge * row_location.steepest(facts))
    hiding = mask(distance, facts.columns, multiplier, law)
    return {"step": hiding.step, "mask": hiding.scale}


@dataclass(frozen=True)
class Output(OfGradients):
    """Output perturbation for a logistic regression or a Huber-loss machine.

    Output perturbation: minimise a ridged sum of losses, add noise to the minimum.

    Theorem
        ε-differentially private, or (ε, δ) with the exact trade-off of the Gaussian mechanism, or
        ρ-zCDP, for the minimum as it is computed.
    Sensitivity
        The sum of losses plus ``(Λ/2)|θ|²`` is Λ-strongly convex and a row's gradient at most 1
        long: a row more or fewer moves the minimum by at most ``1/Λ``, a row replaced by ``2/Λ``.
        The computed minimum is within r of the true one
        (:func:`dpmodels.mechanisms.minimise.furthest`): ``2r`` more.
    Noise
        Of density proportional to ``exp(-|v|/s)``, or Gaussian, on the coefficients. The default
        ridge makes its length about 1 in units of the ball.
    Numerics
        idealised: the noise is drawn in floating point. Gradients are computed and added to 100
        bits, of one table or of several sites, and r allows for their rounding up to a public
        number of rows, 2⁴⁰ in up to some hundred columns
        (:func:`dpmodels.mechanisms.minimise.provable_rows`). The theorem is of tables of at most as
        many; a longer one is refused after the charge.
    Source
        Chaudhuri, Monteleoni, Sarwate (2011), "Differentially private empirical risk minimization",
        JMLR, Algorithm 1, whose Λ is divided by the number of rows; Gaussian noise calibrated by
        Balle, Wang (2018), "Improving the Gaussian mechanism for differential privacy", ICML.

    Parameters
    ----------
    ridge : float, optional
        Weight of ``|θ|²/2`` beside the sum of the losses, θ in units of the ball: a public number.

    Raises
    ------
    ArgumentError
        If it is not a number above 0.

    Examples
    --------
    >>> from dpmodels.mechanisms.protocol import RegressionFacts
    >>> from dpmodels.privacy import ZCDP, adjacency
    >>> from dpmodels.statistics.losses import Huber
    >>> from dpmodels.statistics.losses import Predictors
    >>> predictors = Predictors(3, True, 0.9, 0.0, 1.0)
    >>> facts = RegressionFacts(predictors, Huber(), adjacency("replace"))
    >>> plan = Output().plan(facts, ZCDP(0.5))
    >>> print(*(event.describe() for event in plan.events))
    Gaussian, multiplier 1
    >>> round(plan.scales["ridge"], 3), round(plan.scales["noise"], 3)
    (4.0, 0.5)
    """

    info: ClassVar[MechanismInfo] = MechanismInfo(
        name="output",
        theorem="eps-DP, (eps, delta)-DP or rho-zCDP for the computed minimum",
        sensitivity="2/ridge (replace) or 1/ridge, by strong convexity",
        noise="a length of Gamma law in a uniform direction, or Gaussian, on the coefficients",
        numerics="idealised",
        source="Chaudhuri et al. (2011)",
    )

    ridge: float | None = None

    def __post_init__(self) -> None:
        if self.ridge is not None:
            units = ", in units of one row's largest gradient, or None"
            between("ridge", self.ridge, 1e-6, 1e12, units)

    def plan(self, facts: RegressionFacts, guarantee: privacy.Guarantee) -> protocol.RegressionPlan:
        """Calibrate the noise; the ridge by default to a noise of length about 1.

        ArgumentError if the loss has gradients without a bound.
        """
        protocol.bounded_loss(facts, self.info.name)
        columns = facts.columns
        pure = isinstance(guarantee, privacy.PureDP)
        multiplier = (
            add_noise.laplace_multipliers(guarantee)[0] if pure else gaussian_multiplier(guarantee)
        )
        event = privacy.PureEvent(1 / multiplier) if pure else privacy.GaussianEvent(multiplier)
        moved = (1 + facts.adjacency.n_public) * multiplier
        suits = moved * (columns if pure else math.sqrt(columns))
        ridge = self.ridge or max(suits, LEAST_RIDGE)
        apart = (1 + facts.adjacency.n_public) / ridge + 2 * furthest(0.0, ridge)
        scale = multiplier * apart * (1 + 1e-9)
        scales = {
            "gaussian": float(not pure),
            "noise": scale,
            "ridge": ridge,
            "sd": spherical_sd(columns, scale) if pure else scale,
        }
        return protocol.RegressionPlan(guarantee, (event,), facts, scales)

    def release(
        self, statistic: Statistic, plan: protocol.RegressionPlan, entropy: Entropy
    ) -> CoefficientsRelease:
        """Minimise, and add the planned noise."""
        facts, scales, columns = plan.facts, plan.scales, plan.facts.columns
        loss, start = protocol.bounded_loss(facts, self.info.name), np.zeros(columns)
        rows, ridge = protocol.as_gradients(statistic), scales["ridge"]
        offset = facts.predictors.largest_known
        provable = provable_rows(columns, loss.smoothness, 0.0, ridge, largest_offset=offset)
        point = minimise(rows, loss, ridge, start, tolerance(0.0), provable)
        if scales["gaussian"]:
            noise = normals(columns, entropy) * scales["noise"]
        else:
            noise = spherical(columns, scales["noise"], entropy)
        return CoefficientsRelease(
            coefficients=point.high + (point.low + noise),
            gradient=None,
            gradient_sd=math.nan,
            coefficient_sd=scales["sd"],
            curvature=None,
            **protocol.coefficient_terms(self.info, plan, statistic),
        )
