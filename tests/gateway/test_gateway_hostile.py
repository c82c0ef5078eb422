"""What a gateway refuses over HTTP, and what it does where disks, clocks and tables fail."""

import errno
import json
import random
import socket
import sqlite3
import time
import tracemalloc
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from threading import Event
from urllib.parse import urlsplit

import pytest
from gates import gate, in_thread, serving
from test_gateway_calls import fuzzed
from test_gateway_http import status
from test_gateway_service import body, done

from dpmodels.codebook import Codebook
from dpmodels.errors import DPModelsError, GatewayError, LedgerError
from dpmodels.gateway import schedule
from dpmodels.gateway.calls import FORBIDDEN
from dpmodels.gateway.schedule import Clock
from dpmodels.gateway.service import Service
from dpmodels.gateway.state import ANSWERED, FAILED, REFUSED, WAITING
from dpmodels.privacy import PureEvent
from dpmodels.results.base import Result
from tests.formula.hostile import BOOK, GIANT, HOSTILE

ASK, PLAN = "/v1/tables/visits/ask", "/v1/tables/visits/plan"
pytestmark = pytest.mark.expensive


@pytest.fixture(scope="module")
def hostile(tmp_path_factory):
    """The address, the service and a token of a gateway with many variables."""
    folder = tmp_path_factory.mktemp("hostile")
    settings = gate(folder, server={"requests_per_minute": 100_000})
    BOOK.save(folder / "visits.json", overwrite=True)
    service = Service(settings, in_thread)
    token = service.state.issue_token("ann", 1)
    with serving(service) as url:
        yield url, service, token


def refused(hostile, content, path=ASK):
    """Send a body that has to be refused: a typed status, no trace, no job, no charge."""
    url, service, token = hostile
    code, plain = status(url, "POST", path, token, content)
    assert 400 <= code < 500, (code, plain)
    assert set(plain) == {"error", "message"}
    assert "Traceback" not in plain["message"]
    assert "/dpmodels/" not in plain["message"]
    assert (len(service.state.jobs()), service.ledgers["visits"].charges) == (0, 0)
    return plain["message"]


def written(formula, verb="pca", **words):
    plain = {"verb": verb, "formula": formula, "options": {"eps": 0.1, **words}}
    return json.dumps(plain, default=repr).encode()


@pytest.mark.parametrize("number", [100, pytest.param(1_000, marks=pytest.mark.product)])
def test_fuzzed_bodies_are_refused_and_charge_nothing(hostile, number):
    rng = random.Random(number)
    messages = {refused(hostile, fuzzed(rng), rng.choice([ASK, PLAN])) for _ in range(number)}
    assert len(messages) > 10


@pytest.mark.product
def test_hostile_formulas_are_refused_and_charge_nothing(hostile):
    assert len(HOSTILE) > 150
    for formula, word in HOSTILE:
        message = refused(hostile, written(formula))
        if isinstance(formula, str) and len(formula) <= 4_000:
            assert word in message


@pytest.mark.product
def test_enormous_designs_are_refused_before_memory_is_spent(hostile):
    # Products and powers of factors with 3,000 and 900 levels, and lists that are too long.
    repeats = [formula for formula, _ in GIANT]
    repeats += ["~ postcode * town", "~ postcode:town:g", "~ (postcode + town + g)**3"]
    bodies = [written(formula) for formula in repeats]
    bodies += [written("x ~ " + " + ".join(["y"] * 3_000), "lm")]
    bodies += [written("~ x", "hist", breaks=10**12), written("~ x", "hist", breaks=[1] * 5_000)]
    bodies += [written("~ " + "(" * 3_000 + "x" + ")" * 3_000), b"[" * 60_000]
    for content in bodies:
        tracemalloc.start()
        refused(hostile, content)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 50e6, content[:80]


def test_a_plan_of_many_calls_is_limited(hostile, monkeypatch):
    request = json.loads(written("~ x"))
    assert "at most 100" in refused(hostile, json.dumps([request] * 101).encode(), PLAN)
    refused(hostile, json.dumps([request, 3]).encode(), PLAN)
    monkeypatch.setattr("dpmodels.gateway.calls._PLAN_SECONDS", 0.0)
    assert "send fewer at once" in refused(hostile, json.dumps([request] * 50).encode(), PLAN)
    refused(hostile, json.dumps([request]).encode())


def test_a_name_that_cannot_be_encoded_is_refused(hostile):
    assert "\\udc80=" in refused(hostile, written("~ x", **{"\udc80": 1}))


def test_words_of_the_curator_are_refused(hostile):
    for word in FORBIDDEN:
        message = refused(hostile, written("~ x", **{word: "x"}))
        assert message.startswith(f"{word}= cannot be sent")


def test_a_text_that_is_too_long_is_not_repeated(hostile):
    for word in ("mechanism", "subset", "scale", "eps", "delta", "row_norm"):
        message = refused(hostile, written("~ x", **{word: "x" * 50_000}))
        assert len(message) < 500


@pytest.mark.parametrize(
    "head",
    [
        b"X-Long: " + b"a" * 300_000,
        b"X: a\r\n" * 50_000 + b"X: a",
        b"Content-Length: 4\r\nTransfer-Encoding: chunked",
        b"Content-Length: 4\r\nContent-Length: 9",
        b"X: a\0b",
    ],
)
def test_headers_that_are_too_long_or_ambiguous_are_refused(hostile, head):
    url, service, token = hostile
    start = f"POST {ASK} HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {token}\r\n".encode()
    assert sent_bytes(url, start + head + b"\r\n\r\n{}..").startswith((b"HTTP/1.1 4", b"reset"))
    assert service.state.jobs() == []


def test_no_answer_leads_to_an_address_that_the_request_names(hostile):
    head = b"GET /v1/tables/ HTTP/1.1\r\nHost: elsewhere.example\r\n\r\n"
    answer = sent_bytes(hostile[0], head)
    assert answer.startswith(b"HTTP/1.1 404")
    assert b"elsewhere" not in answer


def test_what_follows_a_body_of_two_lengths_is_not_read(hostile):
    url, _, token = hostile
    identity = f"Host: a\r\nAuthorization: Bearer {token}\r\n"
    first = f"POST {PLAN} HTTP/1.1\r\n{identity}Content-Length: 5\r\nTransfer-Encoding: chunked\r\n"
    second = f"GET /v1/tables HTTP/1.1\r\n{identity}"
    content = f"{first}\r\n0\r\n\r\n{second}\r\n".encode()
    answer = sent_bytes(url, content)
    assert answer.startswith(b"HTTP/1.1 400")
    assert b"visits" not in answer


def sent_bytes(url, content):
    """What the server answers to bytes, "reset" if it closes the connection instead."""
    host, port = urlsplit(url).netloc.split(":")
    with socket.create_connection((host, int(port)), timeout=10) as connection:
        try:
            connection.sendall(content)
            answer = connection.recv(65_536)
            connection.settimeout(1)
            with suppress(TimeoutError):
                answer += connection.recv(65_536)
            return answer
        except ConnectionError:
            return b"reset"


def test_a_body_that_arrives_slowly_is_refused(hostile, monkeypatch):
    monkeypatch.setattr("dpmodels.gateway.pages._BODY_SECONDS", 0.2)
    url, _, token = hostile
    head = f"POST {ASK} HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {token}\r\n"
    assert sent_bytes(url, f"{head}Content-Length: 9\r\n\r\n{{".encode()).startswith(
        b"HTTP/1.1 408"
    )


@pytest.mark.product
def test_an_analyst_who_sends_much_at_once_leaves_threads_to_others(small, monkeypatch):
    tokens = {name: small.state.issue_token(name, 1) for name in ("ann", "bob")}
    free, running, limit = Event(), [], []

    def slow(analyst, table):
        running.append(analyst)
        limit.append(len(running))
        free.wait(20)
        running.remove(analyst)
        return {}

    monkeypatch.setattr(small, "ledger", slow)
    with serving(small) as url, ThreadPoolExecutor(60) as pool:
        path = "/v1/tables/visits/ledger"
        sent = [pool.submit(status, url, "GET", path, tokens["ann"]) for _ in range(60)]
        while len(running) < 8:
            time.sleep(0.01)
        assert status(url, "GET", "/v1/tables", tokens["bob"])[0] == 200
        free.set()
        assert {answer.result()[0] for answer in sent} == {200}
    assert max(limit) == 8


@pytest.mark.product
def test_invented_tokens_keep_nobody_from_signing_in(small):
    token = small.state.issue_token("ann", 1)
    identifier = token.split(".")[0]
    with serving(small) as url:
        codes = [status(url, "GET", "/v1/tables", f"0123.{i}")[0] for i in range(62)]
        assert codes == [401] * 60 + [429] * 2
        assert status(url, "GET", "/v1/tables", token)[0] == 200
        # The secret of a token is not guessed faster.
        codes = [status(url, "GET", "/v1/tables", f"{identifier}.{i}")[0] for i in range(61)]
        assert codes.count(429) == 2
        assert status(url, "GET", "/v1/tables", token)[0] == 200


def test_the_waiting_requests_of_an_analyst_are_limited(tmp_path, monkeypatch):
    monkeypatch.setattr("dpmodels.gateway.service._MOST_WAITING", 3)
    service = Service(gate(tmp_path, tick=0.1, least_seconds=60.0), in_thread)
    for number in range(3):
        service.ask("ann", "visits", body(0.001 + number / 1e6))
    with pytest.raises(GatewayError, match="3 of your requests wait") as refusal:
        service.ask("ann", "visits", body(0.01))
    assert refusal.value.status == 429
    assert service.ask("ann", "visits", body(0.001))["state"] == WAITING
    assert service.ask("bob", "visits", body(0.01))["state"] == WAITING
    service.stop()


def test_a_prediction_does_not_wait_long_for_others(small, monkeypatch):
    monkeypatch.setattr("dpmodels.gateway.service._PREDICTION_SECONDS", 0.05)
    with small._predicting, pytest.raises(GatewayError, match="other predictions"):
        small.predicted("ann", "visits", body(), 400)
    assert small.predicted("ann", "visits", body(), 400) is not None


def test_a_refusal_is_typed_while_the_disk_is_full(small, monkeypatch):
    def full(*_, **__):
        raise sqlite3.OperationalError("database or disk is full")

    monkeypatch.setattr(small.state, "log", full)
    token = small.state.issue_token("ann", 1)
    with serving(small) as url:
        assert status(url, "POST", ASK, token, written("~ nothing"))[0] == 422


def test_a_token_is_refused_once_it_has_expired(hostile, monkeypatch):
    url, service, _ = hostile
    token = service.state.issue_token("ann", 1)
    assert status(url, "GET", "/v1/tables", token)[0] == 200
    late = service.clock.latest() + 86_401
    monkeypatch.setattr(service.clock, "latest", lambda: late)
    assert status(url, "GET", "/v1/tables", token)[0] == 401


def test_a_clock_that_is_set_back_revives_no_token_and_moves_no_answer(monkeypatch):
    clock = Clock(5.0)
    now = time.time()
    for hours in (-5, 5):
        monkeypatch.setattr(time, "time", lambda value=now + 3_600 * hours: value)
        assert clock.now() == pytest.approx(now, abs=60)
        assert clock.latest() == pytest.approx(max(now, now + 3_600 * hours), abs=60)


@pytest.fixture
def small(tmp_path):
    service = Service(gate(tmp_path), in_thread)
    yield service
    service.stop()


@pytest.mark.product
def test_a_full_disk_accepts_nothing_until_there_is_room(small):
    token = small.state.issue_token("ann", 1)
    with serving(small) as url:
        pages = small.state._database.execute("PRAGMA page_count").fetchone()[0]
        small.state._database.execute(f"PRAGMA max_page_count = {pages}")
        full = {
            status(url, "POST", ASK, token, body(0.001 + number / 1e6))[0] for number in range(60)
        }
        assert 503 in full
        assert full <= {202, 503}
        small.state._database.execute("PRAGMA max_page_count = 1000000")
        assert status(url, "POST", ASK, token, body(0.1))[0] == 202
        jobs = small.state.jobs()
        assert all(done(small, small.described(job))["state"] == ANSWERED for job in jobs)
        assert small.ledgers["visits"].charges == len(jobs)
        small.state.audit()


def test_an_outcome_is_recorded_once_there_is_room(small, monkeypatch):
    set_job, failures = small.state.set_job, [1]

    def full(*arguments, **changes):
        if failures:
            failures.pop()
            raise sqlite3.OperationalError("database or disk is full")
        set_job(*arguments, **changes)

    monkeypatch.setattr(small.state, "set_job", full)
    assert done(small, small.ask("ann", "visits", body()))["state"] == ANSWERED
    assert not failures


def outcome(folder, service, eps=0.1):
    """What the real worker makes of a job, in this process."""
    settings = service.gate.tables["visits"]
    request = {"verb": "mean", "formula": "age ~ sex", "options": {"eps": eps}}
    job = {"id": f"{eps}", "purse": "ann", "path": str(folder / "fit.nc"), "request": request}
    book = Codebook.load(settings.codebook)
    return schedule._outcome(job, settings, book, service.ledgers["visits"])


def test_a_table_that_was_taken_away_charges_nothing(small, tmp_path):
    assert outcome(tmp_path, small) == (ANSWERED, {})
    (tmp_path / "visits.csv").rename(tmp_path / "away.csv")
    state, error = outcome(tmp_path, small, 0.2)
    assert (state, error["error"]) == (REFUSED, "FrameError")
    assert "Nothing was charged" in error["message"]
    assert str(tmp_path) not in error["message"]
    assert small.ledgers["visits"].charges == 1


def test_an_answer_that_cannot_be_written_stays_charged(small, tmp_path, monkeypatch):
    def full(*_, **__):
        raise OSError(errno.ENOSPC, "no space")

    monkeypatch.setattr(Result, "save", full)
    assert outcome(tmp_path, small) == (FAILED, {})
    assert small.ledgers["visits"].charges == 1


def test_a_charge_from_elsewhere_counts_in_the_total(small):
    from dpmodels.privacy import Ledger

    elsewhere = Ledger.open(small.gate.ledger_path("visits"))
    elsewhere.charge([PureEvent(1.95)], adjacency="replace")
    with pytest.raises(LedgerError, match="more than"):
        small.ask("ann", "visits", body(0.1))
    assert done(small, small.ask("ann", "visits", body(0.04)))["state"] == ANSWERED
    with pytest.raises(DPModelsError):
        elsewhere.charge([PureEvent(0.02)], adjacency="replace")
    assert elsewhere.spent.amount <= 2.0
