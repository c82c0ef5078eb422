"""Noisy counts of the nodes of a tree above cells that stand in an order.

Theorem
    A row adds 1 to one node of each level, or to the incomplete rows: counts of h tables. So the
    release is what the mechanisms of :mod:`~dpmodels.mechanisms.counts.geometric` are for h tables:
    ε-differentially private for Laplace noise, ρ-zCDP for Gaussian noise, which at (ε, δ) has the
    exact trade-off of the Gaussian mechanism.
Sensitivity
    Of all counts together: L1 norm h, 2h where a row is replaced; L2 norm √h, √(2h)
    (:func:`dpmodels.statistics.counts.count_sensitivity`). All are reached. The number of all rows
    is not among them: it costs nothing where it is public.
Noise
    Independent on every node, and on the number of incomplete rows: discrete Laplace for a pure
    budget, else of the two laws that which leaves sums over ranges less variance. A node has as
    many children as are best for the mean range.
Numerics
    exact: integer counts of cells, whose sums over nodes are integers, integer noise of exact law,
    then a division.
Source
    Hay, Rastogi, Miklau, Suciu (2010), "Boosting the accuracy of differentially private histograms
    through consistency", VLDB. Qardaji, Yang, Li (2013), "Understanding hierarchical methods for
    differentially private histograms", VLDB, for the number of children.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import ClassVar

import numpy as np

from dpmodels.arguments import integer
from dpmodels.errors import ArgumentError
from dpmodels.mechanisms.add_noise import ROUND_UP, laplace_multipliers
from dpmodels.mechanisms.count_noise import (
    gaussian_plan,
    gaussian_sums,
    law_of,
    noised_sums,
    quieter_plan,
)
from dpmodels.mechanisms.measures import OfCells
from dpmodels.mechanisms.protocol import LEAST_SCALE, CountFacts, CountPlan, refuse_noise, units_of
from dpmodels.noise import Entropy, discrete_laplace_variance
from dpmodels.postprocess.hierarchy import Hierarchy, best_fanout, levels_of, line, range_counts
from dpmodels.postprocess.plane import best_side, block_sizes, plane, rectangle_counts
from dpmodels.postprocess.square_root import UNIT, SquareRoot, coefficients
from dpmodels.postprocess.wavelet import noisy_levels, wavelets
from dpmodels.privacy import Guarantee, LaplaceEvent, PureDP
from dpmodels.released import MechanismInfo, SumsRelease
from dpmodels.statistics import Statistic
from dpmodels.statistics.counts import count_sensitivity

# No table has more cells.
WIDEST = 2**24


@dataclass(frozen=True)
class Tree(OfCells):
    """Tree of counts, made to agree by least squares.

    Parameters
    ----------
    fanout : int, optional
        Children of a node, 2 or more; by default what is best for the mean range.

    Examples
    --------
    >>> from dpmodels.privacy import PureDP, adjacency
    >>> facts = CountFacts(1, 4097, False, adjacency("replace"), (1, 4096))
    >>> plan = Tree().plan(facts, PureDP(1.0))
    >>> plan.events[0].count, round(plan.scale, 6)
    (6, 6.0)
    """

    fanout: int | None = None

    info: ClassVar[MechanismInfo] = MechanismInfo(
        name="tree",
        theorem="eps-DP, rho-zCDP or (eps, delta)-DP, as counts in so many tables as levels",
        sensitivity="L1, 2 a level (a row may change its nodes) or 1, or L2, its root",
        noise="discrete Laplace, or discrete Gaussian where that is less",
        numerics="exact lattice",
        source="Hay, Rastogi, Miklau and Suciu (2010); Qardaji, Yang and Li (2013)",
    )

    def __post_init__(self) -> None:
        if self.fanout is not None:
            integer("fanout", self.fanout, 2, WIDEST, "; or leave it out")

    def plan(self, facts: CountFacts, guarantee: Guarantee) -> CountPlan:
        """Calibrate the noise; BudgetError if it is beyond what is meaningful."""
        return quieter_plan(facts, guarantee, partial(self._levels, facts))

    def release(self, statistic: Statistic, plan: CountPlan, entropy: Entropy) -> SumsRelease:
        """Add the planned noise to the counts of all nodes."""
        exact, n_rows = statistic.cross()
        hierarchy, fanout = self.above(plan)
        cells = exact[:-1].reshape(plan.facts.shape[0], -1)
        nodes = np.concatenate(hierarchy.sums(cells), axis=-1).ravel()
        sums = np.append(nodes, exact[-1])
        return noised_sums(self.info, plan, sums, n_rows, entropy, fanout=fanout)

    def _levels(self, facts: CountFacts, squared: bool) -> tuple[int, float]:
        cells, fanout = facts.shape[1], self._fanout(facts, squared=squared)
        return levels_of(cells, fanout), range_counts(cells, fanout)

    def _fanout(self, facts: CountFacts, *, squared: bool) -> int:
        return self.fanout or best_fanout(facts.shape[1], squared=squared)

    def above(self, plan: CountPlan) -> tuple[Hierarchy, int]:
        """Return the nodes that a plan is for, and how many children each has at most."""
        fanout = self._fanout(plan.facts, squared=law_of(plan) == "laplace")
        return line(plan.facts.shape[1], fanout), fanout


@dataclass(frozen=True)
class Grid(OfCells):
    """Blocks of counts in a plane, made to agree by least squares.

    Noisy counts of the blocks of a plane, and of its cells.

    Theorem
        A row adds 1 to one block of each level, or to the incomplete rows: counts of h tables, as
        in `Tree`. So the release is ε-differentially private for Laplace noise, ρ-zCDP for Gaussian
        noise, which at (ε, δ) has the exact trade-off of the Gaussian mechanism.
    Sensitivity
        Of all counts together: L1 norm h, 2h where a row is replaced; L2 norm √h, √(2h)
        (:func:`dpmodels.statistics.counts.count_sensitivity`). All are reached. The number of all
        rows is not among them: it costs nothing where it is public.
    Noise
        Independent on every block, and on the number of incomplete rows: discrete Laplace for a
        pure budget, else of the two laws that which leaves sums over rectangles less variance. The
        side of a block is what is best for the mean rectangle
        (:func:`dpmodels.postprocess.plane.rectangle_counts`); one level is counts of the cells
        alone.
    Numerics
        exact: integer counts of cells, whose sums over blocks are integers, integer noise of exact
        law, then a division.
    Source
        Qardaji, Yang, Li (2013), "Understanding hierarchical methods for differentially private
        histograms", VLDB. Hay, Rastogi, Miklau, Suciu (2010), "Boosting the accuracy of
        differentially private histograms through consistency", VLDB.

    Parameters
    ----------
    side : int, optional
        Blocks along each axis that a block has under it, 2 or more; by default what is best for
        the mean rectangle.

    Examples
    --------
    >>> from dpmodels.privacy import PureDP, adjacency
    >>> facts = CountFacts(1, 256 * 256 + 1, False, adjacency("replace"), (1, 256, 256))
    >>> plan = Grid().plan(facts, PureDP(1.0))
    >>> plan.events[0].count, round(plan.scale, 6)
    (4, 4.0)
    """

    side: int | None = None

    info: ClassVar[MechanismInfo] = MechanismInfo(
        name="grid",
        theorem="eps-DP, rho-zCDP or (eps, delta)-DP, as counts in so many tables as levels",
        sensitivity="L1, 2 a level (a row may change its blocks) or 1, or L2, its root",
        noise="discrete Laplace, or discrete Gaussian where that is less",
        numerics="exact lattice",
        source="Qardaji, Yang and Li (2013); Hay, Rastogi, Miklau and Suciu (2010)",
    )

    def __post_init__(self) -> None:
        if self.side is not None:
            integer("side", self.side, 2, WIDEST, "; or leave it out")

    def plan(self, facts: CountFacts, guarantee: Guarantee) -> CountPlan:
        """Calibrate the noise; BudgetError if it is beyond what is meaningful."""
        return quieter_plan(facts, guarantee, partial(self._levels, facts))

    def release(self, statistic: Statistic, plan: CountPlan, entropy: Entropy) -> SumsRelease:
        """Add the planned noise to the counts of all blocks."""
        exact, n_rows = statistic.cross()
        shape = plan.facts.shape
        side = self.side_of(plan)
        blocks = plane(shape[1:], side)
        cells = exact[:-1].reshape(shape[0], -1).astype(np.int64)[:, blocks.order]
        nodes = np.concatenate(blocks.hierarchy.sums(cells), axis=-1).ravel()
        sums = np.append(nodes, int(exact[-1]))
        return noised_sums(self.info, plan, sums, n_rows, entropy, fanout=side)

    def side_of(self, plan: CountPlan) -> int:
        """Return the side of the blocks of a plan."""
        return self._side(plan.facts, squared=law_of(plan) == "laplace")

    def _levels(self, facts: CountFacts, squared: bool) -> tuple[int, float]:
        cells, side = facts.shape[1:], self._side(facts, squared=squared)
        return len(block_sizes(cells, side)), rectangle_counts(cells, side)

    def _side(self, facts: CountFacts, *, squared: bool) -> int:
        return self.side or best_side(facts.shape[1:], squared=squared)


@dataclass(frozen=True)
class Wavelet(OfCells):
    """Haar wavelets of counts.

    Noisy Haar wavelets of the counts of cells that stand in an order.

    Theorem
        Noise of a scale for the distance of neighbours in L1 norm, which is ε-differentially
        private; or in L2 norm for Gaussian noise, which is ρ-zCDP, and at (ε, δ) has the exact
        trade-off of the Gaussian mechanism.
    Sensitivity
        The numbers released of a group are the sum of all its cells and, for each pair of nodes of
        each of h levels, the difference of their sums. A row adds 1 to the first, and 1 or -1 to at
        most one difference a level: L1 norm 1 + h, L2 norm √(1 + h). A row that is replaced leaves
        a cell and enters another. In one group the sum stays; a level at which the two cells are in
        one node's same child stays, one at which they are its two children changes by 2, and below
        there are two differences that change by 1: L1 norm at most 2h, L2 norm at most √(2h + 2),
        since a change by 2 comes once. From group to group two of each change by 1: 2(1 + h) and
        √(2(1 + h)); from or to the incomplete rows it is less. So what
        :func:`dpmodels.statistics.counts.count_sensitivity` gives for 1 + h tables holds; of 2ʰ
        cells all of it is reached but, in one group, the L1 norm.
    Noise
        Independent on every number, all of one scale: discrete Laplace for a pure budget, else
        discrete Gaussian. A difference that changes by 2 is not two releases of sensitivity 1: so
        Laplace noise is charged as one release, and is for a pure budget alone.
    Numerics
        exact: integer counts of cells, whose sums and differences are integers, integer noise of
        exact law, then divisions.
    Source
        Xiao, Wang, Gehrke (2010), "Differential privacy via wavelet transforms", ICDE; with the
        differences as they are in place of weights.

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

    def release(self, statistic: Statistic, plan: CountPlan, entropy: Entropy) -> SumsRelease:
        """Add the planned noise to sums and differences."""
        exact, n_rows = statistic.cross()
        numbers = wavelets(exact[:-1].reshape(plan.facts.shape)).ravel()
        return noised_sums(self.info, plan, np.append(numbers, exact[-1]), n_rows, entropy)


# A choice: more take seconds, as sums of products of integers.
MOST_CELLS = 2**15


@dataclass(frozen=True)
class Factorisation(OfCells):
    """Square-root factorisation of running totals.

    Noisy sums of counts in an order, of which running totals are made by a square root.

    Theorem
        For each group the integers ``R x`` are released, x its counts in order and R the square
        root of the matrix of running totals, rounded (:mod:`dpmodels.postprocess.square_root`), and
        the number of incomplete rows: one vector, with Gaussian noise. So the release is ρ-zCDP
        with ρ = Δ²/(2σ²), and at (ε, δ) has the exact trade-off of the Gaussian mechanism, for
        either adjacency; totals are solved from it. Row t of R x has no later counts than t in it:
        released one after the other, as their periods end, the sums are the same, and so is the
        guarantee.
    Sensitivity
        Let r be the first column of R, in whole units of which a row has U, ``r_0 = U``; column i
        is r moved down by i and cut off. A row adds one column of its group, or U to the incomplete
        rows. So added or removed it moves the vector by ``Δ = |r|``, that of the first cell.
        Replaced within a group, from cell i to a later one ``i + d``, its squared move is the sum
        of ``r_0², ..., r_{d-1}²`` and of ``(r_{k+d} - r_k)²`` for ``k < T - i - d``: most for i =
        0, where it is ``|r|² + sum_{k < T-d} r_k² - 2 sum_{k < T-d} r_k r_{k+d}``; Δ² is the
        largest of all d, or ``|r|² + U²`` to the incomplete rows, if that is more. From a group to
        another no product is taken off: ``Δ² = 2 |r|²``. All are integers, computed without
        rounding, and all are reached.
    Noise
        Independent discrete Gaussians of one scale on every sum. With ``S(t) = r_0² + ... +
        r_{t-1}²``, in squared rows about ``1.07 + log(t)/π``, a total of t cells has the variance
        ``S(t) Δ²/(2ρ)``.
    Numerics
        exact: integer counts times integers, integer noise of exact law, then a division. Solving
        for counts is rounded as floats are, many digits below the noise.
    Source
        Fichtenberger, Henzinger, Upadhyay (2023), "Constant matters: fine-grained error bound on
        differentially private continual observation", ICML; Henzinger, Upadhyay, Upadhyay (2023),
        "Almost tight error bounds on differentially private continual counting", SODA, for the mean
        square.

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
            refuse_noise(plan.noise_sd, "rows in each sum")
        return plan

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
