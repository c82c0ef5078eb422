"""How much longer intervals get where the sampling variance is itself an estimate."""

from __future__ import annotations

import numpy as np
from scipy.special import ndtri, stdtrit

from dpmodels.typing import Floats


def student_factor(freedom: Floats, tail: float) -> Floats:
    """Return Student's quantile as a multiple of the normal one.

    Parameters
    ----------
    freedom : ndarray
        Degrees of freedom, 1 or more.
    tail : float
        Probability of the upper tail, in (0, 1/2).

    Returns
    -------
    ndarray
        A sampling error multiplied by it has the right tail by itself, and one
        that is no shorter together with noise of known law.

    References
    ----------
    .. [1] Student (1908). "The probable error of a mean." Biometrika 6(1), 1-25.

    Examples
    --------
    >>> np.round(student_factor(np.array([1.0, 10.0, 1000.0]), 0.025), 3)
    array([6.483, 1.137, 1.001])
    """
    return np.asarray(stdtrit(np.minimum(freedom, 1e300), tail) / ndtri(tail))
