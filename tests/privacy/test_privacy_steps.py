"""The rule "steps": its totals ignore the order of charges, and no analyst exceeds it."""

import itertools
import math
import random

import pytest
from adaptive_attacks import Attack, Move
from test_privacy_failing import value
from test_privacy_filters import largest, normal, shortfall

from dpmodels.errors import LedgerError
from dpmodels.privacy import (
    ApproxDP,
    ApproxEvent,
    BoundedRangeEvent,
    GaussianEvent,
    LaplaceEvent,
    Ledger,
    PureEvent,
    gaussian_multiplier,
)
from dpmodels.privacy.calibrate import hockey_stick
from dpmodels.privacy.compose import Totals
from dpmodels.privacy.filters import Filter
from dpmodels.privacy.steps import deltas, price, squares_eps

GUARANTEES = [ApproxDP(0.5, 0.05), ApproxDP(1.0, 1e-6), ApproxDP(3.0, 1e-6), ApproxDP(0.1, 1e-3)]


def charged(budget_filter, events):
    totals = Totals()
    for event in events:
        totals = budget_filter.plus(totals, [event])
    return totals


def random_event(draw, eps):
    size = eps * draw.choice([0.01, 0.1, 0.3, 0.5]) * draw.random()
    kinds = [
        PureEvent,
        lambda size: LaplaceEvent(4 / size, count=2),
        BoundedRangeEvent,
        lambda size: GaussianEvent(gaussian_multiplier(ApproxDP(size, 1e-6))),
    ]
    return draw.choice(kinds)(size)


@pytest.mark.parametrize("share", [0.0, 0.3])
@pytest.mark.parametrize("guarantee", GUARANTEES)
def test_neither_the_total_nor_what_fits_depends_on_the_order(guarantee, share):
    budget_filter, draw = Filter(guarantee, share * guarantee.eps, "steps"), random.Random(1)
    for _ in range(10):
        events = [random_event(draw, guarantee.eps) for _ in range(4)]
        after = [charged(budget_filter, order) for order in itertools.permutations(events)]
        totals = [budget_filter.spent(totals).amount for totals in after]
        assert len({budget_filter.holds(totals) for totals in after}) == 1
        if math.isfinite(totals[0]):
            assert totals == pytest.approx([totals[0]] * len(totals), rel=1e-12)


@pytest.mark.parametrize("share", [0.0, 0.3])
@pytest.mark.parametrize("guarantee", GUARANTEES)
def test_the_total_is_within_the_budget_exactly_where_charges_are_accepted(guarantee, share):
    budget_filter, draw = Filter(guarantee, share * guarantee.eps, "steps"), random.Random(2)
    for _ in range(60):
        totals = Totals()
        for _ in range(12):
            event = random_event(draw, guarantee.eps)
            after = budget_filter.plus(totals, [event])
            fits = budget_filter.holds(after)
            assert fits == (budget_filter.spent(after).amount <= guarantee.eps * (1 + 1e-12))
            assert fits == (budget_filter.taken(totals, after) <= 1 + 1e-12)
            totals = after if fits else totals


@pytest.mark.parametrize("share", [0.0, 0.3])
@pytest.mark.parametrize("failed", [None, 1e-8, 1e-7])
@pytest.mark.parametrize("first_fails", [False, True])
def test_the_deltas_of_all_rules_add_up_to_no_more_than_that_of_the_ledger(
    share, failed, first_fails
):
    guarantee = ApproxDP(1.0, 1e-6)
    budget_filter = Filter(guarantee, share, "steps")
    before = [PureEvent(0.1)] if not first_fails else []
    totals = charged(budget_filter, [*before, *([ApproxEvent(0.1, failed)] if failed else [])])
    main, step = deltas(guarantee, totals)
    reserved = 0.8 * guarantee.delta if share == 0 and not (first_fails and failed) else 0.0
    if failed and reserved:
        assert main == 0
        main = reserved  # Paths without a failing release have it
    assert main + 32 * step + totals.aside <= guarantee.delta * (1 + 1e-12)


@pytest.mark.parametrize("guarantee", GUARANTEES[:2])
def test_no_analyst_who_goes_back_and_forth_exceeds_the_guarantee(guarantee):
    moves = (Move("gaussian", 0.5), Move("pure", 0.25), Move("gaussian", 0.9))
    attack = Attack(Filter(guarantee, kind="steps"), moves)
    result = attack.value(3)
    assert 0.5 * guarantee.delta < result <= guarantee.delta * (1 + 1e-5)


@pytest.mark.parametrize("first", [(0.3, 4e-5), (0.6, 9e-5), (1e-3, 1e-9)])
def test_no_release_after_one_that_fails_exceeds_the_guarantee(first):
    ledger_filter = Filter(ApproxDP(1.0, 1e-4), kind="steps")
    after = ledger_filter.plus(Totals(), [ApproxEvent(*first)])
    assert ledger_filter.holds(after)
    mu, pure = largest(ledger_filter, after, normal), largest(ledger_filter, after, PureEvent)
    assert mu > 0
    result = value(1.0, [first], lambda eps: hockey_stick(eps, 1 / mu))
    assert result <= 1e-4 * (1 + 1e-6)
    assert value(1.0, [first, (pure, 0.0)], shortfall) <= 1e-4 * (1 + 1e-6)


def test_a_release_that_fails_is_refused_after_gaussian_noise_and_a_fifth_of_delta():
    ledger = Ledger(1.0, 1e-6, rule="steps")
    ledger.charge([PureEvent(0.1)], adjacency="replace")
    with pytest.raises(LedgerError, match="the remaining delta is 2e-07"):
        ledger.charge([ApproxEvent(0.1, 3e-7)], adjacency="replace")
    ledger.charge([ApproxEvent(0.1, 1e-7)], adjacency="replace")
    ledger.charge([GaussianEvent(50.0)], adjacency="replace")
    with pytest.raises(LedgerError, match="before any with Gaussian noise"):
        ledger.charge([ApproxEvent(0.1, 1e-9)], adjacency="replace")


def test_pure_releases_alone_spend_all_of_eps_and_a_first_charge_all_of_both():
    ledger = Ledger(1.0, 1e-6, rule="steps")
    for eps in (0.3, 0.7):
        ledger.charge([PureEvent(eps)], adjacency="replace")
    assert ledger.spent.amount == pytest.approx(1.0)
    total = Ledger(1.0, 1e-6, rule="steps")
    total.charge([GaussianEvent(gaussian_multiplier(ApproxDP(1.0, 1e-6)))], adjacency="replace")
    assert total.spent.amount == pytest.approx(1.0)
    assert not total.accepts([GaussianEvent(1e3)])


def test_gaussian_noise_leaves_a_declared_share():
    ledger_filter = Filter(ApproxDP(1.0, 1e-6), 0.4, "steps")
    mu = largest(ledger_filter, Totals(), normal)
    after = ledger_filter.plus(Totals(), [normal(mu)])
    assert largest(ledger_filter, after, PureEvent) == pytest.approx(0.4)


def test_what_releases_may_fail_by_is_taken_off_the_delta_of_the_steps():
    budget_filter = Filter(ApproxDP(1.0, 1e-6), 0.0, "steps")
    totals = charged(budget_filter, [PureEvent(0.1), ApproxEvent(0.1, 1e-7)])
    assert totals.aside > 0
    main, step = deltas(ApproxDP(1.0, 1e-6), totals)
    assert main == 0
    assert step == pytest.approx((0.2e-6 - totals.aside) / 32)


@pytest.mark.parametrize("pure", [0.1, 0.3, 0.5, 0.7])
def test_a_price_by_steps_is_the_pure_eps_up_to_the_next_step_and_the_normal_one(pure):
    guarantee = ApproxDP(1.0, 1e-6)
    totals = charged(Filter(guarantee, 0.0, "steps"), [PureEvent(pure), GaussianEvent(50.0)])
    amount, rule = price(guarantee, totals)
    _, step_delta = deltas(guarantee, totals)
    rounded_up = math.ceil(32 * pure) / 32
    assert rule == "steps"
    assert amount == pytest.approx(rounded_up + squares_eps(step_delta, totals.normal), rel=1e-9)
