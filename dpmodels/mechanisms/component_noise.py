"""Discrete Gaussian noise on residual components of margins: its scales, and its addition.

Theorem, sensitivity and sources are those of :mod:`dpmodels.mechanisms.margins.residual`.
"""

from __future__ import annotations

import math

import numpy as np

from dpmodels.errors import BudgetError
from dpmodels.mechanisms.add_noise import ROUND_UP, SMALLEST_SCALE
from dpmodels.mechanisms.protocol import (
    MarginFacts,
    MarginPlan,
    best_variances,
    squared_sensitivity,
)
from dpmodels.noise import Entropy, discrete_gaussian, noisy_sums
from dpmodels.postprocess.residuals import Term, cells, centred, split, subsets, summed
from dpmodels.privacy import GaussianEvent, Guarantee, gaussian_multiplier
from dpmodels.typing import Exact, Floats, Numbers

# What the sampler draws within 63 bits, with room to spare.
LARGEST_SCALE = 2.0**50


def component_plan(
    facts: MarginFacts, guarantee: Guarantee, largest_scale: float = LARGEST_SCALE
) -> MarginPlan:
    """Calibrate the noise of all components of margins to a guarantee.

    BudgetError for a pure guarantee, which Gaussian noise does not give, or if the noise in all
    cells of a component together exceeds `largest_scale` rows.
    """
    multiplier = gaussian_multiplier(guarantee)
    shape = best_variances(facts)
    sensitivity = squared_sensitivity(facts, shape)
    sds = [multiplier * math.sqrt(sensitivity * variance) * ROUND_UP for variance in shape.values()]
    sizes = [cells(part, facts.sizes) for part in shape]
    units = [_units(sd, size, largest_scale) for sd, size in zip(sds, sizes, strict=True)]
    scales = tuple(sd * unit for sd, unit in zip(sds, units, strict=True))
    events = (GaussianEvent(multiplier),)
    return MarginPlan(guarantee, events, facts, tuple(shape), tuple(units), scales, tuple(sds))


def _units(sd: float, size: int, largest_scale: float) -> int:
    """Return the units of a row: a multiple of the cells, with 2²⁰ of them in the noise's sd."""
    if not sd * size < largest_scale:
        raise BudgetError(
            f"the budget asks for noise of {sd:.2g} rows in each count, beyond what is "
            "meaningful; give a larger eps, delta or rho"
        )
    return size << max(0, math.frexp(SMALLEST_SCALE / (sd * size))[1])


def noisy_components(
    exact: Numbers, n_rows: int, counted: MarginFacts, plan: MarginPlan, entropy: Entropy
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
