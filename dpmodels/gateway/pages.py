"""Pages of a gateway for browsers: analysts plan, ask and read; curators watch and approve.

A page asks the service as a program does, so that answers, refusals and the public clock are the
same. Nothing of a row is on a page: it has public facts, requests and released answers.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from functools import partial
from importlib.resources import files
from typing import Any, Final, NamedTuple

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response
from starlette.routing import Route

from dpmodels.errors import DPModelsError, GatewayError, NotAvailable
from dpmodels.gateway.answers import Answer, answer_of, call_text, code_text
from dpmodels.gateway.forms import (
    assumed_n,
    budget_fields,
    chosen_verb,
    entries,
    limited_body,
    option_fields,
    request_of,
)
from dpmodels.gateway.service import Service
from dpmodels.gateway.sessions import COOKIE, PAGE_HEADERS, Sessions
from dpmodels.gateway.state import ANSWERED, HELD, Job
from dpmodels.labels import plain
from dpmodels.privacy import ZCDP
from dpmodels.report.html import STYLE

_SHOWN: Final = 200  # Jobs, lines of the audit log and names of variables on a page
_PREDICTED: Final = 30  # Estimates of a plan
_ASSETS: Final = {
    "pages.css": "text/css",
    "pages.js": "text/javascript",
    "icon.svg": "image/svg+xml",
}
_EXPIRED: Final = "the form has expired: go back, reload the page and send it again"
Admit = Callable[[str], str]
Refusal = Callable[[str, Exception], tuple[int, str, str]]


class Visit(NamedTuple):
    """A request of a browser that signed in."""

    analyst: str
    is_curator: bool
    place: str  # The table, the job or the file of the path
    form: Mapping[str, str]
    base: str  # The address of the gateway
    secret: str  # Of its forms


Answered = Callable[["Pages", Visit], Response]


class Pages:
    """The pages of a running gateway."""

    def __init__(self, service: Service, admit: Admit, refusal: Refusal) -> None:
        self.service, self._admit, self.refusal = service, admit, refusal
        self._sessions = Sessions()
        self._templates = Environment(
            loader=PackageLoader("dpmodels.gateway"),
            autoescape=True,
            undefined=StrictUndefined,
            finalize=_printable,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        self._templates.filters |= {"date": _date, "call": call_text}

    def page(self, name: str, visit: Visit | None, status: int = 200, **facts: object) -> Response:
        """Return a page of a template."""
        template = self._templates.get_template(name)
        content = template.render(visit=visit, **facts)
        return HTMLResponse(content, status_code=status, headers=PAGE_HEADERS)

    def handler(self, answered: Answered) -> Callable[[Request], Any]:
        """Return a handler for requests of browsers that signed in."""

        async def handle(request: Request) -> Response:
            body = await limited_body(request)
            return await run_in_threadpool(self._response, request, body, answered)

        return handle

    def _response(self, request: Request, body: bytes | None, answered: Answered) -> Response:
        cookie, analyst, visit = request.cookies.get(COOKIE, ""), "", None
        header = self._sessions.header(cookie)
        if not header:
            return _to("/sign-in")
        try:
            form = self._form(request, body, cookie)
            analyst = self._admit(header)
            visit = self._visit(request, analyst, form, self._sessions.secret(cookie))
            return answered(self, visit)
        except Exception as error:
            status, _, message = self.refusal(analyst, error)
            if status == 401:
                self._sessions.close(cookie)
                return _to("/sign-in")
            return self.page("problem.html", visit, status, message=message)

    def _form(self, request: Request, body: bytes | None, cookie: str) -> Mapping[str, str]:
        """Read the form of a request; a GatewayError without the secret of the session."""
        if body is None:
            raise GatewayError("the form is too long", 413)
        form = entries(body) if request.method == "POST" else dict(request.query_params)
        is_sent = self._sessions.is_secret(cookie, form.get("secret", ""))
        if request.method == "POST" and not is_sent:
            raise GatewayError(_EXPIRED, 403)
        return form

    def _visit(self, request: Request, analyst: str, form: Mapping[str, str], secret: str) -> Visit:
        place = next(iter(request.path_params.values()), "")
        is_curator = self.service.gate.analysts[analyst].curator
        base = str(request.base_url).rstrip("/")
        return Visit(analyst, is_curator, place, form, base, secret)

    async def sign_in(self, request: Request) -> Response:
        """Show the form for a token, or open a session with one."""
        cookie = request.cookies.get(COOKIE, "") or secrets.token_urlsafe(32)
        body = await limited_body(request)
        status, message = 200, ""
        if request.method == "POST":
            try:
                token = self._form(request, body, cookie).get("token", "").strip()
                await run_in_threadpool(self._admit, f"Bearer {token}")
                self._sessions.close(cookie)
                return _with_cookie(_to("/"), request, self._sessions.open(token))
            except (DPModelsError, ValueError) as error:
                status, _, message = self.refusal("", error)
        facts = {"secret": self._sessions.secret(cookie), "message": message}
        return _with_cookie(self.page("sign_in.html", None, status, **facts), request, cookie)

    async def sign_out(self, request: Request) -> Response:
        """End the session."""
        cookie = request.cookies.get(COOKIE, "")
        form = entries(await limited_body(request) or b"")
        if not self._sessions.is_secret(cookie, form.get("secret", "")):
            return self.page("problem.html", None, 403, message=_EXPIRED)
        self._sessions.close(cookie)
        response = _to("/sign-in")
        response.delete_cookie(COOKIE)
        return response


def page_routes(service: Service, admit: Admit, refusal: Refusal) -> list[Route]:
    """Return the routes of all pages.

    Parameters
    ----------
    service : Service
        What they show.
    admit : function
        From the header with a token to the analyst; a GatewayError refuses others.
    refusal : function
        From an analyst and an error to a status, a name and a message.
    """
    pages = Pages(service, admit, refusal)
    answered: list[tuple[str, str, Answered]] = [
        ("/", "GET", _home),
        ("/tables/{table}", "GET", _table),
        ("/tables/{table}", "POST", _planned),
        ("/tables/{table}/run", "POST", _run),
        ("/jobs", "GET", _jobs),
        ("/jobs/{job}", "GET", _job),
        ("/jobs/{job}/state", "GET", _state),
        ("/jobs/{job}/answer.nc", "GET", _answer_file),
        ("/jobs/{job}/table.csv", "GET", _answer_csv),
        ("/jobs/{job}/picture.png", "GET", _picture),
        ("/jobs/{job}/approve", "POST", _approve),
        ("/curator", "GET", _curator),
        ("/curator/register", "GET", _register),
        ("/curator/{table}/stop", "POST", partial(_set_stopped, stopped=True)),
        ("/curator/{table}/resume", "POST", partial(_set_stopped, stopped=False)),
        ("/curator/{table}/disclosure", "GET", _disclosure),
    ]
    return [
        Route("/assets/{name}", _asset),
        Route("/sign-in", pages.sign_in, methods=["GET", "POST"]),
        Route("/sign-out", pages.sign_out, methods=["POST"]),
        *(Route(path, pages.handler(of), methods=[method]) for path, method, of in answered),
    ]


def _printable(value: object) -> object:
    """Return a text without characters that act on a page; templates escape it."""
    return value if type(value) is not str or value.isprintable() else plain(value)


def _date(seconds: float) -> str:
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M:%S}"


def _to(path: str) -> Response:
    return RedirectResponse(path, 303, headers=PAGE_HEADERS)


def _with_cookie(response: Response, request: Request, cookie: str) -> Response:
    is_secure = request.url.scheme == "https"
    response.set_cookie(COOKIE, cookie, httponly=True, samesite="strict", secure=is_secure)
    return response


def _asset(request: Request) -> Response:
    name = request.path_params["name"]
    if name not in _ASSETS:
        return Response(status_code=404, headers=PAGE_HEADERS)
    content = files("dpmodels.gateway").joinpath("templates", name).read_text("utf-8")
    if name == "pages.css":
        content = STYLE.removeprefix("<style>").removesuffix("</style>") + content
    headers = {**PAGE_HEADERS, "Cache-Control": "max-age=600"}
    return Response(content, media_type=_ASSETS[name], headers=headers)


# Pages of analysts.


def _home(pages: Pages, visit: Visit) -> Response:
    service = pages.service
    tables = {
        name: service.public(visit.analyst, name) | {"stopped": service.state.is_stopped(name)}
        for name in service.open_tables(visit.analyst)
    }
    if visit.is_curator and not tables:
        return _to("/curator")
    return pages.page("tables.html", visit, tables=tables)


def _table(
    pages: Pages, visit: Visit, status: int = 200, plan: object = None, message: str = ""
) -> Response:
    """Show the form of a table, with a plan or a message."""
    service, form = pages.service, visit.form
    purse, facts = service.purse(visit.analyst, visit.place), service.tables[visit.place]
    verb, is_concentrated = chosen_verb(form), isinstance(purse.guarantee, ZCDP)
    names = list(facts.codebook)
    return pages.page(
        "table.html",
        visit,
        status,
        table=service.ledger(visit.analyst, visit.place),
        names=names[:_SHOWN],
        omitted=max(len(names) - _SHOWN, 0),
        codebook=Markup(facts.codebook.select(names[:_SHOWN])._repr_html_()),
        verbs=service.verbs,
        verb=verb,
        formula=form.get("formula", ""),
        assumed=form.get("n", service.assumed_n(visit.place) or ""),
        budget=budget_fields(form, concentrated=is_concentrated),
        options=option_fields(verb, form),
        stopped=service.state.is_stopped(visit.place),
        plan=plan,
        message=message,
    )


def _planned(pages: Pages, visit: Visit) -> Response:
    """Show the plan of what was entered, or only the options of another verb."""
    if "plan" not in visit.form:
        return _table(pages, visit)
    try:
        return _table(pages, visit, plan=_plan(pages.service, visit))
    except NotAvailable:
        raise
    except (DPModelsError, ValueError, TypeError, LookupError, ArithmeticError) as error:
        status, _, message = pages.refusal(visit.analyst, error)
        return _table(pages, visit, status, message=message)


def _plan(service: Service, visit: Visit) -> dict[str, Any]:
    """Return the price of a request, what it is expected to show, and the request itself."""
    body, n_rows = request_of(visit.form), assumed_n(visit.form)
    at = (visit.analyst, visit.place, body)
    plan = service.plan(*at)
    table = None if n_rows is None else service.predicted(*at, n_rows)
    estimates = [] if table is None else list(table.itertuples())
    return {
        **plan,
        "n": n_rows,
        "estimates": estimates[:_PREDICTED],
        "omitted": max(len(estimates) - _PREDICTED, 0),
        "request": json.loads(body),
        "body": Markup(escape(body.decode())),
    }


def _run(pages: Pages, visit: Visit) -> Response:
    body = visit.form.get("request", "").encode()
    described = pages.service.ask(visit.analyst, visit.place, body)
    return _to(f"/jobs/{described['job']}")


def _jobs(pages: Pages, visit: Visit) -> Response:
    """List the jobs of the purse, those of all for a curator; the latest are first."""
    service = pages.service
    purse = None if visit.is_curator else service.gate.analysts[visit.analyst].purse
    jobs = service.state.jobs(purse)[::-1]
    shown = [(job, service.described(job)) for job in jobs[:_SHOWN]]
    return pages.page("jobs.html", visit, jobs=shown, omitted=len(jobs) - len(shown))


def _job(pages: Pages, visit: Visit) -> Response:
    job, described = _job_of(pages, visit)
    answer = _answer(pages, visit) if described["state"] == ANSWERED else None
    code = Markup(escape(code_text(visit.base, job.table, job.request)))
    return pages.page("job.html", visit, job=job, described=described, answer=answer, code=code)


def _job_of(pages: Pages, visit: Visit) -> tuple[Job, dict[str, Any]]:
    job = pages.service.job(visit.analyst, visit.place)
    return job, pages.service.described(job)


def _answer(pages: Pages, visit: Visit) -> Answer:
    """Lay out an answer; NotAvailable before it is public."""
    pages.service.answer(visit.analyst, visit.place)
    return answer_of(str(pages.service.state.answer_path(visit.place)))


def _state(pages: Pages, visit: Visit) -> Response:
    described = _job_of(pages, visit)[1]
    shown = {name: described[name] for name in ("state", "seconds_left")}
    return JSONResponse(shown, headers=PAGE_HEADERS)


def _file(visit: Visit, content: bytes | str, kind: str, ending: str) -> Response:
    name = f'attachment; filename="dpmodels-{visit.place[:8]}.{ending}"'
    headers = {**PAGE_HEADERS, "Content-Disposition": name}
    return Response(content, media_type=kind, headers=headers)


def _answer_file(pages: Pages, visit: Visit) -> Response:
    content = pages.service.answer(visit.analyst, visit.place)
    return _file(visit, content, "application/x-netcdf", "nc")


def _answer_csv(pages: Pages, visit: Visit) -> Response:
    return _file(visit, _answer(pages, visit).csv, "text/csv", "csv")


def _picture(pages: Pages, visit: Visit) -> Response:
    drawn = _answer(pages, visit).pictures
    number = visit.form.get("number", "0")
    if not number.isdecimal() or int(number) >= len(drawn):
        raise NotAvailable("there is no such picture")
    return Response(drawn[int(number)].png, media_type="image/png", headers=PAGE_HEADERS)


# Pages of curators.


def _curator(pages: Pages, visit: Visit) -> Response:
    service = pages.service
    overview = service.overview(visit.analyst)
    held = [job for job in service.state.jobs() if job.state == HELD]
    analysts = service.gate.analysts
    tables = overview["tables"]
    return pages.page("curator.html", visit, tables=tables, analysts=analysts, held=held)


def _register(pages: Pages, visit: Visit) -> Response:
    lines = pages.service.overview(visit.analyst)["audit"]
    latest = [
        ({key: line.pop(key) for key in ("time", "who", "action")}, line)
        for line in lines[: -_SHOWN - 1 : -1]
    ]
    return pages.page("register.html", visit, lines=latest, count=len(lines))


def _approve(pages: Pages, visit: Visit) -> Response:
    pages.service.approve(visit.analyst, visit.place)
    return _to("/curator")


def _set_stopped(pages: Pages, visit: Visit, *, stopped: bool) -> Response:
    pages.service.set_stopped(visit.analyst, visit.place, stopped=stopped)
    return _to("/curator")


def _disclosure(pages: Pages, visit: Visit) -> Response:
    policy = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
    headers = {**PAGE_HEADERS, "Content-Security-Policy": policy}
    return HTMLResponse(pages.service.disclosure(visit.analyst, visit.place), headers=headers)
