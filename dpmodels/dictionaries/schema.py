"""Declarations in schemas: of frames, files, databases and JSON Schema, and never a value.

A type identifies numbers, text, truth values or days. It gives levels only where they were
declared, as in polars' ``Enum``: the categories of pandas and Arrow are commonly inferred from the
rows. An integer type does not identify whole numbers, since an empty cell may change it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any, Final

import numpy as np

from dpmodels.arguments import real
from dpmodels.dictionaries.entry import Entry, end_in, joined, kind_in, level_in, one_line, settled
from dpmodels.errors import CodebookError, FrameError, quoted
from dpmodels.levels import Level
from dpmodels.typing import Plain
from dpmodels.variables import as_variable

_KINDS: Final = {"b": "boolean", "i": "numeric", "u": "numeric", "f": "numeric", "M": "date"}
_TEXTS: Final = ("U", "S", "T")


def entries_of_types(types: Iterable[tuple[object, object]]) -> dict[str, Entry]:
    """Return entries of names and types; CodebookError for an invalid or duplicate name."""
    import narwhals.stable.v2 as nw

    entries: dict[str, Entry] = {}
    polars = nw.dependencies.get_polars()
    for name, dtype in types:
        if not isinstance(name, str) or name in entries:
            what = "twice" if name in entries else "of a column, which is not a text"
            raise CodebookError(
                f"the table has the name {name!r} {what}: rename its columns, each by a unique text"
            )
        is_enum = polars is not None and isinstance(dtype, polars.Enum)
        levels = tuple(getattr(dtype, "categories", ())) if is_enum else ()
        kind = "categorical" if levels else kind_of_dtype(dtype)
        entries[name] = settled(name, Entry(kind=kind, levels=levels))
    return entries


def types_of(source: object) -> list[tuple[object, object]] | None:
    """Return names and types of a table or a schema, None for other objects."""
    import narwhals.stable.v2 as nw

    polars, pyarrow = nw.dependencies.get_polars(), nw.dependencies.get_pyarrow()
    if pyarrow is not None and isinstance(source, pyarrow.Schema):
        return list(zip(source.names, source.types, strict=True))
    if pyarrow is not None and isinstance(source, pyarrow.Table | pyarrow.RecordBatch):
        return types_of(source.schema)
    if polars is not None and isinstance(source, polars.LazyFrame):
        return list(source.collect_schema().items())
    if polars is not None and isinstance(source, polars.DataFrame):
        return list(source.schema.items())
    if nw.dependencies.is_pandas_dataframe(source) or nw.dependencies.is_dask_dataframe(source):
        return list(zip(source.columns, source.dtypes, strict=True))
    return None


def entries_of_dtypes(declared: Mapping[str, object]) -> dict[str, Entry] | None:
    """Return entries of declared types by name, categories included; None for other values.

    >>> entries_of_dtypes({"age": "int64"})["age"].kind, entries_of_dtypes({"age": [41, 35]})
    ('integer', None)
    """
    types = {name: _dtype(value) for name, value in declared.items()}
    if not types or any(dtype is None for dtype in types.values()):
        return None
    return {
        name: entry_of_dtype(name, types[name], entry)
        for name, entry in entries_of_types(types.items()).items()
    }


def entry_of_dtype(name: str, dtype: object, entry: Entry) -> Entry:
    """Return an entry with the facts of a declared type: whole numbers, categories."""
    if getattr(dtype, "categories", None) is not None and not hasattr(dtype, "is_temporal"):
        return Entry.of(as_variable(name, dtype))
    is_integer = getattr(dtype, "kind", "") in ("i", "u") and entry.kind == "numeric"
    return replace(entry, kind="integer") if is_integer else entry


def types_of_parquet(path: Path) -> list[tuple[object, object]]:
    """Return names and types of a Parquet file, from its footer only."""
    try:
        import pyarrow as pa
        from pyarrow import parquet
    except ImportError:
        raise FrameError(
            'reading Parquet files needs pyarrow: pip install "dpmodels[arrow]"'
        ) from None
    try:
        schema = parquet.read_schema(path)
    except (pa.ArrowException, OSError):
        raise CodebookError(
            f"{str(path)!r} cannot be opened as a Parquet file: check the path, or write it anew"
        ) from None
    return list(zip(schema.names, schema.types, strict=True))


def kind_of_dtype(dtype: Any) -> str:
    """Return the type of variable that a column of a type holds; empty if it may hold anything."""
    import narwhals.stable.v2 as nw

    pandas = nw.dependencies.get_pandas()
    if hasattr(dtype, "is_temporal"):
        import polars as pl

        if dtype == pl.Boolean:
            return "boolean"
        if dtype in (pl.Date, pl.Datetime):
            return "date"
        text = dtype in (pl.String, pl.Categorical, pl.Enum)
        return "categorical" if text else "numeric" if dtype.is_numeric() else ""
    if _is_arrow(dtype):
        return _of_arrow(dtype)
    if pandas is not None and isinstance(dtype, pandas.ArrowDtype):
        return _of_arrow(dtype.pyarrow_dtype)
    if pandas is not None and isinstance(dtype, pandas.CategoricalDtype | pandas.StringDtype):
        return "categorical"
    if isinstance(dtype, type) and issubclass(dtype, date):
        return "date"
    kind = getattr(dtype, "kind", "")
    return "categorical" if kind in _TEXTS else _KINDS.get(kind, "")


def _of_arrow(dtype: object) -> str:
    from pyarrow import types

    if types.is_boolean(dtype):
        return "boolean"
    if types.is_date(dtype) or types.is_timestamp(dtype):
        return "date"
    if types.is_integer(dtype) or types.is_floating(dtype) or types.is_decimal(dtype):
        return "numeric"
    text = types.is_string(dtype) or types.is_large_string(dtype) or types.is_string_view(dtype)
    return "categorical" if text or types.is_dictionary(dtype) else ""


def _dtype(declared: object) -> object:
    """Return a type given as an object, a class or a name; None for other values."""
    import narwhals.stable.v2 as nw

    pandas = nw.dependencies.get_pandas()
    if isinstance(declared, np.dtype) or hasattr(declared, "is_temporal") or _is_arrow(declared):
        return declared
    if pandas is not None and isinstance(declared, pandas.api.extensions.ExtensionDtype):
        return declared
    if isinstance(declared, type) and issubclass(declared, date):
        return declared
    if not isinstance(declared, str | type):
        return None
    from pandas.api.types import pandas_dtype

    try:
        return pandas_dtype(declared)
    except TypeError:
        return None


def _is_arrow(dtype: object) -> bool:
    import narwhals.stable.v2 as nw

    pyarrow = nw.dependencies.get_pyarrow()
    return pyarrow is not None and isinstance(dtype, pyarrow.DataType)


# Schemas of pandera: columns with their checks.

_LOWER: Final = ("greater_than_or_equal_to", "greater_than", "in_range")
_UPPER: Final = ("less_than_or_equal_to", "less_than", "in_range")


def entries_of_columns(columns: Mapping[str, Any]) -> dict[str, Entry]:
    """Read the types, the bounds and the allowed values that checks state."""
    entries = {}
    for name, column in columns.items():
        checks = list(column.checks if isinstance(column.checks, Iterable) else [column.checks])
        stated = {check.name: getattr(check, "statistics", None) or {} for check in checks if check}
        lowers = [stated[check]["min_value"] for check in _LOWER if check in stated]
        uppers = [stated[check]["max_value"] for check in _UPPER if check in stated]
        levels = tuple(stated.get("isin", {}).get("allowed_values", ()))
        dtype = getattr(column.dtype, "type", column.dtype)
        entry = Entry(
            kind="categorical" if levels else kind_of_dtype(dtype),
            lower=max(lowers, default=None),
            upper=min(uppers, default=None),
            levels=levels,
        )
        entry = entry if levels else entry_of_dtype(str(name), dtype, entry)
        label = one_line(column.title or column.description)
        entries[str(name)] = settled(str(name), replace(entry, label=label))
    return entries


_TEXT: Final = r"'((?:[^']|'')*)'"
_BOUND: Final = rf"(?:CAST)?[\s(]*(?:{_TEXT}|(-?[\d.]+(?:[eE][-+]?\d+)?))"
# Constraints with any of these say more than a range or a list.
_COMPLEX: Final = re.compile(r"\b(OR|NOT(?!\s+NULL)|CASE)\b|[-+*/%]\s*[a-z(]", re.IGNORECASE)


def entries_of_table(declared: Mapping[str, Mapping[str, str | None]]) -> dict[str, Entry]:
    """Read what a database declares about columns: type, comment, levels and checks, as SQL."""
    return {
        name: settled(name, _entry_of_column(name, column)) for name, column in declared.items()
    }


def _entry_of_column(name: str, declared: Mapping[str, str | None]) -> Entry:
    declared_type, text = declared["type"] or "", declared.get("checks") or ""
    word = re.sub(r"\(.*\)", "", declared_type, flags=re.DOTALL)
    kind = "" if "[" in word else kind_in(word)
    levels: tuple[Level, ...] = ()
    if kind == "categorical":
        levels = tuple(_texts(declared.get("levels") or ""))
    label, checks = one_line(declared.get("comment")), re.sub(_TEXT, "''", text)
    if not checks or _COMPLEX.search(checks):
        return Entry(kind=kind, levels=levels, label=label)
    column = rf'(?:{re.escape(name)}|"{re.escape(name.replace(chr(34), chr(34) * 2))}"|VALUE)'
    start = rf"(?<![\w\"]){column}\)?(?:::[\w ]+?)?\)?\s*"
    lower = _bounds(rf"{start}(?:>=?|BETWEEN)\s*{_BOUND}", text, name)
    upper = _bounds(rf"{start}(?:<=?|BETWEEN\s*{_BOUND}[^A]*\bAND)\s*{_BOUND}", text, name)
    listed = re.search(rf"{start}(?:IN\s*\(|=\s*ANY\s*\(+ARRAY\[)(.*?)(?:\]|\)\s*(?:\)|$))", text)
    if listed is not None:
        numbers = re.findall(r"-?\d[\d.]*", listed[1])
        levels = tuple(_texts(listed[1])) or tuple(map(level_in, numbers))
        return Entry(kind="categorical" if kind != "boolean" else kind, levels=levels, label=label)
    return Entry(
        kind=kind,
        lower=max(lower, default=None),
        upper=min(upper, default=None),
        levels=levels,
        label=label,
    )


def _texts(text: str) -> list[str]:
    return [literal.replace("''", "'") for literal in re.findall(_TEXT, text)]


def _bounds(pattern: str, text: str, name: str) -> list[Any]:
    matches = re.finditer(pattern, text, re.IGNORECASE)
    ends = [next((group for group in match.groups()[-2:] if group), "") for match in matches]
    return [end_in(end, f"variable {name!r}: CHECK") for end in ends if end]


_JSON_KINDS: Final = {
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
    return {
        str(name): _entry_of_property(str(name), plain, schema)
        for name, plain in properties.items()
    }


def _entry_of_property(name: str, plain: Plain, schema: Schema) -> Entry:
    where = f"variable {name!r}"
    choices = list(_choices(_resolved(plain, schema, where), schema, where))
    kind = _kind(choices)
    listed = {level: label for choice in choices for level, label in _levels(choice, where)}
    lower, upper = (_end(choices, end, kind, where) for end in ("minimum", "maximum"))
    texts = (one_line(plain.get(word)) for word in ("title", "description"))
    entry = Entry(
        kind="categorical" if listed and kind in ("numeric", "integer") else kind,
        lower=lower,
        upper=upper,
        levels=tuple(listed),
        labels=tuple(listed.values()),
        label=next((text for text in texts if text and not _is_name(text, name)), ""),
    )
    return settled(name, entry)


def _kind(choices: list[Schema]) -> str:
    """Return the one type that all choices have, nothing where they have several."""
    types = {word for choice in choices for word in _words(choice.get("type")) if word != "null"}
    if any(str(choice.get("format")).startswith("date") for choice in choices):
        return "date"
    return _JSON_KINDS.get(types.pop(), "") if len(types) == 1 else ""


def _is_name(title: str, name: str) -> bool:
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
    entry = Entry(
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
    )
    return settled(name, entry)


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
