"""One seed for two releases.

What was published
    Libraries take `random_state=1` for repeatable examples, and users pass the
    same integer to every call: with dp-econometrics and diffprivlib two
    releases then carry the same noise.
Why it is wrong
    The noise of one release is the noise of the other, so their difference is
    the difference of the statistics, exactly, even for a seed that nobody
    knows. No ε is enough.
The right form
    Independent noise, and the budget divided.
"""

import math
from dataclasses import replace

import numpy as np

from dpmodels.audit.exhibits.exhibit import Batched, Exhibit
from dpmodels.audit.pair import Pair
from dpmodels.typing import Floats

EPS = 1.0


def _same(rows: Floats, generator: np.random.Generator, runs: int) -> Floats:
    """Release the sums of two columns with the same noise: shape (runs, 2)."""
    return np.asarray(rows.sum(axis=0) + generator.laplace(0.0, 2 / EPS, (runs, 1)))


def _fresh(rows: Floats, generator: np.random.Generator, runs: int) -> Floats:
    """Release the sums of two columns with noise of their own: shape (runs, 2)."""
    return np.asarray(rows.sum(axis=0) + generator.laplace(0.0, 2 / EPS, (runs, 2)))


_OTHERS = np.array([[0.2, 0.9], [0.5, 0.1], [0.7, 0.3]])
EXHIBIT = Exhibit(
    name="reused_seed",
    fault="two releases carry the same noise",
    source="random_state=1, twice, in dp-econometrics and diffprivlib",
    recipe=Batched(_same),
    pair=Pair(
        rows=np.vstack([_OTHERS, [1.0, 0.0]]),
        neighbour=np.vstack([_OTHERS, [0.0, 1.0]]),
        name="extremes of two columns swapped",
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
    recipe=Batched(_fresh),
    loss=EPS,
)
