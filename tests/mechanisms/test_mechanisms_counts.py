"""Noise on counts: scales for every guarantee, laws, and exact losses of neighbours."""

import math
from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dpmodels as dp
from dpmodels.errors import ArgumentError, BudgetError
from dpmodels.formula.sides import grouping, parse_sides
from dpmodels.formula.tally import Tally
from dpmodels.mechanisms.choose import choose_strategy
from dpmodels.mechanisms.choose_counts import auto_counts
from dpmodels.mechanisms.counts import COUNTS, Gaussian, Geometric
from dpmodels.mechanisms.protocol import CountFacts, units_of
from dpmodels.noise import seeded
from dpmodels.privacy import ZCDP, ApproxDP, PureDP, adjacency, total_eps, total_rho
from tests.private_rows import private_cells

BOOK = dp.codebook(g=["u", "v", "w"])
GUARANTEES = (PureDP(0.7), ApproxDP(0.7, 1e-6), ZCDP(0.3))
RELATIONS = ("replace", "add-remove")


def facts(tables=1, relation="replace", divided=False):
    return CountFacts(tables, 4 * tables, divided, adjacency(relation))


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("tables", [1, 3])
@pytest.mark.parametrize("guarantee", GUARANTEES)
@pytest.mark.parametrize("strategy", [Geometric(), Gaussian()])
def test_the_events_cost_what_was_granted_and_no_less(strategy, guarantee, tables, relation):
    if isinstance(strategy, Gaussian) and isinstance(guarantee, PureDP):
        with pytest.raises(BudgetError):
            strategy.plan(facts(tables, relation), guarantee)
        return
    plan = strategy.plan(facts(tables, relation), guarantee)
    if isinstance(guarantee, ZCDP):
        spent, granted = total_rho(plan.events), guarantee.rho
    else:
        used = 0.0 if isinstance(strategy, Geometric) else guarantee.delta
        spent, granted = total_eps(plan.events, used), guarantee.eps
    assert granted * (1 - 1e-8) <= spent <= granted


@pytest.mark.parametrize(("relation", "changed"), [("replace", 2), ("add-remove", 1)])
def test_scales_are_those_of_the_theorems(relation, changed):
    pure = Geometric().plan(facts(3, relation), PureDP(0.5))
    assert pure.scale == pytest.approx(3 * changed / 0.5)
    assert pure.units_per_row == 1
    concentrated = Geometric().plan(facts(3, relation), ZCDP(0.5))
    assert concentrated.scale == pytest.approx(math.sqrt(3 * changed / 1.0))
    normal = Gaussian().plan(facts(3, relation), ZCDP(0.5))
    assert normal.noise_sd == pytest.approx(math.sqrt(3 * changed / 1.0))
    divided = Geometric().plan(facts(3, relation, divided=True), PureDP(0.5))
    assert divided.units_per_row == 2**40
    assert divided.scale / divided.units_per_row == pytest.approx(pure.scale)


def losses(shift, scale):
    """Privacy losses of discrete Laplace noise moved by whole units, and their probabilities."""
    reach = math.ceil(45 * scale) + abs(shift)
    points = np.arange(-reach, reach + 1)
    mass = np.exp(-np.abs(points) / scale)
    return (np.abs(points - shift) - np.abs(points)) / scale, mass / mass.sum()


def delta_of(shifts, scale, eps):
    """The exact delta(eps) between a table of counts and one moved by the shifts."""
    total, mass = np.zeros(1), np.ones(1)
    for shift in shifts:
        loss, chances = losses(shift, scale)
        rounded, places = np.unique(np.round(loss, 12), return_inverse=True)
        chances = np.bincount(places, chances)
        total = np.add.outer(total, rounded).ravel()
        mass = np.multiply.outer(mass, chances).ravel()
    return float(mass @ -np.expm1(np.minimum(eps - total, 0)))


@pytest.mark.parametrize("shifts", [(1, -1), (1,), (1, -1, -1, 1)])
@pytest.mark.parametrize("delta", [1e-2, 0.1, 0.3])
def test_neighbours_of_whole_counts_have_exactly_the_loss_charged(shifts, delta):
    """A ledger's price of the events is the true one, not above or below it."""
    relation = "add-remove" if len(shifts) == 1 else "replace"
    tables = max(len(shifts) // 2, 1)
    plan = Geometric().plan(facts(tables, relation), PureDP(1.5))
    eps = total_eps(plan.events, delta)
    result = delta_of(shifts, plan.scale, eps)
    assert result == pytest.approx(delta, rel=1e-6) if eps > 0 else result <= delta


@pytest.mark.expensive
@given(
    st.lists(st.integers(0, 8), min_size=3, max_size=3).filter(any),
    st.lists(st.integers(0, 8), min_size=2, max_size=2).filter(any),
    st.floats(0.2, 3.0),
    st.floats(0.01, 2.0),
)
def test_neighbours_of_divided_rows_lose_no_more_than_is_charged(rise, fall, unit, eps):
    """Parts that rise, and those that fall, by a row each at most: two unit releases dominate."""
    farthest = max(sum(rise), sum(fall))
    delta = delta_of([*rise, *(-step for step in fall)], unit * farthest, eps)
    assert delta <= delta_of((1, -1), unit, eps) + 1e-9


@pytest.mark.product
@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize(
    ("name", "guarantee"),
    [("geometric", PureDP(0.8)), ("gaussian", ZCDP(0.2)), ("geometric", PureDP(6.0))],
)
def test_the_noise_has_the_law_of_the_plan(name, guarantee, relation):
    strategy = COUNTS[name]()
    g = grouping(parse_sides("~ g", BOOK).described[0])
    size = 4
    plan = strategy.plan(facts(1, relation), guarantee)
    private = private_cells("~ g", {"g": ["u"] * 5 + ["v", None]}, BOOK, (Tally((g,)),))
    entropy = seeded(4)
    draws = []
    for _ in range(1500):
        statistic = strategy.measure(private, plan)
        draws.append(strategy.release(statistic, plan, entropy).values - [5, 1, 0, 1])
    noise = np.array(draws)
    runs = noise.size
    # Six sds of a mean, and of a mean square of kurtosis at most 6 + 1/variance: about 1e-8.
    assert abs(noise.mean()) <= 6 * plan.noise_sd / math.sqrt(runs)
    spread = math.sqrt((5 + 1 / plan.noise_sd**2) / runs)
    assert abs((noise**2).mean() / plan.noise_sd**2 - 1) <= 6 * spread
    assert len(draws[0]) == size
    if name == "geometric":
        assert (noise == np.rint(noise)).all()


@pytest.mark.parametrize("name", COUNTS)
def test_a_huge_budget_gives_the_exact_counts(name):
    g = grouping(parse_sides("~ g", BOOK).described[0])
    guarantee = ZCDP(1e9)
    strategy = COUNTS[name]()
    plan = strategy.plan(facts(), guarantee)
    private = private_cells("~ g", {"g": ["u", "w", "w", "else"]}, BOOK, (Tally((g,)),))
    release = strategy.release(strategy.measure(private, plan), plan, seeded(0))
    assert release.values == pytest.approx([1, 0, 2, 1], abs=1e-3)
    assert release.rows == 4


@pytest.mark.parametrize("name", COUNTS)
def test_tiny_budgets_are_planned_or_refused(name):
    g = grouping(parse_sides("~ g", BOOK).described[0])
    private = private_cells("~ g", {"g": ["u"]}, BOOK, (Tally((g,)),))
    strategy = COUNTS[name]()
    plan = strategy.plan(facts(), ZCDP(1e-18))
    release = strategy.release(strategy.measure(private, plan), plan, seeded(0))
    assert np.isfinite(release.values).all()
    with pytest.raises(BudgetError, match="beyond what is meaningful"):
        strategy.plan(facts(), ZCDP(1e-40))


def test_rows_have_as_many_units_as_the_noise_leaves_room_for():
    assert units_of(1.0) == units_of(2.0**15) == 2**40
    assert units_of(2.0**20) == 2**35
    with pytest.raises(BudgetError):
        units_of(2.0**41)


def chosen(mechanism, facts, guarantee):
    return choose_strategy(mechanism, COUNTS, partial(auto_counts, facts, guarantee))


@pytest.mark.parametrize(
    ("guarantee", "tables", "name"),
    [
        (PureDP(1.0), 50, "geometric"),
        (ApproxDP(1.0, 1e-6), 1, "geometric"),
        (ApproxDP(1.0, 1e-6), 50, "gaussian"),
        (ZCDP(0.1), 1, "gaussian"),
    ],
)
def test_the_quieter_noise_is_chosen(guarantee, tables, name):
    choice = chosen("auto", facts(tables), guarantee)
    assert choice.strategy.info.name == name
    counters = [make() for make in COUNTS.values()]
    plans = [
        counter.plan(facts(tables), guarantee).noise_sd
        for counter in counters
        if not (isinstance(counter, Gaussian) and isinstance(guarantee, PureDP))
    ]
    assert choice.strategy.plan(facts(tables), guarantee).noise_sd == min(plans)
    assert choice.reason


def test_strategies_are_named_or_given():
    mechanism = Geometric()
    assert chosen(mechanism, facts(), PureDP(1.0)).strategy is mechanism
    with pytest.raises(ArgumentError, match="'geometric', 'gaussian'"):
        chosen("laplace", facts(), PureDP(1.0))
    for wrong in (Geometric, 3, None):
        with pytest.raises(ArgumentError, match="expected a name or an instance"):
            chosen(wrong, facts(), PureDP(1.0))
