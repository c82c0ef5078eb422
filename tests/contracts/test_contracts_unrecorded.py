"""What cannot be recorded as released is not handed over, whichever verb made it."""

import pytest
from contract_cases import EACH_VERB, table

import dpmodels as dp
from dpmodels.errors import LedgerError


@pytest.mark.parametrize("case", EACH_VERB, ids=lambda case: case.verb.name)
def test_a_result_that_cannot_be_recorded_is_not_handed_over(case, monkeypatch):
    ledger = dp.Ledger(budget=case.guarantee, adjacency=case.adjacency)

    def fails(value, entry, digest):
        assert value is ledger
        raise LedgerError("its disk is full")

    monkeypatch.setattr(dp.Ledger, "released", fails)
    with pytest.raises(LedgerError, match="its disk is full"):
        case.ask(table(20), ledger=ledger)
    assert ledger.unfinished() == ledger.entries
    assert len(ledger.entries) == 1
