"""Pages of a gateway for browsers: analysts plan, ask and read; curators watch and approve.

A page asks the service as a program does, so that answers, refusals and the public clock are the
same. Nothing of a row is on a page: templates get public facts, requests and released answers.
"""

from __future__ import annotations

import hashlib
import hmac
import inspect
import json
import secrets
import struct
import time
from asyncio import Semaphore, timeout
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from functools import lru_cache, partial
from importlib import import_module
from importlib.util import find_spec
from threading import Lock
from typing import Final, NamedTuple
from urllib.parse import parse_qsl
from weakref import WeakValueDictionary

from jinja2 import Environment, PackageLoader, StrictUndefined
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import BaseRoute, Mount, Route
from starlette.staticfiles import StaticFiles

from dpmodels.arguments import integer
from dpmodels.disclosures.document import pictures
from dpmodels.errors import ArgumentError, GatewayError, NotAvailable
from dpmodels.gateway.calls import FORBIDDEN, MOST_BYTES
from dpmodels.gateway.service import Service
from dpmodels.gateway.state import ANSWERED
from dpmodels.labels import plain
from dpmodels.models.load import load
from dpmodels.models.release import all_verbs
from dpmodels.report.html import STYLE, as_part, terms_box
from dpmodels.typing import Plain
from dpmodels.verbs import ParameterDoc, members, parameter_docs, read, signature

_AT_ONCE: Final = 8  # Of 40 threads
_BODY_SECONDS: Final = 30.0


class Turns:
    """Lets a sender compute a few requests at once, so that others find a free thread."""

    def __init__(self) -> None:
        self._open = WeakValueDictionary[str, Semaphore]()

    def of(self, sender: str) -> Semaphore:
        """Return what a request of a sender acquires before it takes a thread."""
        return self._open.setdefault(sender, Semaphore(_AT_ONCE))


async def limited_body(request: Request) -> bytes | None:
    """Read a body of limited size, None if it is longer.

    Status 408 if it takes too long, and 400 if a proxy may see another end of it.
    """
    if {"content-length", "transfer-encoding"} <= set(request.headers):
        raise HTTPException(400, "the body has two lengths", {"Connection": "close"})
    body = b""
    try:
        async with timeout(_BODY_SECONDS):
            async for chunk in request.stream():
                body += chunk
                if len(body) > MOST_BYTES:
                    return None
    except TimeoutError:
        raise HTTPException(408, f"the body took more than {_BODY_SECONDS:g} seconds") from None
    return body


_MOST_FIELDS: Final = 200
_MOST_ROWS: Final = 100_000_000  # A prediction takes seconds
_TRUTHS: Final = {"yes": True, "no": False}
_SHARED: Final = ("mechanism", "subset", "design")
_BUDGET: Final = {"eps": (float, str), "delta": (float,), "rho": (float,)}


class Field(NamedTuple):
    """An option as a form shows it: a list of choices, or a text."""

    name: str
    hint: str
    value: str
    choices: tuple[str, ...]


def entries(body: bytes) -> dict[str, str]:
    """Read the fields of a form; a ValueError if it is not one."""
    return dict(parse_qsl(body.decode(), keep_blank_values=True, max_num_fields=_MOST_FIELDS))


def chosen_verb(form: Mapping[str, str]) -> str:
    """Return the verb of a form, "mean" by default."""
    return form["verb"] if form.get("verb") in all_verbs() else "mean"


def option_fields(form: Mapping[str, str]) -> list[Field]:
    """Return the fields of the options that the verb declares and an analyst may set."""
    verb = chosen_verb(form)
    docs = parameter_docs(inspect.getdoc(all_verbs()[verb].function) or "")
    fields = []
    for name, (kinds, default) in _options(verb).items():
        doc = docs.get(name, ParameterDoc())
        is_kept = form.get("shown", verb) == verb or name in _SHARED
        choices = _choices(kinds, doc.choices, default)
        fields.append(Field(name, doc.text, form.get(name, "") if is_kept else "", choices))
    return fields


def _options(verb: str) -> dict[str, tuple[tuple[object, ...], object]]:
    declared = all_verbs()[verb]
    parameters = signature(declared.function)
    return {
        name: (members(parameters[name].annotation), parameters[name].default)
        for name in (*declared.options, *_SHARED)
        if name in parameters and name not in FORBIDDEN
    }


def _choices(
    kinds: tuple[object, ...], documented: Iterable[str], default: object
) -> tuple[str, ...]:
    if {int, float} & set(kinds):
        return ()
    if False in kinds:  # Of design=, whose other values the curator declares
        return ("no",)
    if bool in kinds:
        return tuple(_TRUTHS)
    listed = tuple(kind for kind in kinds if isinstance(kind, str)) or documented
    return tuple(name for name in listed if name != "none" or default is not None)


def request_of(form: Mapping[str, str]) -> bytes:
    """Return what was entered as a request; an ArgumentError if a value has another type."""
    verb, options = chosen_verb(form), dict[str, object]()
    kinds = {name: allowed for name, (allowed, _) in _options(verb).items()}
    for name, allowed in {**kinds, **_BUDGET}.items():
        if entered := form.get(name, "").strip():
            options[name] = _value(name, allowed, entered)
    request = {"verb": verb, "formula": form.get("formula", "").strip(), "options": options}
    return json.dumps(request).encode()


def assumed_n(form: Mapping[str, str]) -> int | None:
    """Return the number of rows that a prediction assumes, None if none was entered."""
    entered = form.get("n", "").replace(",", "").strip()
    return integer("n", _value("n", (int,), entered), 1, _MOST_ROWS) if entered else None


def _value(name: str, allowed: tuple[object, ...], entered: str) -> object:
    if {bool, False} & set(allowed) and entered in _TRUTHS:
        return _TRUTHS[entered]
    try:
        return read(allowed, entered, none=None in allowed)
    except ArgumentError as error:
        raise ArgumentError(f"{name}: {error}") from None


COOKIE: Final = "dpmodels_gate"
_SECONDS: Final = 8 * 3600.0
_MOST_OF_TOKEN: Final = 20


class Sessions:
    """Cookies of browsers that signed in, each for a token and some hours.

    A restart of the server ends all of them. A token that expires or is revoked ends those that it
    opened, since it is checked again with each request.
    """

    def __init__(self) -> None:
        self._key = secrets.token_bytes(32)
        self._opened: dict[str, tuple[str, float]] = {}

    def open(self, token: str) -> str:
        """Return the cookie of a new session; the token's oldest ends if it has too many."""
        cookie, header = secrets.token_urlsafe(32), f"Bearer {token}"
        opened = [other for other, (sent, _) in self._opened.items() if sent == header]
        for other in opened[: 1 - _MOST_OF_TOKEN]:
            self.close(other)
        self._opened[cookie] = (header, time.monotonic() + _SECONDS)
        return cookie

    def header(self, cookie: str) -> str:
        """Return the header with the token of a session, empty without a session."""
        header, until = self._opened.get(cookie, ("", 0.0))
        return header if time.monotonic() < until else ""

    def close(self, cookie: str) -> None:
        """End a session."""
        self._opened.pop(cookie, None)

    def secret(self, cookie: str) -> str:
        """Return what forms have to send with a cookie, against requests from other pages."""
        return hmac.new(self._key, cookie.encode(), hashlib.sha256).hexdigest()


_REMEMBERED: Final = 32  # Answers that were laid out, which never change
_DRAWING: Final = Lock()  # Pyplot is not for several threads


class Answer(NamedTuple):
    """A result as a page shows it."""

    table: str  # A fragment of HTML
    # Alternative text, PNG file, and its width and height in pixels.
    pictures: tuple[tuple[str, bytes, tuple[int, ...]], ...]
    csv: str


@lru_cache(_REMEMBERED)
def answer_of(path: str) -> Answer:
    """Lay out the result in a file."""
    fit = load(path)
    report = fit.summary().report
    table = [as_part(report), '<div class="dpmodels-report">', *terms_box([report]), "</div>"]
    with _DRAWING:
        if find_spec("matplotlib"):
            import_module("matplotlib").use("Agg")  # Draws without a display
        drawn = pictures(fit)
    # Width and height stand in the header of a PNG file.
    sized = tuple((text, png, struct.unpack(">II", png[16:24])) for text, png in drawn)
    return Answer("\n".join(table), sized, fit.tidy().to_csv(index=False))


def call_text(request: Mapping[str, Plain]) -> str:
    """Return a request as a call in Python."""
    options = dict(request["options"])
    rho = options.pop("rho", None)
    arguments = [f"{name}={value!r}" for name, value in options.items()]
    arguments += [] if rho is None else [f"budget=dp.ZCDP({rho!r})"]
    return f"{request['verb']}({', '.join([repr(request['formula']), *arguments])})"


_FILES: Final = {
    "answer.nc": "application/x-netcdf",
    "table.csv": "text/csv",
    "picture.png": "image/png",
}
# Style attributes are of bars in tables, whose lengths the server writes.
_HEADERS: Final = {
    "Cache-Control": "no-store",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
    "Content-Security-Policy": (
        "default-src 'self'; style-src-attr 'unsafe-inline'; object-src 'none'; base-uri 'none'; "
        "form-action 'self'; frame-ancestors 'none'"
    ),
}
_REPORT_STYLE: Final = STYLE.removeprefix("<style>").removesuffix("</style>")
REPORT_POLICY: Final = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
Refusal = Callable[[str, Exception], tuple[int, str, str]]


class Visit(NamedTuple):
    """A request of a browser that signed in."""

    service: Service
    analyst: str
    place: str  # The table or job of the path
    form: Mapping[str, str]
    base: str  # The address of the gateway
    cookie: str
    secret: str  # Of its forms

    @property
    def is_curator(self) -> bool:
        """Whether the pages of curators are open."""
        return self.service.gate.analysts[self.analyst].curator


_TEMPLATES: Final = Environment(
    loader=PackageLoader("dpmodels.gateway"),
    autoescape=True,
    undefined=StrictUndefined,
    # No characters that act on a page beside those that are escaped.
    finalize=lambda x: plain(x) if type(x) is str and not x.isprintable() else x,
    trim_blocks=True,
    lstrip_blocks=True,
)
_TEMPLATES.filters["date"] = lambda at: f"{datetime.fromtimestamp(at, UTC):%Y-%m-%d %H:%M:%S}"
_TEMPLATES.filters["call"] = call_text
_TEMPLATES.globals |= {"chosen_verb": chosen_verb, "option_fields": option_fields}


Answered = Callable[[Visit], Response]


def _page(name: str, visit: Visit | None, status: int = 200, **facts: object) -> Response:
    content = _TEMPLATES.get_template(name).render(
        visit=visit, **{"message": "", "plan": None, **facts}
    )
    return HTMLResponse(content, status_code=status, headers=_HEADERS)


def _to(path: str) -> Response:
    return RedirectResponse(path, 303, headers=_HEADERS)


class Pages:
    """Handlers of requests, with the sessions of browsers."""

    def __init__(
        self, service: Service, admit: Callable[[str], str], refusal: Refusal, turns: Turns
    ) -> None:
        self._service, self._admit, self._refusal = service, admit, refusal
        self._sessions, self._turns = Sessions(), turns

    def handler(self, answered: Answered) -> Callable[[Request], object]:
        """Return a handler for requests of browsers that signed in."""

        async def handle(request: Request) -> Response:
            body = await limited_body(request)
            sender = self._sessions.header(request.cookies.get(COOKIE, ""))
            async with self._turns.of(sender):
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
            place = next(iter(request.path_params.values()), "")
            base, secret = str(request.base_url).rstrip("/"), self._sessions.secret(cookie)
            visit = Visit(self._service, analyst, place, form, base, cookie, secret)
            return answered(visit)
        except Exception as error:
            status, _, message = self._refusal(analyst, error)
            if status == 401:
                self._sessions.close(cookie)
                return _to("/sign-in")
            is_plan = visit is not None and answered is _planned and status in (409, 422)
            name = "table.html" if is_plan else "problem.html"
            return _page(name, visit, status, message=message)

    def _form(self, request: Request, body: bytes | None, cookie: str) -> Mapping[str, str]:
        if body is None:
            raise GatewayError("the form is too long", 413)
        form = entries(body) if request.method == "POST" else dict(request.query_params)
        expected, sent = self._sessions.secret(cookie), form.get("secret", "")
        is_sent = hmac.compare_digest(expected.encode(), sent.encode("utf-8", "replace"))
        if request.method == "POST" and not is_sent:
            raise GatewayError("the form has expired: reload its page, and send it again", 403)
        return form

    async def sign_in(self, request: Request) -> Response:
        """Show the form for a token, or open a session with one."""
        cookie = request.cookies.get(COOKIE, "") or secrets.token_urlsafe(32)
        body = await limited_body(request)
        status, message = 200, ""
        response = _to("/")
        try:
            token = self._form(request, body, cookie).get("token", "").strip()
            if request.method == "POST":
                await run_in_threadpool(self._admit, f"Bearer {token}")
                self._sessions.close(cookie)
                cookie = self._sessions.open(token)
        except Exception as error:
            status, _, message = self._refusal("", error)
        if request.method == "GET" or message:
            facts = {"secret": self._sessions.secret(cookie), "message": message}
            response = _page("sign_in.html", None, status, **facts)
        is_secure = request.url.scheme == "https"
        response.set_cookie(COOKIE, cookie, httponly=True, samesite="strict", secure=is_secure)
        return response

    def sign_out(self, visit: Visit) -> Response:
        """End the session."""
        self._sessions.close(visit.cookie)
        return _to("/sign-in")


def page_routes(
    service: Service, admit: Callable[[str], str], refusal: Refusal, turns: Turns
) -> list[BaseRoute]:
    """Return the routes of pages, given who admits a header and what says an error."""
    pages = Pages(service, admit, refusal, turns)
    shown: dict[str, Answered] = {
        "/tables/{table}": partial(_page, "table.html"),
        "/jobs": partial(_page, "jobs.html"),
        "/jobs/{job}": _job,
        **{f"/jobs/{{job}}/{name}": partial(_file, kind=kind) for name, kind in _FILES.items()},
        "/curator": partial(_page, "curator.html"),
        "/curator/register": partial(_page, "register.html"),
        "/curator/{table}/disclosure": _disclosure,
        "/": _home,
    }
    sent: dict[str, Answered] = {
        "/tables/{table}": _planned,
        "/tables/{table}/run": _run,
        "/jobs/{job}/approve": _changed(service.approve),
        "/curator/{table}/stop": _changed(partial(service.set_stopped, stopped=True)),
        "/curator/{table}/resume": _changed(partial(service.set_stopped, stopped=False)),
        "/sign-out": pages.sign_out,
    }
    return [
        Mount("/assets", StaticFiles(packages=[("dpmodels.gateway", "assets")])),
        Route("/report.css", lambda _: Response(_REPORT_STYLE, media_type="text/css")),
        Route("/sign-in", pages.sign_in, methods=["GET", "POST"]),
        *(Route(path, pages.handler(answered)) for path, answered in shown.items()),
        *(Route(path, pages.handler(of), methods=["POST"]) for path, of in sent.items()),
    ]


# What is shown.


def _home(visit: Visit) -> Response:
    tables = visit.service.open_tables(visit.analyst)
    if visit.is_curator and not tables:
        return _to("/curator")
    return _page("tables.html", visit, tables=tables)


def _job(visit: Visit) -> Response:
    job = visit.service.job(visit.analyst, visit.place)
    described = visit.service.described(job)
    answer = _answer(visit) if described["state"] == ANSWERED else None
    return _page("job.html", visit, job=job, described=described, answer=answer)


def _answer(visit: Visit) -> Answer:
    visit.service.answer(visit.analyst, visit.place)
    return answer_of(str(visit.service.state.answer_path(visit.place)))


def _file(visit: Visit, kind: str) -> Response:
    """Return an answer as a file: the result, its table, or one of its pictures."""
    content: str | bytes
    if kind == "text/csv":
        content = _answer(visit).csv
    elif kind == "image/png":
        drawn = {str(i): png for i, (_, png, _) in enumerate(_answer(visit).pictures)}
        number = visit.form.get("number", "0")
        if number not in drawn:
            raise NotAvailable("there is no such picture")
        content = drawn[number]
    else:
        content = visit.service.answer(visit.analyst, visit.place)
    return Response(content, media_type=kind, headers=_HEADERS)


def _disclosure(visit: Visit) -> Response:
    content = visit.service.disclosure(visit.analyst, visit.place)
    return HTMLResponse(content, headers={**_HEADERS, "Content-Security-Policy": REPORT_POLICY})


# What is sent.


def _planned(visit: Visit) -> Response:
    """Show what a request costs and is expected to show, or the options of another verb."""
    if "plan" not in visit.form:
        return _page("table.html", visit)
    body, n_rows = request_of(visit.form), assumed_n(visit.form)
    at = (visit.analyst, visit.place, body)
    plan = visit.service.plan(*at) | {"request": json.loads(body), "body": body.decode()}
    table = None if n_rows is None else visit.service.predicted(*at, n_rows)
    estimates = [] if table is None else list(table.itertuples())
    return _page("table.html", visit, plan=plan | {"n": n_rows, "estimates": estimates})


def _run(visit: Visit) -> Response:
    body = visit.form.get("request", "").encode()
    described = visit.service.ask(visit.analyst, visit.place, body)
    return _to(f"/jobs/{described['job']}")


def _changed(change: Callable[[str, str], object]) -> Answered:
    def answered(visit: Visit) -> Response:
        change(visit.analyst, visit.place)
        return _to("/curator")

    return answered
