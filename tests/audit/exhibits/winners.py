"""A largest count that is named after exponential noise, and told with the noise that won.

`winning_value`
    The name of the largest of ``s_j + E_j``, with exponential noise of mean
    2/ε, is ε-private [1]_; so the noisy value that won seems to be free. It
    is never below the largest count: a row less in that one, and values below
    occur that could not before. No ε is enough. Right is a name from half of
    ε, and a value of what was named with fresh noise of the other half.

References
----------
.. [1] Ding, Kifer, Sayed Mohammad, Steinke, Wang, Xiao and Zhang (2021). "The
   permute-and-flip mechanism is identical to report-noisy-max with exponential
   noise." arXiv:2105.07260.
"""

import math
from functools import partial

import numpy as np

from dpmodels.audit.neighbours import Pair
from dpmodels.typing import Floats
from exhibits.exhibit import Batched, Exhibit

EPS, LEVELS = 1.0, 3


def _largest(rows: Floats, generator: np.random.Generator, runs: int, *, fresh: bool) -> Floats:
    """Release which level has most rows, and how many: shape (runs, 2)."""
    counts = np.bincount(rows.astype(np.intp), minlength=LEVELS).astype(float)
    eps = EPS / 2 if fresh else EPS
    noisy = counts + generator.exponential(2 / eps, (runs, LEVELS))
    first = noisy.argmax(axis=1)
    won = counts[first] + generator.laplace(0.0, 1 / eps, runs) if fresh else noisy.max(axis=1)
    return np.column_stack([first, won])


_ROWS = np.repeat(np.arange(3.0), [8, 2, 1])
_WON = Exhibit(
    name="winning_value",
    fault="the noisy count that won is released with the name",
    source="a slip in report noisy max",
    recipe=Batched(partial(_largest, fresh=False)),
    pair=Pair(np.append(_ROWS, 0.0), np.append(_ROWS, 1.0), name="a row of the next level"),
    loss=math.inf,
)

EXHIBITS = {_WON.name: _WON}
CORRECT = {
    _WON.name: _WON.mended(
        Batched(partial(_largest, fresh=True)),
        "half of the budget for the name, half for a value with fresh noise",
    )
}
