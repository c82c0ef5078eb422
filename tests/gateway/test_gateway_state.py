"""Tokens, jobs and the audit log of a gateway."""

import sqlite3
import time

import pytest

from dpmodels.errors import LedgerError
from dpmodels.gateway.state import ANSWERED, FAILED, HELD, QUEUED, WAITING, Job, State


@pytest.fixture
def state(tmp_path):
    opened = State(tmp_path)
    yield opened
    opened.close()


def job(identifier="1", key="k", **changed):
    plain = Job(
        identifier, 0, "ann", "ann", "visits", key, {"verb": "mean"}, HELD, 5.0, 1.0, 9.0, {}
    )
    return plain._replace(**changed)


@pytest.mark.expensive
def test_a_token_is_stored_as_a_hash_and_can_be_revoked(state, tmp_path):
    token = state.issue_token("ann", 1)
    identifier, secret = token.split(".")
    assert state.verifies(identifier, secret)
    assert not state.verifies(identifier, secret[:-1])
    assert not state.verifies("none", secret)
    assert secret.encode() not in (tmp_path / "gate.db").read_bytes()
    assert state.valid_token(identifier, time.time()) == "ann"
    assert state.revoke_tokens("ann") == 1
    assert state.valid_token(identifier, time.time()) is None


@pytest.mark.expensive
def test_an_expired_token_is_not_valid(state):
    identifier = state.issue_token("ann", -1e-6).split(".")[0]
    assert state.valid_token(identifier, time.time()) is None


def test_the_same_request_is_one_job_while_it_is_open_or_answered(state):
    assert state.add_job(job()).id == "1"
    assert state.add_job(job("2")).id == "1"
    state.set_job("1", ANSWERED)
    assert state.add_job(job("3")).id == "1"
    state.set_job("1", FAILED)
    assert state.add_job(job("4")).id == "4"
    assert [one.number for one in state.jobs("ann")] == [1, 2]
    assert state.jobs("bob") == []


@pytest.mark.parametrize("hidden", [QUEUED, ANSWERED, FAILED])
def test_an_outcome_is_visible_at_its_public_time(hidden):
    assert job(state=hidden).visible(8.9) == WAITING
    assert job(state=hidden).visible(9.0) == (hidden if hidden in (ANSWERED, FAILED) else WAITING)
    assert job().visible(10.0) == HELD


def test_the_audit_log_is_a_chain(state, tmp_path):
    for number in range(3):
        state.log("ann", "request refused", number=number)
    assert [line["number"] for line in state.audit()] == [0, 1, 2]
    with sqlite3.connect(tmp_path / "gate.db") as database:
        database.execute("UPDATE audit SET text = replace(text, 'ann', 'bob') WHERE line = 2")
    with pytest.raises(LedgerError, match="line 2 of the audit log"):
        state.audit()


def test_a_removed_line_is_noticed(state, tmp_path):
    for number in range(3):
        state.log("ann", "request refused", number=number)
    with sqlite3.connect(tmp_path / "gate.db") as database:
        database.execute("DELETE FROM audit WHERE line = 2")
    with pytest.raises(LedgerError, match="line 2 of the audit log"):
        state.audit()


def test_a_table_is_stopped_and_resumed(state):
    state.stop("visits", "eve", stopped=True)
    assert state.is_stopped("visits")
    state.stop("visits", "eve", stopped=False)
    assert not state.is_stopped("visits")
