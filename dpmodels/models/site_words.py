"""The words of a verb that sites state to each other."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from dpmodels.errors import ArgumentError
from dpmodels.outside import Shape, conform

WORDS: Mapping[str, tuple[str, ...]] = {
    "pca": ("ncomp", "center", "scale", "row_norm", "denoise"),
    "cov": ("center", "scale", "row_norm", "denoise"),
    "moments": ("row_norm", "denoise"),
    "lm": ("weights", "row_norm"),
    "mean": (),
    "var": (),
    "hist": ("breaks",),
    "table": (),
    "summary": (),
}
_SHAPES: Mapping[str, Shape] = {
    "ncomp": int | None,
    "center": bool,
    "scale": str | None,
    "row_norm": str | float | None,
    "denoise": str | None,
    "weights": str | None,
    "breaks": int | tuple[float, ...],
}


def require_words(verb: str, words: Mapping[str, Any]) -> None:
    """Refuse words that a verb does not take here, or that no file can hold.

    Raises
    ------
    ArgumentError, FrameError
        The message names the word.
    """
    strange = [word for word in words if word not in WORDS[verb]]
    if strange:
        known = ", ".join(WORDS[verb]) or "none"
        raise ArgumentError(f"{strange[0]}= is no word of verb {verb!r} here; expected: {known}")
    if not all(map(_is_plain, words.values())):
        raise ArgumentError(
            "the words of a site's file are texts, numbers, lists of numbers, True, False or None"
        )
    read_words(json.loads(json.dumps(dict(words))), "words")


def read_words(plain: Mapping[str, Any], where: str) -> None:
    """Refuse words that are known and of another kind.

    Raises
    ------
    FrameError
        The message names the word.
    """
    conform({word: _SHAPES[word] for word in plain}, dict(plain), where)


def _is_plain(value: object) -> bool:
    many = value if isinstance(value, list | tuple) else ()
    return isinstance(value, str | int | float | list | tuple | None) and all(
        isinstance(one, int | float) for one in many
    )
