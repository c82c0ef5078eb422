"""Reading a noisy spectrum: noise floor, debiased eigenvalues, cosines, intervals.

All of it is post-processing of one released symmetric matrix whose noise law
is known. ``y`` are released eigenvalues, ``V`` released eigenvectors and
``v_ij`` the noise variance of the entry (i, j) in the basis ``V``, so that
``√v_ii`` is the noise sd of ``y_i``.

References
----------
.. [1] Benaych-Georges, F. and Nadakuditi, R. R. (2011). "The eigenvalues and
   eigenvectors of finite, low rank perturbations of large random matrices."
   Advances in Mathematics 227(1), 494-521.
.. [2] Lawley, D. N. (1956). "Tests of significance for the latent roots of
   covariance and correlation matrices." Biometrika 43, 128-136.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import ive, ndtri

from dpmodels.postprocess import Covariance, Eigen

Floats = NDArray[np.float64]

# 95 % quantile of the Tracy-Widom law for real symmetric matrices.
TRACY_WIDOM_95 = 0.9793
# Above this multiple of the bulk's edge the second-order correction holds.
FAR = 1.3


@dataclass(frozen=True)
class Spectrum:
    """What the noise leaves to be said about each component.

    Attributes
    ----------
    values : ndarray, shape (components,)
        Released eigenvalues, largest first.
    pair_variance : ndarray, shape (components, components)
        Noise variance ``v_ij`` in the eigenvector basis.
    count_sd : ndarray, shape (components,)
        Noise sd each eigenvalue owes to the noisy number of rows.
    bulk : float
        Radius ``s`` of the noise spectrum: pure noise fills [-2s, 2s].
    floor : float
        95 % quantile of the largest eigenvalue of pure noise; a component
        below it is not distinguishable from noise.
    """

    values: Floats
    pair_variance: Floats
    count_sd: Floats
    bulk: float
    floor: float

    @property
    def sd(self) -> Floats:
        """Noise standard deviation of each eigenvalue, shape (components,)."""
        return np.sqrt(np.diagonal(self.pair_variance) + self.count_sd**2)

    @property
    def distinct(self) -> NDArray[np.bool_]:
        """Whether each component stands above the noise floor."""
        return self.values > self.floor

    def debiased(self) -> Floats:
        """Return the eigenvalues before noise, nan at or below the floor.

        A spike ``ℓ`` above noise of radius ``s`` is released near
        ``y = ℓ + s²/ℓ``; solved for ``ℓ``.
        """
        y = np.where(self.distinct, self.values, np.nan)
        return np.asarray((y + np.sqrt(y**2 - 4 * self.bulk**2)) / 2)

    def expected_cos2(self) -> Floats:
        """Return the expected squared cosine with the non-private component.

        Notes
        -----
        A pair of components at released distance ``g`` is turned by an angle
        whose double has, given ``g``, the von Mises law of concentration
        ``κ = gδ/(4v)``, ``δ² = g² - 8v`` estimating the squared distance
        before noise; its expected squared sine is ``P = ½(1 - I₁(κ)/I₀(κ))``.
        Pairs combine as ``1/(1 + Σ P/(1 - P))``, which for one spike above a
        noise bulk is the limit ``1 - s²/ℓ²`` of [1]_. Below the floor: nan.
        """
        gaps = np.abs(self.values[:, None] - self.values[None, :])
        variance = np.maximum(self.pair_variance, np.finfo(float).tiny)
        kappa = gaps * np.sqrt(np.maximum(gaps**2 - 8 * variance, 0)) / (4 * variance)
        turned = np.where(kappa < 1e6, (1 - ive(1, kappa) / ive(0, kappa)) / 2, 1 / (4 * kappa + 1))
        np.fill_diagonal(turned, 0.0)
        return np.where(self.distinct, 1 / (1 + (turned / (1 - turned)).sum(axis=1)), np.nan)

    def captured(self) -> Floats:
        """Return the non-private variance along each released component, unbiased.

        By Stein's identity ``y_i - 2 Σ_j v_ij / (y_i - y_j)``; over all
        components it adds up to the released trace.
        """
        return self.values - 2 * self._repulsion()

    def _repulsion(self) -> Floats:
        """Return ``Σ_j v_ij / (y_i - y_j)`` over the pairs that are apart."""
        gaps = self.values[:, None] - self.values[None, :]
        apart = np.abs(gaps) > np.sqrt(self.pair_variance / 2)
        np.fill_diagonal(apart, False)
        terms = np.divide(self.pair_variance, gaps, out=np.zeros_like(gaps), where=apart)
        return np.asarray(terms.sum(axis=1))

    def noise_interval(self, level: float = 0.95) -> tuple[Floats, Floats]:
        """Return intervals for the non-private eigenvalues of these rows.

        Parameters
        ----------
        level : float
            Coverage, in (0, 1).

        Returns
        -------
        lower, upper : ndarray, shape (components,)
            Second-order corrected normal intervals where the eigenvalue is
            above 1.3 times the noise edge, Weyl's (wider) between there and
            the floor, nan below the floor. Privacy noise only.
        """
        width = float(ndtri((1 + level) / 2))
        far = self.values > FAR * 2 * self.bulk
        middle = np.where(far, self.values - self._repulsion(), self.values)
        weyl = np.hypot(self.floor, width * self.count_sd)
        half = np.where(far, width * self.sd, weyl)
        lower = np.where(self.distinct, middle - half, np.nan)
        return np.maximum(lower, 0.0), np.where(self.distinct, middle + half, np.nan)

    def confidence_interval(self, rows: float, level: float = 0.95) -> tuple[Floats, Floats]:
        """Return intervals for the population's eigenvalues: noise and sampling.

        Parameters
        ----------
        rows : float
            Number of rows.
        level : float
            Coverage, in (0, 1).

        Notes
        -----
        Subtracts Lawley's bias [2]_ and adds the sampling variance ``2ℓ²/n``
        of near-Gaussian rows; nan where the noise interval is not the
        second-order one.
        """
        width = float(ndtri((1 + level) / 2))
        far = self.distinct & (self.values > FAR * 2 * self.bulk)
        spike = np.where(far, self.debiased(), np.nan)
        others = np.where(np.isnan(spike), np.maximum(self.values, 0), spike)
        gaps = spike[:, None] - others[None, :]
        apart = np.abs(gaps) > np.sqrt(self.pair_variance / 2)
        np.fill_diagonal(apart, False)
        ratios = np.divide(others[None, :], gaps, out=np.zeros_like(gaps), where=apart)
        middle = self.values - self._repulsion() - spike / rows * ratios.sum(axis=1)
        half = width * np.sqrt(self.sd**2 + 2 * spike**2 / rows)
        return np.maximum(middle - half, 0.0), middle + half


def read_spectrum(cov: Covariance, decomposed: Eigen) -> Spectrum:
    """Bring the noise law of a released matrix into its own eigenvector basis.

    Parameters
    ----------
    cov : Covariance
        The released matrix and its noise scales.
    decomposed : Eigen
        Its eigenvalues and eigenvectors.
    """
    size = len(decomposed.values)
    weighted = decomposed.vectors / cov.divisor[:, None]
    gram = weighted.T @ weighted
    along = cov.mean @ weighted
    lengths = np.diagonal(gram)
    variance = cov.noise.off**2 * (np.outer(lengths, lengths) + gram**2)
    turned = np.outer(along**2, lengths)
    variance += cov.noise.mean**2 * (turned + turned.T + 2 * np.outer(along, along) * gram)
    count_sd = np.zeros(size)
    if np.all(cov.divisor == 1.0):
        count_sd = np.abs(decomposed.values - along**2) * cov.noise.count
    else:
        _normalised(variance, cov, decomposed, weighted)
    inverse = 1 / cov.divisor**2
    bulk = cov.noise.off * math.sqrt(inverse.max() * inverse.sum())
    by_mean = cov.noise.mean * math.sqrt(inverse.sum()) * float(np.linalg.norm(cov.mean / cov.divisor))
    spike = max(bulk, by_mean)
    floor = spike + bulk**2 / spike + TRACY_WIDOM_95 * bulk * size ** (-2 / 3)
    return Spectrum(decomposed.values, variance, count_sd, bulk, floor)


def _normalised(variance: Floats, cov: Covariance, decomposed: Eigen, weighted: Floats) -> None:
    """Correct the eigenvalues' variances for the noise in a correlation's divisors.

    To first order ``dλ = uᵀEu - λ Σ v_i² E_ii / D_i²`` with ``u = v / D``.
    """
    values, squares = decomposed.values, decomposed.vectors**2 / cov.divisor[:, None] ** 2
    diagonal = cov.noise.diagonal**2 + 4 * (cov.mean * cov.noise.mean) ** 2
    own = values**2 * (diagonal[:, None] * squares**2).sum(axis=0)
    shared = values * (diagonal[:, None] * squares * weighted**2).sum(axis=0)
    corrected = np.diagonal(variance) + own - 2 * shared
    np.fill_diagonal(variance, np.maximum(corrected, 0.0))
