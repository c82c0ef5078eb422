"""The command that audits the package, or its exhibits."""

from __future__ import annotations

import argparse
from typing import Final

from dpmodels.shell.command import Command, Parser
from dpmodels.shell.outputs import add_outputs, require_outputs, tell, write_outputs

WHAT: Final = "Attack every mechanism and every verb, and bound from below the privacy that is lost"


def _add(parser: Parser) -> None:
    which = parser.add_mutually_exclusive_group()
    which.add_argument(
        "--all", action="store_true", help="as many releases as bounds need, minutes; else seconds"
    )
    which.add_argument(
        "--exhibits",
        action="store_true",
        help="recipes with known faults, which have to be flagged, each with its mended twin",
    )
    add_outputs(parser, "table")


def _run(words: argparse.Namespace) -> int:
    """Audit the package or the exhibits; status 1 if one is not as it should be."""
    from dpmodels.audit.run_all import run_all, run_exhibits

    require_outputs(words)
    made = run_exhibits() if words.exhibits else run_all(full=words.all)
    tell(made.summary())
    write_outputs(words, made.summary())
    return 0 if made.expected else 1


AUDIT: Final = Command(WHAT, _add, _run)
