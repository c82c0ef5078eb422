"""Sums over runs of eight ordered cells with discrete Laplace noise: what a row adds to them.

Both claim ε = 1 where a row is replaced, and one scale for all sums. The
mended twins make the same sums.

`levels_for_nothing`
    Noise of scale 2/ε on every node of a binary tree, as if the nodes were
    one table. A row is in a node of each of three levels: the loss is 3ε.
    Right is 2·3/ε [1]_.
`largest_difference`
    A sum and differences of neighbouring sums [2]_ with noise of scale 2/ε,
    since no number changes by more than 2. A row that is replaced leaves the
    sum as it is, changes one difference by 2 and two by 1 on each of two
    levels below: six in all, and the loss is 3ε. Right is 6/ε.

References
----------
.. [1] Hay, M., Rastogi, V., Miklau, G. and Suciu, D. (2010). "Boosting the
   accuracy of differentially private histograms through consistency." VLDB.
.. [2] Xiao, X., Wang, G. and Gehrke, J. (2010). "Differential privacy via
   wavelet transforms." ICDE.
"""

import math
from collections.abc import Callable
from functools import partial

import numpy as np

from dpmodels.audit.neighbours import Pair
from dpmodels.typing import Floats
from exhibits.exhibit import Batched, Exhibit

EPS = 1.0
CELLS, LEVELS = 8, 3


def _nodes(cells: Floats) -> Floats:
    """Return the counts of all nodes of a binary tree but its root."""
    halves = [cells.reshape(2**level, -1).sum(axis=1) for level in range(1, LEVELS + 1)]
    return np.concatenate(halves)


def _wavelets(cells: Floats) -> Floats:
    """Return the sum of all cells, and the first half less the second of every node."""
    values = [cells.reshape(2**level, 2, -1).sum(axis=2) for level in range(LEVELS)]
    return np.concatenate([[cells.sum()], *(half[:, 0] - half[:, 1] for half in values)])


def _released(
    rows: Floats,
    generator: np.random.Generator,
    runs: int,
    *,
    sums: Callable[[Floats], Floats],
    scale: float,
) -> Floats:
    """Release sums of the counts of cells 0 to 7, shape (runs, sums)."""
    exact = sums(np.bincount(rows.astype(np.int64), minlength=CELLS).astype(float))
    up, down = generator.geometric(-math.expm1(-1 / scale), (2, runs, len(exact)))
    return np.asarray(exact + up - down)


_PAIR = Pair(
    np.array([0.0] * 30 + [7.0] * 30),
    np.array([0.0] * 29 + [7.0] * 31),
    name="a row from the first cell to the last",
)
_TREE = Exhibit(
    name="levels_for_nothing",
    fault="the nodes of all levels have the noise of one table",
    source="a slip with trees of counts",
    recipe=Batched(partial(_released, sums=_nodes, scale=2 / EPS)),
    pair=_PAIR,
    loss=LEVELS * EPS,
    eps=EPS,
)
_WAVELET = Exhibit(
    name="largest_difference",
    fault="the sensitivity is the change of one difference, not of all of them",
    source="a slip with wavelets",
    recipe=Batched(partial(_released, sums=_wavelets, scale=2 / EPS)),
    pair=_PAIR,
    loss=LEVELS * EPS,
    eps=EPS,
)

EXHIBITS = {value.name: value for value in (_TREE, _WAVELET)}
CORRECT = {
    _TREE.name: _TREE.mended(
        Batched(partial(_released, sums=_nodes, scale=2 * LEVELS / EPS)),
        "Hay, Rastogi, Miklau and Suciu (2010)",
    ),
    _WAVELET.name: _WAVELET.mended(
        Batched(partial(_released, sums=_wavelets, scale=2 * LEVELS / EPS)),
        "the sensitivity of `dpmodels.mechanisms.counts.tree`, of one group",
    ),
}
