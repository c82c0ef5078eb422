"""The digest of a release in a ledger."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import MISSING, fields, is_dataclass
from hashlib import sha256
from typing import Any

import numpy as np

from dpmodels.external_files import class_name
from dpmodels.privacy import Adjacency
from dpmodels.released import AnyRelease, Ball, BoughtCurvature, Meat, Released


def release_digest(release: AnyRelease) -> str:
    """Return the digest of a released value in a ledger: SHA-256 of all its fields."""
    sha = sha256()
    for piece in _pieces(release):
        sha.update(len(piece).to_bytes(8, "big"))
        sha.update(piece)
    return sha.hexdigest()


def origin(release: AnyRelease) -> str:
    """Return the digest of the release that was paid for, which this one may be a part of."""
    return release.whole or release_digest(release)


def _pieces(value: object) -> Iterator[bytes]:
    match value:
        case np.ndarray():
            yield f"{value.dtype.str}{value.shape}".encode()
            yield np.ascontiguousarray(value).tobytes()
        case tuple() | list():
            yield f"{len(value)}".encode()
            for element in value:
                yield from _pieces(element)
        case Mapping():
            yield from _pieces(list(value.items()))
        case _ if is_dataclass(value):
            yield class_name(type(value)).encode()
            for name in in_order(value):
                yield from _pieces(getattr(value, name))
        case _:
            yield repr(value).encode()


def in_order(value: Any) -> list[str]:
    """Return the fields of a part of a release: its own, base fields, fields with a default.

    Ledgers hold digests over this order.
    """
    base_fields = (
        {base_field.name for base_field in fields(Released)}
        if isinstance(value, Released)
        else set()
    )
    order = sorted(
        fields(value), key=lambda field: (field.default is not MISSING, field.name in base_fields)
    )
    extended = (Released, Ball, Meat, BoughtCurvature, Adjacency)
    added_later = value.later if isinstance(value, extended) else frozenset()
    names = [field.name for field in order]
    non_null = [
        position
        for position, name in enumerate(names)
        if name in added_later and getattr(value, name) is not None
    ]
    # Those that are None before the last that is not show which one that is.
    return [
        name
        for position, name in enumerate(names)
        if name not in added_later or position <= max(non_null, default=-1)
    ]
