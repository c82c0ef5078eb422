"""Coefficients as a mechanism released them, and the noise that is theirs alone."""

from __future__ import annotations

import math

import numpy as np

from dpmodels.released import CoefficientsRelease
from dpmodels.results.call import CoefficientsCall
from dpmodels.typing import Floats


def released_noise(call: CoefficientsCall, release: CoefficientsRelease) -> Floats | None:
    """Return the noise sds of coefficients about those that the ridge gives these rows.

    In own units, shape (coefficients,); None where the noise has no known law by itself.
    """
    if release.gradient is not None or math.isnan(release.coefficient_sd):
        return None
    return np.asarray(np.linalg.norm(call.matrix, axis=1) * release.coefficient_sd)
