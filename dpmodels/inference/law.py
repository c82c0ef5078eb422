"""The noise law of a released matrix: of its entries and means, and in its eigenvector basis."""

from __future__ import annotations

import math

import numpy as np

from dpmodels.inference.spectrum import Spectrum
from dpmodels.postprocess import Covariance, Eigen
from dpmodels.typing import Floats


def read_spectrum(cov: Covariance, decomposed: Eigen) -> Spectrum:
    """Bring the noise law of a released matrix into its own eigenvector basis.

    To first order the noise of ``D⁻¹(S - m mᵀ)D⁻¹`` is ``D⁻¹ E D⁻¹`` with ``E = G - m eᵀ - e mᵀ``
    for noise ``G`` in S and ``e`` in m, less ``½(δR + Rδ)``, ``δ = diag(E)/D²``, where D is
    released too; an error of the relative size ``c`` in the number of rows adds ``-c(S - 2m mᵀ)``.
    """
    values, vectors = decomposed.values, decomposed.vectors
    weighted = vectors / cov.divisor[:, None]
    gram = weighted.T @ weighted
    along = cov.mean @ weighted
    lengths = np.diagonal(gram)
    variance = cov.noise.off**2 * (np.outer(lengths, lengths) + gram**2)
    squares = weighted**2
    variance += (cov.noise.diagonal**2 - 2 * cov.noise.off**2) * (squares.T @ squares)
    turned = np.outer(along**2, lengths)
    variance += cov.noise.mean**2 * (turned + turned.T + 2 * np.outer(along, along) * gram)
    by_count = along**2 - values
    if cov.standardised:
        variance = _standardised(variance, cov, decomposed, along)
        by_count = along**2 - values * ((cov.mean / cov.divisor) ** 2 @ vectors**2)
    return Spectrum(
        values,
        variance,
        np.abs(by_count) * cov.noise.count,
        _entry_sd(variance, cov),
    )


def _standardised(variance: Floats, cov: Covariance, decomposed: Eigen, along: Floats) -> Floats:
    """Take off what the released divisors share with the matrix they divide.

    The diagonal of a correlation matrix has no noise; eigenvectors ``v_i, v_j`` see
    ``½(λ_i + λ_j) Σ_k v_ik v_jk δ_k`` less of it. Weak columns are divided by a bound, which shares
    nothing.
    """
    vectors, squares = decomposed.vectors, decomposed.vectors**2
    half = (decomposed.values[:, None] + decomposed.values[None, :]) / 2
    diagonal = np.where(cov.weak, 0.0, cov.noise.diagonal / cov.divisor**2) ** 2
    mean = np.where(cov.weak, 0.0, cov.mean * cov.noise.mean**2 / cov.divisor**3)
    own = squares.T @ ((diagonal + 4 * mean * cov.mean / cov.divisor)[:, None] * squares)
    crossed = along[:, None] * (vectors.T @ (mean[:, None] * squares))
    shared = squares.T @ (diagonal[:, None] * squares) + 2 * (crossed + crossed.T)
    return np.maximum(variance + half**2 * own - 2 * half * shared, 0.0)


def _entry_sd(variance: Floats, cov: Covariance) -> float:
    """Return the root mean square noise sd off the diagonal; of one column ``√½`` its own."""
    size = len(variance)
    if size == 1:
        return math.sqrt(float(variance[0, 0]) / 2)
    off = float(variance.sum() - (cov.diagonal_sd**2).sum())
    return math.sqrt(max(off, 0.0) / (size * (size - 1)))


def entry_sd(cov: Covariance) -> Floats:
    """Return the noise sd of each entry of a released matrix, to first order.

    Shape (columns, columns); nan where the noise has no known law, 0 on the diagonal of a
    correlation matrix, but for weak columns.

    In units of D⁻¹, with ``g`` the noise in the second moment, ``ε`` that of the mean ``μ`` and
    ``r`` the relative one of the number of rows, the entry ``R_ij`` has the noise
    ``g_ij - μ_i ε_j - μ_j ε_i + r(μ_i μ_j - R_ij)``, less ``½R_ij`` times the same of ``R_ii`` and
    of ``R_jj`` where their released roots were divided by: the delta method. Columns without any
    variance and noise have divisors near 0, whose squares may leave the range of numbers; that is
    not told.
    """
    with np.errstate(all="ignore"):
        return _first_order(cov)


def _first_order(cov: Covariance) -> Floats:
    shared = np.where(cov.standardised & ~cov.weak, 1.0, 0.0)
    unit = np.outer(cov.divisor, cov.divisor)
    taken, halved = cov.mean / cov.divisor, cov.matrix / 2
    mean = cov.noise.mean / cov.divisor
    diagonal = shared * cov.noise.diagonal / cov.divisor**2
    own = mean[:, None] * (2 * halved * (shared * taken)[:, None] - taken[None, :])
    spread = halved * diagonal[:, None]
    by_rows = (halved * (shared * (1 - taken**2))[:, None]) * cov.noise.count
    by_count = (np.outer(taken, taken) - cov.matrix) * cov.noise.count
    variance = (cov.noise.off / unit) ** 2 + own**2 + own.T**2 + spread**2 + spread.T**2
    sd = np.sqrt(variance + (by_count + by_rows + by_rows.T) ** 2)
    alone = np.sqrt(cov.variance_sd**2 / np.diagonal(unit) ** 2 + np.diagonal(by_count) ** 2)
    np.fill_diagonal(sd, np.where(shared == 1, 0.0, alone))
    return sd


def mean_sd(cov: Covariance) -> Floats:
    """Return the noise sd of each released mean, to first order, shape (columns,).

    An error of the relative size ``r`` in the number of rows adds ``-rm`` to the mean ``m``.
    """
    return np.hypot(cov.noise.mean, cov.mean * cov.noise.count)
