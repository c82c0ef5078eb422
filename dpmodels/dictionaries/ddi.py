"""DDI-Codebook 2: the XML in which archives publish what their files' variables are.

Read are names, labels, declared ranges, categories and codes of missing values. What was counted in
the rows stands in the same files (``sumStat``, ``catStat``) and is passed over.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import Element

from dpmodels.codebook import MOST_BYTES
from dpmodels.dictionaries.entry import Entry, joined, settled
from dpmodels.dictionaries.words import codes_between, end_in, number_in, once, one_line
from dpmodels.dictionaries.xml import elements
from dpmodels.errors import CodebookError
from dpmodels.levels import Level
from dpmodels.outside import read_bytes


def read_ddi(path: Path) -> dict[str, Entry]:
    """Read the variables of a DDI-Codebook file; CodebookError if it has none."""
    where = repr(str(path))
    made: dict[str, Entry] = {}
    for own in elements(read_bytes(path, MOST_BYTES), "var", where):
        name = one_line(own.get("name") or own.get("ID"))
        entry = _entry(name, own)
        made[name] = joined(name, made[name], entry) if name in made else entry
    if not made:
        raise CodebookError(
            f"{where} has no variables of DDI-Codebook (elements var of codeBook, versions 1 to "
            "2.6); export the file's documentation as DDI-Codebook, not DDI-Lifecycle"
        )
    return made


def _entry(name: str, own: Element) -> Entry:
    where = f"variable {name!r}"
    form = own.find("varFormat")
    character = form is not None and form.get("type") == "character"
    categories, absent = _categories(own, character, where)
    lower, upper = (_end(own, end, where) for end in ("min", "max"))
    continuous = own.get("intrvl") == "contin"
    listed = {} if continuous and lower is None else categories
    days = form is not None and form.get("category") in ("date", "time")
    whole = own.get("dcml") == "0" and continuous
    kind = "date" if days else "categorical" if character else "numeric"
    return settled(
        name,
        Entry(
            kind="integer" if kind == "numeric" and whole else kind,
            lower=lower,
            upper=upper,
            levels=tuple(listed),
            labels=tuple(listed.values()),
            missing=tuple(dict.fromkeys(_invalid(own, character, categories) + absent)),
            label=_text(own.find("labl")),
            unit=one_line(own.get("measUnit")),
            ordered=own.get("nature") == "ordinal" and bool(listed),
        ),
    )


def _categories(own: Element, character: bool, where: str) -> tuple[dict[Level, str], list[Level]]:
    """Return the labels of categories by their codes, and the codes of missing values."""
    groups = [group for group in own.findall("catgry") if group.find("catValu") is not None]
    codes = [_code(_text(group.find("catValu")), character) for group in groups]
    labels = [_text(group.find("labl")) for group in groups]
    pairs = zip(codes, groups, strict=True)
    absent = [code for code, group in pairs if group.get("missing") == "Y"]
    return once(zip(codes, labels, strict=True), where), absent


def _end(own: Element, end: str, where: str) -> Any:
    """Return an end of the declared values, which may be given in several pieces."""
    pieces = own.findall("valrng/range") + own.findall("valrng/item")
    texts = [one_line(piece.get(end) or piece.get("VALUE")) for piece in pieces]
    ends = [end_in(text, f"{where}: valrng {end}") for text in texts]
    if not ends or None in ends:
        return None
    return min(ends) if end == "min" else max(ends)


def _invalid(own: Element, character: bool, listed: Iterable[Level]) -> list[Level]:
    codes = [_code(one_line(item.get("VALUE")), character) for item in own.findall("invalrng/item")]
    for piece in own.findall("invalrng/range"):
        lower, upper = (number_in(one_line(piece.get(end))) for end in ("min", "max"))
        codes += codes_between(lower, upper, listed)
    return codes


def _code(text: str, character: bool) -> Level:
    number = number_in(text)
    if character or number != number:
        return text
    return int(number) if number.is_integer() else number


def _text(own: Element | None) -> str:
    return "" if own is None else one_line("".join(own.itertext()))
