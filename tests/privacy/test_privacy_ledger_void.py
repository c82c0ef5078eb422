"""Charges made void give back what they cost, and nothing that was chosen by what was seen since.

An analyst may charge a release, leave it unasked, see other answers, and then make it void or ask
it after all. By exact values, as in ``test_privacy_filters``: the better of two ways, at each
answer.
"""

import numpy as np
import pytest
from scipy.special import expit, ndtr

from dpmodels.errors import LedgerError
from dpmodels.privacy import (
    ApproxDP,
    BoundedRangeEvent,
    GaussianEvent,
    Ledger,
    PureEvent,
    gaussian_multiplier,
    total_eps,
)
from dpmodels.privacy.calibrate import hockey_stick

Z = np.linspace(-9, 9, 4001)
MASS = np.diff(ndtr(np.concatenate([[-np.inf], (Z[1:] + Z[:-1]) / 2, [np.inf]])))


def spend(ledger, *events):
    return ledger.charge(events, adjacency="replace")


def largest_mu(ledger):
    """The largest mu of Gaussian noise that is accepted."""
    fits, too_much = 0.0, 8.0
    eps = ledger.guarantee.eps
    for _ in range(40):
        tried = (fits + too_much) / 2
        if ledger.preview([GaussianEvent(1 / tried)]).amount <= eps:
            fits = tried
        else:
            too_much = tried
    return fits


def ways(guarantee, pure, part):
    """What is left after each way of the attack: of the first, and of the second beside `pure`."""
    mu = part / gaussian_multiplier(ApproxDP(guarantee.eps - pure, guarantee.delta))
    left = []
    for pair in (True, False):
        ledger = Ledger(budget=guarantee)
        unasked, response = spend(ledger, GaussianEvent(1e6)), spend(ledger, PureEvent(pure))
        mu = min(mu, largest_mu(ledger) * (1 - 1e-6))
        spend(ledger, GaussianEvent(1 / mu))
        for entry in (response, unasked) if pair else (unasked,):
            ledger.void(entry, "not asked")
        left.append(largest_mu(ledger))
        ledger.verify()
    return mu, *left


def after(losses, mu, eps):
    if mu > 1e-9:
        return hockey_stick(eps - losses, 1 / mu)
    return -np.expm1(np.minimum(eps - losses, 0))


@pytest.mark.expensive
@pytest.mark.parametrize("guarantee", [ApproxDP(1.0, 1e-6), ApproxDP(3.0, 1e-6), ApproxDP(1, 1e-3)])
def test_what_is_void_leaves_no_choice_between_rules(guarantee):
    eps, pure = guarantee.eps, guarantee.eps / 2
    mu, first, second = ways(guarantee, pure, 0.7)
    losses, chance = mu * mu / 2 + mu * Z, expit(pure)
    reported = chance * after(losses + pure, second, eps) + (1 - chance) * after(
        losses - pure, second, eps
    )
    value = MASS @ np.maximum(after(losses, first, eps), reported)
    # The grid's masses are good to 1e-5 of the value.
    assert value <= guarantee.delta * (1 + 1e-4)


def test_the_filter_and_the_share_stay_when_a_charge_before_is_void():
    ledger = Ledger(eps=2.0, delta=1e-6)
    first = spend(ledger, GaussianEvent(50.0), PureEvent(0.01))
    spend(ledger, PureEvent(0.5))
    ledger.void(first, "not asked")
    after = spend(ledger, GaussianEvent(20.0)).totals
    # Another charge came after it: it stays spent.
    assert (after.gaussian, after.share, after.pure) == (False, 0, 0.51)
    assert after.rho == pytest.approx((0.01**2 + 1 / 50**2 + 0.5**2 + 1 / 20**2) / 2)
    ledger.verify()


def test_after_a_void_plan_only_pure_releases_are_added():
    plan = [BoundedRangeEvent(0.2, count=30), GaussianEvent(6.0)]
    ledger = Ledger(eps=total_eps(plan, 1e-6) + 0.001, delta=1e-6, rule="gaussian")
    first = spend(ledger, *plan)
    assert "plan" in ledger.describe()
    spend(ledger, PureEvent(0.001))
    ledger.void(first, "not asked")
    with pytest.raises(LedgerError):
        spend(ledger, GaussianEvent(30.0))
    with pytest.raises(LedgerError):
        spend(ledger, PureEvent(0.001))
    ledger.verify()


def test_a_void_charge_with_none_after_it_leaves_the_ledger_as_it_was():
    ledger = Ledger(eps=2.0, delta=1e-6)
    first = spend(ledger, GaussianEvent(9.0))
    ledger.void(first, "not asked")
    assert ledger.spent.amount == 0
    again = spend(ledger, PureEvent(0.1))
    before = ledger.spent
    ledger.void(spend(ledger, GaussianEvent(9.0)), "not asked")
    assert ledger.spent == before
    ledger.void(again, "not asked")
    assert ledger.spent == before
    ledger = Ledger(eps=2.0, delta=1e-6)
    ledger.void(spend(ledger, GaussianEvent(9.0)), "not asked")
    spend(ledger, PureEvent(1.0))
    assert spend(ledger, GaussianEvent(gaussian_multiplier(ApproxDP(1.0, 1e-6))))
    ledger.verify()
