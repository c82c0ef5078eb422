"""Tokens, jobs and the audit log of a gateway."""

import sqlite3
import time
from itertools import count

import pytest

from dpmodels.errors import LedgerError
from dpmodels.gateway.schedule import Clock
from dpmodels.gateway.state import ANSWERED, FAILED, HELD, QUEUED, REFUSED, WAITING, Job, State


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
    assert [job.number for job in state.jobs("ann")] == [1, 2]
    assert state.jobs("bob") == []


@pytest.mark.parametrize("ended", [FAILED, REFUSED])
def test_the_same_request_is_one_job_until_its_end_is_public(state, ended):
    now = [8.9]
    state.follow(lambda: now[0], lambda at: at)
    state.add_job(job(state=ended))
    assert state.add_job(job("2")).id == "1"
    now[0] = 9.0
    assert state.add_job(job("3")).id == "3"


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


@pytest.mark.parametrize("first", [1, 3, 4])
def test_a_log_without_its_last_lines_is_noticed(state, tmp_path, first):
    for number in range(4):
        state.log("ann", "request refused", number=number)
    with sqlite3.connect(tmp_path / "gate.db") as database:
        database.execute("DELETE FROM audit WHERE line >= ?", (first,))
    with pytest.raises(LedgerError, match=f"ends at line {first - 1}, and .* recorded line 4"):
        state.audit()
    # It still is if lines are added to those that are left.
    for number in range(5):
        state.log("ann", "request refused", number=-number)
    with pytest.raises(LedgerError, match=r"was changed or removed"):
        state.audit()


def test_a_line_whose_head_was_not_written_is_repaired_by_the_next(state, monkeypatch):
    # As after kill -9 between the two.
    state.log("ann", "request refused", number=0)
    with monkeypatch.context() as patch:
        patch.setattr("dpmodels.privacy.ledger_head.HeadFile.write", lambda *_, **__: None)
        state.log("ann", "request refused", number=1)
    assert len(state.audit()) == 2
    state.log("ann", "request refused", number=2)
    assert len(state.audit()) == 3


def test_an_outcome_that_was_not_due_waits_for_the_rest_of_its_time(state):
    # A server stopped at 1000; of five seconds that a job had left, nobody knows what passed.
    state.follow(lambda: 1_000.0, lambda at: at)
    for identifier, public_at in (("due", 999.0), ("early", 1_005.0)):
        state.add_job(job(identifier, identifier, state=ANSWERED, public_at=public_at))
    for start in (900.0, 1_000.0, 5_000.0):
        again = State(state.folder)
        clock = Clock(5.0, again.latest)
        assert clock.now() >= again.latest == 1_000.0
        again.follow(lambda at=start: at, Clock(5.0).tick_after)
        assert again.job("due").public_at == 999.0
        left = again.job("early").public_at - start
        assert 5.0 <= left < 10.0
        state._database.execute("UPDATE reached SET at = 1000")
        state._database.execute("UPDATE jobs SET public_at = 1005 WHERE id = 'early'")
        again.close()


def test_a_state_of_an_earlier_version_shows_what_it_showed(state):
    for number in (1, 2):
        times = {"accepted": 100.0 * number, "public_at": 100.0 * number + 5}
        state.add_job(job(str(number), str(number), state=ANSWERED, **times))
    again = State(state.folder)
    again.follow(lambda: 1_000.0, lambda at: at)
    assert [again.job(name).public_at for name in "12"] == [105.0, 1_005.0]
    again.close()


def test_the_end_of_a_job_is_not_a_public_time(state):
    times = count(10.0)
    state.follow(lambda: next(times), lambda at: at)
    state.add_job(job(state=QUEUED))
    before = state.latest
    state.set_job("1", ANSWERED)
    assert state.latest == before


def test_a_table_is_stopped_and_resumed(state):
    state.stop("visits", "eve", stopped=True)
    assert state.is_stopped("visits")
    state.stop("visits", "eve", stopped=False)
    assert not state.is_stopped("visits")
