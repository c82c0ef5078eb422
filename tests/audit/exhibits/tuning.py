"""Candidates judged by the rows that they were fitted to, as if those were others.

Where coins part the rows, fits on one side and a choice by the other cost no more than the larger
of the two, as a row is on one side alone (:mod:`dpmodels.mechanisms.tuning`).
`judged_by_its_own` charges the same for a fit and a choice that both read all rows, as tuning is
often left out of the account altogether [1]_.
Why it is wrong
    Both depend on the same row, and their losses add up. A fit is here a noisy count of ones, with
    Laplace noise of scale 1/ε, and the choice a draw of the commoner of two labels with probability
    proportional to exp(ε count/2). Of (0, 1, 1, 1) against four ones the fit loses ε, and the draw
    of the label 0 log((1 + e^{2ε})/(1 + e^ε)): 1 + .814 together at ε = 1. With coins it is less
    than ε.

References
----------
.. [1] Papernot, N. and Steinke, T. (2022). "Hyperparameter tuning with Renyi differential
   privacy." ICLR 2022.
"""

import math
from functools import partial

import numpy as np

from dpmodels.audit.neighbours import Pair
from dpmodels.typing import Floats
from exhibits.exhibit import Batched, Exhibit

EPS = 1.0


def _fitted_and_judged(
    rows: Floats, generator: np.random.Generator, runs: int, *, parted: bool
) -> Floats:
    """Release a noisy count of ones and a label drawn by its count: shape (runs, 2)."""
    sides = generator.integers(0, 2, (runs, len(rows)))
    fitted, judges = (sides, 1 - sides) if parted else (np.ones_like(sides),) * 2
    count = fitted @ rows + generator.laplace(0.0, 1 / EPS, runs)
    ahead = judges @ (2 * rows - 1)
    label = generator.random(runs) < 1 / (1 + np.exp(-EPS / 2 * ahead))
    return np.column_stack([count, label])


_OWN = Exhibit(
    name="judged_by_its_own",
    fault="a fit and the choice among fits read the same rows, and one of them is charged",
    source="a practice that Papernot and Steinke (2022) describe",
    recipe=Batched(partial(_fitted_and_judged, parted=False)),
    pair=Pair(
        np.array([0.0, 1.0, 1.0, 1.0]),
        np.array([1.0, 1.0, 1.0, 1.0]),
        name="the only row of a rare label",
    ),
    loss=EPS + math.log((1 + math.exp(2 * EPS)) / (1 + math.exp(EPS))),
)

EXHIBITS = {_OWN.name: _OWN}
CORRECT = {
    _OWN.name: _OWN.mended(
        Batched(partial(_fitted_and_judged, parted=True)),
        "a coin for each row: parallel composition",
    )
}
