"""A step to where a released gradient vanishes, by released curvature."""

from __future__ import annotations

import math

import numpy as np

from dpmodels.typing import Floats

# Curvature below so many times the edge of its own noise is not inverted.
CLEAR = 1.0
# Nor below this share of the largest: it may be the rounding of that.
RESOLVED = 1e-13


def newton_step(gradient: Floats, curvature: Floats, off: float) -> Floats | None:
    """Return how far the minimum of a sum is from a point, to first order.

    Parameters
    ----------
    gradient : ndarray, shape (columns,)
        Of the sum, at the point.
    curvature : ndarray, shape (columns, columns)
        Released curvature of the sum.
    off : float
        Standard deviation of the noise in it off its diagonal.

    Returns
    -------
    ndarray or None
        ``-curvature⁻¹ gradient``; None where the smallest eigenvalue of the
        curvature is below :data:`CLEAR` times the edge of its noise,
        ``2 off √columns``, or below :data:`RESOLVED` times the largest.

    Examples
    --------
    >>> import numpy as np
    >>> newton_step(np.array([-0.5, -1.0]), np.diag([10.0, 5.0]), off=0.1)
    array([0.05, 0.2 ])
    """
    edge = 2 * off * math.sqrt(len(gradient))
    values = np.linalg.eigvalsh(curvature)
    if values[0] <= max(CLEAR * edge, RESOLVED * values[-1]):
        return None
    return np.asarray(-np.linalg.solve(curvature, gradient))
