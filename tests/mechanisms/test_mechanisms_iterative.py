"""Eigenvalues and drawn directions: what they cost, how far neighbours are, what law they have."""

import math
from dataclasses import replace
from itertools import combinations, product

import numpy as np
import pytest
from scipy.integrate import quad

import dpmodels as dp
from dpmodels.design import private_design
from dpmodels.errors import ArgumentError, BudgetError
from dpmodels.mechanisms import Facts
from dpmodels.mechanisms.covariance.separate import Iterative
from dpmodels.noise import seeded
from dpmodels.privacy import (
    ZCDP,
    ApproxDP,
    BoundedRangeEvent,
    LaplaceEvent,
    PureDP,
    adjacency,
    total_eps,
    total_rho,
)
from dpmodels.statistics import Statistic

RELATIONS = ("replace", "add-remove")
GUARANTEES = [
    PureDP(1.0),
    PureDP(1e-6),
    PureDP(1e9),
    ZCDP(0.1),
    ZCDP(1e-12),
    ZCDP(1e9),
    ApproxDP(1.0, 1e-6),
    ApproxDP(0.1, 0.05),
    ApproxDP(1e-6, 1e-9),
    ApproxDP(1e9, 1e-6),
]


def facts(columns, relation="replace", centred=False, components=0):
    return Facts(columns, adjacency(relation), centred, components)


def bound(rows):
    names = [f"x{at}" for at in range(rows.shape[1])]
    book = dp.codebook.uniform(names, (-1, 1))
    data = {name: rows[:, at] for at, name in enumerate(names)}
    return private_design("~ .", data, book, scale=None, center=False, row_norm=1.0)


def released(rows, mechanism, plan, seed=1):
    return mechanism.release(mechanism.measure(bound(rows), plan), plan, seeded(seed))


@pytest.mark.parametrize("guarantee", GUARANTEES, ids=str)
@pytest.mark.parametrize("columns", [1, 2, 10, 60])
def test_the_events_compose_to_the_guarantee_and_use_it_up(guarantee, columns):
    for relation, centred in product(RELATIONS, (True, False)):
        events = Iterative().plan(facts(columns, relation, centred), guarantee).events
        if isinstance(guarantee, ZCDP):
            spent = total_rho(events) / guarantee.rho
        else:
            spent = total_eps(events, getattr(guarantee, "delta", 0.0)) / guarantee.eps
        assert 1 - 1e-6 < spent <= 1


@pytest.mark.parametrize("columns", [2, 5, 60])
@pytest.mark.parametrize("delta", [1e-9, 1e-6, 0.05])
def test_delta_never_draws_worse_than_without(columns, delta):
    pure = Iterative().plan(facts(columns), PureDP(1.0)).events[-1]
    approximate = Iterative().plan(facts(columns), ApproxDP(1.0, delta)).events[-1]
    assert approximate.eps >= pure.eps
    if columns == 60:
        assert approximate.eps > 2 * pure.eps


def test_the_shares_in_numbers():
    plan = Iterative(share=0.4).plan(facts(5, centred=True), PureDP(1.0))
    count, values, directions = plan.events
    assert count.multiplier == pytest.approx(1 / 0.25)
    assert values.multiplier == pytest.approx(1 / (0.75 * 0.4))
    assert directions.eps == pytest.approx(0.75 * 0.6 / 4)
    count, values, directions = Iterative(share=0.4).plan(facts(5), ZCDP(0.5)).events
    assert [0.5 / e.multiplier**2 for e in (count, values)] == pytest.approx([0.025, 0.19])
    assert 4 * directions.eps**2 / 8 == pytest.approx(0.5 * 0.95 * 0.6)


def test_the_last_direction_is_free():
    for columns, components, paid in ((1, 0, 0), (2, 0, 1), (5, 0, 4), (5, 4, 4), (5, 3, 3)):
        plan = Iterative().plan(facts(columns, components=components), PureDP(1.0))
        counts = [e.count for e in plan.events if isinstance(e, BoundedRangeEvent)]
        assert counts == ([paid] if paid else [])
        assert plan.scales["directions"] == (components or columns)
    assert Iterative(directions=2).plan(facts(5, components=3), PureDP(1.0)).events[-1].count == 2
    assert Iterative(directions=9).plan(facts(5), PureDP(1.0)).events[-1].count == 4


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("centred", [True, False])
@pytest.mark.parametrize("guarantee", [PureDP(1.0), PureDP(1e-6), ZCDP(0.1)], ids=str)
def test_neighbours_are_within_what_is_paid(relation, centred, guarantee):
    mechanism, columns = Iterative(), 3
    plan = mechanism.plan(facts(columns, relation, centred), guarantee)
    count, values, directions = plan.events
    unit = plan.lattice.radius**2
    ends = np.vstack([np.eye(3), -np.eye(3)[:1], np.ones((1, 3)) / math.sqrt(3)])
    missing = np.full((1, 3), np.nan)
    rows = np.vstack([ends, 0.4 * ends[:2], missing])
    base = np.vstack([0.9 * np.eye(3), 0.8 * np.eye(3)[:2], 0.7 * np.eye(3)[:1]])

    def exact(*more):
        design = bound(np.vstack([base, *more]))
        return mechanism.measure(design, plan).cross()[0].astype(float)

    statistics = [exact(row[None]) for row in rows]
    pairs = combinations(statistics, 2) if relation == "replace" else product(statistics, [exact()])
    furthest = np.zeros(3)
    for first, second in pairs:
        differences = np.abs(first - second)[0]
        paid = differences[0] / plan.steps.count + (
            differences[1:].sum() / plan.steps.mean if centred else 0
        )
        spectra = [np.rint(np.linalg.eigvalsh(cells[1:, 1:])) for cells in (first, second)]
        changes = np.linalg.eigvalsh((first - second)[1:, 1:] / unit)
        # The range of u'(S - S')u over the sphere is that of the loss before normalisation.
        spread = plan.scales["concentration"] * (changes[-1] - changes[0])
        distance = np.abs(spectra[0] - spectra[1]).sum() / plan.scales["eigenvalues"]
        costs = (paid * count.multiplier, distance * values.multiplier, spread / directions.eps)
        furthest = np.maximum(furthest, costs)
    # The slack is rounding in the eigenvalues of the changes.
    assert (furthest <= 1 + 1e-9).all()
    bits = plan.lattice.bits
    assert (furthest[1:] >= 1 - 8 / 2**bits).all()
    assert furthest[0] >= (0.49 if relation == "replace" and not centred else 0.99 - 8 / 2**bits)


@pytest.mark.parametrize("guarantee", [PureDP(1e9), ZCDP(1e18), ApproxDP(1e9, 1e-6)], ids=str)
@pytest.mark.parametrize("relation", RELATIONS)
def test_a_huge_budget_gives_the_exact_answer(guarantee, relation):
    rng = np.random.default_rng(2)
    rows = rng.normal(size=(300, 4)) @ np.diag([0.3, 0.2, 0.1, 0.05])
    rows /= np.maximum(1, np.linalg.norm(rows, axis=1))[:, None]
    mechanism = Iterative()
    plan = mechanism.plan(facts(4, relation, centred=True), guarantee)
    release = released(rows, mechanism, plan)
    np.testing.assert_allclose(release.second, rows.T @ rows, rtol=0, atol=2e-3)
    np.testing.assert_allclose(release.total, rows.sum(axis=0), rtol=0, atol=1e-3)
    assert release.count == pytest.approx(300, abs=1e-3)
    assert release.rows == (300 if relation == "replace" else None)


@pytest.mark.product
def test_the_law_of_the_first_direction():
    # Draws of sin^2 lie in [0, 1]: by Hoeffding their mean is this far off with
    # probability 1e-6 at most. Dividing in the acceptance gives 0.06 instead of 0.20.
    draws, alarm, kappa = 1200, 1e-6, 3.0
    slack = math.sqrt(math.log(2 / alarm) / (2 * draws))
    mechanism = Iterative()
    plan = mechanism.plan(facts(2), PureDP(1e6))
    unit = int(plan.lattice.radius**2)
    cells = np.diag([unit * 60, unit * 60, unit * 20]).astype(object)
    plan = replace(plan, scales={**plan.scales, "concentration": kappa / 40})
    entropy, statistic = seeded(5), Statistic("moments", cells, 80)
    directions = []
    for _ in range(draws):
        second = mechanism.release(statistic, plan, entropy).second
        directions.append(np.linalg.eigh(second).eigenvectors[1, 1] ** 2)

    def weight(angle):
        return math.exp(-kappa * math.sin(angle) ** 2)

    square, _ = quad(lambda angle: math.sin(angle) ** 2 * weight(angle), 0, math.pi)
    assert abs(np.mean(directions) - square / quad(weight, 0, math.pi)[0]) < slack


def test_directions_left_over_share_the_mean():
    rng = np.random.default_rng(4)
    rows = 0.2 * rng.normal(size=(400, 4)) * np.array([2.0, 1.0, 0.7, 0.3])
    rows /= np.maximum(1, np.linalg.norm(rows, axis=1))[:, None]
    mechanism = Iterative(directions=1)
    plan = mechanism.plan(facts(4), PureDP(1e6))
    values = np.linalg.eigvalsh(released(rows, mechanism, plan).second)
    exact = np.linalg.eigvalsh(rows.T @ rows)
    assert values[3] == pytest.approx(exact[3], abs=1e-2)
    assert values[:3] == pytest.approx([exact[:3].mean()] * 3, abs=1e-2)


@pytest.mark.expensive
@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("centred", [True, False])
@pytest.mark.parametrize("columns", [1, 2, 5])
@pytest.mark.parametrize(
    "guarantee",
    [PureDP(1e-6), PureDP(1e9), ZCDP(1e-18), ZCDP(1e60), ApproxDP(1e-9, 1e-9), ApproxDP(1.0, 1e-6)],
    ids=str,
)
def test_whatever_the_rows_the_release_is_finite(relation, centred, columns, guarantee):
    mechanism = Iterative()
    plan = mechanism.plan(facts(columns, relation, centred), guarantee)
    none = np.zeros((0, columns))
    same = np.full((7, columns), 1 / math.sqrt(columns))
    for rows in (none, np.zeros((3, columns)), same, np.full((3, columns), np.nan)):
        release = released(rows, mechanism, plan)
        assert np.isfinite(release.second).all()
        assert (release.second == release.second.T).all()
        assert math.isfinite(release.count)
        assert math.isfinite(release.noise.count)
        assert math.isnan(release.noise.diagonal)
        assert math.isnan(release.noise.off)
        assert (release.total is not None) == centred == math.isfinite(release.noise.mean)
        assert release.total is None or np.isfinite(release.total).all()
        assert np.linalg.eigvalsh(release.second)[0] >= -1e-9 * np.abs(release.second).max()


def test_the_scales_of_the_noise():
    for relation, sensitivity, divisor in (("replace", 2, 2), ("add-remove", 1, 1)):
        plan = Iterative().plan(facts(3, relation), PureDP(1.0))
        _, values, directions = plan.events
        assert isinstance(values, LaplaceEvent)
        unit = plan.lattice.radius**2
        scale = plan.scales["eigenvalues"] / unit
        assert scale == pytest.approx(values.multiplier * sensitivity, rel=1e-9)
        assert plan.scales["concentration"] == directions.eps / divisor


def test_too_small_a_budget_is_refused():
    with pytest.raises(BudgetError, match="larger eps"):
        Iterative().plan(facts(3), PureDP(1e-30))


@pytest.mark.parametrize("share", [0, 1, -0.1, math.nan, "half", True])
def test_a_share_outside_its_range_is_refused(share):
    with pytest.raises(ArgumentError, match="share="):
        Iterative(share=share)


@pytest.mark.parametrize("directions", [0, -1, 1.5, "all", True])
def test_directions_that_are_no_number_are_refused(directions):
    with pytest.raises(ArgumentError, match="directions="):
        Iterative(directions=directions)
