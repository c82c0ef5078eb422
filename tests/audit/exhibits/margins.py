"""The components of margins, with noise for another kind of neighbours.

`added_for_replaced`
    Of a table by one variable of n levels only what is left of it without its
    mean is released, from counts with noise of standard deviation σ. A row more
    moves that by a vector of squared length 1 - 1/n, which is what the planner
    of margins charges [1]_. A row that is replaced leaves one cell and enters
    another: 2, whatever n. With n = 2 the noise is half of what is claimed: μ is
    twice as large. Right is the largest distance over the sets of variables in
    which the two rows may differ.

References
----------
.. [1] Xiao, Y., He, G., Zhang, D. and Kifer, D. (2023). "An optimal and
   scalable matrix mechanism for noisy marginals under convex loss functions."
   NeurIPS.
"""

import math
from functools import partial

import numpy as np

from dpmodels.audit.neighbours import Pair
from dpmodels.privacy import ApproxDP, gaussian_eps, gaussian_multiplier
from dpmodels.typing import Floats
from exhibits.exhibit import Batched, Exhibit

_CLAIM = ApproxDP(1.0, 1e-5)
MULTIPLIER = gaussian_multiplier(_CLAIM)
# How far a row more, and one that is replaced, move the component of two levels.
ADDED, REPLACED = math.sqrt(1 / 2), math.sqrt(2)


def _half_difference(
    rows: Floats, generator: np.random.Generator, runs: int, *, moved: float
) -> Floats:
    """Release the component of levels 0 and 1, of which one cell tells the other: (runs, 1)."""
    counts = np.array([(rows == level).sum() for level in (0, 1)], dtype=np.float64)
    noisy = counts + moved * MULTIPLIER * generator.standard_normal((runs, 2))
    return np.asarray(noisy @ np.array([[0.5], [-0.5]]))


_ADDED = Exhibit(
    name="added_for_replaced",
    fault="the cost of a row more, where a row is replaced",
    source="a slip with the residual planner of margins",
    recipe=Batched(partial(_half_difference, moved=ADDED), law="gaussian"),
    pair=Pair(
        np.array([0.0] * 31 + [1.0] * 30),
        np.array([0.0] * 30 + [1.0] * 31),
        name="a row of another level",
    ),
    eps=_CLAIM.eps,
    delta=_CLAIM.delta,
    runs=50_000,
    loss=gaussian_eps(_CLAIM.delta, MULTIPLIER / 2),
)

EXHIBITS = {_ADDED.name: _ADDED}
CORRECT = {
    _ADDED.name: _ADDED.mended(
        Batched(partial(_half_difference, moved=REPLACED), law="gaussian"),
        "the largest distance of two rows: dpmodels.mechanisms.protocol",
    )
}
