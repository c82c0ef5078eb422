"""All commands, and the parser that knows them by name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import dpmodels as dp
from dpmodels.shell.audit import AUDIT
from dpmodels.shell.cite import CITE
from dpmodels.shell.codebook import CODEBOOK
from dpmodels.shell.command import Command, Parser
from dpmodels.shell.completion import SHELLS
from dpmodels.shell.evaluate import EVALUATE
from dpmodels.shell.functions import FUNCTIONS
from dpmodels.shell.ledger import LEDGER
from dpmodels.shell.plan import PLAN
from dpmodels.shell.run import RUN
from dpmodels.shell.sites import COMBINE, SITE, SITE_KEY
from dpmodels.shell.verbs import verbs

OTHERS: Final[Mapping[str, Command]] = {
    "run": RUN,
    "plan": PLAN,
    **FUNCTIONS,
    "codebook": CODEBOOK,
    "ledger": LEDGER,
    "audit": AUDIT,
    "evaluate": EVALUATE,
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
What a command takes: dpmodels lm --help. Exit status: 0; 1 where a check, plan or audit
says no; 2 where something was wrong, which is said on stderr, and nothing was spent unless
the message says so.
"""


def commands() -> Mapping[str, Command]:
    """Return all commands by name, the verbs first."""
    return {**verbs(), **OTHERS}


def parser() -> Parser:
    """Return the parser of the command line; each command adds its words when it is named."""
    whole = Parser(
        prog="dpmodels",
        usage="dpmodels COMMAND ...",
        description=_ABOUT,
        epilog=_EXAMPLE,
    )
    whole.add_argument("--version", action="version", version=f"dpmodels {dp.__version__}")
    whole.add_argument(
        "--print-completion", choices=SHELLS, help="a script that completes words in this shell"
    )
    own = whole.add_subparsers(
        dest="command", metavar="COMMAND", title="verbs, then other commands", prog="dpmodels"
    )
    for name, command in commands().items():
        own.add_parser(name, add=command.add, help=command.what, description=f"{command.what}.")
    return whole
