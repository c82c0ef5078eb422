"""From released moments to a covariance or correlation matrix with its noise law."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpmodels.released import MomentNoise

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Covariance:
    """A released symmetric matrix and what is known of the noise in it.

    The noise is that of ``matrix = D (S - m mᵀ) D`` to first order, with
    independent noise in the second moment S, in the mean m and in the number
    of rows.

    Attributes
    ----------
    matrix : ndarray, shape (columns, columns)
        The noisy covariance, second moment or correlation.
    mean : ndarray, shape (columns,)
        The noisy mean in the matrix' coordinates, before division by D;
        zeros where none was taken off.
    count : float
        Number of rows the moments were divided by, at least 1.
    noise : MomentNoise
        Standard deviations: ``count`` relative to the number of rows, the
        others in the coordinates of ``mean`` and of S.
    divisor : ndarray, shape (columns,)
        D⁻¹: ones, or standard deviations for a correlation matrix.
    weak : ndarray of bool, shape (columns,)
        Columns whose own variance is not distinguishable from noise.
    """

    matrix: Floats
    mean: Floats
    count: float
    noise: MomentNoise
    divisor: Floats
    weak: NDArray[np.bool_]


def covariance(
    count: float,
    total: Floats | None,
    second: Floats,
    noise: MomentNoise,
    *,
    most: int | None,
    box: tuple[Floats, Floats],
    row_norm: float,
) -> Covariance:
    """Divide released moments by the number of rows and take off the mean.

    Parameters
    ----------
    count, total, second, noise
        Released moments of rows in the unit ball and their noise scales.
    most : int or None
        Public number of rows, which the number of complete rows cannot exceed.
    box : tuple of ndarray, each shape (columns,)
        Public range of each scaled coordinate, which holds the mean.
    row_norm : float
        Radius of the ball, to which the unit ball is scaled back.

    Notes
    -----
    With a mean the divisor of the second moment is the number of rows less
    one, as in ``prcomp``; without, it is the number of rows. The noisy number
    of rows is held in [1, most], the mean in the public box.
    """
    rows = max(count if most is None else min(count, most), 1.0)
    centred = total is not None
    divisor = max(rows - 1, 1.0) if centred else rows
    second = second * row_norm**2 / divisor
    mean = np.zeros(len(second))
    if total is not None:
        mean = np.clip(total * row_norm / rows, *box)
        second = second - np.outer(mean, mean) * (rows / divisor)
    scaled = MomentNoise(
        count=noise.count / rows,
        mean=noise.mean * row_norm / rows if centred else 0.0,
        diagonal=noise.diagonal * row_norm**2 / divisor,
        off=noise.off * row_norm**2 / divisor,
    )
    ones = np.ones(len(second))
    return Covariance(second, mean, rows, scaled, ones, np.zeros(len(ones), dtype=bool))


def correlation(cov: Covariance) -> Covariance:
    """Divide by released standard deviations.

    A column whose released variance is below twice its noise is divided by
    that bound instead and marked as weak: its correlations are understated,
    never inflated.
    """
    variances = np.diagonal(cov.matrix)
    floor = 2 * np.sqrt(cov.noise.diagonal**2 + 4 * cov.mean**2 * cov.noise.mean**2)
    weak = variances < floor
    divisor = np.sqrt(np.where(weak, floor, variances))
    matrix = cov.matrix / np.outer(divisor, divisor)
    return Covariance(matrix, cov.mean, cov.count, cov.noise, divisor, weak)
