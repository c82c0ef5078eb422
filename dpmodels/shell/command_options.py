"""Command-line options from the parameters of functions and their annotations.

A parameter has an option if its annotation has a text form: numbers, texts, truth values, None,
values of a `Literal`, and lists of these, separated by commas. The help names the others.
"""

from __future__ import annotations

import argparse
import ast
import inspect
import re
import shlex
from argparse import SUPPRESS
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from doctest import DocTestParser
from importlib.util import find_spec
from itertools import takewhile
from typing import Any, Final, NamedTuple, Self, get_args

import dpmodels as dp
from dpmodels.errors import ArgumentError, BudgetError, CodebookError, NotAvailable, did_you_mean
from dpmodels.frames.delimited import CsvMode
from dpmodels.frames.sql_table import without_password
from dpmodels.typing import Option
from dpmodels.verbs import ParameterDoc, members, read, signature, written_form

# What is expected, by the form of an option's value.
_VALUES: Final = {
    **dict.fromkeys(("NUMBER", "float"), "a number, such as 0.5"),
    **dict.fromkeys(("INT", "int"), "a whole number, such as 5"),
    "NUMBER,...": "numbers, such as 0.25,0.5",
}


class Command(NamedTuple):
    """One command of ``dpmodels``."""

    what: str  # In one line
    add: Callable[[Parser], None]
    run: Callable[[argparse.Namespace], int]  # To the exit status


class Parser(argparse.ArgumentParser):
    """A parser without abbreviations, whose options are added when they are needed."""

    def __init__(self, *, add: Callable[[Parser], None] | None = None, **kwargs: Option) -> None:
        kind = argparse.RawDescriptionHelpFormatter
        super().__init__(**{"formatter_class": kind, **kwargs}, allow_abbrev=False)
        self._add = add

    def populate(self) -> Self:
        """Return the parser with all of its options."""
        add, self._add = self._add, None
        if add is not None:
            add(self)
        return self

    def parse_known_args(self, *args: Any, **kwargs: object) -> Any:
        """Parse with all options, and refuse unknown ones before missing arguments."""
        flags = [flag for action in self.populate()._actions for flag in action.option_strings]
        words = takewhile("--".__ne__, () if self._subparsers else args[0])
        rest = [word for word in words if word[:2] == "--" and word.partition("=")[0] not in flags]
        if not rest:
            parsed, rest = super().parse_known_args(*args, **kwargs)
        if rest:
            suggested = [f"{word}{did_you_mean(word, flags)}" for word in rest]
            self.error(f"unrecognized arguments: {' '.join(suggested)}")
        return parsed, rest

    def _get_value(self, action: argparse.Action, arg_string: str) -> Any:
        try:
            return super()._get_value(action, arg_string)
        except argparse.ArgumentError:
            form = getattr(action.type, "__name__", "")
            problem = f"{(*action.option_strings, action.dest)[0]}: {arg_string!r} is not valid"
            self.error(f"{problem}; expected {_VALUES.get(form, form)}")

    def _check_value(self, action: argparse.Action, value: object) -> None:
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
    return str(shtab.complete(parser, shell=shell))


def _all_of(parser: Parser) -> list[Parser]:
    populated = parser.populate()
    commands = [action.choices for action in populated._actions]
    subparsers = [each for named in commands if isinstance(named, dict) for each in named.values()]
    return [populated, *(part for subparser in subparsers for part in _all_of(subparser))]


# Separates the parameters of a function from other options of a command.
_DEST_PREFIX: Final = "word:"


def dest(name: str) -> str:
    """Return the key of a function's parameter among parsed options."""
    return _DEST_PREFIX + name


def add_option(group: Any, parameter: inspect.Parameter, doc: ParameterDoc) -> bool:
    """Add the option of a parameter; return whether it has one. It has no default value here."""
    allowed = members(parameter.annotation)
    form = "|".join(doc.choices) or written_form(allowed)
    flag, default = parameter.name.replace("_", "-"), parameter.default
    settings: dict[str, object] = {"dest": dest(parameter.name), "default": argparse.SUPPRESS}
    switched = bool in allowed or False in allowed
    if written_form(allowed):
        none = None in allowed and default is not None
        # The flag without a value means True.
        optional_value = {"nargs": "?", "const": True} if switched and default is False else {}
        group.add_argument(
            f"--{flag}",
            type=_reader(allowed, none=none),
            metavar=form + "|none" * (none and "none" not in form),
            required=default is inspect.Parameter.empty,
            help=escaped(_with_default(doc.text, default)),
            **settings,
            **optional_value,
        )
    elif switched and default is False:
        group.add_argument(f"--{flag}", action="store_true", help=escaped(doc.text), **settings)
    if switched and default is not False:
        text = "turn off: " + doc.text.removeprefix("whether ")
        text = f"no {parameter.name.replace('_', ' ')}" if written_form(allowed) else text
        group.add_argument(f"--no-{flag}", action="store_false", help=escaped(text), **settings)
    return switched or bool(written_form(allowed))


def add_options(
    group: object, parameters: Iterable[inspect.Parameter], docs: Mapping[str, ParameterDoc]
) -> tuple[str, ...]:
    """Add the options of parameters; return the names of those without one."""
    return tuple(
        parameter.name
        for parameter in parameters
        if not add_option(group, parameter, docs.get(parameter.name, ParameterDoc()))
    )


def function_arguments(options: argparse.Namespace) -> dict[str, Option]:
    """Return the arguments of the function that were given."""
    return {
        name.removeprefix(_DEST_PREFIX): value
        for name, value in vars(options).items()
        if name.startswith(_DEST_PREFIX)
    }


def _reader(allowed: Sequence[object], *, none: bool) -> Callable[[str], object]:
    def value(text: str) -> object:
        return read(allowed, text, none=none)

    value.__name__ = written_form(allowed)  # For argparse's "invalid INT value"
    return value


def _with_default(text: str, default: object) -> str:
    is_unstated = default in (None, inspect.Parameter.empty, "", ()) or isinstance(default, bool)
    if is_unstated or "default" in text:
        return text
    return f"{text} (default: {_listed(default)})".strip()


def _listed(value: object) -> str:
    values = value if isinstance(value, list | tuple) else (value,)
    return ",".join(f"{x:g}" if isinstance(x, float) else str(x) for x in values)


def escaped(text: str) -> str:
    """Return a text as argparse prints it whole."""
    return text.replace("%", "%%")


# Help from a docstring in numpydoc's style: a line for each parameter, and an example.

_PLAIN = re.compile(r'[^"$`!\\]*')


def example(doc: str, name: str, parameters: Container[str]) -> str:
    """Return the example call of a docstring as shell arguments, empty without an example.

    >>> example('>>> dp.f("~ a", rows, codebook=cb, k=2, q=x)', "f", ("k", "q"))
    '"~ a" people.csv --codebook cb.json --k 2'
    """
    for line in DocTestParser().get_examples(doc):
        for node in ast.walk(ast.parse(line.source)):
            if isinstance(node, ast.Call) and ast.unparse(node.func).rpartition(".")[2] == name:
                return _shell_text(node, parameters)
    return ""


def _shell_text(call: ast.Call, parameters: Container[str]) -> str:
    formula = [arg.value for arg in call.args[:1] if isinstance(arg, ast.Constant)]
    shell_args = [_quoted(str(value)) for value in formula] + ["people.csv"] * (len(call.args) > 1)
    for word in call.keywords:
        if word.arg == "codebook":
            shell_args += ["--codebook", "cb.json"]
        elif word.arg in parameters:
            try:
                shell_args += _option(str(word.arg), ast.literal_eval(word.value))
            except ValueError:
                continue
    return " ".join(shell_args)


def _option(name: str, value: object) -> list[str]:
    flag = name.replace("_", "-")
    if isinstance(value, bool):
        return [f"--{flag}" if value else f"--no-{flag}"]
    return [f"--{flag}", _quoted(_listed(value))]


def _quoted(text: str) -> str:
    if shlex.quote(text) == text:
        return text
    return f'"{text}"' if _PLAIN.fullmatch(text) else shlex.quote(text)


# Shared options of commands that read rows: table, guarantee, unit of protection.

ROWS: Final = (
    "path of a .parquet, .arrow, .csv or .csv.gz file, or the URL of a table, such as "
    "postgresql://user@host/db?table=visits"
)
FORMULA: Final = 'for example "~ a + log(b + 1)"; "~ ." takes all variables'
CODEBOOK: Final = "file of public bounds and levels; by default the one in a .parquet file"
RHO: Final = "zCDP budget, instead of --eps and --delta"
# Shared options, in the order of the help.
SHARED_HELP: Final = {
    "eps": "privacy loss, for example 1",
    "delta": "for example 1e-6; well below 1/n",
    "budget": RHO,
    "adjacency": "replace (default; n is public) or add-remove",
    "person": "column of person ids: protects persons; by default the codebook's",
    "rows": "rows of a person that count, or mean for all; without a person: of any group",
    "subset": "a condition on the rows that count, such as 'age >= 25'",
    "csv": "what a row of a CSV file is: records (default; quoted cells may span lines) or lines",
    "ledger": "file of a ledger to charge, created by the command ledger",
}


def add_rows(
    parser: argparse.ArgumentParser, function: Callable[..., object], formula: str = FORMULA
) -> None:
    """Add the formula, the data file and the shared options that a function has."""
    parameters = signature(function)
    parser.add_argument("formula", metavar="FORMULA", help=escaped(formula))
    parser.add_argument("data", metavar="FILE", help=ROWS, action=Source)
    if "codebook" in parameters:
        parser.add_argument("--codebook", metavar="FILE", help=CODEBOOK)
    add_privacy(parser.add_argument_group("privacy"), function)


class Source(argparse.Action):
    """Paths or URLs of data, without a password, which the list of processes shows."""

    def __call__(
        self, parser: Any, namespace: argparse.Namespace, values: object, option: object = None
    ) -> None:
        """Keep the texts, or stop with a message that does not quote them."""
        try:
            for text in values if isinstance(values, list) else [values]:
                without_password(str(text))
        except ArgumentError as error:
            parser.error(str(error))
        setattr(namespace, self.dest, values)


def add_privacy(group: argparse._ActionsContainer, function: Callable[..., object]) -> None:
    """Add the privacy options that a function has."""
    parameters = signature(function)
    for name, text in SHARED_HELP.items():
        if name not in parameters:
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
            add_option(group, parameters[name], ParameterDoc(text))


def require_budget(options: argparse.Namespace) -> None:
    """Refuse a command that charges something without a budget."""
    if "eps" not in function_arguments(options) and getattr(options, "rho", None) is None:
        raise BudgetError(
            "no budget: write --eps 1 (0.1 is strict, 10 is loose), --eps 1 --delta 1e-6 with a "
            "delta well below 1 over the number of rows, or --rho 0.1"
        )


def table_arguments(options: argparse.Namespace) -> dict[str, Option]:
    """Return the arguments for the codebook, the budget and the ledger."""
    arguments: dict[str, object] = {}
    if getattr(options, "codebook", None) is not None:
        arguments["codebook"] = options.codebook
    if getattr(options, "rho", None) is not None:
        if {"eps", "delta"} & {*function_arguments(options)}:
            raise BudgetError("--rho is a whole budget: leave out --eps and --delta, or --rho")
        arguments["budget"] = dp.ZCDP(options.rho)
    if getattr(options, "ledger", None) is not None:
        arguments["ledger"] = dp.Ledger.open(options.ledger)
    return arguments


@contextmanager
def codebook_advice(text: str) -> Iterator[None]:
    """Say by this text how to give the codebook that a call lacks."""
    try:
        yield
    except CodebookError as error:
        if str(error).startswith("no codebook:"):
            error.args = (str(error).splitlines()[0] + text,)
        raise


def files_read(options: argparse.Namespace) -> list[str]:
    """Return the files that a command reads or charges."""
    paths = (getattr(options, name, None) for name in ("data", "codebook", "ledger"))
    return [path for path in paths if path is not None]
