"""The exponential mechanism without the 2 under its exponent.

What is wrong
    A candidate of score q is to be drawn with probability proportional to
    exp(ε q/2) if a neighbour may move every score by 1: the numerator moves by
    e^{ε/2}, and so does the sum. exp(ε q) is private for scores that all move
    in one direction, such as counts when a row is added. When a row is
    replaced one count falls and another rises.
The arithmetic
    The commonest of two categories, counts (1, 3) against (0, 4): the first is
    chosen with probability e^ε/(e^ε + e^{3ε}) = .119 against
    1/(1 + e^{4ε}) = .018 at ε = 1, a loss of 1.891 (2ε for long tables).
    With ε/2 it is .814.

References
----------
McSherry, F. and Talwar, K. (2007). "Mechanism design via differential
privacy." FOCS 2007.
"""

import math
from dataclasses import replace
from functools import partial

import numpy as np

from dpmodels.audit.exhibits.exhibit import Batched, Exhibit
from dpmodels.audit.pair import Pair
from dpmodels.typing import Floats

EPS = 1.0


def _commonest(
    rows: Floats, generator: np.random.Generator, runs: int, *, exponent: float
) -> Floats:
    """Release a category 0 or 1, drawn by its count: shape (runs, 1)."""
    counts = np.bincount(rows.astype(np.int64), minlength=2)
    first = 1 / (1 + math.exp(exponent * float(counts[1] - counts[0])))
    return (generator.random((runs, 1)) >= first).astype(np.float64)


EXHIBIT = Exhibit(
    name="doubled_exponent",
    fault="exp(eps q) where exp(eps q / 2) is called for",
    source="a slip",
    recipe=Batched(partial(_commonest, exponent=EPS)),
    pair=Pair(
        rows=np.array([0.0, 1.0, 1.0, 1.0]),
        neighbour=np.array([1.0, 1.0, 1.0, 1.0]),
        name="the only row of a rare category",
    ),
    eps=EPS,
    delta=0.0,
    runs=50_000,
    loss=math.log((1 + math.exp(4 * EPS)) / (1 + math.exp(2 * EPS))),
)
CORRECT = replace(
    EXHIBIT,
    fault="",
    source="McSherry and Talwar (2007)",
    recipe=Batched(partial(_commonest, exponent=EPS / 2)),
    loss=math.log((1 + math.exp(2 * EPS)) / (1 + math.exp(EPS))),
)
