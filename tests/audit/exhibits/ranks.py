"""A median by noisy counts of cells, whose place in its cell depends on the rows themselves.

`exact_ranks`
    The median's cell is found by noisy counts of two cells, and where it lies
    within the cell by the rows' own ranks, for that seems to be a detail. A row
    that changes its cell moves the place to another number, and noise is
    nowhere: no ε is enough. Right is the place by the noisy counts alone.
"""

import math
from functools import partial

import numpy as np

from dpmodels.audit.neighbours import Pair
from dpmodels.typing import Floats
from exhibits.exhibit import LAPLACE, Batched, Exhibit

EPS = 1.0


def _median(rows: Floats, generator: np.random.Generator, runs: int, *, exact: bool) -> Floats:
    """Release noisy counts of both halves of [0, 1), and the median's place: shape (runs, 3)."""
    halves = np.bincount((rows * 2).astype(int), minlength=2)
    noisy = halves + generator.laplace(0.0, 2 / EPS, (runs, 2))
    clipped = np.maximum(noisy, 1.0)
    upper = clipped[:, 0] < clipped[:, 1]
    values = np.broadcast_to(np.maximum(halves, 1), clipped.shape) if exact else clipped
    rank = values.sum(axis=1) / 2
    share = np.where(upper, (rank - values[:, 0]) / values[:, 1], rank / values[:, 0])
    return np.column_stack([noisy, (upper + np.clip(share, 0.0, 1.0)) / 2])


_ROWS = np.linspace(0.0, 0.99, 12)
_RANKS = Exhibit(
    name="exact_ranks",
    fault="where a quantile lies in its cell depends on the rows' exact ranks",
    source="a slip",
    recipe=Batched(partial(_median, exact=True)),
    pair=Pair(np.append(_ROWS, 0.1), np.append(_ROWS, 0.9), name="a row in the other half"),
    loss=math.inf,
)

EXHIBITS = {_RANKS.name: _RANKS}
CORRECT = {_RANKS.name: _RANKS.mended(Batched(partial(_median, exact=False)), LAPLACE)}
