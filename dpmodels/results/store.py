"""Results in netCDF files: released values and public facts, no rows."""

from __future__ import annotations

import json
from dataclasses import asdict
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from dpmodels.codebook import Codebook
from dpmodels.errors import FrameError
from dpmodels.privacy import (
    ZCDP,
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

Floats = NDArray[np.float64]

PCA, COV, MOMENTS = "dpmodels.pca/1", "dpmodels.cov/1", "dpmodels.moments/1"

_GUARANTEES = {kind.__name__: kind for kind in (PureDP, ApproxDP, ZCDP)}
_EVENTS = {
    kind.__name__: kind for kind in (GaussianEvent, LaplaceEvent, BoundedRangeEvent, PureEvent)
}
_WORDS = (
    *("formula", "names", "row_norm", "worst_case", "unit_rows", "center", "scale"),
    *("denoise", "ncomp", "ledger", "reason", "part_of"),
)
_ARRAYS = ("lower", "upper", "origin", "divisor")


class Saved(NamedTuple):
    """A file that ``save`` wrote, as it stands there."""

    format: str
    facts: dict[str, Any]
    arrays: dict[Any, Floats]


def write_moments(
    call: MomentsCall, release: MomentsRelease, path: str | PathLike[str], written: str
) -> None:
    """Write a result of the format given; what is read back prints the same tables."""
    arrays: dict[str, Any] = {"second": (("variable", "variable_"), release.second)}
    if release.total is not None:
        arrays["total"] = ("variable", release.total)
    if release.estimate is not None:
        arrays["estimate"] = (("variable", "variable_"), release.estimate)
    own = {"count": release.count, "noise": asdict(release.noise)}
    write_saved(call, release, own, arrays, path, written)


def write_saved(
    call: MomentsCall,
    release: Release,
    own: dict[str, Any],
    arrays: dict[str, Any],
    path: str | PathLike[str],
    written: str,
) -> None:
    """Write a call and the terms of a release, with the numbers and arrays of its own."""
    words = {name: getattr(call, name) for name in _WORDS}
    declared = {name: ("variable", getattr(call, name)) for name in _ARRAYS}
    asked = {**words, "codebook": call.codebook.to_dict()}
    write_file(asked, release, own, {**declared, **arrays}, path, written)


def write_file(
    asked: dict[str, Any],
    release: AnyRelease,
    own: dict[str, Any],
    arrays: dict[str, Any],
    path: str | PathLike[str],
    written: str,
) -> None:
    """Write what was asked and the terms of a release, with what else is given.

    Parameters
    ----------
    asked, own : dict
        Plain values: of the call, and of this kind of release.
    release : AnyRelease
        Whose terms are written.
    arrays : dict
        Arrays with the names of their dimensions.
    path : path
        Where to write.
    written : str
        The format.
    """
    shared = getattr(release, "shared", None)
    plain = {
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
    attributes = {"format": written, "facts": json.dumps(plain)}
    xr.Dataset(arrays, attrs=attributes).to_netcdf(Path(path), engine="scipy")


def open_saved(path: str | PathLike[str]) -> Saved:
    """Open a file of any format.

    Raises
    ------
    FrameError
        If the file is missing or is not such a file.
    """
    try:
        with xr.open_dataset(Path(path), engine="scipy") as opened:
            dataset = opened.load()
        written = str(dataset.attrs["format"])
        plain = json.loads(dataset.attrs["facts"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise FrameError(
            f"{str(path)!r} cannot be read as a saved result ({type(error).__name__}); expected a "
            "file written by fit.save(path)"
        ) from None
    arrays = {name: np.asarray(dataset[name].values, dtype=np.float64) for name in dataset}
    return Saved(written, plain, arrays)


def read_moments(saved: Saved) -> tuple[MomentsCall, MomentsRelease]:
    """Read what :func:`write_moments` wrote."""
    plain, arrays = saved.facts["release"], saved.arrays
    release = MomentsRelease(
        count=plain["count"],
        total=arrays.get("total"),
        second=arrays["second"],
        noise=MomentNoise(**plain["noise"]),
        estimate=arrays.get("estimate"),
        **terms(saved),
    )
    return asked(saved), release


def asked(saved: Saved) -> MomentsCall:
    """Read what was asked."""
    plain: dict[str, Any] = saved.facts["call"] | {name: saved.arrays[name] for name in _ARRAYS}
    plain["codebook"] = Codebook.from_dict(plain["codebook"])
    plain["names"] = tuple(plain["names"])
    return MomentsCall(**plain)


def terms(saved: Saved) -> dict[str, Any]:
    """Read the fields that every release has."""
    plain = saved.facts["release"]
    kind, words = plain["guarantee"]
    shared = plain.get("shared")
    own = {} if shared is None else {"shared": _shared(shared)}
    return {
        **own,
        "rows": plain["rows"],
        "card": Card(**plain["card"]),
        "guarantee": _GUARANTEES[kind](**words),
        "adjacency": adjacency(plain["adjacency"]),
        "events": tuple(_EVENTS[name](**own) for name, own in plain["events"]),
        "simulated": plain["simulated"],
    }


def _shared(plain: dict[str, Any]) -> Shared:
    return Shared(**{**plain, "sites": tuple(plain["sites"])})
