"""What is asked for a group of rows is kept for it, and not a bit more noise is bought."""

import math

import pytest

import dpmodels as dp
from dpmodels.errors import ArgumentError, BudgetError, LedgerError
from dpmodels.privacy import (
    ZCDP,
    Adjacency,
    ApproxDP,
    BoundedRangeEvent,
    GaussianEvent,
    LaplaceEvent,
    PureDP,
    PureEvent,
    adjacency,
    gaussian_eps,
    gaussian_multiplier,
    group_events,
    planned_for_group,
    protecting,
    total_eps,
    total_rho,
)
from dpmodels.privacy.filters import largest_rho

ROWS = 5


def gaussian(guarantee):
    return (GaussianEvent(gaussian_multiplier(guarantee)),)


def laplace(guarantee):
    return (LaplaceEvent(1 / guarantee.eps),)


def mixed(guarantee):
    """A search of half of the budget, then Gaussian noise, as sparse vectors come."""
    if isinstance(guarantee, ApproxDP):
        return BoundedRangeEvent(guarantee.eps / 2), *gaussian(ApproxDP(guarantee.eps / 2, 1e-6))
    return PureEvent(math.sqrt(guarantee.rho)), *gaussian(ZCDP(guarantee.rho / 2))


def priced(plan, guarantee, rows=ROWS):
    return group_events(planned_for_group(plan, lambda plan: plan, guarantee, rows), rows)


def test_of_a_pure_guarantee_nothing_is_lost():
    (event,) = priced(laplace, PureDP(1.0))
    assert 1 - 1e-11 < 1 / event.multiplier <= 1.0


def test_of_zcdp_nothing_is_lost():
    spent = total_rho(priced(gaussian, ZCDP(0.5)))
    assert 0.5 * (1 - 1e-11) < spent <= 0.5


def test_a_delta_that_is_not_needed_leaves_a_group_its_eps_and_no_more():
    for rows in range(2, 60):
        (event,) = priced(laplace, ApproxDP(1.0, 1e-6), rows)
        assert 1 - 1e-11 < 1 / event.multiplier <= 1.0
        assert total_rho(priced(gaussian, ZCDP(0.5), rows)) <= 0.5


@pytest.mark.parametrize("eps", [0.1, 1.0, 8.0])
def test_of_eps_and_delta_the_noise_is_scaled_and_eps_is_not_divided(eps):
    guarantee = ApproxDP(eps, 1e-6)
    (event,) = priced(gaussian, guarantee)
    assert eps * (1 - 1e-6) < gaussian_eps(1e-6, event.multiplier) <= eps
    plan = planned_for_group(gaussian, lambda plan: plan, guarantee, ROWS)
    divided = gaussian_multiplier(ApproxDP(eps / ROWS, 1e-6 / ROWS * math.exp(-eps)))
    assert plan[0].multiplier == pytest.approx(ROWS * gaussian_multiplier(guarantee), rel=1e-9)
    assert plan[0].multiplier < divided


def ranged(guarantee, draws=40):
    """Many draws, each of bounded range, by zCDP or by the sum of their eps."""
    if isinstance(guarantee, PureDP):
        return (BoundedRangeEvent(guarantee.eps / draws, draws),)
    rho = guarantee.rho if isinstance(guarantee, ZCDP) else largest_rho(guarantee)
    return (BoundedRangeEvent(math.sqrt(8 * rho / draws) * (1 - 1e-12), draws),)


def test_many_draws_that_need_their_delta_keep_it_for_a_group():
    guarantee = ApproxDP(1.0, 1e-6)
    (planned,) = ranged(guarantee)
    (own,) = planned_for_group(ranged, lambda plan: plan, guarantee, ROWS)
    assert own.eps == pytest.approx(planned.eps / ROWS, rel=1e-9)
    assert own.eps > 1.5 / 40 / ROWS
    assert total_eps(priced(ranged, guarantee), 1e-6) <= 1.0


@pytest.mark.parametrize("rows", [2, 60, 1000])
def test_mixtures_keep_what_was_asked(rows):
    guarantee = ApproxDP(1.0, 1e-6)
    assert total_eps(priced(mixed, guarantee, rows), 1e-6) <= 1.0
    assert total_rho(priced(mixed, ZCDP(0.1), rows)) <= 0.1


@pytest.mark.parametrize("eps", [0.1, 1.0, 8.0])
def test_a_law_that_changes_with_the_unit_of_the_budget_keeps_what_was_asked(eps):
    """Gaussian for eps and delta, Laplace under zCDP: the rho of Gaussian noise is too much."""

    def quieter(guarantee):
        if isinstance(guarantee, ZCDP):
            return (LaplaceEvent(math.sqrt(25 / guarantee.rho), count=50),)
        return gaussian(guarantee)

    request = ApproxDP(eps, 1e-6)
    plan = planned_for_group(quieter, lambda plan: plan, request, ROWS)
    assert total_rho(group_events(plan, ROWS)) <= largest_rho(request)


def test_a_published_scale_is_asked_for_one_row():
    def published(guarantee):
        if isinstance(guarantee, ZCDP):
            raise BudgetError("a function of eps and delta: write eps=1.0")
        return gaussian(guarantee)

    assert total_eps(priced(published, ApproxDP(1.0, 1e-6)), 1e-6) <= 1.0


def test_one_row_is_asked_what_was_asked():
    recorded = []
    planned_for_group(
        lambda guarantee_asked: recorded.append(guarantee_asked) or (),
        lambda plan: plan,
        ApproxDP(1, 1e-6),
        1,
    )
    assert recorded == [ApproxDP(1, 1e-6)]


@pytest.mark.parametrize(
    ("relation", "text"),
    [
        (Adjacency("replace"), "replace"),
        (Adjacency("replace", 1), "replace"),
        (Adjacency("add-remove", 5), '["add-remove", 5, null]'),
        (Adjacency("replace", "mean", "id"), '["replace", "mean", "id"]'),
        (Adjacency("replace", None, 'a "b"'), '["replace", "mean", "a \\"b\\""]'),
    ],
)
def test_a_relation_is_one_text(relation, text):
    assert relation.text == text
    assert adjacency(text) == relation


@pytest.mark.parametrize("text", ['["replace"]', '["replace", 0, "id"]', "[" * 9, '["x", 1, null]'])
def test_no_other_text_is_one(text):
    with pytest.raises(ArgumentError):
        adjacency(text)


@pytest.mark.parametrize(
    ("rows", "person", "unit", "places"),
    [
        (None, None, "one row", 1),
        (5, None, "any 5 rows (one person's)", 5),
        (4, "id", "one person (at most 4 rows)", 4),
        (1, "id", "one person (at most 1 row)", 1),
        (None, "id", "one person (all rows)", 60),
    ],
)
def test_what_is_protected_is_said(rows, person, unit, places):
    result = protecting("replace", rows, person)
    assert (result.unit, result.places) == (unit, places)
    assert unit in result.describe()


def test_what_is_protected_is_said_once():
    with pytest.raises(ArgumentError, match="leave out person="):
        protecting(Adjacency("replace", 3), 4, "id")


def test_a_ledger_is_of_one_unit():
    persons = dp.Ledger(1.0, adjacency=Adjacency("replace", 4, "id"))
    event = PureEvent(0.1)
    with pytest.raises(LedgerError, match="protects one row, but this ledger one person"):
        persons.charge([event], adjacency="replace")
    persons.charge([event], adjacency=Adjacency("replace", "mean", "id"))
    with pytest.raises(LedgerError, match="person='house'"):
        persons.charge([event], adjacency=Adjacency("replace", 4, "house"))
    with pytest.raises(LedgerError, match="rows=3"):
        dp.Ledger(1.0, adjacency=Adjacency("replace", 5)).charge(
            [event], adjacency=Adjacency("replace", 3)
        )
