"""The verbs as commands: every name ``dp_*`` of the package, by its signature and its docstring."""

from __future__ import annotations

import argparse
import ast
import inspect
from functools import cache, partial
from importlib.resources import files
from typing import Any, Final

import dpmodels as dp
from dpmodels.errors import BudgetError, CodebookError
from dpmodels.shell.command import Command, Parser
from dpmodels.shell.devices import DEVICE, EXAMPLE, add_devices
from dpmodels.shell.docstrings import described, example, first_sentence
from dpmodels.shell.outputs import DATA, FOUND, TABLES, add_outputs, require_outputs, show
from dpmodels.shell.rows import SAID, add_rows, asked, files_read
from dpmodels.shell.words import add_words, evaluated_signature, given, signature

_PREFIX: Final = "dp_"
_ROWS: Final = ("formula", "data", "answers", "codebook")
# Rows at several sites have commands of their own.
APART: Final = ("sites", "protocol")
_CODEBOOK: Final = """\
A codebook holds public facts, never taken from the data:
  {"age": {"range": [0, 120]}, "sex": {"levels": ["F", "M"]}}"""

_HERE: Final = """
In the shell: --codebook cb.json, a file that dpmodels codebook draft makes of a data dictionary."""


@cache
def verbs() -> dict[str, Command]:
    """Return the commands of all verbs; none of them is imported for it."""
    stub = ast.parse(files("dpmodels").joinpath("__init__.pyi").read_text("utf-8"))
    lines = (node for node in stub.body if isinstance(node, ast.ImportFrom) and node.module)
    homes = {alias.name: str(node.module) for node in lines for alias in node.names}
    return {
        name.removeprefix(_PREFIX): Command(_what(name, home), partial(_add, name), _run)
        for name, home in homes.items()
        if name.startswith(_PREFIX)
    }


def _what(name: str, home: str) -> str:
    """Return the first line of a verb's docstring, read in its file."""
    file = files("dpmodels").joinpath(f"{home.strip('.').replace('.', '/')}.py")
    tree = ast.parse(file.read_text("utf-8"))
    (verb,) = (own for own in tree.body if isinstance(own, ast.FunctionDef) and own.name == name)
    return first_sentence((ast.get_docstring(verb) or "").partition("\n")[0])


def _add(name: str, parser: Parser) -> None:
    """Add the words of a verb, and tell in the help which are left to Python."""
    verb: Any = getattr(dp, name)
    doc, own = inspect.getdoc(verb) or "", signature(verb)
    parser.usage = f"{parser.prog} FORMULA FILE [options]"
    told = described(doc)
    add_rows(parser, verb, told["formula"].text)
    model = parser.add_argument_group("model")
    more = [word for key, word in own.items() if key not in (*_ROWS, *SAID, *APART)]
    devices = [word for word in more if word.name == DEVICE]
    left = add_words(model, [word for word in more if word.name != DEVICE], told)
    if devices:
        add_devices(model)
    finds = hasattr(evaluated_signature(verb).return_annotation, "codebook")
    add_outputs(parser, "report", (*TABLES, *DATA, *(FOUND if finds else ())))
    shown = example(doc, name, own) + f" --{DEVICE} {EXAMPLE}" * bool(devices)
    lines = ["example:", f"  {parser.prog} {shown}"] if shown else []
    left += tuple(word for word in APART if word in own)
    lines += [f"From Python alone: {', '.join(left)}."] if left else []
    parser.epilog = "\n".join([*lines, _CODEBOOK, f"At length: python -m pydoc dpmodels.{name}"])


def _run(words: argparse.Namespace) -> int:
    """Ask a verb and show what came; what is not given is left to the verb."""
    verb: Any = getattr(dp, _PREFIX + words.command)
    require_outputs(words, *files_read(words))
    own = signature(verb)
    if "eps" in own and "eps" not in given(words) and getattr(words, "rho", None) is None:
        raise BudgetError(
            "no budget: write --eps 1 (0.1 is strict, 10 is loose), --eps 1 --delta 1e-6 with a "
            "delta well below 1 over the number of rows, or --rho 0.1"
        )
    try:
        fit = verb(words.formula, words.data, **asked(words), **given(words))
    except CodebookError as error:
        error.args = (f"{error}{_HERE * (words.codebook is None)}",)
        raise
    return show(fit, words)
