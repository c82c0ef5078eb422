"""The ledger refuses before a row is read, and is charged before a row is read."""

import pytest
from contract_cases import BOOK, FORMULA, Case, TouchedError, mined_stream, minefield, table

import dpmodels as dp
from dpmodels.errors import LedgerError
from dpmodels.privacy import ZCDP, Guarantee

OTHER = {"replace": "add-remove", "add-remove": "replace"}


def _ledger(case: Case, times: float, adjacency: str | None = None) -> dp.Ledger:
    """A ledger that holds so many times the case's budget."""
    own: Guarantee = case.guarantee
    relation = adjacency or case.adjacency
    if isinstance(own, ZCDP):
        return dp.Ledger(budget=ZCDP(own.rho * times), adjacency=relation)
    return dp.Ledger(own.eps * times, getattr(own, "delta", 0.0), adjacency=relation)


def the_ledger_refuses_before_a_row_is_read(case: Case) -> None:
    for rows in (minefield, mined_stream):
        for ledger in (_ledger(case, 0.5), _ledger(case, 2, OTHER[case.adjacency])):
            with pytest.raises(LedgerError):
                case.fit(FORMULA, rows(), BOOK, ledger=ledger)
            assert ledger.entries == (), "a refusal was charged"


def the_ledger_is_charged_before_a_row_is_read(case: Case) -> None:
    for rows in (minefield, mined_stream):
        ledger = _ledger(case, 1.2)
        with pytest.raises(TouchedError):
            case.fit(FORMULA, rows(), BOOK, ledger=ledger)
        assert len(ledger.entries) == 1, "a row was read before the charge"


def the_ledger_records_what_the_plan_costs(case: Case) -> None:
    ledger = _ledger(case, 1.2)
    fit = case.fit(FORMULA, table(20), BOOK, ledger=ledger)
    assert len(ledger.entries) == 1, "the release is not in the ledger"
    assert ledger.entries[0].events == fit.release.events == case.plan(5).events
    assert fit.call.ledger == ledger.describe()
    assert ledger.describe() in fit.summary().as_text()
    with pytest.raises(LedgerError):
        case.fit(FORMULA, table(20), BOOK, ledger=ledger)
    assert len(ledger.entries) == 1


def a_whole_budget_may_be_spent_at_once(case: Case) -> None:
    ledger = _ledger(case, 1)
    case.fit(FORMULA, table(20), BOOK, ledger=ledger)
    assert len(ledger.entries) == 1
