"""A function's words as options, by their annotations: the one place where these are made.

A word has an option for what of its annotation has a text form: numbers, texts, truth values, None,
words in a `Literal`, and many of these with commas between them. What has none is left out, and the
help says so.
"""

from __future__ import annotations

import argparse
import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import NoneType, SimpleNamespace, UnionType
from typing import Any, Final, Literal, Union, get_args, get_origin, get_type_hints

from dpmodels.errors import ArgumentError
from dpmodels.shell.docstrings import Said

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
    if none and text == "none":
        return None
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


def _inner(own: Any) -> tuple[Any, ...]:
    return tuple(one for part in get_args(own) if part is not ... for one in members(part))


def _texts(allowed: Sequence[Any]) -> bool:
    """Whether one text may stand for one value."""
    return any(own in (*_NUMBERS, str, Any, object) or isinstance(own, str) for own in allowed)


def _form(allowed: Sequence[Any]) -> str:
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
    words: dict[str, Any] = {"dest": dest(parameter.name), "default": argparse.SUPPRESS}
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
    group: Any, parameters: Iterable[inspect.Parameter], said: Mapping[str, Said]
) -> tuple[str, ...]:
    """Add the options of a function's words; return the names of those that have none."""
    return tuple(
        own.name for own in parameters if not add_word(group, own, said.get(own.name, Said()))
    )


def given(words: argparse.Namespace) -> dict[str, Any]:
    """Return the function's words that were given."""
    held = vars(words).items()
    return {name.removeprefix(_OWN): own for name, own in held if name.startswith(_OWN)}


def signature(function: Callable[..., Any]) -> dict[str, inspect.Parameter]:
    """Return a function's words with what they may be."""
    return dict(evaluated_signature(function).parameters)


def evaluated_signature(function: Callable[..., Any]) -> inspect.Signature:
    """Return a signature with types for texts, read where the function or one it wraps stands."""
    names: dict[str, Any] = {}
    part: Any = function
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


def _reader(allowed: Sequence[Any], *, none: bool) -> Callable[[str], Any]:
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
