"""Largest variances of products of bounded columns, for any data within the bounds."""

from __future__ import annotations

import numpy as np

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
