"""What charges would come to is what they come to, and shares are of what the ledger counts."""

import pytest

from dpmodels.errors import LedgerError
from dpmodels.privacy import ZCDP, ApproxDP, GaussianEvent, LaplaceEvent, Ledger, PureDP, PureEvent
from dpmodels.privacy.calibrate import gaussian_multiplier
from dpmodels.privacy.filters import Filter

WHOLES = [PureDP(2.0), ZCDP(0.05), ApproxDP(2.0, 1e-6)]
CHARGES = [
    [PureEvent(0.1)],
    [LaplaceEvent(20.0, count=2)],
    [GaussianEvent(9.0)],
    [PureEvent(0.05), GaussianEvent(12.0)],
    [PureEvent(5.0)],
    [GaussianEvent(6.0, count=2)],
    [LaplaceEvent(50.0)],
]


@pytest.mark.parametrize("rule", [None, "zcdp", "gaussian"])
@pytest.mark.parametrize("total", WHOLES, ids=str)
def test_a_forecast_is_what_happens(total, rule):
    words = {"rule": rule} if isinstance(total, ApproxDP) else {}
    ledger = Ledger(budget=total, **words)
    expected = ledger.forecast(CHARGES)
    assert not ledger.entries
    results = []
    for events in CHARGES:
        try:
            results.append((True, ledger.charge(events, adjacency="replace").spent_after))
        except LedgerError:
            results.append((False, ledger.preview(events)))
    assert [(value.fits, value.total) for value in expected] == results
    assert {value.fits for value in expected} == {True, False}
    assert all(value.fits for value in expected if value.taken <= 1)


def taken(ledger, *events):
    return ledger.forecast([events])[0].taken


def test_a_share_is_of_eps_of_rho_or_of_mu_squared():
    pure = Ledger(eps=2.0)
    pure.charge([PureEvent(1.0)], adjacency="replace")
    assert taken(pure, PureEvent(0.25)) == 0.25
    concentrated = Ledger(budget=ZCDP(0.5))
    concentrated.charge([GaussianEvent(2.0)], adjacency="replace")  # rho = 1/8
    assert taken(concentrated, GaussianEvent(4.0)) == pytest.approx(1 / 12)
    multiplier = gaussian_multiplier(ApproxDP(1.0, 1e-6))
    normal = Ledger(eps=1.0, delta=1e-6)
    assert taken(normal, GaussianEvent(multiplier * 2)) == pytest.approx(1 / 4, rel=1e-8)
    normal.charge([GaussianEvent(multiplier * 2)], adjacency="replace")
    assert taken(normal, GaussianEvent(multiplier * 2)) == pytest.approx(1 / 3, rel=1e-8)


def test_with_a_delta_pure_releases_take_of_eps_until_others_come():
    ledger = Ledger(eps=1.0, delta=1e-6)
    assert taken(ledger, PureEvent(0.25)) == 0.25
    ledger.charge([PureEvent(0.25)], adjacency="replace")
    assert taken(ledger, PureEvent(0.25)) == pytest.approx(1 / 3)
    rest = gaussian_multiplier(ApproxDP(0.75, 1e-6))
    assert taken(ledger, GaussianEvent(rest * 2)) == pytest.approx(1 / 4, rel=1e-8)
    ledger.charge([GaussianEvent(rest * 2)], adjacency="replace")
    assert 0 < taken(ledger, PureEvent(0.05)) < 1 < taken(ledger, PureEvent(0.25))
    mask = Ledger(eps=1.0, delta=1e-6, pure=0.5)
    mask.charge([GaussianEvent(rest * 3)], adjacency="replace")
    assert taken(mask, PureEvent(0.25)) == 0.5


def test_under_the_rule_for_rho_all_releases_take_of_rho_while_there_is_any():
    """A sum of eps that fits could leave no rho to what comes after it."""
    ledger = Ledger(eps=2.0, delta=1e-6, rule="zcdp")
    assert taken(ledger, PureEvent(0.1)) == pytest.approx(taken(ledger, PureEvent(0.2)) / 4)
    (large,) = ledger.forecast([[PureEvent(0.5)]])
    assert large.fits
    assert large.taken > 1
    ledger.charge([PureEvent(0.5)], adjacency="replace")
    assert taken(ledger, PureEvent(0.5)) == pytest.approx(1 / 3)


def test_what_is_refused_takes_more_than_all(monkeypatch):
    monkeypatch.setattr(Filter, "taken", lambda *_: 0.5)
    first, wide = (Ledger(eps=1.0).forecast([[PureEvent(eps)]])[0] for eps in (1.0, 1.1))
    assert (first.fits, first.taken) == (True, 0.5)
    assert not wide.fits
    assert wide.taken > 1
