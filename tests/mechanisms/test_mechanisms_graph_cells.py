"""Cells of numbers that are bought: cost for every pair of rows, merged tables, noise, events."""

import math
from dataclasses import replace
from itertools import combinations, pairwise, product

import numpy as np
import pytest
from scipy.special import chdtrc

import dpmodels as dp
from dpmodels.mechanisms.count_noise import component_plan
from dpmodels.mechanisms.margins import EXCESS, MANY_ROWS, Graph, chosen_cells, merged, of_few_rows
from dpmodels.mechanisms.protocol import MarginFacts
from dpmodels.noise import source
from dpmodels.postprocess.graphical.histograms import FineCells
from dpmodels.postprocess.graphical.measurements import centred_table, rounds_of
from dpmodels.postprocess.residuals import cells, summed
from dpmodels.privacy import ZCDP, ApproxDP, adjacency
from dpmodels.statistics import Statistic

SIZES = (3, 9, 7)
EVERY = (0, 1, 2)
PAIRS = tuple(combinations(EVERY, 2))
NUMBERS = (
    FineCells(1, tuple(map(float, range(9))), 3),
    FineCells(2, tuple(map(float, range(7))), 3, (0, 2, 6)),
)
RELATIONS = [adjacency("add-remove"), adjacency("replace")]


def facts_of(relation):
    return MarginFacts(SIZES, PAIRS, relation, NUMBERS)


def fine_table(seed=0):
    return np.random.default_rng(seed).poisson(30.0, SIZES)


def counted(table):
    exact = np.concatenate([summed(table, EVERY, term).ravel() for term in PAIRS])
    return Statistic("margins", exact.astype(np.int64).astype(object), int(table.sum()))


def released(table, relation, guarantee, seed=1, rounds=2):
    plan = Graph(rounds=rounds).plan(facts_of(relation), guarantee)
    with dp.simulation(seed=seed):
        return Graph(rounds=rounds).release(counted(table), plan, source())


def coarse_table(table, ends):
    """The table of all variables in coarse cells, summed cell by cell."""
    for axis, of in zip((1, 2), ends, strict=True):
        starts = [*of, table.shape[axis]]
        slices = [np.take(table, range(*pair), axis).sum(axis) for pair in pairwise(starts)]
        table = np.stack(slices, axis)
    return table


@pytest.mark.expensive
@pytest.mark.parametrize("relation", RELATIONS, ids=lambda relation: relation.name)
def test_no_neighbours_cost_more_than_the_events_whatever_cells_are_chosen(relation):
    """All pairs of rows, fine counts and all pairs of columns in cells that noise may choose."""
    plan = Graph().plan(facts_of(relation), ZCDP(0.1))
    rows = list(product(*map(range, SIZES)))
    replacements = rows if relation.n_public else [None]

    def unit(row, sizes):
        table = np.zeros(sizes)
        if row is not None:
            table[row] = 1.0
        return table

    for inner in combinations(range(1, 8), 2):
        ends = ((0, *inner, 8), (0, 2, 6))
        first = component_plan(
            merged(counted(fine_table()).cross()[0], plan.facts, ends)[1], plan.first.guarantee
        )
        assert first.events == plan.first.events
        costs = [0.0]
        for replacement in replacements[:: 1 + len(replacements) // 40]:
            change = coarse_table(unit(rows[0], SIZES) - unit(replacement, SIZES), ends)
            parts = zip(first.measured, first.noise_sds, strict=True)
            squares = (
                float((centred_table(summed(change, EVERY, part)) ** 2).sum()) / sd**2
                for part, sd in parts
            )
            costs.append(math.fsum(squares))
        assert max(costs) <= first.events[0].multiplier ** -2
    sd = plan.histograms.noise_sd
    of_counts = [
        sum(
            float((summed(unit(rows[0], SIZES) - unit(replacement, SIZES), EVERY, (i,)) ** 2).sum())
            for i in (1, 2)
        )
        / sd**2
        for replacement in replacements
    ]
    assert max(of_counts) <= plan.events[0].multiplier ** -2
    assert max(of_counts) == pytest.approx(plan.events[0].multiplier ** -2, rel=1e-3)


@pytest.mark.expensive
@pytest.mark.parametrize("rounds", [1, 2])
@pytest.mark.parametrize("guarantee", [ZCDP(0.1), ApproxDP(1.0, 1e-6)], ids=["rho", "delta"])
def test_events_are_fixed_before_rows_and_cost_the_budget(guarantee, rounds):
    plan = Graph(rounds=rounds).plan(facts_of(RELATIONS[1]), guarantee)
    tables = (fine_table(), fine_table(1) * (np.arange(9) < 2)[:, None])
    releases = [released(table, RELATIONS[1], guarantee, rounds=rounds) for table in tables]
    assert len({release.cells for release in releases}) == 2
    assert {release.events for release in releases} == {plan.events}
    assert len(plan.events) == rounds + 1
    without = Graph(rounds=1).plan(replace(facts_of(RELATIONS[1]), numbers=()), guarantee)
    together = math.fsum(event.multiplier**-2 for event in plan.events)
    assert together == pytest.approx(without.events[0].multiplier ** -2, rel=1e-6)
    assert together <= without.events[0].multiplier ** -2 * (1 + 1e-9)


@pytest.mark.parametrize("relation", RELATIONS, ids=lambda relation: relation.name)
def test_cells_are_a_function_of_the_counts_released(relation):
    release = released(fine_table(), relation, ZCDP(0.1))
    facts = facts_of(relation)
    assert chosen_cells(release.histograms, release.histogram_sd, facts) == release.cells
    assert release.cells[1] == (0, 2, 6)


@pytest.mark.parametrize("relation", RELATIONS, ids=lambda relation: relation.name)
def test_a_huge_budget_gives_the_exact_tables_of_the_coarse_cells(relation):
    table = fine_table()
    release = released(table, relation, ZCDP(1e8))
    exact = [summed(table, EVERY, (i,)) for i in (1, 2)]
    np.testing.assert_allclose(release.histograms, np.concatenate(exact), atol=0.02)
    coarse = coarse_table(table, release.cells)
    for part in rounds_of(release, coarse.shape):
        for term, values in part.tables.items():
            expected = centred_table(summed(coarse, EVERY, term).astype(float))
            np.testing.assert_allclose(values, expected, atol=0.02)


@pytest.mark.expensive
def test_all_rounds_have_the_stated_noise():
    """Sums of squares of 30 releases are chi-square: two-sided, a false alarm of 1e-7 a round."""
    table, squares, freedom = fine_table(), [0.0, 0.0], [0, 0]
    exact = np.concatenate([summed(table, EVERY, (i,)) for i in (1, 2)])
    for seed in range(30):
        release = released(table, RELATIONS[0], ZCDP(0.1), seed)
        noise = (release.histograms - exact) / release.histogram_sd
        squares[0], freedom[0] = squares[0] + float(noise @ noise), freedom[0] + len(noise)
        coarse = coarse_table(table, release.cells)
        for part in rounds_of(release, coarse.shape):
            for term, sd in part.sds.items():
                expected = centred_table(summed(coarse, EVERY, term).astype(float))
                squares[1] += float(((part.tables[term] - expected) ** 2).sum()) / sd**2
                freedom[1] += math.prod(coarse.shape[i] - 1 for i in term)
    for square, df in zip(squares, freedom, strict=True):
        assert 5e-8 < chdtrc(df, square) < 1 - 5e-8


SPARSE = (replace(NUMBERS[0], sparse=(0, 1, 4, 6, 8)), replace(NUMBERS[1], sparse=(0, 2, 5, 6)))


def sparse_facts(relation):
    return replace(facts_of(relation), numbers=SPARSE)


def test_tables_of_few_rows_are_sums_of_those_of_many():
    table = fine_table()
    exact, facts = of_few_rows(counted(table).cross()[0], sparse_facts(RELATIONS[0]))
    ends = tuple(number.sparse for number in SPARSE)
    coarse = coarse_table(table, ends)
    assert facts.sizes == coarse.shape
    np.testing.assert_array_equal(exact.astype(int), counted(coarse).cross()[0].astype(int))
    assert [number.edges for number in facts.numbers] == [(0, 1, 4, 6, 8), (0, 2, 5, 6)]
    assert facts.numbers[1].ends == (0, 1, 3)


@pytest.mark.expensive
@pytest.mark.parametrize("relation", RELATIONS, ids=lambda relation: relation.name)
def test_few_rows_for_the_noise_are_counted_in_fewer_cells_at_the_same_cost(relation):
    """The table has 5,670 rows; the noise is a tenth or ten times what the limit is at."""
    table = fine_table()
    limit = table.sum() / MANY_ROWS
    of_one = Graph().plan(sparse_facts(relation), ZCDP(1.0)).histograms.noise_sd
    for factor, n_counts in ((0.1, 16), (10.0, 9)):
        rho = (of_one / (factor * limit)) ** 2
        plan = Graph().plan(sparse_facts(relation), ZCDP(rho))
        with dp.simulation(seed=1):
            release = Graph().release(counted(table), plan, source())
        assert release.histograms.shape == (n_counts,)
        assert release.events == plan.events
        assert len(plan.events) == (3 if relation.n_public else 4)
        assert math.fsum(event.multiplier**-2 / 2 for event in plan.events) <= rho * (1 + 1e-9)


@pytest.mark.parametrize("relation", RELATIONS, ids=lambda relation: relation.name)
def test_the_later_rounds_can_be_drawn_for_all_cells(relation):
    fine = (289, 289, 12, 3)
    pairs = tuple(combinations(range(4), 2))
    plan = Graph().plan(MarginFacts(fine, pairs, relation), ZCDP(0.1))

    def widest(noise_plan, sizes):
        parts = zip(noise_plan.measured, noise_plan.noise_sds, strict=True)
        return max(sd * cells(part, sizes) for part, sd in parts)

    for first, second in product((3, 11, 289), repeat=2):
        sizes = (first, second, *fine[2:])
        for terms in (pairs, ((0,), (1,), (2, 3)), ((0, 1), (2,), (3,))):
            coarse = component_plan(MarginFacts(sizes, terms, relation), plan.first.guarantee)
            assert widest(coarse, sizes) < EXCESS / 16 * widest(plan.first, fine)
