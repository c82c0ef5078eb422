"""Reading a noisy spectrum: debiased eigenvalues, cosines, intervals.

All of it is post-processing of one released symmetric matrix whose noise law is known. ``y`` are
released eigenvalues, ``V`` released eigenvectors and ``v_ij`` the noise variance of the entry (i,
j) in the basis ``V``, so that ``√v_ii`` is the noise sd of ``y_i``. Components that noise cannot
tell apart are read as a group, see :func:`dpmodels.inference.groups.alike`; all others push each
other: to second order noise raises ``y_i`` by ``Σ_j v_ij/(y_i - y_j)``, which for one eigenvalue
above a bulk of noise is the limit of [1]_, and turns its eigenvector by ``Σ_j v_ij/(y_i - y_j)²``.

.. [1] Benaych-Georges, F. and Nadakuditi, R. R. (2011). "The eigenvalues and eigenvectors of
   finite, low rank perturbations of large random matrices." Advances in Mathematics 227(1),
   494-521.
.. [2] Lawley, D. N. (1956). "Tests of significance for the latent roots of covariance and
   correlation matrices." Biometrika 43, 128-136.
.. [3] Stein, C. M. (1981). "Estimation of the mean of a multivariate normal distribution." Annals
   of Statistics 9(6), 1135-1151.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.special import ive, ndtri

from dpmodels.inference.groups import alike, reach_of_noise
from dpmodels.typing import Floats

# Not 0, and with a quotient that is finite.
_TINY = 1e-200

# A choice: up to this multiple of the reach of noise, intervals treat components as alike.
NEAR = 1.3
# A choice: how often noise stays below where loadings are read.
CLEAR = 0.999


@dataclass(frozen=True)
class Spectrum:
    """What the noise leaves to be said about each component.

    `values` are released eigenvalues, largest first, `pair_variance` the noise variance ``v_ij`` in
    the eigenvector basis, `count_sd` the noise sd each eigenvalue owes to the noisy number of rows,
    `entry_sd` the root mean square noise sd of the matrix' off-diagonal entries.
    """

    values: Floats
    pair_variance: Floats
    count_sd: Floats
    entry_sd: float

    @property
    def sd(self) -> Floats:
        """Noise sd of each eigenvalue that stands alone, shape (components,).

        Eigenvalues in a group push each other and vary less.
        """
        return np.sqrt(np.diagonal(self.pair_variance) + self.count_sd**2)

    @cached_property
    def floor(self) -> Floats:
        """Noise floor of each component, shape (components,).

        95 % quantile of the largest eigenvalue of pure noise; a component at or below its own is
        not distinguishable from noise.
        """
        return reach_of_noise(self.pair_variance, np.ones_like(self.pair_variance, dtype=bool))

    @property
    def distinct(self) -> NDArray[np.bool_]:
        """Whether each component, and every larger one, stands above its noise floor."""
        return np.logical_and.accumulate(self.values > self.floor)

    @property
    def readable(self) -> NDArray[np.bool_]:
        """Whether loadings say more of a component than noise does.

        Its expected cosine is at least ½, and noise alone reaches so far in one release of a
        thousand at most.
        """
        everything = np.ones_like(self.pair_variance, dtype=bool)
        clear = self.values > reach_of_noise(self.pair_variance, everything, CLEAR)
        return np.asarray(clear & self.distinct & (np.nan_to_num(self.expected_cos2()) >= 0.5))

    @cached_property
    def alike(self) -> NDArray[np.bool_]:
        """Whether noise leaves two components indistinguishable from one another."""
        return alike(self.values, self.pair_variance)

    def debiased(self) -> Floats:
        """Return the eigenvalues before noise, at least 0, nan at or below the floor.

        Groups are contracted to the spread they are expected to have had.
        """
        mean, kept = self._contracted()
        middle = mean + np.sqrt(kept) * (self.values - mean) - self._push()
        return np.where(self.distinct, np.maximum(middle, 0.0), np.nan)

    def captured(self) -> Floats:
        """Return the non-private variance along each released component.

        By Stein's identity [3]_ ``y_i - 2 Σ_j v_ij/(y_i - y_j)`` is unbiased; within a group it is
        the deviations from the group's mean that are contracted. Over all components it adds up to
        the released trace.
        """
        mean, kept = self._contracted()
        return mean + kept * (self.values - mean) - 2 * self._push()

    def share_sd(self, total: float, total_sd: float) -> Floats:
        """Return the noise sd of ``captured() / total``, shape (components,).

        The noise of the number of rows cancels, and is not in `total_sd`.
        """
        own = np.diagonal(self.pair_variance)
        squared = (self.pair_variance * self._inverse_gaps(self.alike)) ** 2
        share = self.captured() / total
        common = total_sd**2 * (share**2 - 2 * share * own / max(own.sum(), _TINY))
        variance = np.maximum(own + 4 * squared.sum(axis=1) + common, 0.0)
        return np.asarray(np.sqrt(variance) / total)

    def expected_cos2(self) -> Floats:
        """Return the expected squared cosine with the non-private component.

        Components outside the group turn an eigenvector by the sum of ``v_ij/(y_i - y_j)²``. A pair
        inside, at released distance ``g``, is turned by an angle whose double has, given ``g``, the
        von Mises law of concentration ``κ = gδ/(4v)`` with ``δ`` the distance before noise; its
        expected squared sine is ``P = ½(1 - I₁(κ)/I₀(κ))``. Together:
        ``1/(1 + Σ v/g² + Σ P/(1 - P))``. Below the floor: nan. For two components of any true
        distance its mean is within 0.13 of the mean squared cosine; no increasing function of ``g``
        does better than 0.106.
        """
        _, kept = self._contracted()
        gaps = self.values[:, None] - self.values[None, :]
        variance = np.where(self.alike, np.maximum(self.pair_variance, _TINY), np.inf)
        kappa = np.minimum(gaps**2 * np.sqrt(kept)[:, None] / (4 * variance), 1e8)
        sine2 = (1 - ive(1, kappa) / ive(0, kappa)) / 2
        inside = np.where(self.alike, sine2 / (1 - sine2), 0.0)
        np.fill_diagonal(inside, 0.0)
        outside = self.pair_variance * self._inverse_gaps(self.alike) ** 2
        turned = (inside + outside).sum(axis=1)
        return np.where(self.distinct, 1 / (1 + turned), np.nan)

    def noise_interval(self, level: float = 0.95) -> tuple[Floats, Floats]:
        """Return intervals for the non-private eigenvalues of these rows: privacy noise only.

        Second-order corrected normal intervals for components that stand apart from the others; for
        those that do not, as wide as noise in their group reaches (Weyl); nan below the floor.
        """
        return self.confidence_interval(np.zeros_like(self.pair_variance), level)

    def confidence_interval(self, sampling: Floats, level: float = 0.95) -> tuple[Floats, Floats]:
        """Return intervals for the population's eigenvalues: noise and sampling.

        `sampling` bounds the sampling variance of each entry in the eigenvector basis. It pushes
        eigenvalues as noise does, by Lawley's bias [2]_; but since the bound may not be reached,
        the interval holds all that is between no push and the largest.
        """
        variance = self.pair_variance + sampling
        near = alike(self.values, variance, NEAR)
        apart = self._inverse_gaps(near)
        stretched = 1 + (variance * apart**2).sum(axis=1)
        width = float(ndtri((1 + level) / 2))
        alone = width * np.sqrt(np.diagonal(variance) * stretched + self.count_sd**2)
        reach = reach_of_noise(variance, near, level) * np.sqrt(stretched)
        grouped = np.maximum(alone, np.hypot(reach, width * self.count_sd))
        half = np.where(near.sum(axis=1) > 1, grouped, alone)
        middle = self.values - (self.pair_variance * apart).sum(axis=1)
        middle = np.where(self.distinct, np.maximum(middle, 0.0), np.nan)
        push = sampling * apart
        down, up = np.maximum(push, 0.0).sum(axis=1), np.maximum(-push, 0.0).sum(axis=1)
        return np.maximum(middle - down - half, 0.0), middle + up + half

    def _inverse_gaps(self, together: NDArray[np.bool_]) -> Floats:
        """Return ``1/(y_i - y_j)`` between components of different groups, else 0."""
        gaps = self.values[:, None] - self.values[None, :]
        return np.divide(1.0, gaps, out=np.zeros_like(gaps), where=~together)

    def _push(self) -> Floats:
        """Return how far the components of other groups have raised each eigenvalue."""
        return np.asarray((self.pair_variance * self._inverse_gaps(self.alike)).sum(axis=1))

    def _contracted(self) -> tuple[Floats, Floats]:
        """Return each group's mean and the share of its spread that is not noise.

        ``m`` equal eigenvalues with noise of variance ``w`` off the diagonal have an expected sum
        of squared deviations of ``(m - 1)(m + 2)w``.
        """
        size = self.alike.sum(axis=1)
        mean = (self.alike * self.values).sum(axis=1) / size
        total = (self.alike * (self.values[None, :] - mean[:, None]) ** 2).sum(axis=1)
        block = ((self.alike @ self.pair_variance) * self.alike).sum(axis=1)
        noise = (size - 1) * (size + 2) * block / (size * (size + 1))
        kept = np.where(total > noise, 1 - noise / np.where(total > 0, total, 1.0), 0.0)
        return mean, kept
