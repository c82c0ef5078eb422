"""A run of cells whose noisy count is small, and which is counted once more instead of cut.

The claim is ε. A run gets a first count with half of the budget; where that is
below a threshold its cells are not counted, and the run gets a second count.

`whole_again`
    The second count takes all of ε, as if the first had been free. A row that
    is added moves both, and where both lie below the centres without it the
    ratio of their densities is ``e^{ε/2 + ε}``: the true ε is 1.5ε. Right is
    what the cells below would have taken, the other half [1]_.

References
----------
.. [1] `dpmodels.mechanisms.counts.runs`, where each row is in counts of the
   same cost together, whatever comes out.
"""

from functools import partial

import numpy as np

from dpmodels.audit.neighbours import Pair
from dpmodels.typing import Floats
from exhibits.exhibit import Batched, Exhibit

EPS = 1.0
THRESHOLD = 8.0  # far above both counts of the pair


def _twice(rows: Floats, generator: np.random.Generator, runs: int, *, second: float) -> Floats:
    """Release a run's first and second count, of which the latter may be left out: (runs, 2)."""
    first, again = len(rows) + generator.laplace(size=(2, runs)) / [[EPS / 2], [second]]
    return np.stack([first, np.where(first < THRESHOLD, again, 0.0)], axis=1)


_AGAIN = Exhibit(
    name="whole_again",
    fault="a second count with all of the budget, not with what is left of it",
    source="a slip with budgets that follow the counts",
    recipe=Batched(partial(_twice, second=EPS)),
    pair=Pair(np.ones(3), np.ones(2), adjacency="add-remove", name="a row more in a short run"),
    loss=1.5 * EPS,
    eps=EPS,
)

EXHIBITS = {_AGAIN.name: _AGAIN}
CORRECT = {
    _AGAIN.name: _AGAIN.mended(
        Batched(partial(_twice, second=EPS / 2)), "what is left of the budget of each row"
    )
}
