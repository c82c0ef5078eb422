"""The command that makes a whole study of one file."""

from __future__ import annotations

import argparse
from typing import Final

from dpmodels.shell.command import Command, Parser

EXAMPLE: Final = """\
example, study.toml:
  [study]
  title = "Wages"
  data = "people.csv"            # paths begin at this file's folder
  codebook = "cb.json"
  eps = 2.0                      # of all releases together; or rho
  delta = 1e-6
  out = "report"                 # a folder; its ledger is study.ledger, or ledger = "..."

  [[release]]
  name = "wages"
  verb = "mean"
  formula = "wage ~ sex"
  eps = 0.5                      # or share = "1/4" of what is left

  [[release]]                    # those that say no budget share what the others leave
  name = "model"
  verb = "lm"
  formula = "wage ~ age + sex"
  vcov = "HC"

  [[table]]                      # results side by side, with words of dp.etable
  name = "models"
  of = ["model"]

  [disclosure]                   # words of dp.disclosure
  purpose = "Annual report"

  dpmodels plan study.toml       # what it would cost; nothing is read or charged
  dpmodels run study.toml

More of [study]: author, adjacency, person, rows, subset, csv. Everything is checked before the
first charge. Run once more, it asks nothing that was released already.
"""


def _add(parser: Parser) -> None:
    parser.epilog = EXAMPLE
    parser.add_argument("study", metavar="FILE", help="of the study, as TOML")
    parser.add_argument(
        "--again",
        nargs="+",
        default=(),
        metavar="NAME",
        help="releases to be paid for once more, written over what came before",
    )


def _run(words: argparse.Namespace) -> int:
    from dpmodels.shell.studied import run_study

    return run_study(words.study, words.again)


RUN: Final = Command("Make a whole study of one file: tables, pictures, one ledger", _add, _run)
