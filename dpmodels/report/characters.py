"""Characters as a terminal shows them: safe, measured, broken into lines."""

import re
import unicodedata

from dpmodels.labels import plain

_PIECE = re.compile(r"[^\s_.:*,;/|)\]+&-]*[_.:*,;/|)\]+&-]*")


def width(text: str) -> int:
    """Columns that a terminal gives to ``text``.

    Wide East Asian characters take two, combining marks none.

    References
    ----------
    Unicode Standard Annex 11, East Asian Width.

    Examples
    --------
    >>> width("age"), width("年齢"), width("a\u0301ge")
    (3, 4, 3)
    """
    wide = sum(unicodedata.east_asian_width(c) in ("W", "F") for c in text)
    combining = sum(unicodedata.category(c) in ("Mn", "Me") for c in text)
    return len(text) + wide - combining


def pad(text: str, columns: int, align: str) -> str:
    """``text`` filled with spaces to ``columns``; ``align`` is one of ``< > ^``."""
    spare = max(columns - width(text), 0)
    left = {"<": 0, ">": spare, "^": spare // 2}[align]
    return " " * left + text + " " * (spare - left)


def wrap(text: str, columns: int, indent: int = 0) -> tuple[str, ...]:
    """Lines of at most ``columns``, later ones indented; no character is lost.

    Breaks at spaces; a word longer than a line breaks after punctuation, and
    only then inside.

    Examples
    --------
    >>> wrap("Expected cos2 with the non-private component", 24, indent=2)
    ('Expected cos2 with the', '  non-private component')
    >>> wrap("C(region,Treatment)[T.north]", 12)
    ('C(region,', 'Treatment)', '[T.north]')
    """
    lines = [""]
    for word in plain(text).split(" "):
        joint = " " if lines[-1].strip() else ""
        if width(lines[-1] + joint + word) <= columns:
            lines[-1] += joint + word
            continue
        if lines[-1].strip():
            lines.append(" " * indent)
        for piece in _pieces(word, columns - indent):
            if width(lines[-1] + piece) > columns:
                lines.append(" " * indent)
            lines[-1] += piece
    return tuple(lines)


def _pieces(word: str, columns: int) -> list[str]:
    """Cut a word that fits no line into parts that do."""
    if width(word) <= columns:
        return [word]
    pieces: list[str] = []
    for piece in filter(None, _PIECE.findall(word)):
        start = 0
        for stop in range(1, len(piece) + 1):
            if width(piece[start:stop]) > columns:
                pieces.append(piece[start : stop - 1])
                start = stop - 1
        pieces.append(piece[start:])
    return pieces
