"""Levels of a variable, their labels, and codes for missing values, as users write them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import numpy as np

from dpmodels.errors import CodebookError, FrameError, shorten
from dpmodels.external_files import require_text

Level = str | int | float | bool

# From here on double precision does not have every whole number.
_EXACT: Final = 2**53


def as_number(level: Level) -> float:
    """Return the number that a level is or spells, nan if it is not a number."""
    try:
        return float(level)
    except (ValueError, OverflowError):
        return math.nan


def as_level(declared: object, what: str = "level") -> Level:
    """Return a plain text, number or truth value that tables can print and software compares."""
    level = declared.item() if isinstance(declared, np.generic) else declared
    if not isinstance(level, str | int | float) or level != level:
        raise CodebookError(
            f"{what} {shorten(repr(level))} is not a string, a number or a truth value; "
            'declare levels as a list, for example ["F", "M"]'
        )
    if isinstance(level, str):
        check_writable(what, level)
    elif as_number(level) != level:
        raise CodebookError(
            f"{what} {shorten(repr(level))} is not exact in double precision, in which numbers are "
            "compared: declare the levels as strings, and give the column as text"
        )
    return level


def sequence(what: str, declared: object) -> tuple[Any, ...]:
    """Return the items of a list; text is not a list."""
    if isinstance(declared, str | bytes) or not isinstance(declared, Iterable):
        example = '["low", "high"]' if what == "levels" else "[-9, 99]"
        raise CodebookError(f"{what}={shorten(repr(declared))}: expected a list, such as {example}")
    return tuple(declared)


def missing_codes(declared: object) -> tuple[Level, ...]:
    """Read missing codes, each once."""
    codes = (as_level(code, "missing code") for code in sequence("missing", declared))
    return tuple({(type(code), code): code for code in codes}.values())


def said_missing(missing: tuple[Level, ...], within: Sequence[bool] = ()) -> str:
    """Print missing codes, and which of them lie within the declared range."""
    in_range = within or [False] * len(missing)
    texts = (
        f"{code} (in range)" if is_in_range else str(code)
        for code, is_in_range in zip(missing, in_range, strict=True)
    )
    return f"; missing: {', '.join(texts)}" if missing else ""


def check_levels(levels: tuple[Level, ...]) -> None:
    """Refuse levels that are fewer than two, or not all different."""
    listed = shorten(repr(list(levels)), 200)
    if min(len(set(levels)), len(set(map(str, levels)))) < len(levels):
        raise CodebookError(f"levels {listed} repeat a value; list each level once")
    # Text that spells small numbers is left alone, as "1" and "01": cells of text match it exactly,
    # and whole numbers below 2**53 have one text each that Python prints.
    first: dict[float, Level] = {}
    for level in levels:
        value = as_number(level)
        previous = first.setdefault(value, level) if value == value else level
        both_text = isinstance(level, str) and isinstance(previous, str)
        if previous is not level and not (both_text and abs(value) < _EXACT):
            raise CodebookError(
                f"levels {listed}: {previous!r} and {level!r} are one number in double precision, "
                'in which numbers are compared: tell them apart by a letter, for example "id 1"'
            )
    if len(levels) < 2:
        raise CodebookError(
            f"levels {listed}: a category needs at least two levels; "
            "list every level the variable may take, present in the data or not"
        )


def check_apart(levels: tuple[Level, ...], missing: tuple[Level, ...]) -> None:
    """Refuse a missing code that a cell of a declared level could be."""
    for code in missing:
        for level in levels:
            both_text = isinstance(code, str) and isinstance(level, str)
            if str(code) == str(level) or (not both_text and as_number(code) == as_number(level)):
                raise CodebookError(
                    f"missing code {shorten(repr(code))} is the declared level "
                    f"{shorten(repr(level))}; list it among the levels or among the missing codes"
                )


def level_labels(levels: tuple[Level, ...], declared: object) -> tuple[str, ...]:
    """Read what is printed for each level; empty where it is the levels themselves."""
    texts = [str(level) for level in levels]
    if isinstance(declared, Mapping):
        labels_by_level = {str(as_level(level)): label for level, label in declared.items()}
        unknown = next((text for text in labels_by_level if text not in texts), None)
        if unknown is not None:
            raise CodebookError(
                f"labels= names {shorten(repr(unknown))}, which is not among the levels; list it "
                "there too"
            )
        declared = [labels_by_level.get(text, text) for text in texts]
    labels = sequence("labels", declared)
    if labels and len(labels) != len(levels):
        raise CodebookError(
            f"labels= has {len(labels)} labels for {len(levels)} levels; give each its own, or "
            'write a mapping such as {1: "low", 2: "high"}'
        )
    for label in labels:
        if not isinstance(label, str) or not label.strip():
            raise CodebookError(
                f"label {shorten(repr(label))} of a level is not a non-empty string"
            )
        check_writable("label of a level", label)
    if len(set(labels)) < len(labels):
        raise CodebookError(
            f"labels {shorten(repr(list(labels)), 200)} repeat a text; tables could not tell the "
            "levels apart"
        )
    return () if list(labels) == texts else labels


def check_writable(what: str, text: str) -> None:
    """Refuse half of a surrogate pair, which cannot be printed or written to files."""
    try:
        text.encode()
        require_text(text, what)
    except UnicodeEncodeError:
        raise CodebookError(
            f"{what} {shorten(ascii(text))} holds half a surrogate pair, which is not a character: "
            "write it with whole characters, and read files as UTF-8"
        ) from None
    except FrameError as error:
        raise CodebookError(str(error)) from None


def check_texts(*texts: object) -> None:
    """Refuse labels and units that are not text or cannot be printed."""
    for text in texts:
        if not isinstance(text, str):
            raise CodebookError(f"label or unit {shorten(repr(text))} is not a string")
        check_writable("label or unit", text)
