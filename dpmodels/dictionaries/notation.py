"""Texts of data dictionaries: types, numbers, ranges and lists of levels as people write them."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from datetime import date
from typing import Any, Final

from dpmodels.errors import CodebookError, shorten
from dpmodels.levels import Level

_KINDS: Final = {
    "numeric": "numeric number num float double real decimal continuous contin scale ratio",
    "integer": "integer int whole count long bigint smallint tinyint int8 int16 int32 int64 year",
    "date": "date datetime timestamp day",
    "boolean": "boolean bool logical truefalse",
    "categorical": "categorical category factor nominal ordinal enum radio dropdown ordered",
    "identifier": "identifier id key uuid guid",
    "text": "str string text character char varchar",
}
_KIND_OF: Final = {word: kind for kind, words in _KINDS.items() for word in words.split()}
_GROUPED: Final = re.compile(r"[-+]?\d{1,3}(,\d{3})+(\.\d+)?")
_RANGE: Final = re.compile(r"(-?[\d.,]*\d)\s*(?:-|–|\.\.+|to|:)\s*(-?\d[\d.,]*)")
_BRACKETED: Final = re.compile(r"[\[(]\s*(-?[\d.]+)\s*[,;]\s*(-?[\d.]+)\s*[\])]")
# <= and >= belong to the level.
_CODED: Final = re.compile(r"\s*((?:[<>!]=|[^=:])*?)\s*(?<![<>!])[=:]\s*(.*\S)\s*", re.DOTALL)
_PAIRED: Final = re.compile(r"\s*([^,]*?)\s*,\s*(.*\S)\s*", re.DOTALL)
# A choice: longer ranges are not expanded into whole numbers.
_LONG: Final = 100
_NOTHING: Final = {"", "?", "-", "na", "n/a", "nan", "none", "null", "unknown", "not known"}


def one_line(text: object) -> str:
    """Return a text on one line, of printable characters; None gives an empty one."""
    printed = (
        character if character.isprintable() else " "
        for character in ("" if text is None else str(text))
    )
    return " ".join("".join(printed).split())


def cell_text(cell: object) -> str:
    """Return the text of a cell, empty if it stands for a missing entry.

    >>> cell_text("0 to  110 "), cell_text("unknown"), cell_text(None)
    ('0 to 110', '', '')
    """
    line = one_line(cell)
    return "" if line.casefold() in _NOTHING else line


def kind_in(text: str, *, ranged: bool = False) -> str:
    """Return the type that a word names; empty if it is not known.

    Text is a category, unless it has a range: then it holds numbers.

    >>> kind_in("Whole number"), kind_in("float64"), kind_in("text"), kind_in("F8.2")
    ('integer', 'numeric', 'categorical', '')
    """
    tokens = re.findall(r"[a-z]+\d*", text.casefold().replace("/", ""))
    kinds = [_KIND_OF[word] for word in tokens if word in _KIND_OF]
    stems = [_KIND_OF[stem] for word in tokens if (stem := word.rstrip("0123456789")) in _KIND_OF]
    kind = next(iter(kinds or stems), "")
    return kind if kind != "text" else "" if ranged else "categorical"


def number_in(text: str) -> float:
    """Return the number that a text spells, nan otherwise.

    >>> number_in("250,000"), number_in("-9"), number_in("1,5")
    (250000.0, -9.0, nan)
    """
    try:
        number = float(text.replace(",", "") if _GROUPED.fullmatch(text) else text)
    except ValueError:
        return math.nan
    return number if math.isfinite(number) else math.nan


def end_in(text: str, where: str) -> Any:
    """Return the bound that a text spells, a number or a day; None if it is empty."""
    if not text:
        return None
    number = number_in(text)
    if not math.isnan(number):
        return number
    try:
        return date.fromisoformat(text[:10])
    except ValueError:
        raise CodebookError(
            f"{where} is {shorten(repr(text))}, neither a number nor a date; write one such as 0, "
            "2.5 or 2001-12-31, or leave it empty"
        ) from None


def range_in(text: str) -> tuple[float, float] | None:
    """Return both bounds of a text such as ``0-110``, None if it is not a range.

    >>> range_in("0 - 110"), range_in("[-5, 5]"), range_in("low; high")
    ((0.0, 110.0), (-5.0, 5.0), None)
    """
    match = _RANGE.fullmatch(text.strip()) or _BRACKETED.fullmatch(text.strip())
    ends = [number_in(end) for end in match.groups()] if match else []
    return (ends[0], ends[1]) if ends and not any(map(math.isnan, ends)) else None


def level_in(text: str) -> Level:
    """Return the level that a text is: a whole number, another number, or itself.

    A text that is not the usual spelling of a number stays text.

    >>> level_in("2"), level_in("2.5"), level_in("02"), level_in("F")
    (2, 2.5, '02', 'F')
    """
    number = number_in(text)
    if number == number:
        level: Level = int(number) if number.is_integer() else number
        if str(level) == text:
            return level
    return text


def levels_in(text: str, where: str) -> dict[Level, str]:
    """Return levels with their labels, of ``1=low; 2=high`` or ``F; M``; empty labels where none.

    Items are separated by a new line, a semicolon, a bar or, without these, a
    comma.

    >>> levels_in("1 = low; 2 = high", ""), levels_in("1, Low | 2, High", ""), levels_in("F,M", "")
    ({1: 'low', 2: 'high'}, {1: 'Low', 2: 'High'}, {'F': '', 'M': ''})
    """
    separator = next((mark for mark in "\n;|" if mark in text.strip()), ",")
    items = [one_line(item) for item in text.split(separator) if item.strip()]
    for form in (_CODED, _PAIRED):
        matches = [form.fullmatch(item) for item in items]
        if items and all(matches):
            return once(((level_in(match[1]), match[2]) for match in matches if match), where)
        if any(matches) and form is _CODED:
            raise CodebookError(
                f"{where}: of the levels {shorten(repr(text), 100)} some have a label and some do "
                "not; write 1=low; 2=high, or low; high"
            )
    return once(((level_in(item), "") for item in items), where)


def codes_between(lower: float, upper: float, listed: Iterable[Level]) -> list[Level]:
    """Return the codes in a range of missing values.

    For a short range, its whole numbers; for a long or open one (nan, inf), those
    `listed`.

    >>> codes_between(-3, -1, []), codes_between(-math.inf, -1, [-9, 1])
    ([-3, -2, -1], [-9])
    """
    if upper - lower < _LONG:
        return list(range(math.ceil(lower), math.floor(upper) + 1))
    numbers = (code for code in listed if isinstance(code, int | float))
    return [code for code in numbers if not (code < lower or code > upper)]


def once(pairs: Iterable[tuple[Level, str]], where: str) -> dict[Level, str]:
    """Return levels with their labels; CodebookError where one has two."""
    labels: dict[Level, str] = {}
    for level, label in pairs:
        if labels.setdefault(level, label) != label:
            raise CodebookError(
                f"{where}: level {shorten(repr(level))} is labelled {shorten(repr(labels[level]))} "
                f"and {shorten(repr(label))}; keep one of them"
            )
    return labels
