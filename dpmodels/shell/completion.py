"""The completion of all commands and options for a shell, by shtab."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Final

from dpmodels.errors import NotAvailable
from dpmodels.shell.command import Parser

SHELLS: Final = ("bash", "zsh", "tcsh")


def completion(parser: Parser, shell: str) -> str:
    """Return a script to be sourced; of every command the words are made for it."""
    if find_spec("shtab") is None:
        raise NotAvailable("--print-completion needs shtab: pip install dpmodels[shell]")
    import shtab

    for one in _all_of(parser):
        for action in one._actions:
            if action.metavar == "FILE":
                action.complete = shtab.FILE  # type: ignore[attr-defined]
    script: str = shtab.complete(parser, shell=shell)
    return script


def _all_of(parser: Parser) -> list[Parser]:
    """Return a parser and those of its commands, with all of their words."""
    own = parser.whole()
    under = [one for action in own._actions for one in _commands(action.choices)]
    return [own, *(part for one in under for part in _all_of(one))]


def _commands(choices: object) -> list[Parser]:
    return list(choices.values()) if isinstance(choices, dict) else []
