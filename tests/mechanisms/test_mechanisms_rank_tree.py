"""Quantiles from two trees of counts: what the second may depend on, what both cost, how near."""

import math
from itertools import product

import numpy as np
import pytest
from scipy.special import ndtri

import dpmodels as dp
from dpmodels.errors import BudgetError
from dpmodels.mechanisms import quantile_rounds
from dpmodels.mechanisms.quantile_facts import Grid
from dpmodels.mechanisms.quantile_rounds import NOISE_REACH, PIECES, SLACK, even_ends
from dpmodels.mechanisms.scalar import QuantileFacts, RankTree, refined
from dpmodels.noise import seeded, source
from dpmodels.postprocess.hierarchy import Hierarchy, NoisyCells, levels_of, line
from dpmodels.privacy import ZCDP, ApproxDP, PureDP, adjacency, total_eps, total_rho
from dpmodels.statistics import Statistic
from dpmodels.statistics.counts import count_sensitivity

CELLS = 3_000
MANY = tuple((np.arange(1, 100) / 100).tolist())


def facts(probs=(0.25, 0.5), groups=1, cells=CELLS, level=0.95, relation="replace"):
    return QuantileFacts(probs, groups, Grid(cells), level, adjacency(relation))


def released(table, guarantee, entropy=None, **words):
    table = np.atleast_2d(table)
    plan = RankTree().plan(facts(groups=len(table), cells=table.shape[1], **words), guarantee)
    exact = np.append(table.ravel(), 0).astype(object)
    statistic = Statistic("counts", exact, int(table.sum()))
    return plan, RankTree().release(statistic, plan, entropy or seeded(1))


@pytest.mark.parametrize("relation", ["replace", "add-remove"])
@pytest.mark.parametrize(("cells", "fanout"), [(6, 2), (7, 3), (8, 2), (8, 9)])
def test_neighbours_move_nodes_by_what_is_declared_and_reach_it(relation, cells, fanout):
    """Every row that leaves and every one that enters, in trees over up to eight cells."""
    neighbours, nodes = adjacency(relation), line(cells, fanout)
    units = [*np.eye(cells), np.zeros(cells)]
    gone = units if neighbours.n_public else [np.zeros(cells)]
    moves = [np.concatenate(nodes.sums(unit - second)) for unit, second in product(units, gone)]
    for norm in (1, 2):
        furthest = max(np.linalg.norm(move, norm) for move in moves)
        assert furthest == pytest.approx(count_sensitivity(neighbours, len(nodes.sizes), norm))


def test_the_second_tree_has_two_levels_however_many_cells_were_cut():
    for cells in range(2, 3_000):
        assert levels_of(cells, refined.fanout_of_two(cells)) <= 2


@pytest.mark.parametrize("relation", ["replace", "add-remove"])
@pytest.mark.parametrize("cells", [2, 60, 1_024, 3_000, 65_536])
@pytest.mark.parametrize(
    "guarantee", [PureDP(0.7), PureDP(1e9), ZCDP(0.2), ApproxDP(1.0, 1e-6)], ids=str
)
def test_both_rounds_cost_what_is_granted(guarantee, cells, relation):
    plan = RankTree().plan(facts(cells=cells, relation=relation), guarantee)
    pure = not isinstance(guarantee, ZCDP)
    spent = total_eps(plan.events, 0.0) if pure else total_rho(plan.events)
    granted = guarantee.eps if pure else guarantee.rho
    assert granted * (1 - 1e-9) <= spent <= granted
    assert len(plan.scales) == (1 if cells <= refined.FIRST else 2)
    norm = 1 if pure else 2
    for levels, scale, event in zip(plan.levels, plan.scales, plan.events, strict=True):
        declared = count_sensitivity(plan.facts.adjacency, levels, norm)
        times = event.count if pure else 1
        assert declared / scale <= times / event.multiplier + declared * 2**7 * (scale <= 2**-7)


@pytest.mark.parametrize("budget", [PureDP(0.5), ZCDP(0.1)], ids=str)
@pytest.mark.parametrize("groups", [1, 2])
def test_all_that_is_released_comes_from_noisy_counts_alone(monkeypatch, groups, budget):
    """Two tables whose noisy counts are made the same have the same release, bit for bit."""
    tables = np.random.default_rng(3).integers(0, 9, (2, groups, CELLS))
    answers, turn, exact = [], 0, None
    original = refined.noisy_cells

    def known(cells, nodes, plan, number, *more):
        nonlocal exact
        exact = np.concatenate(nodes.sums(cells)).astype(object) * plan.units[number]
        return original(cells, nodes, plan, number, *more)

    def answered(draw):
        def noise(scale, size, entropy):
            nonlocal turn
            if turn == len(answers):
                answers.append(exact + draw(scale, size, entropy))
            turn += 1
            return answers[turn - 1] - exact

        return noise

    monkeypatch.setattr(refined, "noisy_cells", known)
    for name in ("discrete_laplace", "discrete_gaussian"):
        monkeypatch.setattr(quantile_rounds, name, answered(getattr(quantile_rounds, name)))
    counts_of_cells = []
    for table in tables:
        turn = 0
        counts_of_cells.append(released(table, budget, relation="add-remove")[1])
    assert len(answers) == turn == 2 * groups
    for name in ("values", "drawn", "counts", "count_sd", "rank_sd"):
        np.testing.assert_array_equal(
            getattr(counts_of_cells[0], name), getattr(counts_of_cells[1], name)
        )
    assert np.isfinite(counts_of_cells[0].values).all()


@pytest.mark.parametrize("guarantee", [PureDP(1e-15), ZCDP(1e-40)], ids=str)
def test_noise_of_counts_beyond_meaning_is_refused(guarantee):
    with pytest.raises(BudgetError, match="larger eps"):
        RankTree().plan(facts(), guarantee)


@pytest.mark.parametrize("cells", [900, 2_000])
def test_a_huge_budget_finds_steps_and_the_numbers_of_rows(cells):
    table = np.zeros((2, cells), dtype=int)
    table[0, [10, 400, 700]] = 30, 50, 20
    table[1, 5] = 7
    _, release = released(table, PureDP(1e9), probs=(0.2, 0.5, 0.9))
    assert release.values[0, :, 0] * (cells - 1) == pytest.approx([10, 400, 700])
    assert release.values[1, :, 0] * (cells - 1) == pytest.approx(np.full(3, 5))
    assert release.counts == pytest.approx([100, 7])


@pytest.mark.parametrize("rows", [0, 1, 2])
def test_few_rows_have_no_quantiles_and_an_empty_group_none(rows):
    table = np.zeros((2, CELLS), dtype=int)
    table[1, 7] = rows
    _, release = released(table, PureDP(0.01))
    assert np.isnan(release.values).all()
    assert (release.count_sd > 0).all()


@pytest.mark.parametrize(("eps", "limit"), [(0.1, 0.0081), (1.0, 0.0009)])
@pytest.mark.parametrize("shape", ["even", "bell", "far from the bounds"])
def test_a_hundred_quantiles_are_near_their_ranks(shape, eps, limit):
    """Mean rank error of 99 quantiles of 20,000 rows, five releases of fixed draws."""
    rng, cells = np.random.default_rng(1), 65_536
    places = {
        "even": rng.random(20_000),
        "bell": rng.normal(0.5, 0.1, 20_000),
        "far from the bounds": rng.normal(0.5, 0.001, 20_000),
    }[shape]
    at = np.clip(np.rint(places * (cells - 1)), 0, cells - 1).astype(int)
    table = np.bincount(at, minlength=cells)
    below = np.append(0, np.cumsum(table)) / len(at)
    away = []
    with dp.simulation(seed=11):
        for _ in range(5):
            _, release = released(table, PureDP(eps), source(), probs=MANY, level=None)
            cells_found = np.rint(release.values[0, :, 0] * (cells - 1)).astype(int)
            probs = np.array(MANY)
            away.append(
                np.maximum(
                    np.maximum(below[cells_found] - probs, probs - below[cells_found + 1]), 0
                )
            )
    assert np.mean(away) <= limit


def test_cells_are_cut_between_the_lowest_quantile_and_the_highest():
    counts = np.full(1_000, 50.0)
    noisy_cells = NoisyCells(counts, "laplace", 1.0, np.inf, 1, Hierarchy(len(counts)))
    upper = even_ends(np.arange(1_001), noisy_cells, facts((0.9, 0.95), level=None), 10.0)
    assert (upper[0], upper[-1]) == (0, 1_000)
    assert 850 < upper[1] < upper[-2] < 1_000
    edges = even_ends(np.arange(1_001), noisy_cells, facts((0.01, 0.99), level=None), 10.0)
    assert edges[1] < 20
    assert np.diff(upper[1:-1]).max() < np.diff(edges[1:-1]).min() + 2, "cells there are finer"


@pytest.mark.parametrize("level", [None, 0.95])
def test_cells_are_cut_as_far_as_noise_and_the_interval_may_be(level):
    """The interval has the rows' sampling, and the last round's noise of its most cells."""
    noisy_cells = NoisyCells(np.full(1_000, 50.0), "laplace", 1.0, np.inf, 1, Hierarchy(1_000))
    reach = NOISE_REACH * noisy_cells.rank_sd(0.4) + 0.5
    if level is not None:
        variance = 50_000 * 0.4 * 0.6 + PIECES[1] * 10.0**2
        reach += (ndtri((1 + level) / 2) + SLACK) * math.sqrt(variance)
    ends = even_ends(np.arange(1_001), noisy_cells, facts((0.4,), level=level), 10.0)
    assert abs(ends[1] - (400 - reach / 50)) <= 1
    assert abs(ends[-2] - (400 + reach / 50)) <= 1


@pytest.mark.parametrize("sd", [1e-3, 1.0])
@pytest.mark.parametrize("probs", [(0.0,), (0.5,), (1.0,), (0.2, 0.9)])
def test_there_are_cells_to_count_in_though_noise_finds_no_rows(probs, sd):
    """Noise may leave no rows at all, or fewer than none in all cells together."""
    rng = np.random.default_rng(2)
    for _ in range(50):
        noise = sd * rng.laplace(size=1_000)
        noisy_cells = NoisyCells(noise, "laplace", sd, np.inf, 1, Hierarchy(1_000))
        ends = even_ends(np.arange(1_001) * 3, noisy_cells, facts(probs), sd)
        assert len(ends) > 2
        assert (ends[0], ends[-1]) == (0, 3_000)
