"""What commands that read rows have in common: the table, the guarantee, who is protected."""

from __future__ import annotations

from argparse import SUPPRESS
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, get_args

import dpmodels as dp
from dpmodels.frames.delimited import CsvMode
from dpmodels.shell.docstrings import Said
from dpmodels.shell.words import add_word, dest, escaped, signature

if TYPE_CHECKING:
    import argparse

ROWS: Final = "path of a .parquet or .csv file"
FORMULA: Final = 'for example "~ a + log(b + 1)"; "~ ." takes all variables'
CODEBOOK: Final = "file of public bounds and levels; by default what a .parquet carries"
RHO: Final = "zCDP budget, instead of --eps and --delta"
# Of words that most functions share, in the order of the help.
SAID: Final = {
    "eps": "privacy loss, for example 1",
    "delta": "for example 1e-6; well below 1/n",
    "budget": RHO,
    "adjacency": "replace (default; n is public) or add-remove",
    "person": "column that says whose a row is: protects persons; by default the codebook's",
    "rows": "how many rows of a person count, or mean for all; without a person any so many",
    "subset": "a condition on the rows that count, such as 'age >= 25'",
    "csv": "what a row of a CSV file is: records (default; quoted cells may span lines) or lines",
    "ledger": "file of a ledger to charge, opened by the command ledger",
}


def add_rows(
    parser: argparse.ArgumentParser, function: Callable[..., Any], formula: str = FORMULA
) -> None:
    """Add a formula, a file, and what is said of it, as far as a function asks for it."""
    own = signature(function)
    parser.add_argument("formula", metavar="FORMULA", help=escaped(formula))
    parser.add_argument("data", metavar="FILE", help=ROWS)
    if "codebook" in own:
        parser.add_argument("--codebook", metavar="FILE", help=CODEBOOK)
    add_privacy(parser.add_argument_group("privacy"), function)


def add_privacy(group: Any, function: Callable[..., Any]) -> None:
    """Add who is protected and how well, in the words that a function has of these."""
    own = signature(function)
    for name, text in SAID.items():
        if name not in own:
            continue
        if name == "csv":  # --csv writes one
            modes = get_args(CsvMode)
            group.add_argument(
                "--input-csv", choices=modes, dest=dest(name), default=SUPPRESS, help=text
            )
        elif name == "budget":
            group.add_argument("--rho", type=float, help=text)
        elif name == "ledger":
            group.add_argument("--ledger", metavar="FILE", help=text)
        else:
            add_word(group, own[name], Said(text))


def asked(words: argparse.Namespace) -> dict[str, Any]:
    """Return what was said of the table and its guarantee besides the function's own words."""
    own: dict[str, Any] = {}
    if getattr(words, "codebook", None) is not None:
        own["codebook"] = words.codebook
    if getattr(words, "rho", None) is not None:
        own["budget"] = dp.ZCDP(words.rho)
    if getattr(words, "ledger", None) is not None:
        own["ledger"] = dp.Ledger.open(words.ledger)
    return own


def files_read(words: argparse.Namespace) -> list[str]:
    """Return the files that a command reads or charges."""
    named = (getattr(words, name, None) for name in ("data", "codebook", "ledger"))
    return [own for own in named if own is not None]
