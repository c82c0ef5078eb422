"""The codebook command: draft a codebook, or check it against a table's names and types."""

from __future__ import annotations

import argparse
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING, Final

from dpmodels.atomic_files import require_target
from dpmodels.codebook import as_text
from dpmodels.errors import FrameError
from dpmodels.shell.command import Command, Parser
from dpmodels.shell.outputs import tell

if TYPE_CHECKING:
    from dpmodels.dictionaries.entry import Entry
    from dpmodels.frames.protocol import RowSource

_EXAMPLE: Final = """\
example:
  dpmodels codebook draft study.sav dictionary.csv -o cb.json
  dpmodels codebook check cb.json people.parquet

A draft is read from declarations (a dictionary as .csv or .xlsx, DDI as .xml, the labels
of .sav, .dta and .sas7bdat, a schema as .json, names and types of .parquet), never from rows.
Replace each "?" in the file, an unknown fact. A check compares names and types and reads no row;
its exit status is 1 if they do not fit.
"""

_HEAD = ("variable", "type", "declared", "column", "fits")


def _add(parser: Parser) -> None:
    """Add the options of both commands."""
    parser.epilog = _EXAMPLE
    commands = parser.add_subparsers(dest="step", metavar="draft|check", required=True)
    draft = commands.add_parser("draft", help="from data dictionaries, as JSON")
    draft.add_argument("files", nargs="+", metavar="FILE", help="data dictionaries that agree")
    draft.add_argument("-o", "--out", metavar="FILE", help="the codebook to write, as JSON")
    draft.add_argument("--force", action="store_true", help="overwrite an existing file")
    check = commands.add_parser("check", help="names and types of a table against a codebook")
    check.add_argument("codebook", metavar="FILE", help="a codebook or a draft, as JSON")
    check.add_argument("data", help="path of a .parquet or .csv file; no row is read")


def _run(options: argparse.Namespace) -> int:
    """Draft or check, print the table and return the exit status."""
    return _draft(options) if options.step == "draft" else _check(options)


def _draft(options: argparse.Namespace) -> int:
    from dpmodels.dictionaries.codebook_class import read

    if options.out is not None:
        require_target(options.out, overwrite=options.force, never=options.files)
    draft = reduce(or_, map(read, options.files))
    tell(draft)
    if options.out is not None:
        draft.save(options.out, overwrite=options.force)
    return 0


def _check(options: argparse.Namespace) -> int:
    from dpmodels.dictionaries.codebook_class import read
    from dpmodels.frames import open_rows

    source = open_rows(options.data)
    checks = {
        name: _check_variable(name, entry, source) for name, entry in read(options.codebook).items()
    }
    tell(as_text([row for row, _ in checks.values()], _HEAD))
    problems = {name: why for name, (_, why) in checks.items() if why}
    for name, why in problems.items():
        tell(f"{name}: {why}")
    tell(f"{len(checks) - len(problems):,} of {len(checks):,} variables fit; no row was read")
    return 1 if problems else 0


def _check_variable(name: str, entry: Entry, source: RowSource) -> tuple[tuple[str, ...], str]:
    """Return a variable's line in the table, and why it does not fit, empty where it does."""
    from dpmodels.dictionaries.entry import UNKNOWN
    from dpmodels.frames import require, require_declared

    column, why = "", ""
    try:
        require(source, (name,))
        column = source.kind(name).name or "any"
        if entry.is_complete:
            require_declared(source, {name: entry.variable(name)})
        else:
            why = f"its bounds or levels are not known; write them in place of {UNKNOWN!r}"
    except FrameError as error:
        why = str(error)
    declared = (name, entry.kind or UNKNOWN, entry.describe(name))
    return (*declared, column, "no" if why else "yes"), why


CODEBOOK: Final = Command(
    "Draft a codebook from data dictionaries, or check one against a table", _add, _run
)
