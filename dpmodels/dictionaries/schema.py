"""Names and types of tables: the schema of a frame or of a Parquet file, and never a value.

A type identifies numbers, text, truth values or days. It gives levels only where they were
declared, as in polars' ``Enum``: the categories of pandas and Arrow are commonly inferred from the
rows. An integer type does not identify whole numbers, since an empty cell may change it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any, Final, Protocol

import numpy as np

from dpmodels.dictionaries.entry import Entry, settled
from dpmodels.dictionaries.notation import one_line
from dpmodels.errors import CodebookError, FrameError
from dpmodels.variables import as_variable

_KINDS: Final = {"b": "boolean", "i": "numeric", "u": "numeric", "f": "numeric", "M": "date"}
_TEXTS: Final = ("U", "S", "T")


def entries_of_types(types: Iterable[tuple[object, object]]) -> dict[str, Entry]:
    """Return entries of names and types; CodebookError for an invalid or duplicate name."""
    entries: dict[str, Entry] = {}
    for name, dtype in types:
        if not isinstance(name, str) or name in entries:
            what = "twice" if name in entries else "of a column, which is not a text"
            raise CodebookError(
                f"the table has the name {name!r} {what}: rename its columns, each by a unique text"
            )
        levels = _declared_levels(dtype)
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


def kind_of_dtype(dtype: object) -> str:
    """Return the type of variable that a column of a type holds; empty if it may hold anything."""
    import narwhals.stable.v2 as nw

    pandas = nw.dependencies.get_pandas()
    if hasattr(dtype, "is_temporal"):
        return _of_polars(dtype)
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


def _of_polars(dtype: Any) -> str:
    import polars as pl

    if dtype == pl.Boolean:
        return "boolean"
    if dtype in (pl.Date, pl.Datetime):
        return "date"
    text = dtype in (pl.String, pl.Categorical, pl.Enum)
    return "categorical" if text else "numeric" if dtype.is_numeric() else ""


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


def _declared_levels(dtype: Any) -> tuple[str, ...]:
    import narwhals.stable.v2 as nw

    polars = nw.dependencies.get_polars()
    enum = polars is not None and isinstance(dtype, polars.Enum)
    return tuple(dtype.categories) if enum else ()


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


class PanderaCheck(Protocol):
    """What is read of a check; its statistics are the stated bounds and values."""

    name: str


class PanderaColumn(Protocol):
    """What is read of a column."""

    checks: Iterable[PanderaCheck] | PanderaCheck
    dtype: object
    title: str | None
    description: str | None


def entries_of_columns(columns: Mapping[str, PanderaColumn]) -> dict[str, Entry]:
    """Read the types, the bounds and the allowed values that checks state."""
    return {str(name): _entry(str(name), column) for name, column in columns.items()}


def _entry(name: str, column: PanderaColumn) -> Entry:
    checks = list(column.checks if isinstance(column.checks, Iterable) else [column.checks])
    stated = {check.name: getattr(check, "statistics", None) or {} for check in checks if check}
    lowers = [stated[check]["min_value"] for check in _LOWER if check in stated]
    uppers = [stated[check]["max_value"] for check in _UPPER if check in stated]
    levels = tuple(stated.get("isin", {}).get("allowed_values", ()))
    dtype = getattr(column.dtype, "type", column.dtype)
    typed_entry = Entry(
        kind="categorical" if levels else kind_of_dtype(dtype),
        lower=max(lowers, default=None),
        upper=min(uppers, default=None),
        levels=levels,
    )
    entry = typed_entry if levels else entry_of_dtype(name, dtype, typed_entry)
    return settled(name, replace(entry, label=one_line(column.title or column.description)))
