"""Noisy sums of all columns with a response, in two rounds of sums that add over disjoint rows.

Theorem
    Theorem 85: the first round has the response and the sum of each column, the second the products
    and the squares of the columns about what the first showed. Given it, all are sums over rows
    with discrete Gaussian noise, which compose. So sites can add the noise of both rounds.
Sensitivity
    Products as for `moments`. The sum of a column moves by half its range R, or 2 R where a row is
    replaced; its squares about c by ``(R + |c|)²`` for either adjacency, as each is from 0 to that.
Noise
    Independent discrete Gaussian, in the squares of all columns of the scale of the widest.
Numerics
    exact: integer sums, integer noise of exact law.
Source
    Bun, Steinke (2016), "Concentrated differential privacy", TCC. The two rounds are ours.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from dpmodels.design import PrivateDesign
from dpmodels.errors import BudgetError
from dpmodels.mechanisms.add_noise import ROUND_UP, add_noises
from dpmodels.mechanisms.screening_plan import (
    ScreenFacts,
    ScreenPlan,
    products_scale,
    response_of,
    response_sums,
    screen_plan,
    screened,
    wide,
)
from dpmodels.noise import Entropy
from dpmodels.privacy import ZCDP, GaussianEvent, Guarantee, PureDP, gaussian_multiplier
from dpmodels.released import MechanismInfo, ScreenedRelease
from dpmodels.statistics import Statistic
from dpmodels.statistics.associations import (
    SUMS,
    associations,
    centred_products,
    centred_squares,
    reach,
)

# Noise in the sums of columns, which only have to show where their rows lie, over that in the
# squares: a choice, for a tenth of the budget of both.
SUMS_FACTOR = 3.0


@dataclass(frozen=True)
class ScreenCentred:
    """Noise on the covariances of all columns with the response, about released means.

    Examples
    --------
    >>> from dpmodels.privacy import adjacency
    >>> facts = ScreenFacts(8, 4, "two-sided", adjacency("replace"))
    >>> [event.count for event in ScreenCentred().plan(facts, ZCDP(0.5)).events]
    [1, 8, 8, 8]
    """

    info: ClassVar[MechanismInfo] = MechanismInfo(
        name="centred",
        theorem="(eps, delta)-DP or rho-zCDP: noisy sums of all columns, in two rounds",
        sensitivity="products 1 + |c| or 2(1 + |c|), squares (1 + |c|)^2, by column",
        noise="discrete Gaussian",
        numerics="exact lattice",
        source="Bun and Steinke (2016); two rounds ours",
    )

    def plan(self, facts: ScreenFacts, guarantee: Guarantee) -> ScreenPlan:
        """Calibrate as `moments`, with a tenth of the budget of scatters for the columns' sums.

        BudgetError for a pure guarantee, and where noise is beyond meaning.
        """
        if isinstance(guarantee, PureDP):
            raise BudgetError(
                "mechanism='centred' adds Gaussian noise, which gives no pure eps guarantee; add "
                "delta=1e-6, or write mechanism='moments'"
            )
        budget = ZCDP(0.5 / gaussian_multiplier(guarantee) ** 2)
        plan = screen_plan(facts, budget, with_draws=False)
        scatters = plan.scatters * math.sqrt(1 + SUMS_FACTOR**-2) * ROUND_UP
        response, products, _ = plan.events
        sums = GaussianEvent(SUMS_FACTOR * scatters, facts.columns)
        events = (response, sums, products, GaussianEvent(scatters, facts.columns))
        return replace(plan, guarantee=guarantee, events=events, scatters=scatters)

    def measure(self, design: PrivateDesign, plan: ScreenPlan) -> Statistic:
        """Sum columns and their products with the response."""
        return associations(design, plan.lattice, count_public=plan.facts.adjacency.n_public)

    def release(self, statistic: Statistic, plan: ScreenPlan, entropy: Entropy) -> ScreenedRelease:
        """Release the response and the columns' sums, then products and squares about them."""
        exact, n_rows = statistic.cross()
        limit, facts = reach(plan.lattice), plan.facts
        half_ranges = SUMS_FACTOR * (2 if facts.adjacency.n_public else 1)
        sums_scale = wide(plan.scatters * half_ranges * limit**2, plan)
        sums = limit * exact[SUMS, 1:-1], sums_scale
        described, totals = add_noises([response_sums(exact, plan), sums], entropy)
        response = response_of(described, plan)
        n_complete = max(response.complete, 1.0)
        means = totals / (limit * n_complete)
        centres = np.rint(np.clip(means, -limit, limit)).astype(np.int64).astype(object)
        change = (limit + int(np.abs(centres).max())) ** 2
        values = (
            (centred_products(exact, response.centre), products_scale(plan, response)),
            (centred_squares(exact, centres), wide(plan.scatters * change, plan)),
        )
        products, squares = add_noises(values, entropy)
        # The mean of what squares about noisy means have beyond scatters.
        squares -= (sums_scale / limit) ** 2 / n_complete
        noisy = [(products, values[0][1]), (squares, values[1][1])]
        return screened(self.info, n_rows, plan, response, np.arange(facts.columns), noisy)
