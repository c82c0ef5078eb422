"""The codebook command: draft a codebook, or check it against a table's names, types and rows."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING, Final

from dpmodels.atomic_files import require_target
from dpmodels.codebook import as_text
from dpmodels.errors import CodebookError, FrameError
from dpmodels.shell.command_options import ROWS, Command, Parser, Source
from dpmodels.shell.outputs import tell

if TYPE_CHECKING:
    from dpmodels.dictionaries.draft import Draft
    from dpmodels.dictionaries.entry import Entry
    from dpmodels.frames.protocol import RowSource

_EXAMPLE: Final = """\
example:
  dpmodels codebook draft study.sav dictionary.csv -o cb.json
  dpmodels codebook check cb.json people.parquet
  dpmodels codebook check cb.json people.parquet --rows    # for the curator only

A draft is read from declarations (a dictionary as .csv or .xlsx, DDI as .xml, the labels
of .sav, .dta and .sas7bdat, a schema as .json, names and types of .parquet, comments and CHECK
constraints of postgresql://user@host/db?table=visits), never from rows.
Replace each "?" in the file, an unknown fact. A check compares names and types and reads no row;
its exit status is 1 if they do not fit. With --rows it reads the rows and counts by variable what
does not fit. These counts have no noise: they are not private, and must not be passed on.
"""

_HEAD = ("variable", "type", "declared", "column", "fits")
_ROWS_HEAD = ("variable", "missing", "not readable", "unknown level", "outside bounds", "fits")
NOT_PRIVATE: Final = "Counted from the rows without noise: for the curator only, do not pass on."


def _add(parser: Parser) -> None:
    """Add the options of both commands."""
    parser.epilog = _EXAMPLE
    commands = parser.add_subparsers(dest="step", metavar="draft|check", required=True)
    draft = commands.add_parser("draft", help="from data dictionaries, as JSON")
    draft.add_argument(
        "files", nargs="+", metavar="FILE", action=Source, help="data dictionaries that agree"
    )
    draft.add_argument("-o", "--out", metavar="FILE", help="the codebook to write, as JSON")
    draft.add_argument("--force", action="store_true", help="overwrite an existing file")
    check = commands.add_parser("check", help="names and types of a table against a codebook")
    check.add_argument("codebook", metavar="FILE", help="a codebook or a draft, as JSON")
    check.add_argument("data", help=ROWS, action=Source)
    check.add_argument(
        "--rows",
        action="store_true",
        help="read the rows and count what does not fit, without noise: for the curator only",
    )


def _run(options: argparse.Namespace) -> int:
    """Draft or check, print the table and return the exit status."""
    return _draft(options) if options.step == "draft" else _check(options)


def _draft(options: argparse.Namespace) -> int:
    from dpmodels.dictionaries.codebook_class import read
    from dpmodels.frames.sql_table import is_database, sql

    if options.out is not None:
        require_target(options.out, overwrite=options.force, never=options.files)
    sources = [sql(file) if is_database(file) else file for file in options.files]
    draft = reduce(or_, map(read, sources))
    tell(draft)
    if options.out is not None:
        draft.save(options.out, overwrite=options.force)
    return 0


def _check(options: argparse.Namespace) -> int:
    from dpmodels.dictionaries.codebook_class import read
    from dpmodels.frames import open_rows

    source, draft = open_rows(options.data), read(options.codebook)
    checks = {name: _check_variable(name, entry, source) for name, entry in draft.items()}
    if options.rows:
        return _check_rows(draft, {name: why for name, (_, why) in checks.items()}, source)
    tell(as_text([row for row, _ in checks.values()], _HEAD))
    problems = {name: why for name, (_, why) in checks.items() if why}
    for name, why in problems.items():
        tell(f"{name}: {why}")
    tell(f"{len(checks) - len(problems):,} of {len(checks):,} variables fit; no row was read")
    return 1 if problems else 0


def _check_rows(draft: Draft, problems: Mapping[str, str], source: RowSource) -> int:
    """Print how many cells do not fit, without noise; status 1 if any but missing ones do not."""
    from dpmodels.codebook import Codebook
    from dpmodels.design.misfits import count_misfits

    lost = {name: why for name, why in problems.items() if why}
    variables = {name: draft[name].variable(name) for name in problems if name not in lost}
    ids = [name for name in draft.id_columns if source.names.count(name) == 1]
    lost |= {name: "missing, or there twice" for name in draft.id_columns if name not in ids}
    if not (variables or ids):
        raise CodebookError("no variable of the codebook can be read in this table")
    result = count_misfits(source, Codebook({**variables, **draft.identifiers}), ids)
    lines = [
        (
            name,
            *(f"{count:,}" for count in (c.missing, c.not_readable, c.unknown_level, c.outside)),
            f"{result.n_rows - c.total:,} of {result.n_rows:,}",
        )
        for name, c in result.columns.items()
    ]
    tell(NOT_PRIVATE)
    tell(as_text(lines, _ROWS_HEAD))
    for name, why in lost.items():
        tell(f"{name}: {why}")
    tell(
        f"{result.n_fitting:,} of {result.n_rows:,} rows fit in every variable"
        f"{' that could be read' * bool(lost)}. Values outside bounds are clipped;\n"
        "rows with anything else that does not fit are left out where the variable is used."
    )
    tell(NOT_PRIVATE)
    return int(bool(lost) or any(c.total > c.missing for c in result.columns.values()))


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
