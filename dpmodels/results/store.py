"""Results in netCDF files: released values and public facts, no rows."""

from __future__ import annotations

import json
from dataclasses import asdict
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

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
from dpmodels.released import Card, MomentNoise, MomentsRelease
from dpmodels.results.call import PCACall

if TYPE_CHECKING:
    from dpmodels.results.pca import PCAResult

FORMAT = "dpmodels.pca/1"

_GUARANTEES = {kind.__name__: kind for kind in (PureDP, ApproxDP, ZCDP)}
_EVENTS = {
    kind.__name__: kind for kind in (GaussianEvent, LaplaceEvent, BoundedRangeEvent, PureEvent)
}
_WORDS = (
    *("formula", "names", "row_norm", "worst_case", "center", "scale"),
    *("ncomp", "ledger", "reason"),
)
_ARRAYS = ("lower", "upper", "origin", "divisor")


def write_pca(fit: PCAResult, path: str | PathLike[str]) -> None:
    """Write a fit; what is read back prints the same tables."""
    call, release = fit.call, fit.release
    arrays: dict[str, Any] = {name: ("variable", getattr(call, name)) for name in _ARRAYS}
    arrays["second"] = (("variable", "variable_"), release.second)
    if release.total is not None:
        arrays["total"] = ("variable", release.total)
    plain = {
        "call": {
            **{name: getattr(call, name) for name in _WORDS},
            "codebook": call.codebook.to_dict(),
        },
        "release": {
            "count": release.count,
            "rows": release.rows,
            "noise": asdict(release.noise),
            "card": asdict(release.card),
            "guarantee": [type(release.guarantee).__name__, asdict(release.guarantee)],
            "adjacency": release.adjacency.name,
            "events": [[type(event).__name__, asdict(event)] for event in release.events],
            "simulated": release.simulated,
        },
    }
    attributes = {"format": FORMAT, "facts": json.dumps(plain)}
    dataset = xr.Dataset(arrays, attrs=attributes)
    dataset.to_netcdf(Path(path), engine="scipy")


def read_pca(path: str | PathLike[str]) -> tuple[PCACall, MomentsRelease]:
    """Read what :func:`write_pca` wrote.

    Raises
    ------
    FrameError
        If the file is missing or is not such a file.
    """
    try:
        with xr.open_dataset(Path(path), engine="scipy") as opened:
            dataset = opened.load()
        written = dataset.attrs["format"]
        plain = json.loads(dataset.attrs["facts"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise FrameError(
            f"{str(path)!r} cannot be read as a saved result ({type(error).__name__}); expected a "
            "file written by fit.save(path)"
        ) from None
    if written != FORMAT:
        raise FrameError(f"{str(path)!r} has the format {written!r}; this version reads {FORMAT!r}")
    arrays = {name: np.asarray(dataset[name].values, dtype=np.float64) for name in dataset}
    return _call(plain["call"], arrays), _release(plain["release"], arrays)


def _call(plain: dict[str, Any], arrays: dict[Any, Any]) -> PCACall:
    plain = {**plain, "codebook": Codebook.from_dict(plain["codebook"])}
    plain["names"] = tuple(plain["names"])
    return PCACall(**plain, **{name: arrays[name] for name in _ARRAYS})


def _release(plain: dict[str, Any], arrays: dict[Any, Any]) -> MomentsRelease:
    kind, words = plain["guarantee"]
    noise = MomentNoise(**plain["noise"])
    return MomentsRelease(
        count=plain["count"],
        total=arrays.get("total"),
        second=arrays["second"],
        noise=noise,
        rows=plain["rows"],
        card=Card(**plain["card"]),
        guarantee=_GUARANTEES[kind](**words),
        adjacency=adjacency(plain["adjacency"]),
        events=tuple(_EVENTS[name](**own) for name, own in plain["events"]),
        simulated=plain["simulated"],
    )
