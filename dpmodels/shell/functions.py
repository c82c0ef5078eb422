"""Commands that read no row: functions of the package, by their signatures."""

from __future__ import annotations

import argparse
import inspect
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final, NamedTuple

import dpmodels as dp
from dpmodels.parameter_texts import parameter_docs, signature
from dpmodels.shell.command_options import (
    CODEBOOK,
    SHARED_HELP,
    Command,
    Parser,
    add_options,
    add_privacy,
    function_arguments,
    table_arguments,
)
from dpmodels.shell.outputs import TABLES, add_outputs, require_outputs, tell, write_outputs

_SAVED: Final = ".nc"
# A separate page, and the same as Markdown, which is printed if no file is named.
_PAGES: Final = ("html", "markdown")
_FILES: Final = "saved results (.nc) or ledgers"
_COUNTED: Final = "file of a ledger: a note states the total of its charges; nothing is charged"


class _Function(NamedTuple):
    what: str
    example: str
    first: str  # The positional argument: a formula, files, or nothing
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
        "Compute the power of an analysis, before anything is read or spent",
        'dpmodels power "wage ~ age" --codebook cb.json --eps 1 --delta 1e-6 --n 5000 --effect 0.1',
        "formula",
    ),
    "reading": _Function(
        "Explain what a guarantee lets an observer infer", "dpmodels reading --eps 0.1,1,5", ""
    ),
}


def _add(name: str, parser: Parser) -> None:
    """Add the positional argument, then the function's parameters as options."""
    function, spec = _function(name), _FUNCTIONS[name]
    parameters = signature(function)
    operands = {"files": "FILE ... ", "formula": "FORMULA "}.get(spec.first, "")
    parser.usage = f"{parser.prog} {operands}[options]"
    parser.epilog = (
        f"example:\n  {spec.example}\nFull documentation: python -m pydoc dpmodels.{name}"
    )
    if spec.first == "files":
        parser.add_argument("files", nargs="+", metavar="FILE", help=_FILES)
        parameters.pop(next(iter(parameters)))
        if parameters.pop("ledger", None):
            parser.add_argument("--ledger", metavar="FILE", help=_COUNTED)
    elif spec.first:
        parser.add_argument(spec.first, metavar=spec.first.upper(), help='such as "wage ~ age"')
        parameters.pop(spec.first)
    if parameters.pop("codebook", None):
        parser.add_argument("--codebook", metavar="FILE", help=CODEBOOK)
    if any(name in SHARED_HELP for name in parameters):
        add_privacy(parser.add_argument_group("privacy"), function)
    variadic = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    rest = [
        parameter
        for word, parameter in parameters.items()
        if word not in SHARED_HELP and parameter.kind not in variadic
    ]
    add_options(parser, rest, parameter_docs(inspect.getdoc(function) or ""))
    add_outputs(parser, spec.printed, spec.formats)


def _run(name: str, options: argparse.Namespace) -> int:
    spec, files = _FUNCTIONS[name], getattr(options, "files", [])
    require_outputs(options, *files)
    first = {"files": [_items(files)], "": []}.get(spec.first, [getattr(options, spec.first, None)])
    result = _function(name)(*first, **table_arguments(options), **function_arguments(options))
    if spec.formats == _PAGES:
        write_outputs(options, result)
        tell(result if options.html or options.markdown else result.as_markdown())
    else:
        tell(result.summary())
        write_outputs(options, result.summary(), result)
    return 0


def _items(files: list[str]) -> list[object]:
    """Return saved results and ledgers by their files."""
    return [dp.load(file) if file.endswith(_SAVED) else dp.Ledger.open(file) for file in files]


def _function(name: str) -> Callable[..., Any]:
    function: Callable[..., object] = getattr(dp, name)
    return function


FUNCTIONS: Final[Mapping[str, Command]] = {
    name: Command(spec.what, partial(_add, name), partial(_run, name))
    for name, spec in _FUNCTIONS.items()
}
