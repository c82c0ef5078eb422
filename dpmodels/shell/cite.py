"""The command that says how the package is cited."""

from __future__ import annotations

import argparse
import inspect
from typing import Final

import dpmodels as dp
from dpmodels.shell.command import Command, Parser
from dpmodels.shell.docstrings import described
from dpmodels.shell.outputs import tell
from dpmodels.shell.words import add_words, given, signature


def _add(parser: Parser) -> None:
    parser.epilog = "example:\n  dpmodels cite --format bibtex"
    texts = described(inspect.getdoc(dp.citation) or "")
    add_words(parser, signature(dp.citation).values(), texts)


def _run(words: argparse.Namespace) -> int:
    tell(dp.citation(**given(words)))
    return 0


CITE: Final = Command("Say how this version is cited", _add, _run)
