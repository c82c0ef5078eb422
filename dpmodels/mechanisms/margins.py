"""Mechanisms that release margins of one table, which agree, from one budget."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from dpmodels import privacy
from dpmodels.arguments import integer
from dpmodels.design.cells import PrivateMargins
from dpmodels.errors import ArgumentError
from dpmodels.mechanisms import count_noise, protocol
from dpmodels.mechanisms.add_noise import ROUND_UP, laplace_multipliers
from dpmodels.mechanisms.choose import at_equal_price, price_reason, rows_of_one, two_digits
from dpmodels.mechanisms.protocol import (
    CountFacts,
    CountPlan,
    MarginFacts,
    MarginMechanism,
    MarginPlan,
    release_terms,
)
from dpmodels.noise import Entropy, discrete_laplace, discrete_laplace_variance
from dpmodels.postprocess import residuals
from dpmodels.postprocess.graphical.histograms import FineCells
from dpmodels.postprocess.graphical.measurements import residuals_from
from dpmodels.postprocess.graphical.selection import choose_structure
from dpmodels.postprocess.residuals import cells
from dpmodels.privacy import Guarantee, PureDP
from dpmodels.privacy.compose import divide
from dpmodels.released import GraphRelease, MarginsRelease, MechanismInfo
from dpmodels.statistics import Statistic
from dpmodels.statistics.counts import margin_counts
from dpmodels.typing import Exact, Floats


class _Margins:
    def measure(self, private: PrivateMargins, plan: protocol.Calibrated) -> Statistic:
        """Count the rows of each cell of the largest margins."""
        return margin_counts(private)


@dataclass(frozen=True)
class Residual(_Margins):
    """Gaussian mechanism for the residual components of margins.

    Discrete Gaussian noise on the residual components of margins.

    Theorem
        The release is ρ-zCDP with ``ρ = Δ²/2``, and (ε, δ)-differentially private with the exact
        trade-off of the Gaussian mechanism at multiplier 1/Δ, for either adjacency. *Proof.* Let a
        row be K_A units, K_A a multiple of ``Π_{i∈A} n_i``. Of the counts m_A by the variables of
        A, all of whose cells get independent integer noise z_A, only ``⊗(n_i I − J)(K_A m_A +
        z_A)`` is released. As ``(n I − J) 1 = 0``, it is the same function of ``V_A + z_A``, where
        V_A is the sum over the rows of ``K_A ⊗(e − 1/n_i)``, e the indicator of a row's level:
        integers, to which discrete Gaussian noise is added. What is released is made of these by
        post-processing, and their noise is independent from A to A.
    Sensitivity
        Δ² is the sum over A of the squared distance that one row moves V_A/K_A by, in units of the
        noise's variance: :func:`dpmodels.mechanisms.protocol.squared_sensitivity`. Where a row is
        added or removed it is ``Σ p_A/σ_A²``, ``p_A = Π (1 − 1/n_i)``, for all rows alike. Where it
        is replaced, the number of rows is public and has no part in it; of up to 14 variables it is
        the largest over all sets of variables in which the two rows may differ, of more an upper
        bound.
    Noise
        Independent discrete Gaussians, σ_A rows a cell of A, at least 2²⁰ units: see
        :mod:`dpmodels.mechanisms.counts.geometric`. Of all σ_A at the same cost ``Σ p_A/σ_A²``
        those for which the variances of all cells of all margins asked for have the least sum.
    Numerics
        exact: integer statistic, integer noise of exact law, integer differences, then a division.
    Source
        Xiao, He, Zhang, Kifer (2023), "An Optimal and Scalable Matrix Mechanism for Noisy Marginals
        under Convex Loss Functions", NeurIPS. Canonne, Kamath, Steinke (2020), "The discrete
        Gaussian for differential privacy", NeurIPS, for the noise.

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
        return count_noise.component_plan(facts, guarantee)

    def release(self, statistic: Statistic, plan: MarginPlan, entropy: Entropy) -> MarginsRelease:
        """Release the components of the counts with the planned noise."""
        exact, n_rows = statistic.cross()
        return MarginsRelease(
            values=count_noise.noisy_components(exact, n_rows, plan.facts, plan, entropy),
            law="gaussian",
            noise_sds=plan.noise_sds,
            **release_terms(self.info, plan, n_rows),
        )


@dataclass(frozen=True)
class Marginals(_Margins):
    """Geometric mechanism for margins.

    Discrete Laplace noise on the largest margins, and generalised least squares.

    Theorem
        The release is dominated by Δ independent releases that are each 1/b-differentially private,
        for either adjacency: it is ε-differentially private with ε = Δ/b, and ρ-zCDP with ρ =
        Δ/(2b²). An (ε, δ) guarantee leaves its δ unused. *Proof.* Every margin is a table of its
        own to which :mod:`dpmodels.mechanisms.counts.geometric` applies; what is made of them is
        post-processing.
    Sensitivity
        Δ is the number of margins that are in no other, in L1 norm, times 2 where a row is
        replaced: it leaves one cell of each and enters another. Both are reached.
    Noise
        Independent discrete Laplace noise of scale b on every count of these margins, those of rows
        with a missing level among them. All margins are then made of the components that
        :func:`dpmodels.postprocess.residuals.precisions` weighs: unbiased, in agreement, and of all
        such linear estimates the one with the least variance in every cell; where the number of
        rows is public, it is theirs.
    Numerics
        exact: integer statistic, integer noise of exact law; the estimate is made of released
        integers.
    Source
        Ghosh, Roughgarden, Sundararajan (2009), "Universally utility-maximizing privacy
        mechanisms", STOC, for the noise. Barak, Chaudhuri, Dwork, Kale, McSherry, Talwar (2007),
        "Privacy, accuracy, and consistency too", PODS, for margins that agree.

    Examples
    --------
    >>> from dpmodels.mechanisms.protocol import MarginFacts
    >>> from dpmodels.privacy import PureDP, adjacency
    >>> facts = MarginFacts((3, 4, 2), ((0,), (0, 1), (1, 2)), adjacency("add-remove"))
    >>> plan = Marginals().plan(facts, PureDP(1.0))
    >>> plan.measured, [round(scale, 6) for scale in plan.scales]
    (((0, 1), (1, 2)), [2.0, 2.0])
    """

    info: ClassVar[MechanismInfo] = MechanismInfo(
        name="marginals",
        theorem="eps-DP, and rho-zCDP as releases of sensitivity 1",
        sensitivity="L1, 2 a margin that is in no other (a row may change its cell) or 1",
        noise="discrete Laplace, one scale",
        numerics="exact lattice",
        source="Ghosh, Roughgarden and Sundararajan (2009)",
    )

    def plan(self, facts: protocol.MarginFacts, guarantee: Guarantee) -> MarginPlan:
        """Calibrate the noise; BudgetError if it is beyond what is meaningful."""
        changed = len(facts.largest) * (2 if facts.adjacency.n_public else 1)
        multiplier = laplace_multipliers(guarantee, (1.0,) * changed)[0]
        protocol.units_of(multiplier)
        scale = max(multiplier * ROUND_UP, protocol.LEAST_SCALE)
        sd = math.sqrt(discrete_laplace_variance(scale))
        events = (privacy.LaplaceEvent(multiplier, count=changed),)
        n_margins = len(facts.largest)
        numbers = (1,) * n_margins, (scale,) * n_margins, (sd,) * n_margins
        return MarginPlan(guarantee, events, facts, facts.largest, *numbers)

    def release(self, statistic: Statistic, plan: MarginPlan, entropy: Entropy) -> MarginsRelease:
        """Add the planned noise to the exact counts, and fit all components to them."""
        exact, n_rows = statistic.cross()
        noisy = exact + discrete_laplace(plan.scales[0], exact.size, entropy).astype(object)
        public_rows = n_rows if plan.facts.adjacency.n_public else None
        return MarginsRelease(
            values=_fitted(noisy.astype(np.float64), plan, public_rows),
            law="laplace",
            noise_sds=plan.noise_sds,
            **protocol.release_terms(self.info, plan, n_rows),
        )


def _fitted(noisy: Floats, plan: MarginPlan, n_rows: int | None) -> Floats:
    sizes = plan.facts.sizes
    sds = dict(zip(plan.measured, plan.noise_sds, strict=True))
    tables = residuals.split(noisy, plan.measured, sizes)
    components = residuals.least_squares(tables, sds, sizes)
    if n_rows is not None:
        components[()] = np.array(float(n_rows))
    return np.concatenate([np.ravel(component) for component in components.values()])


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
# How many times cells of single variables count in the round of a graph: a choice, by simulated
# tables.
WEIGHT_OF_ONE = 8.0
# How far the noise of the second round may exceed that of the first.
EXCESS = 2.0**20


@dataclass(frozen=True)
class GraphPlan(protocol.PlanOf[MarginFacts]):
    """Calibrated rounds, each with one event."""

    first: MarginPlan  # Of the first round of margins, in fine cells where numbers have them
    second: Guarantee | None  # Of the second round of margins; None if there is only one
    histograms: CountPlan | None = None  # Of the counts of fine cells, and before them of all rows


@dataclass(frozen=True)
class Graph(_Margins):
    """Gaussian mechanism for margins in two rounds: those of `facts`, then those of a graph.

    Releases of margins: of all pairs, then of the pairs that a graph joins, in cells of numbers.

    Theorem
        Each round is ``1/(2 m²)``-zCDP, m its multiplier, and has the exact trade-off of the
        Gaussian mechanism with it; all are fixed by the plan, so the release has the sum of them.
        *Proof.* Where numbers have fine cells, the first round releases the counts of these, in
        fewer cells if a number of rows that is released before it, or is public, says so. How they
        are merged into coarse cells is a function of what it released. Given the coarse cells, the
        next round is `Residual` for all pairs, whose tables are
        sums of those of fine cells; the graph, of pairs that a model of the released tables misses,
        is a function of what it released; and given the graph, the last round is the same mechanism
        for the pairs of the graph. Both have noise that is calibrated to the planned multipliers
        for whatever cells and margins are chosen: adaptive composition of Gaussian releases, whose
        cost does not depend on outcomes. With declared margins nothing is chosen.
    Sensitivity
        Of the number of rows 1; it is public where a row is replaced. Of counts of q numbers √q, or
        √(2q) where a row is replaced: a row is in one fine cell of each.
        Of the other rounds that of its set of margins, computed once the cells and the graph are
        public (:func:`dpmodels.mechanisms.protocol.squared_sensitivity`).
    Noise
        Independent discrete Gaussians in all counts of fine cells, and in all components of the
        other rounds. These can be drawn for any cells and graph: their standard deviations are
        below 2²⁰ times those for all pairs of fine cells, which the plan limits. Pairs have the
        same weight ``w_A = 1/σ_A²`` in both rounds up to a common factor; with at most 2·10⁶ cells,
        weights of one variable or none differ by less than 2³⁰. In the second round cells of
        single variables count 8 times, but for numbers with an edge, which have fine counts too.
    Numerics
        exact: integer statistic, integer noise of exact law. Cells and the graph are computed from
        released floats.
    Source
        This package; McKenna, Miklau and Sheldon (2021), "Winning the NIST Contest", Journal of
        Privacy and Confidentiality, for a graph chosen from released margins.

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
        first = count_noise.component_plan(
            facts, parts[0], count_noise.LARGEST_SCALE / (1.0 if is_alone else EXCESS)
        )
        events = [*([] if counts is None else counts.events), *first.events]
        events += [privacy.GaussianEvent(privacy.gaussian_multiplier(part)) for part in parts[1:]]
        second = parts[1] if self.rounds == 2 else None
        return GraphPlan(guarantee, tuple(events), facts, first, second, counts)

    def release(self, statistic: Statistic, plan: GraphPlan, entropy: Entropy) -> GraphRelease:
        """Release counts of fine cells, all margins in the cells chosen, then those of a graph."""
        exact, n_rows = statistic.cross()
        facts, first, counts, ends = plan.facts, plan.first, None, None
        if plan.histograms is not None:
            if _has_few_rows(plan.histograms, exact, facts, n_rows, entropy):
                exact, facts = of_few_rows(exact, facts)
            histograms = _histograms(exact, facts)
            counts, _ = count_noise.noised_units(plan.histograms, histograms, entropy)
            ends = chosen_cells(counts, plan.histograms.noise_sd, facts)
            exact, facts = merged(exact, facts, ends)
            first = count_noise.component_plan(facts, first.guarantee)
        plans = [first]
        values = [count_noise.noisy_components(exact, n_rows, facts, first, entropy)]
        if plan.second is not None:
            chosen = replace(facts, terms=chosen_margins(values[0], first))
            plans.append(plan_of_graph(chosen, plan.second, plan.facts.numbers))
            values.append(count_noise.noisy_components(exact, n_rows, facts, plans[1], entropy))
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
        return count_noise.gaussian_plan(counted, guarantee)
    of_number, of_cells = divide(guarantee, (NUMBER, 1 - NUMBER), (True, True))
    first = count_noise.gaussian_plan(CountFacts(1, 1, False, facts.adjacency), of_number)
    counts = count_noise.gaussian_plan(counted, of_cells)
    return replace(counts, events=first.events + counts.events, first=first)


def _has_few_rows(
    plan: CountPlan, exact: Exact, facts: MarginFacts, n_rows: int, entropy: Entropy
) -> bool:
    """Whether the rows, a released or a public number of them, are few for the noise of counts."""
    limit = MANY_ROWS * plan.noise_sd
    if plan.first is None:
        return facts.adjacency.n_public and n_rows < limit
    total = residuals.split(exact, facts.largest, facts.sizes)[facts.largest[0]].sum()
    return bool(count_noise.noised_units(plan.first, np.array([total]), entropy)[0][0] < limit)


def of_few_rows(exact: Exact, facts: MarginFacts) -> tuple[Exact, MarginFacts]:
    """Return the counts of margins in the fine cells of few rows, and their facts."""
    every = (number.sparse or tuple(range(len(number.edges))) for number in facts.numbers)
    exact, sparse = merged(exact, facts, tuple(every))
    return exact, replace(sparse, numbers=tuple(number.of_few_rows for number in facts.numbers))


def _histograms(exact: Exact, facts: MarginFacts) -> Exact:
    tables: dict[residuals.Term, Exact] = residuals.split(exact, facts.largest, facts.sizes)
    counts = []
    for i in (number.variable for number in facts.numbers):
        term = next(term for term in facts.largest if i in term)
        counts.append(residuals.summed(tables[term], term, (i,)))
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
    tables: dict[residuals.Term, Exact] = residuals.split(exact, facts.largest, facts.sizes)
    coarse = []
    for term, counts in tables.items():
        for axis, i in enumerate(term):
            if i in ends:
                # The last edge is where missing values start.
                counts = np.add.reduceat(counts, ends[i], axis=axis)
        coarse.append(counts.ravel())
    sizes = tuple(len(ends[i]) if i in ends else size for i, size in enumerate(facts.sizes))
    return np.concatenate(coarse), replace(facts, sizes=sizes, numbers=())


def plan_of_graph(
    facts: MarginFacts, guarantee: privacy.Guarantee, numbers: tuple[FineCells, ...] = ()
) -> MarginPlan:
    """Calibrate the noise of the margins of a graph that a first round has shown.

    Beside pairs single variables, which are looked at first, count more. Those with fine cells,
    which have a part of the budget already, do so if they have no edge.
    """
    counted = {(number.variable,) for number in numbers} - {*facts.terms}
    has_pairs = any(len(term) > 1 for term in facts.terms)
    singles: set[residuals.Term] = {(i,) for i in range(len(facts.sizes)) if has_pairs}
    weights = dict.fromkeys(sorted(singles - counted), WEIGHT_OF_ONE)
    return count_noise.component_plan(facts, guarantee, weights=weights)


def chosen_margins(values: Floats, plan: MarginPlan) -> tuple[residuals.Term, ...]:
    """Return the edges of the graph chosen from a first round, and variables without an edge."""
    sds = dict(zip(plan.measured, plan.noise_sds, strict=True))
    public_rows = plan.facts.adjacency.n_public
    tree = choose_structure(residuals_from(values, plan.facts.sizes, sds, public_rows=public_rows))
    joined = {i for pair in tree.edges for i in pair}
    return (*((i,) for i in range(len(tree.sizes)) if i not in joined), *tree.edges)


MARGINS: dict[str, type[MarginMechanism]] = {"residual": Residual, "marginals": Marginals}
GRAPHS: dict[str, type[Graph]] = {"graph": Graph}


def auto_margins(facts: protocol.MarginFacts, guarantee: Guarantee) -> tuple[str, str]:
    """Return the name of a mechanism for margins, and the reason."""
    if isinstance(guarantee, PureDP):
        return "marginals", "it needs no delta."
    unit_rows, sizes = rows_of_one(facts.adjacency), facts.sizes
    spread, plans = {}, {}
    for name, strategy in MARGINS.items():
        plan = plans[name] = strategy().plan(facts, guarantee)
        sds = dict(zip(plan.measured, plan.noise_sds, strict=True))
        variances = {term: sd**2 for term, sd in sds.items()}
        if name == "marginals":
            variances = residuals.fitted_variances(sds, sizes)
        cells = sum(math.prod(sizes[i] for i in term) for term in facts.terms)
        spread[name] = unit_rows * math.sqrt(protocol.all_cells(facts, variances) / cells)
    noises = list(spread.values())
    priced = at_equal_price(noises, list(plans.values()))
    place = priced.index(min(priced))
    best, second = list(spread)[place], list(spread)[1 - place]
    return best, (
        f"{price_reason(noises, place)}its noise in a cell has an sd of "
        f"{two_digits(spread[best])}; that of {second} would have {two_digits(spread[second])}."
    )
