"""Noise of counts, by law, and discrete Gaussian noise on residual components of margins.

Theorem, sensitivity and sources of the latter are those of `dpmodels.mechanisms.margins.Residual`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np

from dpmodels.mechanisms import protocol
from dpmodels.mechanisms.add_noise import ROUND_UP, SMALLEST_SCALE, laplace_multipliers
from dpmodels.mechanisms.choose import at_equal_price
from dpmodels.noise import (
    Entropy,
    discrete_gaussian,
    discrete_laplace,
    discrete_laplace_variance,
    noisy_sums,
)
from dpmodels.postprocess.residuals import Term, cells, centred, split, subsets, summed
from dpmodels.privacy import GaussianEvent, Guarantee, LaplaceEvent, PureDP, gaussian_multiplier
from dpmodels.released import CountsRelease, MechanismInfo, SumsRelease
from dpmodels.statistics.counts import count_sensitivity
from dpmodels.typing import Exact, Floats, Numbers, Scalars

# Three parts and the incomplete rows.
PARTS = 4


def gaussian_plan(facts: protocol.CountFacts, guarantee: Guarantee) -> protocol.CountPlan:
    """Calibrate discrete Gaussian noise in every count; BudgetError for a pure guarantee."""
    return gaussian_sums(facts, guarantee, count_sensitivity(facts.adjacency, facts.tables, 2))


def gaussian_sums(
    facts: protocol.CountFacts, guarantee: Guarantee, sensitivity: float
) -> protocol.CountPlan:
    """Calibrate discrete Gaussian noise in sums of an L2 sensitivity, in rows."""
    multiplier = gaussian_multiplier(guarantee)
    scale_in_rows = multiplier * sensitivity * ROUND_UP
    units_per_row = protocol.units_of(scale_in_rows)
    scale = max(scale_in_rows * units_per_row, SMALLEST_SCALE)
    events = (GaussianEvent(multiplier),)
    return protocol.CountPlan(guarantee, events, facts, units_per_row, scale, scale / units_per_row)


def laplace_plan(facts: protocol.CountFacts, guarantee: Guarantee) -> protocol.CountPlan:
    """Calibrate discrete Laplace noise in every count."""
    changed = round(count_sensitivity(facts.adjacency, facts.tables, 1))
    return laplace_sums(facts, guarantee, 1.0, changed, whole=not facts.divided)


def quieter_plan(
    facts: protocol.CountFacts, guarantee: Guarantee, levels: Callable[[bool], tuple[int, float]]
) -> protocol.CountPlan:
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


def paired_plan(facts: protocol.CountFacts, guarantee: Guarantee) -> protocol.CountPlan:
    """Calibrate discrete Laplace noise in the sum and the counts that one mean is made of."""
    return laplace_sums(facts, guarantee, count_sensitivity(facts.adjacency, 1, 1))


def laplace_sums(
    facts: protocol.CountFacts,
    guarantee: Guarantee,
    sensitivity: float,
    changed: int = 1,
    *,
    whole: bool = False,
) -> protocol.CountPlan:
    """Calibrate discrete Laplace noise in sums of an L1 sensitivity, in rows.

    `changed` sums have that sensitivity each; `whole` rows are counted in units of one.
    """
    multiplier = laplace_multipliers(guarantee, (1.0,) * changed)[0]
    scale_in_rows = multiplier * sensitivity * ROUND_UP
    finest = protocol.units_of(scale_in_rows)
    units_per_row = 1 if whole else finest
    scale = max(scale_in_rows * units_per_row, protocol.LEAST_SCALE)
    noise_sd = math.sqrt(discrete_laplace_variance(scale)) / units_per_row
    events = (LaplaceEvent(multiplier, count=changed),)
    return protocol.CountPlan(guarantee, events, facts, units_per_row, scale, noise_sd)


def one_mean(facts: protocol.CountFacts) -> bool:
    """Whether a release is that of one mean, and of a public number of rows."""
    single_mean = facts.tables == 1 and facts.parts == PARTS and facts.divided
    return single_mean and facts.adjacency.n_public


def law_of(plan: protocol.CountPlan) -> str:
    """Return the law of the noise that a plan is charged for."""
    return "gaussian" if isinstance(plan.events[-1], GaussianEvent) else "laplace"


def noised_units(plan: protocol.CountPlan, exact: Scalars, entropy: Entropy) -> tuple[Floats, str]:
    """Add the planned noise to whole rows, and return them in rows again, with its law."""
    noisy = _noisy(plan, exact.astype(object) * plan.units_per_row, entropy)
    return noisy.astype(np.float64) / plan.units_per_row, law_of(plan)


def _noisy(plan: protocol.CountPlan, exact: Numbers, entropy: Entropy) -> Numbers:
    draw = discrete_gaussian if law_of(plan) == "gaussian" else discrete_laplace
    return noisy_sums([(exact, plan.scale)], draw, entropy)[0]


def noised_sums(
    info: MechanismInfo,
    plan: protocol.CountPlan,
    exact: Scalars,
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
        **protocol.release_terms(info, plan, n_rows),
    )


def noised_counts(
    info: MechanismInfo, plan: protocol.CountPlan, exact: Scalars, n_rows: int, entropy: Entropy
) -> CountsRelease:
    """Add the planned noise to exact counts."""
    return protocol.counts_released(info, plan, _noisy(plan, exact, entropy), n_rows, law_of(plan))


def noised_mean(
    info: MechanismInfo, plan: protocol.CountPlan, exact: Scalars, n_rows: int, entropy: Entropy
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


# What the sampler draws within 63 bits, with room to spare.
LARGEST_SCALE = 2.0**50


def component_plan(
    facts: protocol.MarginFacts,
    guarantee: Guarantee,
    largest_scale: float = LARGEST_SCALE,
    weights: Mapping[Term, float] | None = None,
) -> protocol.MarginPlan:
    """Calibrate the noise of all components of margins to a guarantee.

    Cells of margins with `weights` count as many times. BudgetError for a pure guarantee, which
    Gaussian noise does not give, or if the noise in all cells of a component together exceeds
    `largest_scale` rows.
    """
    multiplier = gaussian_multiplier(guarantee)
    shape = protocol.best_variances(facts, weights)
    sensitivity = protocol.squared_sensitivity(facts, shape)
    sds = [multiplier * math.sqrt(sensitivity * variance) * ROUND_UP for variance in shape.values()]
    sizes = [cells(part, facts.sizes) for part in shape]
    units = [_units(sd, size, largest_scale) for sd, size in zip(sds, sizes, strict=True)]
    scales = tuple(sd * unit for sd, unit in zip(sds, units, strict=True))
    events = (GaussianEvent(multiplier),)
    return protocol.MarginPlan(
        guarantee, events, facts, tuple(shape), tuple(units), scales, tuple(sds)
    )


def _units(sd: float, size: int, largest_scale: float) -> int:
    """Return the units of a row: a multiple of the cells, with 2²⁰ of them in the noise's sd."""
    if not sd * size < largest_scale:
        protocol.refuse_noise(sd, "rows in each count")
    return size << max(0, math.frexp(SMALLEST_SCALE / (sd * size))[1])


def noisy_components(
    exact: Numbers,
    n_rows: int,
    counted: protocol.MarginFacts,
    plan: protocol.MarginPlan,
    entropy: Entropy,
) -> Floats:
    """Return the planned components with noise, one after another, a public number of rows first.

    `exact` has the counts of the largest margins of `counted`, which contain all components.
    """
    tables: dict[Term, Exact] = split(exact, counted.largest, counted.sizes)
    first_with: dict[Term, Term] = {}
    for term in counted.largest:
        for part in subsets(term):
            first_with.setdefault(part, term)
    components = [np.array([float(n_rows)])] if counted.adjacency.n_public else []
    sums = [
        (unit * summed(tables[first_with[part]], first_with[part], part), scale)
        for part, unit, scale in zip(plan.measured, plan.units, plan.scales, strict=True)
    ]
    noisy = noisy_sums(sums, discrete_gaussian, entropy)
    for counts, unit in zip(noisy, plan.units, strict=True):
        components.append(centred(counts).astype(np.float64).ravel() / (unit * counts.size))
    return np.concatenate(components)
