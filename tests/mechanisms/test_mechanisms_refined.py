"""Counts of cells cut finer round by round: what the cells may depend on, and what they cost."""

import math

import numpy as np
import pytest

from dpmodels.errors import BudgetError
from dpmodels.mechanisms import quantile_rounds
from dpmodels.mechanisms.add_noise import SMALLEST_SCALE
from dpmodels.mechanisms.quantile_facts import Grid
from dpmodels.mechanisms.scalar import QuantileFacts, Refined, refined
from dpmodels.noise import seeded
from dpmodels.privacy import ZCDP, ApproxDP, PureDP, adjacency, total_eps, total_rho
from dpmodels.statistics import Statistic
from dpmodels.statistics.counts import count_sensitivity

CELLS = 3_000


def facts(probs=(0.25, 0.5), groups=1, grid=None, level=0.95, relation="replace"):
    return QuantileFacts(probs, groups, grid or Grid(CELLS), level, adjacency(relation))


def released(table, guarantee, seed=1, **words):
    table = np.atleast_2d(table)
    public_facts = facts(groups=len(table), grid=Grid(table.shape[1]), **words)
    plan = Refined().plan(public_facts, guarantee)
    exact = np.append(table.ravel(), 0).astype(object)
    statistic = Statistic("counts", exact, int(table.sum()))
    return plan, Refined().release(statistic, plan, seeded(seed))


@pytest.mark.parametrize("relation", ["replace", "add-remove"])
def test_neighbours_move_counts_of_any_cells_by_no_more_than_declared(relation):
    """All pairs of cells that a row leaves and enters, in every division of five into three."""
    neighbours = adjacency(relation)
    largest_moves = {1: 0.0, 2: 0.0}
    units = [*np.eye(5), np.zeros(5)]
    for low in range(1, 4):
        for high in range(low + 1, 5):
            sums = np.add.reduceat(np.eye(5), [0, low, high])
            for left in units if neighbours.n_public else [np.zeros(5)]:
                for right in units:
                    sums_moved = sums @ (left - right)
                    for norm in largest_moves:
                        largest_moves[norm] = max(
                            largest_moves[norm], np.linalg.norm(sums_moved, norm)
                        )
    assert largest_moves == pytest.approx(
        {norm: count_sensitivity(neighbours, 1, norm) for norm in largest_moves}
    )


@pytest.mark.parametrize("groups", [1, 2])
def test_all_that_is_released_comes_from_noisy_counts_alone(monkeypatch, groups):
    """Two tables whose noisy counts are made the same have the same release, bit for bit."""
    rng = np.random.default_rng(3)
    tables = rng.integers(0, 9, (2, groups, CELLS))
    noise_by_round = {}

    def recorded(below, plan, limit, entropy):
        answers = noise_by_round.setdefault(
            len(noise_by_round) if len(noise_by_round) < groups else next(turns), []
        )
        fresh = not answers
        current["below"], current["at"] = below, 0
        current["answers"], current["fresh"] = answers, fresh
        return original(below, plan, limit, entropy)

    def noise(scale, size, entropy):
        exact = np.diff(current["below"][current["ends"]])
        if current["fresh"]:
            current["answers"].append(exact + draw(scale, size, entropy))
        answer = current["answers"][current["at"]]
        current["at"] += 1
        return answer - exact

    def ends_kept(function):
        def kept_too(*words):
            current["ends"] = function(*words)
            return current["ends"]

        return kept_too

    current, turns = {}, iter(range(groups))
    original, draw = refined._counted, quantile_rounds.discrete_laplace
    monkeypatch.setattr(refined, "_counted", recorded)
    monkeypatch.setattr(quantile_rounds, "discrete_laplace", noise)
    for name in ("first_ends", "next_ends"):
        monkeypatch.setattr(quantile_rounds, name, ends_kept(getattr(quantile_rounds, name)))
    first, second = (released(table, PureDP(0.5), relation="add-remove")[1] for table in tables)
    for name in ("values", "drawn", "counts", "count_sd", "rank_sd"):
        np.testing.assert_array_equal(getattr(first, name), getattr(second, name))
    assert np.isfinite(first.values).all()


@pytest.mark.parametrize("relation", ["replace", "add-remove"])
@pytest.mark.parametrize("cells", [2, 60, 500, 3_000, 65_536])
@pytest.mark.parametrize(
    "guarantee", [PureDP(0.7), PureDP(1e9), ZCDP(0.2), ApproxDP(1.0, 1e-6)], ids=str
)
def test_rounds_cost_what_is_granted_and_the_last_has_most(guarantee, cells, relation):
    plan = Refined().plan(facts(grid=Grid(cells), relation=relation), guarantee)
    pure = not isinstance(guarantee, ZCDP)
    spent = total_eps(plan.events, 0.0) if pure else total_rho(plan.events)
    granted = guarantee.eps if pure else guarantee.rho
    assert granted * (1 - 1e-9) <= spent <= granted
    assert min(plan.scales) == plan.scales[-1]
    assert len(plan.scales) == (1 if cells <= 64 else len(plan.events))
    declared = count_sensitivity(plan.facts.adjacency, 1, 1 if pure else 2)
    for scale, event in zip(plan.scales, plan.events, strict=True):
        times = event.count if pure else 1
        assert declared / scale <= times / event.multiplier + declared * 2**7 * (scale <= 2**-7)


@pytest.mark.parametrize("relation", ["replace", "add-remove"])
@pytest.mark.parametrize("cells", [16, 65_536])
def test_gaussian_noise_is_drawn_in_steps_as_fine_as_its_price_asks(monkeypatch, cells, relation):
    """A ledger of eps and delta prices the continuous law, which few steps exceed."""
    plan = Refined().plan(facts(grid=Grid(cells), relation=relation), ZCDP(2.0))
    steps = []

    def noise(scale, size, entropy):
        steps.append(scale)
        return np.zeros(size, dtype=np.int64)

    monkeypatch.setattr(quantile_rounds, "discrete_gaussian", noise)
    statistic = Statistic("counts", np.append(np.ones(cells, dtype=int), 0).astype(object), cells)
    release = Refined().release(statistic, plan, seeded(1))
    assert release.counts == pytest.approx([cells]), "steps are not taken for rows"
    sensitivity = count_sensitivity(plan.facts.adjacency, 1, 2)
    for scale, units, event in zip(steps, plan.units, plan.events, strict=True):
        assert scale >= SMALLEST_SCALE
        assert scale / (units * sensitivity) >= event.multiplier


@pytest.mark.parametrize("guarantee", [PureDP(1e-15), PureDP(1e-90), ZCDP(1e-40)], ids=str)
def test_noise_of_counts_beyond_meaning_is_refused(guarantee):
    with pytest.raises(BudgetError, match="larger eps"):
        Refined().plan(facts(), guarantee)


def test_a_huge_budget_finds_steps_and_the_numbers_of_rows():
    table = np.zeros((2, 2_000), dtype=int)
    table[0, [10, 400, 700]] = 30, 50, 20
    table[1, 5] = 7
    _, release = released(table, PureDP(1e9), probs=(0.2, 0.5, 0.9))
    assert release.values[0, :, 0] * 1999 == pytest.approx([10, 400, 700])
    assert release.values[1, :, 0] * 1999 == pytest.approx(np.full(3, 5))
    assert release.counts == pytest.approx([100, 7])
    assert release.rank_sd.shape == (2, 3)


@pytest.mark.parametrize("rows", [0, 1, 2])
def test_few_rows_have_no_quantiles_and_an_empty_group_none(rows):
    table = np.zeros((2, CELLS), dtype=int)
    table[1, 7] = rows
    _, release = released(table, PureDP(0.01))
    assert np.isnan(release.values).all()
    assert np.isnan(release.drawn).all()
    assert (release.count_sd > 0).all()


def test_under_zcdp_the_noise_is_gaussian_and_smaller():
    plan = Refined().plan(facts(), ZCDP(0.1))
    laplace = Refined().plan(facts(), PureDP(math.sqrt(0.2)))
    assert plan.law == "gaussian"
    assert plan.noise_sds[-1] < 0.8 * laplace.noise_sds[-1]
