"""Noisy sums of counts in an order, of which running totals are made by a square root.

Theorem
    For each group the integers ``R x`` are released, x its counts in order and R the square root of
    the matrix of running totals, rounded (:mod:`dpmodels.postprocess.square_root`), and the number
    of incomplete rows: one vector, with Gaussian noise. So the release is ρ-zCDP with ρ =
    Δ²/(2σ²), and at (ε, δ) has the exact trade-off of the Gaussian mechanism, for either adjacency;
    totals are solved from it. Row t of R x has no later counts than t in it: released one after the
    other, as their periods end, the sums are the same, and so is the guarantee.
Sensitivity
    Let r be the first column of R, in whole units of which a row has U, ``r_0 = U``; column i is r
    moved down by i and cut off. A row adds one column of its group, or U to the incomplete rows. So
    added or removed it moves the vector by ``Δ = |r|``, that of the first cell. Replaced within a
    group, from cell i to a later one ``i + d``, its squared move is the sum of ``r_0², ...,
    r_{d-1}²`` and of ``(r_{k+d} - r_k)²`` for ``k < T - i - d``: most for i = 0, where it is
    ``|r|² + sum_{k < T-d} r_k² - 2 sum_{k < T-d} r_k r_{k+d}``; Δ² is the largest of all d, or
    ``|r|² + U²`` to the incomplete rows, if that is more. From a group to another no product is
    taken off: ``Δ² = 2 |r|²``. All are integers, computed without rounding, and all are reached.
Noise
    Independent discrete Gaussians of one scale on every sum. With ``S(t) = r_0² + ... +
    r_{t-1}²``, in squared rows about ``1.07 + log(t)/π``, a total of t cells has the variance
    ``S(t) Δ²/(2ρ)``.
Numerics
    exact: integer counts times integers, integer noise of exact law, then a division. Solving for
    counts is rounded as floats are, many digits below the noise.
Source
    Fichtenberger, Henzinger, Upadhyay (2023), "Constant matters: fine-grained error bound on
    differentially private continual observation", ICML; Henzinger, Upadhyay, Upadhyay (2023),
    "Almost tight error bounds on differentially private continual counting", SODA, for the mean
    square.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar

import numpy as np

from dpmodels.design.cells import PrivateCells
from dpmodels.errors import ArgumentError, BudgetError
from dpmodels.mechanisms.count_noise import gaussian_sums, noised_sums
from dpmodels.mechanisms.protocol import CountFacts, CountPlan
from dpmodels.noise import Entropy
from dpmodels.postprocess.square_root import UNIT, SquareRoot, coefficients
from dpmodels.privacy import Guarantee
from dpmodels.released import MechanismInfo, SumsRelease
from dpmodels.statistics import Statistic
from dpmodels.statistics.counts import counts

# A choice: more take seconds, as sums of products of integers.
MOST_CELLS = 2**15


@dataclass(frozen=True)
class Factorisation:
    """Square-root factorisation of running totals.

    Examples
    --------
    >>> from dpmodels.privacy import ZCDP, adjacency
    >>> facts = CountFacts(1, 366, False, adjacency("add-remove"), (1, 365))
    >>> plan = Factorisation().plan(facts, ZCDP(0.5))
    >>> round(plan.noise_sd**2, 3)
    2.944
    """

    info: ClassVar[MechanismInfo] = MechanismInfo(
        name="factorisation",
        theorem="(eps, delta)-DP or rho-zCDP, exact Gaussian trade-off",
        sensitivity="L2, the longest column of the root, or the farthest two (a row may move)",
        noise="discrete Gaussian, one scale",
        numerics="exact lattice",
        source="Fichtenberger, Henzinger and Upadhyay (2023)",
    )

    def plan(self, facts: CountFacts, guarantee: Guarantee) -> CountPlan:
        """Calibrate the noise to a guarantee.

        BudgetError for a pure guarantee, which Gaussian noise does not give, or if the noise is
        beyond what is meaningful; ArgumentError for too many cells, or in two dimensions.
        """
        groups, *cells = facts.shape
        if len(cells) != 1 or cells[0] > MOST_CELLS:
            raise ArgumentError(
                f"mechanism='factorisation' takes up to {MOST_CELLS:,} cells in one order; write "
                f"mechanism='tree', or wider cells, for cells of shape {tuple(cells)}"
            )
        sensitivity = math.sqrt(squared_move(cells[0], groups, replaced=facts.adjacency.n_public))
        plan = gaussian_sums(facts, guarantee, sensitivity / UNIT)
        if plan.units_per_row < UNIT:
            raise BudgetError(
                f"the budget asks for noise of {plan.noise_sd:.2g} rows in each sum, beyond what "
                "is meaningful; give a larger eps, delta or rho"
            )
        return plan

    def measure(self, private: PrivateCells, plan: CountPlan) -> Statistic:
        """Compute the exact counts of the cells."""
        return counts(private, 1, count_public=plan.facts.adjacency.n_public)

    def release(self, statistic: Statistic, plan: CountPlan, entropy: Entropy) -> SumsRelease:
        """Add the planned noise to the sums of all cells."""
        exact, n_rows = statistic.cross()
        groups, cells = plan.facts.shape
        sums = SquareRoot(cells).sums(exact[:-1].reshape(groups, cells))
        numbers = np.append(sums.ravel(), exact[-1] * UNIT)
        return noised_sums(self.info, plan, numbers, n_rows, entropy, unit=UNIT)


@lru_cache(maxsize=16)
def squared_move(cells: int, groups: int, *, replaced: bool) -> int:
    """Return how far a row moves the sums of all groups, squared, in squared units.

    >>> squared_move(1, 1, replaced=False) == UNIT**2, squared_move(1, 3, replaced=True) / UNIT**2
    (True, 2.0)
    """
    # Sums of products of so many integers up to 2**20 are exact in float64.
    root = coefficients(cells).astype(np.float64)
    squares = np.cumsum(root**2)
    longest = int(squares[-1])
    if not replaced:
        return longest
    if groups > 1:
        return 2 * longest
    shared = np.correlate(root, root, "full")[cells:]
    squared_moves = squares[-1] + squares[-2::-1] - 2 * shared
    return max(int(np.max(squared_moves, initial=0.0)), longest + UNIT**2)
