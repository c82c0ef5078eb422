"""JSON Schema: the properties of an object, or of each item of a list of objects."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from datetime import date
from typing import Any, Final

from dpmodels.arguments import real
from dpmodels.dictionaries.entry import Entry, joined, settled
from dpmodels.dictionaries.words import end_in, kind_in, level_in, one_line
from dpmodels.errors import CodebookError, said
from dpmodels.levels import Level

_KINDS: Final = {
    "number": "numeric",
    "integer": "integer",
    "boolean": "boolean",
    "string": "categorical",
}
_NUMBERS: Final = {"number", "integer"}
# References that lead to references, and choices within choices: a choice.
_DEEPEST: Final = 20

Schema = Mapping[str, Any]


def entries_of_schema(schema: Schema, where: str) -> dict[str, Entry]:
    """Read bounds, levels and labels of the properties; what else they say is passed over."""
    named = _resolved(schema, schema, where)
    if "items" in named and "properties" not in named:
        named = _resolved(named["items"], schema, where)
    properties = named.get("properties")
    if not isinstance(properties, Mapping):
        raise CodebookError(f'{where} has no "properties": give the schema of one row of the table')
    return {str(name): _entry(str(name), own, schema) for name, own in properties.items()}


def _entry(name: str, plain: Any, schema: Schema) -> Entry:
    where = f"variable {name!r}"
    told = list(_choices(_resolved(plain, schema, where), schema, where))
    kind = _kind(told)
    listed = {level: label for own in told for level, label in _levels(own, where)}
    lower, upper = (_end(told, end, kind, where) for end in ("minimum", "maximum"))
    texts = (one_line(plain.get(word)) for word in ("title", "description"))
    return settled(
        name,
        Entry(
            kind="categorical" if listed and kind in ("numeric", "integer") else kind,
            lower=lower,
            upper=upper,
            levels=tuple(listed),
            labels=tuple(listed.values()),
            label=next((text for text in texts if text and not _is_name(text, name)), ""),
        ),
    )


def _kind(told: list[Schema]) -> str:
    """Return the one type that all choices have, nothing where they have several."""
    types = {word for own in told for word in _words(own.get("type")) if word != "null"}
    if any(str(own.get("format")).startswith("date") for own in told):
        return "date"
    return _KINDS.get(types.pop(), "") if len(types) == 1 else ""


def _is_name(title: str, name: str) -> bool:
    """Tell whether a title is the name once more, as models make it of names."""
    return title.casefold().replace(" ", "_") == name.casefold()


def _words(told: Any) -> list[str]:
    return [told] if isinstance(told, str) else list(told) if isinstance(told, list) else []


def _resolved(plain: Any, schema: Schema, where: str) -> Schema:
    """Follow references within the schema; CodebookError where one leads elsewhere."""
    for _ in range(_DEEPEST):
        if not isinstance(plain, Mapping):
            break
        reference = plain.get("$ref")
        if reference is None:
            return plain
        found: Any = schema if str(reference).startswith("#/") else None
        for step in str(reference)[2:].split("/"):
            found = found.get(step) if isinstance(found, Mapping) else None
        rest = {word: own for word, own in plain.items() if word != "$ref"}
        plain = {**found, **rest} if isinstance(found, Mapping) else None
    raise CodebookError(
        f'{where}: expected an object, or a "$ref" to one within the schema such as '
        '"#/$defs/Sex"; write it in its place'
    )


def _choices(own: Schema, schema: Schema, where: str, depth: int = 0) -> Iterator[Schema]:
    """Give a schema and those that it is all or any of, but for null."""
    if depth > _DEEPEST:
        raise CodebookError(f"{where}: choices are nested more than {_DEEPEST} deep")
    if own.get("type") == "null":
        return
    yield own
    for word in ("allOf", "anyOf", "oneOf"):
        for part in own.get(word) or ():
            yield from _choices(_resolved(part, schema, where), schema, where, depth + 1)


def _levels(own: Schema, where: str) -> Iterator[tuple[Level, str]]:
    listed = own["enum"] if isinstance(own.get("enum"), list) else []
    for level in [*listed, *([own["const"]] if "const" in own else [])]:
        if not isinstance(level, str | int | float | None):
            raise CodebookError(f"{where}: a level is no text, number or truth value")
        if level is not None:
            yield level, one_line(own.get("title")) if "const" in own else ""


def _end(told: list[Schema], end: str, kind: str, where: str) -> float | None:
    """Return the widest end of all choices; None where one of them has none."""
    inward = (1 if end == "minimum" else -1) * (kind == "integer")
    ends: list[float] = []
    for own in told:
        found = [
            (own[word], step)
            for word, step in ((end, 0), (f"exclusive{end.capitalize()}", inward))
            if own.get(word) is not None
        ]
        if any(math.isnan(real(number)) for number, _ in found):
            raise CodebookError(f"{where}: {end} {said(found[0][0])} is no finite number")
        if not found and len(told) > 2 and _NUMBERS & set(_words(own.get("type"))):
            return None
        ends += [number + step for number, step in found]
    if not ends or kind == "date":
        return None
    return min(ends) if end == "minimum" else max(ends)


# Table schemas of Frictionless Data, alone or in a data package.

_FRICTIONLESS_NUMBERS: Final = ("numeric", "integer")


def entries_of_package(package: Mapping[str, Any], where: str) -> dict[str, Entry]:
    """Read the table schema of each resource; a variable of several is read once."""
    made: dict[str, Entry] = {}
    for own in _list(package.get("resources"), "resources", where):
        schema = own.get("schema") if isinstance(own, Mapping) else None
        if isinstance(schema, Mapping):
            for name, entry in entries_of_fields(schema, where).items():
                made[name] = joined(name, made[name], entry) if name in made else entry
    if not made:
        raise CodebookError(f"{where} has no resource with a table schema in it: give the schema")
    return made


def entries_of_fields(schema: Mapping[str, Any], where: str) -> dict[str, Entry]:
    """Read names, types, constraints and labels of the fields of a table schema."""
    absent = _codes(schema.get("missingValues"), where)
    made: dict[str, Entry] = {}
    for own in _list(schema.get("fields"), "fields", where):
        if not isinstance(own, Mapping) or not one_line(own.get("name")):
            raise CodebookError(f"{where}: a field has no name; write one in each")
        name = str(own["name"])
        entry = _frictionless_entry(name, own, absent)
        made[name] = joined(name, made[name], entry) if name in made else entry
    return made


def _frictionless_entry(name: str, own: Mapping[str, Any], absent: tuple[Level, ...]) -> Entry:
    where = f"variable {name!r}"
    limits = own.get("constraints") or {}
    if not isinstance(limits, Mapping):
        raise CodebookError(f"{where}: its constraints are no object")
    kind = kind_in(one_line(own.get("type")))
    listed = _frictionless_levels(own.get("categories") or limits.get("enum"), where)
    ends = (end_in(one_line(limits.get(end)), f"{where}: {end}") for end in ("minimum", "maximum"))
    lower, upper = ends
    days = isinstance(lower, date) or isinstance(upper, date)
    own_codes = _codes(own.get("missingValues"), where) or absent
    codes = tuple(
        code for code in own_codes if kind not in _FRICTIONLESS_NUMBERS or not isinstance(code, str)
    )
    return settled(
        name,
        Entry(
            kind="date"
            if days
            else "categorical"
            if listed and kind in _FRICTIONLESS_NUMBERS
            else kind,
            lower=lower,
            upper=upper,
            levels=tuple(listed),
            labels=tuple(listed.values()),
            missing=codes,
            label=one_line(own.get("title") or own.get("description")),
            unit=one_line(own.get("unit")),
            ordered=own.get("categoriesOrdered") is True,
        ),
    )


def _frictionless_levels(listed: Any, where: str) -> dict[Level, str]:
    made: dict[Level, str] = {}
    for own in _list(listed, "levels", where):
        level = own.get("value") if isinstance(own, Mapping) else own
        if not isinstance(level, str | int | float):
            raise CodebookError(f"{where}: a level is no text, number or truth value")
        made[level] = one_line(own.get("label")) if isinstance(own, Mapping) else ""
    return made


def _codes(listed: Any, where: str) -> tuple[Level, ...]:
    """Read what stands for a missing value; the empty cell does in any table."""
    codes = _list(listed, "missingValues", where)
    texts = (one_line(own.get("value") if isinstance(own, Mapping) else own) for own in codes)
    return tuple(dict.fromkeys(level_in(text) for text in texts if text))


def _list(plain: Any, what: str, where: str) -> list[Any]:
    if plain is None:
        return []
    if not isinstance(plain, list):
        raise CodebookError(f"{where}: its {what} are no list")
    return plain
