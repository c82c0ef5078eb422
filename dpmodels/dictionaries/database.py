"""Declarations in databases: types, comments, CHECK constraints and ENUM types; never a row."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from dpmodels.dictionaries.entry import Entry, settled
from dpmodels.dictionaries.notation import end_in, kind_in, level_in, one_line
from dpmodels.levels import Level

_TEXT: Final = r"'((?:[^']|'')*)'"
_BOUND: Final = rf"(?:CAST)?[\s(]*(?:{_TEXT}|(-?[\d.]+(?:[eE][-+]?\d+)?))"
# Constraints with any of these say more than a range or a list.
_COMPLEX: Final = re.compile(r"\b(OR|NOT(?!\s+NULL)|CASE)\b|[-+*/%]\s*[a-z(]", re.IGNORECASE)


def entries_of_table(declared: Mapping[str, Mapping[str, str | None]]) -> dict[str, Entry]:
    """Read what a database declares about columns: type, comment, levels and checks, as SQL."""
    return {name: settled(name, _entry(name, column)) for name, column in declared.items()}


def _entry(name: str, declared: Mapping[str, str | None]) -> Entry:
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
    """Return the numbers or days at the end of all matches."""
    matches = re.finditer(pattern, text, re.IGNORECASE)
    ends = [next((group for group in match.groups()[-2:] if group), "") for match in matches]
    return [end_in(end, f"variable {name!r}: CHECK") for end in ends if end]
