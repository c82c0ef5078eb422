"""Commands of the verbs ``dp_*``, from their signatures and docstrings."""

from __future__ import annotations

import argparse
import ast
import inspect
from collections.abc import Callable
from functools import cache, partial
from importlib.resources import files
from typing import Any, Final

from dpmodels.errors import ArgumentError, BudgetError, CodebookError
from dpmodels.parameter_texts import (
    evaluated_signature,
    first_sentence,
    parameter_docs,
    read,
    signature,
)
from dpmodels.shell.command_options import (
    SHARED_HELP,
    Command,
    Parser,
    add_options,
    add_rows,
    dest,
    example,
    files_read,
    function_arguments,
    table_arguments,
)
from dpmodels.shell.outputs import DATA, FOUND, TABLES, add_outputs, require_outputs, show
from dpmodels.verbs import VERBS, exported, verb_names

_ROWS: Final = ("formula", "data", "answers", "codebook")
# Rows at several sites have commands of their own.
PYTHON_ONLY: Final = ("sites", "protocol")
_CODEBOOK: Final = """\
A codebook holds public facts, never taken from the data:
  {"age": {"range": [0, 120]}, "sex": {"levels": ["F", "M"]}}"""

_HERE: Final = """
In the shell: --codebook cb.json, a file that dpmodels codebook draft makes from a dictionary."""


def verbs() -> dict[str, Command]:
    """Return the commands of all verbs; imports none of them."""
    return {name: Command(_what(name), partial(_add, name), _run) for name in verb_names()}


@cache
def _what(name: str) -> str:
    """Return the first line of a verb's docstring, read in its file."""
    if name in VERBS:
        doc = inspect.getdoc(VERBS[name].function)
    else:
        path = files("dpmodels").joinpath(f"models/{exported()[name]}.py")
        tree = ast.parse(path.read_text("utf-8"))
        functions = (node for node in tree.body if isinstance(node, ast.FunctionDef))
        doc = next(
            ast.get_docstring(function) for function in functions if function.name == f"dp_{name}"
        )
    return first_sentence((doc or "").partition("\n")[0])


def _function(name: str) -> Callable[..., object]:
    from dpmodels.models.replay import verb_of

    verb = verb_of(name)
    assert verb is not None, name
    return verb.function


def _add(name: str, parser: Parser) -> None:
    """Add the options of a verb; its help lists those that only Python has."""
    verb = _function(name)
    doc, parameters = inspect.getdoc(verb) or "", signature(verb)
    parser.usage = f"{parser.prog} FORMULA FILE [options]"
    docs = parameter_docs(doc)
    add_rows(parser, verb, docs["formula"].text)
    model = parser.add_argument_group("model")
    model_parameters = [
        word for key, word in parameters.items() if key not in (*_ROWS, *SHARED_HELP, *PYTHON_ONLY)
    ]
    devices = [word for word in model_parameters if word.name == DEVICE]
    left = add_options(model, [word for word in model_parameters if word.name != DEVICE], docs)
    if devices:
        add_devices(model)
    finds = hasattr(evaluated_signature(verb).return_annotation, "codebook")
    add_outputs(parser, "report", (*TABLES, *DATA, *(FOUND if finds else ())))
    call_text = example(doc, f"dp_{name}", parameters) + f" --{DEVICE} {EXAMPLE}" * bool(devices)
    lines = ["example:", f"  {parser.prog} {call_text}"] if call_text else []
    left += tuple(word for word in PYTHON_ONLY if word in parameters)
    lines += [f"Only in Python: {', '.join(left)}."] if left else []
    parser.epilog = "\n".join(
        [*lines, _CODEBOOK, f"Full documentation: python -m pydoc dpmodels.dp_{name}"]
    )


def _run(options: argparse.Namespace) -> int:
    """Run a verb and show its result."""
    verb = _function(options.command)
    require_outputs(options, *files_read(options))
    parameters = signature(verb)
    if (
        "eps" in parameters
        and "eps" not in function_arguments(options)
        and getattr(options, "rho", None) is None
    ):
        raise BudgetError(
            "no budget: write --eps 1 (0.1 is strict, 10 is loose), --eps 1 --delta 1e-6 with a "
            "delta well below 1 over the number of rows, or --rho 0.1"
        )
    try:
        fit = verb(
            options.formula, options.data, **table_arguments(options), **function_arguments(options)
        )
    except CodebookError as error:
        error.args = (f"{error}{_HERE * (options.codebook is None)}",)
        raise
    return show(fit, options)


# Devices of randomised questions, as options.

DEVICE: Final = "device"
EXAMPLE: Final = "drug=no,yes:1.0"
_FORM: Final = "NAME=LEVEL,LEVEL:EPS"


class _Devices(argparse.Action):
    """Makes the devices of all questions, each a randomized response."""

    def __call__(
        self,
        parser: object,
        namespace: argparse.Namespace,
        texts: Any,
        option: object = None,
    ) -> None:
        setattr(namespace, self.dest, dict(map(_device, texts)))


def add_devices(group: argparse._ActionsContainer) -> None:
    """Add the option of devices, one for each randomised question."""
    group.add_argument(
        f"--{DEVICE}",
        dest=dest(DEVICE),
        nargs="+",
        action=_Devices,
        required=True,
        metavar=_FORM,
        help=f"answers and privacy loss of each randomised question, such as {EXAMPLE}",
    )


def _device(text: str) -> tuple[str, object]:
    from dpmodels.devices.randomized_response import randomized_response

    name, _, rest = text.partition("=")
    levels, _, eps = rest.rpartition(":")
    try:
        answers = [read((object,), level) for level in levels.split(",")]
        return name, randomized_response(answers, eps=float(eps))
    except ValueError as error:
        why = str(error) if isinstance(error, ArgumentError) else f"expected {_FORM}"
        raise ArgumentError(f"--{DEVICE} {text!r}: {why}; write {EXAMPLE}") from None
