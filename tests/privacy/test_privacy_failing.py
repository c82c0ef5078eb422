"""Releases with a delta of their own: what they cost, alone, in plans and in ledgers.

The worst pair of laws of such a release tells all with probability delta and is randomised response
else, so that the value of a strategy is exact, as in `test_privacy_filters`.
"""

import math

import numpy as np
import pytest
from scipy.special import expit
from test_privacy_filters import largest, normal, shortfall

from dpmodels.errors import BudgetError, LedgerError
from dpmodels.privacy import (
    ZCDP,
    ApproxDP,
    ApproxEvent,
    GaussianEvent,
    LaplaceEvent,
    Ledger,
    PureDP,
    PureEvent,
    gaussian_eps,
    group_events,
    total_eps,
    total_rho,
)
from dpmodels.privacy.calibrate import hockey_stick
from dpmodels.privacy.compose import Totals
from dpmodels.privacy.filters import Filter

OWN = ApproxDP(1.0, 1e-4)


def value(eps, answers, last):
    """The delta at eps of responses (eps, delta) one after another, and a last shortfall."""
    losses, mass, chance_failed = np.zeros(1), np.ones(1), 0.0
    for answer, delta in answers:
        chance_failed += mass.sum() * delta
        chance = expit(answer)
        losses = np.concatenate([losses + answer, losses - answer])
        mass = (1 - delta) * np.concatenate([chance * mass, (1 - chance) * mass])
    return chance_failed + float(mass @ last(eps - losses))


@pytest.mark.parametrize("kind", ["", "gaussian", "zcdp"])
@pytest.mark.parametrize("first", [(0.3, 4e-5), (0.6, 9e-5), (1e-3, 1e-9)])
def test_no_release_after_one_that_fails_exceeds_the_guarantee(kind, first):
    ledger_filter = Filter(OWN, kind=kind)
    after = ledger_filter.plus(Totals(), [ApproxEvent(*first)])
    assert ledger_filter.holds(after)
    mu, pure = largest(ledger_filter, after, normal), largest(ledger_filter, after, PureEvent)
    assert mu > 0
    worst = value(OWN.eps, [first], lambda eps: hockey_stick(eps, 1 / mu))
    assert worst <= OWN.delta * (1 + 1e-6)
    worst = value(OWN.eps, [first, (pure, 0.0)], shortfall)
    assert worst <= OWN.delta * (1 + 1e-6)


def test_noise_for_all_of_delta_would_exceed_it():
    """What the ledger would do if it took no delta off: the value above tells."""
    first = (0.01, 8e-5)
    forgetful = Filter(OWN)
    mu = largest(forgetful, forgetful.plus(Totals(), [PureEvent(first[0])]), normal)
    assert value(OWN.eps, [first], lambda eps: hockey_stick(eps, 1 / mu)) > OWN.delta * 1.5


def test_deltas_add_up_and_all_of_it_may_be_spent():
    ledger = Ledger(budget=OWN)
    for _ in range(4):
        ledger.charge([ApproxEvent(0.1, 1.25e-5, count=2)], adjacency="replace")
    assert ledger.spent.amount == pytest.approx(0.8)
    with pytest.raises(
        LedgerError, match=r"the remaining delta is 0 of 0.0001; write a smaller delta"
    ):
        ledger.charge([ApproxEvent(0.01, 1e-9)], adjacency="replace")
    ledger.charge([LaplaceEvent(5.0)], adjacency="replace")
    with pytest.raises(LedgerError, match="spent all of delta"):
        ledger.charge([GaussianEvent(1e6)], adjacency="replace")


def test_what_fails_comes_before_gaussian_noise():
    ledger = Ledger(budget=OWN)
    ledger.charge([GaussianEvent(50.0)], adjacency="replace")
    before = ledger.describe()
    with pytest.raises(LedgerError, match="before any with Gaussian noise"):
        ledger.charge([ApproxEvent(0.1, 1e-9)], adjacency="replace", label="towns")
    assert ledger.describe() == before


@pytest.mark.parametrize("value", [PureDP(5.0), ZCDP(5.0)])
def test_a_ledger_without_delta_refuses_it(value):
    ledger = Ledger(budget=value)
    with pytest.raises(LedgerError, match=r"this ledger has .* and no delta"):
        ledger.charge([ApproxEvent(0.1, 1e-9)], adjacency="replace")
    assert math.isinf(ledger.preview([ApproxEvent(0.1, 1e-9)]).amount)


def test_a_plan_is_priced_with_what_is_left_of_delta():
    events = (ApproxEvent(0.2, 2e-5, count=2), GaussianEvent(8.0))
    result = total_eps(events, 1e-4)
    assert result <= 0.4 + gaussian_eps(6e-5, 8.0) + 1e-9
    reported = [(0.2, 2e-5)] * 2
    exact = value(result, reported, lambda eps: hockey_stick(eps, 8.0))
    # The sum of deltas for the chance that any fails, and the coarsening of losses: 1 in 1000.
    assert 0.999 * 1e-4 < exact <= 1e-4
    assert total_eps(events, 3e-5) == math.inf
    assert total_rho(events) == math.inf
    assert total_eps(events[:1], 4e-5) == pytest.approx(0.4)


def test_a_plan_as_the_first_charge_may_hold_one_that_fails():
    events = (ApproxEvent(0.3, 3e-5), GaussianEvent(12.0))
    ledger = Ledger(total_eps(events, 1e-4), 1e-4)
    ledger.charge(events, adjacency="replace")
    with pytest.raises(LedgerError):
        ledger.charge([ApproxEvent(1e-3, 1e-9)], adjacency="replace")


def test_a_group_pays_for_all_counts_of_a_release_as_one_step():
    (event,) = group_events([ApproxEvent(0.1, 1e-6, count=2)], 3)
    assert event.count == 2
    assert event.eps == pytest.approx(0.3)
    assert event.delta == pytest.approx(3 * math.exp(0.4) * 1e-6)


def test_shares_of_what_is_left_know_what_delta_is_taken():
    ledger = Ledger(budget=OWN)
    ledger.charge([ApproxEvent(0.2, 5e-5)], adjacency="replace")
    with_less, fails = ledger.forecast([[GaussianEvent(20.0)], [ApproxEvent(0.1, 1e-9)]])
    fresh = Ledger(budget=OWN).forecast([[GaussianEvent(20.0)]])[0]
    assert fresh.taken < with_less.taken < 1 < fails.taken


def test_a_void_charge_gives_its_delta_back():
    ledger = Ledger(budget=OWN)
    entry = ledger.charge([ApproxEvent(0.1, 9e-5)], adjacency="replace")
    ledger.void(entry, "the network failed")
    ledger.charge([ApproxEvent(0.1, 9e-5)], adjacency="replace")


def test_a_file_keeps_it(tmp_path):
    path = tmp_path / "study.ledger"
    Ledger.open(path, 1.0, 1e-4, new=True).charge([ApproxEvent(0.4, 6e-5)], adjacency="replace")
    again = Ledger.open(path)
    again.verify()
    assert again.entries[0].events == (ApproxEvent(0.4, 6e-5),)
    with pytest.raises(LedgerError, match="the remaining delta is 4e-05"):
        again.charge([ApproxEvent(0.1, 5e-5)], adjacency="replace")


@pytest.mark.parametrize(("eps", "delta"), [(0.0, 0.5), (1.0, 0.0), (1.0, 1.0), (1.0, math.nan)])
def test_a_senseless_delta_is_refused(eps, delta):
    with pytest.raises(BudgetError, match=r"^(eps|delta)="):
        ApproxEvent(eps, delta)
