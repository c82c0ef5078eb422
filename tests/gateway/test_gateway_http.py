"""A gateway over HTTP with real workers, and its client."""

import json
import random
import re
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread
from urllib.parse import urlsplit

import pytest
from gates import gate, in_thread, serving
from jsonschema import Draft202012Validator
from pandas.testing import assert_frame_equal
from test_gateway_calls import fuzzed

import dpmodels as dp
from dpmodels.errors import ArgumentError, BudgetError, FormulaError, GatewayError, LedgerError
from dpmodels.gateway.calls import FORBIDDEN
from dpmodels.gateway.server import openapi
from dpmodels.gateway.service import Service
from dpmodels.models.release import all_verbs

pytestmark = pytest.mark.expensive


@pytest.fixture(scope="module")
def real(tmp_path_factory):
    """The address, the service and tokens of a gateway with worker processes."""
    service = Service(gate(tmp_path_factory.mktemp("real"), eps=20.0, amount=10.0))
    tokens = {name: service.state.issue_token(name, 1) for name in ("ann", "bob", "eve")}
    with serving(service) as url:
        yield url, service, tokens


@pytest.fixture(scope="module")
def scripted(tmp_path_factory):
    """The same with the scripted worker."""
    settings = gate(
        tmp_path_factory.mktemp("scripted"), amount=2.0, server={"requests_per_minute": 5_000}
    )
    service = Service(settings, in_thread)
    tokens = {name: service.state.issue_token(name, 1) for name in ("ann", "eve")}
    with serving(service) as url:
        yield url, service, tokens


def status(url, method, path, token="", body=b""):
    """The status and the plain values of an answer."""
    connection = HTTPConnection(urlsplit(url).netloc, timeout=20)
    connection.request(method, path, body, {"Authorization": f"Bearer {token}"} if token else {})
    answer = connection.getresponse()
    content = answer.read()
    connection.close()
    return answer.status, json.loads(content)


def test_a_remote_table_is_a_session(real, tmp_path):
    url, service, tokens = real
    gateway = dp.connect(url, token=tokens["ann"])
    visits = gateway.table("visits")
    assert gateway.tables == ("visits",)
    assert visits.n_rows is None  # Of a CSV file, it is public but not known
    assert set(visits.codebook) == {"age", "wage", "sex"}
    fit = visits.mean("age ~ sex", eps=1.0)
    assert type(fit) is type(
        dp.dp_mean("age ~ sex", visits.simulated(), codebook=visits.codebook, eps=1)
    )
    assert fit.release.guarantee == dp.PureDP(1.0)
    again = visits.mean("age ~ sex", eps=1.0)
    assert again.tidy().equals(fit.tidy())
    assert len(visits.register()) == 1
    assert (visits.spent, visits.left) == ("eps = 1", "eps = 9")
    assert len(visits.results) == 2
    assert "pca" in dir(visits)
    job = visits.submit(visits.call.mean("wage", eps=0.1))
    job.result()
    assert all(tokens["ann"] not in repr(text) for text in (visits, gateway, job))
    calls = [visits.call.lm("wage ~ age", eps=0.2), ("hist", "~ age", {"eps": 9.5})]
    table = visits.plan([*calls, ("mean", "age", {"share": "1/2"})])
    assert list(table["fits"]) == [True, False, True]
    visits.simulated()[:400].to_csv(tmp_path / "simulated.csv", index=False)
    session = dp.session(tmp_path / "simulated.csv", visits.codebook, eps=10.0)
    for formula, eps in (("age ~ sex", 1.0), ("wage", 0.1)):
        session.mean(formula, eps=eps)
    alike = session.plan([*calls, ("mean", "age", {"share": "1/2"})]).table
    alike = alike.drop(columns="identified")
    assert_frame_equal(table, alike, check_dtype=False)
    assert visits.plan([]).empty
    register = visits.register()
    assert list(register["total"]) == [1.0, 1.1]
    earlier = dp.dp_synth("~ .", visits.simulated(), codebook=visits.codebook, budget=dp.ZCDP(1))
    assert visits.synth("~ .", given=earlier).release.guarantee == earlier.release.guarantee
    assert len(visits.register()) == 2
    assert len(service.ledgers["visits"].purse("bob").register()) == 0


def test_what_is_wrong_is_refused_before_anything_is_sent(real, monkeypatch):
    url, _, tokens = real
    visits = dp.connect(url, token=tokens["ann"]).table("visits")
    monkeypatch.setattr(type(visits._gateway), "send", lambda *_: pytest.fail("sent"))
    with pytest.raises(FormulaError):
        visits.mean("age ~ nothing", eps=0.1)
    with pytest.raises(ArgumentError, match="session sets person"):
        visits.mean("age", eps=0.1, person="id")
    with pytest.raises(BudgetError):
        visits.mean("age")


def test_a_job_is_found_again_by_its_identifier(real):
    url, _, tokens = real
    visits = dp.connect(url, token=tokens["bob"]).table("visits")
    job = visits.submit(visits.call.lm("wage ~ age", eps=1.0))
    fit = dp.connect(url, token=tokens["bob"]).job(job.id).result()
    assert fit.call.formula == "wage ~ age"
    with pytest.raises(GatewayError, match="no such job"):
        dp.connect(url, token=tokens["ann"]).job(job.id).result()


def test_a_purse_refuses_and_says_so(real):
    url, _, tokens = real
    visits = dp.connect(url, token=tokens["bob"]).table("visits")
    with pytest.raises(LedgerError, match="Write a smaller budget"):
        visits.mean("age", eps=10.5)


def test_an_address_that_would_send_the_token_in_the_open_is_refused():
    with pytest.raises(ArgumentError, match="unencrypted"):
        dp.connect("http://gate.example", token="x")
    with pytest.raises(ArgumentError, match="expected an address"):
        dp.connect("ftp://gate.example", token="x")
    with pytest.raises(GatewayError, match="cannot be reached"):
        _ = dp.connect("http://127.0.0.1:9", token="x", patience=0).tables


def test_a_redirection_takes_the_token_nowhere():
    received = []

    class Elsewhere(BaseHTTPRequestHandler):
        def do_GET(self):
            received.append((self.path, self.headers["Authorization"]))
            self.send_response(302 if self.path == "/v1/tables" else 200)
            self.send_header("Location", f"http://localhost:{server.server_port}/other")
            self.end_headers()
            self.wfile.write(b'{"tables": ["visits"]}')

        def log_message(self, *_):
            pass

    server = HTTPServer(("127.0.0.1", 0), Elsewhere)
    Thread(target=server.serve_forever, daemon=True).start()
    with pytest.raises(GatewayError, match="status 302"):
        _ = dp.connect(f"http://127.0.0.1:{server.server_port}", token="1.secret").tables
    server.shutdown()
    server.server_close()
    assert received == [("/v1/tables", "Bearer 1.secret")]


def test_tokens_are_needed_everywhere(scripted):
    url, service, tokens = scripted
    paths = [path for path in openapi()["paths"] if path != "/openapi.json"]
    for path in paths:
        method = next(iter(openapi()["paths"][path])).upper()
        place = path.format(table="visits", job="x")
        assert status(url, method, place)[0] == 401
    for token in ("x", "a.b", tokens["ann"][:-1], "é" * 50, "." * 300):
        header = token.encode("utf-8").decode("latin-1")
        assert status(url, "GET", "/v1/tables", header)[0] == 401
    assert status(url, "GET", "/v1/tables", tokens["ann"])[0] == 200
    spare = service.state.issue_token("ann", 1)
    assert status(url, "GET", "/v1/tables", spare)[0] == 200
    tokens["ann"] = None
    service.state.revoke_tokens("ann")
    assert status(url, "GET", "/v1/tables", spare)[0] == 401
    tokens["ann"] = service.state.issue_token("ann", 1)


def test_fuzzed_bodies_are_answered_with_typed_errors(scripted):
    url, _, tokens = scripted
    rng = random.Random(2)
    statuses = set()
    for _ in range(100):
        code, plain = status(url, "POST", "/v1/tables/visits/ask", tokens["ann"], fuzzed(rng))
        statuses.add(code)
        assert code == 202 or set(plain) == {"error", "message"}
        assert "Traceback" not in json.dumps(plain)
    assert statuses <= {202, 409, 413, 422}
    assert 422 in statuses
    assert status(url, "POST", "/v1/tables/visits/ask", tokens["ann"], b" " * 10**6)[0] == 413
    for path in ("/v1/tables/%00/ask", "/v1/tables/..%2f/ask", "/v1/tables/x/ask"):
        assert status(url, "POST", path, tokens["ann"], b"{}")[0] == 404
    assert status(url, "PUT", "/v1/tables/visits/ask", tokens["ann"])[0] == 405
    assert status(url, "GET", "/v1/overview", tokens["ann"])[0] == 403


def test_requests_of_an_analyst_are_limited(tmp_path):
    service = Service(gate(tmp_path, server={"requests_per_minute": 5}), in_thread)
    token = service.state.issue_token("ann", 1)
    with serving(service) as url:
        codes = [status(url, "GET", "/v1/tables", token)[0] for _ in range(7)]
    assert codes == [200] * 5 + [429] * 2


def test_the_description_has_every_verb_with_its_options():
    schemas = openapi()["components"]["schemas"]
    for name, verb in all_verbs().items():
        words = schemas[name]["properties"]["options"]["properties"]
        assert set(verb.options) - set(FORBIDDEN) <= set(words)
        assert {"eps", "delta", "rho", "share", "mechanism", "subset"} <= set(words)
        assert not set(FORBIDDEN) & set(words)


def test_the_description_is_valid():
    plain = json.loads(json.dumps(openapi(), allow_nan=False))
    schemas = plain["components"]["schemas"]
    references = set(re.findall(r'"\$ref": "([^"]+)"', json.dumps(plain)))
    assert references == {f"#/components/schemas/{name}" for name in schemas}
    for schema in schemas.values():
        Draft202012Validator.check_schema(schema)
    for path, operations in plain["paths"].items():
        (operation,) = operations.values()
        declared = {parameter["name"] for parameter in operation["parameters"]}
        assert declared == set(re.findall(r"{(\w+)}", path))
        assert operation["responses"]


@pytest.mark.parametrize("path", ["ask", "plan"])
def test_the_description_accepts_what_the_gateway_does(path):
    plain = openapi()
    operation = plain["paths"][f"/v1/tables/{{table}}/{path}"]["post"]
    schema = operation["requestBody"]["content"]["application/json"]["schema"]
    validator = Draft202012Validator({**schema, "components": plain["components"]})
    good = {"verb": "hist", "formula": "~ age", "options": {"eps": "1/5", "breaks": [0, 9, 100]}}
    for request in (good, {"verb": "mean", "formula": "~ age"}):
        assert validator.is_valid(request)
        assert validator.is_valid([request]) == (path == "plan")
    assert validator.is_valid({**good, "options": {"design": False}})
    for words in ({"ledger": "x"}, {"eps": []}, {"epss": 1}, {"design": True}, {"given": 1}):
        assert not validator.is_valid({**good, "options": words})
    assert not validator.is_valid({**good, "verb": "eval"})


@pytest.mark.product
def test_the_disclosure_speaks_of_collusion(real):
    _, service, _ = real
    page = service.disclosure("eve", "visits")
    assert "analysts who share their answers" in page
    assert "Purse ann" in page
