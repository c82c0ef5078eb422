"""The two adaptive mechanisms: budgets, sensitivities, edges, and what they gain."""

import math

import numpy as np
import pytest

import dpmodels as dp
from dpmodels.design import private_design
from dpmodels.errors import ArgumentError, BudgetError
from dpmodels.mechanisms import Facts
from dpmodels.mechanisms import clipping_shells as clipping
from dpmodels.mechanisms.add_noise import gaussian_count, laplace_count
from dpmodels.mechanisms.clipping_shells import (
    HALVINGS,
    INCREMENTS,
    NUMBER,
    THRESHOLD,
    TRACE,
    lost,
    shells,
)
from dpmodels.mechanisms.covariance.adaptive import Adaptive, AdaptivePure, largest_rho
from dpmodels.noise import seeded, source
from dpmodels.noise.lattice import Lattice
from dpmodels.privacy import (
    ZCDP,
    ApproxDP,
    GaussianEvent,
    PureDP,
    PureEvent,
    adjacency,
    total_eps,
    total_rho,
)
from dpmodels.statistics import MomentWeights, Statistic, clipped_moments
from dpmodels.statistics.clipped import doublings, increment_sensitivity
from dpmodels.statistics.moments import absolute_sensitivity, eigenvalue_sensitivity

RELATIONS = ("replace", "add-remove")
GUARANTEES = [ApproxDP(1.0, 1e-6), ApproxDP(20.0, 1e-3), ZCDP(0.1)]
LEVELS = HALVINGS + 4


def facts(columns=3, relation="replace", centred=False):
    return Facts(columns, adjacency(relation), centred=centred)


class OneRow:
    """A design of one row of integers."""

    def __init__(self, row):
        self.row = row
        self.facts, self.scattered = {}, None

    def blocks(self, function, lattice, *, count_public):
        yield function(np.array([[lattice.radius], *([cell] for cell in self.row)])), 1


@pytest.mark.parametrize("columns", [1, 2, 7])
@pytest.mark.parametrize("bits", [9, 16])
def test_neighbours_lose_between_nothing_and_the_squared_radius(columns, bits):
    lattice, rng = Lattice(bits, columns), np.random.default_rng(columns)
    largest = 0
    for radius in (1, 0.99, 0.6, 0.5, 0.3, 0.126, 0.125, 0.01, 0.004, 0):
        for direction in [*np.eye(columns), *rng.normal(size=(6, columns))]:
            row = np.trunc(radius * lattice.radius * direction / np.linalg.norm(direction))
            exact, _ = clipped_moments(OneRow(row), lattice, HALVINGS, count_public=True).cross()
            losses = lost(exact)
            assert len(losses) == HALVINGS
            assert min(losses) >= 0
            assert max(losses) <= 4**bits
            assert losses == sorted(losses)
            largest = max(largest, *losses)
    assert largest > 4**bits * (1 - 2.0**-8)


def search_price(plan):
    """What the search costs: the threshold moves by one sensitivity, the number by one or two."""
    unit, factor = plan.lattice.radius**2, 2 if plan.facts.adjacency.n_public else 1
    return unit / plan.scales[THRESHOLD] + factor * unit / plan.scales[NUMBER]


def price(plan, columns, centred):
    """Sensitivity over scale of each part: Gaussian parts, search, by the plan's numbers."""
    relation, lattice, unit = plan.facts.adjacency, plan.lattice, plan.lattice.radius**2
    gaussian = [unit / plan.scales[TRACE], gaussian_count(plan.facts, 1).rows * unit]
    gaussian[1] /= plan.steps.count
    steps = doublings(shells(columns))
    shelled = [
        increment_sensitivity(relation, lattice, step) / plan.scales[name]
        for step, name in zip(steps, INCREMENTS, strict=True)
    ]
    return gaussian, search_price(plan), shelled


@pytest.mark.parametrize("columns", [3, 40])
@pytest.mark.parametrize("guarantee", GUARANTEES, ids=str)
@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("centred", [True, False])
def test_every_way_of_the_release_is_paid_for(centred, relation, guarantee, columns):
    for rule in ("auto", None):
        plan = Adaptive(rule).plan(facts(columns, relation, centred), guarantee)
        adjacency, unit = plan.facts.adjacency, plan.lattice.radius**2
        gaussian, eps, shelled = price(plan, columns, centred)
        event, search = plan.events
        assert isinstance(search, PureEvent)
        assert eps <= search.eps
        assert eps == pytest.approx(search.eps)
        sensitivity = eigenvalue_sensitivity(adjacency, 2) * unit
        rounded = eigenvalue_sensitivity(adjacency, 2) * unit + math.sqrt(columns)
        moves = [
            sensitivity / plan.scales["half diagonal"],
            rounded / plan.scales["eigenvalues"],
        ]
        ways = {"auto": [shelled], None: [[sensitivity / plan.scales["diagonal"]], moves]}[rule]
        for way in ways:
            total = math.hypot(*gaussian, *way)
            assert total * event.multiplier <= 1
            assert total * event.multiplier == pytest.approx(1, rel=1e-6)
        if isinstance(guarantee, ZCDP):
            assert guarantee.rho * (1 - 1e-9) < total_rho(plan.events) <= guarantee.rho
        else:
            spent = total_eps(plan.events, guarantee.delta)
            assert guarantee.eps * (1 - 1e-6) < spent <= guarantee.eps


@pytest.mark.parametrize("guarantee", [PureDP(1.0), *GUARANTEES], ids=str)
@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("centred", [True, False])
def test_every_way_of_the_pure_release_is_paid_for(centred, relation, guarantee):
    columns = 5
    for rule in ("auto", None):
        plan = AdaptivePure(rule).plan(facts(columns, relation, centred), guarantee)
        adjacency, unit = plan.facts.adjacency, plan.lattice.radius**2
        *first, matrix = plan.events
        alone = absolute_sensitivity(adjacency, columns, MomentWeights(0.0, 0.0)) * unit
        of_values = eigenvalue_sensitivity(adjacency, 1) * unit + columns
        count = laplace_count(plan.facts, 1.0)
        spent = [
            count.rows * unit / plan.steps.count,
            unit / plan.scales[TRACE],
            search_price(plan),
        ]
        paid = [1 / first[0].multiplier, 1 / first[1].multiplier, first[2].eps]
        assert spent == pytest.approx(paid)
        assert all(price <= declared for price, declared in zip(spent, paid, strict=True))
        whole_price = 1 / matrix.multiplier if rule else matrix.eps
        halves = alone / plan.scales["half diagonal"] + of_values / plan.scales["eigenvalues"]
        for way in (alone / plan.scales["diagonal"], halves):
            assert way == pytest.approx(whole_price)
            assert way <= whole_price * (1 + 1e-15)
        if isinstance(guarantee, ZCDP):
            assert guarantee.rho * (1 - 1e-9) < total_rho(plan.events) <= guarantee.rho
        else:
            eps = total_eps(plan.events, 0.0)
            assert guarantee.eps * (1 - 1e-9) < eps <= guarantee.eps


@pytest.mark.parametrize("columns", [1, 4])
@pytest.mark.parametrize("relation", RELATIONS)
def test_the_laplace_count_and_sum_move_no_further_than_paid_for(columns, relation):
    noise = laplace_count(facts(columns, relation, centred=True), 1.0)
    rng = np.random.default_rng(columns)
    rows = np.vstack([rng.normal(size=(200, columns)), np.ones((1, columns))])
    rows /= np.linalg.norm(rows, axis=1)[:, None]
    added = np.column_stack([np.ones(201) / noise.rows, rows / noise.total])
    added = np.vstack([added, added * [1, *([-1] * columns)]])
    single = np.abs(added).sum(axis=1).max()
    paired = max(np.abs(added - row).sum(axis=1).max() for row in added)
    worst = single if relation == "add-remove" else max(single, paired)
    assert worst == pytest.approx(1.0, rel=1e-9)


def test_the_blend_is_as_large_as_can_be():
    def events(rho):
        return GaussianEvent(math.sqrt(0.5 / (0.9 * rho))), PureEvent(math.sqrt(0.2 * rho))

    for guarantee in (ApproxDP(0.01, 1e-9), ApproxDP(1.0, 1e-6), ApproxDP(50.0, 1e-2)):
        rho = largest_rho(guarantee, events)
        assert total_eps(events(rho), guarantee.delta) <= guarantee.eps
        assert total_eps(events(rho * (1 + 1e-6)), guarantee.delta) > guarantee.eps


def test_caution_lowers_what_clipping_may_lose(monkeypatch):
    plan = Adaptive().plan(facts(2), ApproxDP(1.0, 1e-6))
    noise = plan.scales[THRESHOLD] + plan.scales[NUMBER]
    exact = np.zeros((LEVELS, 3, 3), dtype=object)
    monkeypatch.setattr(clipping, "first_above", lambda lost, allowed, *_: allowed)
    free, cautious = (
        clipping.clipping_radius(exact, lambda radius: 3 * radius, plan, source(), caution)
        for caution in (0.0, 2.0)
    )
    unit = plan.lattice.steps**2
    assert free == [int(3 * unit * 2.0**-level) for level in range(1, HALVINGS + 1)]
    assert cautious == pytest.approx([less - 2 * noise for less in free], abs=2)


def test_what_is_refused():
    with pytest.raises(BudgetError, match="write delta=1e-6"):
        Adaptive().plan(facts(), PureDP(1.0))
    for kind in (Adaptive, AdaptivePure):
        with pytest.raises(ArgumentError, match="write one of"):
            kind(denoise="smooth").plan(facts(), ZCDP(1.0))
        with pytest.raises(BudgetError, match="larger eps"):
            kind().plan(facts(), ZCDP(1e-40))


@pytest.mark.expensive
@pytest.mark.parametrize("kind", [Adaptive, AdaptivePure])
@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("guarantee", [ApproxDP(1e-9, 1e-9), ApproxDP(1e9, 1e-9), ZCDP(0.1)])
@pytest.mark.parametrize("columns", [1, 3])
def test_any_rows_and_budget_give_finite_output(columns, guarantee, relation, kind):
    same = np.zeros((LEVELS, columns + 1, columns + 1), dtype=object)
    for rule in ("auto", None):
        mechanism = kind(denoise=rule)
        plan = mechanism.plan(facts(columns, relation, centred=True), guarantee)
        assert 40 * max(plan.scales.values()) < 2**63
        same[:, :2, :2] = 50 * int(plan.lattice.radius) ** 2
        for exact, rows in ((same, 50), (same * 0, 0), (same * 0, 7)):
            release = mechanism.release(Statistic("clipped", exact, rows), plan, seeded(1))
            for part in (release.count, release.total, release.second):
                assert np.isfinite(part).all()
            assert release.estimate is None
            values = np.linalg.eigvalsh(release.second)
            assert values[0] >= -1e-9 * max(values[-1], 1)
            assert math.isnan(release.noise.diagonal)
            assert math.isnan(release.noise.off)
            assert release.rows == (rows if relation == "replace" else None)
            assert release.info.numerics == ("exact lattice" if rule else "idealised")


def table(rows, columns, length, seed=0):
    rng = np.random.default_rng(seed)
    numbers = rng.normal(size=(rows, columns)) * np.linspace(1, 0.2, columns)
    numbers *= length / np.linalg.norm(numbers, axis=1)[:, None]
    return numbers, {f"x{i}": numbers[:, i] for i in range(columns)}


def measured(mechanism, plan, data):
    book = dp.codebook(**dict.fromkeys(data, (-1, 1)))
    formula = "~ " + " + ".join(data)
    design = private_design(formula, data, book, scale=None, row_norm=1.0)
    return mechanism.measure(design, plan)


@pytest.mark.parametrize(("kind", "huge"), [(Adaptive, ZCDP(1e30)), (AdaptivePure, PureDP(1e30))])
@pytest.mark.parametrize("rule", ["auto", None])
@pytest.mark.parametrize("length", [1.0, 0.2])
def test_a_huge_budget_gives_the_exact_answer(length, rule, kind, huge):
    mechanism, (numbers, data) = kind(denoise=rule), table(200, 4, length)
    plan = mechanism.plan(facts(4, centred=True), huge)
    release = mechanism.release(measured(mechanism, plan, data), plan, seeded(3))
    # Three half steps of rounding for each row, and what little noise is left.
    slack = 200 * 3 * 2.0**-16 + 100 * 2.0**-12
    truth = numbers.T @ numbers
    assert np.abs(release.second - truth).max() < slack
    assert np.abs(release.total - numbers.sum(axis=0)).max() < slack
    assert abs(release.count - 200) < slack


@pytest.mark.product
@pytest.mark.parametrize("kind", [Adaptive, AdaptivePure])
def test_the_count_and_the_sum_have_the_noise_they_state(kind):
    mechanism, (numbers, data) = kind(), table(60, 2, 0.5)
    plan = mechanism.plan(facts(2, centred=True), ZCDP(0.2))
    statistic, counts, totals = measured(mechanism, plan, data), [], []
    with dp.simulation(seed=4):
        for _ in range(400):
            release = mechanism.release(statistic, plan, source())
            counts.append((release.count - 60) / release.noise.count)
            totals.append((release.total - numbers.sum(axis=0)) / release.noise.mean)
    for draws in (np.array(counts), np.array(totals).ravel()):
        # The kurtosis of Laplace noise is 6: seven standard deviations of the mean square.
        assert abs(draws.mean()) < 6 / math.sqrt(draws.size) + 1e-3
        assert abs((draws**2).mean() - 1) < 7 * math.sqrt(5 / draws.size)


@pytest.mark.expensive
def test_short_rows_are_found_and_gain():
    # Rows of norm 0.1 in a ball of 1: the noise of the whole ball drowns them. Seeds are fixed.
    (numbers, data), truth = table(4000, 30, 0.1), None
    truth = numbers.T @ numbers
    for kind, guarantee in ((Adaptive, ZCDP(0.1)), (AdaptivePure, PureDP(20.0))):
        for rule in ("auto", None):
            mechanism = kind(denoise=rule)
            plan = mechanism.plan(facts(30), guarantee)
            release = mechanism.release(measured(mechanism, plan, data), plan, seeded(2))
            error = np.linalg.norm(release.second - truth)
            assert error < 0.6 * np.linalg.norm(truth), (kind, rule)
