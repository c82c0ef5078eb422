"""A gateway's service: purses, jobs, the public clock, and what becomes of jobs that fail."""

import json
import time

import pytest
from gates import gate, in_thread

from dpmodels.errors import ArgumentError, DPModelsError, LedgerError, NotAvailable, PrivacyError
from dpmodels.gateway.service import Service
from dpmodels.gateway.state import ANSWERED, FAILED, HELD, QUEUED, WAITING


@pytest.fixture
def service(tmp_path):
    running = Service(gate(tmp_path), in_thread)
    yield running
    running.stop()


def body(eps=0.1, **words):
    return json.dumps(
        {"verb": "mean", "formula": "age ~ sex", "options": {"eps": eps, **words}}
    ).encode()


def done(service, described, who="ann"):
    """Wait until a job has an outcome."""
    deadline = time.monotonic() + 10
    while described["state"] == WAITING and time.monotonic() < deadline:
        time.sleep(0.005)
        described = service.described(service.job(who, described["job"]))
    return described


@pytest.mark.expensive
def test_the_same_request_is_one_release_and_charged_once(service):
    first = done(service, service.ask("ann", "visits", body()))
    again = service.ask("ann", "visits", body())
    assert (first["state"], again["job"]) == (ANSWERED, first["job"])
    assert service.ledgers["visits"].charges == 1
    answers = {service.answer("ann", job["job"]) for job in (first, again)}
    assert len(answers) == 1
    second = done(service, service.ask("bob", "visits", body()), "bob")
    assert second["job"] != first["job"]
    assert service.ledgers["visits"].charges == 2


@pytest.mark.expensive
def test_an_analyst_sees_the_jobs_of_the_purse_only(service):
    job = done(service, service.ask("ann", "visits", body()))["job"]
    for refused in (service.job, service.answer):
        with pytest.raises(NotAvailable, match="no such job"):
            refused("bob", job)
    assert service.history("bob") == []
    assert len(service.history("eve")) == 1
    with pytest.raises(NotAvailable, match="no table"):
        service.ask("eve", "visits", body())
    with pytest.raises(NotAvailable):
        service.public("ann", "others")
    charges = service.ledger("ann", "visits")["charges"]
    assert len(charges) == 1
    assert not {"user", "host", "charge", "time", "state", "digest"} & set(charges[0])
    assert service.ledger("bob", "visits")["charges"] == []


@pytest.mark.expensive
@pytest.mark.parametrize("age", [42, 43])
def test_failures_after_the_charge_look_alike_and_stay_spent(service, age):
    request = service.ask("ann", "visits", body(subset=f"age > {age}"))
    described = done(service, request)
    assert described["state"] == FAILED
    assert described["error"]["message"].startswith("the job has no answer: it failed or ran out")
    assert service.ledgers["visits"].charges == 1
    assert done(service, service.ask("ann", "visits", body(0.2)))["state"] == ANSWERED


@pytest.mark.expensive
def test_a_job_that_runs_too_long_is_ended_and_looks_the_same(tmp_path):
    service = Service(gate(tmp_path, least_seconds=0.3), in_thread)
    slow = done(service, service.ask("ann", "visits", body(subset="age > 41")))
    failed = done(service, service.ask("ann", "visits", body(subset="age > 43")))
    service.stop()
    same = ("state", "error", "seconds_left")
    assert [slow[name] for name in same] == [failed[name] for name in same]
    assert slow["state"] == FAILED


@pytest.mark.expensive
def test_outcomes_are_handed_out_at_ticks_of_the_public_clock(tmp_path):
    service = Service(gate(tmp_path, tick=1.0, least_seconds=2.0), in_thread)
    values = [service.ask("ann", "visits", body(0.1 + i / 100)) for i in range(3)]
    jobs = [service.state.job(value["job"]) for value in values]
    time.sleep(0.3)
    # The first ended early, which is stored at the end of its time; the second is charged at its
    # public start all the same.
    assert service.state.answer_path(jobs[0].id).exists()
    assert [service.state.job(job.id).state for job in jobs] == [QUEUED, QUEUED, QUEUED]
    assert service.ledgers["visits"].charges == 1
    assert {service.described(service.state.job(job.id))["state"] for job in jobs} == {WAITING}
    with pytest.raises(NotAvailable, match="no answer yet"):
        service.answer("ann", jobs[0].id)
    ends = [job.public_at for job in jobs]
    assert all(end == round(end) for end in ends)
    assert ends == sorted(ends)
    assert ends[2] - jobs[0].accepted >= 3 * 2.0
    assert done(service, values[0])["state"] == ANSWERED
    assert service.clock.now() >= ends[0]
    service.stop()


@pytest.mark.expensive
def test_a_worker_that_dies_is_not_noticed_before_the_public_time(tmp_path):
    """Asked again, a request whose worker had died was another job at once, and so timed it."""
    service = Service(gate(tmp_path, tick=1.0, least_seconds=2.0), in_thread)
    request = body(subset="age > 42")
    first = service.ask("ann", "visits", request)
    time.sleep(0.3)
    assert service.ledgers["visits"].charges == 1
    assert service.state.job(first["job"]).state == QUEUED
    again = service.ask("ann", "visits", request)
    assert (again["job"], again["state"]) == (first["job"], WAITING)
    assert done(service, first)["state"] == FAILED
    assert service.clock.now() >= service.state.job(first["job"]).public_at
    service.stop()


@pytest.mark.expensive
def test_a_curator_stops_approves_and_reads_the_audit_log(tmp_path):
    service = Service(gate(tmp_path, approval=True), in_thread)
    request = service.ask("ann", "visits", body())
    assert request["state"] == HELD
    with pytest.raises(PrivacyError):
        service.approve("ann", request["job"])
    assert done(service, service.approve("eve", request["job"]))["state"] == ANSWERED
    service.set_stopped("eve", "visits", stopped=True)
    with pytest.raises(LedgerError, match="stopped"):
        service.ask("ann", "visits", body(0.2))
    assert service.ask("ann", "visits", body())["state"] == ANSWERED
    overview = service.overview("eve")
    assert overview["tables"]["visits"]["stopped"]
    assert [line["who"] for line in overview["audit"] if line["action"] == "stopped"] == ["eve"]
    for call in (service.overview, lambda who: service.disclosure(who, "visits")):
        with pytest.raises(PrivacyError):
            call("ann")
    service.stop()


@pytest.mark.expensive
def test_a_stopped_server_resumes_or_says_what_became_of_a_job(tmp_path):
    service = Service(gate(tmp_path), in_thread)
    jobs = [service.ask("ann", "visits", body(0.1 + i / 100))["job"] for i in range(3)]
    for job in jobs:
        assert done(service, service.described(service.state.job(job)))["state"] == ANSWERED
    # As after kill -9: one has its file, one was charged without, one was not charged.
    service.state.set_job(jobs[0], QUEUED)
    service.state.set_job(jobs[1], QUEUED)
    service.state.answer_path(jobs[1]).unlink()
    fresh = service.state.job(jobs[2])._replace(id="new", key="new", state=QUEUED)
    service.state.add_job(fresh)
    service.stop()
    again = Service(gate(tmp_path), in_thread)
    states = [again.state.job(job).state for job in jobs[:2]]
    assert states == [ANSWERED, FAILED]
    assert done(again, again.described(again.state.job("new")))["state"] == ANSWERED
    assert again.ledgers["visits"].charges == 4
    again.ledgers["visits"].verify()
    again.stop()


@pytest.mark.expensive
@pytest.mark.parametrize("hours", [-5, 5])
def test_no_clock_across_a_restart_hands_an_answer_out_early(tmp_path, monkeypatch, hours):
    service = Service(gate(tmp_path, tick=1.0, least_seconds=3.0), in_thread)
    request = service.ask("ann", "visits", body())
    deadline = time.monotonic() + 10
    while not service.state.answer_path(request["job"]).exists() and time.monotonic() < deadline:
        time.sleep(0.005)
    assert service.described(service.state.job(request["job"]))["state"] == WAITING
    service.stop()
    machine = time.time
    monkeypatch.setattr(time, "time", lambda: machine() + 3_600 * hours)
    again = Service(gate(tmp_path, tick=1.0, least_seconds=3.0), in_thread)
    described = again.described(again.state.job(request["job"]))
    assert described["state"] == WAITING
    assert 2.0 < described["seconds_left"] <= 5.0
    with pytest.raises(NotAvailable, match="no answer yet"):
        again.answer("ann", request["job"])
    started = [
        line for line in again.overview("eve")["audit"] if line["action"] == "server started"
    ]
    assert (started[-1]["seconds_behind"] > 3_000) == (hours < 0)
    again.stop()


@pytest.mark.expensive
def test_an_answer_that_was_handed_out_stays_so_after_a_restart(tmp_path):
    service = Service(gate(tmp_path, tick=0.2, least_seconds=0.6), in_thread)
    job = done(service, service.ask("ann", "visits", body()))["job"]
    service.stop()
    again = Service(gate(tmp_path, tick=0.2, least_seconds=0.6), in_thread)
    assert again.described(again.state.job(job))["state"] == ANSWERED
    again.stop()


@pytest.mark.expensive
def test_of_equal_requests_at_once_one_takes_a_place(tmp_path):
    from concurrent.futures import ThreadPoolExecutor

    service = Service(gate(tmp_path, tick=0.1, least_seconds=50.0), in_thread)
    with ThreadPoolExecutor(8) as pool:
        request = list(pool.map(lambda _: service.ask("ann", "visits", body()), range(24)))
    (job,) = {described["job"] for described in request}
    (end,) = service.queues["visits"]._public_ends
    assert end - service.clock.now() <= service.state.job(job).limit_seconds
    assert len(service.queues["visits"]._ends) <= 1
    service.stop()


@pytest.mark.expensive
def test_a_job_that_cannot_be_stored_gives_its_place_back(tmp_path, monkeypatch):
    service = Service(gate(tmp_path, tick=0.1, least_seconds=50.0), in_thread)
    monkeypatch.setattr(service.state, "add_job", lambda _: 1 / 0)
    for _ in range(3):
        with pytest.raises(ZeroDivisionError):
            service.ask("ann", "visits", body())
    (end,) = service.queues["visits"]._public_ends
    assert end <= service.clock.now()
    assert not service.queues["visits"]._ends
    service.stop()


@pytest.mark.expensive
def test_a_job_is_approved_once(tmp_path):
    from concurrent.futures import ThreadPoolExecutor

    service = Service(gate(tmp_path, approval=True, tick=0.1, least_seconds=50.0), in_thread)
    job = service.ask("ann", "visits", body())["job"]

    def approve(_):
        try:
            return service.approve("eve", job)
        except ArgumentError:
            return None

    with ThreadPoolExecutor(8) as pool:
        assert len(list(filter(None, pool.map(approve, range(8))))) == 1
    service.stop()


@pytest.mark.expensive
@pytest.mark.parametrize("written", ["0.10", "1e-1"])
def test_a_request_in_other_words_costs_nothing(service, written):
    first = done(service, service.ask("ann", "visits", body(0.1)))
    words = f'{{"subset": null, "eps": {written}, "delta": 0}}'
    second = f'{{"options": {words}, "verb": "mean", "formula": "age~sex"}}'
    assert service.ask("ann", "visits", second.encode())["job"] == first["job"]
    assert service.ledgers["visits"].charges == 1


@pytest.mark.expensive
def test_a_worker_that_cannot_be_started_is_tried_again(tmp_path):
    failures = []

    def start(settings, path):
        if failures:
            raise failures.pop()
        return in_thread(settings, path)

    service = Service(gate(tmp_path), start)
    failures += [BlockingIOError("too many processes")] * 2
    died = done(service, service.ask("ann", "visits", body(0.1, subset="age > 42")))
    lost = done(service, service.ask("ann", "visits", body(0.2)))
    assert (died["state"], lost["state"]) == (FAILED, FAILED)
    assert done(service, service.ask("ann", "visits", body(0.2)))["state"] == ANSWERED
    assert service.ledgers["visits"].charges == 2
    service.stop()


@pytest.mark.expensive
def test_two_servers_cannot_share_a_folder(tmp_path):
    service = Service(gate(tmp_path), in_thread)
    with pytest.raises(LedgerError, match="locked"):
        Service(gate(tmp_path), in_thread)
    service.stop()


@pytest.mark.expensive
def test_requests_at_once_overspend_neither_purse_nor_table(tmp_path):
    from concurrent.futures import ThreadPoolExecutor

    service = Service(gate(tmp_path, amount=0.4, eps=0.6), in_thread)
    # Of 24 requests with eps = 0.1, the table's 0.6 allow five.
    names = ["ann", "bob"] * 12

    def ask(number):
        try:
            return service.ask(names[number], "visits", body(0.1 + number * 1e-6))
        except DPModelsError:
            return None

    with ThreadPoolExecutor(8) as pool:
        values = [i for i in pool.map(ask, range(len(names))) if i is not None]
    states = [done(service, value, "eve")["state"] for value in values]
    ledger = service.ledgers["visits"]
    assert states.count(ANSWERED) == ledger.charges == 5
    assert max(ledger.purse(name).charges for name in ("ann", "bob")) <= 3
    ledger.verify()
    service.stop()
