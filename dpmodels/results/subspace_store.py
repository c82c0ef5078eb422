"""A released space in a netCDF file."""

from __future__ import annotations

from os import PathLike
from typing import Any

from dpmodels.released import SubspaceRelease
from dpmodels.results.call import MomentsCall
from dpmodels.results.store import Saved, asked, terms, write_saved

SUBSPACE = "dpmodels.subspace/1"

_NUMBERS = ("variance_sd", "count", "ordered", "limit", "expected_loss")


def write_subspace(call: MomentsCall, release: SubspaceRelease, path: str | PathLike[str]) -> None:
    """Write a fit; what is read back prints the same tables."""
    arrays: dict[str, Any] = {"frame": (("variable", "component"), release.frame)}
    if release.variances is not None:
        arrays["variances"] = ("component", release.variances)
    own = {name: getattr(release, name) for name in _NUMBERS}
    write_saved(call, release, own, arrays, path, SUBSPACE)


def read_subspace(saved: Saved) -> tuple[MomentsCall, SubspaceRelease]:
    """Read what :func:`write_subspace` wrote."""
    plain, arrays = saved.facts["release"], saved.arrays
    release = SubspaceRelease(
        frame=arrays["frame"],
        variances=arrays.get("variances"),
        **{name: plain[name] for name in _NUMBERS},
        **terms(saved),
    )
    return asked(saved), release
