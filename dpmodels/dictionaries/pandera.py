"""Schemas of pandera: columns with their checks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, Final

from dpmodels.dictionaries.entry import Entry, settled
from dpmodels.dictionaries.schema import entry_of_dtype, kind_of_dtype
from dpmodels.dictionaries.words import one_line

_LOWER: Final = ("greater_than_or_equal_to", "greater_than", "in_range")
_UPPER: Final = ("less_than_or_equal_to", "less_than", "in_range")


def entries_of_columns(columns: Mapping[str, Any]) -> dict[str, Entry]:
    """Read the types, the bounds and the allowed values that checks state."""
    return {str(name): _entry(str(name), own) for name, own in columns.items()}


def _entry(name: str, own: Any) -> Entry:
    checks = list(own.checks if isinstance(own.checks, Iterable) else [own.checks])
    stated = {check.name: getattr(check, "statistics", None) or {} for check in checks if check}
    lowers = [stated[check]["min_value"] for check in _LOWER if check in stated]
    uppers = [stated[check]["max_value"] for check in _UPPER if check in stated]
    levels = tuple(stated.get("isin", {}).get("allowed_values", ()))
    dtype = getattr(own.dtype, "type", own.dtype)
    told = Entry(
        kind="categorical" if levels else kind_of_dtype(dtype),
        lower=max(lowers, default=None),
        upper=min(uppers, default=None),
        levels=levels,
    )
    entry = told if levels else entry_of_dtype(name, dtype, told)
    return settled(name, replace(entry, label=one_line(own.title or own.description)))
