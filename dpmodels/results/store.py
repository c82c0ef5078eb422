"""Results in files: released values and public facts, no rows.

What is read is checked against what the file says it is, so that a result
that was loaded can be used like the one that was saved.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import Any, Literal

import numpy as np

from dpmodels.codebook import Codebook
from dpmodels.errors import FrameError
from dpmodels.outside import (
    LONGEST,
    Shape,
    amount,
    conform,
    fields_of,
    or_nan,
    parse,
    quantity,
    tagged,
)
from dpmodels.privacy import (
    ZCDP,
    Adjacency,
    ApproxDP,
    BoundedRangeEvent,
    GaussianEvent,
    LaplaceEvent,
    PureDP,
    PureEvent,
    adjacency,
)
from dpmodels.released import AnyRelease, Card, MomentNoise, MomentsRelease, Release, Shared
from dpmodels.results.call import MomentsCall
from dpmodels.results.netcdf import Arrays, Saved, file_bytes

PCA, COV, MOMENTS = "dpmodels.pca/1", "dpmodels.cov/1", "dpmodels.moments/1"

_GUARANTEES = {kind.__name__: kind for kind in (PureDP, ApproxDP, ZCDP)}
_EVENTS = {
    kind.__name__: kind for kind in (GaussianEvent, LaplaceEvent, BoundedRangeEvent, PureEvent)
}
_ARRAYS = ("lower", "upper", "origin", "divisor")
CALL: Mapping[str, Shape] = {
    **fields_of(MomentsCall, "formula", "names", "unit_rows", "center", "ncomp"),
    **fields_of(MomentsCall, "ledger", "reason", "part_of"),
    "row_norm": amount,
    "worst_case": amount,
    "scale": Literal["range", "sd"] | None,
    "denoise": Literal["auto", "invariant", "spiked", "psd"] | None,
}


_TERMS: Mapping[str, Shape] = {
    "rows": int | None,
    "card": Card,
    "guarantee": tagged(_GUARANTEES),
    "adjacency": adjacency,
    "events": [tagged(_EVENTS)],
    "simulated": bool,
    "shared": Shared | None,
}


def moments_bytes(
    call: MomentsCall,
    release: MomentsRelease,
    written: str,
    more: Mapping[str, Any] | None = None,
    read: Callable[[Saved], object] | None = None,
) -> bytes:
    """Return a file of the format given; what is read back prints the same tables."""
    arrays: dict[str, Any] = {"second": (("variable", "variable_"), release.second)}
    if release.total is not None:
        arrays["total"] = (("variable",), release.total)
    if release.estimate is not None:
        arrays["estimate"] = (("variable", "variable_"), release.estimate)
    own = {"count": release.count, "noise": asdict(release.noise), **(more or {})}
    return call_bytes(call, release, own, arrays, written, read or read_moments)


def call_bytes(
    call: MomentsCall,
    release: Release,
    own: dict[str, Any],
    arrays: Arrays,
    written: str,
    read: Callable[[Saved], object],
) -> bytes:
    """Return a file of a call and a release, with the numbers and arrays of its own."""
    words = {name: getattr(call, name) for name in CALL}
    declared = {name: (("variable",), getattr(call, name)) for name in _ARRAYS}
    asked = {**words, "codebook": call.codebook.to_dict()}
    return result_bytes(asked, release, own, {**declared, **arrays}, written, read)


def result_bytes(
    asked: dict[str, Any],
    release: AnyRelease,
    own: dict[str, Any],
    arrays: Arrays,
    written: str,
    read: Callable[[Saved], object],
) -> bytes:
    """Return a file of what was asked and the terms of a release, with what else is given.

    Parameters
    ----------
    asked, own : dict
        Plain values: of the call, and of this kind of release.
    release : AnyRelease
        Whose terms are written.
    arrays : mapping
        Arrays with the names of their dimensions.
    written : str
        The format.
    read : callable
        Reads such a file.

    Raises
    ------
    FrameError
        If it could not be read again.
    """
    shared = getattr(release, "shared", None)
    facts = {
        "call": asked,
        "release": {
            **own,
            "rows": release.rows,
            "card": asdict(release.card),
            "guarantee": [type(release.guarantee).__name__, asdict(release.guarantee)],
            "adjacency": release.adjacency.name,
            "events": [[type(event).__name__, asdict(event)] for event in release.events],
            "simulated": release.simulated,
            "shared": None if shared is None else asdict(shared),
        },
    }
    text = json.dumps(facts)
    read(Saved(written, parse(text.encode()), {name: one for name, (_, one) in arrays.items()}))
    return file_bytes(written, text, arrays)


def read_facts(
    saved: Saved, call: Mapping[str, Shape], own: Mapping[str, Shape], *, shared: bool = True
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return what was asked and the terms of the release, of the shapes given.

    Parameters
    ----------
    saved : Saved
        The file.
    call, own : mapping
        Shapes of the fields of the call but for the codebook, and of those of
        this kind of release.
    shared : bool
        Whether sites may have made it.

    Raises
    ------
    FrameError
        The message names the first difference.
    """
    shape = {"call": {**call, "codebook": Codebook.from_dict}, "release": {**_TERMS, **own}}
    facts = conform(shape, saved.facts, "")
    terms = facts["release"]
    relation: Adjacency = terms["adjacency"]
    if (terms["rows"] is not None) != relation.n_public or not 0 <= (terms["rows"] or 0) <= 2**53:
        raise FrameError(f"release.rows: not a number of rows as under {relation.name!r}")
    joint = terms["shared"]
    if joint is not None and (not shared or min(joint.numbers, joint.size) < 0):
        raise FrameError("release.shared: not of sites of such a release")
    return facts["call"], terms if shared else {k: v for k, v in terms.items() if k != "shared"}


def take(
    saved: Saved, shapes: Mapping[str, tuple[int, ...]], holes: tuple[str, ...] = ()
) -> dict[str, Any]:
    """Return the arrays of a file, which has these and no more, all of finite numbers.

    Parameters
    ----------
    saved : Saved
        The file.
    shapes : mapping
        What the facts imply.
    holes : tuple of str
        Arrays that may have nan.
    """
    for name in sorted(shapes.keys() ^ saved.arrays.keys()):
        raise FrameError(f"array {name!a} is missing, or not of such a result")
    for name, shape in shapes.items():
        own = saved.arrays[name]
        if own.shape != shape:
            raise FrameError(f"array {name!r}: expected the shape {shape}, found {own.shape}")
        fine = np.abs(own) <= LONGEST
        if not (fine | np.isnan(own) if name in holes else fine).all():
            raise FrameError(f"array {name!r} has numbers that are not within {LONGEST:g}")
    return dict(saved.arrays)


def require_noise(noise: MomentNoise, where: str) -> None:
    """Refuse standard deviations that are negative, or of no size that noise has."""
    conform(dict.fromkeys(fields_of(MomentNoise), or_nan(amount)), asdict(noise), where)


def read_moments(saved: Saved) -> tuple[MomentsCall, MomentsRelease]:
    """Read what :func:`moments_bytes` wrote."""
    call, release, _ = moments_of(saved, {})
    return call, release


def moments_of(
    saved: Saved, more: Mapping[str, Shape]
) -> tuple[MomentsCall, MomentsRelease, dict[str, Any]]:
    """Read what :func:`moments_bytes` wrote, and what else it was given."""
    asked, terms = read_facts(saved, CALL, {"count": quantity, "noise": MomentNoise, **more})
    require_noise(terms["noise"], "release.noise")
    n = len(asked["names"])
    shapes: dict[str, tuple[int, ...]] = {"second": (n, n), "total": (n,), "estimate": (n, n)}
    given = {name: own for name, own in shapes.items() if name == "second" or name in saved.arrays}
    call, arrays = read_call(saved, asked, given)
    if call.center and "total" not in arrays:
        raise FrameError("array 'total' is missing: call.center says that the mean was taken off")
    own = {name: terms.pop(name) for name in more}
    release = MomentsRelease(
        **terms,
        total=arrays.get("total"),
        second=arrays["second"],
        estimate=arrays.get("estimate"),
    )
    return call, release, own


def read_call(
    saved: Saved, asked: dict[str, Any], shapes: Mapping[str, tuple[int, ...]]
) -> tuple[MomentsCall, dict[str, Any]]:
    """Return the call, and the arrays besides its own, of the shapes given."""
    n = len(asked["names"])
    arrays = take(saved, {**dict.fromkeys(_ARRAYS, (n,)), **shapes})
    call = MomentsCall(**asked, **{name: arrays.pop(name) for name in _ARRAYS})
    if not 1 <= call.ncomp <= n:
        raise FrameError(f"call.ncomp: expected a number from 1 to {n}")
    if not (call.divisor >= 1 / LONGEST).all() or not (call.lower <= call.upper).all():
        raise FrameError("arrays 'lower', 'upper', 'divisor': no ranges, or no scaling of them")
    if not (np.abs(call.box) <= LONGEST).all():
        raise FrameError(f"arrays 'origin', 'divisor': columns are not scaled within {LONGEST:g}")
    return call, arrays
