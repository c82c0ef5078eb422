"""Released values of all levels of a category, brought to contrasts between them.

Mechanisms read parameters, gradients and matrices with a line for each level, of which one is
superfluous: those of a row add to 0 over the levels. Independent noise of one standard deviation in
all coordinates, and of √2 times that on the diagonal of a matrix, is the same along any orthonormal
axes: what of it falls outside the contrasts is left, free of charge. Coordinates for all levels but
the reference would have that noise in full, and some of theirs besides.
"""

from __future__ import annotations

import numpy as np

from dpmodels.mechanisms.coefficients import RegressionFacts
from dpmodels.postprocess.contrasts import contrasts
from dpmodels.typing import Floats


def levelled(values: Floats, facts: RegressionFacts) -> Floats:
    """Take the mean over the levels off values of all of them, shape (columns,)."""
    if facts.lines == 1:
        return values
    lines = values.reshape(facts.lines, -1)
    return np.asarray((lines - lines.mean(axis=0)).ravel())


def contrasted(values: Floats, facts: RegressionFacts) -> Floats:
    """Return a vector, shape (columns,), or a symmetric matrix in contrasts."""
    if facts.lines == 1:
        return values
    turn = np.kron(contrasts(facts.lines).T, np.eye(facts.predictors.columns))
    return np.asarray(turn @ values if values.ndim == 1 else turn @ values @ turn.T)
