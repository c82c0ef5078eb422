"""One netCDF file: plain facts, arrays, and a digest of both."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from io import BytesIO
from os import PathLike
from typing import Any, NamedTuple

import numpy as np

from dpmodels.errors import FrameError, shorten
from dpmodels.outside import parse, read_bytes
from dpmodels.typing import Floats

# Names of the dimensions, and the values.
Arrays = Mapping[str, tuple[tuple[str, ...], Floats]]

MOST_BYTES = 4 * 2**30


class Saved(NamedTuple):
    """A file that ``save`` wrote, as it stands there."""

    format: str
    facts: Any
    arrays: dict[str, Floats]


def file_bytes(written: str, text: str, arrays: Arrays) -> bytes:
    """Return the content of a file."""
    from scipy.io import netcdf_file

    content = BytesIO()
    file: Any = netcdf_file(content, "w", version=2)
    for name, (dims, values) in arrays.items():
        for dim, size in zip(dims, values.shape, strict=True):
            if dim not in file.dimensions:
                file.createDimension(dim, size)
        file.createVariable(name, ">f8", dims)[:] = values
    held = {name: (dims, np.asarray(own, ">f8")) for name, (dims, own) in arrays.items()}
    file.format, file.facts, file.sha256 = written, text, digest(written, text, held)
    file.flush()
    made = content.getvalue()
    file.close()
    return made


def open_saved(path: str | PathLike[str], *known: str) -> Saved:
    """Open a file that ``save`` wrote, and check its digest."""
    name = repr(str(path))
    try:
        own, arrays = _read(read_bytes(path, MOST_BYTES))
    except FrameError as error:
        raise FrameError(
            f"{name} cannot be read as a saved result ({error}); expected a file written by "
            "fit.save(path)"
        ) from None
    written = own["format"]
    if known and written not in known:
        raise FrameError(
            f"{name} has the format {shorten(ascii(written))}, and this version reads "
            f"{', '.join(map(repr, known))}: load it with the version of dpmodels that saved it"
        )
    if set(own) != {"format", "facts", "sha256"}:
        raise FrameError(
            f"{name} has no digest of its content, or says more than fit.save(path) writes: it "
            "was changed, or is of an earlier version"
        )
    if own["sha256"] != digest(written, own["facts"], arrays):
        raise FrameError(f"{name} was changed after it was written: its digest does not fit")
    try:
        facts = parse(own["facts"].encode())
    except FrameError as error:
        raise FrameError(f"{name}: {error}") from None
    values = {name: own.astype(np.float64) for name, (_, own) in arrays.items()}
    return Saved(written, facts, values)


def digest(written: str, text: str, arrays: Mapping[str, tuple[tuple[str, ...], Any]]) -> str:
    """Return the SHA-256 of all that a file says: format, facts, and arrays as they are stored."""
    shapes = {name: (dims, own.dtype.str, own.shape) for name, (dims, own) in arrays.items()}
    head = json.dumps([written, text, sorted(shapes.items())])
    found = hashlib.sha256(head.encode())
    for name in sorted(arrays):
        found.update(np.ascontiguousarray(arrays[name][1]).data)
    return found.hexdigest()


def _read(content: bytes) -> tuple[dict[str, str], dict[str, tuple[tuple[str, ...], Any]]]:
    """Return texts and arrays of a netCDF file."""
    from scipy.io import netcdf_file

    try:
        # Sizes that a spoilt header announces overflow, and are caught by what they lead to.
        with np.errstate(all="ignore"):
            file: Any = netcdf_file(BytesIO(content), "r", mmap=False)
        own = {name: bytes(value).decode("ascii") for name, value in file._attributes.items()}
        arrays = {
            name: (tuple(map(str, one.dimensions)), np.asarray(one.data))
            for name, one in file.variables.items()
        }
        extra = any(one._attributes for one in file.variables.values())
    # What the reader raises of a spoilt file is not known: it was written for sound ones.
    except Exception as error:
        raise FrameError(f"no netCDF file, or a damaged one: {type(error).__name__}") from None
    if "format" not in own or "facts" not in own:
        raise FrameError("it has no format or no facts")
    if extra or any(one.dtype.str != ">f8" for _, one in arrays.values()):
        raise FrameError("it has arrays of another kind")
    return own, arrays
