"""Peeled p-values: the exact law of a draw on neighbours, its ties, and what all rounds cost."""

from itertools import product

import numpy as np
import pytest

import dpmodels as dp
from dpmodels.design.regression import box_design
from dpmodels.errors import BudgetError
from dpmodels.formula.response import two_sided
from dpmodels.mechanisms import screening
from dpmodels.mechanisms.screening import ScreenLogs, least_noisy, least_of, z_scale
from dpmodels.mechanisms.screening_plan import SIGNS, Response, ScreenFacts
from dpmodels.noise import source
from dpmodels.privacy import ZCDP, Adjacency, ApproxDP, PureDP, adjacency, total_eps, total_rho
from dpmodels.statistics import Statistic
from dpmodels.statistics.associations import (
    FINE,
    associations,
    box_lattice,
    centred_products,
    log_change,
    log_levels,
    product_change,
    reach,
)

BOOK = dp.codebook.uniform(["y", "a", "b"], (-1, 1))
DESIGN = box_design(two_sided("y ~ a + b", BOOK))


def first_is_drawn(levels, scale):
    """The probability that the first of two is drawn: its noisy level is at most as large."""
    noise = np.arange(-60 * int(scale + 1), 60 * int(scale + 1) + 1)
    chances = np.exp(-np.abs(noise) / scale)
    chances /= chances.sum()
    upto = np.cumsum(chances)
    places = np.clip(noise + levels[1] - levels[0] - noise[0], -1, len(noise) - 1)
    return float((chances * np.where(places >= 0, upto[places], 0.0)).sum())


@pytest.mark.parametrize("relation", ["replace", "add-remove"])
@pytest.mark.parametrize("alternative", ["two-sided", "larger", "smaller"])
@pytest.mark.parametrize("steps", [40, 3])
def test_no_neighbours_differ_in_the_law_of_a_draw_by_more_than_it_costs(
    relation, alternative, steps, monkeypatch
):
    monkeypatch.setitem(log_levels.__globals__, "STEPS", steps)
    neighbours, times = adjacency(relation), 1.5
    facts = ScreenFacts(2, 1, alternative, neighbours)
    limit = reach(box_lattice(3))
    centre, scale = limit * FINE // 4, 1.7 * FINE * limit**2
    test = scale, least_of(facts), 1 + (alternative == "two-sided")
    width = times * log_change(product_change(neighbours, limit, centre), *test)
    base = [(1, 1, 1), (1, 1, -1), (-1, -1, 1), (1, 1, -1)]
    rows = [[*base, row] for row in product((-1, 1), repeat=3)]
    rows.append([*base, (np.nan,) * 3] if neighbours.n_public else base)
    laws = []
    for table in rows:
        data = dict(zip("yab", np.array(table, dtype=float).T, strict=True))
        exact, _ = associations(DESIGN.bind(data), box_lattice(3)).cross()
        sums = SIGNS[alternative](centred_products(exact, centre))
        chance = first_is_drawn(log_levels(sums, *test), width)
        laws.append((chance, 1 - chance))
    pairs = product(laws, laws) if neighbours.n_public else ((law, laws[-1]) for law in laws[:-1])
    worst = max(np.abs(np.log(np.array(first) / np.array(second))).max() for first, second in pairs)
    assert 0.1 / times < worst <= 2 / times * (1 + 1e-9)


def test_the_least_noisy_is_drawn_and_ties_go_to_the_first(monkeypatch):
    noises = iter([[3, 0, 1, 9], [3, 2, 9], [0, 0]])
    monkeypatch.setattr(
        screening, "discrete_laplace", lambda scale, size, entropy: np.array(next(noises)[:size])
    )
    # 3 5 2 9 ... the noisy levels are 8 5 5 13, then of those left 8 7 13, then 5 4.
    assert least_noisy(np.array([5, 5, 4, 4]), 1.0, 3, None).tolist() == [1, 2, 3]


def test_draws_have_the_law_that_is_proved():
    with dp.simulation(seed=3):
        entropy = source()
        places = [int(least_noisy(np.array([2, 0]), 3.0, 1, entropy)[0]) for _ in range(4_000)]
    # By Hoeffding less than 1e-6 beyond .0426.
    assert np.mean(np.array(places) == 0) == pytest.approx(
        first_is_drawn(np.array([2, 0]), 3.0), abs=0.0426
    )


@pytest.mark.parametrize("n_selected", [1, 10, 100])
def test_all_rounds_cost_what_is_asked(n_selected):
    facts = ScreenFacts(1_000, n_selected, "larger", adjacency("replace"))
    pure, approx, rho = (
        ScreenLogs().plan(facts, guarantee)
        for guarantee in (PureDP(1.0), ApproxDP(1.0, 1e-6), ZCDP(0.1))
    )
    assert 0.999 <= total_eps(pure.events, 0.0) <= 1.0
    assert total_eps(approx.events, 1e-6) <= 1.0
    assert total_rho(rho.events) <= 0.1 * (1 + 1e-9)
    assert approx.products <= pure.products
    assert pure.draw_eps == 2 / pure.products
    assert (approx.products < pure.products) == (n_selected > 10)


def test_the_scale_of_a_test_is_that_of_the_response_and_careful():
    facts = ScreenFacts(2, 1, "larger", adjacency("replace"))
    plan = ScreenLogs().plan(facts, PureDP(1.0))
    response = Response(400.0, 100.0, 200.0, 0)
    assert z_scale(response, 0.0, 0.25, plan) == pytest.approx(np.sqrt(200 - 25))
    assert z_scale(response, 8.0, 0.25, plan) > np.sqrt(200 - 25 + 40)
    # All of one noise: as variable as the mean's is.
    assert z_scale(Response(1.0, 0.0, -900.0, 0), 8.0, 0.0, plan) == 8.0
    kin = ScreenLogs().plan(ScreenFacts(2, 1, "larger", Adjacency("replace", 4, "id")), PureDP(1.0))
    assert z_scale(response, 0.0, 0.25, kin) == pytest.approx(2 * np.sqrt(200 - 25))


def test_values_are_noised_levels_and_nothing_is_below_the_least():
    rows = np.random.default_rng(1).choice([-1.0, 1.0], (900, 3))
    rows[:, 1] = rows[:, 0]
    facts = ScreenFacts(2, 2, "larger", adjacency("replace"), 0.2)
    plan = ScreenLogs().plan(facts, PureDP(1e5))
    data = dict(zip("yab", rows.T, strict=True))
    statistic: Statistic = associations(DESIGN.bind(data), plan.lattice)
    with dp.simulation(seed=1):
        release = ScreenLogs().release(statistic, plan, source())
    assert release.chosen.tolist() == [0, 1]
    # An exponential of noise of 6e-6 and less: beyond .001 never.
    assert release.logs[0] == pytest.approx(np.log(0.05), abs=1e-3)
    assert release.scale == pytest.approx(np.sqrt(900), rel=0.01)


def test_noise_beyond_meaning_is_refused():
    facts = ScreenFacts(1_000, 100, "two-sided", adjacency("replace"))
    with pytest.raises(BudgetError, match="smaller most"):
        ScreenLogs().plan(facts, PureDP(1e-4))
