"""Linear regressions in netCDF files."""

from __future__ import annotations

from dataclasses import asdict
from os import PathLike

from dpmodels.released import MomentsRelease
from dpmodels.results.call import MomentsCall
from dpmodels.results.lm_fit import LinearModel
from dpmodels.results.store import Saved, read_moments, write_saved

LM = "dpmodels.lm/1"


def write_lm(
    call: MomentsCall, release: MomentsRelease, model: LinearModel, path: str | PathLike[str]
) -> None:
    """Write a regression; what is read back prints the same tables."""
    arrays = {
        "second": (("variable", "variable_"), release.second),
        "total": ("variable", release.total),
    }
    if release.estimate is not None:
        arrays["estimate"] = (("variable", "variable_"), release.estimate)
    own = {"count": release.count, "noise": asdict(release.noise), "model": asdict(model)}
    write_saved(call, release, own, arrays, path, LM)


def read_lm(saved: Saved) -> tuple[MomentsCall, MomentsRelease, LinearModel]:
    """Read what :func:`write_lm` wrote."""
    call, release = read_moments(saved)
    return call, release, LinearModel(**saved.facts["release"]["model"])
