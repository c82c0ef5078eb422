"""What a screening of many columns is planned from, and the values of those that were chosen."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpmodels.errors import BudgetError
from dpmodels.mechanisms.add_noise import GAUSSIAN, LAPLACE, ROUND_DOWN, ROUND_UP, add_noise
from dpmodels.mechanisms.protocol import release_terms
from dpmodels.noise import Entropy
from dpmodels.noise.finite import draw_ranked
from dpmodels.noise.lattice import Lattice
from dpmodels.privacy import (
    ZCDP,
    Adjacency,
    ApproxDP,
    BoundedRangeEvent,
    Event,
    GaussianEvent,
    Guarantee,
    LaplaceEvent,
    PureDP,
    gaussian_multiplier,
)
from dpmodels.privacy.filters import largest_rho
from dpmodels.released import Card, ScreenedRelease
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

# Of the budget for the choice of columns; for the scatters of the chosen, as a part of that of
# their products; and for the response, as a part of that of the products where one is chosen.
# Choices: held against simulated columns, of 20 to 1,000.
CHOICE_SHARE, SCATTER_PART, RESPONSE_PART = 0.35, 0.1, 0.5
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
    most: int  # How many of them are looked at, at most
    alternative: str  # "two-sided", "larger" or "smaller"
    adjacency: Adjacency
    level: float = 0.1  # Of the false discovery rate


@dataclass(frozen=True)
class ScreenPlan:
    """A calibrated release: everything but the data."""

    guarantee: Guarantee
    events: tuple[Event, ...]
    facts: ScreenFacts
    lattice: Lattice
    law: str  # Of the noise of all values
    draw_eps: float  # Length of the interval of losses of one draw; 0 where none is made
    # Scales of the noise, over what a row moves.
    response: float
    products: float  # Of the sums, or of logarithms of their p-values
    scatters: float  # 0 where they are not released

    @property
    def chosen(self) -> int:
        """How many columns are looked at."""
        return self.facts.most if self.draw_eps else self.facts.columns


class Shares(NamedTuple):
    """Parts of a budget, of the sum 1."""

    choice: float
    response: float
    products: float
    scatters: float


def shares_of(chosen: int, *, drawn: bool) -> Shares:
    """Divide a budget.

    The error that all products share, of the response's mean, is one number, and they are `chosen`:
    with noise in proportion to its root their sum of variances is least.
    """
    parts = (RESPONSE_PART / math.sqrt(chosen), 1.0, SCATTER_PART)
    left = (1 - CHOICE_SHARE if drawn else 1.0) / sum(parts)
    return Shares(CHOICE_SHARE if drawn else 0.0, *(left * part for part in parts))


def screen_plan(facts: ScreenFacts, guarantee: Guarantee, *, drawn: bool) -> ScreenPlan:
    """Calibrate the draws and the noise; BudgetError if the noise is beyond what is meaningful."""
    plan = calibrated(facts, guarantee, drawn=drawn)
    most = reach(plan.lattice)
    widest = 4 * most**2 * max(FINE * plan.products, plan.scatters, plan.response)
    if widest > WIDEST:
        raise BudgetError(
            f"the budget asks for noise of {plan.products:.2g} rows in each sum, beyond what is "
            "meaningful; give a larger eps, delta or rho, or a smaller most"
        )
    return plan


def calibrated(facts: ScreenFacts, guarantee: Guarantee, *, drawn: bool) -> ScreenPlan:
    """Return the plan of a guarantee, however much noise it asks for.

    An (eps, delta) guarantee is met by the sum of all eps or by zCDP, whichever leaves less noise;
    by the exact trade-off of Gaussian noise where nothing is drawn.
    """
    found = []
    if isinstance(guarantee, PureDP | ApproxDP):
        found.append(_by_eps(facts, guarantee, guarantee.eps, drawn=drawn))
    if isinstance(guarantee, ApproxDP):
        rho = rho_of(guarantee) if drawn else 0.5 / gaussian_multiplier(guarantee) ** 2
        found.append(_by_rho(facts, guarantee, rho, drawn=drawn))
    if isinstance(guarantee, ZCDP):
        found.append(_by_rho(facts, guarantee, guarantee.rho, drawn=drawn))
    return min(found, key=lambda own: own.products * LAWS[own.law].sd)


def rho_of(guarantee: ApproxDP) -> float:
    """Return the largest rho, nearly, of which rho-zCDP gives the guarantee."""
    return largest_rho(ApproxDP(guarantee.eps * ROOM, guarantee.delta))


def _by_eps(facts: ScreenFacts, guarantee: Guarantee, eps: float, *, drawn: bool) -> ScreenPlan:
    many = facts.most if drawn else facts.columns
    own = shares_of(many, drawn=drawn)
    response, products, scatter = (
        ROUND_UP * count / (share * eps)
        for count, share in ((1, own.response), (many, own.products), (many, own.scatters))
    )
    events: tuple[Event, ...] = (
        LaplaceEvent(response),
        LaplaceEvent(products, many),
        LaplaceEvent(scatter, many),
    )
    draw = own.choice * eps / many * ROUND_DOWN
    scales = response, products, scatter
    return _plan(facts, guarantee, events, "laplace", draw, scales)


def _by_rho(facts: ScreenFacts, guarantee: Guarantee, rho: float, *, drawn: bool) -> ScreenPlan:
    many = facts.most if drawn else facts.columns
    own = shares_of(many, drawn=drawn)
    response, products, scatter = (
        ROUND_UP * math.sqrt(count / (2 * share * rho))
        for count, share in ((1, own.response), (many, own.products), (many, own.scatters))
    )
    events: tuple[Event, ...] = (
        GaussianEvent(response),
        GaussianEvent(products, many),
        GaussianEvent(scatter, many),
    )
    draw = math.sqrt(8 * own.choice * rho / many) * ROUND_DOWN
    scales = response, products, scatter
    return _plan(facts, guarantee, events, "gaussian", draw, scales)


def _plan(
    facts: ScreenFacts,
    guarantee: Guarantee,
    events: tuple[Event, ...],
    law: str,
    draw: float,
    scales: tuple[float, float, float],
) -> ScreenPlan:
    many = (BoundedRangeEvent(draw, facts.most),) if draw else ()
    lattice = box_lattice(facts.columns + 1)
    return ScreenPlan(guarantee, (*many, *events), facts, lattice, law, draw, *scales)


class Response(NamedTuple):
    """The response as it was released."""

    complete: float  # Noisy number of complete rows
    total: float  # Noisy sum, in half-ranges
    squares: float  # Noisy sum of squares
    centre: int  # What it is counted from, in parts of lattice steps: `centred_products`


def noised_response(exact: NDArray[np.generic], plan: ScreenPlan, entropy: Entropy) -> Response:
    """Release the number of complete rows, the response's sum and its sum of squares."""
    most, law = reach(plan.lattice), LAWS[plan.law]
    sums: NDArray[np.generic] = np.array(
        [most**2 * exact[0, 0], most * exact[0, -1], exact[1, -1]], dtype=object
    )
    noisy = add_noise(sums, _response_scale(plan), entropy, law)
    count, total, squares = (noisy / most**2).tolist()
    mean = total / count if count > 0 else 0.0
    whole = FINE * most
    return Response(count, total, squares, round(min(max(mean, -1.0), 1.0) * whole))


def peeled(
    card: Card,
    statistic: Statistic,
    plan: ScreenPlan,
    score: Callable[[NDArray[Any]], NDArray[Any]],
    entropy: Entropy,
) -> ScreenedRelease:
    """Release the response, draw columns by the score of their products, and value those drawn."""
    exact, rows = statistic.cross()
    response = noised_response(exact, plan, entropy)
    scores = score(centred_products(exact, response.centre))
    moved = product_change(plan.facts.adjacency, reach(plan.lattice), response.centre)
    unit = Fraction(plan.draw_eps) / (2 * moved)
    chosen = draw_ranked(-scores, unit, plan.chosen, entropy)
    return valued(card, exact, rows, plan, response, chosen, entropy)


def valued(
    card: Card,
    exact: NDArray[Any],
    rows: int,
    plan: ScreenPlan,
    response: Response,
    chosen: NDArray[np.int64],
    entropy: Entropy,
) -> ScreenedRelease:
    """Release the products and the scatters of the chosen columns, with fresh noise."""
    most, law, facts = reach(plan.lattice), LAWS[plan.law], plan.facts
    change = product_change(facts.adjacency, most, response.centre)
    products = _wide(plan.products * change, law.smallest)
    scatter = _wide(plan.scatters * 4 * most**2, law.smallest)
    each = centred_products(exact, response.centre)[chosen], scatters(exact)[chosen]
    noisy = [
        add_noise(own, scale, entropy, law)
        for own, scale in zip(each, (products, scatter), strict=True)
    ]
    unit = most**2
    return ScreenedRelease(
        chosen=chosen.astype(np.float64),
        products=noisy[0] / (FINE * unit),
        scatters=noisy[1] / unit,
        count=response.complete,
        total=response.total,
        squares=response.squares,
        centre=response.centre / (FINE * most),
        law=plan.law,
        product_sd=law.sd * products / (FINE * unit),
        scatter_sd=law.sd * scatter / unit,
        response_sd=law.sd * _response_scale(plan) / unit,
        choice=plan.draw_eps,
        **release_terms(card, plan, rows),
    )


def _response_scale(plan: ScreenPlan) -> float:
    """Return the scale of the noise in what is released of the response."""
    norm = 2 if plan.law == "gaussian" else 1
    change = spread_change(plan.facts.adjacency, reach(plan.lattice), norm)
    return _wide(plan.response * change, LAWS[plan.law].smallest)


def _wide(scale: float, smallest: float) -> float:
    """Return a scale of many steps, in which float rounding has room."""
    return max(scale * ROUND_UP, smallest)
