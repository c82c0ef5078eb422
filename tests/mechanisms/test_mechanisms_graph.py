"""Two rounds of margins: cost for every pair of rows and every graph, events, noise, exactness."""

import math
from dataclasses import replace
from itertools import combinations, product

import numpy as np
import pytest
from scipy.special import chdtrc

import dpmodels as dp
from dpmodels.errors import ArgumentError, BudgetError
from dpmodels.mechanisms.count_noise import component_plan
from dpmodels.mechanisms.margins import EXCESS, Graph, Residual, chosen_margins, plan_of_graph
from dpmodels.mechanisms.protocol import MarginFacts
from dpmodels.noise import source
from dpmodels.postprocess.graphical.histograms import FineCells
from dpmodels.postprocess.graphical.measurements import centred_table, rounds_of
from dpmodels.postprocess.residuals import cells, largest, summed, unlike
from dpmodels.privacy import ZCDP, ApproxDP, PureDP, adjacency
from dpmodels.statistics import Statistic

SIZES = (3, 2, 4, 2)
EVERY = tuple(range(len(SIZES)))
PAIRS = tuple(combinations(EVERY, 2))
RELATIONS = [adjacency("add-remove"), adjacency("replace")]
GUARANTEES = [ZCDP(0.1), ApproxDP(1.0, 1e-6)]


def facts_of(relation):
    return MarginFacts(SIZES, PAIRS, relation)


def counted(table, terms=PAIRS):
    """The exact statistic of a table of all variables."""
    exact = np.concatenate([summed(table, EVERY, term).ravel() for term in largest(terms)])
    return Statistic("margins", exact.astype(np.int64).astype(object), int(table.sum()))


def dependent_table(seed=0):
    """Counts in which the first variable goes with the second, and nothing else."""
    table = np.random.default_rng(seed).poisson(20.0, SIZES)
    table[0, 0] += 60
    return table


BUDGET = ZCDP(0.1)


def released(table, relation, guarantee=BUDGET, seed=1, rounds=2):
    mechanism = Graph(rounds=rounds)
    plan = mechanism.plan(facts_of(relation), guarantee)
    with dp.simulation(seed=seed):
        return mechanism.release(counted(table), plan, source())


def component_of(row, part):
    """What a row adds to a component."""
    table = np.zeros([SIZES[i] for i in part])
    table[tuple(row[i] for i in part)] = 1.0
    return centred_table(table)


@pytest.mark.expensive
@pytest.mark.parametrize("relation", RELATIONS, ids=lambda relation: relation.name)
@pytest.mark.parametrize("guarantee", GUARANTEES, ids=["rho", "delta"])
def test_no_neighbours_cost_more_than_the_event_whatever_graph_is_chosen(relation, guarantee):
    """All sets of edges of three variables and some of four; every pair of rows."""
    plan = Graph().plan(facts_of(relation), guarantee)
    graphs = [set_ for size in (1, 2, 3, 6) for set_ in combinations(PAIRS, size)]
    for edges in graphs[:: 1 + len(graphs) // 6]:
        isolated = tuple((i,) for i in EVERY if not any(i in edge for edge in edges))
        second = plan_of_graph(replace(plan.facts, terms=(*isolated, *edges)), plan.second)
        assert second.events == plan.events[1:]
        first = (0,) * len(SIZES)
        replacements = product(*map(range, SIZES)) if relation.n_public else [None]
        costs = []
        for replacement in replacements:
            total = 0.0
            for part, sd in zip(second.measured, second.noise_sds, strict=True):
                component = component_of(first, part)
                if replacement is not None:
                    component = component - component_of(replacement, part)
                total += float((component**2).sum()) / sd**2
            costs.append(total)
        assert max(costs) <= plan.events[1].multiplier ** -2
        assert max(costs) == pytest.approx(plan.events[1].multiplier ** -2, rel=1e-6)


@pytest.mark.parametrize("guarantee", GUARANTEES, ids=["rho", "delta"])
def test_events_are_fixed_before_rows_and_cost_the_budget(guarantee):
    plan = Graph().plan(facts_of(RELATIONS[1]), guarantee)
    releases = [
        released(table, RELATIONS[1], guarantee)
        for table in (dependent_table(), 0 * dependent_table() + 1)
    ]
    assert len({release.margins[1] for release in releases}) == 2
    assert {release.events for release in releases} == {plan.events}
    assert len(plan.events) == 2
    total = Graph(rounds=1).plan(facts_of(RELATIONS[1]), guarantee).events[0]
    together = math.fsum(event.multiplier**-2 for event in plan.events)
    assert together == pytest.approx(total.multiplier**-2, rel=1e-6)
    assert together <= total.multiplier**-2 * (1 + 1e-9)


@pytest.mark.parametrize("relation", RELATIONS, ids=lambda relation: relation.name)
def test_the_graph_is_a_function_of_the_first_release(relation):
    release = released(dependent_table(), relation)
    plan = Graph().plan(facts_of(relation), ZCDP(0.1)).first
    length = sum(cells(part, SIZES) for part in plan.measured) + relation.n_public
    assert chosen_margins(release.values[:length], plan) == release.margins[1]
    assert (0, 1) in release.margins[1]


@pytest.mark.parametrize("relation", RELATIONS, ids=lambda relation: relation.name)
def test_a_huge_budget_gives_the_exact_components_in_both_rounds(relation):
    table = dependent_table()
    release = released(table, relation, ZCDP(1e8))
    for part in rounds_of(release, SIZES):
        for term, values in part.tables.items():
            exact = centred_table(summed(table, EVERY, term).astype(float))
            np.testing.assert_allclose(values, exact, atol=0.02)
        assert part.n_rows == pytest.approx(table.sum(), abs=0.02)


@pytest.mark.parametrize("relation", RELATIONS, ids=lambda relation: relation.name)
def test_both_rounds_have_the_stated_noise(relation):
    """Sums of squares of 8 releases are chi-square: two-sided, a false alarm of 1e-7 a round."""
    table = dependent_table()
    squares, freedom = [0.0, 0.0], [0.0, 0.0]
    for seed in range(8):
        for k, part in enumerate(rounds_of(released(table, relation, seed=seed), SIZES)):
            for term, sd in part.sds.items():
                if sd:
                    exact = centred_table(summed(table, EVERY, term).astype(float))
                    squares[k] += float(((part.tables[term] - exact) ** 2).sum()) / sd**2
                    freedom[k] += cells(term, SIZES) * unlike(term, SIZES)
    for square, df in zip(squares, freedom, strict=True):
        assert 5e-8 < chdtrc(df, square) < 1 - 5e-8


def test_one_round_is_the_release_of_residual_bit_by_bit():
    facts = facts_of(RELATIONS[0])
    with dp.simulation(seed=1):
        plan = Residual().plan(facts, ZCDP(0.1))
        expected = Residual().release(counted(dependent_table()), plan, source())
    release = released(dependent_table(), RELATIONS[0], rounds=1)
    assert release.margins == (PAIRS,)
    np.testing.assert_array_equal(release.values, expected.values)


@pytest.mark.parametrize("relation", RELATIONS, ids=lambda relation: relation.name)
@pytest.mark.parametrize("sizes", [(2, 2, 1_000), (2, 2, 2), (9, 3, 40, 2), (700, 800)], ids=str)
def test_the_second_round_can_be_drawn_for_every_graph(sizes, relation):
    """Its noise is far below the limit that the first round keeps."""
    pairs = tuple(combinations(range(len(sizes)), 2))
    plan = Graph().plan(MarginFacts(sizes, pairs, relation), ZCDP(0.1))

    def widest(noise_plan):
        parts = zip(noise_plan.measured, noise_plan.noise_sds, strict=True)
        return max(sd * cells(part, sizes) for part, sd in parts)

    for size in range(len(pairs) + 1):
        for edges in combinations(pairs, size):
            isolated = tuple(
                (i,) for i in range(len(sizes)) if i not in {j for e in edges for j in e}
            )
            chosen = replace(plan.facts, terms=(*isolated, *edges))
            second = plan_of_graph(chosen, plan.second)
            assert widest(second) < EXCESS / 16 * widest(plan.first)


@pytest.mark.parametrize("relation", RELATIONS, ids=lambda relation: relation.name)
def test_the_round_of_a_graph_has_closer_single_variables_than_all_cells_alike(relation):
    """At the same cost; of numbers not, and the noise in pairs is at most a quarter larger."""
    facts = MarginFacts((8,) * 6, tuple(combinations(range(6), 2))[:9], relation)
    alike = component_plan(facts, ZCDP(0.1))
    second = plan_of_graph(facts, ZCDP(0.1), (FineCells(0, (0.0, 1.0), 1),))
    assert alike.events == second.events
    ratios = np.array(second.noise_sds) / np.array(alike.noise_sds)
    for part, ratio in zip(alike.measured, ratios, strict=True):
        assert 1 < ratio < 1.25 if part == (0,) or len(part) == 2 else ratio < 0.75


@pytest.mark.parametrize("relation", RELATIONS, ids=lambda relation: relation.name)
def test_variables_without_edges_are_alike(relation):
    facts = MarginFacts(SIZES, tuple((i,) for i in EVERY), relation)
    second = plan_of_graph(facts, ZCDP(0.1), (FineCells(0, (0.0, 1.0), 1),))
    assert second.noise_sds == pytest.approx(component_plan(facts, ZCDP(0.1)).noise_sds)


def test_budgets_that_it_does_not_give_are_refused():
    facts = facts_of(RELATIONS[0])
    with pytest.raises(BudgetError, match="write"):
        Graph().plan(facts, PureDP(1.0))
    with pytest.raises(BudgetError, match="larger"):
        Graph().plan(facts, ZCDP(1e-24))
    with pytest.raises(ArgumentError, match="2,000,000"):
        Graph().plan(MarginFacts((1_500, 1_500), ((0, 1),), RELATIONS[0]), ZCDP(1.0))
    with pytest.raises(ArgumentError, match="rounds"):
        Graph(rounds=3)
