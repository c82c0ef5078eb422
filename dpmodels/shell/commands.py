"""All commands by name, with those of codebooks, citations, ledgers and audits."""

from __future__ import annotations

import argparse
import inspect
from collections.abc import Mapping
from functools import reduce
from importlib.util import find_spec
from operator import or_
from pathlib import Path
from typing import TYPE_CHECKING, Final

import dpmodels as dp
from dpmodels.atomic_files import require_target
from dpmodels.codebook import as_text
from dpmodels.errors import ArgumentError, CodebookError, FrameError, NotAvailable, did_you_mean
from dpmodels.shell.command_options import (
    ROWS,
    SHELLS,
    Command,
    Parser,
    Source,
    add_options,
    add_privacy,
    function_arguments,
    table_arguments,
)
from dpmodels.shell.outputs import add_outputs, require_outputs, tell, write_outputs
from dpmodels.shell.plan import EVALUATE, PLAN, RUN
from dpmodels.shell.sites import COMBINE, SITE, SITE_KEY
from dpmodels.shell.verbs import FUNCTIONS, verbs
from dpmodels.typing import Option
from dpmodels.verbs import parameter_docs, signature

if TYPE_CHECKING:
    from dpmodels.design.misfits import Misfits
    from dpmodels.dictionaries.draft import Draft
    from dpmodels.dictionaries.entry import Entry
    from dpmodels.frames.protocol import RowSource
    from dpmodels.gateway.settings import Gate


# The command that runs a gateway, issues and revokes its tokens, and verifies its records.

_DEMO_FOLDER: Final = "gate-demo"
_DEMO_DAYS: Final = 1.0
SERVE_EXAMPLE: Final = """\
example, gate.toml:
  [gate]
  folder = "gate"                # ledgers, answers, tokens and the audit log
  certificate = "gate.pem"       # or a reverse proxy before 127.0.0.1
  key = "gate.key"

  [tables.visits]
  data = "visits.parquet"        # or database = "postgresql://...", table = "visits"
  codebook = "visits.json"
  eps = 3.0                      # of all analysts together; or rho
  delta = 1e-6
  purses = { ann = 1.0, project = 2.0 }

  [analysts]
  ann = {}
  bob = { purse = "project" }
  eve = { curator = true }

  dpmodels serve gate.toml --issue ann --days 90   # prints a token, once
  dpmodels serve gate.toml
  dpmodels serve gate.toml --verify                # ledgers, answers and the audit log

Without settings: dpmodels serve --demo, on a public table.
"""


def _serve_add(parser: Parser) -> None:
    parser.epilog = SERVE_EXAMPLE
    parser.add_argument("settings", nargs="?", metavar="FILE", help="the settings, as TOML")
    parser.add_argument(
        "--demo", action="store_true", help=f"a public table, in the folder {_DEMO_FOLDER}"
    )
    parser.add_argument("--issue", metavar="NAME", help="print a new token of an analyst, and end")
    parser.add_argument("--days", type=float, default=90.0, help="for which a new token is valid")
    parser.add_argument("--revoke", metavar="NAME", help="revoke an analyst's tokens, and end")
    parser.add_argument(
        "--verify",
        nargs="?",
        const="",
        metavar="LINE",
        help="verify ledgers, answers and the audit log, with the last line of an earlier "
        "verification if given, and end",
    )
    parser.add_argument("--port", type=int, help="instead of the one in the settings")


def _serve_run(options: argparse.Namespace) -> int:
    """Issue or revoke tokens, verify records, or serve until interrupted."""
    from dpmodels.gateway.schedule import verified
    from dpmodels.gateway.settings import demo_gate, read_gate
    from dpmodels.gateway.state import State

    if options.demo == (options.settings is not None):
        raise ArgumentError("expected the settings' file, or --demo: dpmodels serve gate.toml")
    gate = demo_gate(Path(_DEMO_FOLDER)) if options.demo else read_gate(Path(options.settings))
    for name in filter(None, (options.issue, options.revoke)):
        if name not in gate.analysts:
            raise ArgumentError(f"{name!r} is not an analyst{did_you_mean(name, gate.analysts)}")
    if options.issue:
        tell(State(gate.folder).issue_token(options.issue, options.days))
        return 0
    if options.revoke:
        tell(f"tokens revoked: {State(gate.folder).revoke_tokens(options.revoke)}")
        return 0
    if options.verify is not None:
        tell(verified(gate, options.verify))
        return 0
    return _serve(gate, options.port or gate.server.port, demo=options.demo)


def _serve(gate: Gate, port: int, *, demo: bool) -> int:
    if not all(map(find_spec, ("starlette", "uvicorn", "jinja2"))):
        raise NotAvailable(
            "dpmodels serve needs starlette, uvicorn and jinja2: pip install dpmodels[gate]"
        )
    import uvicorn

    from dpmodels.gateway.server import application
    from dpmodels.gateway.service import Service

    service = Service(gate)
    scheme = "http" if gate.server.certificate is None else "https"
    address = f"{scheme}://{gate.server.host}:{port}"
    tell(f"{address} serves {', '.join(gate.tables)}; interrupt to stop")
    if demo:
        token = service.state.issue_token("ann", _DEMO_DAYS)
        tell(
            f"\nOpen {address} in a browser, with the token {token}\n"
            "\nOr ask from another terminal, as ann:\n"
            f"""  python -c 'import dpmodels as dp; visits = dp.connect("{address}", """
            f"""token="{token}").table("visits"); """
            """print(visits.mean("mdvis ~ idp", eps=0.2).summary())'"""
        )
    try:
        # Neither requests nor errors are logged: the audit log has what is public.
        uvicorn.run(
            application(service),
            host=gate.server.host,
            port=port,
            ssl_certfile=gate.server.certificate,
            ssl_keyfile=gate.server.key,
            log_config=None,
            log_level="critical",
            access_log=False,
            http="h11",  # Limits the size of headers
            ws="none",
            server_header=False,
        )
    finally:
        service.stop()
    return 0


SERVE: Final = Command("Serve tables to analysts who may not see the rows", _serve_add, _serve_run)


# The codebook command: draft a codebook, or check it against a table's names, types and rows.

_CODEBOOK_EXAMPLE: Final = """\
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


def _codebook_add(parser: Parser) -> None:
    parser.epilog = _CODEBOOK_EXAMPLE
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
    lines = [_rows_line(name, c, result.n_rows) for name, c in result.columns.items()]
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


def _rows_line(name: str, misfits: Misfits, n_rows: int) -> tuple[str, ...]:
    counts = (misfits.missing, misfits.not_readable, misfits.unknown_level, misfits.outside)
    fitting = f"{n_rows - misfits.total:,} of {n_rows:,}"
    return (name, *(f"{count:,}" for count in counts), fitting)


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
    "Draft a codebook from data dictionaries, or check one against a table",
    _codebook_add,
    lambda options: _draft(options) if options.step == "draft" else _check(options),
)


# The command that audits the package, or its exhibits.

WHAT: Final = "Attack every mechanism and every verb, and compute lower bounds on the privacy loss"


def _audit_add(parser: Parser) -> None:
    mode = parser.add_mutually_exclusive_group()
    mode.add_argument(
        "--all", action="store_true", help="as many releases as bounds need: minutes, not seconds"
    )
    mode.add_argument(
        "--exhibits",
        action="store_true",
        help="audit mechanisms with known faults, each with its corrected version",
    )
    add_outputs(parser, "table")


def _audit_run(options: argparse.Namespace) -> int:
    from dpmodels.audit.registry import run_all, run_exhibits

    require_outputs(options)
    audit = run_exhibits() if options.exhibits else run_all(full=options.all)
    tell(audit.summary())
    write_outputs(options, audit.summary())
    return 0 if audit.expected else 1


AUDIT: Final = Command(WHAT, _audit_add, _audit_run)


# The command that opens, verifies and prints a ledger.

_LEDGER_EXAMPLE: Final = """\
example:
  dpmodels ledger study.ledger --eps 2 --delta 1e-6     # a new one
  dpmodels pca "~ a + b" data.csv --codebook cb.json --eps 1 --delta 1e-6 --ledger study.ledger
  dpmodels ledger study.ledger --html register.html     # what was charged
"""


def _ledger_add(parser: Parser) -> None:
    parser.epilog = _LEDGER_EXAMPLE
    parser.add_argument("file", metavar="FILE", help="the ledger; created if it does not exist")
    budget = parser.add_argument_group(
        "settings of a new ledger; an existing one must have the same"
    )
    add_privacy(budget, dp.Ledger.open)
    budget.add_argument("--pure", type=float, help="eps reserved for releases without delta")
    budget.add_argument("--rule", help="gaussian or zcdp; by default the first charge decides")
    parser.add_argument("--export", metavar="FILE", help="all lines with their hashes, as JSON")
    add_outputs(parser, "table")


def _ledger_run(options: argparse.Namespace) -> int:
    require_outputs(options, options.file)
    if options.export is not None:
        require_target(options.export, overwrite=options.force, never=[options.file])
    kwargs: dict[str, Option] = {
        "pure": options.pure,
        "rule": options.rule,
        **table_arguments(options),
        **function_arguments(options),
    }
    ledger = dp.Ledger.open(options.file, **kwargs, new=True)
    report = dp.ledger_report(ledger)
    tell(report)
    write_outputs(options, report)
    if options.export is not None:
        ledger.export(options.export, overwrite=options.force)
    return 0


LEDGER: Final = Command(
    "Open, verify and print the ledger of one table's releases", _ledger_add, _ledger_run
)


# The command that prints the citation.


def _cite_add(parser: Parser) -> None:
    parser.epilog = "example:\n  dpmodels cite --format bibtex"
    texts = parameter_docs(inspect.getdoc(dp.citation) or "")
    add_options(parser, signature(dp.citation).values(), texts)


def _cite_run(options: argparse.Namespace) -> int:
    tell(dp.citation(**function_arguments(options)))
    return 0


CITE: Final = Command("Print how to cite this version", _cite_add, _cite_run)


OTHERS: Final[Mapping[str, Command]] = {
    "run": RUN,
    "plan": PLAN,
    **FUNCTIONS,
    "codebook": CODEBOOK,
    "ledger": LEDGER,
    "audit": AUDIT,
    "evaluate": EVALUATE,
    "serve": SERVE,
    "site-key": SITE_KEY,
    "site": SITE,
    "combine": COMBINE,
    "cite": CITE,
}
_ABOUT: Final = """\
R's way of working for differential privacy: a formula, one verb, a printed table.

Without a command: a private principal components analysis of the RAND Health
Insurance Experiment (20,190 person-years, 10 variables) that protects persons,
at eps = 1 and delta = 1e-6. `python -m dpmodels` is the same as `dpmodels`.
"""
_EXAMPLE: Final = """\
example:
  dpmodels lm "wage ~ age + sex" people.csv --codebook codebook.json \\
      --eps 1 --delta 1e-6 --html report.html

The codebook is a JSON file of public facts, never taken from the data:
  {"age": {"range": [0, 120]}, "wage": {"range": [0, 250000], "unit": "dollars"},
   "sex": {"levels": ["F", "M"]}}
Options of a command: dpmodels lm --help. Exit status: 0; 1 if a check, plan or audit
fails; 2 after an error, which is printed on stderr: nothing was spent unless
the message says so.
"""


def commands() -> Mapping[str, Command]:
    """Return all commands by name, the verbs first."""
    return {**verbs(), **OTHERS}


def parser() -> Parser:
    """Return the parser of the command line; each command adds its options when it is used."""
    root = Parser(
        prog="dpmodels", usage="dpmodels COMMAND ...", description=_ABOUT, epilog=_EXAMPLE
    )
    root.add_argument("--version", action="version", version=f"dpmodels {dp.__version__}")
    root.add_argument(
        "--print-completion", choices=SHELLS, help="a script that completes words in this shell"
    )
    subparsers = root.add_subparsers(
        dest="command", metavar="COMMAND", title="verbs, then other commands", prog="dpmodels"
    )
    for name, command in commands().items():
        subparsers.add_parser(
            name, add=command.add, help=command.what, description=f"{command.what}."
        )
    return root
