"""Draws with counts beside them: what the cells may depend on, what they cost, what they say."""

import numpy as np
import pytest

from dpmodels.mechanisms import quantile_rounds
from dpmodels.mechanisms.quantile_facts import Grid
from dpmodels.mechanisms.quantile_rounds import doubling_ends
from dpmodels.mechanisms.scalar import Bracketed, Exponential, QuantileFacts, exponential
from dpmodels.noise import seeded
from dpmodels.privacy import ZCDP, ApproxDP, PureDP, adjacency, total_eps, total_rho
from dpmodels.statistics import Statistic
from dpmodels.statistics.counts import count_sensitivity

CELLS = 300
GUARANTEES = (PureDP(0.7), PureDP(1e9), ZCDP(0.2), ApproxDP(1.0, 1e-6))
RELATIONS = ("replace", "add-remove")


def facts(probs=(0.5,), groups=1, grid=None, level=0.95, relation="replace"):
    return QuantileFacts(probs, groups, grid or Grid(CELLS), level, adjacency(relation))


def statistic(table):
    table = np.atleast_2d(table)
    return Statistic("counts", np.append(table.ravel(), 0).astype(object), int(table.sum()))


@pytest.mark.parametrize("relation", RELATIONS)
def test_neighbours_move_the_counts_of_all_cells_a_draw_may_choose_by_no_more_than_declared(
    relation,
):
    """All neighbours of a row, in one group and in two, for the cells of every drawn pair."""
    grid, neighbours = Grid(9), adjacency(relation)
    units = [*np.eye(18), np.zeros(18)]
    pairs = [
        (left, right)
        for left in (units if neighbours.n_public else [np.zeros(18)])
        for right in units
    ]
    largest_moves = {1: 0.0, 2: 0.0}
    for first in range(9):
        for second in range(9):
            ends = [doubling_ends(grid, np.array([cell])) for cell in (first, second)]
            cut = np.concatenate([ends[0][:-1], 9 + ends[1][:-1]])
            for left, right in pairs:
                distance = np.add.reduceat(left - right, cut)
                for norm in largest_moves:
                    largest_moves[norm] = max(
                        largest_moves[norm], float(np.linalg.norm(distance, norm))
                    )
    assert largest_moves == pytest.approx(
        {norm: count_sensitivity(neighbours, 1, norm) for norm in largest_moves}
    )


def test_the_cells_follow_from_the_draw_alone(monkeypatch):
    """Two tables whose draws and noisy counts are made the same have the same release."""
    tables = np.random.default_rng(3).integers(0, 9, (2, CELLS))
    plan = Bracketed().plan(facts(relation="add-remove"), PureDP(0.5))
    release = Exponential().release(statistic(tables[0]), plan, seeded(1))
    monkeypatch.setattr(exponential.Exponential, "release", lambda *words: release)
    noisy = np.random.default_rng(4).normal(30, 20, CELLS)

    def counted(sums, hierarchy, plan, turn, max_rows, entropy):
        return quantile_rounds.NoisyCells(noisy[: len(sums)], plan.law, plan.noise_sds[0], max_rows)

    monkeypatch.setattr(exponential, "noisy_cells", counted)
    first, second = (Bracketed().release(statistic(table), plan, seeded(2)) for table in tables)
    for name in ("values", "drawn", "counts", "count_sd", "rank_sd"):
        np.testing.assert_array_equal(getattr(first, name), getattr(second, name))
    assert np.isfinite(first.values).all()


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("groups", [1, 3])
@pytest.mark.parametrize("guarantee", GUARANTEES, ids=str)
def test_draws_and_counts_cost_what_is_granted(guarantee, groups, relation):
    plan = Bracketed().plan(facts((0.2, 0.5), groups, relation=relation), guarantee)
    pure = not isinstance(guarantee, ZCDP)
    spent = total_eps(plan.events, 0.0) if pure else total_rho(plan.events)
    granted = guarantee.eps if pure else guarantee.rho
    assert granted * (1 - 1e-8) <= spent <= granted


@pytest.mark.parametrize("guarantee", [PureDP(1.0), ZCDP(0.5)], ids=str)
def test_the_rank_of_one_quantile_has_at_most_half_more_noise_than_a_draw_alone(guarantee):
    alone = Exponential().plan(facts(level=None), guarantee)
    combined = Bracketed().plan(facts(), guarantee)
    assert alone.middle[0] <= 1.5 * combined.middle[0]
    assert combined.count_scale <= 1.001 * alone.count_scale


@pytest.mark.parametrize("cells", [1, 2, 7, 65_536])
@pytest.mark.parametrize("place", [0.0, 0.3, 1.0])
def test_cells_double_from_a_drawn_one_and_cover_the_range(cells, place):
    grid = Grid(max(cells, 2), None if cells < 10 else 0.4)
    cell = int(place * (grid.cells - 1))
    ends = doubling_ends(grid, np.array([cell]))
    assert ends[0] == 0
    assert ends[-1] == grid.cells
    assert (np.diff(ends) > 0).all()
    assert {cell, cell + 1} <= set(ends.tolist())
    assert len(ends) <= 2 * quantile_rounds.HALVINGS + 4


@pytest.mark.parametrize("rows", [0, 1, 2])
def test_few_rows_have_no_quantile_and_no_interval(rows):
    table = np.zeros((2, CELLS), dtype=int)
    table[1, 7] = rows
    plan = Bracketed().plan(facts(groups=2), PureDP(0.01))
    release = Bracketed().release(statistic(table), plan, seeded(1))
    assert np.isnan(release.values).all()
    assert np.isnan(release.drawn).all()
    assert (release.count_sd > 0).all()


def test_a_huge_budget_finds_the_value_that_many_rows_share():
    table = np.zeros(2_000, dtype=int)
    table[[10, 400, 700]] = 30, 50, 20
    plan = Bracketed().plan(facts((0.2, 0.5, 0.9), grid=Grid(2_000), level=None), PureDP(1e6))
    release = Bracketed().release(statistic(table), plan, seeded(2))
    assert release.values[0, :, 0] * 1999 == pytest.approx([10, 400, 700])
    assert np.isnan(release.values[0, :, 1:]).all()
    assert release.counts == pytest.approx([100])
