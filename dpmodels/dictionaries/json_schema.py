"""JSON Schema: the properties of an object, or of each item of a list of objects."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from datetime import date
from typing import Final

from dpmodels.arguments import real
from dpmodels.dictionaries.entry import Entry, joined, settled
from dpmodels.dictionaries.notation import end_in, kind_in, level_in, one_line
from dpmodels.errors import CodebookError, quoted
from dpmodels.levels import Level
from dpmodels.typing import Plain

_KINDS: Final = {
    "number": "numeric",
    "integer": "integer",
    "boolean": "boolean",
    "string": "categorical",
}
_NUMBERS: Final = {"number", "integer"}
# A choice: the deepest nesting of references and of alternatives.
_DEEPEST: Final = 20

Schema = Mapping[str, Plain]


def entries_of_schema(schema: Schema, where: str) -> dict[str, Entry]:
    """Read bounds, levels and labels of the properties; other keywords are ignored."""
    table_schema = _resolved(schema, schema, where)
    if "items" in table_schema and "properties" not in table_schema:
        table_schema = _resolved(table_schema["items"], schema, where)
    properties = table_schema.get("properties")
    if not isinstance(properties, Mapping):
        raise CodebookError(f'{where} has no "properties": give the schema of one row of the table')
    return {str(name): _entry(str(name), plain, schema) for name, plain in properties.items()}


def _entry(name: str, plain: Plain, schema: Schema) -> Entry:
    where = f"variable {name!r}"
    choices = list(_choices(_resolved(plain, schema, where), schema, where))
    kind = _kind(choices)
    listed = {level: label for choice in choices for level, label in _levels(choice, where)}
    lower, upper = (_end(choices, end, kind, where) for end in ("minimum", "maximum"))
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


def _kind(choices: list[Schema]) -> str:
    """Return the one type that all choices have, nothing where they have several."""
    types = {word for choice in choices for word in _words(choice.get("type")) if word != "null"}
    if any(str(choice.get("format")).startswith("date") for choice in choices):
        return "date"
    return _KINDS.get(types.pop(), "") if len(types) == 1 else ""


def _is_name(title: str, name: str) -> bool:
    """Whether a title only repeats the name, as models generate it."""
    return title.casefold().replace(" ", "_") == name.casefold()


def _words(value: object) -> list[str]:
    return [value] if isinstance(value, str) else list(value) if isinstance(value, list) else []


def _resolved(plain: Plain, schema: Schema, where: str) -> Schema:
    """Follow references within the schema; CodebookError where one leads elsewhere."""
    for _ in range(_DEEPEST):
        if not isinstance(plain, Mapping):
            break
        reference = plain.get("$ref")
        if reference is None:
            return plain
        target: Plain = schema if str(reference).startswith("#/") else None
        for step in str(reference)[2:].split("/"):
            target = target.get(step) if isinstance(target, Mapping) else None
        rest = {word: value for word, value in plain.items() if word != "$ref"}
        plain = {**target, **rest} if isinstance(target, Mapping) else None
    raise CodebookError(
        f'{where}: expected an object, or a "$ref" to one within the schema such as '
        '"#/$defs/Sex"; write it in its place'
    )


def _choices(choice: Schema, schema: Schema, where: str, depth: int = 0) -> Iterator[Schema]:
    """Yield a schema and its alternatives, except null."""
    if depth > _DEEPEST:
        raise CodebookError(f"{where}: choices are nested more than {_DEEPEST} deep")
    if choice.get("type") == "null":
        return
    yield choice
    for word in ("allOf", "anyOf", "oneOf"):
        for part in choice.get(word) or ():
            yield from _choices(_resolved(part, schema, where), schema, where, depth + 1)


def _levels(choice: Schema, where: str) -> Iterator[tuple[Level, str]]:
    listed = choice["enum"] if isinstance(choice.get("enum"), list) else []
    for level in [*listed, *([choice["const"]] if "const" in choice else [])]:
        if not isinstance(level, str | int | float | None):
            raise CodebookError(f"{where}: a level is not a text, number or truth value")
        if level is not None:
            yield level, one_line(choice.get("title")) if "const" in choice else ""


def _end(choices: list[Schema], end: str, kind: str, where: str) -> float | None:
    """Return the widest bound of all choices; None where one has no bound."""
    inward = (1 if end == "minimum" else -1) * (kind == "integer")
    shifted_bounds: list[float] = []
    for choice in choices:
        bounds = [
            (choice[word], step)
            for word, step in ((end, 0), (f"exclusive{end.capitalize()}", inward))
            if choice.get(word) is not None
        ]
        if any(math.isnan(real(number)) for number, _ in bounds):
            raise CodebookError(f"{where}: {end} {quoted(bounds[0][0])} is not a finite number")
        if not bounds and len(choices) > 2 and _NUMBERS & set(_words(choice.get("type"))):
            return None
        shifted_bounds += [number + step for number, step in bounds]
    if not shifted_bounds or kind == "date":
        return None
    return min(shifted_bounds) if end == "minimum" else max(shifted_bounds)


# Table schemas of Frictionless Data, alone or in a data package.

_FRICTIONLESS_NUMBERS: Final = ("numeric", "integer")


def entries_of_package(package: Schema, where: str) -> dict[str, Entry]:
    """Read the table schema of each resource; a variable of several is read once."""
    entries: dict[str, Entry] = {}
    for resource in _list(package.get("resources"), "resources", where):
        schema = resource.get("schema") if isinstance(resource, Mapping) else None
        if isinstance(schema, Mapping):
            for name, entry in entries_of_fields(schema, where).items():
                entries[name] = joined(name, entries[name], entry) if name in entries else entry
    if not entries:
        raise CodebookError(f"{where} has no resource with a table schema in it: give the schema")
    return entries


def entries_of_fields(schema: Schema, where: str) -> dict[str, Entry]:
    """Read names, types, constraints and labels of the fields of a table schema."""
    absent = _codes(schema.get("missingValues"), where)
    entries: dict[str, Entry] = {}
    for field in _list(schema.get("fields"), "fields", where):
        if not isinstance(field, Mapping) or not one_line(field.get("name")):
            raise CodebookError(f"{where}: a field has no name; write one in each")
        name = str(field["name"])
        entry = _frictionless_entry(name, field, absent)
        entries[name] = joined(name, entries[name], entry) if name in entries else entry
    return entries


def _frictionless_entry(name: str, field: Schema, absent: tuple[Level, ...]) -> Entry:
    where = f"variable {name!r}"
    limits = field.get("constraints") or {}
    if not isinstance(limits, Mapping):
        raise CodebookError(f"{where}: its constraints are not an object")
    kind = kind_in(one_line(field.get("type")))
    listed = _frictionless_levels(field.get("categories") or limits.get("enum"), where)
    ends = (end_in(one_line(limits.get(end)), f"{where}: {end}") for end in ("minimum", "maximum"))
    lower, upper = ends
    days = isinstance(lower, date) or isinstance(upper, date)
    missing_codes = _codes(field.get("missingValues"), where) or absent
    codes = tuple(
        code
        for code in missing_codes
        if kind not in _FRICTIONLESS_NUMBERS or not isinstance(code, str)
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
            label=one_line(field.get("title") or field.get("description")),
            unit=one_line(field.get("unit")),
            ordered=field.get("categoriesOrdered") is True,
        ),
    )


def _frictionless_levels(listed: object, where: str) -> dict[Level, str]:
    levels: dict[Level, str] = {}
    for value in _list(listed, "levels", where):
        level = value.get("value") if isinstance(value, Mapping) else value
        if not isinstance(level, str | int | float):
            raise CodebookError(f"{where}: a level is not a text, number or truth value")
        levels[level] = one_line(value.get("label")) if isinstance(value, Mapping) else ""
    return levels


def _codes(listed: object, where: str) -> tuple[Level, ...]:
    """Read what stands for a missing value; the empty cell does in any table."""
    codes = _list(listed, "missingValues", where)
    texts = (one_line(code.get("value") if isinstance(code, Mapping) else code) for code in codes)
    return tuple(dict.fromkeys(level_in(text) for text in texts if text))


def _list(plain: object, what: str, where: str) -> list[Plain]:
    if plain is None:
        return []
    if not isinstance(plain, list):
        raise CodebookError(f"{where}: its {what} are not a list")
    return plain
