"""Discrete Gaussian noise on the residual components of margins.

Theorem
    The release is ρ-zCDP with ``ρ = Δ²/2``, and (ε, δ)-differentially private with the exact
    trade-off of the Gaussian mechanism at multiplier 1/Δ, for either adjacency. *Proof.* Let a row
    be K_A units, K_A a multiple of ``Π_{i∈A} n_i``. Of the counts m_A by the variables of A, all of
    whose cells get independent integer noise z_A, only ``⊗(n_i I − J)(K_A m_A + z_A)`` is released.
    As ``(n I − J) 1 = 0``, it is the same function of ``V_A + z_A``, where V_A is the sum over the
    rows of ``K_A ⊗(e − 1/n_i)``, e the indicator of a row's level: integers, to which discrete
    Gaussian noise is added. What is released is made of these by post-processing, and their noise
    is independent from A to A.
Sensitivity
    Δ² is the sum over A of the squared distance that one row moves V_A/K_A by, in units of the
    noise's variance: :func:`dpmodels.mechanisms.protocol.squared_sensitivity`. Where a row is
    added or removed it is ``Σ p_A/σ_A²``, ``p_A = Π (1 − 1/n_i)``, for all rows alike. Where it is
    replaced, the number of rows is public and has no part in it; of up to 14 variables it is the
    largest over all sets of variables in which the two rows may differ, of more an upper bound.
Noise
    Independent discrete Gaussians, σ_A rows a cell of A, at least 2²⁰ units: see
    :mod:`dpmodels.mechanisms.counts.geometric`. Of all σ_A at the same cost ``Σ p_A/σ_A²`` those
    for which the variances of all cells of all margins asked for have the least sum.
Numerics
    exact: integer statistic, integer noise of exact law, integer differences, then a division.
Source
    Xiao, He, Zhang, Kifer (2023), "An Optimal and Scalable Matrix Mechanism for Noisy Marginals
    under Convex Loss Functions", NeurIPS. Canonne, Kamath, Steinke (2020), "The discrete Gaussian
    for differential privacy", NeurIPS, for the noise.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from dpmodels.design.cells import PrivateMargins
from dpmodels.errors import BudgetError
from dpmodels.mechanisms.add_noise import ROUND_UP, SMALLEST_SCALE
from dpmodels.mechanisms.protocol import (
    MarginFacts,
    MarginPlan,
    best_variances,
    release_terms,
    squared_sensitivity,
)
from dpmodels.noise import Entropy, discrete_gaussian, noisy_sums
from dpmodels.postprocess.residuals import cells, centred, split, summed
from dpmodels.privacy import GaussianEvent, Guarantee, gaussian_multiplier
from dpmodels.released import MarginsRelease, MechanismInfo
from dpmodels.statistics import Statistic
from dpmodels.statistics.counts import margin_counts

# What the sampler draws within 63 bits, with room to spare.
LARGEST_SCALE = 2.0**50


@dataclass(frozen=True)
class Residual:
    """Gaussian mechanism for the residual components of margins.

    Examples
    --------
    >>> from dpmodels.mechanisms.protocol import MarginFacts
    >>> from dpmodels.privacy import ZCDP, adjacency
    >>> facts = MarginFacts((3, 4), ((0,), (1,)), adjacency("add-remove"))
    >>> plan = Residual().plan(facts, ZCDP(0.5))
    >>> plan.measured, [round(sd, 3) for sd in plan.noise_sds]
    (((), (0,), (1,)), [2.116, 1.405, 1.307])
    """

    info: ClassVar[MechanismInfo] = MechanismInfo(
        name="residual",
        theorem="(eps, delta)-DP or rho-zCDP, exact Gaussian trade-off",
        sensitivity="L2 of all residual components together, by how many levels each variable has",
        noise="discrete Gaussian, one scale a component",
        numerics="exact lattice",
        source="Xiao, He, Zhang and Kifer (2023)",
    )

    def plan(self, facts: MarginFacts, guarantee: Guarantee) -> MarginPlan:
        """Calibrate the noise to a guarantee.

        BudgetError for a pure guarantee, which Gaussian noise does not give, or if the noise is
        beyond what is meaningful.
        """
        multiplier = gaussian_multiplier(guarantee)
        shape = best_variances(facts)
        sensitivity = squared_sensitivity(facts, shape)
        sds = [
            multiplier * math.sqrt(sensitivity * variance) * ROUND_UP for variance in shape.values()
        ]
        units = [_units(sd, cells(part, facts.sizes)) for part, sd in zip(shape, sds, strict=True)]
        scales = tuple(sd * unit for sd, unit in zip(sds, units, strict=True))
        events = (GaussianEvent(multiplier),)
        return MarginPlan(guarantee, events, facts, tuple(shape), tuple(units), scales, tuple(sds))

    def measure(self, private: PrivateMargins, plan: MarginPlan) -> Statistic:
        """Count the rows in the cells of the largest margins."""
        return margin_counts(private, count_public=plan.facts.adjacency.n_public)

    def release(self, statistic: Statistic, plan: MarginPlan, entropy: Entropy) -> MarginsRelease:
        """Release the components of the counts with the planned noise."""
        exact, n_rows = statistic.cross()
        facts = plan.facts
        tables: dict[Any, Any] = split(exact, facts.largest, facts.sizes)
        sums: list[tuple[Any, float]] = []
        components = [] if not facts.adjacency.n_public else [np.array([float(n_rows)])]
        for part, unit, scale in zip(plan.measured, plan.units, plan.scales, strict=True):
            term = next(margin for margin in facts.largest if set(part) <= set(margin))
            counts = summed(tables[term], term, part)
            sums.append((unit * counts, scale))
        for noisy, (counts, _), unit in zip(
            noisy_sums(sums, discrete_gaussian, entropy), sums, plan.units, strict=True
        ):
            components.append(centred(noisy).astype(np.float64).ravel() / (unit * counts.size))
        return MarginsRelease(
            values=np.concatenate(components),
            law="gaussian",
            noise_sds=plan.noise_sds,
            **release_terms(self.info, plan, n_rows),
        )


def _units(sd: float, size: int) -> int:
    """Return the units of a row: a multiple of the cells, with 2²⁰ of them in the noise's sd."""
    if not sd * size < LARGEST_SCALE:
        raise BudgetError(
            f"the budget asks for noise of {sd:.2g} rows in each count, beyond what is "
            "meaningful; give a larger eps, delta or rho"
        )
    return size << max(0, math.frexp(SMALLEST_SCALE / (sd * size))[1])
