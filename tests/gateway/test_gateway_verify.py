"""Whether what a gateway recorded is complete."""

import sqlite3

import pytest
from gates import gate, in_thread
from test_gateway_service import body, done

from dpmodels.errors import LedgerError
from dpmodels.gateway.schedule import verified
from dpmodels.gateway.service import Service
from dpmodels.gateway.state import ANSWERED

pytestmark = pytest.mark.expensive


@pytest.fixture
def recorded(tmp_path):
    """Settings of a gateway with two answers, and a connection to its database."""
    settings = gate(tmp_path)
    service = Service(settings, in_thread)
    for eps in (0.1, 0.2):
        assert done(service, service.ask("ann", "visits", body(eps)))["state"] == ANSWERED
    running = verified(settings)
    service.stop()
    assert verified(settings) == running
    with sqlite3.connect(tmp_path / "gate" / "gate.db") as database:
        yield settings, database


def test_records_that_belong_together_are_counted(recorded):
    settings, database = recorded
    text = verified(settings)
    assert text.startswith("verified: charges 2, answers 2, lines of the audit log ")
    last = text.split()[-1]
    assert verified(settings, last) == text
    number = last.partition(":")[0]
    with pytest.raises(LedgerError, match="the log was replaced"):
        verified(settings, f"{number}:{'0' * 64}")
    # The chain and its head made anew, by somebody who can write to the folder.
    (settings.folder / "audit.lock").unlink()
    database.execute("DELETE FROM audit WHERE line = ?", (int(number),))
    database.commit()
    with pytest.raises(LedgerError, match="the log was replaced"):
        verified(settings, last)


def test_a_charge_whose_job_was_removed_is_noticed(recorded):
    settings, database = recorded
    database.execute("DELETE FROM audit WHERE line >= 2")
    database.commit()
    with pytest.raises(LedgerError, match="its last lines were removed"):
        verified(settings)
    (settings.folder / "audit.lock").unlink()
    with pytest.raises(LedgerError, match="has a charge of job"):
        verified(settings)


def test_an_answer_without_a_charge_is_noticed(recorded):
    settings, database = recorded
    database.execute("UPDATE jobs SET id = 'other' WHERE number = 1")
    database.commit()
    with pytest.raises(LedgerError, match="has an answer, and 'visits' no charge"):
        verified(settings)


def test_a_changed_ledger_is_noticed(recorded):
    settings, _ = recorded
    path = settings.ledger_path("visits")
    content = path.read_bytes()
    assert content.count(b"0.2") > 0
    path.write_bytes(content.replace(b"0.2", b"0.1"))
    with pytest.raises(LedgerError):
        verified(settings)
