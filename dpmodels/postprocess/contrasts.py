"""Orthonormal contrasts of levels: coordinates of vectors whose entries add to 0."""

from __future__ import annotations

import numpy as np

from dpmodels.typing import Floats


def contrasts(levels: int) -> Floats:
    """Return Helmert's contrasts, shape (levels, levels - 1), columns of length 1 that add to 0.

    >>> contrasts(3).round(3).tolist()
    [[-0.707, -0.408], [0.707, -0.408], [0.0, 0.816]]
    """
    found = np.triu(-np.ones((levels, levels - 1)))
    steps = np.arange(1, levels)
    found[steps, steps - 1] = steps
    return np.asarray(found / np.sqrt(steps * (steps + 1.0)))


def against_first(levels: int) -> Floats:
    """Return what turns contrasts into differences from the first level, square.

    >>> (against_first(3) @ contrasts(3).T @ [1.0, 3.0, 7.0]).round(9).tolist()
    [2.0, 6.0]
    """
    own = contrasts(levels)
    return np.asarray(own[1:] - own[0])
