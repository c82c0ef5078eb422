"""The distribution of a correlation, or a partial one, from noisy moments.

With the residuals of two columns on the others, ``g = t - Tθ`` as in
:mod:`dpmodels.inference.least_squares`, the noise in their squares and product is ``gᵀ E g`` to
first order, as θ minimises them, and ``-(T'E g)ᵀ G⁻¹ (T'E g)`` to second, whose mean is
subtracted. A correlation ρ of the exact moments solves ``s_xy - ρ √(s_xx s_yy) = 0``; Fieller's
interval of it accounts for the noise without division by a noisy ``s_xx`` [1]_. Sampling errors are
those of Fisher's z [2]_. Both are combined by the root of the sum of squared half-lengths on each
side [3]_: without noise that is Fisher's interval, without sampling Fieller's. The test of 0 is
Student's, with the noise in the variance.

.. [1] Fieller, E. C. (1954). "Some problems in interval estimation." Journal of the Royal
   Statistical Society B 16, 175-185.
.. [2] Fisher, R. A. (1924). "The distribution of the partial correlation coefficient." Metron 3,
   329-332.
.. [3] Zou, G. Y. (2007). "Toward using confidence intervals to compare correlations."
   Psychological Methods 12, 399-413.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri, stdtr

from dpmodels.postprocess.covariance import WEAK
from dpmodels.postprocess.normal_equations import HELD, SEARCHED, NormalEquations
from dpmodels.typing import Floats


def fourth_moment(variance: Floats, below: Floats, above: Floats) -> Floats:
    """Return the largest ``E t⁴`` of numbers from ``-below`` to ``above`` with mean 0.

    With B the farther and A the nearer end, and any ``e >= A``, ``c = (e - B)/2``, the polynomial
    ``t⁴ - (t + e)(t - B)(t - c)²`` is at least t⁴ on the range and, its cubic term being 0, has the
    expectation ``(3c² + eB)v + eBc²``. It is smallest at ``c = -v/B``, attained by the values c and
    B, or else at ``e = A``. Binary numbers attain it.
    """
    farther, nearer = np.maximum(np.maximum(below, above), 1e-200), np.minimum(below, above)
    clipped = np.clip(variance, 0.0, farther * nearer)
    middle = np.maximum(-clipped / farther, (nearer - farther) / 2)
    end = farther * (farther + 2 * middle)
    return np.asarray((3 * middle**2 + end) * clipped + end * middle**2)


def cut_entries(share: float, reach: Floats, mean: Floats) -> tuple[Floats, Floats]:
    """Return how far below and above covariances of clipped rows those of unclipped rows can be.

    A share of the rows was clipped towards the origin. Columns lie within `reach` of it, and have
    the means `mean`. A product of two columns loses at most ``reach_i reach_j``, a square loses 0
    or more; the mean of a column moves by at most ``share reach_i``.
    """
    mean_shift = share * reach
    shifted = (
        np.outer(mean, mean_shift) + np.outer(mean_shift, mean) + np.outer(mean_shift, mean_shift)
    )
    lost = share * np.outer(reach, reach)
    return shifted + np.where(np.eye(len(reach)), 0.0, lost), shifted + lost


def cut_eigenvalues(share: float, reach: Floats, mean: Floats) -> tuple[float, float]:
    """Return the same for every eigenvalue: by Weyl's inequality, from norms of rows."""
    longest, mean_length = (np.array([np.linalg.norm(vector)]) for vector in (reach, mean))
    below, above = cut_entries(share, longest, mean_length)
    return float(below[0, 0]), float(above[0, 0])


def mean_products(fourth: Floats, squares: Floats, mean: Floats, directions: Floats) -> Floats:
    """Bound ``E (a't)² (b't)²`` for directions a and b of rows ``t = y - m``.

    `fourth` bounds ``E y_i² y_j²``, `squares` ``E y_i²``; `directions` has the shape (columns,
    directions). With the constant as a further column, ``a't`` is ``α'(1, y)``, and by Minkowski's
    inequality the root of the expectation is at most ``Σ |α_i| |β_j| √(E z_i² z_j²)``.
    """
    roots = np.ones((len(mean) + 1, len(mean) + 1))
    roots[0, 1:] = roots[1:, 0] = np.sqrt(np.maximum(squares, 0.0))
    roots[1:, 1:] = np.sqrt(np.maximum(fourth, 0.0))
    weights = np.abs(np.vstack([mean @ directions, directions]))
    return np.asarray((weights.T @ roots @ weights) ** 2)


def product_spread(second: Floats, below: Floats, above: Floats) -> tuple[Floats, Floats]:
    """Return the largest variances of products of columns with mean 0, and their derivatives.

    `second` holds the expectations of the products, shape (columns, columns); column i lies from
    ``-below`` to ``above``. The second matrix is the slope of the first by `second`.

    A square ``t_i²`` is at most the square of the farther end, and at most the line ``A_i B_i +
    (B_i - A_i) t_i``, which is positive and meets it at both ends: so the expectation of ``t_i²
    t_j²`` is at most ``R_i² v_j``, and at most ``A_i B_i A_j B_j + (B_i - A_i)(B_j - A_j) s_ij``,
    which binary columns attain.
    """
    variance, reach = np.maximum(np.diagonal(second), 0.0), np.maximum(below, above)
    ends, tilt = below * above, above - below
    slope = np.outer(tilt, tilt)
    lines = np.outer(ends, ends) + slope * second
    by_reach = np.outer(reach**2, variance)
    squared = np.minimum(by_reach, by_reach.T)
    slope = np.where(lines < squared, slope, 0.0)
    spread = np.maximum(np.minimum(lines, squared) - second**2, 0.0)
    squares = np.maximum(fourth_moment(variance, below, above) - variance**2, 0.0)
    np.fill_diagonal(spread, squares)
    np.fill_diagonal(slope, np.divide(squares, variance, out=reach**2, where=variance > 0))
    return spread, slope


# Smallest degrees of freedom at which Fisher's z has a variance.
LEAST = 1.0


@dataclass(frozen=True)
class Correlation:
    """A correlation and its noise variance as a function of the exact correlation ρ.

    ``noise_variance(ρ) = square - 2 ρ cross + ρ² slope`` is that of the noise in ``r - ρ``;
    `freedom` are the degrees of freedom of sampling. nan where it is not identified.
    """

    estimate: float
    square: float
    cross: float
    slope: float
    freedom: float

    @property
    def is_identified(self) -> bool:
        """Whether both variances clearly exceed their noise."""
        return math.isfinite(self.estimate)

    def noise_variance(self, rho: float) -> float:
        """Return the variance of the noise in the estimate where the exact correlation is ρ."""
        return max(self.square - 2 * rho * self.cross + rho**2 * self.slope, 0.0)

    @property
    def noise_sd(self) -> float:
        """Noise sd of the estimate, to first order."""
        return math.sqrt(self.noise_variance(self.estimate)) if self.is_identified else math.nan

    @property
    def test(self) -> tuple[float, float, float]:
        """Statistic, degrees of freedom and two-sided p-value of a correlation of 0.

        Only the sampling part of the statistic's variance is an estimate.
        """
        if not self.is_identified or self.freedom < LEAST:
            return math.nan, math.nan, math.nan
        sampling_variance = (1 - self.estimate**2) / self.freedom
        variance = self.square + sampling_variance
        if variance <= 0:
            return math.copysign(math.inf, self.estimate), self.freedom, 0.0
        statistic = self.estimate / math.sqrt(variance)
        ratio = variance / sampling_variance if sampling_variance > 0 else math.inf
        freedom = min(self.freedom * ratio**2, 1e9)
        return statistic, freedom, float(2 * stdtr(freedom, -abs(statistic)))

    def noise_ends(self, level: float) -> tuple[float, float]:
        """Return an interval of the exact correlation given the noise, within [-1, 1]."""
        if not self.is_identified:
            return -1.0, 1.0
        squared = float(ndtri((1 + level) / 2)) ** 2
        lead = 1 - squared * self.slope
        middle = self.estimate - squared * self.cross
        rest = middle**2 - lead * (self.estimate**2 - squared * self.square)
        if lead <= 0:
            return -1.0, 1.0
        width = math.sqrt(max(rest, 0.0))
        low, high = (middle - width) / lead, (middle + width) / lead
        return min(max(low, -1.0), self.estimate), max(min(high, 1.0), self.estimate)

    def ends(self, level: float) -> tuple[float, float]:
        """Return an interval of the population's correlation, for noise and sampling."""
        low, high = self.noise_ends(level)
        if self.freedom <= LEAST or not self.is_identified:
            return -1.0, 1.0
        width = float(ndtri((1 + level) / 2)) / math.sqrt(self.freedom - 1)
        below, above = (
            max(_fisher(at, sign * width) for at in (self.estimate, end))
            for end, sign in ((low, -1), (high, 1))
        )
        low = self.estimate - math.hypot(self.estimate - low, below)
        high = self.estimate + math.hypot(high - self.estimate, above)
        return max(low, -1.0), min(high, 1.0)


UNKNOWN = Correlation(math.nan, math.nan, math.nan, math.nan, math.nan)


def _fisher(rho: float, width: float) -> float:
    """Return the length of Fisher's interval on the side of `width`."""
    if abs(rho) >= 1:
        return 0.0
    return abs(math.tanh(math.atanh(rho) + width) - rho)


@dataclass(frozen=True)
class Residuals:
    """The residuals of two columns on others.

    `combinations`, shape (row entries, 2), are the residuals in terms of a row's entries,
    `scatter`, shape (2, 2), their bias-corrected squares and product, `spread` the covariance of
    ``√G⁻¹ T'E g`` of both.
    """

    equations: NormalEquations
    combinations: Floats
    scatter: Floats
    spread: Floats

    def variance(self, weights: Floats) -> float:
        """Return the noise variance of ``Σ w_ab s_ab``, for a symmetric w of shape (2, 2)."""
        first = self.equations.form_sd(self.combinations @ weights @ self.combinations.T) ** 2
        weighted = np.kron(weights, np.eye(len(self.spread) // 2)) @ self.spread
        return first + 2 * max(float(np.trace(weighted @ weighted)), 0.0)


def residuals(equations: NormalEquations, targets: Floats) -> Residuals:
    """Return the residuals of two targets, shape (row entries, 2), on the model's regressors."""
    model, gram = equations, equations.gram
    theta = np.linalg.solve(gram, model.regressors.T @ model.whole @ targets)
    combinations = targets - model.regressors @ theta
    noise = [_score(model, combinations @ vector) for vector in ((1, 0), (0, 1), (1, 1), (1, -1))]
    cross = (noise[2] - noise[3]) / 4
    values, axes = np.linalg.eigh(gram)
    root = axes / np.sqrt(np.maximum(values, 1e-300))
    blocks = [
        [root.T @ block @ root for block in row] for row in ((noise[0], cross), (cross, noise[1]))
    ]
    correction = [[float(np.trace(block)) for block in row] for row in blocks]
    scatter = combinations.T @ model.moments @ combinations + correction
    return Residuals(model, combinations, scatter, np.block(blocks))


def _score(equations: NormalEquations, vector: Floats) -> Floats:
    return np.asarray(equations.regressors.T @ equations.score_noise(vector) @ equations.regressors)


def correlation_of(equations: NormalEquations, targets: Floats, freedom: float) -> Correlation:
    """Return the correlation of two targets given the regressors.

    `targets`, shape (row entries, 2), are combinations of a row's entries. Not identified if a
    variance is below four of its noise sds, or noise hides a regressor.
    """
    if equations.strength < SEARCHED:
        return UNKNOWN
    pair = residuals(equations, targets)
    squares = np.diagonal(pair.scatter)
    sds = np.sqrt([pair.variance(np.diag(axis)) for axis in np.eye(2)])
    if not (squares > WEAK * sds).all():
        return UNKNOWN
    unit = np.sqrt(squares)
    scaled = replace(
        pair,
        combinations=pair.combinations / unit,
        spread=pair.spread / np.kron(np.outer(unit, unit), np.ones_like(equations.gram)),
    )
    product, middle = np.array([[0, 0.5], [0.5, 0]]), np.eye(2) / 2
    square, slope = scaled.variance(product), scaled.variance(middle)
    cross = (scaled.variance(product + middle) - square - slope) / 2
    estimate = float(pair.scatter[0, 1] / unit.prod())
    return Correlation(min(max(estimate, -1.0), 1.0), square, cross, slope, freedom)


# Canonical correlations from noisy moments, and intervals of the exact ones.
#
# With both blocks of columns whitened by their released covariances, canonical correlations are the
# singular values ρ of the cross block, and ``±ρ`` and zeros the eigenvalues of the pencil
# ``J - ρ B``, J the cross blocks and B those on the diagonal [1]_. Noise changes an eigenvalue like
# the symmetric matrix ``F = E_J - ρ E_B`` in whitened coordinates:
#
# - by at most its norm, for any other eigenvalues (Weyl). The norm is bounded by twice the root of
#   the largest eigenvalue of ``E F²``, the edge of the noise in eigenvalues of large matrices and
#   above the mean norm of small ones, plus the deviation of one eigenvalue;
# - by ``f_kk + Σ_j f_jk²/(ρ_k - ρ_j)`` to second order, if all others are well separated [2]_. The
#   mean of the second term is subtracted and its variance added.
#
# The second holds if the variate rotates little, ``Σ_j E f_jk²/(ρ_k - ρ_j)² <=`` :data:`TURNED`. If
# noise makes a block singular, a ridge raises it to two edges of its noise; the effect of the ridge
# on the correlations is unknown, and intervals are from 0 to 1.
#
# .. [1] Hotelling, H. (1936). "Relations between two sets of variates." Biometrika 28, 321-377.
# .. [2] Stewart, G. W. and Sun, J. (1990). Matrix Perturbation Theory. Academic Press.

# Largest mean squared rotation of a variate with a well-separated correlation: a choice.
TURNED = 0.05


@dataclass(frozen=True)
class Side:
    """One set of columns; `combinations` are the centred columns in terms of a row's entries."""

    combinations: Floats
    scatter: Floats
    ridge: float
    is_detected: bool

    @cached_property
    def whitening(self) -> Floats:
        """The inverse root of the scatter, ridge included, shape (columns, columns)."""
        values, axes = np.linalg.eigh(self.scatter + self.ridge * np.eye(len(self.scatter)))
        return np.asarray((axes / np.sqrt(values)) @ axes.T)


def side(equations: NormalEquations, constant: Floats, columns: Floats) -> Side:
    """Return a set of columns, with a ridge if noise hides some of their directions."""
    block = replace(equations, regressors=np.column_stack([constant, columns]))
    values = np.linalg.eigvalsh(block.scatter)
    needed = 0.0 if block.strength >= SEARCHED else HELD * block.edge
    is_detected = bool(values[-1] > HELD * block.edge)
    return Side(block.centred, block.scatter, max(needed - float(values[0]), 0.0), is_detected)


@dataclass(frozen=True)
class Canonical:
    """Canonical correlations of two sides, from moments with noise of known distribution.

    `left` and `right`, shape (columns, pairs), are coefficients of the columns; the sums of squares
    of the variates are 1.
    """

    equations: NormalEquations
    sides: tuple[Side, Side]

    @property
    def is_identified(self) -> bool:
        """Whether both sides have a direction that clearly exceeds the noise."""
        return self.sides[0].is_detected and self.sides[1].is_detected

    @property
    def ridged(self) -> bool:
        """Whether a ridge was needed."""
        return any(block.ridge > 0 for block in self.sides)

    @cached_property
    def _whitened(self) -> tuple[Floats, Floats]:
        left, right = (block.combinations @ block.whitening for block in self.sides)
        return left, right

    @cached_property
    def _singular(self) -> tuple[Floats, Floats, Floats]:
        left, right = self._whitened
        u, values, v = np.linalg.svd(left.T @ self.equations.moments @ right)
        return u, values, v.T

    @property
    def correlations(self) -> Floats:
        """The canonical correlations, largest first, at most 1."""
        return np.minimum(self._singular[1], 1.0)

    @property
    def estimates(self) -> Floats:
        """The same without the bias of the noise, where they are well separated."""
        return np.maximum(self.correlations - (0.0 if self.ridged else self._first_order[1]), 0.0)

    @property
    def left(self) -> Floats:
        """Coefficients of the left columns."""
        u, values, _ = self._singular
        return np.asarray(self.sides[0].whitening @ u[:, : len(values)])

    @property
    def right(self) -> Floats:
        """Coefficients of the right columns."""
        _, values, v = self._singular
        return np.asarray(self.sides[1].whitening @ v[:, : len(values)])

    @cached_property
    def _pencil(self) -> tuple[Floats, Floats]:
        u, values, v = self._singular
        pairs, p, q = len(values), len(u), len(v)
        vectors = np.zeros((p + q, p + q))
        half = math.sqrt(0.5)
        for at, sign in ((slice(0, pairs), 1), (slice(pairs, 2 * pairs), -1)):
            vectors[:p, at], vectors[p:, at] = u[:, :pairs] * half, sign * v[:, :pairs] * half
        vectors[:p, 2 * pairs : p + pairs] = u[:, pairs:]
        vectors[p:, p + pairs :] = v[:, pairs:]
        return np.concatenate([values, -values, np.zeros(p + q - 2 * pairs)]), vectors

    def _pair_variance(self, first: int, second: int, rho: float) -> float:
        """Return the variance of the entry of F between two eigenvectors."""
        left, right = self._whitened
        p, vectors = left.shape[1], self._pencil[1]
        x, y = left @ vectors[:p, [first, second]], right @ vectors[p:, [first, second]]
        crossed = np.outer(x[:, 0], y[:, 1]) + np.outer(y[:, 0], x[:, 1])
        within = np.outer(x[:, 0], x[:, 1]) + np.outer(y[:, 0], y[:, 1])
        weights = crossed - rho * within
        return self.equations.form_sd((weights + weights.T) / 2) ** 2

    def edge(self, rho: float) -> float:
        """Return the edge of the noise in eigenvalues of the pencil at ρ."""
        left, right = self._whitened
        by_left, by_right = (self.equations.noise_of(block @ block.T) for block in (left, right))
        cross = -rho * (left.T @ (by_left + by_right) @ right)
        squared = [
            [left.T @ (rho**2 * by_left + by_right) @ left, cross],
            [cross.T, right.T @ (rho**2 * by_right + by_left) @ right],
        ]
        return 2 * math.sqrt(max(float(np.linalg.eigvalsh(np.block(squared))[-1]), 0.0))

    @cached_property
    def _first_order(self) -> tuple[Floats, Floats, Floats, NDArray[np.bool_]]:
        """First-order variance, bias, second-order variance, and whether each is separated."""
        values, terms = self._pencil[0], []
        for k, rho in enumerate(self.correlations):
            rest = np.delete(np.arange(len(values)), k)
            gaps = values[k] - values[rest]
            variances = np.array([self._pair_variance(k, int(j), float(rho)) for j in rest])
            with np.errstate(divide="ignore", invalid="ignore"):
                shares = variances / gaps**2
            first, bias, second = self._pair_variance(k, k, float(rho)), 0.0, 0.0
            is_separate = float(shares.sum()) <= TURNED
            if is_separate:
                bias = float((variances / gaps).sum())
                second = 2 * float((variances * shares).sum())
            terms.append((first, bias, second, float(is_separate)))
        table = np.array(terms, dtype=np.float64).T
        return table[0], table[1], table[2], table[3] > 0

    @property
    def separated(self) -> NDArray[np.bool_]:
        """Whether each correlation is far enough from all others to read its variates."""
        return self._first_order[3]

    @property
    def noise_sd(self) -> Floats:
        """Noise sd of each correlation to first order, as if it were well separated."""
        return np.asarray(np.sqrt(self._first_order[0]))

    def noise_ends(self, level: float) -> Floats:
        """Return intervals of the exact correlations, shape (pairs, 2), within [0, 1]."""
        values = self.correlations
        if self.ridged or not self.is_identified:
            return np.tile([0.0, 1.0], (len(values), 1))
        width = float(ndtri((1 + level) / 2))
        variance, bias, second_variance, is_separate = self._first_order
        edges = np.array([self.edge(float(rho)) for rho in values])
        widest = edges + width * np.sqrt(variance)
        narrow = width * np.sqrt(variance + second_variance)
        middle = values - bias  # 0 where it is not separated
        half = np.where(is_separate, np.minimum(narrow, widest), widest)
        return np.asarray(np.clip(np.column_stack([middle - half, middle + half]), 0.0, 1.0))


def canonical(equations: NormalEquations, left: int) -> Canonical:
    """Return the canonical correlations of the first `left` columns with the others.

    Columns are the terms, and the response as the last.
    """
    columns = np.column_stack([equations.regressors, equations.response])
    constant, first, second = np.split(columns, [1, 1 + left], axis=1)
    pair = side(equations, constant, first), side(equations, constant, second)
    return Canonical(equations, pair)
