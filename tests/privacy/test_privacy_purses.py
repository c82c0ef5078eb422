"""Purses: parts of a table's budget, charged in one transaction with it."""

import multiprocessing
import sqlite3

import pytest

from dpmodels.errors import ArgumentError, BudgetError, LedgerError
from dpmodels.privacy import ZCDP, ApproxDP, GaussianEvent, Ledger, PureEvent

PURE = {"eps": 1.0}
TERMS = [PURE, {"eps": 1.0, "delta": 1e-6, "rule": "steps"}, {"budget": ZCDP(0.5)}]


def charge(ledger, eps, label=""):
    return ledger.charge([PureEvent(eps)], adjacency="replace", label=label)


@pytest.mark.parametrize("terms", TERMS)
def test_a_charge_counts_in_the_purse_and_in_the_table(terms):
    ledger = Ledger(**terms)
    ledger.add_purse("ann", 0.4)
    ledger.add_purse("bob", 0.4)
    charge(ledger.purse("ann"), 0.1, "ages")
    assert ledger.purse("ann").charges == ledger.charges == 1
    assert ledger.purse("ann").spent.amount == pytest.approx(ledger.spent.amount, rel=1e-6)
    assert ledger.purse("bob").spent.amount == 0
    assert list(ledger.purse("ann").register()["label"]) == ["ages"]
    assert not len(ledger.purse("bob").register())
    ledger.verify()


@pytest.mark.parametrize("terms", TERMS)
def test_a_charge_of_a_purse_states_what_the_purse_has_spent(terms, tmp_path):
    ledger = Ledger.open(tmp_path / "table.ledger", new=True, **terms)
    for name in ("ann", "bob"):
        ledger.add_purse(name, 0.4)
    charge(ledger.purse("bob"), 0.3)
    purse = ledger.purse("ann")
    entry = charge(purse, 0.1)
    assert entry.spent_after == purse.spent
    assert entry.spent_after.amount < ledger.spent.amount
    assert entry == purse.entries[0]
    purse.released(entry, "0" * 64)
    ledger.verify()


def test_a_purse_larger_than_the_table_is_refused():
    ledger = Ledger(eps=1.0)
    with pytest.raises(BudgetError, match=r"at most the table's total, eps = 1"):
        ledger.add_purse("ann", 1.5)
    for amount in (0, -1, float("nan"), "much"):
        with pytest.raises(BudgetError):
            ledger.add_purse("ann", amount)
    with pytest.raises(ArgumentError):
        ledger.add_purse("", 0.5)
    assert ledger.purses == ()


def test_first_come_purses_share_the_total():
    ledger = Ledger(eps=1.0)
    ledger.add_purse("ann", 0.8)
    ledger.add_purse("bob", 0.8)
    charge(ledger.purse("ann"), 0.8)
    with pytest.raises(LedgerError, match=r"purse 'ann' has eps = 0 of 0.8 left"):
        charge(ledger.purse("ann"), 0.1)
    with pytest.raises(LedgerError, match="the total would be"):
        charge(ledger.purse("bob"), 0.4)
    assert not ledger.purse("bob").accepts([PureEvent(0.4)])
    charge(ledger.purse("bob"), 0.2)
    assert ledger.spent.amount == pytest.approx(1.0)


@pytest.mark.parametrize("terms", [PURE, {"budget": ZCDP(1.0)}])
def test_nobody_spends_what_is_reserved(terms):
    ledger = Ledger(**terms)
    ledger.add_purse("ann", 0.5, reserved=True)
    ledger.add_purse("bob", 1.0)
    event = PureEvent(0.6) if terms is PURE else GaussianEvent((2 * 0.6) ** -0.5)
    for second in (ledger, ledger.purse("bob")):
        with pytest.raises(LedgerError, match="reserved by purses"):
            second.charge([event], adjacency="replace")
    with pytest.raises(LedgerError, match="reserved by purses"):
        ledger.add_purse("cid", 0.6, reserved=True)
    half = PureEvent(0.5) if terms is PURE else GaussianEvent(1.0)
    ledger.purse("bob").charge([half], adjacency="replace")
    ledger.purse("ann").charge([half], adjacency="replace")
    assert ledger.spent.amount == pytest.approx(1.0)


def test_many_small_charges_of_a_reserved_purse_all_fit():
    ledger = Ledger(eps=1.0)
    ledger.add_purse("ann", 0.3, reserved=True)
    charge(ledger, 0.7)
    for _ in range(30):
        charge(ledger.purse("ann"), 0.01)
    with pytest.raises(LedgerError):
        charge(ledger.purse("ann"), 0.001)


def test_a_delta_cannot_be_reserved():
    ledger = Ledger(budget=ApproxDP(1.0, 1e-6))
    with pytest.raises(BudgetError, match="leave out reserved="):
        ledger.add_purse("ann", 0.5, reserved=True)


def test_a_void_charge_stays_spent_in_the_purse():
    ledger = Ledger(eps=1.0)
    ledger.add_purse("ann", 0.5, reserved=True)
    purse = ledger.purse("ann")
    purse.void(charge(purse, 0.2), "no release")
    assert (ledger.spent.amount, purse.spent.amount) == (0.0, 0.2)
    charge(ledger, 0.5)
    charge(purse, 0.3)
    ledger.verify()


def test_a_name_is_declared_once_and_an_unknown_one_is_refused():
    ledger = Ledger(eps=1.0)
    ledger.add_purse("ann", 0.5)
    with pytest.raises(LedgerError, match="declared before"):
        ledger.add_purse("ann", 0.5)
    with pytest.raises(LedgerError, match="no purse 'anne' \\(did you mean 'ann'"):
        ledger.purse("anne")
    with pytest.raises(ArgumentError, match="belong to purses"):
        ledger.charge([PureEvent(0.1)], adjacency="replace", claims=(("purse", "ann"),))


def test_a_claim_of_a_purse_is_made_once(tmp_path):
    ledger = Ledger.open(tmp_path / "l", eps=1.0, new=True)
    ledger.add_purse("ann", 0.5)
    charge(ledger.purse("ann", claims=(("job", "1"),)), 0.1)
    with pytest.raises(LedgerError, match="job '1' was used"):
        charge(ledger.purse("ann", claims=(("job", "1"),)), 0.1)
    assert ledger.purse("ann").spent.amount == pytest.approx(0.1)
    Ledger.open(tmp_path / "l").verify()


def test_a_file_keeps_purses_and_refuses_an_edited_one(tmp_path):
    file = tmp_path / "l"
    ledger = Ledger.open(file, eps=1.0, new=True)
    ledger.add_purse("ann", 0.5)
    charge(ledger.purse("ann"), 0.2)
    assert [purse.describe() for purse in Ledger.open(file).purses] == [
        "0.2 of 0.5 eps spent, first come"
    ]
    with sqlite3.connect(file) as connection:
        connection.execute("UPDATE claims SET charge = -1 WHERE kind = 'purse'")
    with pytest.raises(LedgerError, match="purses differ"):
        Ledger.open(file)


def _spend(path, name):
    ledger = Ledger.open(path).purse(name)
    accepted = 0
    for _ in range(12):
        try:
            charge(ledger, 0.05)
        except LedgerError:
            continue
        accepted += 1
    return accepted


@pytest.mark.product
def test_processes_overspend_neither_purse_nor_table(tmp_path):
    file = tmp_path / "l"
    ledger = Ledger.open(file, eps=1.0, new=True)
    names = ["ann", "bob", "cid", "dan"]
    for name in names:
        ledger.add_purse(name, 0.4)
    with multiprocessing.get_context("spawn").Pool(4) as pool:
        accepted = pool.starmap(_spend, [(file, name) for name in names])
    ledger.verify()
    assert sum(accepted) == 20 == ledger.charges
    assert max(accepted) <= 8
    assert [ledger.purse(name).charges for name in names] == accepted
