"""What is read of a number in cells: a response corrected for its cells, and the noise of values.

*Theorem.* Let ``s_c = E[y | c]`` and ``V_c = Var(y | c)`` in the cells c of y, and z another
number with ``E[z | y]`` linear in y within each cell, of slope d_c. Then ``E[z y] = Σ_c P(c) (E[z |
c] s_c + d_c V_c)``. *Proof.* Given c, ``E[z y] = E[z] E[y] + Cov(E[z | y], y)``.

With d_c from the differences of ``E[z | c]`` between neighbouring cells, ``d = D E[z | ·]``, that
is ``Σ_c P(c) E[z | c] y*_c`` with ``y*_c = s_c + Σ_b P(b) V_b D_bc/P(c)``, whatever z is: cells of
a response do not shrink slopes and differences of means. Without the correction they shrink by
``Var(s)/Var(y)`` where ``E[z | y]`` is a line.
"""

from __future__ import annotations

import numpy as np

from dpmodels.inference.cell_estimates import Distribution
from dpmodels.postprocess.graphical.histograms import Histogram
from dpmodels.typing import Floats


def corrected_response(means: Floats, variances: Floats, rows: Floats) -> Floats:
    """Return y* by cell, from the means, variances and positive rows of the cells.

    >>> corrected_response(np.array([0.0, 1.0]), np.array([0.1, 0.1]), np.array([2.0, 2.0]))
    array([-0.2,  1.2])
    """
    order = np.argsort(means, kind="stable")
    ordered = means[order]
    if len(means) < 2 or not np.diff(ordered).min() > 0 or not variances.any():
        return means
    slopes = np.gradient(np.eye(len(means)), ordered, axis=0)
    moved = (rows * variances)[order] @ slopes / rows[order]
    result = np.empty_like(means)
    result[order] = ordered + moved
    return result


def noise_by_values(histogram: Histogram, slopes: Floats) -> Floats:
    """Return the covariance of functions of the means of cells by the noise of the histogram.

    `slopes`, shape (coarse cells, k), are their derivatives.
    """
    points = histogram.points
    away = (points - histogram.means(points)[histogram.cell]) * histogram.noise_slopes
    moved = slopes[histogram.cell] * away[:, None]
    return np.asarray(moved.T @ moved, dtype=np.float64)


def refined(coarse: Distribution, histogram: Histogram) -> Distribution:
    """Return a distribution at the edges of fine cells, by their rows within each coarse cell.

    What is within a coarse cell is taken as the same in all groups.
    """
    cell, weights = histogram.cell, histogram.positive
    below = np.cumsum(weights) - weights
    fraction = (below - below[list(histogram.ends[:-1])][cell]) / histogram.sums(weights)[cell]
    rows_between = np.diff(coarse.values)[cell]
    slope = histogram.noise_slopes
    squares = slope**2
    before = np.cumsum(squares) - squares
    before = np.maximum(before - before[list(histogram.ends[:-1])][cell], 0.0)
    total = histogram.sums(squares)[cell]
    variance = (1 - fraction) ** 2 * before + fraction**2 * np.maximum(total - before, 0.0)

    def between(values: Floats) -> Floats:
        return values[:-1][cell] * (1 - fraction) + values[1:][cell] * fraction

    noise_sd, full_sd = (
        np.append(np.sqrt(between(sd) ** 2 + rows_between**2 * variance), 0.0)
        for sd in (coarse.noise_sd, coarse.full_sd)
    )
    return Distribution(histogram.edges, np.append(between(coarse.values), 1.0), noise_sd, full_sd)
