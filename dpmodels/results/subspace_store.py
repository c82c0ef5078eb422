"""A released space in a file."""

from __future__ import annotations

import math
from typing import Any

from dpmodels.errors import FrameError
from dpmodels.outside import amount, fields_of, or_nan, quantity
from dpmodels.released import SubspaceRelease
from dpmodels.results.call import MomentsCall
from dpmodels.results.netcdf import Saved
from dpmodels.results.store import CALL, call_bytes, read_call, read_facts

SUBSPACE = "dpmodels.subspace/1"

_NUMBERS = ("variance_sd", "count", "ordered", "limit", "expected_loss")


def subspace_bytes(call: MomentsCall, release: SubspaceRelease) -> bytes:
    """Return the file of a fit; what is read back prints the same tables."""
    arrays: dict[str, Any] = {"frame": (("variable", "component"), release.frame)}
    if release.variances is not None:
        arrays["variances"] = (("component",), release.variances)
    own = {name: getattr(release, name) for name in _NUMBERS}
    return call_bytes(call, release, own, arrays, SUBSPACE, read_subspace)


def read_subspace(saved: Saved) -> tuple[MomentsCall, SubspaceRelease]:
    """Read what :func:`subspace_bytes` wrote."""
    own = {**fields_of(SubspaceRelease, *_NUMBERS), "variance_sd": or_nan(amount)}
    own |= dict.fromkeys(("count", "expected_loss"), or_nan(quantity))
    asked, terms = read_facts(saved, CALL, own)
    shapes: dict[str, tuple[int, ...]] = {"frame": (len(asked["names"]), asked["ncomp"])}
    if "variances" in saved.arrays:
        shapes["variances"] = (asked["ncomp"],)
        if math.isnan(terms["variance_sd"]) or math.isnan(terms["count"]):
            raise FrameError("release: variances were bought, without a number of rows or noise")
    call, arrays = read_call(saved, asked, shapes)
    return call, SubspaceRelease(**terms, **{"variances": None, **arrays})
