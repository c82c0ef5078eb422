"""Linear regressions in files."""

from __future__ import annotations

import math
from dataclasses import asdict

from dpmodels.codebook import Numeric
from dpmodels.errors import FrameError
from dpmodels.released import MomentsRelease
from dpmodels.results.call import MomentsCall
from dpmodels.results.lm_fit import LinearModel
from dpmodels.results.netcdf import Saved
from dpmodels.results.store import moments_bytes, moments_of

LM = "dpmodels.lm/1"


def lm_bytes(call: MomentsCall, release: MomentsRelease, model: LinearModel) -> bytes:
    """Return the file of a regression; what is read back prints the same tables."""
    return moments_bytes(call, release, LM, {"model": asdict(model)}, read_lm)


def read_lm(saved: Saved) -> tuple[MomentsCall, MomentsRelease, LinearModel]:
    """Read what :func:`lm_bytes` wrote."""
    call, release, own = moments_of(saved, {"model": LinearModel})
    model: LinearModel = own["model"]
    if release.total is None or not all(map(math.isfinite, asdict(release.noise).values())):
        raise FrameError("array 'total', release.noise: a regression needs both, without nan")
    if model.weights is not None and not isinstance(call.codebook.get(model.weights), Numeric):
        raise FrameError("release.model.weights: expected a number of the codebook")
    return call, release, model
