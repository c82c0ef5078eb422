"""The gateway over HTTP: who sends a request, how often, what is answered, and OpenAPI 3.1 of it.

Programs use what is below ``/v1``, and browsers the pages of :mod:`dpmodels.gateway.pages`. To a
program every error is a status with a JSON object of two texts, ``error`` and ``message``; no trace
leaves the server. Handlers that compute run in threads.
"""

from __future__ import annotations

import hashlib
import sqlite3
import time
from collections import defaultdict, deque
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from functools import partial
from threading import Lock
from types import NoneType
from typing import Final, Literal, get_args, get_origin

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Route

from dpmodels.errors import DPModelsError, GatewayError, LedgerError, NotAvailable, PrivacyError
from dpmodels.gateway.calls import FORBIDDEN, MOST_BYTES, SHARED
from dpmodels.gateway.pages import REPORT_POLICY, Turns, limited_body, page_routes
from dpmodels.gateway.service import Service
from dpmodels.labels import plain
from dpmodels.models.release import all_verbs
from dpmodels.typing import Plain
from dpmodels.verbs import Verb
from dpmodels.version import __version__

_TYPES: Final = {str: "string", bool: "boolean", int: "integer", float: "number", NoneType: "null"}


def openapi() -> dict[str, object]:
    """Return the description as plain values."""
    verbs = {name: _verb(verb) for name, verb in all_verbs().items()}
    paths = {path: {method: _operation(path, what)} for path, (method, what, _) in _PATHS.items()}
    return {
        "openapi": "3.1.0",
        "info": {"title": "dpmodels gateway", "version": __version__},
        "paths": paths,
        "components": {
            "schemas": {**verbs, "Error": _object({"error": _TEXT, "message": _TEXT})},
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{"token": []}],
    }


_TEXT: Final = {"type": "string"}


def _object(properties: dict[str, Plain]) -> dict[str, Plain]:
    return {"type": "object", "properties": properties, "required": list(properties)}


def _operation(path: str, what: str) -> dict[str, Plain]:
    names = [part[1:-1] for part in path.split("/") if part.startswith("{")]
    parameters = [{"name": name, "in": "path", "required": True, "schema": _TEXT} for name in names]
    error = {"$ref": "#/components/schemas/Error"}
    responses = {
        "202" if path.endswith("/ask") else "200": {"description": what},
        "4XX": {"description": "Refused", "content": {"application/json": {"schema": error}}},
    }
    operation = {"summary": what, "parameters": parameters, "responses": responses}
    if path.endswith(("/ask", "/plan")):
        schemas: list[object] = [{"$ref": f"#/components/schemas/{name}"} for name in all_verbs()]
        if path.endswith("/plan"):
            schemas.append({"type": "array", "items": {"oneOf": list(schemas)}})
        content = {"application/json": {"schema": {"oneOf": schemas}}}
        operation["requestBody"] = {"required": True, "content": content}
    return operation


def _verb(verb: Verb) -> dict[str, Plain]:
    shapes = {**verb.shapes, **SHARED}
    properties = {name: _schema(shape) for name, shape in shapes.items() if name not in FORBIDDEN}
    options = {"type": "object", "properties": properties, "additionalProperties": False}
    schema = _object({"verb": {"const": verb.name}, "formula": _TEXT})
    schema["properties"]["options"] = options
    return schema


def _schema(shape: object) -> dict[str, object]:
    """Return the JSON schema of a declared shape; an empty one accepts what the verb checks."""
    if shape in _TYPES:
        return {"type": _TYPES[shape]}
    if get_origin(shape) is Literal:
        return {"enum": list(get_args(shape))}
    if get_origin(shape) is tuple:
        return {"type": "array"}
    kinds = [_schema(kind) for kind in get_args(shape)]
    return {"anyOf": kinds} if kinds and all(kinds) else {}


_BEARER: Final = "Bearer "
_LONGEST_TOKEN: Final = 8_192
_FAILED_PER_MINUTE: Final = 60  # Of tokens, whose hashes take time
_REMEMBERED: Final = 10_000
_NETCDF: Final = "application/x-netcdf"
_PLAIN_HEADERS: Final = {
    "Cache-Control": "no-store",
    "X-Content-Type-Options": "nosniff",
    "Content-Security-Policy": REPORT_POLICY,
}
_UNREADABLE: Final = (
    *(RecursionError, MemoryError, ArithmeticError),
    *(ValueError, TypeError, LookupError),
)
Handler = Callable[[Request], Awaitable[Response]]
Answer = Callable[[Service, str, str, bytes], object]


class Rates:
    """Requests of the last minute by name, and whether another is allowed."""

    def __init__(self) -> None:
        self._times: dict[str, deque[float]] = defaultdict(deque)
        self._lock = Lock()

    def allow(self, name: str, per_minute: int) -> bool:
        """Count a request; return whether it is within the limit."""
        now = time.monotonic()
        with self._lock:
            times = self._times[name]
            while times and times[0] < now - 60:
                times.popleft()
            if len(times) >= per_minute:
                return False
            times.append(now)
            return True


class Doorkeeper:
    """Finds the analyst of a token, which is hashed by scrypt once per run of the server."""

    def __init__(self, service: Service) -> None:
        self._service, self._rates = service, Rates()
        self._verified: dict[str, str] = {}

    def analyst(self, header: str) -> str:
        """Return the analyst of a request; a GatewayError refuses others, and too many requests."""
        token, gate = header.removeprefix(_BEARER), self._service.gate
        if not header.startswith(_BEARER) or len(token) > _LONGEST_TOKEN:
            raise GatewayError("send the header Authorization: Bearer TOKEN", 401)
        # A token of the gateway has one dot, one of an identity provider two.
        analyst = self._of_provider(token) if token.count(".") > 1 else self._of_gateway(token)
        if analyst is None or analyst not in gate.analysts:
            raise GatewayError("the token is not valid, has expired or was revoked", 401)
        if not self._rates.allow(analyst, gate.server.requests_per_minute):
            raise GatewayError("too many requests in a minute: wait", 429)
        return analyst

    def _of_gateway(self, token: str) -> str | None:
        digest = hashlib.sha256(token.encode("utf-8", "replace")).hexdigest()
        identifier = self._verified.get(digest) or self._verify(token, digest)
        return self._service.state.valid_token(identifier, self._service.clock.latest())

    def _of_provider(self, token: str) -> str | None:
        provider, service = self._service.provider, self._service
        if provider is None:
            return None
        subject, issued = provider.verified(token, service.clock.latest())
        analysts = service.gate.analysts.items()
        analyst = next((name for name, settings in analysts if settings.oidc == subject), None)
        return None if analyst is None or service.state.was_revoked(analyst, issued) else analyst

    def _verify(self, token: str, digest: str) -> str:
        identifier, _, secret = token.partition(".")
        # Whoever tries invented tokens does not keep others from signing in.
        counted = f"token {identifier if self._service.state.has_token(identifier) else ''}"
        if not self._rates.allow(counted, _FAILED_PER_MINUTE):
            raise GatewayError("too many tokens were tried in a minute: wait", 429)
        if not self._service.state.verifies(identifier, secret):
            raise GatewayError("the token is not valid, has expired or was revoked", 401)
        if len(self._verified) >= _REMEMBERED:
            self._verified.clear()
        self._verified[digest] = identifier
        return identifier


def application(service: Service) -> Starlette:
    """Return the application of a running gateway."""
    doorkeeper, turns, description = Doorkeeper(service), Turns(), openapi()

    async def described(request: Request) -> Response:
        return JSONResponse(description, headers=_PLAIN_HEADERS)

    routes = [Route("/openapi.json", described)]
    for path, (method, _, answer) in _PATHS.items():
        handler = _handler(service, doorkeeper, turns, answer)
        routes.append(Route(path, handler, methods=[method.upper()]))
    handlers = {HTTPException: _refused, Exception: _unexpected}
    routes += page_routes(service, doorkeeper.analyst, partial(_refusal, service), turns)
    answering = Starlette(routes=routes, exception_handlers=handlers)
    answering.router.redirect_slashes = False  # To an address that the request's header names
    return answering


def _handler(service: Service, doorkeeper: Doorkeeper, turns: Turns, answer: Answer) -> Handler:
    def answered(header: str, place: str, body: bytes) -> Response:
        analyst = ""
        try:
            analyst = doorkeeper.analyst(header)
            return _response(answer(service, analyst, place, body))
        except Exception as error:
            return _error(*_refusal(service, analyst, error))

    async def handle(request: Request) -> Response:
        place = request.path_params.get("table", request.path_params.get("job", ""))
        body = await limited_body(request)
        if body is None:
            return _error(413, "GatewayError", f"at most {MOST_BYTES:,} bytes are read")
        header = request.headers.get("authorization", "")
        async with turns.of(header):
            return await run_in_threadpool(answered, header, place, body)

    return handle


def _response(value: object) -> Response:
    if isinstance(value, Response):
        return value
    return JSONResponse(value, headers=_PLAIN_HEADERS)


def _refusal(service: Service, analyst: str, error: Exception) -> tuple[int, str, str]:
    if isinstance(error, GatewayError):
        return error.status, "GatewayError", str(error)
    if isinstance(error, DPModelsError):
        statuses = ((NotAvailable, 404), (PrivacyError, 403), (LedgerError, 409))
        status = next((code for kind, code in statuses if isinstance(error, kind)), 422)
        with suppress(sqlite3.Error):  # The disk is full
            service.state.log(analyst, "request refused", error=type(error).__name__, status=status)
        return status, type(error).__name__, str(error)
    if isinstance(error, _UNREADABLE):
        return 422, "ArgumentError", "the request cannot be read: simplify it"
    return 503, "GatewayError", "the gateway cannot answer at present: try again"


def _error(status: int, error: str, message: str) -> Response:
    content = {"error": error, "message": plain(message)}  # It may quote half a surrogate pair
    return JSONResponse(content, status_code=status, headers=_PLAIN_HEADERS)


async def _refused(request: Request, error: HTTPException) -> Response:
    response = _error(error.status_code, "GatewayError", str(error.detail))
    response.headers.update(error.headers or {})
    return response


async def _unexpected(request: Request, error: Exception) -> Response:
    return _error(500, "GatewayError", "the gateway failed: tell the curator when this happened")


def _ask(service: Service, analyst: str, table: str, body: bytes) -> Response:
    content = service.ask(analyst, table, body)
    return JSONResponse(content, status_code=202, headers=_PLAIN_HEADERS)


def _jobs(service: Service, analyst: str, _: str, __: bytes) -> dict[str, Plain]:
    return {"jobs": service.history(analyst)}


def _job(service: Service, analyst: str, job: str, _: bytes) -> dict[str, Plain]:
    return service.described(service.job(analyst, job))


def _tables(service: Service, analyst: str, _: str, __: bytes) -> dict[str, Plain]:
    return {"analyst": analyst, "tables": service.open_tables(analyst)}


def _answer(service: Service, analyst: str, job: str, _: bytes) -> Response:
    return Response(service.answer(analyst, job), media_type=_NETCDF, headers=_PLAIN_HEADERS)


def _disclosure(service: Service, analyst: str, table: str, _: bytes) -> Response:
    return HTMLResponse(service.disclosure(analyst, table), headers=_PLAIN_HEADERS)


def _called(method: str, arguments: int = 2, **options: bool) -> Answer:
    """Call a method of the service with the first arguments: analyst, table or job, and body."""
    return lambda service, *sent: getattr(service, method)(*sent[:arguments], **options)


_TABLE: Final = "/v1/tables/{table}"
_STOP, _RESUME = (_called("set_stopped", stopped=stopped) for stopped in (True, False))
_PATHS: Final[Mapping[str, tuple[str, str, Answer]]] = {
    "/v1/tables": ("get", "The tables that are open to the analyst", _tables),
    f"{_TABLE}/ask": ("post", "Ask: 202 and a job", _ask),
    f"{_TABLE}/plan": ("post", "Price one request or a list; no charge", _called("plan", 3)),
    f"{_TABLE}/codebook": ("get", "Codebook, neighbours and budgets", _called("public")),
    f"{_TABLE}/ledger": ("get", "The charges of the analyst's purse", _called("ledger")),
    f"{_TABLE}/simulated": ("get", "1,000 rows simulated from the codebook", _called("simulated")),
    f"{_TABLE}/disclosure": ("get", "The disclosure report, for a curator", _disclosure),
    f"{_TABLE}/stop": ("post", "Stop a table, for a curator", _STOP),
    f"{_TABLE}/resume": ("post", "Resume a table, for a curator", _RESUME),
    "/v1/jobs": ("get", "All jobs of the analyst's purse", _jobs),
    "/v1/jobs/{job}": ("get", "The state of a job", _job),
    "/v1/jobs/{job}/answer": ("get", "The result, a netCDF file for dp.load", _answer),
    "/v1/jobs/{job}/approve": ("post", "Approve a job, for a curator", _called("approve")),
    "/v1/overview": ("get", "Tables, purses and audit log, for a curator", _called("overview", 1)),
}
