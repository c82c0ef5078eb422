"""Forms of a browser: the options of a verb as fields, and what was entered as a request."""

from __future__ import annotations

import inspect
import json
from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple
from urllib.parse import parse_qsl

from dpmodels.arguments import integer
from dpmodels.errors import ArgumentError
from dpmodels.gateway.calls import FORBIDDEN
from dpmodels.models.replay import all_verbs
from dpmodels.parameter_texts import ParameterDoc, members, parameter_docs, read, signature

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
    """Return what a verb's options may be, and their defaults."""
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
    """Return the choices of an option, empty if it is a text or a number."""
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


def _value(name: str, allowed: tuple[object, ...], entered: str) -> Any:
    if {bool, False} & set(allowed) and entered in _TRUTHS:
        return _TRUTHS[entered]
    try:
        return read(allowed, entered, none=None in allowed)
    except ArgumentError as error:
        raise ArgumentError(f"{name}: {error}") from None
