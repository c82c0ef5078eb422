"""Stein's unbiased risk estimate for spectral functions of a noisy symmetric matrix.

``Y = A + E`` with E a GOE matrix: independent normal entries of standard deviation 1 off the
diagonal and √2 on it, so that ``E`` is isotropic with variance 2 in Frobenius geometry. For
eigenvalues ``y`` of Y and an estimate with the same eigenvectors and eigenvalues ``φ(y)`` the risk
``‖estimate - A‖²`` has, up to a constant of ``y``, the unbiased estimate

    ``Σ φ_i² - 2 Σ φ_i t_i + 4 Σ ∂φ_i/∂y_i``,  ``t_i = y_i - 2 Σ_{j≠i} 1/(y_i - y_j)``.

``t`` are the Stein values: unbiased for ``v_iᵀ A v_i``, far too rough to be used as they are, and
right in sum over any block of eigenvalues that is apart from the others. Values are in units of the
off-diagonal standard deviation and in falling order throughout.

.. [1] Stein, C. (1986). "Lectures on the theory of estimation of many parameters." Journal of
   Soviet Mathematics 34, 1373-1403.
.. [2] Candès, E. J., Sing-Long, C. A. and Trzasko, J. D. (2013). "Unbiased risk estimates for
   singular value thresholding and spectral estimators." IEEE Transactions on Signal Processing
   61(19), 4643-4657.
.. [3] Leung, G. and Barron, A. R. (2006). "Information theory and mixing least-squares
   regressions." IEEE Transactions on Information Theory 52(8), 3396-3410.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from dpmodels.typing import Floats

# Variance of each isometric coordinate of the noise.
VARIANCE = 2.0
# Eigenvalues closer than this count as one; noise of a continuous law has no ties.
TIE = 1e-8
# A choice: log odds against each further outlier, before the data are seen.
OUTLIER_PRICE = 2.0
# A choice: log odds against the isotonic values, which follow the noise more closely.
ISOTONIC_PRICE = 6.0


@dataclass(frozen=True, slots=True)
class Stein:
    """Stein values and how steeply they move with the eigenvalues.

    The values ``t_i`` add up to the trace; `stiffness` is ``2/(y_i - y_j)²``, zero on the diagonal:
    the slope ``∂t_i/∂y_i`` is one more than the sum of row i.
    """

    values: Floats
    stiffness: Floats


@dataclass(frozen=True, slots=True)
class Estimate:
    """Eigenvalues ``φ_i`` of an estimate and its divergence ``Σ ∂φ_i/∂y_i``.

    Of an average of models the divergence is the average of theirs.
    """

    values: Floats
    divergence: float


def stein(values: Floats) -> Stein:
    """Return the Stein values of eigenvalues in units of the noise."""
    gaps = values[:, None] - values[None, :]
    distance = np.maximum(np.abs(gaps), TIE)
    stiffness = 2 / distance**2
    np.fill_diagonal(stiffness, 0.0)
    return Stein(values - (stiffness * gaps).sum(axis=1), stiffness)


def pool(values: Floats) -> list[tuple[int, int]]:
    """Return the blocks ``[start, stop)`` of the nearest falling sequence.

    The sequence is the mean of each block: adjacent violators are pooled.
    """
    blocks: list[tuple[float, int, int]] = []
    for place, value in enumerate(values.tolist()):
        total, start = value, place
        while blocks and blocks[-1][0] * (place + 1 - start) <= total * (start - blocks[-1][1]):
            total, start = total + blocks[-1][0], blocks[-1][1]
            blocks.pop()
        blocks.append((total, start, place + 1))
    return [(start, stop) for _, start, stop in blocks]


def isotonic(spectrum: Stein, least: float = 0.0) -> Estimate:
    """Return Stein's isotonised values: the nearest falling sequence, 0 from `least` down.

    Pairs inside a pooled block cancel, which leaves nothing to be smoothed.
    """
    values, divergence = np.zeros_like(spectrum.values), 0.0
    for start, stop in pool(spectrum.values):
        mean = float(spectrum.values[start:stop].mean())
        if mean <= least:
            break
        values[start:stop] = mean
        rows = spectrum.stiffness[start:stop]
        divergence += 1 + float(rows[:, :start].sum() + rows[:, stop:].sum()) / (stop - start)
    return Estimate(values, divergence)


def plateau(spectrum: Stein) -> Estimate:
    """Average the models "k outliers, and one level for all the rest".

    Outliers keep their Stein values; the level makes the trace that of the released matrix. Each k
    weighs ``exp(-risk / 4σ²)``, the temperature of [3]_, times ``exp(-2k)``.
    """
    t, stiffness, size = spectrum.values, spectrum.stiffness, len(spectrum.values)
    outliers = np.arange(size)
    alone = np.maximum(t, 0.0)
    slopes = np.where(t > 0, 1 + stiffness.sum(axis=1), 0.0)
    level = np.maximum((t.sum() - _before(t)) / (size - outliers), 0.0)
    across = np.zeros(size)
    across[1:] = np.tril(np.cumsum(stiffness, axis=1), -1).sum(axis=0)[:-1]
    divergence = _before(slopes) + np.where(level > 0, 1 + across / (size - outliers), 0.0)
    risk = 2 * VARIANCE * divergence - _before(alone**2) - (size - outliers) * level**2
    weights = np.exp(-(risk - risk.min()) / (4 * VARIANCE) - OUTLIER_PRICE * outliers)
    weights /= weights.sum()
    inlier = np.cumsum(weights)
    values = (1 - inlier) * alone + np.cumsum(weights * level)
    return Estimate(values, float(weights @ divergence))


def mixture(spectrum: Stein) -> Floats:
    """Mix plateau and isotonic values by their estimated risk.

    The convex combination of least estimated risk and the plateau itself are weighed as the models
    of `plateau` are.
    """
    simple, rough = plateau(spectrum), isotonic(spectrum)
    step = rough.values - simple.values
    length = float(step @ step)
    if length == 0:
        return simple.values
    gain = float(step @ (spectrum.values - simple.values))
    gain -= VARIANCE * (rough.divergence - simple.divergence)
    share = min(max(gain / length, 0.0), 1.0)
    saved = share * (2 * gain - share * length)
    share /= 1 + math.exp(min(ISOTONIC_PRICE - saved / (4 * VARIANCE), 700.0))
    mixed = simple.values + share * step
    return np.concatenate([np.full(b - a, mixed[a:b].mean()) for a, b in pool(mixed)])


def _before(terms: Floats) -> Floats:
    """Return the sum of the terms before each place."""
    return np.asarray(np.cumsum(terms) - terms)
