"""Pages of a gateway: who may open which, what they say, and that they answer as the API does."""

import csv
import io
import json
import re
import time
from urllib.request import Request, urlopen

import pytest
from browsers import ASK, DIES, FAILS, HOSTILE, SECRET, Browser, started
from gates import serving

import dpmodels as dp
from dpmodels.codebook import Codebook
from dpmodels.gateway.pages import Sessions

pytestmark = pytest.mark.expensive

CURATORS = ("/curator", "/curator/register", "/curator/visits/disclosure")
FORMS = (
    *("/tables/visits", "/tables/visits/run", "/sign-out", "/jobs/x/approve"),
    *("/curator/visits/stop", "/curator/visits/resume"),
)


@pytest.fixture(scope="module")
def gate(tmp_path_factory):
    """The address, the service and tokens of a gateway without ticks."""
    service, tokens = started(tmp_path_factory.mktemp("pages"), eps=50.0, amount=20.0)
    with serving(service) as url:
        yield url, service, tokens


@pytest.fixture
def ann(gate):
    return signed_in(gate, "ann")


@pytest.fixture
def eve(gate):
    return signed_in(gate, "eve")


def signed_in(gate, name):
    browser = Browser(gate[0])
    assert browser.sign_in(gate[2][name]).status == 200
    browser.get("/jobs")
    return browser


def api(gate, name, path, plain=None):
    """The answer of the interface for programs."""
    body = None if plain is None else json.dumps(plain).encode()
    request = Request(gate[0] + path, body, {"Authorization": f"Bearer {gate[2][name]}"})
    with urlopen(request, timeout=20) as answer:
        return answer.read()


# Sessions.


def test_a_session_is_opened_by_a_token_that_no_address_has(gate):
    browser = Browser(gate[0])
    page = browser.get("/tables/visits")
    assert (page.path, page.status) == ("/sign-in", 200)
    wrong = browser.sign_in("0123.wrong")
    assert (wrong.status, wrong.path) == (401, "/sign-in")
    token = gate[2]["ann"]
    home = browser.sign_in(token)
    assert (home.status, home.path) == (200, "/")
    (cookie,) = browser.cookies
    assert cookie.has_nonstandard_attr("HttpOnly")
    assert cookie.get_nonstandard_attr("SameSite") == "strict"
    assert token not in cookie.value
    assert token not in home.text
    assert browser.send("/sign-out").path == "/sign-in"
    assert browser.get("/jobs").path == "/sign-in"


def test_a_cookie_is_replaced_when_somebody_signs_in(gate):
    browser = Browser(gate[0])
    browser.get("/sign-in")
    (before,) = browser.cookies
    planted = before.value
    browser.send("/sign-in", token=gate[2]["ann"])
    assert {cookie.value for cookie in browser.cookies} - {planted}
    stranger = Browser(gate[0])
    stranger.cookies.set_cookie(before)
    assert stranger.get("/jobs").path == "/sign-in"
    (first,) = browser.cookies
    browser.sign_in(gate[2]["ann"])
    stranger.cookies.set_cookie(first)
    assert stranger.get("/jobs").path == "/sign-in"
    assert browser.get("/jobs").path == "/jobs"


def test_a_token_opens_a_limited_number_of_sessions():
    sessions = Sessions()
    session = sessions.open("bob")
    opened = [sessions.open("ann") for _ in range(50)]
    assert sessions.header(session) == "Bearer bob"
    assert [bool(sessions.header(cookie)) for cookie in opened] == [False] * 30 + [True] * 20


def test_a_revoked_token_ends_its_sessions(tmp_path):
    service, tokens = started(tmp_path)
    with serving(service) as url:
        browser = signed_in((url, service, tokens), "bob")
        service.state.revoke_tokens("bob")
        assert browser.get("/jobs").path == "/sign-in"


@pytest.mark.parametrize("path", FORMS)
def test_a_form_without_its_secret_is_refused(gate, path):
    browser = signed_in(gate, "eve")
    stranger = signed_in(gate, "eve")
    for fields in ({}, {"secret": ""}, {"secret": "é"}, {"secret": stranger.secret}):
        assert browser.get(path, fields).status == 403
    assert browser.get("/jobs").status == 200
    assert not gate[1].state.is_stopped("visits")


def test_a_sign_in_without_the_secret_is_refused(gate):
    browser = Browser(gate[0])
    browser.get("/sign-in")
    assert browser.get("/sign-in", {"token": gate[2]["ann"]}).status == 403
    assert browser.get("/jobs").path == "/sign-in"


# Who may see what.


def test_an_analyst_opens_no_page_of_a_curator(gate, ann):
    for path in CURATORS:
        page = ann.get(path)
        assert page.status == 403
        assert "only a curator" in page.text
    for path in ("/curator/visits/stop", "/curator/visits/resume"):
        assert ann.send(path).status == 403
    job = ann.run(eps="0.11")
    assert ann.send(f"{job}/approve").status == 403
    assert "/curator" not in ann.get("/jobs").text


def test_an_analyst_sees_no_job_of_another_purse(gate, ann):
    job = ann.run(eps="0.12")
    ann.wait(job)
    bob = signed_in(gate, "bob")
    for path in (job, f"{job}/answer.nc", f"{job}/table.csv", f"{job}/picture.png"):
        page = bob.get(path)
        assert page.status == 404
        assert "age ~ sex" not in page.text
    assert job not in bob.get("/jobs").text


@pytest.mark.product
def test_a_curator_sees_tables_purses_jobs_and_the_register(gate, ann, eve):
    job = ann.run(eps="0.13")
    ann.wait(job)
    assert eve.get("/").path == "/curator"
    curator = eve.get("/curator").text
    assert all(name in curator for name in ("visits", "ann", "bob", "eve", "first come"))
    assert job in eve.get("/jobs").text
    assert "Asked by ann" in eve.get(job).text
    again = eve.send(f"{job}/approve", plan="1")
    assert (again.status, "does not wait for approval" in again.text) == (422, True)
    assert "job accepted" in eve.get("/curator/register").text
    assert "Disclosure report of visits" in eve.get("/curator/visits/disclosure").text
    assert eve.get("/tables/visits").status == 404


def test_a_curator_stops_and_resumes_a_table(gate, ann, eve):
    eve.send("/curator/visits/stop")
    assert "stopped this table" in ann.get("/tables/visits").text
    body = ann.plan(eps="0.14")[1]
    refused = ann.send("/tables/visits/run", request=body)
    assert (refused.status, "stopped" in refused.text) == (409, True)
    eve.send("/curator/visits/resume")
    assert ann.send("/tables/visits/run", request=body).status == 200


@pytest.mark.product
def test_a_curator_approves_a_request(tmp_path):
    service, tokens = started(tmp_path, approval=True)
    with serving(service) as url:
        gate = (url, service, tokens)
        ann, eve = signed_in(gate, "ann"), signed_in(gate, "eve")
        job = ann.run()
        assert "Waiting for approval" in ann.get(job).text
        assert job in eve.get("/curator").text
        assert service.ledgers["visits"].charges == 0
        eve.send(f"{job}/approve")
        assert "Private means" in ann.wait(job).text


# Answers.


def test_pages_and_programs_have_the_same_answers(gate, ann):
    plan, body = ann.plan(eps="0.3")
    request = json.loads(body)
    assert request == {"verb": "mean", "formula": "age ~ sex", "options": {"eps": 0.3}}
    priced = json.loads(api(gate, "ann", "/v1/tables/visits/plan", request))
    assert all(priced[name] in plan.text for name in ("cost", "total", "mechanism"))
    job = ann.run(eps="0.3")
    page, charges = ann.wait(job), gate[1].ledgers["visits"].charges
    again = json.loads(api(gate, "ann", "/v1/tables/visits/ask", request))
    assert job == f"/jobs/{again['job']}"
    assert ann.get(f"{job}/answer.nc").content == api(gate, "ann", f"/v1{job}/answer")
    code = re.search(r'aria-label="Code">(.*?)</pre>', page.text, re.DOTALL)[1]
    names = {"dp": dp}
    code = code.replace("&#34;", '"').replace("&#39;", "'").replace("print", "text = str")
    code = code.replace('os.environ["GATE_TOKEN"]', repr(gate[2]["ann"]))
    exec(code, names)
    assert "Private means" in names["text"]
    assert gate[1].ledgers["visits"].charges == charges
    rows = list(csv.DictReader(io.StringIO(ann.get(f"{job}/table.csv").text)))
    assert [float(row["estimate"]) for row in rows] == list(names["fit"].tidy()["estimate"])
    assert ann.get(f"{job}/picture.png").content.startswith(b"\x89PNG")
    assert ann.get(f"{job}/picture.png?number=x").status == 404


def test_a_plan_says_what_is_expected_and_charges_nothing(gate, ann):
    charges = gate[1].ledgers["visits"].charges
    page, body = ann.plan(verb="lm", formula="wage ~ age", eps="1.5", n="5,000")
    assert "Expected of 5,000 rows" in page.text
    assert page.text.count(" %</td>") == 2
    page, body = ann.plan(eps="100")
    assert body is None
    assert "more than the purse or the table has left" in page.text
    for wrong in ({"formula": "age ~ nothing"}, {"eps": "much"}, {"eps": ""}, {"n": "few"}):
        page, body = ann.plan(**wrong)
        assert (page.status, body) == (422, None)
        assert 'role="alert"' in page.text
    assert gate[1].ledgers["visits"].charges == charges


@pytest.mark.product
def test_the_charges_of_a_purse_have_totals(tmp_path):
    service, tokens = started(tmp_path)
    with serving(service) as url:
        ann = signed_in((url, service, tokens), "ann")
        for eps in ("0.125", "0.5"):
            ann.wait(ann.run(eps=eps))
        page = ann.get("/tables/visits").text
    charges = page[page.index("Charges to your purse") :]
    assert "Total eps" in charges
    assert re.findall(r'<td class="num">([\d.]+)</td>', charges) == ["0.625", "0.125"]


def test_options_of_another_verb_are_shown(ann):
    page = ann.send("/tables/visits", verb="hist", formula="~ age", shown="mean")
    assert 'name="breaks"' in page.text
    assert 'value="~ age"' in page.text
    body = ann.plan(verb="hist", formula="~ age", breaks="0, 20, 40", shown="hist")[1]
    assert json.loads(body)["options"] == {"eps": 0.5, "breaks": [0, 20, 40]}


def test_an_error_after_the_charge_looks_like_a_time_out(gate, ann):
    pages = []
    for condition, eps in ((FAILS, "0.15"), (DIES, "0.15")):
        charges = gate[1].ledgers["visits"].charges
        job = ann.run(subset=condition, eps=eps)
        text = ann.wait(job).text.replace(job, "").replace("43", "42")
        pages.append(re.sub(r"/jobs/[\w-]+", "", text))
        assert gate[1].ledgers["visits"].charges == charges + 1
        for name in ("answer.nc", "table.csv", "picture.png"):
            assert ann.get(f"{job}/{name}").status == 404
    assert pages[0] == pages[1]
    assert "it failed or ran out of time" in pages[0]


@pytest.mark.product
def test_an_answer_is_handed_out_by_the_public_clock(tmp_path):
    service, tokens = started(tmp_path, tick=3600.0, n_at_most=100)
    with serving(service) as url:
        gate = (url, service, tokens)
        ann, eve = signed_in(gate, "ann"), signed_in(gate, "eve")
        job = ann.run()
        identifier = job.rpartition("/")[2]
        while service.state.job(identifier).state == "queued":
            time.sleep(0.05)
        assert service.state.job(identifier).state == "answered"
        for browser in (ann, eve):
            page = browser.get(job)
            assert "The outcome is handed out in" in page.text
            for name in ("answer.nc", "table.csv", "picture.png"):
                assert browser.get(f"{job}/{name}").status == 404
        assert "job answered" not in eve.get("/curator/register").text
        assert "job accepted" in eve.get("/curator/register").text
        ends = service.state.job(identifier).public_at
        service.clock.now = lambda: ends
        (line,) = [
            value for value in service.overview("eve")["audit"] if value["action"][4:] == "answered"
        ]
        assert line["time"] == ends
        assert "Private means" in ann.get(job).text


# What pages say.


def test_hostile_texts_are_shown_and_not_run(gate, ann, eve):
    service = gate[1]
    fields = {"formula": HOSTILE, "subset": HOSTILE, "eps": HOSTILE, "n": HOSTILE, "delta": HOSTILE}
    pages = [ann.send("/tables/visits", **{**ASK, name: text}) for name, text in fields.items()]
    pages += [ann.send("/tables/visits", **fields, verb=HOSTILE, shown=HOSTILE, plan=HOSTILE)]
    body = json.dumps(
        {"verb": "mean", "formula": HOSTILE, "options": {"eps": 0.1, "subset": HOSTILE}}
    )
    pages += [ann.send("/tables/visits/run", request=text) for text in (body, HOSTILE, "[" * 9999)]
    job = service.state.job(ann.run(eps="0.16").rpartition("/")[2])
    stored = job._replace(id="hostile", key="h", request={**json.loads(body)}, state="failed")
    service.state.add_job(stored)
    pages += [ann.get("/jobs/hostile"), ann.get("/jobs"), eve.get("/jobs")]
    pages += [ann.get(f"/tables/{path}") for path in ("%3Cscript%3E", "%00", "..%2f")]
    for page in pages:
        assert page.status in (200, 404, 422)
        assert "<script>alert" not in page.text
        assert "<img src=x" not in page.text
        assert "\u202e" not in page.text
        assert "Traceback" not in page.text
    assert "&lt;script&gt;alert(1)" in pages[-4].text


def test_pages_have_nothing_of_a_row_and_are_small(gate, ann, eve):
    job = ann.run(verb="hist", formula="~ wage", eps="1")
    ann.wait(job)
    paths = ("/", "/tables/visits", "/jobs", job, f"{job}/table.csv")
    pages = [*map(ann.get, paths), ann.plan(formula="wage")[0], *map(eve.get, (*CURATORS, job))]
    for page in pages:
        assert page.status == 200
        assert SECRET.encode() not in page.content
        assert len(page.content) <= 300_000
        policy = page.headers["Content-Security-Policy"]
        assert policy.startswith("default-src 'self'") or "disclosure" in page.path
        assert "script-src" not in policy
        assert page.headers["Cache-Control"] == "no-store"
        assert not re.search(r"""(?:src|href|action)=["']?(?:https?:)?//""", page.text)


def test_a_codebook_of_thousands_of_variables_has_a_small_page(tmp_path):
    plain = {
        f"variable_with_a_long_name_{i}": {"range": [0, 1], "label": "x" * 80} for i in range(2000)
    }
    service, tokens = started(tmp_path)
    wide = service.tables["visits"]
    object.__setattr__(wide, "codebook", Codebook.from_dict(plain))
    with serving(service) as url:
        page = signed_in((url, service, tokens), "ann").get("/tables/visits")
    assert page.status == 200
    assert "and 1800 more" in page.text
    assert len(page.content) <= 300_000


def test_a_form_that_is_too_long_is_refused(ann):
    assert ann.send("/tables/visits", **{**ASK, "formula": "a" * 70_000}).status == 413
    values_by_name = {f"field{i}": "" for i in range(300)}
    assert ann.send("/tables/visits", **values_by_name).status == 422


def test_assets_are_of_the_gateway_and_others_are_refused(gate):
    browser = Browser(gate[0])
    for name in ("pages.css", "pages.js", "icon.svg"):
        page = browser.get(f"/assets/{name}")
        assert page.status == 200
        assert "://" not in page.text.replace("http://www.w3.org/2000/svg", "")
    assert ".dpmodels-report" in browser.get("/report.css").text
    for name in ("job.html", "..%2fserver.py", "..%2ftemplates%2fjob.html"):
        assert browser.get(f"/assets/{name}").status == 404
