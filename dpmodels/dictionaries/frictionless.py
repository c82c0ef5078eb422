"""Table schemas of Frictionless Data, alone or in a data package."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from typing import Any, Final

from dpmodels.dictionaries.entry import Entry, joined, settled
from dpmodels.dictionaries.words import end_in, kind_in, level_in, one_line
from dpmodels.errors import CodebookError
from dpmodels.levels import Level

_NUMBERS: Final = ("numeric", "integer")


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
        entry = _entry(name, own, absent)
        made[name] = joined(name, made[name], entry) if name in made else entry
    return made


def _entry(name: str, own: Mapping[str, Any], absent: tuple[Level, ...]) -> Entry:
    where = f"variable {name!r}"
    limits = own.get("constraints") or {}
    if not isinstance(limits, Mapping):
        raise CodebookError(f"{where}: its constraints are no object")
    kind = kind_in(one_line(own.get("type")))
    listed = _levels(own.get("categories") or limits.get("enum"), where)
    ends = (end_in(one_line(limits.get(end)), f"{where}: {end}") for end in ("minimum", "maximum"))
    lower, upper = ends
    days = isinstance(lower, date) or isinstance(upper, date)
    own_codes = _codes(own.get("missingValues"), where) or absent
    codes = tuple(code for code in own_codes if kind not in _NUMBERS or not isinstance(code, str))
    return settled(
        name,
        Entry(
            kind="date" if days else "categorical" if listed and kind in _NUMBERS else kind,
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


def _levels(listed: Any, where: str) -> dict[Level, str]:
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
