"""The blocks of a disclosure report, all of strings, and their layout as HTML and Markdown."""

from __future__ import annotations

import base64
import re
from collections.abc import Sequence
from html import escape
from typing import Final, NamedTuple

from dpmodels.report import Report, as_markdown
from dpmodels.report.html import STYLE, as_part, document, escaped, picture, terms_box
from dpmodels.report.text import escaped as escaped_text


class Heading(NamedTuple):
    """The title of a part."""

    text: str


class Paragraph(NamedTuple):
    """A paragraph."""

    text: str


class Bullets(NamedTuple):
    """A list of sentences."""

    texts: tuple[str, ...]


class Tables(NamedTuple):
    """A printed report, as results have it."""

    report: Report


class Picture(NamedTuple):
    """A PNG file and its alternative text."""

    text: str
    png: bytes


class Code(NamedTuple):
    """Lines to copy."""

    text: str


class Blanks(NamedTuple):
    """Lines to be filled in by hand."""

    names: tuple[str, ...]


Block = Heading | Paragraph | Bullets | Tables | Picture | Code | Blanks


_STYLE: Final = """<style>
.dpmodels-disclosure {line-height: 1.45}
.dpmodels-disclosure h1 {font-size: 1.5em; margin: .4em 0}
.dpmodels-disclosure h2 {font-size: 1.2em; margin: 1.6em 0 .4em 0}
.dpmodels-disclosure > p, .dpmodels-disclosure > ul {max-width: 50em; overflow-wrap: anywhere}
.dpmodels-disclosure pre {white-space: pre-wrap; overflow-wrap: anywhere; font-size: .85em;
  border-left: 3px solid #8889; padding: .2em 0 .2em 1em}
.dpmodels-disclosure .blank {display: flex; gap: 1em; align-items: flex-end; margin: 1.4em 0;
  max-width: 34em}
.dpmodels-disclosure .blank span {flex: 1; border-bottom: 1px solid currentColor}
.dpmodels-disclosure .warning {background: #a40000; color: #fff; font-weight: 700;
  text-align: center; padding: .4em; max-width: none}
@media print {
  .dpmodels-disclosure h2 {break-after: avoid}
  .dpmodels-disclosure .blank, .dpmodels-disclosure figure {break-inside: avoid}
  .dpmodels-disclosure .warning {background: none; color: #000; border: 2px solid #000}
}
</style>"""


def as_page(title: str, stamp: str | None, blocks: Sequence[Block]) -> str:
    """Return the whole document."""
    head = title if stamp is None else f"{stamp}: {title}"
    return document(head, as_fragment(title, stamp, blocks))


def as_fragment(title: str, stamp: str | None, blocks: Sequence[Block]) -> str:
    """Return the report for a notebook."""
    warning = [] if stamp is None else [f'<p class="warning">{escaped(stamp)}</p>']
    lines = ['<article class="dpmodels-disclosure tex2jax_ignore mathjax_ignore">', STYLE, _STYLE]
    terms = terms_box([block.report for block in blocks if isinstance(block, Tables)])
    lines += [*warning, f"<h1>{escaped(title)}</h1>", *map(_html_block, blocks)]
    lines += ['<div class="dpmodels-report">', *terms, "</div>", *warning, "</article>"]
    return "\n".join(lines)


def _html_block(block: Block) -> str:
    match block:
        case Heading(text):
            return f"<h2>{escaped(text)}</h2>"
        case Paragraph(text):
            return f"<p>{escaped(text)}</p>"
        case Bullets(texts):
            return "\n".join(["<ul>", *(f"<li>{escaped(text)}</li>" for text in texts), "</ul>"])
        case Tables(report):
            return as_part(report)
        case Picture(text, png):
            return picture(text, png)
        case Code(text):
            return f"<pre>{escape(text)}</pre>"
        case Blanks(names):
            rows = (f'<p class="blank">{escaped(name)}<span></span></p>' for name in names)
            return "\n".join(rows)


def as_text(title: str, stamp: str | None, blocks: Sequence[Block]) -> str:
    """Return the whole document, with pictures as data."""
    warning = [] if stamp is None else [f"**{escaped_text(stamp)}**"]
    parts = [*warning, f"# {escaped_text(title)}", *map(_markdown_block, blocks), *warning]
    return "\n\n".join(parts) + "\n"


def _markdown_block(block: Block) -> str:
    match block:
        case Heading(text):
            return f"## {escaped_text(text)}"
        case Paragraph(text):
            return escaped_text(text)
        case Bullets(texts):
            return "\n".join(f"- {escaped_text(text)}" for text in texts)
        case Tables(report):
            return as_markdown(report)
        case Picture(text, png):
            return (
                f"![{escaped_text(text)}](data:image/png;base64,{base64.b64encode(png).decode()})"
            )
        case Code(text):
            fence = "`" * (1 + max([2, *map(len, re.findall("`+", text))]))
            return f"{fence}\n{text}\n{fence}"
        case Blanks(names):
            return "\n\n".join(f"{escaped_text(name)}: " + r"\_" * 30 for name in names)
