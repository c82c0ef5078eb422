"""A released answer as parts of a page: its printed table, pictures, CSV file and code."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from functools import lru_cache
from importlib.util import find_spec
from threading import Lock
from typing import Any, Final, NamedTuple

from markupsafe import Markup

from dpmodels.disclosures.document import pictures
from dpmodels.models.load import load
from dpmodels.report.html import as_part, terms_box

_REMEMBERED: Final = 32  # Answers that were laid out, which never change
_DRAWING: Final = Lock()  # Pyplot is not for several threads
_CODE: Final = """\
import os
import dpmodels as dp

gate = dp.connect({url!r}, token=os.environ["GATE_TOKEN"])
fit = gate.table({table!r}).{call}
print(fit.summary())
"""


class Picture(NamedTuple):
    """A PNG file, its alternative text and its size in pixels."""

    text: str
    png: bytes
    width: int
    height: int


class Answer(NamedTuple):
    """A result as a page shows it."""

    table: Markup
    pictures: tuple[Picture, ...]
    csv: str


@lru_cache(_REMEMBERED)
def answer_of(path: str) -> Answer:
    """Lay out the result in a file."""
    fit = load(path)
    report = fit.summary().report
    terms = ['<div class="dpmodels-report">', *terms_box([report]), "</div>"]
    html = "\n".join([as_part(report), *terms])
    drawn = tuple(Picture(text, png, *_size(png)) for text, png in _pictures(fit))
    return Answer(Markup(html), drawn, fit.tidy().to_csv(index=False))


def _pictures(fit: object) -> tuple[tuple[str, bytes], ...]:
    """Draw a result without a display, one after another."""
    if find_spec("matplotlib") is None:
        return ()
    import matplotlib

    with _DRAWING:
        matplotlib.use("Agg")
        return pictures(fit)


def _size(png: bytes) -> tuple[int, int]:
    """Return width and height of a PNG file, from its header."""
    width, height = struct.unpack(">II", png[16:24])
    return width, height


def call_text(request: Mapping[str, Any]) -> str:
    """Return a request as a call in Python."""
    words = dict(request["words"])
    rho = words.pop("rho", None)
    options = [f"{name}={value!r}" for name, value in words.items()]
    options += [] if rho is None else [f"budget=dp.ZCDP({rho!r})"]
    return f"{request['verb']}({', '.join([repr(request['formula']), *options])})"


def code_text(url: str, table: str, request: Mapping[str, Any]) -> str:
    """Return a program that asks for the same release, which costs nothing."""
    return _CODE.format(url=url, table=table, call=call_text(request))
