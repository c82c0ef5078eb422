"""Saved results of columns, held against their formula."""

from __future__ import annotations

import math
from dataclasses import astuple
from typing import Final

import numpy as np

from dpmodels.errors import FrameError
from dpmodels.formula import Design, design
from dpmodels.formula.response import two_sided
from dpmodels.formula.two_sets import two_sets
from dpmodels.models.linear import levels, of_levels
from dpmodels.results import CCAResult, MomentsResult
from dpmodels.results.call import INTERCEPT, MomentsCall
from dpmodels.results.glm import GLMResult
from dpmodels.results.lm import LMResult
from dpmodels.results.multinomial import MultinomialResult
from dpmodels.results.svm import SVMResult
from dpmodels.variables import Numeric

# Ranges are worked out by functions that may differ in their last bits between machines.
NEAR: Final = 1e-9


def require_columns(call: MomentsCall, own: Design) -> None:
    """Refuse columns that are not those of the formula."""
    if call.names != own.names:
        raise FrameError("call.names: not the columns of the formula")
    for name, ends in (("lower", own.lower), ("upper", own.upper)):
        if not np.allclose(getattr(call, name), ends, rtol=NEAR, atol=0):
            raise FrameError(f"array {name!r}: not the public range of the formula's columns")


def require_centred(result: MomentsResult) -> None:
    """Refuse moments of other columns, or of none that a mean is taken off."""
    call, release = result.call, result.release
    require_columns(call, design(call.formula, call.codebook))
    if release.total is None or not call.center or call.scale != "range":
        raise FrameError("call.center, call.scale: moments are of centred columns by their ranges")


def require_sets(result: CCAResult) -> CCAResult:
    """Refuse moments of columns that are not those of both sides of the formula."""
    call, release = result.call, result.release
    require_columns(call, two_sets(call.formula, call.codebook).joint)
    lawful = all(map(math.isfinite, astuple(release.noise)))
    if release.total is None or not call.center or call.scale != "range" or not lawful:
        raise FrameError("call, release: canonical correlations are of centred columns with noise")
    return result


def require_linear(result: LMResult) -> Design:
    """Return the terms of a regression, or refuse what is not of its formula."""
    call, release, model = result.call, result.release, result.model
    apart = () if model.weights is None else (model.weights,)
    both = two_sided(call.formula, call.codebook, apart=apart)
    require_columns(call, both.joint)
    if model.intercept != both.intercept:
        raise FrameError("model.intercept: not as in the formula")
    if model.weights is not None and not isinstance(call.codebook.get(model.weights), Numeric):
        raise FrameError("model.weights: expected a number of the codebook")
    if release.total is None or not all(map(math.isfinite, astuple(release.noise))):
        raise FrameError("array 'total', release.noise: a regression needs both, without nan")
    return both.terms


def require_coefficients(result: GLMResult | MultinomialResult | SVMResult) -> Design:
    """Return the terms of a linear predictor, or refuse what is not of its formula."""
    call = result.call
    kind = {"svm": SVMResult, "multinomial": MultinomialResult}.get(call.family, GLMResult)
    if not isinstance(result, kind):
        raise FrameError(f"call.family: {call.family!r} is none of such a result")
    asked = of_levels if call.family == "multinomial" else two_sided
    both = asked(call.formula, call.codebook)
    names = (INTERCEPT,) * both.intercept + both.terms.names
    if call.names != names or call.response != both.response.names[0]:
        raise FrameError("call.names, call.response: not those of the formula")
    known = () if call.family == "poisson" else levels(both, call.family)
    if call.levels != known:
        raise FrameError("call.levels: not those of the formula's response")
    tuned = result.release.tuning
    if tuned is not None and result.release.ridge != dict(enumerate(tuned.ridges)).get(
        tuned.chosen
    ):
        raise FrameError("release.tuning: the ridge is not the one that was chosen")
    return both.terms
