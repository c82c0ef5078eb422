"""A result as plain values for other programs: strict JSON, and CSV."""

from __future__ import annotations

import json
import math
from numbers import Integral, Real
from typing import Final

import pandas as pd

from dpmodels.digest import release_digest
from dpmodels.results.base import Result
from dpmodels.results.release_text import guarantee_words, neighbours_text

# A spreadsheet reads cells that begin with these, even after white space, as formulas.
_FORMULA: Final = ("=", "+", "-", "@", "\uff1d", "\uff0b", "\uff0d", "\uff20")


def as_json(fit: Result) -> str:
    """Return numbers, guarantee and digest as JSON, in which nan and infinity are null."""
    release = fit.release
    values = {
        "result": type(fit).__name__,
        "formula": fit.call.formula,
        "guarantee": guarantee_words(release),
        "neighbours": neighbours_text(release),
        "simulated": fit.simulated,
        "digest": release_digest(release),
        "glance": _records(fit.glance())[0],
        "tidy": _records(fit.tidy()),
    }
    return json.dumps(values, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def as_csv(fit: Result) -> str:
    """Return the tidy table as CSV; an apostrophe keeps text from being run by a spreadsheet."""
    text: str = fit.tidy().map(_inert).to_csv(index=False)
    return text


def _inert(cell: object) -> object:
    risky = isinstance(cell, str) and (
        cell.lstrip().startswith(_FORMULA) or cell.startswith(("\t", "\r", "\n"))
    )
    return f"'{cell}" if risky else cell


def _records(frame: pd.DataFrame) -> list[dict[str, object]]:
    return [
        {str(name): _value(value) for name, value in row.items()}
        for row in frame.to_dict("records")
    ]


def _value(value: object) -> object:
    if value is pd.NA:
        return None
    if value is None or isinstance(value, str | bool):
        return value
    if isinstance(value, Real):
        number = int(value) if isinstance(value, Integral) else float(value)
        return number if math.isfinite(number) else None
    if hasattr(value, "item"):  # numpy's truth values
        return value.item()
    return str(value)
