"""A ridge drawn by held-out rows: its law by brute force, what is charged, which one wins."""

import itertools
import math
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import pytest
from scipy.special import log_ndtr, logsumexp

import dpmodels as dp
from dpmodels.errors import ArgumentError, BudgetError
from dpmodels.mechanisms import tuning as tuned_module
from dpmodels.mechanisms.protocol import RegressionFacts, RegressionPlan, coefficient_terms, passes
from dpmodels.mechanisms.regression import Objective, Output
from dpmodels.mechanisms.tuning import Tuned, in_codebook, spread
from dpmodels.models.linear import linear
from dpmodels.noise import seeded
from dpmodels.postprocess.units import in_persons
from dpmodels.privacy import (
    ZCDP,
    ApproxDP,
    ApproxEvent,
    GaussianEvent,
    PureDP,
    PureEvent,
    adjacency,
    group_events,
    planned_for_group,
    total_eps,
    total_rho,
)
from dpmodels.released import CoefficientsRelease, MechanismInfo
from dpmodels.request import Request
from dpmodels.statistics.gradient import MISS
from dpmodels.statistics.losses import Huber, Logistic, Poisson

BOOK = dp.codebook(a=(-1, 1), b=(0, 4), y=["no", "yes"], c=(0, 9))
BUDGETS = (PureDP(1.0), ApproxDP(1.0, 1e-6), ApproxDP(8.0, 1e-3), ZCDP(0.1))
RELATIONS = ("replace", "add-remove")
LOSSES = (Logistic(), Huber())
RIDGES = (None, 300.0, 3000.0)
# Corners of both levels, a row in the middle, and an incomplete one.
ROWS = [
    *({"a": a, "b": 2 - 2 * a, "y": y} for a in (-1, 1) for y in ("no", "yes")),
    {"a": 1, "b": 4, "y": "no"},
    {"a": 0.2, "b": 1.7, "y": "yes"},
    {"a": math.nan, "b": 1.0, "y": "no"},
]


def table(size=4000, seed=0):
    rng = np.random.default_rng(seed)
    a, b = rng.uniform(-1, 1, size), rng.uniform(0, 4, size)
    yes = rng.random(size) < 1 / (1 + np.exp(-(0.5 + 1.5 * a - 0.4 * b)))
    return {"a": a, "b": b, "y": np.where(yes, "yes", "no")}


def together(rows):
    return {name: [row[name] for row in rows] for name in ("a", "b", "y")}


def bound(data, loss=None, relation="replace", response="y"):
    words = {"scale": "range", "row_norm": None}
    equations = linear(
        Request("glm", f"{response} ~ a + b", BOOK, ZCDP(1.0), adjacency(relation), words)
    )
    facts = RegressionFacts(equations.predictors, loss or Logistic(), adjacency(relation))
    return equations.design.bind(data), facts


def candidates(kind=Objective, **words):
    return Tuned(tuple(kind(ridge=ridge, **words) for ridge in RIDGES))


@dataclass(frozen=True)
class Known:
    """A candidate that reads no row: its coefficients are public."""

    info = MechanismInfo("known", "0-DP", "0", "none", "exact", "a test")

    point: tuple[float, ...]

    def plan(self, facts, guarantee):
        event = PureEvent(1.0) if isinstance(guarantee, PureDP) else GaussianEvent(20.0)
        return RegressionPlan(guarantee, (event,), facts, {"ridge": 1.0})

    def release(self, statistic, plan, entropy):
        nothing = {"gradient": None, "gradient_sd": math.nan, "curvature": None}
        terms = {**coefficient_terms(self.info, plan, statistic), "coefficient_sd": math.nan}
        return CoefficientsRelease(coefficients=np.array(self.point), **nothing, **terms)


# Candidates that are far apart, and two that are alike.
POINTS = (
    ((3.0, 8.0, -2.0), (-3.0, -8.0, 2.0), (0.0, 0.0, 0.0)),
    ((0.1, 0.4, -0.2), (0.1, 0.3, -0.2)),
)


@pytest.fixture
def drawn(monkeypatch):
    """Totals and unit of the draw, all rows being held out."""
    draws = []

    def draw(levels, unit, entropy):
        draws.append((np.array(levels, dtype=float), float(unit)))
        return 0

    monkeypatch.setattr(tuned_module, "draw_finite", draw)
    monkeypatch.setattr(tuned_module, "FITTED", 0)

    def found(data, points, loss, relation, guarantee):
        strategy = Tuned(tuple(map(Known, points)))
        design, facts = bound(data, loss, relation)
        plan = strategy.plan(facts, guarantee)
        strategy.release(strategy.measure(design, plan), plan, seeded(1))
        return (*draws.pop(), plan)

    return found


def log_law(misses, rows, unit):
    """The log law of the draw: a mixture over the coins of all rows, of which 1/4 judge."""
    chances = []
    for sides in itertools.product((0, 1), repeat=len(rows)):
        misses_in_sample = sum(
            (misses[row] for row, is_sampled in zip(rows, sides, strict=True) if is_sampled),
            0 * misses[0],
        )
        chance = math.prod(0.25 if is_sampled else 0.75 for is_sampled in sides)
        chances.append(
            math.log(chance) - unit * misses_in_sample - logsumexp(-unit * misses_in_sample)
        )
    return logsumexp(chances, axis=0)


def worst(own, unit, relation, *, law):
    """The largest privacy loss over all neighbours of up to three rows."""
    losses = [0.0]
    for base in itertools.combinations_with_replacement(range(len(own)), 2):
        laws = [law(own, [*base, row], unit) for row in range(len(own))]
        if relation == "add-remove":
            without = law(own, [*base], unit)
            losses += [float(np.abs(law - without).max()) for law in laws]
        else:
            pairs = itertools.combinations(laws, 2)
            losses += [float(np.abs(left - two).max()) for left, two in pairs]
    return max(losses)


def held_law(misses, rows, unit):
    """The same where the coins are known, and all rows judge."""
    total_misses = sum((misses[row] for row in rows), 0 * misses[0])
    return -unit * total_misses - logsumexp(-unit * total_misses)


@pytest.mark.product
@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize(
    ("loss", "points"),
    [(Logistic(), POINTS[0]), (Logistic(), POINTS[1]), (Huber(), POINTS[0])],
    ids=("far", "alike", "labels"),
)
def test_no_neighbour_moves_the_draw_by_more_than_its_range(drawn, loss, points, relation):
    guarantee = PureDP(2.5)
    draws = [drawn(together([row]), points, loss, relation, guarantee) for row in ROWS]
    misses, unit, allowed = [draw[0] for draw in draws], draws[0][1], draws[0][2].trials.range
    assert allowed == pytest.approx(1.0)
    misses_of_three, _, _ = drawn(together(ROWS[:3]), points, loss, relation, guarantee)
    assert (misses_of_three == misses[0] + misses[1] + misses[2]).all()
    assert worst(misses, unit, relation, law=log_law) <= allowed
    largest = worst(misses, unit, relation, law=held_law)
    assert largest <= allowed
    if points is POINTS[0]:
        # Not a bound that is never reached: with a third of the noise it breaks.
        assert worst(misses, 3 * unit, relation, law=held_law) > allowed


@pytest.mark.parametrize("points", POINTS)
def test_misses_are_held_where_no_row_reaches(points):
    design, facts = bound(table(500))
    rows = passes(design, facts)
    limit = math.ceil(8 / 27 * spread(np.array(points), facts.predictors) * MISS) + 2
    clipped, _ = rows.misses(np.array(points), min(limit, MISS + 2)).cross()
    free, _ = rows.misses(np.array(points), 2 * MISS).cross()
    assert (clipped == free).all()
    assert clipped.min() >= 0
    if limit < MISS:
        cut, _ = rows.misses(np.array(points), limit // 8).cross()
        assert (cut < free).any()


def test_a_rows_misses_do_not_depend_on_where_it_stands():
    data, points = table(777), np.array(POINTS[0])
    turned = {name: values[::-1] for name, values in data.items()}
    first, two = (
        passes(*bound(columns)).misses(points, MISS).cross()[0] for columns in (data, turned)
    )
    assert (first == two).all()


def test_candidates_that_are_alike_are_told_apart_by_less_noise(drawn):
    distant, close = (
        drawn(table(8), points, Logistic(), "replace", PureDP(1.0))[1] for points in POINTS
    )
    assert close > 10 * distant


def spent(events, guarantee):
    if isinstance(guarantee, ZCDP):
        return total_rho(events) / guarantee.rho
    return total_eps(events, getattr(guarantee, "delta", 0.0)) / guarantee.eps


STRATEGIES = (
    candidates(),
    candidates(inference=False),
    candidates(Output),
)


@pytest.mark.parametrize("places", [1, 4])
@pytest.mark.parametrize("guarantee", BUDGETS)
@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: loss.name)
@pytest.mark.parametrize("strategy", STRATEGIES, ids=("objective", "without", "output"))
def test_all_of_it_costs_what_is_asked_and_no_more(strategy, loss, guarantee, places):
    _, facts = bound(table(4), loss)
    plan = planned_for_group(
        partial(strategy.plan, facts), lambda fit: fit.events, guarantee, places
    )
    events = group_events(plan.events, places)
    assert spent(events, guarantee) <= 1 + 1e-9
    # Only where eps and delta are divided for a group is less spent than asked.
    assert spent(events, guarantee) > (0.98 if places == 1 else 0.2)
    trial = spent(plan.trials.events, guarantee)
    assert trial < spent(plan.events, guarantee)


def test_trials_and_fits_share_eps_and_delta():
    """Where both add up, as under noise that is not Gaussian."""
    _, facts = bound(table(4))
    guarantee = ApproxDP(1.0, 1e-5)
    plan = candidates(inference=False).plan(facts, guarantee)
    failing = sum(event.delta for event in plan.events if isinstance(event, ApproxEvent))
    assert 0 < failing <= guarantee.delta
    assert 0.98 < spent(plan.events, guarantee) <= 1 + 1e-9


@pytest.mark.parametrize("guarantee", BUDGETS)
def test_the_draw_costs_no_more_than_the_trials_are_charged(guarantee):
    _, facts = bound(table(4))
    for strategy in STRATEGIES:
        trials = strategy.plan(facts, guarantee).trials
        normal = [event for event in trials.events if isinstance(event, GaussianEvent)]
        pure = [event.eps for event in trials.events if isinstance(event, PureEvent | ApproxEvent)]
        if trials.range > max(pure, default=0.0):
            # A coin of this range, half either way, is farther from fair than normal laws are.
            away = math.sqrt(sum(noise.count / noise.multiplier**2 for noise in normal))
            log_odds = log_ndtr(away / 2) - log_ndtr(-away / 2)
            assert trials.range / 2 <= log_odds


def test_every_candidate_is_planned_in_full():
    _, facts = bound(table(4))
    plan = candidates().plan(facts, PureDP(1.0))
    assert plan.events[0].eps == plan.trials.range == pytest.approx(0.4)
    assert [fit.scales["ridge"] for fit in plan.fits][1:] == list(RIDGES[1:])
    prices = [total_eps(fit.events, 0.0) for fit in plan.trials.fits]
    assert prices == pytest.approx([0.4 / 3] * 3)


def test_an_error_of_a_trial_says_whose_budget_it_is():
    _, facts = bound(table(4))
    with pytest.raises(BudgetError, match=r"tune:.*ridge=9 is too small"):
        Tuned((Objective(ridge=9.0), Objective(ridge=900.0))).plan(facts, PureDP(0.2))


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("guarantee", [PureDP(1e5), ApproxDP(1e4, 1e-6), ZCDP(1e8)])
def test_a_huge_budget_draws_the_candidate_that_foretells_best(relation, guarantee):
    design, facts = bound(table(), relation=relation)
    for ridges, best in (((1e5, 10.0, 1e4), 1), ((20.0, 1e6, 1e5), 0)):
        strategy = Tuned(tuple(Objective(inference=False, ridge=ridge) for ridge in ridges))
        plan = strategy.plan(facts, guarantee)
        release = strategy.release(strategy.measure(design, plan), plan, seeded(3))
        assert release.tuning.chosen == best
        assert release.ridge == ridges[best] == release.tuning.ridges[best]
        assert release.guarantee == guarantee
        assert release.events == plan.events
        assert (release.rows is None) == (relation == "add-remove")


@pytest.mark.expensive
def test_ridges_of_slots_are_those_of_persons_as_the_chosen_one_is():
    design, facts = bound(table())
    strategy = Tuned(tuple(Objective(inference=False, ridge=ridge) for ridge in (20.0, 1e6)))
    plan = strategy.plan(facts, PureDP(1e5))
    release = strategy.release(strategy.measure(design, plan), plan, seeded(3))
    persons = in_persons(release, 4)
    assert persons.tuning.ridges == (5.0, 2.5e5)
    assert persons.ridge == persons.tuning.ridges[persons.tuning.chosen]
    assert persons.tuning.told_apart == release.tuning.told_apart / 4


def test_the_fit_is_to_all_rows():
    design, facts = bound(table())
    strategy = Tuned(
        (Objective(inference=False, ridge=30.0), Objective(inference=False, ridge=1e5))
    )
    plan = strategy.plan(facts, PureDP(1e5))
    release = strategy.release(strategy.measure(design, plan), plan, seeded(3))
    alone = strategy.candidates[0]
    plan_alone = alone.plan(facts, PureDP(1e5))
    release_alone = alone.release(alone.measure(design, plan_alone), plan_alone, seeded(4))
    assert release.coefficients == pytest.approx(release_alone.coefficients, abs=0.02)


def test_released_coefficients_are_judged_as_the_result_has_them():
    rng = np.random.default_rng(0)
    x = 0.05 * rng.normal(size=(20_000, 2)) + [0.3, 2.5]
    yes = rng.random(20_000) < 1 / (1 + np.exp(-20 * (x[:, 0] - 0.3)))
    data = {"a": x[:, 0], "b": x[:, 1], "y": np.where(yes, "yes", "no")}
    with dp.simulation(seed=1):
        fit = dp.dp_glm("y ~ a + b", data, codebook=BOOK, eps=2.0, delta=1e-6)
    assert fit.release.ball is not None
    design, facts = bound(data)
    coefficients = in_codebook(fit.release, facts.predictors, design.scaling)
    assert fit.call.matrix @ coefficients == pytest.approx(np.array(fit.params_released), rel=1e-9)


def test_poisson_is_refused_and_a_card_says_what_is_tuned():
    _, facts = bound(table(4))
    with pytest.raises(ArgumentError, match="bounded"):
        candidates().plan(replace(facts, loss=Poisson(9.0, 6.0)), ZCDP(0.1))
    assert candidates().info.name == "objective, tuned"


def test_every_release_throws_coins_of_its_own(monkeypatch):
    monkeypatch.setattr(tuned_module, "FITTED", 192)
    coins = []
    monkeypatch.setattr(
        tuned_module, "draw_finite", lambda levels, *rest: coins.append(tuple(levels)) or 0
    )
    strategy = Tuned(tuple(map(Known, POINTS[0])))
    design, facts = bound(table(400))
    plan = strategy.plan(facts, PureDP(1.0))
    statistic, entropy = strategy.measure(design, plan), seeded(1)
    for _ in range(5):
        strategy.release(statistic, plan, entropy)
    assert len(set(coins)) == 5
