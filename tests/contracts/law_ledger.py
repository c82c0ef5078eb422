"""The ledger refuses before a row is read, and is charged before a row is read."""

from dataclasses import astuple

import pytest
from contract_cases import Case, TouchedError, mined_stream, minefield, table

import dpmodels as dp
from dpmodels.errors import FrameError, LedgerError
from dpmodels.privacy import ZCDP
from dpmodels.privacy.spent import price

# Rows that explode when they are read, and the same as a stream of tables.
ROWS = {False: (minefield, mined_stream), True: (minefield,)}
OTHER = {"replace": "add-remove", "add-remove": "replace"}


def _ledger(case: Case, times: float, adjacency: str | None = None) -> dp.Ledger:
    """A ledger that holds so many times what the case costs, or its budget if that is nothing."""
    guarantee, relation = case.guarantee, adjacency or case.adjacency
    granted = guarantee.rho if isinstance(guarantee, ZCDP) else guarantee.eps
    amount = (price(case.own_plan.events, guarantee).amount or granted) * times
    if isinstance(guarantee, ZCDP):
        return dp.Ledger(budget=ZCDP(amount), adjacency=relation)
    return dp.Ledger(amount, getattr(guarantee, "delta", 0.0), adjacency=relation)


def the_ledger_refuses_before_a_row_is_read(case: Case) -> None:
    for rows in ROWS[case.rereads]:
        for ledger in (_ledger(case, 0.5), _ledger(case, 2, OTHER[case.adjacency])):
            with pytest.raises(LedgerError):
                case.ask(rows(), ledger=ledger)
            assert ledger.entries == (), "a refusal was charged"


def the_ledger_is_charged_before_a_row_is_read(case: Case) -> None:
    for rows in ROWS[case.rereads]:
        ledger = _ledger(case, 1.2)
        with pytest.raises(TouchedError):
            case.ask(rows(), ledger=ledger)
        assert len(ledger.entries) == 1, "a row was read before the charge"


def the_ledger_records_what_the_plan_costs(case: Case) -> None:
    ledger = _ledger(case, 1.2)
    fit = case.ask(table(20), ledger=ledger)
    assert len(ledger.entries) == 1, "the release is not in the ledger"
    assert ledger.entries[0].events == fit.release.events
    planned = case.own_plan.events
    assert [type(event) for event in planned] == [type(event) for event in fit.release.events]
    for charged, event in zip(fit.release.events, planned, strict=True):
        assert astuple(charged) == pytest.approx(astuple(event), rel=1e-12)
    assert fit.call.ledger == ledger.describe()
    assert ledger.describe() in fit.summary().as_text()


def the_same_release_again_costs_as_much(case: Case) -> None:
    ledger = _ledger(case, 1.2)
    case.ask(table(20), ledger=ledger)
    with pytest.raises(LedgerError):
        case.ask(table(20), ledger=ledger)
    assert len(ledger.entries) == 1


def a_whole_budget_may_be_spent_at_once(case: Case) -> None:
    ledger = dp.Ledger(budget=case.guarantee, adjacency=case.adjacency)
    case.ask(table(20), ledger=ledger)
    assert len(ledger.entries) == 1


def a_stream_is_refused_before_the_charge(case: Case) -> None:
    """By a mechanism that reads the rows several times."""
    ledger = _ledger(case, 1.2)
    with pytest.raises(FrameError, match="once"):
        case.ask(mined_stream(), ledger=ledger)
    assert ledger.entries == (), "a refusal was charged"
