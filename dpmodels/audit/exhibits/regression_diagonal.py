"""A typing error that releases sums of squares exactly.

What was published
    `LinearRegression` of diffprivlib perturbs the entries of XᵀX (the
    functional mechanism of Zhang and others, 2012). For a diagonal entry it
    takes as sensitivity the largest of `[bounds[0], bounds[0]]`, squared: the
    lower bound twice.
Why it is wrong
    With bounds (0, b) the sensitivity is 0 and so is the noise: the sum of
    squares of every column is released as it is. No ε is enough.
The right form
    The larger of the two bounds, squared. Folding the noisy entry at zero is
    post-processing in both.
"""

import math
from dataclasses import replace
from functools import partial

import numpy as np

from dpmodels.audit.exhibits.exhibit import Batched, Exhibit
from dpmodels.audit.exhibits.matrices import scatter, upper
from dpmodels.audit.pair import Pair
from dpmodels.typing import Floats

EPS = 1.0
LOWER, UPPER = 0.0, 1.0


def _moments(rows: Floats, generator: np.random.Generator, runs: int, *, bound: float) -> Floats:
    """Release the entries of XᵀX for two columns, each with ε/3: shape (runs, 3)."""
    scale = 3 / EPS * np.array([bound**2, UPPER**2 - LOWER**2, bound**2])
    noisy = upper(scatter(rows)) + scale * generator.laplace(size=(runs, 3))
    noisy[:, [0, 2]] = np.abs(noisy[:, [0, 2]])
    return noisy


_OTHERS = np.array([[0.2, 0.9], [0.5, 0.1], [0.7, 0.3]])
EXHIBIT = Exhibit(
    name="regression_diagonal",
    fault="the sensitivity of a square is taken from the lower bound twice",
    source="diffprivlib, LinearRegression",
    recipe=Batched(partial(_moments, bound=LOWER)),
    pair=Pair(
        rows=np.vstack([_OTHERS, [1.0, 1.0]]),
        neighbour=np.vstack([_OTHERS, [0.0, 0.0]]),
        name="a row at the upper bounds against one at the lower",
    ),
    eps=EPS,
    delta=0.0,
    runs=20_000,
    loss=math.inf,
)
CORRECT = replace(
    EXHIBIT,
    fault="",
    source="Laplace noise of scale L1 sensitivity / eps",
    recipe=Batched(partial(_moments, bound=UPPER)),
    loss=EPS,
)
