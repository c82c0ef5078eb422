"""A released answer as parts of a page: its printed table, pictures, CSV file and code."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from functools import lru_cache
from importlib import import_module
from importlib.util import find_spec
from threading import Lock
from typing import Final, NamedTuple

from dpmodels.disclosures.document import pictures
from dpmodels.models.load import load
from dpmodels.report.html import as_part, terms_box
from dpmodels.typing import Plain

_REMEMBERED: Final = 32  # Answers that were laid out, which never change
_DRAWING: Final = Lock()  # Pyplot is not for several threads


class Answer(NamedTuple):
    """A result as a page shows it."""

    table: str  # A fragment of HTML
    # Alternative text, PNG file, and its width and height in pixels.
    pictures: tuple[tuple[str, bytes, tuple[int, ...]], ...]
    csv: str


@lru_cache(_REMEMBERED)
def answer_of(path: str) -> Answer:
    """Lay out the result in a file."""
    fit = load(path)
    report = fit.summary().report
    table = [as_part(report), '<div class="dpmodels-report">', *terms_box([report]), "</div>"]
    with _DRAWING:
        if find_spec("matplotlib"):
            import_module("matplotlib").use("Agg")  # Draws without a display
        drawn = pictures(fit)
    # Width and height stand in the header of a PNG file.
    sized = tuple((text, png, struct.unpack(">II", png[16:24])) for text, png in drawn)
    return Answer("\n".join(table), sized, fit.tidy().to_csv(index=False))


def call_text(request: Mapping[str, Plain]) -> str:
    """Return a request as a call in Python."""
    options = dict(request["options"])
    rho = options.pop("rho", None)
    arguments = [f"{name}={value!r}" for name, value in options.items()]
    arguments += [] if rho is None else [f"budget=dp.ZCDP({rho!r})"]
    return f"{request['verb']}({', '.join([repr(request['formula']), *arguments])})"
