"""The description of the gateway's interface, OpenAPI 3.1, from the verbs' declarations."""

from __future__ import annotations

from types import NoneType
from typing import Final, Literal, get_args, get_origin

from dpmodels.gateway.calls import FORBIDDEN, SHARED
from dpmodels.models.replay import all_verbs
from dpmodels.typing import Plain
from dpmodels.verbs import Verb
from dpmodels.version import __version__

_TYPES: Final = {str: "string", bool: "boolean", int: "integer", float: "number", NoneType: "null"}
_PATHS: Final = {
    "/v1/tables": ("get", "The tables that are open to the analyst"),
    "/v1/tables/{table}/ask": ("post", "Ask: 202 and a job"),
    "/v1/tables/{table}/plan": ("post", "Price a request, or a list of them; nothing is charged"),
    "/v1/tables/{table}/codebook": ("get", "Codebook, neighbours and budgets"),
    "/v1/tables/{table}/ledger": ("get", "The charges of the analyst's purse"),
    "/v1/tables/{table}/simulated": ("get", "1,000 rows simulated from the codebook"),
    "/v1/tables/{table}/disclosure": ("get", "The disclosure report, for a curator"),
    "/v1/tables/{table}/stop": ("post", "Stop a table, for a curator"),
    "/v1/tables/{table}/resume": ("post", "Resume a table, for a curator"),
    "/v1/jobs": ("get", "All jobs of the analyst's purse"),
    "/v1/jobs/{job}": ("get", "The state of a job"),
    "/v1/jobs/{job}/answer": ("get", "The result, a netCDF file for dp.load"),
    "/v1/jobs/{job}/approve": ("post", "Approve a job, for a curator"),
    "/v1/overview": ("get", "Tables, purses and audit log, for a curator"),
}


def openapi() -> dict[str, object]:
    """Return the description as plain values."""
    verbs = {name: _verb(verb) for name, verb in all_verbs().items()}
    paths = {path: {method: _operation(path, what)} for path, (method, what) in _PATHS.items()}
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
    """Return the schema of a request of a verb."""
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
