"""The command that opens, verifies and prints a ledger."""

from __future__ import annotations

import argparse
from typing import Any, Final

import dpmodels as dp
from dpmodels.shell.command import Command, Parser
from dpmodels.shell.outputs import add_outputs, require_outputs, tell, write_outputs
from dpmodels.shell.rows import add_privacy, asked
from dpmodels.shell.words import given
from dpmodels.writing import require_target

_EXAMPLE: Final = """\
example:
  dpmodels ledger study.ledger --eps 2 --delta 1e-6     # a new one
  dpmodels pca "~ a + b" data.csv --codebook cb.json --eps 1 --delta 1e-6 --ledger study.ledger
  dpmodels ledger study.ledger --html register.html     # what was charged
"""


def _add(parser: Parser) -> None:
    parser.epilog = _EXAMPLE
    parser.add_argument("file", metavar="FILE", help="of the ledger; made if it is not there")
    budget = parser.add_argument_group("what a new one holds; of another one it has to be the same")
    add_privacy(budget, dp.Ledger.open)
    budget.add_argument("--pure", type=float, help="eps kept for releases without delta")
    budget.add_argument("--rule", help="gaussian or zcdp; by default the first charge decides")
    parser.add_argument("--export", metavar="FILE", help="all lines with their hashes, as JSON")
    add_outputs(parser, "table")


def _run(words: argparse.Namespace) -> int:
    """Open a ledger, verify it and print its register."""
    require_outputs(words, words.file)
    if words.export is not None:
        require_target(words.export, overwrite=words.force, never=[words.file])
    said: dict[str, Any] = {"pure": words.pure, "rule": words.rule, **asked(words), **given(words)}
    ledger = dp.Ledger.open(words.file, **said, new=True)
    made = dp.ledger_report(ledger)
    tell(made)
    write_outputs(words, made)
    if words.export is not None:
        ledger.export(words.export, overwrite=words.force)
    return 0


LEDGER: Final = Command(
    "Open, verify and print the account of what one table's releases have cost", _add, _run
)
