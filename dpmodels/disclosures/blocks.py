"""What a disclosure report is made of, in the order it is read; values that are strings already."""

from __future__ import annotations

from dataclasses import dataclass

from dpmodels.report import Report


@dataclass(frozen=True, slots=True)
class Heading:
    """The title of a part."""

    text: str


@dataclass(frozen=True, slots=True)
class Paragraph:
    """A paragraph."""

    text: str


@dataclass(frozen=True, slots=True)
class Bullets:
    """A list of sentences."""

    texts: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Tables:
    """A printed report, as results have it."""

    report: Report


@dataclass(frozen=True, slots=True)
class Picture:
    """A PNG file, and the text that stands for it."""

    text: str
    png: bytes


@dataclass(frozen=True, slots=True)
class Code:
    """Lines that are to be copied."""

    text: str


@dataclass(frozen=True, slots=True)
class Blanks:
    """Lines to be filled in by hand."""

    names: tuple[str, ...]


Block = Heading | Paragraph | Bullets | Tables | Picture | Code | Blanks
