"""Logarithms of p-values, peeled by noisy minima: the published procedure, for comparison.

Theorem
    Given the released response, m' rounds compose. In each, the column of the least level plus
    fresh noise is drawn, which is 2/u-differentially private for noise of scale u times what a row
    moves a level by; and its level is released with separate noise, which is 1/u-differentially
    private. So all are 3 m'/u-differentially private, and 5 m'/(2 u²)-zCDP. An (ε, δ) guarantee is
    met by the one or the other, whichever has less noise: these constants are ours, and so are
    those of the ledger.

    *Proof for a draw.* Let a row move each of the integer levels by at most k, and fix the noise of
    all but j. Column j is drawn if its noise is at most some integer b: the largest with which it
    comes before all others, ties going to the one that is named first. With a neighbour's levels,
    that of j up by k and the others down by k at worst, it is drawn if its noise is at most
    b - 2 k. For discrete Laplace noise of scale s, ``P(X <= b - 2k) >= exp(-2k/s) P(X <= b)`` as
    its distribution function rises by no more than a factor of ``exp(1/s)`` a step.

    *False discoveries.* A column is rejected among R where its noisy logarithm is at most
    ``log(q R/m) - 2 λ log(6 m'/q)``, with λ the scale of the noise. But for a probability of q/11
    no noise of m' values is below ``-λ log(6 m'/q)``; else every rejected column has a p-value of
    at most q R/m, and as for peeling the rate is at most ``q (1 + log(1/q)) + q/11`` for
    independent columns. That sums of true hypotheses are normal is taken for granted, as in a
    z-test; w is no less than their standard deviation, but where the response's noise exceeds five
    of its own.

    It is of little use: noise of p-values is so large that nothing is found at 10,000 rows, nor at
    a million where 1,000 columns have effects of four standard errors.
Sensitivity
    With ``p = Φ̄(S/w)``, or ``2 Φ̄(|S|/w)``, S as for peeling, w a function of the released response,
    ``log max(p, ν)`` moves by at most ``η = log(Φ̄(z_ν - Δ/w)/ν)``, ν = q/(2 m), for S moves by Δ;
    for two sides ν/2 takes the place of ν. In steps of a grid it is that number, rounded up, and
    one step more: `dpmodels.statistics.associations`. The response as for peeling.
Noise
    Discrete Laplace of one scale, on all levels left in each draw, and afresh on those drawn.
Numerics
    exact: whole levels, made of exact sums by a fixed function of 160 bits whose rounding is in the
    sensitivity; integer noise of exact law; ties by a public order.
Source
    Dwork, Su, Zhang (2018), "Differentially private false discovery rate control",
    arXiv:1807.04209.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from dpmodels.design import PrivateDesign
from dpmodels.errors import BudgetError
from dpmodels.mechanisms.add_noise import LAPLACE, ROUND_UP
from dpmodels.mechanisms.protocol import release_terms
from dpmodels.mechanisms.screening_plan import (
    SIGNS,
    Response,
    ScreenFacts,
    ScreenPlan,
    noised_response,
    rho_of,
)
from dpmodels.noise import Entropy, discrete_laplace
from dpmodels.privacy import (
    ZCDP,
    ApproxDP,
    Guarantee,
    LaplaceEvent,
    PureDP,
    PureEvent,
)
from dpmodels.released import MechanismInfo, PValuesRelease
from dpmodels.statistics import Statistic
from dpmodels.statistics.associations import (
    FINE,
    STEPS,
    associations,
    box_lattice,
    centred_products,
    log_change,
    log_levels,
    product_change,
    reach,
    spread_change,
)
from dpmodels.typing import Integers

# Of the budget for the response; and standard deviations of the noise by which its sum of squares
# is taken to be larger than released, so that p-values are hardly too small. Choices.
RESPONSE_SHARE, CAREFUL = 0.1, 5.0
# The widest scale of noise: a sum with a level leaves 63 bits with a probability below exp(-8000).
WIDEST = 2.0**50


@dataclass(frozen=True)
class ScreenLogs:
    """Peeling of the logarithms of p-values.

    Examples
    --------
    >>> from dpmodels.privacy import adjacency
    >>> facts = ScreenFacts(1000, 20, "two-sided", adjacency("replace"))
    >>> ScreenLogs().plan(facts, ZCDP(0.1)).events[0].describe()
    'pure, eps 0.0848528 x 20'
    """

    info: ClassVar[MechanismInfo] = MechanismInfo(
        name="dp_bh",
        theorem="eps-DP or zCDP: noisy minima of log p-values, and noisy ones",
        sensitivity="log(tail(z - D/w)/tail(z)), z the largest statistic told apart",
        noise="discrete Laplace on log p-values",
        numerics="exact lattice",
        source="Dwork, Su and Zhang (2018); constants ours",
    )

    def plan(self, facts: ScreenFacts, guarantee: Guarantee) -> ScreenPlan:
        """Calibrate the noise to a guarantee; BudgetError where it is beyond meaning."""
        scales = []
        if isinstance(guarantee, PureDP | ApproxDP):
            eps = guarantee.eps
            scales.append(
                (3 * facts.max_chosen / (1 - RESPONSE_SHARE) / eps, 1 / RESPONSE_SHARE / eps)
            )
        if isinstance(guarantee, ZCDP | ApproxDP):
            rho = guarantee.rho if isinstance(guarantee, ZCDP) else rho_of(guarantee)
            parts = 5 * facts.max_chosen / (1 - RESPONSE_SHARE), 1 / RESPONSE_SHARE
            scales.append((math.sqrt(parts[0] / 2 / rho), math.sqrt(parts[1] / 2 / rho)))
        times, response = (scale * ROUND_UP for scale in min(scales))
        if times * (STEPS * -math.log(least_of(facts)) + 2) > WIDEST:
            raise BudgetError(
                f"the budget asks for noise of {times:.2g} times the sensitivity of a log p-value, "
                "beyond what is meaningful; give a larger eps, delta or rho, or a smaller most"
            )
        draw = 2 / times
        events = (
            PureEvent(draw, facts.max_chosen),
            LaplaceEvent(times, facts.max_chosen),
            LaplaceEvent(response),
        )
        lattice = box_lattice(facts.columns + 1)
        return ScreenPlan(
            guarantee, events, facts, lattice, "laplace", draw, response, times, scatters=0.0
        )

    def measure(self, design: PrivateDesign, plan: ScreenPlan) -> Statistic:
        """Sum columns and their products with the response."""
        return associations(design, plan.lattice, count_public=plan.facts.adjacency.n_public)

    def release(self, statistic: Statistic, plan: ScreenPlan, entropy: Entropy) -> PValuesRelease:
        """Release the response, draw columns by noisy p-values, and release those."""
        exact, n_rows = statistic.cross()
        response = noised_response(exact, plan, entropy)
        facts, limit = plan.facts, reach(plan.lattice)
        part, centre = FINE * limit**2, response.centre / (FINE * limit)
        spread = spread_change(facts.adjacency, limit, 1) / limit**2
        response_sd = LAPLACE.sd * plan.response * spread
        scale = z_scale(response, response_sd, centre, plan)
        test = scale * part, least_of(facts), 1 + (facts.alternative == "two-sided")
        sums = SIGNS[facts.alternative](centred_products(exact, response.centre))
        levels = log_levels(sums, *test)
        change = log_change(product_change(facts.adjacency, limit, response.centre), *test)
        wide = max(plan.products * change * ROUND_UP, LAPLACE.smallest)
        chosen = least_noisy(levels, wide, facts.max_chosen, entropy)
        noisy = levels[chosen] + discrete_laplace(wide, len(chosen), entropy)
        return PValuesRelease(
            chosen=chosen.astype(np.float64),
            logs=noisy / STEPS,
            log_sd=LAPLACE.sd * wide / STEPS,
            count=response.complete,
            total=response.total,
            squares=response.squares,
            centre=centre,
            response_sd=response_sd,
            scale=scale,
            choice=plan.draw_eps,
            **release_terms(self.info, plan, n_rows),
        )


def least_of(facts: ScreenFacts) -> float:
    """Return ν, below which p-values are not distinguished."""
    return facts.level / (2 * facts.columns)


def z_scale(response: Response, response_sd: float, centre: float, plan: ScreenPlan) -> float:
    """Return what a sum of products is divided by, in squared half-ranges.

    For a column that is independent of the response its variance is at most ``Σ (y - c)²`` times
    that of the column, which is at most 1; rows of one person may all be alike. With the column's
    mean the noise of the response's mean takes the place of its variance, of which it takes more.
    """
    squares = response.squares - 2 * centre * response.total + centre**2 * response.complete
    careful = squares + CAREFUL * response_sd * (1 + abs(centre)) ** 2
    shared = response_sd**2 * (1 + centre**2)
    return math.sqrt(plan.facts.adjacency.places * max(careful, shared, 1.0))


def least_noisy(levels: Integers, scale: float, count: int, entropy: Entropy) -> Integers:
    """Draw `count` different indices, each that of the least noisy level of those left."""
    left = np.arange(len(levels))
    indices = np.empty(count, dtype=np.int64)
    for place in range(count):
        choice = int(np.argmin(levels[left] + discrete_laplace(scale, len(left), entropy)))
        indices[place] = left[choice]
        left = np.delete(left, choice)
    return indices
