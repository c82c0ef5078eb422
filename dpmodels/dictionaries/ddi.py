"""DDI-Codebook 2: the XML in which archives publish what their files' variables are.

Names, labels, declared ranges, categories and codes of missing values are read. Statistics of the
rows in the same files (``sumStat``, ``catStat``) are ignored.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import Element

from dpmodels.codebook import MOST_BYTES
from dpmodels.dictionaries.entry import Entry, joined, settled
from dpmodels.dictionaries.notation import codes_between, end_in, number_in, once, one_line
from dpmodels.dictionaries.xml import elements
from dpmodels.errors import CodebookError
from dpmodels.external_files import read_bytes
from dpmodels.levels import Level


def read_ddi(path: Path) -> dict[str, Entry]:
    """Read the variables of a DDI-Codebook file; CodebookError if it has none."""
    where = repr(str(path))
    entries: dict[str, Entry] = {}
    for element in elements(read_bytes(path, MOST_BYTES), "var", where):
        name = one_line(element.get("name") or element.get("ID"))
        entry = _entry(name, element)
        entries[name] = joined(name, entries[name], entry) if name in entries else entry
    if not entries:
        raise CodebookError(
            f"{where} has no variables of DDI-Codebook (elements var of codeBook, versions 1 to "
            "2.6); export the file's documentation as DDI-Codebook, not DDI-Lifecycle"
        )
    return entries


def _entry(name: str, element: Element) -> Entry:
    where = f"variable {name!r}"
    form = element.find("varFormat")
    character = form is not None and form.get("type") == "character"
    categories, absent = _categories(element, character, where)
    lower, upper = (_end(element, end, where) for end in ("min", "max"))
    continuous = element.get("intrvl") == "contin"
    listed = {} if continuous and lower is None else categories
    days = form is not None and form.get("category") in ("date", "time")
    is_integer = element.get("dcml") == "0" and continuous
    kind = "date" if days else "categorical" if character else "numeric"
    return settled(
        name,
        Entry(
            kind="integer" if kind == "numeric" and is_integer else kind,
            lower=lower,
            upper=upper,
            levels=tuple(listed),
            labels=tuple(listed.values()),
            missing=tuple(dict.fromkeys(_invalid(element, character, categories) + absent)),
            label=_text(element.find("labl")),
            unit=one_line(element.get("measUnit")),
            ordered=element.get("nature") == "ordinal" and bool(listed),
        ),
    )


def _categories(
    element: Element, character: bool, where: str
) -> tuple[dict[Level, str], list[Level]]:
    """Return the labels of categories by their codes, and the codes of missing values."""
    groups = [group for group in element.findall("catgry") if group.find("catValu") is not None]
    codes = [_code(_text(group.find("catValu")), character) for group in groups]
    labels = [_text(group.find("labl")) for group in groups]
    pairs = zip(codes, groups, strict=True)
    absent = [code for code, group in pairs if group.get("missing") == "Y"]
    return once(zip(codes, labels, strict=True), where), absent


def _end(element: Element, end: str, where: str) -> Any:
    """Return a bound of the declared values, which may be given in several pieces."""
    pieces = element.findall("valrng/range") + element.findall("valrng/item")
    texts = [one_line(piece.get(end) or piece.get("VALUE")) for piece in pieces]
    bounds = [end_in(text, f"{where}: valrng {end}") for text in texts]
    if not bounds or None in bounds:
        return None
    return min(bounds) if end == "min" else max(bounds)


def _invalid(element: Element, character: bool, listed: Iterable[Level]) -> list[Level]:
    codes = [
        _code(one_line(item.get("VALUE")), character) for item in element.findall("invalrng/item")
    ]
    for piece in element.findall("invalrng/range"):
        lower, upper = (number_in(one_line(piece.get(end))) for end in ("min", "max"))
        codes += codes_between(lower, upper, listed)
    return codes


def _code(text: str, character: bool) -> Level:
    number = number_in(text)
    if character or number != number:
        return text
    return int(number) if number.is_integer() else number


def _text(element: Element | None) -> str:
    return "" if element is None else one_line("".join(element.itertext()))
