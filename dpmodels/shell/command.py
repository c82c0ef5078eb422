"""A command: what it is for, its words, what it does; and a parser that learns them when asked."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from difflib import get_close_matches
from importlib.util import find_spec
from typing import Any, Final, NamedTuple, Self

from dpmodels.errors import NotAvailable


class Command(NamedTuple):
    """One word of the command line behind ``dpmodels``."""

    what: str  # In one line
    add: Callable[[Parser], None]
    run: Callable[[argparse.Namespace], int]  # To the exit status


class Parser(argparse.ArgumentParser):
    """A parser that takes no abbreviations, and whose words are added once they are needed."""

    def __init__(self, *, add: Callable[[Parser], None] | None = None, **words: Any) -> None:
        kind = argparse.RawDescriptionHelpFormatter
        super().__init__(**{"formatter_class": kind, **words}, allow_abbrev=False)
        self._add, self._command = add, add is not None

    def whole(self) -> Self:
        """Return the parser with all of its words."""
        add, self._add = self._add, None
        if add is not None:
            add(self)
        return self

    def parse_known_args(self, *given: Any, **words: Any) -> Any:
        """Parse with all of the words; of a command, none may be left over."""
        parsed, rest = super(Parser, self.whole()).parse_known_args(*given, **words)
        if rest and self._command:
            known = [flag for action in self._actions for flag in action.option_strings]
            near = [one for word in rest for one in get_close_matches(word, known, 1)]
            more = f"; nearest: {', '.join(near)}" if near else ""
            self.error(f"unrecognized arguments: {' '.join(rest)}{more}")
        return parsed, rest


# The completion of all commands and options for a shell, by shtab.

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
