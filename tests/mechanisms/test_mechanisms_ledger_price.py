"""Candidates of "auto" are compared at their price on the ledger that will be charged."""

import math
from dataclasses import dataclass

import pytest

import dpmodels as dp
from dpmodels.mechanisms.choose import at_equal_price, price_reason, priced_on
from dpmodels.mechanisms.choose_counts import auto_counts
from dpmodels.mechanisms.protocol import CountFacts
from dpmodels.privacy import (
    ApproxDP,
    GaussianEvent,
    LaplaceEvent,
    Ledger,
    adjacency,
    gaussian_multiplier,
)

HALF = ApproxDP(0.5, 1e-6)


@dataclass(frozen=True)
class Planned:
    events: tuple


PURE = Planned((LaplaceEvent(2.0),))
GAUSSIAN = Planned((GaussianEvent(gaussian_multiplier(HALF)),))


def counted(ledger, guarantee=HALF):
    facts = CountFacts(1, 1, False, adjacency("replace"))
    with priced_on(ledger, 1):
        return auto_counts(facts, guarantee)


@pytest.mark.parametrize("ledger", [None, Ledger(2.0), Ledger(budget=dp.ZCDP(1.0))])
def test_without_eps_and_delta_noise_is_compared_as_it_is(ledger):
    with priced_on(ledger, 1):
        assert at_equal_price([3.0, 4.0], [PURE, GAUSSIAN]) == [3.0, 4.0]
    assert counted(ledger)[0] == "geometric"


@pytest.mark.parametrize("rule", [None, "steps"])
def test_noise_is_that_at_the_price_of_the_cheapest(rule):
    ledger = Ledger(4.0, 1e-6, rule=rule)
    prices = [ledger.fraction_of_budget(plan.events) for plan in (PURE, GAUSSIAN)]
    assert prices[0] == pytest.approx(0.125, rel=1e-9)
    assert prices[1] < 0.05
    with priced_on(ledger, 1):
        noises = at_equal_price([3.0, 4.0], [PURE, GAUSSIAN])
    assert noises == pytest.approx([3.0 * prices[0] / prices[1], 4.0])


@pytest.mark.parametrize("rule", [None, "steps"])
def test_a_small_part_of_a_budget_is_counted_with_gaussian_noise(rule):
    name, reason = counted(Ledger(4.0, 1e-6, rule=rule))
    assert name == "gaussian"
    assert reason.startswith(
        "it uses less of the ledger's budget: its noise in a released count has"
    )
    assert counted(Ledger(0.5, 1e-6, rule=rule))[0] == "geometric"


def test_earlier_charges_do_not_change_the_choice_unless_one_is_refused():
    ledger = Ledger(4.0, 1e-6, rule="steps")
    ledger.charge([LaplaceEvent(0.5)], adjacency="replace")
    assert counted(ledger)[0] == "gaussian"
    ledger.charge([LaplaceEvent(1 / 1.5)], adjacency="replace")
    assert not ledger.accepts(GAUSSIAN.events)
    assert counted(ledger)[0] == "geometric"


def test_a_group_of_rows_is_priced_as_a_group():
    ledger = Ledger(4.0, 1e-6, rule="steps")
    with priced_on(ledger, 4):
        noises = at_equal_price([1.0, 1.0], [PURE, GAUSSIAN])
    assert math.isfinite(noises[0])
    pure = ledger.fraction_of_budget([LaplaceEvent(2.0, count=4)])
    assert noises[0] == pytest.approx(
        pure / ledger.fraction_of_budget([GaussianEvent(GAUSSIAN.events[0].multiplier / 4)])
    )


def test_the_reason_is_said_only_of_more_noise():
    assert price_reason([1.0, 2.0], 0) == ""
    assert price_reason([1.0, 2.0], 1)
