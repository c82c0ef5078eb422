"""Results in files: released values and public facts, no rows.

A result is a tree of frozen dataclasses. A file has the name of its class, its fields as JSON,
and beside them the arrays, under the names of the fields they are. What is read has to have the
shape that the annotations of the fields declare, so that a result that was loaded can be used
like the one that was saved.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from functools import cache, reduce
from typing import Annotated, Any, Final, TypeVar, get_args, get_origin

import numpy as np

from dpmodels.codebook import Codebook
from dpmodels.errors import FrameError
from dpmodels.outside import Shape, conform, fields_of, one_of, parse
from dpmodels.privacy import Event, Guarantee, Pufferfish
from dpmodels.results.held_together import require_together, sizes
from dpmodels.results.netcdf import Saved, file_bytes

FORMAT: Final = "dpmodels.result/1"

# Names of fields from a result down to one of its parts.
Way = tuple[str, ...]
Result = TypeVar("Result")

# Fields of a result that hold code for public rows, which no file has.
_CODE: Final = ("coder", "coders")
# Written with their names, by which one is told from another.
_NAMED: Final = (*get_args(Guarantee), Pufferfish, *get_args(Event))


def result_bytes(result: object) -> bytes:
    """Return the file of a result; what is read back prints the same tables."""
    kind: Any = type(result)
    own = {name: _plain(getattr(result, name)) for name in _shape(kind)}
    text = json.dumps({"kind": kind.__name__, **own})
    held = {way[-1]: (dims, _at(result, way)) for way, dims in _arrays(kind)}
    arrays = {name: own for name, own in held.items() if own[1] is not None}
    values = {name: own for name, (_, own) in arrays.items()}
    read_result(Saved(FORMAT, parse(text.encode()), values), (kind,))
    return file_bytes(FORMAT, text, arrays)


def read_result(saved: Saved, kinds: Iterable[type[Result]]) -> Result:
    """Read what :func:`result_bytes` wrote, without code for public rows."""
    known: Mapping[str, Any] = {kind.__name__: kind for kind in kinds}
    plain = saved.facts
    named = plain.get("kind") if isinstance(plain, dict) else None
    kind = known[conform(one_of(*known), named, "kind")]
    for way, _ in _arrays(kind):
        if way[-1] in saved.arrays:
            plain = _put(plain, way, saved.arrays[way[-1]])
    own = conform({"kind": str, **_shape(kind)}, plain, "")
    own.pop("kind")
    result: Result = kind(**own)
    _require_shapes(result, saved.arrays)
    require_together(result)
    return result


def _require_shapes(result: Any, arrays: Mapping[str, Any]) -> None:
    """Refuse arrays that are not of the result, or not of the sizes that its facts imply."""
    kind: Any = type(result)
    known, held = sizes(result), set()
    for way, dims in _arrays(kind):
        own, expected = _at(result, way), tuple(known[dim] for dim in dims)
        if own is None:
            continue
        if own.shape != expected:
            raise FrameError(f"array {way[-1]!r}: expected the shape {expected}, found {own.shape}")
        held.add(way[-1])
    for name in sorted(arrays.keys() - held):
        raise FrameError(f"array {name!a} is not of such a result")


def _shape(kind: Any) -> Mapping[str, Shape]:
    return {name: own for name, own in fields_of(kind).items() if name not in _CODE}


@cache
def _arrays(kind: Any) -> tuple[tuple[Way, tuple[str, ...]], ...]:
    """Return the places of all arrays in a kind of result, with the names of their dimensions."""
    return tuple(dict.fromkeys(_arrays_under(_shape(kind), ())))


def _arrays_under(shape: Mapping[str, Shape], way: Way) -> Iterator[tuple[Way, tuple[str, ...]]]:
    for name, own in shape.items():
        for part in (own, *get_args(own)):
            if get_origin(part) is Annotated and get_args(part)[2:]:
                yield (*way, name), get_args(part)[2:]
            elif isinstance(part, type) and is_dataclass(part):
                yield from _arrays_under(fields_of(part), (*way, name))


def _plain(value: Any) -> Any:
    """Return a value as JSON has it; null stands where an array is."""
    match value:
        case np.ndarray():
            return None
        case Codebook():
            return value.to_dict()
        case tuple():
            return [_plain(one) for one in value]
    if not is_dataclass(value):
        return value
    own = {one.name: _plain(getattr(value, one.name)) for one in fields(value)}
    return [type(value).__name__, own] if isinstance(value, _NAMED) else own


def _at(result: object, way: Way) -> Any:
    """Return what is at the end of a way, None where it leads nowhere."""
    return reduce(lambda own, name: getattr(own, name, None), way, result)


def _put(plain: Any, way: Way, values: Any) -> Any:
    """Return plain values with an array where there was null."""
    if not way:
        return values if plain is None else plain
    if not isinstance(plain, dict) or way[0] not in plain:
        return plain
    return {**plain, way[0]: _put(plain[way[0]], way[1:], values)}
