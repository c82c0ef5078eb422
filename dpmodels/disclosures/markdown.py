"""Blocks as Markdown."""

from __future__ import annotations

import base64
import re
from collections.abc import Sequence

from dpmodels.disclosures.blocks import (
    Blanks,
    Block,
    Bullets,
    Code,
    Heading,
    Paragraph,
    Picture,
    Tables,
)
from dpmodels.report import as_markdown
from dpmodels.report.text import escaped


def as_text(title: str, stamp: str | None, blocks: Sequence[Block]) -> str:
    """Return the whole document, with pictures as data."""
    warning = [] if stamp is None else [f"**{escaped(stamp)}**"]
    parts = [*warning, f"# {escaped(title)}", *map(_block, blocks), *warning]
    return "\n\n".join(parts) + "\n"


def _block(block: Block) -> str:
    match block:
        case Heading(text):
            return f"## {escaped(text)}"
        case Paragraph(text):
            return escaped(text)
        case Bullets(texts):
            return "\n".join(f"- {escaped(text)}" for text in texts)
        case Tables(report):
            return as_markdown(report)
        case Picture(text, png):
            return f"![{escaped(text)}](data:image/png;base64,{base64.b64encode(png).decode()})"
        case Code(text):
            fence = "`" * (1 + max([2, *map(len, re.findall("`+", text))]))
            return f"{fence}\n{text}\n{fence}"
        case Blanks(names):
            return "\n\n".join(f"{escaped(name)}: " + r"\_" * 30 for name in names)
