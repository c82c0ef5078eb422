"""Output perturbation: minimise a ridged sum of losses, add noise to the minimum.

Theorem
    ε-differentially private, or (ε, δ) with the exact trade-off of the Gaussian mechanism, or
    ρ-zCDP, for the minimum as it is computed.
Sensitivity
    The sum of losses plus ``(Λ/2)|θ|²`` is Λ-strongly convex and a row's gradient at most 1 long:
    a row more or fewer moves the minimum by at most ``1/Λ``, a row replaced by ``2/Λ``. The
    computed minimum is within r of the true one (:func:`dpmodels.mechanisms.minimise.furthest`):
    ``2r`` more.
Noise
    Of density proportional to ``exp(-|v|/s)``, or Gaussian, on the coefficients. The default ridge
    makes its length about 1 in units of the ball.
Numerics
    idealised: the noise is drawn in floating point. Gradients are computed and added to 100 bits,
    of one table or of several sites, and r allows for their rounding up to a public number of rows,
    2⁴⁰ in up to some hundred columns (:func:`dpmodels.mechanisms.minimise.provable_rows`). The
    theorem is of tables of at most as many; a longer one is refused after the charge.
Source
    Chaudhuri, Monteleoni, Sarwate (2011), "Differentially private empirical risk minimization",
    JMLR, Algorithm 1, whose Λ is divided by the number of rows; Gaussian noise calibrated by
    Balle, Wang (2018), "Improving the Gaussian mechanism for differential privacy", ICML.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from dpmodels.arguments import between
from dpmodels.design import PrivateDesign
from dpmodels.mechanisms.add_noise import laplace_multipliers
from dpmodels.mechanisms.minimise import (
    LEAST_RIDGE,
    furthest,
    minimise,
    provable_rows,
    spherical,
    spherical_sd,
    tolerance,
)
from dpmodels.mechanisms.protocol import (
    RegressionFacts,
    RegressionPlan,
    as_gradients,
    bounded_loss,
    hand_over,
    passes,
)
from dpmodels.noise import Entropy
from dpmodels.noise.uniform import normals
from dpmodels.privacy import (
    GaussianEvent,
    Guarantee,
    PureDP,
    PureEvent,
    gaussian_multiplier,
)
from dpmodels.released import CoefficientsRelease, MechanismInfo
from dpmodels.statistics import Statistic


@dataclass(frozen=True)
class Output:
    """Output perturbation for a logistic regression or a Huber-loss machine.

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
    >>> from dpmodels.statistics.predictors import Predictors
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

    def plan(self, facts: RegressionFacts, guarantee: Guarantee) -> RegressionPlan:
        """Calibrate the noise; the ridge by default to a noise of length about 1.

        ArgumentError if the loss has gradients without a bound.
        """
        bounded_loss(facts, self.info.name)
        columns = facts.columns
        pure = isinstance(guarantee, PureDP)
        multiplier = laplace_multipliers(guarantee)[0] if pure else gaussian_multiplier(guarantee)
        event = PureEvent(1 / multiplier) if pure else GaussianEvent(multiplier)
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
        return RegressionPlan(guarantee, (event,), facts, scales)

    def measure(self, design: PrivateDesign, plan: RegressionPlan) -> Statistic:
        """Take the rows for several passes; they are read as the release goes."""
        return passes(design, plan.facts)

    def release(
        self, statistic: Statistic, plan: RegressionPlan, entropy: Entropy
    ) -> CoefficientsRelease:
        """Minimise, and add the planned noise."""
        facts, scales, columns = plan.facts, plan.scales, plan.facts.columns
        loss, start = bounded_loss(facts, self.info.name), np.zeros(columns)
        rows, ridge = as_gradients(statistic), scales["ridge"]
        offset = facts.predictors.largest_known
        provable = provable_rows(columns, loss.smoothness, 0.0, ridge, largest_offset=offset)
        point = minimise(rows, loss, ridge, start, tolerance(0.0), provable)
        if scales["gaussian"]:
            noise = normals(columns, entropy) * scales["noise"]
        else:
            noise = spherical(columns, scales["noise"], entropy)
        return hand_over(
            self.info,
            plan,
            statistic,
            coefficients=point.high + (point.low + noise),
            coefficient_sd=scales["sd"],
        )
