"""Coefficients of linear predictors in netCDF files."""

from __future__ import annotations

from dataclasses import asdict
from os import PathLike
from typing import Any

from dpmodels.codebook import Codebook
from dpmodels.released import BoughtCurvature, CoefficientsRelease, MomentNoise
from dpmodels.results.coefficients_call import CoefficientsCall
from dpmodels.results.store import Saved, terms, write_file

GLM, SVM = "dpmodels.glm/1", "dpmodels.svm/1"

_SQUARE = ("column", "column_")
_WORDS = (
    *("formula", "names", "response", "levels", "family", "row_norm", "worst_case"),
    *("scale", "clip", "ledger", "reason"),
)
_NUMBERS = ("ridge", "gradient_sd", "coefficient_sd")
_NOISE = ("bread_noise", "meat_noise")


def write_coefficients(
    call: CoefficientsCall, release: CoefficientsRelease, path: str | PathLike[str], written: str
) -> None:
    """Write a fit of the format given; what is read back prints the same tables."""
    arrays: dict[str, Any] = {
        "matrix": (("coefficient", "column"), call.matrix),
        "coefficients": ("column", release.coefficients),
    }
    own: dict[str, Any] = {name: getattr(release, name) for name in _NUMBERS}
    if release.gradient is not None:
        arrays["gradient"] = ("column", release.gradient)
    if release.curvature is not None:
        arrays["bread"] = (_SQUARE, release.curvature.bread)
        arrays["meat"] = (_SQUARE, release.curvature.meat)
        own |= {name: asdict(getattr(release.curvature, name)) for name in _NOISE}
    asked = {name: getattr(call, name) for name in _WORDS} | {"codebook": call.codebook.to_dict()}
    write_file(asked, release, own, arrays, path, written)


def read_coefficients(saved: Saved) -> tuple[CoefficientsCall, CoefficientsRelease]:
    """Read what :func:`write_coefficients` wrote."""
    asked, plain, arrays = saved.facts["call"], saved.facts["release"], saved.arrays
    words = {name: asked[name] for name in _WORDS}
    words |= {name: tuple(asked[name]) for name in ("names", "levels")}
    call = CoefficientsCall(
        **words, codebook=Codebook.from_dict(asked["codebook"]), matrix=arrays["matrix"]
    )
    curvature = None
    if "bread" in arrays:
        noise = {name: MomentNoise(**plain[name]) for name in _NOISE}
        curvature = BoughtCurvature(arrays["bread"], arrays["meat"], **noise)
    release = CoefficientsRelease(
        coefficients=arrays["coefficients"],
        gradient=arrays.get("gradient"),
        curvature=curvature,
        **{name: plain[name] for name in _NUMBERS},
        **terms(saved),
    )
    return call, release
