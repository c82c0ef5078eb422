"""The blocks of a disclosure report; all values are strings."""

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
    """A PNG file and its alternative text."""

    text: str
    png: bytes


@dataclass(frozen=True, slots=True)
class Code:
    """Lines to copy."""

    text: str


@dataclass(frozen=True, slots=True)
class Blanks:
    """Lines to be filled in by hand."""

    names: tuple[str, ...]


Block = Heading | Paragraph | Bullets | Tables | Picture | Code | Blanks
