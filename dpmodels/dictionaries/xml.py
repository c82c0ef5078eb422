"""Read XML in steps, within limits, without entities or external references."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final
from xml.etree.ElementTree import Element, TreeBuilder
from xml.parsers import expat

from dpmodels.errors import CodebookError, shorten

# Choices: nesting beyond that of any dictionary, and bytes read at a time.
_DEEPEST: Final = 100
_STEP: Final = 1 << 16


def elements(content: bytes, tag: str, where: str) -> Iterator[Element]:
    """Yield the elements with a local name, one at a time; others are skipped.

    Entities are refused where they are declared, and nothing outside the file is looked up.

    >>> [own.get("id") for own in elements(b'<a><b id="1"/><c/><b id="2"/></a>', "b", "it")]
    ['1', '2']
    """
    collector = _Collector(tag, where)
    parser = expat.ParserCreate(namespace_separator=" ")
    parser.StartElementHandler, parser.EndElementHandler = collector.start, collector.end
    parser.CharacterDataHandler, parser.EntityDeclHandler = collector.text, collector.entity
    for begin in range(0, len(content) + 1, _STEP):
        try:
            parser.Parse(content[begin : begin + _STEP], begin + _STEP > len(content))
        except (expat.ExpatError, LookupError, UnicodeError):
            raise CodebookError(f"{where} is truncated or is not XML") from None
        yield from collector.elements
        collector.elements.clear()


class _Collector:
    """Collects the elements with a tag from a document that is parsed in steps."""

    def __init__(self, tag: str, where: str) -> None:
        self.elements: list[Element] = []
        self._tag, self._where = tag, where
        self._depth = self._since = 0
        self._builder: TreeBuilder | None = None

    def start(self, tag: str, attributes: Mapping[str, str]) -> None:
        self._depth += 1
        if self._depth > _DEEPEST:
            raise CodebookError(
                f"{self._where} is nested more than {_DEEPEST} deep, too deep for a dictionary"
            )
        if self._builder is None and _local(tag) == self._tag:
            self._builder, self._since = TreeBuilder(), self._depth
        if self._builder is not None:
            local_attributes = {_local(name): value for name, value in attributes.items()}
            self._builder.start(_local(tag), local_attributes)

    def end(self, tag: str) -> None:
        if self._builder is not None:
            self._builder.end(_local(tag))
            if self._depth == self._since:
                self.elements.append(self._builder.close())
                self._builder = None
        self._depth -= 1

    def text(self, data: str) -> None:
        if self._builder is not None:
            self._builder.data(data)

    def entity(self, name: str, *_: object) -> None:
        raise CodebookError(
            f"{self._where} declares the entity {shorten(repr(name))}, and entities are not read: "
            "write its text in its place"
        )


def _local(tag: str) -> str:
    return tag.rpartition(" ")[2]
