"""Ridge and lasso from a Gram matrix: coefficients by penalty.

For a positive definite Gram matrix ``G`` and cross products ``c``, both over the number of rows,
ridge minimises ``½ b'Gb - c'b + ½ λ b'b``, the lasso ``½ b'Gb - c'b + λ Σ|b|``. The lasso uses
coordinate descent [1]_. After each sweep the equations of the nonzero slopes are solved as far as
these keep their signs, which lowers the objective too; it ends at the conditions of optimality.

.. [1] Friedman, J., Hastie, T. and Tibshirani, R. (2010). "Regularization paths for generalized
   linear models via coordinate descent." Journal of Statistical Software 33(1), 1-22.
"""

from __future__ import annotations

import math

import numpy as np

from dpmodels.typing import Floats

# Most sweeps over all slopes: a choice.
TURNS = 200
# Relative rounding error in the conditions of optimality.
_ROUNDING = 1e-11


def ridge_path(gram: Floats, cross: Floats, penalties: Floats) -> tuple[Floats, Floats]:
    """Return slopes by penalty, shape (penalties, slopes), and their degrees of freedom."""
    values, axes = np.linalg.eigh(gram)
    shares = 1 / (values + penalties[:, None])
    return np.asarray((shares * (axes.T @ cross)) @ axes.T), np.asarray(shares @ values)


def lasso_path(gram: Floats, cross: Floats, penalties: Floats) -> tuple[Floats, Floats]:
    """Return slopes by penalty, and the number of nonzero ones; each starts from the one before."""
    slopes = np.zeros((len(penalties), len(cross)))
    current = np.zeros(len(cross))
    for place, penalty in enumerate(penalties.tolist()):
        current = slopes[place] = _lasso(gram, cross, penalty, current)
    return slopes, np.count_nonzero(slopes, axis=1).astype(float)


def _lasso(gram: Floats, cross: Floats, penalty: float, start: Floats) -> Floats:
    slopes, left = start.copy(), cross - gram @ start
    squares = np.diagonal(gram).tolist()
    for _ in range(TURNS):
        for column, square in enumerate(squares):
            target = float(left[column]) + square * float(slopes[column])
            slope = math.copysign(max(abs(target) - penalty, 0.0), target) / square
            if slope != slopes[column]:
                left -= gram[column] * (slope - slopes[column])
                slopes[column] = slope
        slopes = _of_signs(gram, cross, penalty, slopes)
        # The conditions of optimality, up to rounding.
        left, signs = cross - gram @ slopes, penalty * np.sign(slopes)
        subgradient = np.where(slopes == 0, np.clip(left, -penalty, penalty), signs)
        largest = np.abs(cross) + np.abs(gram) @ np.abs(slopes)
        if np.abs(left - subgradient).max() <= _ROUNDING * largest.max():
            break
    return slopes


def _of_signs(gram: Floats, cross: Floats, penalty: float, slopes: Floats) -> Floats:
    """Return the best slopes with the signs of `slopes`; a slope that reaches 0 stays there."""
    while True:
        active = np.flatnonzero(slopes)
        signs, ends = np.sign(slopes[active]), np.zeros_like(slopes)
        ends[active] = np.linalg.solve(
            gram[np.ix_(active, active)], cross[active] - penalty * signs
        )
        flipped = active[ends[active] * signs < 0]
        if not len(flipped) or penalty == 0:
            return ends
        shares = slopes[flipped] / (slopes[flipped] - ends[flipped])
        slopes = slopes + shares.min() * (ends - slopes)
        slopes[flipped[np.argmin(shares)]] = 0.0
