"""Noisy Haar wavelets of the counts of cells that stand in an order.

Theorem
    Noise of a scale for the distance of neighbours in L1 norm, which is ε-differentially private;
    or in L2 norm for Gaussian noise, which is ρ-zCDP, and at (ε, δ) has the exact trade-off of the
    Gaussian mechanism.
Sensitivity
    The numbers released of a group are the sum of all its cells and, for each pair of nodes of
    each of h levels, the difference of their sums. A row adds 1 to the first, and 1 or -1 to at
    most one difference a level: L1 norm 1 + h, L2 norm √(1 + h). A row that is replaced leaves a
    cell and enters another. In one group the sum stays; a level at which the two cells are in one
    node's same child stays, one at which they are its two children changes by 2, and below there
    are two differences that change by 1: L1 norm at most 2h, L2 norm at most √(2h + 2), since a
    change by 2 comes once. From group to group two of each change by 1: 2(1 + h) and √(2(1 + h));
    from or to the incomplete rows it is less. So what
    :func:`dpmodels.statistics.counts.count_sensitivity` gives for 1 + h tables holds; of 2ʰ
    cells all of it is reached but, in one group, the L1 norm.
Noise
    Independent on every number, all of one scale: discrete Laplace for a pure budget, else discrete
    Gaussian. A difference that changes by 2 is not two releases of sensitivity 1: so Laplace noise
    is charged as one release, and is for a pure budget alone.
Numerics
    exact: integer counts of cells, whose sums and differences are integers, integer noise of exact
    law, then divisions.
Source
    Xiao, Wang, Gehrke (2010), "Differential privacy via wavelet transforms", ICDE; with the
    differences as they are in place of weights.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from dpmodels.design.cells import PrivateCells
from dpmodels.mechanisms.add_noise import ROUND_UP, laplace_multipliers
from dpmodels.mechanisms.count_noise import gaussian_plan, noised_sums
from dpmodels.mechanisms.protocol import LEAST_SCALE, CountFacts, CountPlan, units_of
from dpmodels.noise import Entropy, discrete_laplace_variance
from dpmodels.postprocess.wavelet import noisy_levels, wavelets
from dpmodels.privacy import Guarantee, LaplaceEvent, PureDP
from dpmodels.released import MechanismInfo, SumsRelease
from dpmodels.statistics import Statistic
from dpmodels.statistics.counts import count_sensitivity, counts


@dataclass(frozen=True)
class Wavelet:
    """Haar wavelets of counts.

    Examples
    --------
    >>> from dpmodels.privacy import PureDP, adjacency
    >>> facts = CountFacts(1, 4097, False, adjacency("add-remove"), (1, 4096))
    >>> round(Wavelet().plan(facts, PureDP(1.0)).scale, 6)
    13.0
    """

    info: ClassVar[MechanismInfo] = MechanismInfo(
        name="wavelet",
        theorem="eps-DP, rho-zCDP or (eps, delta)-DP, as noise of one scale for a norm",
        sensitivity="L1, 1 + log2 of the cells, twice that if a row is replaced, or L2, its root",
        noise="discrete Laplace, or discrete Gaussian where a delta is allowed",
        numerics="exact lattice",
        source="Xiao, Wang and Gehrke (2010)",
    )

    def plan(self, facts: CountFacts, guarantee: Guarantee) -> CountPlan:
        """Calibrate the noise; BudgetError if it is beyond what is meaningful."""
        changed = noisy_levels(facts.shape[1])
        if not isinstance(guarantee, PureDP):
            return replace(gaussian_plan(replace(facts, tables=changed), guarantee), facts=facts)
        (multiplier,) = laplace_multipliers(guarantee)
        scale = multiplier * count_sensitivity(facts.adjacency, changed, 1) * ROUND_UP
        units_of(scale)
        scale = max(scale, LEAST_SCALE)
        noise_sd = math.sqrt(discrete_laplace_variance(scale))
        return CountPlan(guarantee, (LaplaceEvent(multiplier),), facts, 1, scale, noise_sd)

    def measure(self, private: PrivateCells, plan: CountPlan) -> Statistic:
        """Compute the exact counts of the cells."""
        return counts(private, 1, count_public=plan.facts.adjacency.n_public)

    def release(self, statistic: Statistic, plan: CountPlan, entropy: Entropy) -> SumsRelease:
        """Add the planned noise to sums and differences."""
        exact, n_rows = statistic.cross()
        numbers = wavelets(exact[:-1].reshape(plan.facts.shape)).ravel()
        return noised_sums(self.info, plan, np.append(numbers, exact[-1]), n_rows, entropy)
