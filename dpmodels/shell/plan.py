"""The command that prices a study before anything of it is charged."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any, Final

import dpmodels as dp
from dpmodels.shell.command import Command, Parser
from dpmodels.shell.outputs import add_outputs, require_outputs, tell, write_outputs
from dpmodels.shell.run import EXAMPLE

if TYPE_CHECKING:
    from dpmodels.shell.study import Study


def _add(parser: Parser) -> None:
    parser.epilog = EXAMPLE
    parser.add_argument("study", metavar="FILE", help="of the study, as TOML")
    guess = parser.add_argument_group("what it will tell, by a guess of the rows")
    guess.add_argument("--n", type=int, help="number of rows: errors are simulated, budget divided")
    guess.add_argument("--shape", default="normal", help="normal (default), skewed, ...")
    add_outputs(parser, "table")


def _run(words: argparse.Namespace) -> int:
    """Print prices and, of guessed rows, what releases will tell; status 1 if not all fit."""
    from dpmodels.shell.record import done
    from dpmodels.shell.studied import in_order, priced_of
    from dpmodels.shell.study import read_study

    require_outputs(words, words.study)
    study = read_study(words.study)
    session = study.tried()
    priced = priced_of(session, in_order(study, done(study, session, ())[1]))
    tell(priced.summary())
    told = priced if words.n is None else _foretold(study, session, words)
    if told is not priced:
        tell(told.summary())
    write_outputs(words, told.summary(), told)
    return 0 if priced.fits else 1


def _foretold(study: Study, session: dp.session, words: argparse.Namespace) -> Any:
    from dpmodels.sessions.shares import whole_of

    named = ("adjacency", "person", "rows", "subset")
    return dp.plan(
        {asked.name: asked.call for asked in study.releases},
        codebook=session.codebook,
        n=words.n,
        shape=words.shape,
        budget=whole_of(session.ledger),
        **{name: study.said[name] for name in named if name in study.said},
    )


PLAN: Final = Command("Price a study, and foretell its errors; nothing is spent", _add, _run)
