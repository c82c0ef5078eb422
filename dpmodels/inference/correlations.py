"""The law of a correlation, or a partial one, from noisy moments.

With the residuals of two columns on the others, ``g = t - Tθ`` as of
:mod:`dpmodels.inference.least_squares`, the noise in their squares and product is ``gᵀ E g`` to
first order, as θ is where they are least, and ``-(T'E g)ᵀ G⁻¹ (T'E g)`` to second, whose mean is
taken off. A correlation ρ of the exact moments is where ``s_xy - ρ √(s_xx s_yy)`` is 0; those that
noise leaves possible are Fieller's interval of it, which needs no division by a noisy ``s_xx``
[1]_. Sampling errors are those of Fisher's z [2]_. Both errors are put together by their own
intervals, root of the sum of squared lengths on each side [3]_: without noise that is Fisher's
interval, without sampling Fieller's. The test of 0 is Student's, with the noise in the variance.

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

import numpy as np
from scipy.special import ndtri, stdtr

from dpmodels.postprocess.covariance import WEAK
from dpmodels.postprocess.solve import SEARCHED, NormalEquations
from dpmodels.typing import Floats

# Below this many degrees of freedom Fisher's z has no variance.
LEAST = 1.0


@dataclass(frozen=True)
class Correlation:
    """A correlation with noise: `square`, `cross` and `slope` make its variance at ρ.

    ``noise_variance(ρ) = square - 2 ρ cross + ρ² slope`` is that of the noise in ``r - ρ``;
    `freedom` are the degrees of freedom of sampling. nan where it is not identified.
    """

    estimate: float
    square: float
    cross: float
    slope: float
    freedom: float

    @property
    def told(self) -> bool:
        """Whether both variances stand clear of their noise."""
        return math.isfinite(self.estimate)

    def noise_variance(self, rho: float) -> float:
        """Return the variance of the noise in the estimate where the exact correlation is ρ."""
        return max(self.square - 2 * rho * self.cross + rho**2 * self.slope, 0.0)

    @property
    def noise_sd(self) -> float:
        """Noise sd of the estimate, to first order."""
        return math.sqrt(self.noise_variance(self.estimate)) if self.told else math.nan

    @property
    def test(self) -> tuple[float, float, float]:
        """Statistic, degrees of freedom and two-sided p-value of a correlation of 0.

        Of the variance of the statistic the sampling part alone is an estimate.
        """
        if not self.told or self.freedom < LEAST:
            return math.nan, math.nan, math.nan
        own = (1 - self.estimate**2) / self.freedom
        whole = self.square + own
        if whole <= 0:
            return math.copysign(math.inf, self.estimate), self.freedom, 0.0
        freedom = self.freedom * (whole / own) ** 2 if own > 0 else math.inf
        statistic = self.estimate / math.sqrt(whole)
        freedom = min(freedom, 1e9)
        return statistic, freedom, float(2 * stdtr(freedom, -abs(statistic)))

    def noise_ends(self, level: float) -> tuple[float, float]:
        """Return what of the exact correlation noise leaves possible, within [-1, 1]."""
        if not self.told:
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
        """Return the interval of the population's correlation, noise and sampling."""
        low, high = self.noise_ends(level)
        if self.freedom <= LEAST or not self.told:
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
    """Return how far Fisher's interval reaches from a correlation on the side of `width`."""
    if abs(rho) >= 1:
        return 0.0
    return abs(math.tanh(math.atanh(rho) + width) - rho)


@dataclass(frozen=True)
class Residuals:
    """Two columns less what the others explain of them.

    `ways`, shape (row entries, 2), are the residuals as combinations of a row's entries, `scatter`,
    shape (2, 2), their squares and product without bias, `spread` the covariance of ``√G⁻¹ T'E g``
    of both.
    """

    equations: NormalEquations
    ways: Floats
    scatter: Floats
    spread: Floats

    def variance(self, weights: Floats) -> float:
        """Return that of the noise in ``Σ w_ab s_ab``, for a symmetric w of shape (2, 2)."""
        first = self.equations.form_sd(self.ways @ weights @ self.ways.T) ** 2
        turned = np.kron(weights, np.eye(len(self.spread) // 2)) @ self.spread
        return first + 2 * max(float(np.trace(turned @ turned)), 0.0)


def residuals(equations: NormalEquations, targets: Floats) -> Residuals:
    """Return what the model's regressors leave of two targets, shape (row entries, 2)."""
    own, gram = equations, equations.gram
    theta = np.linalg.solve(gram, own.regressors.T @ own.whole @ targets)
    ways = targets - own.regressors @ theta
    noise = [_score(own, ways @ way) for way in ((1, 0), (0, 1), (1, 1), (1, -1))]
    cross = (noise[2] - noise[3]) / 4
    values, axes = np.linalg.eigh(gram)
    root = axes / np.sqrt(np.maximum(values, 1e-300))
    blocks = [
        [root.T @ one @ root for one in row] for row in ((noise[0], cross), (cross, noise[1]))
    ]
    given_back = [[float(np.trace(one)) for one in row] for row in blocks]
    return Residuals(own, ways, ways.T @ own.moments @ ways + given_back, np.block(blocks))


def _score(own: NormalEquations, way: Floats) -> Floats:
    return np.asarray(own.regressors.T @ own.score_noise(way) @ own.regressors)


def correlation_of(equations: NormalEquations, targets: Floats, freedom: float) -> Correlation:
    """Return the correlation of two targets given the regressors.

    `targets`, shape (row entries, 2), are combinations of a row's entries. Not identified where a
    variance is less than four of its noise sds, or noise hides a regressor.
    """
    if equations.strength < SEARCHED:
        return UNKNOWN
    own = residuals(equations, targets)
    squares = np.diagonal(own.scatter)
    sds = np.sqrt([own.variance(np.diag(one)) for one in np.eye(2)])
    if not (squares > WEAK * sds).all():
        return UNKNOWN
    unit = np.sqrt(squares)
    scaled = replace(
        own,
        ways=own.ways / unit,
        spread=own.spread / np.kron(np.outer(unit, unit), np.ones_like(equations.gram)),
    )
    product, middle = np.array([[0, 0.5], [0.5, 0]]), np.eye(2) / 2
    square, slope = scaled.variance(product), scaled.variance(middle)
    cross = (scaled.variance(product + middle) - square - slope) / 2
    estimate = float(own.scatter[0, 1] / unit.prod())
    return Correlation(min(max(estimate, -1.0), 1.0), square, cross, slope, freedom)
