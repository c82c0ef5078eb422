"""Commands of verbs and of functions that read no row, from their signatures and docstrings."""

from __future__ import annotations

import argparse
import ast
import inspect
from collections.abc import Callable, Mapping
from functools import cache, partial
from importlib.resources import files
from typing import Any, Final, NamedTuple

import dpmodels as dp
from dpmodels.errors import ArgumentError
from dpmodels.shell import outputs
from dpmodels.shell.command_options import (
    CODEBOOK,
    SHARED_HELP,
    Command,
    Parser,
    add_options,
    add_privacy,
    add_rows,
    codebook_advice,
    dest,
    example,
    files_read,
    function_arguments,
    require_budget,
    table_arguments,
)
from dpmodels.verbs import (
    VERBS,
    evaluated_signature,
    exported,
    first_sentence,
    parameter_docs,
    read,
    signature,
    verb_names,
)

_ROWS: Final = ("formula", "data", "answers", "codebook")
# Rows at several sites have commands of their own.
PYTHON_ONLY: Final = ("sites", "protocol")
_CODEBOOK: Final = """\
A codebook holds public facts, never taken from the data:
  {"age": {"range": [0, 120]}, "sex": {"levels": ["F", "M"]}}"""


def verbs() -> dict[str, Command]:
    """Return the commands of all verbs; imports none of them."""
    return {name: Command(_what(name), partial(_add, name), _run) for name in verb_names()}


@cache
def _what(name: str) -> str:
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
    from dpmodels.models.release import verb_of

    verb = verb_of(name)
    assert verb is not None, name
    return verb.function


def _add(name: str, parser: Parser) -> None:
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
        model.add_argument(
            f"--{DEVICE}",
            dest=dest(DEVICE),
            nargs="+",
            action=_Devices,
            required=True,
            metavar=_FORM,
            help=f"answers and privacy loss of each randomised question, such as {EXAMPLE}",
        )
    finds = hasattr(evaluated_signature(verb).return_annotation, "codebook")
    outputs.add_outputs(
        parser, "report", (*outputs.TABLES, *outputs.DATA, *(outputs.FOUND if finds else ()))
    )
    call_text = example(doc, f"dp_{name}", parameters) + f" --{DEVICE} {EXAMPLE}" * bool(devices)
    lines = ["example:", f"  {parser.prog} {call_text}"] if call_text else []
    left += tuple(word for word in PYTHON_ONLY if word in parameters)
    lines += [f"Only in Python: {', '.join(left)}."] if left else []
    parser.epilog = "\n".join(
        [*lines, _CODEBOOK, f"Full documentation: python -m pydoc dpmodels.dp_{name}"]
    )


def _run(options: argparse.Namespace) -> int:
    verb = _function(options.command)
    outputs.require_outputs(options, *files_read(options))
    if "~" in options.data and "~" not in options.formula:
        # A URL may have a password.
        raise ArgumentError(
            "FORMULA has no ~ and FILE has one; write the formula first, such as "
            f'dpmodels {options.command} "y ~ a" table.csv'
        )
    if "eps" in signature(verb):
        require_budget(options)
    with codebook_advice("\nWrite --codebook cb.json, a file that dpmodels codebook draft makes."):
        fit = verb(
            options.formula, options.data, **table_arguments(options), **function_arguments(options)
        )
    return outputs.show(fit, options)


# Devices of randomised questions, as options.

DEVICE: Final = "device"
EXAMPLE: Final = "drug=no,yes:1.0"
_FORM: Final = "NAME=LEVEL,LEVEL:EPS"


class _Devices(argparse.Action):
    def __call__(
        self, parser: object, namespace: argparse.Namespace, texts: Any, option: object = None
    ) -> None:
        setattr(namespace, self.dest, dict(map(_device, texts)))


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


_SAVED: Final = ".nc"
# A separate page, and the same as Markdown, which is printed if no file is named.
_PAGES: Final = ("html", "markdown")
_FILES: Final = "saved results (.nc) or ledgers"
_COUNTED: Final = "file of a ledger: a note states the total of its charges; nothing is charged"


class _Function(NamedTuple):
    what: str
    example: str
    first: str  # The positional argument: a formula, files, or nothing
    formats: tuple[str, ...] = tuple(outputs.TABLES)
    printed: str = "table"


_FUNCTIONS: Final[Mapping[str, _Function]] = {
    "etable": _Function(
        "Set saved results side by side", "dpmodels etable a.nc b.nc --html table.html", "files"
    ),
    "disclosure": _Function(
        "Report what was released under which guarantee, to be signed",
        'dpmodels disclosure study.ledger a.nc b.nc --title "Wages 2026" --html report.html',
        "files",
        _PAGES,
        "report",
    ),
    "power": _Function(
        "Compute the power of an analysis, before anything is read or spent",
        'dpmodels power "wage ~ age" --codebook cb.json --eps 1 --delta 1e-6 --n 5000 --effect 0.1',
        "formula",
    ),
    "reading": _Function(
        "Explain what a guarantee lets an observer infer", "dpmodels reading --eps 0.1,1,5", ""
    ),
}


def _add_function(name: str, parser: Parser) -> None:
    """Add the positional argument, then the function's parameters as options."""
    function, spec = _function_of(name), _FUNCTIONS[name]
    parameters = signature(function)
    operands = {"files": "FILE ... ", "formula": "FORMULA "}.get(spec.first, "")
    parser.usage = f"{parser.prog} {operands}[options]"
    parser.epilog = (
        f"example:\n  {spec.example}\nFull documentation: python -m pydoc dpmodels.{name}"
    )
    if spec.first == "files":
        parser.add_argument("files", nargs="+", metavar="FILE", help=_FILES)
        parameters.pop(next(iter(parameters)))
        if parameters.pop("ledger", None):
            parser.add_argument("--ledger", metavar="FILE", help=_COUNTED)
    elif spec.first:
        parser.add_argument(spec.first, metavar=spec.first.upper(), help='such as "wage ~ age"')
        parameters.pop(spec.first)
    if parameters.pop("codebook", None):
        parser.add_argument("--codebook", metavar="FILE", help=CODEBOOK)
    if any(name in SHARED_HELP for name in parameters):
        add_privacy(parser.add_argument_group("privacy"), function)
    variadic = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    rest = [
        parameter
        for word, parameter in parameters.items()
        if word not in SHARED_HELP and parameter.kind not in variadic
    ]
    add_options(parser, rest, parameter_docs(inspect.getdoc(function) or ""))
    outputs.add_outputs(parser, spec.printed, spec.formats)


def _run_function(name: str, options: argparse.Namespace) -> int:
    spec, files = _FUNCTIONS[name], getattr(options, "files", [])
    outputs.require_outputs(options, *files)
    items = [dp.load(file) if file.endswith(_SAVED) else dp.Ledger.open(file) for file in files]
    first = {"files": [items], "": []}.get(spec.first, [getattr(options, spec.first, None)])
    result = _function_of(name)(*first, **table_arguments(options), **function_arguments(options))
    if spec.formats == _PAGES:
        outputs.write_outputs(options, result)
        outputs.tell(result if options.html or options.markdown else result.as_markdown())
    else:
        outputs.tell(result.summary())
        outputs.write_outputs(options, result.summary(), result)
    return 0


def _function_of(name: str) -> Callable[..., Any]:
    function: Callable[..., object] = getattr(dp, name)
    return function


FUNCTIONS: Final[Mapping[str, Command]] = {
    name: Command(spec.what, partial(_add_function, name), partial(_run_function, name))
    for name, spec in _FUNCTIONS.items()
}
