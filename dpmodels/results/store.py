"""Results in files: a request and its release; everything else is computed from them.

A release is a frozen dataclass. A file has the request, the name of the release's class with its
fields as JSON, and beside them the arrays, under the names of the fields they are. What is read
has to have the shape that the annotations of the fields declare.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import is_dataclass
from functools import cache, reduce, singledispatch
from io import BytesIO
from os import PathLike
from typing import Annotated, Any, Final, NamedTuple, get_args, get_origin

import numpy as np

from dpmodels import external_files
from dpmodels.codebook import Codebook
from dpmodels.errors import FrameError, NotAvailable, shorten
from dpmodels.privacy import Event, Guarantee, Pufferfish
from dpmodels.released import AnyRelease
from dpmodels.request import Request
from dpmodels.typing import Array, Floats, Plain

FORMAT: Final = "dpmodels.result/2"

# Names of fields from a release down to one of its parts.
Path = tuple[str, ...]

# Saved with their class names, which distinguish them.
_NAMED: Final = (*get_args(Guarantee), Pufferfish, *get_args(Event))
_RELEASES: Final[Mapping[str, object]] = {kind.__name__: kind for kind in get_args(AnyRelease)}


class Parts(NamedTuple):
    """The content of a file: all that a result is computed from."""

    request: Request
    release: AnyRelease
    ledger: str
    reason: str


@singledispatch
def replay(saved: object) -> object:
    """Return the result of a saved request and release; the verbs register functions."""
    raise NotAvailable("no verb is registered: import dpmodels.models")


def saved_of(result: Any) -> Saved:
    """Return the parts of a result as a file has them."""
    if result.request is None:
        raise NotAvailable(
            f"this {type(result).__name__} was not returned by a verb, or was changed since: it "
            "has no request to compute it from again"
        )
    kind: object = type(result.release)
    facts = {
        "request": result.request.to_saved(),
        "release": [type(result.release).__name__, _plain(result.release)],
        "ledger": result.call.ledger,
        "reason": result.call.reason,
    }
    parts = ((path[-1], part_at(result.release, path)) for path, _ in arrays_of(kind))
    return Saved(FORMAT, facts, {name: values for name, values in parts if values is not None})


def result_bytes(result: Any) -> bytes:
    """Return the file of a result; what is read back prints the same tables."""
    _, facts, arrays = saved_of(result)
    text = json.dumps(facts)
    replay(Saved(FORMAT, json.loads(text), arrays))
    kind: object = type(result.release)
    dims = {path[-1]: dims for path, dims in arrays_of(kind)}
    return file_bytes(FORMAT, text, {name: (dims[name], values) for name, values in arrays.items()})


def read_parts(saved: Saved) -> Parts:
    """Read a request and its release; FrameError for what has another shape."""

    def read(plain: Plain) -> Plain:
        name, facts = plain if isinstance(plain, list | tuple) and len(plain) == 2 else (None, None)
        kind = _RELEASES[external_files.conform(external_files.one_of(*_RELEASES), name, "name")]
        return read_release(kind, facts, saved.arrays)

    shape = {
        "request": Request.of_saved,
        "release": read,
        "ledger": str,
        "reason": str,
    }
    return Parts(**external_files.conform(shape, saved.facts, ""))


def read_release(kind: object, facts: object, arrays: Mapping[str, object]) -> object:
    """Read a release of a kind; FrameError for other fields or arrays than it has."""
    release = external_files.conform(kind, with_arrays(kind, facts, arrays), "release")
    expected = {path[-1] for path, _ in arrays_of(kind) if part_at(release, path) is not None}
    for strange in sorted(arrays.keys() - expected):
        raise FrameError(f"array {strange!a} is not of such a result")
    return release


def with_arrays(kind: object, facts: object, arrays: Mapping[str, object]) -> object:
    """Return plain fields with the arrays where they belong."""
    for path, _ in arrays_of(kind):
        if path[-1] in arrays:
            facts = _put(facts, path, arrays[path[-1]])
    return facts


@cache
def arrays_of(kind: object) -> tuple[tuple[Path, tuple[str, ...]], ...]:
    """Return the places of all arrays in a kind of release, with the names of their dimensions."""
    return tuple(dict.fromkeys(_arrays_under(external_files.fields_of(kind), ())))


def _arrays_under(
    shape: Mapping[str, external_files.Shape], path: Path
) -> Iterator[tuple[Path, tuple[str, ...]]]:
    for name, annotation in shape.items():
        for part in (annotation, *get_args(annotation)):
            if get_origin(part) is Annotated and get_args(part)[2:]:
                yield (*path, name), get_args(part)[2:]
            elif isinstance(part, type) and is_dataclass(part):
                yield from _arrays_under(external_files.fields_of(part), (*path, name))


def _plain(value: Plain) -> Plain:
    """Return a value as JSON has it; null stands where an array is."""
    match value:
        case np.ndarray():
            return None
        case Codebook():
            return value.to_dict()
        case tuple():
            return [_plain(entry) for entry in value]
    if not is_dataclass(value):
        return value
    names = external_files.field_names(type(value))
    plain = {stored: _plain(getattr(value, name)) for stored, name in names.items()}
    return [type(value).__name__, plain] if isinstance(value, _NAMED) else plain


def part_at(release: object, path: Path) -> Any:
    """Return what is at the end of a path, None where it leads nowhere."""
    return reduce(lambda value, name: getattr(value, name, None), path, release)


def _put(plain: object, path: Path, values: object) -> object:
    """Return plain values with an array where there was null."""
    if not path:
        return values if plain is None else plain
    if not isinstance(plain, dict) or path[0] not in plain:
        return plain
    return {**plain, path[0]: _put(plain[path[0]], path[1:], values)}


# One netCDF file: plain facts, arrays, and a digest of both.

# Names of the dimensions, and the values.
Arrays = Mapping[str, tuple[tuple[str, ...], Floats]]

MOST_BYTES = 4 * 2**30


class Saved(NamedTuple):
    """The content of a file that ``save`` wrote."""

    format: str
    facts: Plain
    arrays: dict[str, Floats]


def file_bytes(version: str, text: str, arrays: Arrays) -> bytes:
    """Return the content of a file."""
    from scipy.io import netcdf_file

    content = BytesIO()
    file: Any = netcdf_file(content, "w", version=2)
    for name, (dims, values) in arrays.items():
        for dim, size in zip(dims, values.shape, strict=True):
            if dim not in file.dimensions:
                file.createDimension(dim, size)
        file.createVariable(name, ">f8", dims)[:] = values
    stored = {name: (dims, np.asarray(values, ">f8")) for name, (dims, values) in arrays.items()}
    file.format, file.facts, file.sha256 = version, text, digest(version, text, stored)
    file.flush()
    data = content.getvalue()
    file.close()
    return data


def open_saved(path: str | PathLike[str], *formats: str) -> Saved:
    """Open a file that ``save`` wrote, and check its digest."""
    name = repr(str(path))
    try:
        texts, arrays = _read(external_files.read_bytes(path, MOST_BYTES))
    except FrameError as error:
        raise FrameError(
            f"{name} cannot be read as a saved result ({error}); expected a file written by "
            "fit.save(path)"
        ) from None
    version = texts["format"]
    if formats and version not in formats:
        raise FrameError(
            f"{name} has the format {shorten(ascii(version))}, and this version reads "
            f"{', '.join(map(repr, formats))}: load it with the version of dpmodels that saved it"
        )
    if set(texts) != {"format", "facts", "sha256"}:
        raise FrameError(
            f"{name} has no digest of its content, or more than fit.save(path) writes: it was "
            "changed, or is of an earlier version"
        )
    if texts["sha256"] != digest(version, texts["facts"], arrays):
        raise FrameError(f"{name} was changed after it was written: its digest does not fit")
    try:
        facts = external_files.parse(texts["facts"].encode())
    except FrameError as error:
        raise FrameError(f"{name}: {error}") from None
    values = {name: array.astype(np.float64) for name, (_, array) in arrays.items()}
    return Saved(version, facts, values)


def digest(version: str, text: str, arrays: Mapping[str, tuple[tuple[str, ...], Array]]) -> str:
    """Return the SHA-256 of a file's content: format, facts, and arrays as they are stored."""
    shapes = sorted((name, (dims, x.dtype.str, x.shape)) for name, (dims, x) in arrays.items())
    head = json.dumps([version, text, shapes])
    hasher = hashlib.sha256(head.encode())
    for name in sorted(arrays):
        hasher.update(np.ascontiguousarray(arrays[name][1]).data)
    return hasher.hexdigest()


def _read(content: bytes) -> tuple[dict[str, str], dict[str, tuple[tuple[str, ...], Array]]]:
    from scipy.io import netcdf_file

    try:
        # Sizes in a corrupt header can overflow; later checks catch them.
        with np.errstate(all="ignore"):
            file: Any = netcdf_file(BytesIO(content), "r", mmap=False)
        texts = {name: bytes(value).decode("ascii") for name, value in file._attributes.items()}
        arrays = {
            name: (tuple(map(str, array.dimensions)), np.asarray(array.data))
            for name, array in file.variables.items()
        }
        extra = any(array._attributes for array in file.variables.values())
    # scipy's reader may raise any error for a corrupt file.
    except Exception as error:
        raise FrameError(f"not a netCDF file, or a damaged one: {type(error).__name__}") from None
    if "format" not in texts or "facts" not in texts:
        raise FrameError("it has no format or no facts")
    if extra or any(array.dtype.str != ">f8" for _, array in arrays.values()):
        raise FrameError("it has arrays of another kind")
    return texts, arrays
