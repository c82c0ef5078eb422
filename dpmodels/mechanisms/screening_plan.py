"""What a screening of many columns is planned from, and the values of those that were chosen."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from dpmodels import privacy
from dpmodels.mechanisms.add_noise import GAUSSIAN, LAPLACE, ROUND_DOWN, ROUND_UP, add_noise
from dpmodels.mechanisms.protocol import PlanOf, refuse_noise, release_terms
from dpmodels.noise import Entropy
from dpmodels.noise.discrete import Part
from dpmodels.noise.finite import draw_ranked
from dpmodels.noise.lattice import Lattice
from dpmodels.privacy import Guarantee
from dpmodels.privacy.filters import largest_rho
from dpmodels.released import MechanismInfo, ScreenedRelease
from dpmodels.statistics import Statistic
from dpmodels.statistics.associations import (
    FINE,
    box_lattice,
    centred_products,
    product_change,
    reach,
    scatters,
    spread_change,
)
from dpmodels.typing import Floats, Integers, Numbers, Scalars

# Of the budget for the choice of columns; for the scatters of the chosen, as a part of that of
# their products; and for the response, as a part of that of the products where one is chosen.
# Choices: held against simulated columns, of 1 to 1,000.
CHOICE_SHARE, RESPONSE_PART = 0.35, 0.5
# The part of the scatters where one is chosen, and its limits.
SCATTER_PART, SCATTER_LEAST, SCATTER_MOST = 0.9, 0.1, 0.5
# For the rounding of what noise of a rho amounts to in eps.
ROOM = 1 - 1e-9
# The widest scale of noise: what the sampler takes, and 63 bits hold.
WIDEST = 2.0**56
LAWS = {"gaussian": GAUSSIAN, "laplace": LAPLACE}
SIGNS = {"two-sided": np.abs, "larger": np.positive, "smaller": np.negative}


@dataclass(frozen=True)
class ScreenFacts:
    """Public facts a plan may use."""

    columns: int  # How many hypotheses there are
    max_chosen: int  # How many of them are examined, at most
    alternative: str  # "two-sided", "larger" or "smaller"
    adjacency: privacy.Adjacency
    level: float = 0.1  # Of the false discovery rate


@dataclass(frozen=True)
class ScreenPlan(PlanOf[ScreenFacts]):
    """A calibrated screening."""

    lattice: Lattice
    law: str  # Of the noise of all values
    draw_eps: float  # Length of the interval of losses of one draw; 0 where none is made
    # Scales of the noise, over what a row moves.
    response: float
    products: float  # Of the sums, or of logarithms of their p-values
    scatters: float  # 0 where they are not released

    @property
    def chosen(self) -> int:
        """How many columns are examined."""
        return self.facts.max_chosen if self.draw_eps else self.facts.columns


class Shares(NamedTuple):
    """Parts of a budget, of the sum 1."""

    choice: float
    response: float
    products: float
    scatters: float


def shares_of(chosen: int, *, with_draws: bool) -> Shares:
    """Divide a budget.

    The error that all products share, of the response's mean, is one number, and they are `chosen`:
    with noise in proportion to its root their sum of variances is least. The fewer are chosen, the
    less noise products have beside the sampling error, and the more scatters matter.
    """
    root = math.sqrt(chosen)
    scatter_part = min(max(SCATTER_PART / root, SCATTER_LEAST), SCATTER_MOST)
    parts = (RESPONSE_PART / root, 1.0, scatter_part)
    left = (1 - CHOICE_SHARE if with_draws else 1.0) / sum(parts)
    return Shares(CHOICE_SHARE if with_draws else 0.0, *(left * part for part in parts))


def screen_plan(facts: ScreenFacts, guarantee: Guarantee, *, with_draws: bool) -> ScreenPlan:
    """Calibrate the draws and the noise; BudgetError if the noise is beyond what is meaningful."""
    plan = calibrated(facts, guarantee, with_draws=with_draws)
    limit = reach(plan.lattice)
    widest = 4 * limit**2 * max(FINE * plan.products, plan.scatters, plan.response)
    if widest > WIDEST:
        refuse_noise(plan.products, "rows in each sum", "eps, delta or rho, or a smaller most")
    return plan


def calibrated(facts: ScreenFacts, guarantee: Guarantee, *, with_draws: bool) -> ScreenPlan:
    """Return the plan of a guarantee, however much noise it asks for.

    An (eps, delta) guarantee is met by the sum of all eps or by zCDP, whichever leaves less noise;
    by the exact trade-off of Gaussian noise where nothing is drawn.
    """
    plans = []
    if isinstance(guarantee, privacy.PureDP | privacy.ApproxDP):
        plans.append(_divided(facts, guarantee, "laplace", guarantee.eps, with_draws=with_draws))
    if isinstance(guarantee, privacy.ApproxDP):
        rho = rho_of(guarantee) if with_draws else 0.5 / privacy.gaussian_multiplier(guarantee) ** 2
        plans.append(_divided(facts, guarantee, "gaussian", rho, with_draws=with_draws))
    if isinstance(guarantee, privacy.ZCDP):
        plans.append(_divided(facts, guarantee, "gaussian", guarantee.rho, with_draws=with_draws))
    return min(plans, key=lambda plan: plan.products * LAWS[plan.law].sd)


def rho_of(guarantee: privacy.ApproxDP) -> float:
    """Return the largest rho, nearly, of which rho-zCDP gives the guarantee."""
    return largest_rho(privacy.ApproxDP(guarantee.eps * ROOM, guarantee.delta))


def _divided(
    facts: ScreenFacts, guarantee: Guarantee, law: str, cost: float, *, with_draws: bool
) -> ScreenPlan:
    """Divide a cost, an eps for Laplace noise and a rho for Gaussian noise."""
    n_chosen = facts.max_chosen if with_draws else facts.columns
    shares = shares_of(n_chosen, with_draws=with_draws)
    counts = (1, n_chosen, n_chosen)
    parts = zip(counts, (shares.response, shares.products, shares.scatters), strict=True)
    events: tuple[privacy.Event, ...]
    if law == "laplace":
        scales = [ROUND_UP * count / (part * cost) for count, part in parts]
        events = tuple(map(privacy.LaplaceEvent, scales, counts))
        draw = shares.choice * cost / n_chosen * ROUND_DOWN
    else:
        scales = [ROUND_UP * math.sqrt(count / (2 * part * cost)) for count, part in parts]
        events = tuple(map(privacy.GaussianEvent, scales, counts))
        draw = math.sqrt(8 * shares.choice * cost / n_chosen) * ROUND_DOWN
    draws = (privacy.BoundedRangeEvent(draw, facts.max_chosen),) if draw else ()
    lattice = box_lattice(facts.columns + 1)
    return ScreenPlan(guarantee, (*draws, *events), facts, lattice, law, draw, *scales)


class Response(NamedTuple):
    """The response as it was released."""

    complete: float  # Noisy number of complete rows
    total: float  # Noisy sum, in half-ranges
    squares: float  # Noisy sum of squares
    centre: int  # What it is counted from, in parts of lattice steps: `centred_products`


def noised_response(exact: Scalars, plan: ScreenPlan, entropy: Entropy) -> Response:
    """Release the number of complete rows, the response's sum and its sum of squares."""
    sums, scale = response_sums(exact, plan)
    return response_of(add_noise(sums, scale, entropy, LAWS[plan.law]), plan)


def response_sums(exact: Scalars, plan: ScreenPlan) -> Part:
    """Return what is released of the response, in squared half-ranges, and its scale of noise."""
    limit = reach(plan.lattice)
    sums: Scalars = np.array(
        [limit**2 * exact[0, 0], limit * exact[0, -1], exact[1, -1]], dtype=object
    )
    return sums, _response_scale(plan)


def response_of(noisy: Floats, plan: ScreenPlan) -> Response:
    """Return the response that noisy sums describe."""
    limit = reach(plan.lattice)
    count, total, squares = (noisy / limit**2).tolist()
    mean = total / count if count > 0 else 0.0
    half_range = FINE * limit
    return Response(count, total, squares, round(min(max(mean, -1.0), 1.0) * half_range))


def peeled(
    info: MechanismInfo,
    statistic: Statistic,
    plan: ScreenPlan,
    score: Callable[[Numbers], Numbers],
    entropy: Entropy,
) -> ScreenedRelease:
    """Release the response, draw columns by the score of their products, and value those drawn."""
    exact, n_rows = statistic.cross()
    response = noised_response(exact, plan, entropy)
    scores = score(centred_products(exact, response.centre))
    change = product_change(plan.facts.adjacency, reach(plan.lattice), response.centre)
    unit = Fraction(plan.draw_eps) / (2 * change)
    chosen = draw_ranked(-scores, unit, plan.chosen, entropy)
    return valued(info, exact, n_rows, plan, response, chosen, entropy)


def valued(
    info: MechanismInfo,
    exact: Numbers,
    n_rows: int,
    plan: ScreenPlan,
    response: Response,
    chosen: Integers,
    entropy: Entropy,
) -> ScreenedRelease:
    """Release the products and the scatters of the chosen columns, with fresh noise."""
    law = LAWS[plan.law]
    values = (
        (centred_products(exact, response.centre)[chosen], products_scale(plan, response)),
        (scatters(exact)[chosen], wide(plan.scatters * 4 * reach(plan.lattice) ** 2, plan)),
    )
    noisy = [(add_noise(sums, scale, entropy, law), scale) for sums, scale in values]
    return screened(info, n_rows, plan, response, chosen, noisy)


def products_scale(plan: ScreenPlan, response: Response) -> float:
    """Return the scale of the noise in sums of products with the response about its centre."""
    change = product_change(plan.facts.adjacency, reach(plan.lattice), response.centre)
    return wide(plan.products * change, plan)


def screened(
    info: MechanismInfo,
    n_rows: int,
    plan: ScreenPlan,
    response: Response,
    chosen: Integers,
    noisy: Sequence[tuple[Floats, float]],
) -> ScreenedRelease:
    """Hand over noisy products and scatters of the chosen columns, each with its scale of noise."""
    (products, product_scale), (scatter, scatter_scale) = noisy
    limit, sd = reach(plan.lattice), LAWS[plan.law].sd
    unit = limit**2
    return ScreenedRelease(
        chosen=chosen.astype(np.float64),
        products=products / (FINE * unit),
        scatters=scatter / unit,
        count=response.complete,
        total=response.total,
        squares=response.squares,
        centre=response.centre / (FINE * limit),
        law=plan.law,
        product_sd=sd * product_scale / (FINE * unit),
        scatter_sd=sd * scatter_scale / unit,
        response_sd=sd * _response_scale(plan) / unit,
        choice=plan.draw_eps,
        **release_terms(info, plan, n_rows),
    )


def _response_scale(plan: ScreenPlan) -> float:
    norm = 2 if plan.law == "gaussian" else 1
    change = spread_change(plan.facts.adjacency, reach(plan.lattice), norm)
    return wide(plan.response * change, plan)


def wide(scale: float, plan: ScreenPlan) -> float:
    """Return a scale of many steps, in which float rounding has room."""
    return max(scale * ROUND_UP, LAWS[plan.law].smallest)
