"""Commands that read no row: functions of the package, by their signatures."""

from __future__ import annotations

import argparse
import inspect
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final, NamedTuple

import dpmodels as dp
from dpmodels.shell.command import Command, Parser
from dpmodels.shell.outputs import TABLES, add_outputs, require_outputs, tell, write_outputs
from dpmodels.shell.words import (
    CODEBOOK,
    SAID,
    add_privacy,
    add_words,
    asked,
    described,
    given,
    signature,
)

_SAVED: Final = ".nc"
# A page by itself, and the same as Markdown, which is printed where no file is asked for.
_PAGES: Final = ("html", "markdown")
_FILES: Final = "saved results (.nc) or ledgers"
_COUNTED: Final = "file of a ledger: a note tells what all its charges come to; nothing is charged"


class _Function(NamedTuple):
    what: str
    example: str
    first: str  # What stands first in the call: a formula, files, or nothing
    formats: tuple[str, ...] = tuple(TABLES)
    printed: str = "table"


_FUNCTIONS: Final[Mapping[str, _Function]] = {
    "etable": _Function(
        "Set saved results side by side",
        "dpmodels etable a.nc b.nc --html table.html",
        "files",
    ),
    "disclosure": _Function(
        "Report what was released under which guarantee, to be signed",
        'dpmodels disclosure study.ledger a.nc b.nc --title "Wages 2026" --html report.html',
        "files",
        _PAGES,
        "report",
    ),
    "power": _Function(
        "Tell what an analysis will find, before anything is read or spent",
        'dpmodels power "wage ~ age" --codebook cb.json --eps 1 --delta 1e-6 --n 5000 --effect 0.1',
        "formula",
    ),
    "reading": _Function(
        "Say what a guarantee lets anybody tell", "dpmodels reading --eps 0.1,1,5", ""
    ),
}


def _add(name: str, parser: Parser) -> None:
    """Add what stands first, then the function's words as options."""
    function, own = _named(name), _FUNCTIONS[name]
    words = signature(function)
    shown = {"files": "FILE ... ", "formula": "FORMULA "}.get(own.first, "")
    parser.usage = f"{parser.prog} {shown}[options]"
    parser.epilog = f"example:\n  {own.example}\nAt length: python -m pydoc dpmodels.{name}"
    if own.first == "files":
        parser.add_argument("files", nargs="+", metavar="FILE", help=_FILES)
        words.pop(next(iter(words)))
        if words.pop("ledger", None):
            parser.add_argument("--ledger", metavar="FILE", help=_COUNTED)
    elif own.first:
        parser.add_argument(own.first, metavar=own.first.upper(), help='such as "wage ~ age"')
        words.pop(own.first)
    if words.pop("codebook", None):
        parser.add_argument("--codebook", metavar="FILE", help=CODEBOOK)
    if any(word in SAID for word in words):
        add_privacy(parser.add_argument_group("privacy"), function)
    many = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    rest = [one for word, one in words.items() if word not in SAID and one.kind not in many]
    add_words(parser, rest, described(inspect.getdoc(function) or ""))
    add_outputs(parser, own.printed, own.formats)


def _run(name: str, words: argparse.Namespace) -> int:
    own, files = _FUNCTIONS[name], getattr(words, "files", [])
    require_outputs(words, *files)
    first = {"files": [_items(files)], "": []}.get(own.first, [getattr(words, own.first, None)])
    made = _named(name)(*first, **asked(words), **given(words))
    if own.formats == _PAGES:
        write_outputs(words, made)
        tell(made if words.html or words.markdown else made.as_markdown())
    else:
        tell(made.summary())
        write_outputs(words, made.summary(), made)
    return 0


def _items(files: list[str]) -> list[object]:
    """Return saved results and ledgers by their files."""
    return [dp.load(file) if file.endswith(_SAVED) else dp.Ledger.open(file) for file in files]


def _named(name: str) -> Callable[..., Any]:
    function: Callable[..., object] = getattr(dp, name)
    return function


FUNCTIONS: Final[Mapping[str, Command]] = {
    name: Command(own.what, partial(_add, name), partial(_run, name))
    for name, own in _FUNCTIONS.items()
}
