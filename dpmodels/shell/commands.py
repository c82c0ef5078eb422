"""All commands by name, with those of citations, ledgers and audits."""

from __future__ import annotations

import argparse
import inspect
from collections.abc import Mapping
from typing import Final

import dpmodels as dp
from dpmodels.atomic_files import require_target
from dpmodels.parameter_texts import parameter_docs, signature
from dpmodels.shell.codebook import CODEBOOK
from dpmodels.shell.command_options import (
    SHELLS,
    Command,
    Parser,
    add_options,
    add_privacy,
    function_arguments,
    table_arguments,
)
from dpmodels.shell.evaluate import EVALUATE
from dpmodels.shell.functions import FUNCTIONS
from dpmodels.shell.outputs import add_outputs, require_outputs, tell, write_outputs
from dpmodels.shell.plan import PLAN, RUN
from dpmodels.shell.serve import SERVE
from dpmodels.shell.sites import COMBINE, SITE, SITE_KEY
from dpmodels.shell.verbs import verbs
from dpmodels.typing import Option

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
    """Audit the package or the exhibits; status 1 if a result is not as expected."""
    from dpmodels.audit.run_all import run_all, run_exhibits

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
    """Open a ledger, verify it and print its register."""
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
    "Open, verify and print the ledger of one table's releases",
    _ledger_add,
    _ledger_run,
)


# The command that prints the citation.


def _add(parser: Parser) -> None:
    parser.epilog = "example:\n  dpmodels cite --format bibtex"
    texts = parameter_docs(inspect.getdoc(dp.citation) or "")
    add_options(parser, signature(dp.citation).values(), texts)


def _run(options: argparse.Namespace) -> int:
    tell(dp.citation(**function_arguments(options)))
    return 0


CITE: Final = Command("Print how to cite this version", _add, _run)


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
        prog="dpmodels",
        usage="dpmodels COMMAND ...",
        description=_ABOUT,
        epilog=_EXAMPLE,
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
