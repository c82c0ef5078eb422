"""From released moments to a covariance or correlation matrix with its noise, and eigenvectors."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from dpmodels.released import MomentNoise
from dpmodels.typing import Flags, Floats

# Noise sds that a variance must reach to be divided by: a choice.
WEAK = 4.0
# Fraction of the largest variance below which a variance is taken as 0.
NOTHING = 1e-24


@dataclass(frozen=True)
class Covariance:
    """A released symmetric matrix and the distribution of its noise.

    The noise is that of ``matrix = D (S - m mᵀ) D`` to first order, with independent noise in the
    second moment S, in the mean m and in the number of rows. The noise of the second moment about a
    public point m is the same.

    `mean` is the subtracted centre, in the matrix' coordinates before multiplication by D: the
    noisy mean, or a public point. `count` is the number of rows the moments were divided by, at
    least 1; the standard deviations of `noise` are relative to it for ``count``, the others in the
    coordinates of `mean` and of S. `divisor` is D⁻¹: ones, standard deviations for a correlation
    matrix (then `standardised`), or public units. The variance of `weak` columns is too noisy to
    divide by.
    """

    matrix: Floats
    mean: Floats
    count: float
    noise: MomentNoise
    divisor: Floats
    weak: Flags
    standardised: bool = False

    @property
    def variance_sd(self) -> Floats:
        """Noise sd of each column's variance before division, shape (columns,)."""
        return np.hypot(self.noise.diagonal, 2 * self.mean * self.noise.mean)

    @property
    def diagonal_sd(self) -> Floats:
        """Noise sd of the diagonal, except for that of the number of rows, shape (columns,).

        The diagonal of a correlation matrix has no noise except for weak columns.
        """
        noisy = self.weak if self.standardised else np.ones_like(self.weak)
        return np.where(noisy, self.variance_sd / self.divisor**2, 0.0)

    @property
    def trace(self) -> tuple[float, float]:
        """The sum of the diagonal and the sd of its noise."""
        total = float(np.trace(self.matrix))
        shift = self.mean / self.divisor
        by_count = 0.0 if self.standardised else total - float(shift @ shift)
        noise = float((self.diagonal_sd**2).sum()) + (by_count * self.noise.count) ** 2
        return total, math.sqrt(noise)


def covariance(
    count: float,
    total: Floats | None,
    second: Floats,
    noise: MomentNoise,
    *,
    max_rows: int | None,
    box: tuple[Floats, Floats],
    row_norm: float,
) -> Covariance:
    """Divide released moments by the number of rows and subtract the mean.

    `second` and its noise are of rows in the unit ball, which `row_norm` scales back; `max_rows` is
    the public number of rows, an upper bound on the number of complete rows; `box` is the public
    range of each scaled coordinate, and so of the mean.

    With a mean the divisor of the second moment is the number of rows less one, as in ``prcomp``;
    without, it is the number of rows. The noisy number of rows is clipped to [1, max_rows], the
    mean to the public box. The square of a noisy mean is too large by its noise variance, which is
    added back to the diagonal where it is known, except for means at the edge of the box.
    """
    rows = _clipped_count(count, max_rows)
    centred = total is not None
    divisor = max(rows - 1, 1.0) if centred else rows
    second = second * row_norm**2 / divisor
    mean = np.zeros(len(second))
    if total is not None:
        mean = np.clip(total * row_norm / rows, *box)
        inside = (mean > box[0]) & (mean < box[1])
        correction = np.diag(inside * np.nan_to_num(noise.mean * row_norm / rows) ** 2)
        second = second - (np.outer(mean, mean) - correction) * (rows / divisor)
    scaled = MomentNoise(
        count=noise.count / rows,
        mean=noise.mean * row_norm / rows if centred else 0.0,
        diagonal=noise.diagonal * row_norm**2 / divisor,
        off=noise.off * row_norm**2 / divisor,
    )
    ones = np.ones(len(second))
    return Covariance(second, mean, rows, scaled, ones, np.zeros(len(ones), dtype=bool))


def second_moment_about(
    point: Floats,
    count: float,
    total: Floats,
    second: Floats,
    noise: MomentNoise,
    *,
    max_rows: int | None,
    row_norm: float,
) -> Covariance:
    """Move a released second moment to another public point, and divide it by the rows.

    The point lies in the ball of radius `row_norm`; other arguments are as for :func:`covariance`.

    With noise ``G`` in the second moment and ``e`` in the mean ``m``, both divided by the rows,
    ``S - p mᵀ - m pᵀ + p pᵀ`` has the noise ``G - p eᵀ - e pᵀ``: that of a covariance whose mean
    were ``p``.
    """
    rows = _clipped_count(count, max_rows)
    crossed = np.outer(point, total * row_norm / rows)
    moved_second = second * row_norm**2 / rows - (crossed + crossed.T) + np.outer(point, point)
    scaled = MomentNoise(
        count=noise.count / rows,
        mean=noise.mean * row_norm / rows,
        diagonal=noise.diagonal * row_norm**2 / rows,
        off=noise.off * row_norm**2 / rows,
    )
    ones = np.ones(len(second))
    return Covariance(moved_second, point, rows, scaled, ones, np.zeros(len(ones), dtype=bool))


def _clipped_count(count: float, max_rows: int | None) -> float:
    return max(count if max_rows is None else min(count, max_rows), 1.0)


def in_units(cov: Covariance, unit: Floats) -> Covariance:
    """Multiply columns by public units, shape (columns,), to undo a scaling."""
    return replace(cov, matrix=cov.matrix * np.outer(unit, unit), divisor=1 / unit)


def correlation(cov: Covariance) -> Covariance:
    """Divide by released standard deviations.

    A column whose released variance is below four times its noise sd is divided by that bound
    instead and marked as weak: its correlations are understated, never inflated. The noise
    distribution then refers to the matrix with the same bounds; it is first-order, and if many
    columns are close to their bounds the choice between the two biases eigenvalues down. If the
    noise distribution is unknown the bound is a hundredth of the largest variance.
    """
    variances = np.diagonal(cov.matrix)
    largest = max(float(variances.max()), 0.0)
    bound = np.nan_to_num(WEAK * cov.variance_sd, nan=largest / 100)
    bound = np.maximum(bound, largest * NOTHING or 1.0)
    weak = variances < bound
    divisor = np.sqrt(np.where(weak, bound, variances))
    matrix = cov.matrix / np.outer(divisor, divisor)
    return replace(cov, matrix=matrix, divisor=divisor, weak=weak, standardised=True)


# Support function of a box within a ball, and the largest norm in it.

# Most bisection steps; bisection also ends once no number lies between its ends.
HALVINGS = 200


def support(direction: Floats, lower: Floats, upper: Floats, radius: float) -> float:
    """Return the largest product of a direction with a point of a box within a ball.

    The box meets the ball of that radius about 0.

    For every t > 0 the point ``s = clip(t · direction, lower, upper)`` maximises
    ``⟨direction, s⟩ - |s|²/2t`` over the box, so ``⟨direction, s⟩ + (radius² - |s|²)/2t`` is an
    upper bound, exact where s lies on the sphere: the length of s grows with t, and halving finds
    where.
    """
    corner = np.where(direction > 0, upper, lower)
    corner = np.where(direction == 0, np.clip(0.0, lower, upper), corner)
    if np.linalg.norm(corner) <= radius:
        return float(direction @ corner)
    moving = direction != 0
    # From this t on every coordinate is at its bound: the point is the corner.
    high = float(np.max(np.abs(corner[moving]) / np.abs(direction[moving])))
    low = 0.0
    for _ in range(HALVINGS):
        t = (low + high) / 2
        if t in (low, high):
            break
        inside = np.linalg.norm(np.clip(t * direction, lower, upper)) <= radius
        low, high = (t, high) if inside else (low, t)
    point = np.clip(high * direction, lower, upper)
    return float(direction @ point + (radius**2 - point @ point) / (2 * high))


def longest_in_box(reach: Floats, radius: float, divisor: Floats) -> float:
    """Return the longest row ``t / divisor`` with t in a ball and in a box, both about 0.

    `reach` is half the length of each side of the box, above 0, and `divisor` positive, both of
    shape (columns,).

    The squares of t add up to at most ``radius²``, with at most ``reach²`` each, and their sum over
    ``divisor²`` is largest if the smallest divisors come first: a linear program with one
    constraint.
    """
    left, total = radius**2, 0.0
    for column in np.argsort(divisor, kind="stable"):
        squared = min(float(reach[column]) ** 2, left)
        total += squared / float(divisor[column]) ** 2
        left -= squared
    return math.sqrt(total)


@dataclass(frozen=True)
class Eigen:
    """Eigenvalues, largest first, and unit eigenvectors in columns, largest entry positive."""

    values: Floats
    vectors: Floats


def eigen(matrix: Floats) -> Eigen:
    """Decompose a symmetric matrix, shape (columns, columns).

    >>> import numpy as np
    >>> eigen(np.diag([1.0, 3.0])).values
    array([3., 1.])
    """
    values, vectors = np.linalg.eigh(matrix)
    values, vectors = values[::-1], vectors[:, ::-1]
    largest = np.argmax(np.abs(vectors), axis=0)
    signs = np.sign(vectors[largest, np.arange(len(values))])
    return Eigen(values, vectors * signs)
