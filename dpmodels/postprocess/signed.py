"""Shrink the eigenvalues of a noisy symmetric matrix whose truth may have either sign.

As :mod:`dpmodels.postprocess.denoise`, for what is left of a released matrix after a guess of it
was taken off: the truth is near zero, not positive.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from dpmodels.postprocess.stein import (
    OUTLIER_PRICE,
    VARIANCE,
    Estimate,
    Stein,
    isotonic,
    pool,
    stein,
)
from dpmodels.typing import Floats

# A choice: how much a divergence counts against the isotonic values, which follow the noise.
CAUTION = 2.0


def denoise_signed(matrix: Floats, off: float, rule: str | None = "auto") -> Floats:
    """Return a matrix with the same eigenvectors and eigenvalues shrunk towards zero.

    `off` is the noise sd off the diagonal, √2 times as large on it. Rules are those of
    :func:`dpmodels.postprocess.denoise_values`, but symmetric in sign: "auto" mixes "outliers of
    either sign, and zero for the rest" with Stein's isotonised values; "invariant" takes the
    latter; "spiked" is ``sign(y) √(y² - 4s²)``. Any other returns the matrix as it is.
    """
    shrink = RULES.get(rule or "")
    if shrink is None or off == 0:
        return matrix
    values, vectors = np.linalg.eigh(matrix)
    shrunk = off * shrink(values[::-1] / off)[::-1]
    product = (vectors * shrunk) @ vectors.T
    return np.asarray((product + product.T) / 2)


def outliers(values: Floats, spectrum: Stein) -> Estimate:
    """Average the models "k outliers of either sign, and zero for all the rest".

    Outliers, the largest in size first, keep their Stein values; each k weighs as in
    :func:`dpmodels.postprocess.stein.plateau`.
    """
    order = np.argsort(-np.abs(values), kind="stable")
    slopes = 1 + spectrum.stiffness.sum(axis=1)
    steps = (2 * VARIANCE * slopes - spectrum.values**2)[order]
    risk = np.concatenate([[0.0], np.cumsum(steps)])
    weights = np.exp(-(risk - risk.min()) / (4 * VARIANCE) - OUTLIER_PRICE * np.arange(len(risk)))
    weights /= weights.sum()
    kept = np.empty(len(values))
    kept[order] = np.cumsum(weights[::-1])[::-1][1:]
    return Estimate(kept * spectrum.values, float(kept @ slopes))


def _auto(values: Floats) -> Floats:
    """Mix outliers and isotonic values by their estimated risk."""
    spectrum = stein(values)
    simple, rough = outliers(values, spectrum), isotonic(spectrum, -math.inf)
    step = rough.values - simple.values
    length = float(step @ step)
    if length == 0:
        return simple.values
    gain = float(step @ (spectrum.values - simple.values))
    gain -= CAUTION * VARIANCE * (rough.divergence - simple.divergence)
    mixed = simple.values + min(max(gain / length, 0.0), 1.0) * step
    return np.concatenate([np.full(b - a, mixed[a:b].mean()) for a, b in pool(mixed)])


def _invariant(values: Floats) -> Floats:
    return isotonic(stein(values), -math.inf).values


def _spiked(values: Floats) -> Floats:
    return np.sign(values) * np.sqrt(np.maximum(values**2 - 4 * len(values), 0))


# Eigenvalues in units of the noise and in falling order, in and out.
RULES: dict[str, Callable[[Floats], Floats]] = {
    "auto": _auto,
    "invariant": _invariant,
    "spiked": _spiked,
}
