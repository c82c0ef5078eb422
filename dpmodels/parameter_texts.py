"""Parameters as texts: values written by hand, and what a docstring says of them.

Commands and the forms of a gateway read values with it. An annotation has a text form if it is of
numbers, texts, None, values of a `Literal`, or lists of these, separated by commas.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from types import NoneType, SimpleNamespace, UnionType
from typing import Any, Final, Literal, NamedTuple, Union, get_args, get_origin, get_type_hints

from dpmodels.errors import ArgumentError

_NUMBERS: Final = {int: "INT", float: "NUMBER"}
_ITERABLES: Final = (Iterable, Sequence, tuple, list)
_MARKUP = re.compile(r":\w+:`~?\.?([^`]+)`|``(.+?)``|`([^`]+)`")
_SENTENCE = re.compile(r"(?<=\.)\s+(?=[A-Z0-9\"'`])")


def members(annotation: object) -> tuple[object, ...]:
    """Return the alternatives of an annotation.

    >>> members(int | Literal["mean", False] | None)
    (<class 'int'>, 'mean', False, None)
    """
    kind = get_origin(annotation)
    if kind in (Union, UnionType):
        return tuple(member for part in get_args(annotation) for member in members(part))
    if kind is Literal:
        return get_args(annotation)
    return (None if annotation is NoneType else annotation,)


def read(allowed: Sequence[object], text: str, *, none: bool = False) -> Any:
    """Convert a text to an allowed value; the function itself checks names of options.

    >>> read(members(float | Iterable[float]), "0.25,0.5"), read(members(int | str), "week")
    ((0.25, 0.5), 'week')
    """
    inner = [
        element
        for member in allowed
        if get_origin(member) in _ITERABLES
        for element in _inner(member)
    ]
    if inner and text == "[]":
        return ()
    if inner and ("," in text or not _texts(allowed)):
        return tuple(read(inner, part.strip()) for part in text.split(",") if part.strip())
    return None if none and text == "none" else _read_one(allowed, text)


def _read_one(allowed: Sequence[object], text: str) -> Any:
    """Return a number where one is allowed and the text is one, else the text itself."""
    anything = Any in allowed or object in allowed
    for kind in _NUMBERS:
        if kind in allowed or anything:
            try:
                return kind(text)
            except ValueError:
                continue
    if anything or any(member is str or isinstance(member, str) for member in allowed):
        return text
    raise ArgumentError(f"{text!r}: expected {written_form(allowed)}")


def _inner(annotation: object) -> tuple[object, ...]:
    return tuple(
        member for part in get_args(annotation) if part is not ... for member in members(part)
    )


def _texts(allowed: Sequence[object]) -> bool:
    """Whether one text may stand for one value."""
    return any(
        member in (*_NUMBERS, str, Any, object) or isinstance(member, str) for member in allowed
    )


def written_form(allowed: Sequence[object]) -> str:
    """Return how a value is written."""
    inner = [written_form(_inner(member)) for member in allowed if get_origin(member) in _ITERABLES]
    literals = [member for member in allowed if isinstance(member, str)]
    forms = [form for kind, form in _NUMBERS.items() if kind in allowed]
    forms += (
        ["TEXT"] * (str in allowed) + ["VALUE"] * (Any in allowed or object in allowed) + literals
    )
    forms = forms[1:] if forms[:2] == ["INT", "NUMBER"] else forms
    single = "|".join(forms)
    lists = [f"{form},..." for form in inner if form != single]
    return "|".join([*forms, *lists]) + ",..." * (single in inner)


def signature(function: Callable[..., object]) -> dict[str, inspect.Parameter]:
    """Return the parameters of a function, with evaluated annotations."""
    return dict(evaluated_signature(function).parameters)


def evaluated_signature(function: Callable[..., object]) -> inspect.Signature:
    """Return a signature with annotations evaluated, also those of wrapped functions."""
    names: dict[str, object] = {}
    part: object = function
    while part is not None:
        names = {**names, **getattr(part, "__globals__", {})}
        part = getattr(part, "__wrapped__", None)
    raw_signature = inspect.signature(function)
    kinds = {name: parameter.annotation for name, parameter in raw_signature.parameters.items()}
    texts = SimpleNamespace(__annotations__={**kinds, "return": raw_signature.return_annotation})
    types = get_type_hints(texts, names)
    parameters = [
        parameter.replace(annotation=types[name])
        for name, parameter in raw_signature.parameters.items()
    ]
    return raw_signature.replace(parameters=parameters, return_annotation=types["return"])


class ParameterDoc(NamedTuple):
    """The documentation of a parameter: its first sentence, and its options."""

    text: str = ""
    choices: tuple[str, ...] = ()


def parameter_docs(doc: str) -> dict[str, ParameterDoc]:
    """Return the documentation of each parameter.

    >>> parameter_docs('''Fit.
    ...
    ... Parameters
    ... ----------
    ... vcov : {"iid", None}, optional
    ...     Of residuals, as for :func:`f`. None by default.
    ... ''')
    {'vcov': ParameterDoc(text='of residuals, as for f', choices=('iid', 'none'))}
    """
    _, separator, rest = doc.partition("\nParameters\n")
    body = re.split(r"\n\w[\w ]*\n-{3,}\n", rest.partition("\n")[2])[0] if separator else ""
    docs: dict[str, ParameterDoc] = {}
    for entry in re.split(r"\n(?=\S)", body.strip("\n")):
        head, _, text = entry.partition("\n")
        names, _, kind = head.partition(" :")
        sentence = first_sentence(text)
        parameter_doc = ParameterDoc(sentence[:1].lower() + sentence[1:], tuple(_choices(kind)))
        docs |= dict.fromkeys((name.strip("* ") for name in names.split(",")), parameter_doc)
    return docs


def _choices(kind: str) -> Iterator[str]:
    """Yield the options that a type lists in braces."""
    listed = re.search(r"\{(.+?)\}", kind)
    for choice in listed[1].split(",") if listed else ():
        yield "none" if choice.strip() == "None" else choice.strip(' "')


def first_sentence(text: str) -> str:
    """Return the first sentence without its full stop and without markup."""
    plain = _MARKUP.sub(lambda match: next(filter(None, match.groups())), " ".join(text.split()))
    return _SENTENCE.split(plain)[0].rstrip(".")
