"""Sums of columns about released means: neighbours, shares of the budget, and what is released."""

from itertools import product

import numpy as np
import pytest

import dpmodels as dp
from dpmodels.design.regression import box_design
from dpmodels.errors import BudgetError
from dpmodels.formula.response import two_sided
from dpmodels.mechanisms import ScreenCentred, ScreenMoments, screening
from dpmodels.mechanisms.screening_plan import ScreenFacts
from dpmodels.noise import source
from dpmodels.privacy import ZCDP, ApproxDP, PureDP, adjacency, gaussian_multiplier
from dpmodels.statistics.associations import SUMS, associations, reach

BOOK = dp.codebook.uniform(["y", "a", "b"], (-1, 1))
DESIGN = box_design(two_sided("y ~ a + b", BOOK))


def statistic(rows, plan):
    table = dict(zip("yab", np.array(rows, dtype=float).T, strict=True))
    return associations(DESIGN.bind(table), plan.lattice)


@pytest.mark.parametrize("relation", ["replace", "add-remove"])
def test_no_neighbours_move_a_round_by_more_than_its_noise_allows(relation, monkeypatch):
    """Of all corners of the box; a row that moves each sum as far as it can is among them."""
    neighbours = adjacency(relation)
    plan = ScreenCentred().plan(ScreenFacts(2, 2, "two-sided", neighbours), ZCDP(50.0))
    rounds = []
    limit = reach(plan.lattice)
    # The second round of all tables is about what the first one's shows: the answer is fixed.
    answers = [np.array([4.0, 0.5, 2.0]) * limit**2, np.array([2.0, -1.0]) * limit**2]

    def recorded(parts, _):
        rounds.append([(np.asarray(exact, dtype=float), scale) for exact, scale in parts])
        return answers if len(rounds) == 1 else [part for part, _ in rounds[-1]]

    monkeypatch.setattr(screening, "add_noises", recorded)
    base = [(1, 1, -1), (-1, 0.5, 1), (0.3, -1, 1)]
    corners = [*product((-1, 1), repeat=3), (0, 0, 0)]
    tables = [[*base, row] for row in corners]
    tables.append([*base, (np.nan,) * 3] if neighbours.n_public else base)
    printed = []
    for table in tables:
        rounds.clear()
        ScreenCentred().release(statistic(table, plan), plan, source())
        printed.append([part for parts in rounds for part in parts])
    pairs = (
        product(printed, printed)
        if neighbours.n_public
        else ((text, printed[-1]) for text in printed)
    )
    multipliers = [event.multiplier for event in plan.events]
    worst = np.zeros(4)
    for first, second in pairs:
        for at, ((left, scale), (right, _)) in enumerate(zip(first, second, strict=True)):
            moves = np.abs(left - right)
            distance = np.linalg.norm(moves) if at == 0 else moves.max()
            worst[at] = max(worst[at], distance / scale * multipliers[at])
    assert (worst <= 1 + 1e-9).all()
    assert (worst > 0.2).all()


@pytest.mark.parametrize("guarantee", [ApproxDP(1.0, 1e-6), ZCDP(0.1)])
@pytest.mark.parametrize("columns", [1, 7, 500])
def test_the_events_are_the_whole_budget_and_products_have_the_noise_of_moments(guarantee, columns):
    facts = ScreenFacts(columns, 1, "two-sided", adjacency("replace"))
    plan = ScreenCentred().plan(facts, guarantee)
    spent = sum(event.count / event.multiplier**2 for event in plan.events)
    assert 1 - 1e-6 < spent * gaussian_multiplier(guarantee) ** 2 <= 1
    rho = ZCDP(0.5 / gaussian_multiplier(guarantee) ** 2)
    assert plan.products == ScreenMoments().plan(facts, rho).products
    assert plan.law == "gaussian"
    assert plan.draw_eps == 0


def test_without_noise_it_gives_the_scatters_about_the_means():
    rows = np.random.default_rng(1).uniform(-1, 1, (500, 3))
    rows[:, 2] = 0.8 + rows[:, 2] / 10
    plan = ScreenCentred().plan(ScreenFacts(2, 2, "two-sided", adjacency("replace")), ZCDP(1e9))
    with dp.simulation(seed=1):
        release = ScreenCentred().release(statistic(rows, plan), plan, source())
    about = rows[:, 0] - rows[:, 0].mean()
    np.testing.assert_allclose(release.products, about @ rows[:, 1:], atol=0.05)
    np.testing.assert_allclose(release.scatters, 500 * rows[:, 1:].var(axis=0), atol=0.05)
    assert release.centre == pytest.approx(rows[:, 0].mean(), abs=1e-3)


def test_no_rows_give_finite_numbers():
    plan = ScreenCentred().plan(ScreenFacts(2, 2, "two-sided", adjacency("replace")), ZCDP(0.1))
    with dp.simulation(seed=1):
        release = ScreenCentred().release(statistic(np.full((3, 3), np.nan), plan), plan, source())
    assert np.isfinite([*release.products, *release.scatters, release.centre]).all()


def test_a_pure_guarantee_is_refused():
    facts = ScreenFacts(2, 2, "two-sided", adjacency("replace"))
    with pytest.raises(BudgetError, match="delta=1e-6"):
        ScreenCentred().plan(facts, PureDP(1.0))


def test_centres_are_whole_steps_within_the_box():
    """The exact sums about any centre are whole numbers, with no rounding."""
    plan = ScreenCentred().plan(ScreenFacts(2, 2, "two-sided", adjacency("replace")), ZCDP(0.1))
    exact, _ = statistic([(1, 1, -1), (0.3, -1, 1)], plan).cross()
    centres = np.array([reach(plan.lattice), -3], dtype=object)
    squares = screening.centred_squares(exact, centres)
    assert all(isinstance(value, int) for value in squares.tolist())
    assert squares[1] == exact[1, 2] + 6 * exact[SUMS, 2] + 9 * exact[SUMS, 0]
