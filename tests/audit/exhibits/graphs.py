"""A graph of variables chosen from exact tables.

`exact_graph`
    Two releases of margins are charged: of all pairs, and of the pairs that a
    graph joins. The graph is chosen from the tables before their noise, as if a
    choice among pairs told of no row; synthesisers that take "the most
    correlated pairs of the data" do so [1]_. Where two pairs are tied but for
    one row, the choice itself names the table: no finite eps. Right is a graph
    chosen from the first release, which costs nothing.

References
----------
.. [1] McKenna, R., Miklau, G. and Sheldon, D. (2021). "Winning the NIST
   contest: A scalable and general approach to differentially private synthetic
   data." Journal of Privacy and Confidentiality 11(3), where the choice is
   private.
"""

import math
from functools import partial

import numpy as np

from dpmodels.audit.neighbours import Pair
from dpmodels.privacy import ApproxDP, gaussian_multiplier
from dpmodels.typing import Floats
from exhibits.exhibit import Batched, Exhibit

_CLAIM = ApproxDP(1.0, 1e-5)
# Each of two rounds has half of 1/multiplier².
MULTIPLIER = gaussian_multiplier(_CLAIM) * math.sqrt(2)
# How far a replaced row moves two sums of products of signs, and one.
PAIRS, EDGE = math.sqrt(8), 2.0


def _edge_released(
    rows: Floats, generator: np.random.Generator, runs: int, *, exact: bool
) -> Floats:
    """Release two sums of products, the one chosen, and that again: shape (runs, 4).

    Rows are three signs; the edges are of the first with the second, and with the third.
    """
    sums = rows[:, :1].T @ rows[:, 1:]
    first = sums + PAIRS * MULTIPLIER * generator.standard_normal((runs, 2))
    recorded = np.broadcast_to(sums, first.shape) if exact else first
    edge = (np.abs(recorded[:, 1]) > np.abs(recorded[:, 0])).astype(np.int64)
    second = sums[0, edge] + EDGE * MULTIPLIER * generator.standard_normal(runs)
    return np.column_stack([first, edge, second])


_TIED = np.array([[1.0, 1.0, 1.0]] * 40 + [[1.0, -1.0, -1.0]] * 20)
_BROKEN = np.array([[1.0, 1.0, 1.0]] * 39 + [[1.0, -1.0, 1.0]] + [[1.0, -1.0, -1.0]] * 20)

_EXACT = Exhibit(
    name="exact_graph",
    fault="the pairs to release again are chosen from their exact tables",
    source="a slip with two rounds of margins; McKenna, Miklau and Sheldon (2021) for the setting",
    recipe=Batched(partial(_edge_released, exact=True)),
    pair=Pair(_TIED, _BROKEN, name="a row that breaks a tie"),
    eps=_CLAIM.eps,
    delta=_CLAIM.delta,
    loss=math.inf,
)

EXHIBITS = {_EXACT.name: _EXACT}
CORRECT = {
    _EXACT.name: _EXACT.mended(
        Batched(partial(_edge_released, exact=False)),
        "a graph chosen from the first release: dpmodels.mechanisms.margins",
    )
}
