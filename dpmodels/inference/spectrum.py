"""Inference from a noisy spectrum: debiased eigenvalues, cosines, intervals.

All of it is post-processing of one released symmetric matrix with a known noise distribution. ``y``
are released eigenvalues, ``V`` released eigenvectors and ``v_ij`` the noise variance of the entry
(i, j) in the basis ``V``, so ``√v_ii`` is the noise sd of ``y_i``. Components that noise makes
indistinguishable form a group, see :func:`dpmodels.inference.spectrum.alike`; all others repel each
other: to second order noise raises ``y_i`` by ``Σ_j v_ij/(y_i - y_j)``, which for one eigenvalue
above a bulk of noise is the limit of [1]_, and rotates its eigenvector by ``Σ_j v_ij/(y_i -
y_j)²``.

.. [1] Benaych-Georges, F. and Nadakuditi, R. R. (2011). "The eigenvalues and eigenvectors of
   finite, low rank perturbations of large random matrices." Advances in Mathematics 227(1),
   494-521.
.. [2] Lawley, D. N. (1956). "Tests of significance for the latent roots of covariance and
   correlation matrices." Biometrika 43, 128-136.
.. [3] Stein, C. M. (1981). "Estimation of the mean of a multivariate normal distribution." Annals
   of Statistics 9(6), 1135-1151.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
from numpy.typing import NDArray
from scipy.special import gammaincinv, ive, ndtr, ndtri

from dpmodels.postprocess import Covariance, Eigen
from dpmodels.typing import Floats

# The noise distribution of a released matrix: by entry, of means, and in its eigenvector basis.


def read_spectrum(cov: Covariance, decomposed: Eigen) -> Spectrum:
    """Transform the noise distribution of a released matrix to its eigenvector basis.

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
    # The root mean square off the diagonal; for one column √½ of its sd.
    size, diagonal = len(values), (cov.diagonal_sd**2).sum()
    off = max(float(variance.sum() - diagonal), 0.0) / max(size * (size - 1), 1)
    entry = math.sqrt(off if size > 1 else float(variance[0, 0]) / 2)
    return Spectrum(values, variance, np.abs(by_count) * cov.noise.count, entry)


def _standardised(variance: Floats, cov: Covariance, decomposed: Eigen, along: Floats) -> Floats:
    """Subtract the noise that the released divisors share with the matrix they divide.

    The diagonal of a correlation matrix has no noise; for eigenvectors ``v_i, v_j`` the noise falls
    by ``½(λ_i + λ_j) Σ_k v_ik v_jk δ_k``. Weak columns are divided by a bound, which shares none.
    """
    vectors, squares = decomposed.vectors, decomposed.vectors**2
    half = (decomposed.values[:, None] + decomposed.values[None, :]) / 2
    diagonal = np.where(cov.weak, 0.0, cov.noise.diagonal / cov.divisor**2) ** 2
    mean = np.where(cov.weak, 0.0, cov.mean * cov.noise.mean**2 / cov.divisor**3)
    diagonal_part = squares.T @ ((diagonal + 4 * mean * cov.mean / cov.divisor)[:, None] * squares)
    crossed = along[:, None] * (vectors.T @ (mean[:, None] * squares))
    shared = squares.T @ (diagonal[:, None] * squares) + 2 * (crossed + crossed.T)
    return np.maximum(variance + half**2 * diagonal_part - 2 * half * shared, 0.0)


@np.errstate(all="ignore")
def entry_sd(cov: Covariance) -> Floats:
    """Return the noise sd of each entry of a released matrix, to first order.

    Shape (columns, columns); nan if the noise distribution is unknown, 0 on the diagonal of a
    correlation matrix except for weak columns.

    In units of D⁻¹, with ``g`` the noise in the second moment, ``ε`` that of the mean ``μ`` and
    ``r`` the relative one of the number of rows, the entry ``R_ij`` has the noise
    ``g_ij - μ_i ε_j - μ_j ε_i + r(μ_i μ_j - R_ij)``, less ``½R_ij`` times the same of ``R_ii`` and
    of ``R_jj`` if their released roots were divided by: the delta method. Columns without any
    variance and noise have divisors near 0, whose squares may underflow; warnings are suppressed.
    """
    shared = np.where(cov.standardised & ~cov.weak, 1.0, 0.0)
    unit = np.outer(cov.divisor, cov.divisor)
    scaled_mean, halved = cov.mean / cov.divisor, cov.matrix / 2
    mean = cov.noise.mean / cov.divisor
    diagonal = shared * cov.noise.diagonal / cov.divisor**2
    by_mean = 2 * halved * (shared * scaled_mean)[:, None] - scaled_mean[None, :]
    mean_terms = mean[:, None] * by_mean
    spread = halved * diagonal[:, None]
    by_rows = (halved * (shared * (1 - scaled_mean**2))[:, None]) * cov.noise.count
    by_count = (np.outer(scaled_mean, scaled_mean) - cov.matrix) * cov.noise.count
    variance = (
        (cov.noise.off / unit) ** 2 + mean_terms**2 + mean_terms.T**2 + spread**2 + spread.T**2
    )
    sd = np.sqrt(variance + (by_count + by_rows + by_rows.T) ** 2)
    diagonal_sd = np.sqrt(cov.variance_sd**2 / np.diagonal(unit) ** 2 + np.diagonal(by_count) ** 2)
    np.fill_diagonal(sd, np.where(shared == 1, 0.0, diagonal_sd))
    return sd


def mean_sd(cov: Covariance) -> Floats:
    """Return the noise sd of each released mean, to first order, shape (columns,).

    An error of the relative size ``r`` in the number of rows adds ``-rm`` to the mean ``m``.
    """
    return np.hypot(cov.noise.mean, cov.mean * cov.noise.count)


# Stands for 0 in divisors; quotients stay finite.
_TINY = 1e-200

# Multiple of the noise bound up to which intervals treat components as a group: a choice.
NEAR = 1.3
# Quantile of the noise that a component must exceed for its loadings to be read: a choice.
CLEAR = 0.999


@dataclass(frozen=True)
class Spectrum:
    """Inference about each component, given the noise.

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
        """Noise sd of each eigenvalue, as if outside of groups, shape (components,).

        Eigenvalues in a group repel each other and vary less.
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
        """Whether each component, and every larger one, is above its noise floor."""
        return np.logical_and.accumulate(self.values > self.floor)

    @property
    def readable(self) -> NDArray[np.bool_]:
        """Whether loadings reflect a component more than noise.

        Its expected squared cosine is at least ½, and noise alone reaches its size in at most one
        release of a thousand.
        """
        everything = np.ones_like(self.pair_variance, dtype=bool)
        clear = self.values > reach_of_noise(self.pair_variance, everything, CLEAR)
        return np.asarray(clear & self.distinct & (np.nan_to_num(self.expected_cos2()) >= 0.5))

    @cached_property
    def alike(self) -> NDArray[np.bool_]:
        """Whether noise makes two components indistinguishable."""
        return alike(self.values, self.pair_variance)

    def debiased(self) -> Floats:
        """Return estimates of the eigenvalues before noise, at least 0, nan up to the floor.

        Groups are contracted to their expected spread before noise.
        """
        mean, signal_fraction = self._contracted()
        middle = mean + np.sqrt(signal_fraction) * (self.values - mean) - self._push()
        return np.where(self.distinct, np.maximum(middle, 0.0), np.nan)

    def captured(self) -> Floats:
        """Return the non-private variance along each released component.

        By Stein's identity [3]_ ``y_i - 2 Σ_j v_ij/(y_i - y_j)`` is unbiased; within a group
        deviations from the group's mean are contracted instead. The sum over all components is the
        released trace.
        """
        mean, signal_fraction = self._contracted()
        return mean + signal_fraction * (self.values - mean) - 2 * self._push()

    def share_sd(self, total: float, total_sd: float) -> Floats:
        """Return the noise sd of ``captured() / total``, shape (components,).

        The noise of the number of rows cancels, and is not part of `total_sd`.
        """
        variances = np.diagonal(self.pair_variance)
        squared = (self.pair_variance * self._inverse_gaps(self.alike)) ** 2
        share = self.captured() / total
        common = total_sd**2 * (share**2 - 2 * share * variances / max(variances.sum(), _TINY))
        variance = np.maximum(variances + 4 * squared.sum(axis=1) + common, 0.0)
        return np.asarray(np.sqrt(variance) / total)

    def expected_cos2(self) -> Floats:
        """Return the expected squared cosine with the non-private component.

        Components outside the group rotate an eigenvector by the sum of ``v_ij/(y_i - y_j)²``. A
        pair inside, at the released distance ``g``, is rotated by an angle. Given ``g`` its double
        has the von Mises distribution with concentration ``κ = gδ/(4v)``, ``δ`` the distance before
        noise; the expected squared sine is ``P = ½(1 - I₁(κ)/I₀(κ))``. Together:
        ``1/(1 + Σ v/g² + Σ P/(1 - P))``. Where ``v`` is 0, as between two standardised columns,
        ``P`` is the probability that noise exchanged the two. Below the floor: nan. For two
        components of any true distance its mean is within 0.13 of the mean squared cosine; no
        increasing function of ``g`` does better than 0.106.
        """
        _, signal_fraction = self._contracted()
        gaps = self.values[:, None] - self.values[None, :]
        variance = np.where(self.alike, np.maximum(self.pair_variance, _TINY), np.inf)
        kappa = np.minimum(gaps**2 * np.sqrt(signal_fraction)[:, None] / (4 * variance), 1e8)
        sine2 = (1 - ive(1, kappa) / ive(0, kappa)) / 2
        # Noise whose variance is 0 but for rounding turns no eigenvector: it may exchange two.
        sd = np.sqrt(np.maximum(np.diagonal(self.pair_variance), _TINY))
        exchanged = ndtr(-np.abs(gaps) / (sd[:, None] + sd[None, :]))
        turns = self.pair_variance > 1e-12 * self.pair_variance.max()
        sine2 = np.where(turns, sine2, exchanged)
        inside = np.where(self.alike, sine2 / (1 - sine2), 0.0)
        np.fill_diagonal(inside, 0.0)
        outside = self.pair_variance * self._inverse_gaps(self.alike) ** 2
        turned = (inside + outside).sum(axis=1)
        return np.where(self.distinct, 1 / (1 + turned), np.nan)

    def noise_interval(self, level: float = 0.95) -> tuple[Floats, Floats]:
        """Return intervals for the non-private eigenvalues of these rows: privacy noise only.

        Normal intervals with a second-order correction for well-separated components; for groups as
        wide as the noise bound of the group (Weyl); nan below the floor.
        """
        return self.confidence_interval(np.zeros_like(self.pair_variance), level)

    def confidence_interval(self, sampling: Floats, level: float = 0.95) -> tuple[Floats, Floats]:
        """Return intervals for the population's eigenvalues: noise and sampling.

        `sampling` bounds the sampling variance of each entry in the eigenvector basis. It biases
        eigenvalues as noise does, by Lawley's formula [2]_; since the variance may be below the
        bound, the interval covers all biases from 0 to the largest.
        """
        variance = self.pair_variance + sampling
        is_close = alike(self.values, variance, NEAR)
        inverse_gaps = self._inverse_gaps(is_close)
        stretched = 1 + (variance * inverse_gaps**2).sum(axis=1)
        width = float(ndtri((1 + level) / 2))
        single = width * np.sqrt(np.diagonal(variance) * stretched + self.count_sd**2)
        reach = reach_of_noise(variance, is_close, level) * np.sqrt(stretched)
        grouped = np.maximum(single, np.hypot(reach, width * self.count_sd))
        half = np.where(is_close.sum(axis=1) > 1, grouped, single)
        middle = self.values - (self.pair_variance * inverse_gaps).sum(axis=1)
        middle = np.where(self.distinct, np.maximum(middle, 0.0), np.nan)
        push = sampling * inverse_gaps
        down, up = np.maximum(push, 0.0).sum(axis=1), np.maximum(-push, 0.0).sum(axis=1)
        return np.maximum(middle - down - half, 0.0), middle + up + half

    def _inverse_gaps(self, together: NDArray[np.bool_]) -> Floats:
        """Return ``1/(y_i - y_j)`` between components of different groups, else 0."""
        gaps = self.values[:, None] - self.values[None, :]
        return np.divide(1.0, gaps, out=np.zeros_like(gaps), where=~together)

    def _push(self) -> Floats:
        return np.asarray((self.pair_variance * self._inverse_gaps(self.alike)).sum(axis=1))

    def _contracted(self) -> tuple[Floats, Floats]:
        """Return each group's mean and the fraction of its spread that is not noise.

        ``m`` equal eigenvalues with noise of variance ``w`` off the diagonal have an expected sum
        of squared deviations of ``(m - 1)(m + 2)w``.
        """
        size = self.alike.sum(axis=1)
        mean = (self.alike * self.values).sum(axis=1) / size
        total = (self.alike * (self.values[None, :] - mean[:, None]) ** 2).sum(axis=1)
        block = ((self.alike @ self.pair_variance) * self.alike).sum(axis=1)
        noise = (size - 1) * (size + 2) * block / (size * (size + 1))
        signal_fraction = np.where(total > noise, 1 - noise / np.where(total > 0, total, 1.0), 0.0)
        return mean, signal_fraction


# Groups of eigenvalues that noise makes indistinguishable, and bounds on noise eigenvalues.

# Probability with which noise stays within its bound: a choice.
LEVEL = 0.95
# Shape, scale and shift of the gamma distribution in `tracy_widom`, from its source.
_SHAPE, _SCALE, _SHIFT = 46.446, 0.186054, 9.84801


def alike(values: Floats, pair_variance: Floats, slack: float = 1.0) -> NDArray[np.bool_]:
    """Return which eigenvalues (largest first) are explained by noise about a common value.

    Starting from all components, a group is split at its widest gap while an eigenvalue lies
    farther from the group's mean than `slack` times the 95 % bound for the noise of equally many
    equal eigenvalues. `pair_variance` is the noise variance of the matrix' entries in the
    eigenvector basis; it and the result have shape (components, components).
    """
    noise = np.maximum(np.diagonal(pair_variance, 1), 1e-200)
    gaps = -np.diff(values) / np.sqrt(noise)
    labels = np.zeros(len(values), dtype=np.intp)
    waiting = [slice(0, len(values))]
    while waiting:
        group = waiting.pop()
        labels[group] = group.start
        spread = np.abs(values[group] - values[group].mean())
        # The noise of the mean cancels: the correction by 1.8 over the number of columns fits
        # simulations with 2 to 50 columns within 2 %.
        size = len(spread)
        entry = np.sqrt(pair_variance[group, group].sum(axis=1) / (size + 1))
        if (spread > slack * (entry * (noise_edge(size, LEVEL) - 1.8 / size))).any():
            cut = group.start + 1 + int(np.argmax(gaps[group.start : group.stop - 1]))
            waiting += [slice(group.start, cut), slice(cut, group.stop)]
    return np.asarray(labels[:, None] == labels[None, :])


def reach_of_noise(
    pair_variance: Floats, together: NDArray[np.bool_], level: float = LEVEL
) -> Floats:
    """Return a quantile of the largest eigenvalue of the noise in each group, shape (components,).

    If the noise differs by direction, as for a mean far from the public centre or for columns
    divided by small standard deviations, a component is compared with the noise in its row. The
    largest noise eigenvalue then exceeds its 95 % quantile in 0 to 5 % of releases, in simulations
    with 1 to 50 columns, means anywhere in the public ball and divisors up to a factor of 10 apart.
    """
    size = together.sum(axis=1)
    entry = np.sqrt((together * pair_variance).sum(axis=1) / (size + 1))
    return np.asarray(entry * noise_edge(size, level))


def tracy_widom(level: float) -> float:
    """Return a quantile of the Tracy-Widom distribution of real symmetric matrices.

    By a shifted gamma distribution [1]_: within 0.01 at 90, 95 and 99 %.

    .. [1] Chiani, M. (2014). "Distribution of the largest eigenvalue for real Wishart and Gaussian
       random matrices and a simple approximation for the Tracy-Widom distribution." Journal of
       Multivariate Analysis 129, 69-81.
    """
    return float(gammaincinv(_SHAPE, level)) * _SCALE - _SHIFT


def noise_edge(size: npt.ArrayLike, level: float) -> Floats:
    """Return a quantile of the largest eigenvalue of Gaussian noise.

    The noise has variance 1 off the diagonal and 2 on it. Centre and scale are those of [1]_, which
    are accurate even for a single column.

    .. [1] Johnstone, I. M. and Ma, Z. (2012). "Fast approach to the Tracy-Widom law at the edge of
       GOE and GUE." Annals of Applied Probability 22(5), 1962-1988.
    """
    columns = np.asarray(size, dtype=np.float64)
    return np.asarray(2 * np.sqrt(columns - 0.5) + tracy_widom(level) * columns ** (-1 / 6))


# The noise of a biplot's arrows: eigenvectors times the roots of their eigenvalues.


def arrow_noise(spectrum: Spectrum, vectors: Floats, pair: tuple[int, int]) -> Floats | None:
    """Return the noise covariances of arrows in the plane of two components, by the delta method.

    `vectors` has the shape (variables, components), the result (variables, 2, 2); None if either
    component is too noisy, or indistinguishable from another. Noise ``E`` in the eigenvectors'
    basis rotates ``v_a`` by ``Σ_j E_ja v_j/(y_a - y_j)`` and changes ``y_a`` by ``E_aa``; a pair
    shares ``E_ab``.
    """
    components = list(pair)
    is_grouped = (spectrum.alike[components].sum(axis=1) > 1).any()
    if is_grouped or not spectrum.readable[components].all():
        return None
    y, v = spectrum.values, spectrum.pair_variance
    squares, noise = vectors**2, np.empty((len(vectors), 2, 2))
    for at, a in enumerate(components):
        gaps = y[a] - y
        inverse_gaps = np.divide(1.0, gaps, out=np.zeros_like(gaps), where=gaps != 0)
        turned = y[a] * (squares @ (v[:, a] * inverse_gaps**2))
        grown = squares[:, a] * (v[a, a] + spectrum.count_sd[a] ** 2) / (4 * y[a])
        noise[:, at, at] = turned + grown
    a, b = components
    shared = -np.sqrt(y[a] * y[b]) * v[a, b] / (y[a] - y[b]) ** 2 * vectors[:, a] * vectors[:, b]
    noise[:, 0, 1] = noise[:, 1, 0] = shared
    return noise


# A spectrum with noise of unknown distribution: no inference.


@dataclass(frozen=True)
class Unread:
    """Eigenvalues of an estimate with an error of unknown distribution.

    It has the interface of :class:`dpmodels.inference.Spectrum` and returns nan: no floor, interval
    or cosine, and no groups. `source` is the spectrum of the unbiased release behind the estimate,
    if its noise distribution is known: as many leading components count as distinct, and as
    readable, as in `source`; without it those with positive eigenvalues.
    """

    values: Floats
    source: Spectrum | None = None

    entry_sd = float("nan")

    @property
    def sd(self) -> Floats:
        """Unknown: nan for each component."""
        return np.full(len(self.values), np.nan)

    floor = sd

    @property
    def distinct(self) -> NDArray[np.bool_]:
        """Whether each component is distinct in `source`."""
        return self._first(None if self.source is None else self.source.distinct)

    @property
    def readable(self) -> NDArray[np.bool_]:
        """Whether each component is readable in `source`."""
        return self._first(None if self.source is None else self.source.readable)

    def _first(self, mask: NDArray[np.bool_] | None) -> NDArray[np.bool_]:
        positive = self.values > 0
        return positive if mask is None else positive & np.logical_and.accumulate(mask)

    @property
    def alike(self) -> NDArray[np.bool_]:
        """No two components are grouped."""
        return np.eye(len(self.values), dtype=bool)

    def debiased(self) -> Floats:
        """Return nan."""
        return self.sd

    expected_cos2 = debiased

    def noise_interval(self, level: float = 0.95) -> tuple[Floats, Floats]:
        """Return nan for both ends."""
        return self.sd, self.sd
