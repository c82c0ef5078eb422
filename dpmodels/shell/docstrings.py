"""What numpydoc says of a function, as lines of help: its words one by one, and an example."""

from __future__ import annotations

import ast
import re
import shlex
from collections.abc import Container, Iterator
from doctest import DocTestParser
from typing import Any, NamedTuple

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


def _option(name: str, value: Any) -> list[str]:
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
