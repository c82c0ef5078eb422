"""A function's words as options, by their annotations: the one place where these are made.

A word has an option for what of its annotation has a text form: numbers, texts, truth values, None,
words in a `Literal`, and many of these with commas between them. What has none is left out, and the
help says so.
"""

from __future__ import annotations

import argparse
import ast
import inspect
import re
import shlex
from argparse import SUPPRESS
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from doctest import DocTestParser
from types import NoneType, SimpleNamespace, UnionType
from typing import (
    Any,
    Final,
    Literal,
    NamedTuple,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

import dpmodels as dp
from dpmodels.errors import ArgumentError
from dpmodels.frames.delimited import CsvMode

# Options are kept apart from what else a command knows, whatever a function's words are called.
_OWN: Final = "word:"
_NUMBERS: Final = {int: "INT", float: "NUMBER"}
_MANY: Final = (Iterable, Sequence, tuple, list)


def members(annotation: Any) -> tuple[Any, ...]:
    """Return what an annotation allows, one by one.

    >>> members(int | Literal["mean", False] | None)
    (<class 'int'>, 'mean', False, None)
    """
    kind = get_origin(annotation)
    if kind in (Union, UnionType):
        return tuple(one for own in get_args(annotation) for one in members(own))
    if kind is Literal:
        return get_args(annotation)
    return (None if annotation is NoneType else annotation,)


def read(allowed: Sequence[Any], text: str, *, none: bool = False) -> Any:
    """Return what a text says, of what an annotation allows; wrong words are the function's to say.

    >>> read(members(float | Iterable[float]), "0.25,0.5"), read(members(int | str), "week")
    ((0.25, 0.5), 'week')
    """
    inner = [one for own in allowed if get_origin(own) in _MANY for one in _inner(own)]
    if inner and text == "[]":
        return ()
    if inner and ("," in text or not _texts(allowed)):
        return tuple(read(inner, part.strip()) for part in text.split(",") if part.strip())
    return None if none and text == "none" else _read_one(allowed, text)


def _read_one(allowed: Sequence[Any], text: str) -> Any:
    """Return a number where one is allowed and the text is one, else the text itself."""
    anything = Any in allowed or object in allowed
    for kind in _NUMBERS:
        if kind in allowed or anything:
            try:
                return kind(text)
            except ValueError:
                continue
    if anything or any(own is str or isinstance(own, str) for own in allowed):
        return text
    raise ArgumentError(f"{text!r}: expected {_form(allowed)}")


def _inner(own: object) -> tuple[object, ...]:
    return tuple(one for part in get_args(own) if part is not ... for one in members(part))


def _texts(allowed: Sequence[object]) -> bool:
    """Whether one text may stand for one value."""
    return any(own in (*_NUMBERS, str, Any, object) or isinstance(own, str) for own in allowed)


def _form(allowed: Sequence[object]) -> str:
    """Return how a value is written."""
    inner = [_form(_inner(own)) for own in allowed if get_origin(own) in _MANY]
    named = [own for own in allowed if isinstance(own, str)]
    forms = [shown for kind, shown in _NUMBERS.items() if kind in allowed]
    forms += ["TEXT"] * (str in allowed) + ["VALUE"] * (Any in allowed or object in allowed) + named
    forms = forms[1:] if forms[:2] == ["INT", "NUMBER"] else forms
    alone = "|".join(forms)
    apart = [f"{own},..." for own in inner if own != alone]
    return "|".join([*forms, *apart]) + ",..." * (alone in inner)


def dest(name: str) -> str:
    """Return where a function's word is kept among what was parsed."""
    return _OWN + name


def add_word(group: Any, parameter: inspect.Parameter, said: Said) -> bool:
    """Add a word's option, and tell whether it has one; one that is not given stays unsaid."""
    allowed = members(parameter.annotation)
    form = "|".join(said.words) or _form(allowed)
    flag, default = parameter.name.replace("_", "-"), parameter.default
    words: dict[str, object] = {"dest": dest(parameter.name), "default": argparse.SUPPRESS}
    switched = bool in allowed or False in allowed
    if _form(allowed):
        none = None in allowed and default is not None
        # Where a word may stand alone, that is True.
        alone = {"nargs": "?", "const": True} if switched and default is False else {}
        group.add_argument(
            f"--{flag}",
            type=_reader(allowed, none=none),
            metavar=form + "|none" * (none and "none" not in form),
            required=default is inspect.Parameter.empty,
            help=escaped(_with_default(said.text, default)),
            **words,
            **alone,
        )
    elif switched and default is False:
        group.add_argument(f"--{flag}", action="store_true", help=escaped(said.text), **words)
    if switched and default is not False:
        text = "turn off: " + said.text.removeprefix("whether ")
        text = f"no {parameter.name.replace('_', ' ')}" if _form(allowed) else text
        group.add_argument(f"--no-{flag}", action="store_false", help=escaped(text), **words)
    return switched or bool(_form(allowed))


def add_words(
    group: object, parameters: Iterable[inspect.Parameter], said: Mapping[str, Said]
) -> tuple[str, ...]:
    """Add the options of a function's words; return the names of those that have none."""
    return tuple(
        own.name for own in parameters if not add_word(group, own, said.get(own.name, Said()))
    )


def given(words: argparse.Namespace) -> dict[str, Any]:
    """Return the function's words that were given."""
    held = vars(words).items()
    return {name.removeprefix(_OWN): own for name, own in held if name.startswith(_OWN)}


def signature(function: Callable[..., object]) -> dict[str, inspect.Parameter]:
    """Return a function's words with what they may be."""
    return dict(evaluated_signature(function).parameters)


def evaluated_signature(function: Callable[..., object]) -> inspect.Signature:
    """Return a signature with types for texts, read where the function or one it wraps stands."""
    names: dict[str, object] = {}
    part: object = function
    while part is not None:
        names = {**names, **getattr(part, "__globals__", {})}
        part = getattr(part, "__wrapped__", None)
    found = inspect.signature(function)
    kinds = {name: parameter.annotation for name, parameter in found.parameters.items()}
    texts = SimpleNamespace(__annotations__={**kinds, "return": found.return_annotation})
    types = get_type_hints(texts, names)
    parameters = [
        parameter.replace(annotation=types[name]) for name, parameter in found.parameters.items()
    ]
    return found.replace(parameters=parameters, return_annotation=types["return"])


def _reader(allowed: Sequence[object], *, none: bool) -> Callable[[str], object]:
    def value(text: str) -> Any:
        return read(allowed, text, none=none)

    value.__name__ = _form(allowed)  # For argparse's "invalid INT value"
    return value


def _with_default(text: str, default: object) -> str:
    unsaid = default in (None, inspect.Parameter.empty, "", ()) or isinstance(default, bool)
    if unsaid or "default" in text:
        return text
    many = default if isinstance(default, tuple) else (default,)
    shown = ",".join(f"{own:g}" if isinstance(own, float) else str(own) for own in many)
    return f"{text} (default: {shown})".strip()


def escaped(text: str) -> str:
    """Return a text as argparse prints it whole."""
    return text.replace("%", "%%")


# What numpydoc says of a function, as lines of help: its words one by one, and an example.

_MARKUP = re.compile(r":\w+:`~?\.?([^`]+)`|``(.+?)``|`([^`]+)`")
_SENTENCE = re.compile(r"(?<=\.)\s+(?=[A-Z0-9\"'`])")
_PLAIN = re.compile(r'[^"$`!\\]*')


class Said(NamedTuple):
    """What is said of a parameter: its first sentence, and the words that it may be."""

    text: str = ""
    words: tuple[str, ...] = ()


def described(doc: str) -> dict[str, Said]:
    """Return what is said of each parameter.

    >>> described('''Fit.
    ...
    ... Parameters
    ... ----------
    ... vcov : {"iid", None}, optional
    ...     Of residuals, as for :func:`f`. None by default.
    ... ''')
    {'vcov': Said(text='of residuals, as for f', words=('iid', 'none'))}
    """
    _, found, rest = doc.partition("\nParameters\n")
    body = re.split(r"\n\w[\w ]*\n-{3,}\n", rest.partition("\n")[2])[0] if found else ""
    found_of: dict[str, Said] = {}
    for entry in re.split(r"\n(?=\S)", body.strip("\n")):
        head, _, text = entry.partition("\n")
        names, _, kind = head.partition(" :")
        sentence = first_sentence(text)
        said = Said(sentence[:1].lower() + sentence[1:], tuple(_words(kind)))
        found_of |= dict.fromkeys((name.strip("* ") for name in names.split(",")), said)
    return found_of


def _words(kind: str) -> Iterator[str]:
    """Give the words that a kind lists in braces."""
    listed = re.search(r"\{(.+?)\}", kind)
    for one in listed[1].split(",") if listed else ():
        yield "none" if one.strip() == "None" else one.strip(' "')


def first_sentence(text: str) -> str:
    """Return the first sentence without its full stop and without markup."""
    plain = _MARKUP.sub(lambda found: next(filter(None, found.groups())), " ".join(text.split()))
    return _SENTENCE.split(plain)[0].rstrip(".")


def example(doc: str, name: str, known: Container[str]) -> str:
    """Return a function's call in its docstring as words of the shell; empty where there is none.

    >>> example('>>> dp.f("~ a", rows, codebook=cb, k=2, q=x)', "f", ("k", "q"))
    '"~ a" people.csv --codebook cb.json --k 2'
    """
    for line in DocTestParser().get_examples(doc):
        for node in ast.walk(ast.parse(line.source)):
            if isinstance(node, ast.Call) and ast.unparse(node.func).rpartition(".")[2] == name:
                return _shell_words(node, known)
    return ""


def _shell_words(call: ast.Call, known: Container[str]) -> str:
    literal = [ast.literal_eval(own) for own in call.args[:1] if isinstance(own, ast.Constant)]
    given = [_quoted(str(own)) for own in literal] + ["people.csv"] * (len(call.args) > 1)
    for word in call.keywords:
        if word.arg == "codebook":
            given += ["--codebook", "cb.json"]
        elif word.arg in known:
            try:
                given += _option(str(word.arg), ast.literal_eval(word.value))
            except ValueError:
                continue
    return " ".join(given)


def _option(name: str, value: object) -> list[str]:
    flag = name.replace("_", "-")
    if isinstance(value, bool):
        return [f"--{flag}" if value else f"--no-{flag}"]
    many = value if isinstance(value, list | tuple) else [value]
    text = ",".join(f"{own:g}" if isinstance(own, float) else str(own) for own in many)
    return [f"--{flag}", _quoted(text)]


def _quoted(text: str) -> str:
    if shlex.quote(text) == text:
        return text
    return f'"{text}"' if _PLAIN.fullmatch(text) else shlex.quote(text)


# What commands that read rows have in common: the table, the guarantee, who is protected.

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
    parser: argparse.ArgumentParser, function: Callable[..., object], formula: str = FORMULA
) -> None:
    """Add a formula, a file, and what is said of it, as far as a function asks for it."""
    own = signature(function)
    parser.add_argument("formula", metavar="FORMULA", help=escaped(formula))
    parser.add_argument("data", metavar="FILE", help=ROWS)
    if "codebook" in own:
        parser.add_argument("--codebook", metavar="FILE", help=CODEBOOK)
    add_privacy(parser.add_argument_group("privacy"), function)


def add_privacy(group: Any, function: Callable[..., object]) -> None:
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
    own: dict[str, object] = {}
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
