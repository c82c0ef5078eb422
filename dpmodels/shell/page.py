"""A study's results on one page, and links to its files."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple
from urllib.parse import quote

from dpmodels.report.html import document, escaped, picture


class Part(NamedTuple):
    """What a page shows under one name, with the files that hold it too."""

    name: str
    about: str  # One line below the heading, empty for none
    html: str
    pictures: tuple[tuple[str, bytes], ...] = ()
    files: tuple[str, ...] = ()


def page(title: str, facts: Mapping[str, str], parts: Sequence[Part]) -> str:
    """Return one document that holds all parts; nothing outside of the folder is linked."""
    links = " · ".join(f'<a href="#{quote(own.name)}">{escaped(own.name)}</a>' for own in parts)
    said = [f"<dt>{escaped(name)}</dt><dd>{escaped(own)}</dd>" for name, own in facts.items()]
    head = [f"<h1>{escaped(title)}</h1>", "<dl>", *said, "</dl>", f"<nav>{links}</nav>"]
    return document(title, "\n".join([*head, *(line for own in parts for line in _lines(own))]))


def _lines(own: Part) -> Iterable[str]:
    yield f'<section id="{quote(own.name)}"><h2>{escaped(own.name)}</h2>'
    if own.about:
        yield f"<p><code>{escaped(own.about)}</code></p>"
    yield own.html
    yield from (picture(text, png) for text, png in own.pictures)
    if own.files:
        named = " · ".join(f'<a href="{quote(file)}">{escaped(file)}</a>' for file in own.files)
        yield f"<p>Files: {named}</p>"
    yield "</section>"
