"""Forms of a browser: the options of a verb as fields, and what was entered as a request."""

from __future__ import annotations

import inspect
import json
from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple
from urllib.parse import parse_qsl

from starlette.requests import Request

from dpmodels.arguments import integer
from dpmodels.errors import ArgumentError
from dpmodels.gateway.calls import FORBIDDEN, MOST_BYTES
from dpmodels.models.replay import all_verbs
from dpmodels.parameter_texts import ParameterDoc, members, parameter_docs, read, signature
from dpmodels.verbs import Verb

_MOST_FIELDS: Final = 200
_MOST_ROWS: Final = 1_000_000_000
_TRUTHS: Final = {"yes": True, "no": False}
_BUDGET: Final = {
    "eps": ("eps", "such as 0.2, or 1/5 of what the purse has left"),
    "delta": ("delta", "such as 1e-6, for Gaussian noise; empty for the verb's default"),
    "rho": ("rho", "such as 0.05, instead of eps and delta"),
}
_AMOUNT: Final = (float, str)
_SHARED: Final = ("mechanism", "subset")


class Field(NamedTuple):
    """An option as a form shows it: a list of choices, or a text."""

    name: str
    label: str
    hint: str
    value: str
    choices: tuple[str, ...] = ()


async def limited_body(request: Request) -> bytes | None:
    """Read a body of limited size, None if it is longer."""
    body = b""
    async for chunk in request.stream():
        body += chunk
        if len(body) > MOST_BYTES:
            return None
    return body


def entries(body: bytes) -> dict[str, str]:
    """Read the fields of a form; a ValueError if it is not one."""
    return dict(parse_qsl(body.decode(), keep_blank_values=True, max_num_fields=_MOST_FIELDS))


def chosen_verb(form: Mapping[str, str]) -> str:
    """Return the verb of a form, "mean" by default."""
    return form["verb"] if form.get("verb") in all_verbs() else "mean"


def budget_fields(form: Mapping[str, str], *, concentrated: bool) -> list[Field]:
    """Return the fields of a budget: rho only if that of the purse is one."""
    return [
        Field(name, label, hint, form.get(name, ""))
        for name, (label, hint) in _BUDGET.items()
        if concentrated or name != "rho"
    ]


def option_fields(verb: str, form: Mapping[str, str]) -> list[Field]:
    """Return the fields of the options that a verb declares and an analyst may set."""
    declared = all_verbs()[verb]
    docs = parameter_docs(inspect.getdoc(declared.function) or "")
    fields = []
    for name, annotation in _annotations(declared).items():
        doc, kinds = docs.get(name, ParameterDoc()), members(annotation)
        is_kept = form.get("shown", verb) == verb or name in _SHARED
        value = form.get(name, "") if is_kept else ""
        choices = _choices(kinds, doc.choices, declared.options.get(name))
        fields.append(Field(name, name, doc.text, value, choices))
    return fields


def _choices(
    kinds: Iterable[object], documented: Iterable[str], default: object
) -> tuple[str, ...]:
    """Return the choices of an option, empty if it is a text or a number."""
    if {int, float} & set(kinds):
        return ()
    if bool in kinds:
        return tuple(_TRUTHS)
    listed = tuple(kind for kind in kinds if isinstance(kind, str)) or documented
    return tuple(name for name in listed if name != "none" or default is not None)


def _annotations(verb: Verb) -> dict[str, Any]:
    """Return the annotations of the options that an analyst may set, and of shared ones."""
    names = (*verb.options, *_SHARED)
    parameters = signature(verb.function)
    return {
        name: parameters[name].annotation
        for name in names
        if name in parameters and name not in FORBIDDEN
    }


def request_of(form: Mapping[str, str]) -> bytes:
    """Return what was entered as a request, the same as from a program.

    Raises
    ------
    ArgumentError
        If a value does not have the type of its option.
    """
    verb, words = chosen_verb(form), dict[str, object]()
    kinds = {name: members(kind) for name, kind in _annotations(all_verbs()[verb]).items()}
    kinds |= {"eps": _AMOUNT, "delta": (float,), "rho": (float,)}
    for name, allowed in kinds.items():
        entered = form.get(name, "").strip()
        if entered:
            words[name] = _value(name, allowed, entered)
    request = {"verb": verb, "formula": form.get("formula", "").strip(), "words": words}
    return json.dumps(request).encode()


def assumed_n(form: Mapping[str, str]) -> int | None:
    """Return the number of rows that a prediction assumes, None if none was entered."""
    entered = form.get("n", "").replace(",", "").strip()
    return integer("n", _value("n", (int,), entered), 1, _MOST_ROWS) if entered else None


def _value(name: str, allowed: tuple[Any, ...], entered: str) -> Any:
    if bool in allowed and entered in _TRUTHS:
        return _TRUTHS[entered]
    try:
        return read(allowed, entered, none=None in allowed)
    except ArgumentError as error:
        raise ArgumentError(f"{name}: {error}") from None
