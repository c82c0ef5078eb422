"""Untrusted files: read within limits, and validated against a declared shape.

Nothing of such a file is used before all of it is valid. A shape is written in Python's own types:

``str``, ``bool``, ``int``, ``float``, ``None``
    A text without control characters, a truth value, a whole number of 64 bits, a number that is
    finite or nan, null.
``X | None``, ``Literal["a", "b"]``
    One of these. Of several dataclasses a list of two, the name of one and its fields; or its
    fields alone, where they tell which it is.
``tuple[X, ...]``, ``tuple[X, Y]``, ``dict[str, X]``
    A list, a list of two, an object of any names; ``[X]`` is a list too.
``{"name": X}``, a dataclass
    An object of exactly these names, or of the names of the fields.
a function of the plain value, ``Annotated[X, function]``
    What reads it, or raises an error of the package.
"""

from __future__ import annotations

import json
import os
import re
import stat
import sys
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from functools import cache
from os import PathLike
from types import NoneType, UnionType
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    Final,
    Literal,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

import numpy as np

from dpmodels.errors import DPModelsError, FrameError, did_you_mean, shorten
from dpmodels.typing import Floats, Plain

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

Shape = Any
# A value of the requested shape, which no type can express.
Read = Any

# More than any honest file has, and few enough to hold in memory as Python's objects.
MOST_MARKS: Final = 5_000_000
# Of released numbers, whose squares and quotients have to be finite too.
LONGEST: Final = 1e30
# Choices: deeper and longer than anything that is saved, within what Python reads quickly.
_DEEPEST: Final = 50
_LONGEST_INT: Final = 1000
_LARGEST: Final[dict[Shape, float]] = {int: 2**63 - 1, float: sys.float_info.max}
_CONTROL: Final = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff]")
_STRING: Final = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+(?:"|\\?\Z)', re.DOTALL)
_NAMES: Final[dict[Shape, str]] = {
    str: "a text",
    bool: "true or false",
    int: "a whole number",
    float: "a number",
    NoneType: "null",
    dict: "an object",
    list: "a list",
    tuple: "a list",
}


def read_bytes(path: str | PathLike[str], max_bytes: int) -> bytes:
    """Read a file of limited size."""
    try:
        status = os.stat(path)
        if not stat.S_ISREG(status.st_mode):
            raise FrameError("it is not a file")
        with open(path, "rb") as file:
            # Memory for all that is asked for is allocated before a byte is read.
            content = file.read(min(status.st_size, max_bytes) + 1)
    except (OSError, ValueError) as error:
        if isinstance(error, FrameError):
            raise
        if isinstance(error, FileNotFoundError):
            raise FrameError("it is missing; check the path and the working folder") from None
        raise FrameError(f"it is missing or cannot be opened: {type(error).__name__}") from None
    if len(content) > max_bytes:
        raise FrameError(f"it is longer than {max_bytes:,} bytes")
    return content


def parse(content: bytes) -> Plain:
    """Read JSON, strictly: no name twice in one object, nothing without end.

    >>> parse(b'{"a": [1, 2.5]}')
    {'a': [1, 2.5]}
    >>> parse(b'{"a": 1, "a": 2}')
    Traceback (most recent call last):
    ...
    dpmodels.errors.FrameError: the name 'a' occurs twice in one object
    """
    if sum(map(content.count, (b",", b"[", b"{"))) > MOST_MARKS:
        raise FrameError(f"it has more than {MOST_MARKS:,} parts")
    marks = np.frombuffer(_STRING.sub(b"", content), dtype=np.uint8)
    steps = np.isin(marks, list(b"[{")).astype(np.int64) - np.isin(marks, list(b"]}"))
    if int(steps.cumsum().max(initial=0)) > _DEEPEST:
        raise FrameError(f"it is nested more than {_DEEPEST} deep")
    try:
        return json.loads(content.decode("utf-8"), parse_int=_int, object_pairs_hook=_object)
    except ValueError as error:
        if isinstance(error, FrameError):
            raise
        raise FrameError("it is truncated or is not JSON") from None


def conform(shape: Shape, plain: Plain, where: str) -> Read:
    """Return a plain value converted to a shape.

    `where` is its place in the file, for the error, which names the first difference.

    >>> conform({"name": str, "sizes": tuple[int, ...]}, {"name": "a", "sizes": [1, 2]}, "it")
    {'name': 'a', 'sizes': (1, 2)}
    >>> conform({"name": str}, {"name": 3}, "card")
    Traceback (most recent call last):
    ...
    dpmodels.errors.FrameError: card.name: expected a text, found a whole number
    """
    if isinstance(shape, Mapping):
        return _object_fields(shape, plain, where)
    if isinstance(shape, list):
        return _elements((*shape, ...), plain, where)
    if shape in _NAMES or shape is None:
        return _scalar(NoneType if shape is None else shape, plain, where)
    if isinstance(shape, type) and is_dataclass(shape):
        # Files of earlier versions may lack the fields with the default None.
        optional = frozenset(field.name for field in fields(shape) if field.default is None)
        values = _object_fields(fields_of(shape), plain, where, optional)
        names = field_names(shape)
        arguments = {names[name]: value for name, value in values.items()}
        return _with_location(lambda: shape(**arguments), where)
    origin, parts = get_origin(shape), get_args(shape)
    if origin in _PARTED:
        return _PARTED[origin](parts, plain, where)
    return _with_location(lambda: shape(plain), where)


@cache
def fields_of(shape: type[DataclassInstance], *names: str) -> Mapping[str, Shape]:
    """Return the shapes of a dataclass's fields by stored name, of all or of those named."""
    hints = get_type_hints(shape, include_extras=True)
    stored = field_names(shape)
    return {name: hints[stored[name]] for name in names or stored}


def require_text(text: str, where: str) -> str:
    r"""Refuse a text that could act on the terminal it is printed on.

    >>> require_text("\x1b[31m", "label")
    Traceback (most recent call last):
    ...
    dpmodels.errors.FrameError: label: '\x1b[31m' has control characters; leave them out
    """
    if _CONTROL.search(text):
        raise FrameError(f"{where}: {shorten(ascii(text))} has control characters; leave them out")
    return text


def amount(plain: object) -> float:
    """Read 0 or a number between 1e-30 and 1e30; a shape for :func:`conform`."""
    number: Plain = plain
    if type(plain) in (int, float) and (number == 0 or 1 / LONGEST <= number <= LONGEST):
        return float(number)
    raise FrameError("expected 0 or a number between 1e-30 and 1e30")


def storable_amount(number: float) -> float:
    """Return an estimated amount as :func:`amount` reads it: noise below 0 and underflow are 0.

    >>> storable_amount(-0.5), storable_amount(1e-40), storable_amount(2.5)
    (0.0, 0.0, 2.5)
    """
    return min(number, LONGEST) if number >= 1 / LONGEST else 0.0


def quantity(plain: object) -> float:
    """Read a number of either sign, otherwise as :func:`amount`."""
    return -amount(-plain) if isinstance(plain, float) and plain < 0 else amount(plain)


def or_nan(shape: Callable[[object], float]) -> Callable[[object], float]:
    """Return a shape that allows nan too."""
    return lambda plain: plain if isinstance(plain, float) and plain != plain else shape(plain)


def one_of(*options: str | None) -> Callable[[object], Read]:
    """Return the shape of one of the options."""

    def read(plain: object) -> Read:
        if not any(type(plain) is type(option) and plain == option for option in options):
            words = ", ".join(map(repr, options))
            raise FrameError(f"expected one of {words}, found {shorten(ascii(plain))}")
        return plain

    return read


def array(plain: object) -> Floats:
    """Read an array that was inserted before; a shape for :func:`conform`."""
    if not isinstance(plain, np.ndarray):
        raise FrameError(f"expected an array, found {_type_name(plain)}")
    return plain


def bounded(plain: object) -> Floats:
    """Read an array of numbers of at most 1e30 in size."""
    if not (np.abs(array(plain)) <= LONGEST).all():
        raise FrameError(f"the array has numbers that are not within {LONGEST:g}")
    return array(plain)


def bounded_or_nan(plain: object) -> Floats:
    """Read an array as :func:`bounded` does, but allow nan."""
    bounded(np.where(np.isnan(array(plain)), 0.0, array(plain)))
    return array(plain)


# Fields with limits of their own; the names of an array's dimensions follow in its annotation.
Amount = Annotated[float, amount]
AmountOrNan = Annotated[float, or_nan(amount)]
Quantity = Annotated[float, quantity]
QuantityOrNan = Annotated[float, or_nan(quantity)]
Bounded = Annotated[Floats, bounded]
BoundedOrNan = Annotated[Floats, bounded_or_nan]


def _scalar(shape: Shape, plain: Plain, where: str) -> Read:
    kind = type(plain)
    if kind is not shape and (kind, shape) != (int, float):
        raise FrameError(f"{where}: expected {_NAMES[shape]}, found {_type_name(plain)}")
    if shape in _LARGEST and abs(plain) > _LARGEST[shape]:
        raise FrameError(f"{where}: expected {_NAMES[shape]} of at most {_LARGEST[shape]:g}")
    return require_text(plain, where) if kind is str else float(plain) if shape is float else plain


def _object_fields(
    shape: Mapping[str, Shape], plain: Plain, where: str, optional: frozenset[str] = frozenset()
) -> dict[str, Plain]:
    if not isinstance(plain, dict):
        raise FrameError(f"{where or 'it'}: expected an object, found {_type_name(plain)}")
    for name in plain:
        if name not in shape:
            raise FrameError(
                f"{where or 'it'} has {shorten(ascii(name))}, which is not known there"
                f"{did_you_mean(name, shape)}"
            )
    for name in shape:
        if name not in plain and name not in optional:
            raise FrameError(f"{where or 'it'} lacks {name!r}")
    locations = {name: f"{where}.{name}".lstrip(".") for name in shape}
    return {
        name: conform(field_shape, plain[name], locations[name])
        for name, field_shape in shape.items()
        if name in plain
    }


def _elements(parts: tuple[Shape, ...], plain: Plain, where: str) -> tuple[object, ...]:
    if not isinstance(plain, list | tuple):
        raise FrameError(f"{where}: expected a list, found {_type_name(plain)}")
    shapes = parts[:1] * len(plain) if parts[1:] == (...,) else parts
    if len(shapes) != len(plain):
        raise FrameError(f"{where}: expected a list of {len(shapes)}, found one of {len(plain)}")
    pairs = enumerate(zip(shapes, plain, strict=True))
    return tuple(
        conform(element_shape, value, f"{where}[{index}]")
        for index, (element_shape, value) in pairs
    )


def _any_names(parts: tuple[Shape, ...], plain: Plain, where: str) -> dict[str, Plain]:
    if not isinstance(plain, dict):
        raise FrameError(f"{where}: expected an object, found {_type_name(plain)}")
    names = {require_text(name, f"a name in {where}"): value for name, value in plain.items()}
    return {name: conform(parts[1], value, f"{where}.{name}") for name, value in names.items()}


def _one_of(parts: tuple[Shape, ...], plain: Plain, where: str) -> Read:
    if plain is None and NoneType in parts:
        return None
    alternatives = [alternative for alternative in parts if alternative is not NoneType]
    kinds = {
        alternative.__name__: alternative
        for alternative in alternatives
        if isinstance(alternative, type) and is_dataclass(alternative)
    }
    if len(kinds) > 1:
        if isinstance(plain, dict):
            nearest = max(
                kinds.values(), key=lambda kind: len(plain.keys() & fields_of(kind).keys())
            )
            return conform(nearest, plain, where)
        if not isinstance(plain, list | tuple) or len(plain) != 2:
            raise FrameError(
                f"{where}: expected a list of a name and fields, found {_type_name(plain)}"
            )
        name = _with_location(lambda: one_of(*kinds)(plain[0]), where)
        return conform(kinds[name], plain[1], where)
    for alternative in alternatives[:-1]:
        try:
            return conform(alternative, plain, where)
        except FrameError:
            continue
    return conform(alternatives[-1], plain, where)


_PARTED: Final[dict[Shape, Callable[[tuple[Shape, ...], Plain, str], Read]]] = {
    tuple: _elements,
    dict: _any_names,
    Union: _one_of,
    UnionType: _one_of,
    Literal: lambda parts, plain, at: _with_location(lambda: one_of(*parts)(plain), at),
    Annotated: lambda parts, plain, at: _with_location(lambda: parts[1](plain), at),
}


def _with_location(make: Callable[[], Read], where: str) -> Read:
    try:
        return make()
    except DPModelsError as error:
        raise FrameError(f"{where}: {error}") from None


def _type_name(plain: Plain) -> str:
    return _NAMES.get(type(plain), type(plain).__name__)


def _object(pairs: list[tuple[str, Plain]]) -> dict[str, Plain]:
    result = dict(pairs)
    if len(result) < len(pairs):
        names: set[str] = set()
        repeated = next(name for name, _ in pairs if name in names or names.add(name))  # type: ignore[func-returns-value]
        raise FrameError(f"the name {shorten(ascii(repeated))} occurs twice in one object")
    return result


def _int(text: str) -> int:
    if len(text) > _LONGEST_INT:
        raise FrameError(f"a whole number has more than {_LONGEST_INT} digits")
    return int(text)


# Names under which classes and fields are hashed and stored, where the code has other names.
#
# The digests of releases in ledgers hash the names of classes, and the files of results and sites
# hold the names of fields. Both stay as they are when the code renames a class or a field: the
# former name is listed here.

# By class.
CLASSES: Final[Mapping[str, str]] = {"MechanismInfo": "Card"}
# By the class that declares the field, and by field.
FIELDS: Final[Mapping[str, Mapping[str, str]]] = {"Released": {"info": "card"}}


def class_name(kind: type[object]) -> str:
    """Return the stored name of a class."""
    return CLASSES.get(kind.__name__, kind.__name__)


def field_names(kind: type[Any]) -> dict[str, str]:
    """Return the fields of a dataclass by their stored names.

    >>> from dpmodels.released import MechanismInfo, MomentsRelease
    >>> class_name(MechanismInfo), field_names(MomentsRelease)["card"]
    ('Card', 'info')
    """
    stored: dict[str, str] = {}
    for base in reversed(kind.__mro__):
        stored |= FIELDS.get(base.__name__, {})
    return {stored.get(field.name, field.name): field.name for field in fields(kind)}
