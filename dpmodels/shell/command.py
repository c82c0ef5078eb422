"""A command with its summary, options and action, and a parser that adds options on demand."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any, Final, NamedTuple, Self

from dpmodels.errors import NotAvailable, did_you_mean


class Command(NamedTuple):
    """One command of ``dpmodels``."""

    what: str  # In one line
    add: Callable[[Parser], None]
    run: Callable[[argparse.Namespace], int]  # To the exit status


class Parser(argparse.ArgumentParser):
    """A parser without abbreviations, whose options are added when they are needed."""

    def __init__(self, *, add: Callable[[Parser], None] | None = None, **kwargs: Any) -> None:
        kind = argparse.RawDescriptionHelpFormatter
        super().__init__(**{"formatter_class": kind, **kwargs}, allow_abbrev=False)
        self._add, self._command = add, add is not None

    def populate(self) -> Self:
        """Return the parser with all of its options."""
        add, self._add = self._add, None
        if add is not None:
            add(self)
        return self

    def parse_known_args(self, *args: Any, **kwargs: Any) -> Any:
        """Parse with all options; a command refuses unknown ones."""
        parsed, rest = super(Parser, self.populate()).parse_known_args(*args, **kwargs)
        if rest and self._command:
            flags = [flag for action in self._actions for flag in action.option_strings]
            suggested = [f"{word}{did_you_mean(word, flags)}" for word in rest]
            self.error(f"unrecognized arguments: {' '.join(suggested)}")
        return parsed, rest

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        """Refuse a value that is not among the choices; suggest the nearest one."""
        if action.choices is not None and value not in action.choices:
            choices = [str(choice) for choice in action.choices]
            self.error(
                f"{action.metavar or action.option_strings[0]}: {value!r} is not known"
                f"{did_you_mean(value, choices)}; expected {', '.join(choices)}"
            )


# The completion of all commands and options for a shell, by shtab.

SHELLS: Final = ("bash", "zsh", "tcsh")


def completion(parser: Parser, shell: str) -> str:
    """Return a completion script; it adds the options of every command."""
    if find_spec("shtab") is None:
        raise NotAvailable("--print-completion needs shtab: pip install dpmodels[shell]")
    import shtab

    for command in _all_of(parser):
        for action in command._actions:
            if action.metavar == "FILE":
                action.complete = shtab.FILE  # type: ignore[attr-defined]
    script: str = shtab.complete(parser, shell=shell)
    return script


def _all_of(parser: Parser) -> list[Parser]:
    """Return a parser and those of its commands, with all options."""
    populated = parser.populate()
    subparsers = [
        subparser for action in populated._actions for subparser in _commands(action.choices)
    ]
    return [populated, *(part for subparser in subparsers for part in _all_of(subparser))]


def _commands(choices: object) -> list[Parser]:
    return list(choices.values()) if isinstance(choices, dict) else []
