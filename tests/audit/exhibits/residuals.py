"""A column that is named by its products with residuals, held for no longer than the response.

`residuals_of_the_response`
    Of columns within 1 the one with the largest ``|Σ x r|`` is named, r the
    residuals ``y - 3 z`` of a fit that was released. The width of its scores
    is that of a response within 1: a row replaced moves each by 2. But r goes
    from -4 to 4, and each score moves by 8. Right is the largest residual of
    any row of the box, ``1 + Σ |b|``, which is as public as the coefficients
    are. Forward selection makes the slip once a coefficient is steep.
"""

from __future__ import annotations

from functools import partial

import numpy as np
from scipy.special import expit

from dpmodels.audit.neighbours import Pair
from dpmodels.typing import Floats
from exhibits.exhibit import Batched, Exhibit

EPS, SLOPE = 1.0, 3.0


def _named(rows: Floats, generator: np.random.Generator, runs: int, *, longest: float) -> Floats:
    """Draw the first or the second column by the exponential mechanism: shape (runs, 1)."""
    z, first, second, y = rows.T
    residuals = y - SLOPE * z
    ahead = abs(first @ residuals) - abs(second @ residuals)
    width = 2 * 2 * longest
    first_drawn = generator.random((runs, 1)) < expit(EPS / width * ahead)
    return np.where(first_drawn, 0.0, 1.0)


# Columns z, two to choose from, and y.
_ROWS = np.tile([0.0, 1.0, 1.0, 1.0], (20, 1))
_RESIDUALS = Exhibit(
    name="residuals_of_the_response",
    fault="residuals are taken to be as short as the response",
    source="a slip in forward selection",
    recipe=Batched(partial(_named, longest=1.0)),
    pair=Pair(
        np.vstack([_ROWS, [-1.0, 1.0, -1.0, 1.0]]),
        np.vstack([_ROWS, [-1.0, -1.0, 1.0, 1.0]]),
        name="a row that moves two columns apart",
    ),
    loss=2.0,
)

EXHIBITS = {_RESIDUALS.name: _RESIDUALS}
CORRECT = {
    _RESIDUALS.name: _RESIDUALS.mended(
        Batched(partial(_named, longest=1.0 + SLOPE)),
        "the width is that of the largest residual of the box",
    )
}
