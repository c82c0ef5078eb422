"""Coefficients of linear predictors in files."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any, Literal

from dpmodels.errors import FrameError
from dpmodels.outside import amount, fields_of, or_nan
from dpmodels.released import BoughtCurvature, CoefficientsRelease, MomentNoise
from dpmodels.results.coefficients_call import LINKS, CoefficientsCall
from dpmodels.results.netcdf import Saved
from dpmodels.results.store import read_facts, require_noise, result_bytes, take

GLM, SVM = "dpmodels.glm/1", "dpmodels.svm/1"
FAMILIES = {GLM: tuple(LINKS), SVM: ("svm",)}

_SQUARE = ("column", "column_")
_CALL = {
    **fields_of(CoefficientsCall, "formula", "names", "response", "levels", "ledger", "reason"),
    "family": str,
    "scale": Literal["range"] | None,
    **dict.fromkeys(("row_norm", "worst_case"), amount),
    "clip": or_nan(amount),
}
_NUMBERS = ("ridge", "gradient_sd", "coefficient_sd")
_NOISE = ("bread_noise", "meat_noise")


def coefficients_bytes(call: CoefficientsCall, release: CoefficientsRelease, written: str) -> bytes:
    """Return the file of a fit of the format given; what is read back prints the same tables."""
    arrays: dict[str, Any] = {
        "matrix": (("coefficient", "column"), call.matrix),
        "coefficients": (("column",), release.coefficients),
    }
    own: dict[str, Any] = {name: getattr(release, name) for name in _NUMBERS}
    if release.gradient is not None:
        arrays["gradient"] = (("column",), release.gradient)
    bought = release.curvature
    if bought is not None:
        arrays["bread"], arrays["meat"] = (_SQUARE, bought.bread), (_SQUARE, bought.meat)
    own |= {name: None if bought is None else asdict(getattr(bought, name)) for name in _NOISE}
    asked = {name: getattr(call, name) for name in _CALL} | {"codebook": call.codebook.to_dict()}
    return result_bytes(asked, release, own, arrays, written, read_coefficients)


def read_coefficients(saved: Saved) -> tuple[CoefficientsCall, CoefficientsRelease]:
    """Read what :func:`coefficients_bytes` wrote."""
    own = {
        **dict.fromkeys(_NUMBERS, amount),
        "gradient_sd": or_nan(amount),
        **dict.fromkeys(_NOISE, MomentNoise | None),
    }
    asked, terms = read_facts(saved, _CALL, own, shared=False)
    if asked["family"] not in FAMILIES[saved.format]:
        raise FrameError(f"call.family: expected one of {', '.join(FAMILIES[saved.format])}")
    k = len(asked["names"])
    shapes: dict[str, tuple[int, ...]] = {"matrix": (k, k), "coefficients": (k,)}
    laws = [terms.pop(name) for name in _NOISE]
    if "gradient" in saved.arrays:
        shapes["gradient"] = (k,)
    if None not in laws:
        shapes |= {"bread": (k, k), "meat": (k, k)}
    arrays = take(saved, shapes)
    call = CoefficientsCall(**asked, matrix=arrays["matrix"])
    curvature = None
    if None not in laws:
        for name, law in zip(_NOISE, laws, strict=True):
            require_noise(law, f"release.{name}")
        curvature = BoughtCurvature(arrays["bread"], arrays["meat"], *laws)
    release = CoefficientsRelease(
        **terms,
        coefficients=arrays["coefficients"],
        gradient=arrays.get("gradient"),
        curvature=curvature,
    )
    return call, release
