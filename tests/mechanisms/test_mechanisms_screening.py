"""Columns drawn and valued: every neighbour's law of the draws, shares of the budget, and noise."""

import math
from fractions import Fraction
from itertools import permutations, product

import numpy as np
import pytest

import dpmodels as dp
from dpmodels.design.regression import box_design
from dpmodels.errors import BudgetError
from dpmodels.formula.response import two_sided
from dpmodels.mechanisms import SCREENING, ScreenMoments, ScreenPeeling, screening_plan
from dpmodels.mechanisms.screening_plan import LAWS, ScreenFacts, rho_of, screen_plan, shares_of
from dpmodels.noise import source
from dpmodels.privacy import ZCDP, ApproxDP, PureDP, adjacency, total_eps, zcdp_to_approx
from dpmodels.statistics.associations import (
    FINE,
    associations,
    centred_products,
    product_change,
    reach,
)

BOOK = dp.codebook.uniform(["y", "a", "b", "c"], (-1, 1))
DESIGN = box_design(two_sided("y ~ a + b + c", BOOK))


def statistic(rows, plan):
    table = dict(zip("yabc", np.array(rows, dtype=float).T, strict=True))
    return associations(DESIGN.bind(table), plan.lattice)


def law(scores, unit, n_draws):
    """The probability of each order of the first columns drawn, by its definition."""
    weights = np.exp(float(unit) * np.asarray(scores, dtype=float))
    chances = {}
    for order in permutations(range(len(scores)), n_draws):
        left, chance = weights.sum(), 1.0
        for place in order:
            chance *= weights[place] / left
            left -= weights[place]
        chances[order] = chance
    return chances


@pytest.mark.parametrize("relation", ["replace", "add-remove"])
@pytest.mark.parametrize("alternative", ["two-sided", "larger"])
def test_no_neighbours_differ_in_the_law_of_the_draws_by_more_than_it_costs(relation, alternative):
    neighbours = adjacency(relation)
    plan = ScreenPeeling().plan(ScreenFacts(3, 2, alternative, neighbours), PureDP(8.0))
    centre = reach(plan.lattice) * FINE // 4
    sensitivity = product_change(neighbours, reach(plan.lattice), centre)
    unit = Fraction(plan.draw_eps) / (2 * sensitivity)
    corners = [(y, *x) for y in (-1, 1) for x in product((-1, 1), repeat=3)]
    base = [(1, 1, 1, -1), (-1, 1, -1, 1), (1, -1, 1, 1)]
    rows = [[*base, row] for row in corners]
    rows.append([*base, (np.nan,) * 4] if neighbours.n_public else base)
    sign = screening_plan.SIGNS[alternative]
    laws = []
    for table in rows:
        exact, _ = statistic(table, plan).cross()
        laws.append(law(sign(centred_products(exact, centre)), unit, plan.chosen))
    pairs = product(laws, laws) if neighbours.n_public else ((law, laws[-1]) for law in laws[:-1])
    worst = 0.0
    for first, second in pairs:
        ratios = np.array([np.log(first[order] / second[order]) for order in first])
        worst = max(worst, np.abs(ratios).max())
        # Of two draws the losses lie in an interval of twice the length of one.
        assert np.ptp(ratios) <= 2 * plan.draw_eps * (1 + 1e-9)
    assert plan.draw_eps / 4 < worst <= 2 * plan.draw_eps * (1 + 1e-9)


def test_columns_are_drawn_by_that_law_and_valued_whatever_was_drawn(monkeypatch):
    norms = []

    def drawn(levels, unit, count, entropy):
        norms.append((levels, unit, count))
        return np.array([2, 0])

    monkeypatch.setattr(screening_plan, "draw_ranked", drawn)
    neighbours = adjacency("replace")
    plan = ScreenPeeling().plan(ScreenFacts(3, 2, "smaller", neighbours), PureDP(1e6))
    rows = np.random.default_rng(1).uniform(-1, 1, (500, 4))
    result = statistic(rows, plan)
    with dp.simulation(seed=1):
        release = ScreenPeeling().release(result, plan, source())
    ((levels, unit, count),) = norms
    limit = reach(plan.lattice)
    centre = round(release.centre * FINE * limit)
    exact, _ = result.cross()
    assert levels.tolist() == centred_products(exact, centre).tolist()
    assert unit == Fraction(plan.draw_eps) / (2 * product_change(neighbours, limit, centre))
    assert (count, release.chosen.tolist()) == (2, [2.0, 0.0])
    about = rows[:, 0] - rows[:, 0].mean()
    np.testing.assert_allclose(release.products, (about @ rows[:, 1:])[[2, 0]], atol=0.05)
    np.testing.assert_allclose(release.scatters, 500 * rows[:, [3, 1]].var(axis=0), atol=0.1)


@pytest.mark.parametrize(
    ("relation", "budget", "law", "change"),
    [
        ("replace", PureDP(8.0), "laplace", 3.0),
        ("add-remove", PureDP(8.0), "laplace", 3.0),
        ("replace", ZCDP(2.0), "gaussian", 2.0),
        ("add-remove", ZCDP(2.0), "gaussian", math.sqrt(3)),
    ],
)
def test_noise_of_the_response_is_of_the_norm_of_its_law(relation, budget, law, change):
    plan = ScreenMoments().plan(ScreenFacts(3, 2, "two-sided", adjacency(relation)), budget)
    with dp.simulation(seed=2):
        release = ScreenMoments().release(statistic(np.zeros((9, 4)), plan), plan, source())
    assert release.law == law
    expected = LAWS[law].sd * plan.response * change
    assert expected <= release.response_sd <= expected * (1 + 1e-6)


def test_shares_are_of_one_budget():
    for chosen, has_draws in ((1, True), (7, False), (1_000, True)):
        assert sum(shares_of(chosen, with_draws=has_draws)) == pytest.approx(1, rel=1e-12)
    assert shares_of(9, with_draws=False).choice == 0


def test_the_law_with_less_noise_is_taken():
    laws = [
        ScreenPeeling()
        .plan(ScreenFacts(1_000, n_selected, "two-sided", adjacency("replace")), budget)
        .law
        for n_selected, budget in (
            (1, ApproxDP(1, 1e-6)),
            (100, ApproxDP(1, 1e-6)),
            (100, PureDP(1)),
        )
    ]
    assert laws == ["laplace", "gaussian", "laplace"]
    rho = rho_of(ApproxDP(1.0, 1e-6))
    assert zcdp_to_approx(rho, 1e-6) <= 1.0 < zcdp_to_approx(rho * (1 + 1e-6), 1e-6)


@pytest.mark.parametrize(("eps", "delta"), [(1.0, 1e-6), (0.1, 0.01), (8.0, 1e-9)])
@pytest.mark.parametrize("has_draws", [False, True])
def test_no_eps_is_exceeded_and_of_gaussian_noise_alone_none_is_left(eps, delta, has_draws):
    facts = ScreenFacts(40, 10, "two-sided", adjacency("replace"))
    spent = total_eps(screen_plan(facts, ApproxDP(eps, delta), with_draws=has_draws).events, delta)
    assert (0.6 if has_draws else 1 - 1e-6) * eps < spent <= eps


def test_all_columns_or_so_many():
    facts = ScreenFacts(50, 5, "larger", adjacency("add-remove"))
    chosen = {name: kind().plan(facts, ZCDP(0.1)).chosen for name, kind in SCREENING.items()}
    assert chosen == {"peeling": 5, "moments": 50, "centred": 50, "adapt": 5, "dp_bh": 5}


def test_noise_beyond_meaning_is_refused():
    facts = ScreenFacts(1_000, 5, "two-sided", adjacency("replace"))
    with pytest.raises(BudgetError, match="smaller most"):
        screen_plan(facts, PureDP(1e-6), with_draws=False)
    assert ScreenMoments().plan(facts, PureDP(1e-1)).products > 1_000
