"""Noise of counts, by law."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from dpmodels.mechanisms.add_noise import ROUND_UP, SMALLEST_SCALE, laplace_multipliers
from dpmodels.mechanisms.ledger_price import at_equal_price
from dpmodels.mechanisms.protocol import (
    LEAST_SCALE,
    CountFacts,
    CountPlan,
    counts_released,
    release_terms,
    units_of,
)
from dpmodels.noise import (
    Entropy,
    discrete_gaussian,
    discrete_laplace,
    discrete_laplace_variance,
    noisy_sums,
)
from dpmodels.privacy import GaussianEvent, Guarantee, LaplaceEvent, PureDP, gaussian_multiplier
from dpmodels.released import CountsRelease, MechanismInfo, SumsRelease
from dpmodels.statistics.counts import count_sensitivity
from dpmodels.typing import Floats, Numbers

# Three parts and the incomplete rows.
PARTS = 4


def gaussian_plan(facts: CountFacts, guarantee: Guarantee) -> CountPlan:
    """Calibrate discrete Gaussian noise in every count; BudgetError for a pure guarantee."""
    return gaussian_sums(facts, guarantee, count_sensitivity(facts.adjacency, facts.tables, 2))


def gaussian_sums(facts: CountFacts, guarantee: Guarantee, sensitivity: float) -> CountPlan:
    """Calibrate discrete Gaussian noise in sums of an L2 sensitivity, in rows."""
    multiplier = gaussian_multiplier(guarantee)
    scale_in_rows = multiplier * sensitivity * ROUND_UP
    units_per_row = units_of(scale_in_rows)
    scale = max(scale_in_rows * units_per_row, SMALLEST_SCALE)
    events = (GaussianEvent(multiplier),)
    return CountPlan(guarantee, events, facts, units_per_row, scale, scale / units_per_row)


def laplace_plan(facts: CountFacts, guarantee: Guarantee) -> CountPlan:
    """Calibrate discrete Laplace noise in every count."""
    changed = round(count_sensitivity(facts.adjacency, facts.tables, 1))
    multiplier = laplace_multipliers(guarantee, (1.0,) * changed)[0]
    scale_in_rows = multiplier * ROUND_UP
    finest = units_of(scale_in_rows)
    units_per_row = finest if facts.divided else 1
    scale = max(scale_in_rows * units_per_row, LEAST_SCALE)
    noise_sd = math.sqrt(discrete_laplace_variance(scale)) / units_per_row
    events = (LaplaceEvent(multiplier, count=changed),)
    return CountPlan(guarantee, events, facts, units_per_row, scale, noise_sd)


def quieter_plan(
    facts: CountFacts, guarantee: Guarantee, levels: Callable[[bool], tuple[int, float]]
) -> CountPlan:
    """Calibrate noise in the counts of all levels of nodes, of the law that is quieter in sums.

    `levels` gives their number and how many counts the mean sum has the variance of, for noise
    whose variance grows with the square of that number, or with the number.
    """
    laws = [laplace_plan] if isinstance(guarantee, PureDP) else [laplace_plan, gaussian_plan]
    noises, plans = [], []
    for law in laws:
        tables, summed = levels(law is laplace_plan)
        law_plan = replace(law(replace(facts, tables=tables), guarantee), facts=facts)
        noises.append(law_plan.noise_sd * math.sqrt(summed))
        plans.append(law_plan)
    priced = at_equal_price(noises, plans)
    return plans[priced.index(min(priced))]


def paired_plan(facts: CountFacts, guarantee: Guarantee) -> CountPlan:
    """Calibrate discrete Laplace noise in the sum and the counts that one mean is made of."""
    return laplace_sums(facts, guarantee, count_sensitivity(facts.adjacency, 1, 1))


def laplace_sums(facts: CountFacts, guarantee: Guarantee, sensitivity: float) -> CountPlan:
    """Calibrate discrete Laplace noise in sums of an L1 sensitivity, in rows."""
    (multiplier,) = laplace_multipliers(guarantee)
    scale_in_rows = multiplier * sensitivity * ROUND_UP
    units_per_row = units_of(scale_in_rows)
    scale = max(scale_in_rows * units_per_row, LEAST_SCALE)
    noise_sd = math.sqrt(discrete_laplace_variance(scale)) / units_per_row
    events = (LaplaceEvent(multiplier),)
    return CountPlan(guarantee, events, facts, units_per_row, scale, noise_sd)


def one_mean(facts: CountFacts) -> bool:
    """Whether a release is that of one mean, and of a public number of rows."""
    single_mean = facts.tables == 1 and facts.parts == PARTS and facts.divided
    return single_mean and facts.adjacency.n_public


def law_of(plan: CountPlan) -> str:
    """Return the law of the noise that a plan is charged for."""
    return "gaussian" if isinstance(plan.events[-1], GaussianEvent) else "laplace"


def noised_units(
    plan: CountPlan, exact: NDArray[np.generic], entropy: Entropy
) -> tuple[Floats, str]:
    """Add the planned noise to whole rows, and return them in rows again, with its law."""
    noisy = _noisy(plan, exact.astype(object) * plan.units_per_row, entropy)
    return noisy.astype(np.float64) / plan.units_per_row, law_of(plan)


def _noisy(plan: CountPlan, exact: Numbers, entropy: Entropy) -> Numbers:
    draw = discrete_gaussian if law_of(plan) == "gaussian" else discrete_laplace
    return noisy_sums([(exact, plan.scale)], draw, entropy)[0]


def noised_sums(
    info: MechanismInfo,
    plan: CountPlan,
    exact: NDArray[np.generic],
    n_rows: int,
    entropy: Entropy,
    *,
    fanout: int = 2,
    unit: int = 1,
) -> SumsRelease:
    """Add the planned noise to exact sums of cells, the incomplete rows last.

    A row has `unit` in them, a power of two that divides the plan's units.
    """
    values, law = noised_units(
        replace(plan, units_per_row=plan.units_per_row // unit), exact, entropy
    )
    return SumsRelease(
        values=values / unit,
        sums=info.name,
        shape=plan.facts.shape,
        fanout=fanout,
        law=law,
        noise_sd=plan.noise_sd,
        step=1 / plan.units_per_row,
        **release_terms(info, plan, n_rows),
    )


def noised_counts(
    info: MechanismInfo, plan: CountPlan, exact: NDArray[np.generic], n_rows: int, entropy: Entropy
) -> CountsRelease:
    """Add the planned noise to exact counts."""
    return counts_released(info, plan, _noisy(plan, exact, entropy), n_rows, law_of(plan))


def noised_mean(
    info: MechanismInfo, plan: CountPlan, exact: NDArray[np.generic], n_rows: int, entropy: Entropy
) -> CountsRelease:
    """Add the planned noise to the sum and the counts that one mean of all rows is made of.

    `exact` are the three parts and the incomplete rows; the outer two get what the public number
    of rows leaves them.
    """
    summed = np.array([exact[2] - exact[0], exact[1], exact[3]], dtype=object)
    release = noised_counts(info, plan, summed, n_rows, entropy)
    difference, middle, incomplete = release.values.tolist()
    ends = n_rows - middle - incomplete
    parts = [(ends - difference) / 2, middle, (ends + difference) / 2, incomplete]
    return replace(release, values=np.array(parts), paired=True)
