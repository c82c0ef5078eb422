"""Discrete Laplace noise on the largest margins, and generalised least squares.

Theorem
    The release is dominated by Δ independent releases that are each 1/b-differentially private,
    for either adjacency: it is ε-differentially private with ε = Δ/b, and ρ-zCDP with
    ρ = Δ/(2b²). An (ε, δ) guarantee leaves its δ unused. *Proof.* Every margin is a table of its
    own to which :mod:`dpmodels.mechanisms.counts.geometric` applies; what is made of them is
    post-processing.
Sensitivity
    Δ is the number of margins that are in no other, in L1 norm, times 2 where a row is replaced: it
    leaves one cell of each and enters another. Both are reached.
Noise
    Independent discrete Laplace noise of scale b on every count of these margins, those of rows
    with a missing level among them. All margins are then made of the components that
    :func:`dpmodels.postprocess.residuals.precisions` weighs: unbiased, in agreement, and of all
    such linear estimates the one with the least variance in every cell; where the number of rows
    is public, it is theirs.
Numerics
    exact: integer statistic, integer noise of exact law; the estimate is made of released integers.
Source
    Ghosh, Roughgarden, Sundararajan (2009), "Universally utility-maximizing privacy mechanisms",
    STOC, for the noise. Barak, Chaudhuri, Dwork, Kale, McSherry, Talwar (2007), "Privacy, accuracy,
    and consistency too", PODS, for margins that agree.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from dpmodels.design.cells import PrivateMargins
from dpmodels.mechanisms.add_noise import ROUND_UP, laplace_multipliers
from dpmodels.mechanisms.protocol import (
    LEAST_SCALE,
    MarginFacts,
    MarginPlan,
    release_terms,
    units_of,
)
from dpmodels.noise import Entropy, discrete_laplace, discrete_laplace_variance
from dpmodels.postprocess.residuals import least_squares, split
from dpmodels.privacy import Guarantee, LaplaceEvent
from dpmodels.released import MarginsRelease, MechanismInfo
from dpmodels.statistics import Statistic
from dpmodels.statistics.counts import margin_counts
from dpmodels.typing import Floats


@dataclass(frozen=True)
class Marginals:
    """Geometric mechanism for margins.

    Examples
    --------
    >>> from dpmodels.mechanisms.protocol import MarginFacts
    >>> from dpmodels.privacy import PureDP, adjacency
    >>> facts = MarginFacts((3, 4, 2), ((0,), (0, 1), (1, 2)), adjacency("add-remove"))
    >>> plan = Marginals().plan(facts, PureDP(1.0))
    >>> plan.measured, [round(scale, 6) for scale in plan.scales]
    (((0, 1), (1, 2)), [2.0, 2.0])
    """

    info: ClassVar[MechanismInfo] = MechanismInfo(
        name="marginals",
        theorem="eps-DP, and rho-zCDP as releases of sensitivity 1",
        sensitivity="L1, 2 a margin that is in no other (a row may change its cell) or 1",
        noise="discrete Laplace, one scale",
        numerics="exact lattice",
        source="Ghosh, Roughgarden and Sundararajan (2009)",
    )

    def plan(self, facts: MarginFacts, guarantee: Guarantee) -> MarginPlan:
        """Calibrate the noise; BudgetError if it is beyond what is meaningful."""
        changed = len(facts.largest) * (2 if facts.adjacency.n_public else 1)
        multiplier = laplace_multipliers(guarantee, (1.0,) * changed)[0]
        units_of(multiplier)
        scale = max(multiplier * ROUND_UP, LEAST_SCALE)
        sd = math.sqrt(discrete_laplace_variance(scale))
        n_margins = len(facts.largest)
        events = (LaplaceEvent(multiplier, count=changed),)
        return MarginPlan(
            guarantee,
            events,
            facts,
            facts.largest,
            (1,) * n_margins,
            (scale,) * n_margins,
            (sd,) * n_margins,
        )

    def measure(self, private: PrivateMargins, plan: MarginPlan) -> Statistic:
        """Count the rows in the cells of the largest margins."""
        return margin_counts(private, count_public=plan.facts.adjacency.n_public)

    def release(self, statistic: Statistic, plan: MarginPlan, entropy: Entropy) -> MarginsRelease:
        """Add the planned noise to the exact counts, and fit all components to them."""
        exact, n_rows = statistic.cross()
        noisy = exact + discrete_laplace(plan.scales[0], exact.size, entropy).astype(object)
        public_rows = n_rows if plan.facts.adjacency.n_public else None
        return MarginsRelease(
            values=_fitted(noisy.astype(np.float64), plan, public_rows),
            law="laplace",
            noise_sds=plan.noise_sds,
            **release_terms(self.info, plan, n_rows),
        )


def _fitted(noisy: Floats, plan: MarginPlan, n_rows: int | None) -> Floats:
    """Return the components of least squares, one after another."""
    sizes = plan.facts.sizes
    sds = dict(zip(plan.measured, plan.noise_sds, strict=True))
    tables = split(noisy, plan.measured, sizes)
    components = least_squares(tables, sds, sizes)
    if n_rows is not None:
        components[()] = np.array(float(n_rows))
    return np.concatenate([np.ravel(component) for component in components.values()])
