"""Releases of margins: of all pairs, then of the pairs that a graph joins, in cells of numbers.

Theorem
    Each round is ``1/(2 m²)``-zCDP, m its multiplier, and has the exact trade-off of the Gaussian
    mechanism with it; all are fixed by the plan, so the release has the sum of them. *Proof.*
    Where numbers have fine cells, the first round releases the counts of these, in fewer cells if a
    number of rows that is released before it, or is public, says so. How they are merged into
    coarse cells is a function of what it released. Given the coarse cells, the next round is
    :mod:`dpmodels.mechanisms.margins.residual` for all pairs, whose tables are sums of those of
    fine cells; the graph is a function of what it released; and given the graph, the last round is
    the same mechanism for the pairs of the graph. Both have noise that is calibrated to the planned
    multipliers for whatever cells and margins are chosen: adaptive composition of Gaussian
    releases, whose cost does not depend on outcomes. With declared margins nothing is chosen.
Sensitivity
    Of the number of rows 1; it is public where a row is replaced. Of counts of q numbers √q, or
    √(2q) where a row is replaced: a row is in one fine cell of each.
    Of the other rounds that of its set of margins, :func:`dpmodels.mechanisms.protocol.\
squared_sensitivity`, computed once the cells and the graph are public.
Noise
    Independent discrete Gaussians in all counts of fine cells, and in all components of the other
    rounds. These can be drawn for any cells and graph: their standard deviations are below 2¹⁷
    times those for all pairs of fine cells, which the plan limits. Pairs have the same weight
    ``w_A = 1/σ_A²`` in both rounds up to a common factor; with at most 2·10⁶ cells, weights of one
    variable or none differ by less than 2³⁰.
Numerics
    exact: integer statistic, integer noise of exact law. Cells and the graph are computed from
    released floats.
Source
    This package; McKenna, Miklau and Sheldon (2021), "Winning the NIST Contest", Journal of Privacy
    and Confidentiality, for a graph chosen from released margins.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from dpmodels.arguments import integer
from dpmodels.design.cells import PrivateMargins
from dpmodels.errors import ArgumentError
from dpmodels.mechanisms.component_noise import (
    LARGEST_SCALE,
    component_plan,
    noisy_components,
)
from dpmodels.mechanisms.count_noise import gaussian_plan, noised_units
from dpmodels.mechanisms.protocol import (
    CountFacts,
    CountPlan,
    MarginFacts,
    MarginPlan,
    release_terms,
)
from dpmodels.noise import Entropy
from dpmodels.postprocess.graphical.measurements import residuals_from
from dpmodels.postprocess.graphical.structure import choose_structure
from dpmodels.postprocess.residuals import Term, cells, split, summed
from dpmodels.privacy import Event, GaussianEvent, Guarantee, gaussian_multiplier
from dpmodels.privacy.compose import divide
from dpmodels.released import GraphRelease, MechanismInfo
from dpmodels.statistics import Statistic
from dpmodels.statistics.counts import margin_counts
from dpmodels.typing import Exact, Floats

# Of the budget, for each round of margins: a choice.
SHARES = (0.5, 0.5)
# Of the budget, for fine cells: times the square root of the numbers, and the most. Choices, by
# simulated tables.
HISTOGRAMS, MOST_HISTOGRAMS = 0.05, 0.2
# Of that, for the number of rows, and the rows a noise sd of a count from which all fine cells are
# counted: choices, by simulated tables.
NUMBER, MANY_ROWS = 0.01, 400.0
# Cells of all margins: a choice.
MOST_CELLS = 2_000_000
# How far the noise of the second round may exceed that of the first.
EXCESS = 2.0**17


@dataclass(frozen=True)
class GraphPlan:
    """A calibrated release: everything but the data."""

    guarantee: Guarantee  # Guarantee of all rounds together
    events: tuple[Event, ...]  # What the ledger is charged, one for each round
    facts: MarginFacts  # What the plan was made for
    first: MarginPlan  # Of the first round of margins, in fine cells where numbers have them
    second: Guarantee | None  # Of the second round of margins; None if there is only one
    histograms: CountPlan | None = None  # Of the counts of fine cells, and before them of all rows


@dataclass(frozen=True)
class Graph:
    """Gaussian mechanism for margins in two rounds: those of `facts`, then those of a graph.

    Where numbers have fine cells, a round before releases their counts and merges them. With
    ``rounds=1`` the margins are those of a graph that is declared, and have one round.

    Examples
    --------
    >>> from dpmodels.mechanisms.protocol import MarginFacts
    >>> from dpmodels.privacy import ZCDP, adjacency
    >>> facts = MarginFacts((3, 4, 3), ((0, 1), (0, 2), (1, 2)), adjacency("add-remove"))
    >>> plan = Graph().plan(facts, ZCDP(0.5))
    >>> [round(event.multiplier, 3) for event in plan.events], len(plan.first.measured)
    ([1.414, 1.414], 7)
    """

    rounds: int = 2

    info: ClassVar[MechanismInfo] = MechanismInfo(
        name="graph",
        theorem="(eps, delta)-DP or rho-zCDP, Gaussian releases composed",
        sensitivity="of each round L2 of all its residual components together",
        noise="discrete Gaussian, one scale a component and round",
        numerics="exact lattice",
        source="this package; McKenna, Miklau and Sheldon (2021)",
    )

    def __post_init__(self) -> None:
        integer("rounds", self.rounds, 1, 2)

    def plan(self, facts: MarginFacts, guarantee: Guarantee) -> GraphPlan:
        """Divide the budget and calibrate the rounds that nothing is chosen for.

        ArgumentError if the margins have more than 2,000,000 cells; BudgetError for a pure
        guarantee, which Gaussian noise does not give, or if the noise is beyond what is meaningful.
        """
        n_cells = sum(cells(term, facts.sizes) for term in facts.terms)
        if n_cells > MOST_CELLS:
            raise ArgumentError(
                f"the margins have {n_cells:,} cells in all; at most {MOST_CELLS:,} are released. "
                "Use fewer variables or levels, or declare which pairs to release"
            )
        histograms, parts = _divided(guarantee, len(facts.numbers), self.rounds)
        counts = None if histograms is None else _histogram_plan(facts, histograms)
        is_alone = counts is None and self.rounds == 1
        first = component_plan(facts, parts[0], LARGEST_SCALE / (1.0 if is_alone else EXCESS))
        events = [*([] if counts is None else counts.events), *first.events]
        events += [GaussianEvent(gaussian_multiplier(part)) for part in parts[1:]]
        second = parts[1] if self.rounds == 2 else None
        return GraphPlan(guarantee, tuple(events), facts, first, second, counts)

    def measure(self, private: PrivateMargins, plan: GraphPlan) -> Statistic:
        """Count the rows in the cells of the largest margins."""
        return margin_counts(private, count_public=plan.facts.adjacency.n_public)

    def release(self, statistic: Statistic, plan: GraphPlan, entropy: Entropy) -> GraphRelease:
        """Release counts of fine cells, all margins in the cells chosen, then those of a graph."""
        exact, n_rows = statistic.cross()
        facts, first, counts, ends = plan.facts, plan.first, None, None
        if plan.histograms is not None:
            if _has_few_rows(plan.histograms, exact, facts, n_rows, entropy):
                exact, facts = of_few_rows(exact, facts)
            counts = noised_units(plan.histograms, _histograms(exact, facts), entropy)[0]
            ends = chosen_cells(counts, plan.histograms.noise_sd, facts)
            exact, facts = merged(exact, facts, ends)
            first = component_plan(facts, first.guarantee)
        plans = [first]
        values = [noisy_components(exact, n_rows, facts, first, entropy)]
        if plan.second is not None:
            chosen = replace(facts, terms=chosen_margins(values[0], first))
            plans.append(component_plan(chosen, plan.second))
            values.append(noisy_components(exact, n_rows, facts, plans[1], entropy))
        return GraphRelease(
            values=np.concatenate(values),
            margins=tuple(part.facts.terms for part in plans),
            noise_sds=tuple(sd for part in plans for sd in part.noise_sds),
            histograms=counts,
            histogram_sd=None if plan.histograms is None else plan.histograms.noise_sd,
            cells=ends,
            **release_terms(self.info, plan, n_rows),
        )


def _divided(
    guarantee: Guarantee, n_numbers: int, n_rounds: int
) -> tuple[Guarantee | None, tuple[Guarantee, ...]]:
    """Return the guarantee of the counts of fine cells, None without numbers, then of each round.

    A single one is the guarantee itself.
    """
    if not n_numbers and n_rounds == 1:
        return None, (guarantee,)
    bought = min(HISTOGRAMS * math.sqrt(n_numbers), MOST_HISTOGRAMS)
    shares = [(1 - bought) * part for part in (SHARES if n_rounds == 2 else (1.0,))]
    if not n_numbers:
        return None, divide(guarantee, shares, (True,) * n_rounds)
    first, *others = divide(guarantee, [bought, *shares], (True,) * (n_rounds + 1))
    return first, tuple(others)


def _histogram_plan(facts: MarginFacts, guarantee: Guarantee) -> CountPlan:
    """Return the plan of the counts of fine cells; its first round is the number of rows.

    There is none where the number is public, or would change nothing.
    """
    n_counts = sum(facts.sizes[number.variable] for number in facts.numbers)
    counted = CountFacts(len(facts.numbers), n_counts, False, facts.adjacency)
    if facts.adjacency.n_public or all(n.of_few_rows.edges == n.edges for n in facts.numbers):
        return gaussian_plan(counted, guarantee)
    of_number, of_cells = divide(guarantee, (NUMBER, 1 - NUMBER), (True, True))
    first = gaussian_plan(CountFacts(1, 1, False, facts.adjacency), of_number)
    counts = gaussian_plan(counted, of_cells)
    return replace(counts, events=first.events + counts.events, first=first)


def _has_few_rows(
    plan: CountPlan, exact: Exact, facts: MarginFacts, n_rows: int, entropy: Entropy
) -> bool:
    """Whether the rows, a released or a public number of them, are few for the noise of counts."""
    limit = MANY_ROWS * plan.noise_sd
    if plan.first is None:
        return facts.adjacency.n_public and n_rows < limit
    total = split(exact, facts.largest, facts.sizes)[facts.largest[0]].sum()
    return bool(noised_units(plan.first, np.array([total]), entropy)[0][0] < limit)


def of_few_rows(exact: Exact, facts: MarginFacts) -> tuple[Exact, MarginFacts]:
    """Return the counts of margins in the fine cells of few rows, and their facts."""
    every = (number.sparse or tuple(range(len(number.edges))) for number in facts.numbers)
    exact, sparse = merged(exact, facts, tuple(every))
    return exact, replace(sparse, numbers=tuple(number.of_few_rows for number in facts.numbers))


def _histograms(exact: Exact, facts: MarginFacts) -> Exact:
    """Return the counts of the fine cells of all numbers, the missing values of each last."""
    tables: dict[Term, Exact] = split(exact, facts.largest, facts.sizes)
    counts = []
    for i in (number.variable for number in facts.numbers):
        term = next(term for term in facts.largest if i in term)
        counts.append(summed(tables[term], term, (i,)))
    return np.concatenate(counts)


def chosen_cells(counts: Floats, sd: float, facts: MarginFacts) -> tuple[tuple[int, ...], ...]:
    """Return the edges of the coarse cells of each number, chosen from noisy counts."""
    ends = np.cumsum([facts.sizes[number.variable] for number in facts.numbers])
    by_number = zip(facts.numbers, np.split(counts, ends[:-1]), strict=True)
    return tuple(number.chosen(of_number[:-1], sd) for number, of_number in by_number)


def merged(
    exact: Exact, facts: MarginFacts, cells_of: tuple[tuple[int, ...], ...]
) -> tuple[Exact, MarginFacts]:
    """Return the counts of margins in coarse cells, and their facts."""
    ends = {number.variable: of for number, of in zip(facts.numbers, cells_of, strict=True)}
    tables: dict[Term, Exact] = split(exact, facts.largest, facts.sizes)
    coarse = []
    for term, counts in tables.items():
        for axis, i in enumerate(term):
            if i in ends:
                # The last edge is where missing values start.
                counts = np.add.reduceat(counts, ends[i], axis=axis)
        coarse.append(counts.ravel())
    sizes = tuple(len(ends[i]) if i in ends else size for i, size in enumerate(facts.sizes))
    return np.concatenate(coarse), replace(facts, sizes=sizes, numbers=())


def chosen_margins(values: Floats, plan: MarginPlan) -> tuple[Term, ...]:
    """Return the edges of the graph chosen from a first round, and variables without an edge."""
    sds = dict(zip(plan.measured, plan.noise_sds, strict=True))
    public_rows = plan.facts.adjacency.n_public
    tree = choose_structure(residuals_from(values, plan.facts.sizes, sds, public_rows=public_rows))
    joined = {i for pair in tree.edges for i in pair}
    return (*((i,) for i in range(len(tree.sizes)) if i not in joined), *tree.edges)
