"""Counts of runs of cells that stand in an order or in a plane, cut finer where there are rows.

Theorem
    The cells of a group, in a plane block by block, are halved and halved again; h levels of these
    nodes are *counted*. From the top down a node gets a noisy count of cost c, which is 1/h of the
    budget. If that is too small for its parts to be distinguished, or the node is a single cell,
    the node is *closed*: it gets a second noisy count, of cost ``r c`` for the r counted levels
    below it, and nothing below it is counted. The incomplete rows get one count of cost ``h c``. So
    each row, whatever comes out, is in counts of cost ``h c`` together, and the release is
    ε-differentially private for Laplace noise, ρ-zCDP for Gaussian noise, which at (ε, δ) has the
    exact trade-off of one Gaussian release. Cells are pooled afterwards, free of charge.
Proof
    Let counts be made one after the other, each given those before it, which decide whether and
    how it is made; both neighbours decide alike on the same outcomes, and a count without the row
    has the same law for both. By the rules above the costs of those with the row sum to ``h c``
    for any outcomes. Let ``c = 1/b`` for noise of scale b: the densities of one such count are
    within ``exp(±c)``, those of all within ``exp(±h c)``. Let ``c = 1/(2 σ²)`` for Gaussian noise
    of standard deviation σ: the mean of ``exp((α - 1) loss - (α - 1) α cost)`` over what one count
    adds to the privacy loss and to the cost is at most 1 whatever came before, so that the product
    of all has a mean of at most 1, which is ``h c``-zCDP. To see the trade-off, let a Brownian
    motion have the drift 0 for one neighbour and 1 for the other: a count with noise of variance
    σ² tells as much as the motion over a time ``1/σ² = 2 c`` chosen beforehand, and all of them as
    much as over the time ``2 h c``, over which its end tells everything: one Gaussian count. A row
    that is replaced is in two such sequences; a count with both before and after is the same for
    both neighbours, so the costs sum to at most ``2 h c``, and the drift is 1 in one motion and -1
    in another. For a group of rows a count that they move by s costs ``|s|`` times as much of ε,
    ``s²`` times of ρ: whatever comes out, the sums of these are a norm and the square of one, so
    that m rows cost at most m and m² times what one does.
Sensitivity
    Of one count 1. In the sum of costs of a row's counts: the budget of h tables, twice that where
    a row is replaced. Both are reached.
Noise
    Independent given all before: discrete Laplace for a pure budget, discrete Gaussian under zCDP,
    else the one with less variance. A node is closed if its count is below `CLOSED` standard
    deviations of the noise of a count that is cut further.
Numerics
    exact: integer counts of cells, integer noise of exact law, then a division. At (ε, δ) each
    discrete law is within a factor 1 ± 10⁻¹¹ of that of a rounded continuous one on all outcomes
    that count, which the calibration's margin covers, and decisions are made from rounded counts.
Source
    This package. That what is not cut may be counted the better is of Cormode, Procopiuc, Shen,
    Srivastava, Yu (2012), "Differentially private spatial decompositions", ICDE, and Zhang, Xiao,
    Xie (2016), "PrivTree", SIGMOD; pooling even cells of Li, Hay, Miklau (2014), "A data- and
    workload-aware algorithm for range queries under differential privacy", VLDB. For budgets spent
    by what came before: Rogers, Roth, Ullman, Vadhan (2016), "Privacy odometers and filters",
    NeurIPS; Feldman, Zrnic (2021), "Individual privacy accounting via a Rényi filter", NeurIPS.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import ClassVar, NamedTuple

import numpy as np

from dpmodels.errors import ArgumentError
from dpmodels.mechanisms.add_noise import SMALLEST_SCALE
from dpmodels.mechanisms.count_noise import gaussian_plan, laplace_plan, law_of, noised_units
from dpmodels.mechanisms.measures import OfCells
from dpmodels.mechanisms.protocol import LEAST_SCALE, CountFacts, CountPlan, release_terms
from dpmodels.noise import Entropy, discrete_laplace_variance
from dpmodels.postprocess.plane import BLOCK, plane
from dpmodels.postprocess.pooled_counts import Halves
from dpmodels.privacy import ZCDP, ApproxDP, Guarantee, PureDP, PureEvent
from dpmodels.released import MechanismInfo, RunsRelease
from dpmodels.statistics import Statistic
from dpmodels.typing import Floats, Integers, Numbers

# Noise sds of a count: were all rows of a node in one of its parts, four would show them. A choice.
CLOSED = 4.0


class Step(NamedTuple):
    """Noisy counts of nodes of one level, all with the same noise."""

    level: int
    starts: Integers  # first cells
    values: Floats
    noise_sd: float


@dataclass(frozen=True)
class Runs(OfCells):
    """Counts of runs of cells, cut finer where there are rows, and pooled where they are even.

    Examples
    --------
    >>> from dpmodels.privacy import PureDP, adjacency
    >>> facts = CountFacts(1, 4097, False, adjacency("add-remove"), (1, 4096))
    >>> plan = Runs().plan(facts, PureDP(1.0))
    >>> round(plan.scale, 6), plan.events
    (5.0, (PureEvent(eps=1.0, count=1),))
    """

    info: ClassVar[MechanismInfo] = MechanismInfo(
        name="partition",
        theorem="eps-DP, rho-zCDP or (eps, delta)-DP, counts of one cost by row, however chosen",
        sensitivity="1 in each count; a row's counts cost the budget, or half if it is replaced",
        noise="discrete Laplace, or discrete Gaussian where that is less",
        numerics="exact lattice",
        source="Li, Hay and Miklau (2014); Zhang, Xiao and Xie (2016); this package",
    )

    def plan(self, facts: CountFacts, guarantee: Guarantee) -> CountPlan:
        """Calibrate the noise.

        ArgumentError if the cells are not those of one number or two. BudgetError if the noise is
        beyond what is meaningful.
        """
        level_facts = replace(facts, tables=len(_levels(facts)))
        plans: list[CountPlan] = []
        if isinstance(guarantee, PureDP | ApproxDP):
            pure = PureDP(guarantee.eps)
            plans.append(replace(laplace_plan(level_facts, pure), events=(PureEvent(pure.eps),)))
        if isinstance(guarantee, ApproxDP | ZCDP):
            plans.append(gaussian_plan(level_facts, guarantee))
        quietest = min(plans, key=lambda plan: plan.noise_sd)
        return replace(quietest, facts=facts, guarantee=guarantee)

    def release(self, statistic: Statistic, plan: CountPlan, entropy: Entropy) -> RunsRelease:
        """Count runs of cells with noise, from long ones to those that the counts call for."""
        exact, n_rows = statistic.cross()
        groups, cells = plan.facts.shape[0], math.prod(plan.facts.shape[1:])
        table = exact[:-1].reshape(groups, cells)
        if len(plan.facts.shape) == 3:
            table = table[:, plane(plan.facts.shape[1:], BLOCK).order]
        last = _costing(plan, len(_levels(plan.facts)))
        incomplete, law = noised_units(last, exact[-1:], entropy)
        steps = _counted(Halves(cells), table, plan, entropy)
        steps.append(Step(0, np.array([groups * cells]), incomplete, last.noise_sd))
        return RunsRelease(
            values=np.concatenate([step.values for step in steps]),
            starts=np.concatenate([step.starts for step in steps]).astype(float),
            sizes=tuple(len(step.values) for step in steps),
            levels=tuple(step.level for step in steps),
            noise_sds=tuple(step.noise_sd for step in steps),
            shape=plan.facts.shape,
            law=law,
            noise_sd=plan.noise_sd,
            step=1 / plan.units_per_row,
            **release_terms(self.info, plan, n_rows),
        )


def _levels(facts: CountFacts) -> tuple[int, ...]:
    if len(facts.shape) not in (2, 3):
        raise ArgumentError(
            "mechanism='partition' is for the bins of one variable or two (dp_hist); write "
            "mechanism='auto'"
        )
    groups, *sides = facts.shape
    return Halves(math.prod(sides)).counted(
        whole_known=groups == 1 and facts.adjacency.n_public, in_plane=len(sides) == 2
    )


def _counted(halves: Halves, cells: Numbers, plan: CountPlan, entropy: Entropy) -> list[Step]:
    """Count nodes from the top down, and those that are cut no further once more."""
    levels = _levels(plan.facts)
    sums = halves.sums(cells)
    steps: list[Step] = []
    above, nodes = 0, np.arange(len(cells), dtype=np.int64)
    for below, level in zip(range(len(levels) - 1, -1, -1), levels, strict=True):
        nodes, above = _parts(nodes, level - above), level
        group, node = np.divmod(nodes, 1 << level)
        widths = halves.widths[level][node]
        starts = group * halves.cells + halves.firsts[level][node]
        nodes, starts, single = (array[widths > 0] for array in (nodes, starts, widths == 1))
        exact = sums[level].ravel()[nodes]
        values, _ = noised_units(plan, exact, entropy)
        steps.append(Step(level, starts, values, plan.noise_sd))
        if not below:
            break
        closed = single | (values < CLOSED * plan.noise_sd)
        again = _costing(plan, below)
        values, _ = noised_units(again, exact[closed], entropy)
        steps.append(Step(level, starts[closed], values, again.noise_sd))
        nodes = nodes[~closed]
    return steps


def _parts(nodes: Integers, levels: int) -> Integers:
    """Return the nodes so many levels below."""
    return np.asarray(((nodes[:, None] << levels) + np.arange(1 << levels)).ravel())


def _costing(plan: CountPlan, levels: int) -> CountPlan:
    """Return the noise of one count that costs as much as those of so many levels."""
    if law_of(plan) == "gaussian":
        scale = max(plan.scale / math.sqrt(levels), SMALLEST_SCALE)
        return replace(plan, scale=scale, noise_sd=scale / plan.units_per_row)
    scale = max(plan.scale / levels, LEAST_SCALE)
    noise_sd = math.sqrt(discrete_laplace_variance(scale)) / plan.units_per_row
    return replace(plan, scale=scale, noise_sd=noise_sd)
