"""Survey weights that were calibrated on the sample they weigh.

Rows have two columns: an auxiliary number from 0 to 100, and a value in [0, 1]. The recipe claims
ε for a row of weight 50 at most, with Laplace noise of the scale 50/ε on ``Σ w y``.

`calibrated_weights`
    Weights are calibrated to a known total of the auxiliary number, ``w = 1000/Σ x``, as by a ratio
    estimator, raking or a regression. A row of a large number lowers the weights of all others: of
    50 rows of the number 1, from 20 to 6.7. The total moves by 660, and the true ε is 13 times the
    claim. Right are design weights, which depend on the row itself and on public facts [1]_.

References
----------
.. [1] Seeman, J., Si, Y. and Reiter, J. P. (2024). "Differentially Private Finite Population
   Estimation via Survey Weight Regularization." arXiv:2411.04236.
"""

from __future__ import annotations

import numpy as np

from dpmodels.audit.neighbours import Pair
from dpmodels.typing import Floats
from exhibits.exhibit import LAPLACE, Batched, Exhibit

EPS, CAP, POPULATION = 1.0, 50.0, 1000.0


def _recipe(calibrated: bool) -> Batched:
    def draw(rows: Floats, generator: np.random.Generator, runs: int) -> Floats:
        return np.asarray(_total(rows, calibrated) + generator.laplace(0.0, CAP / EPS, (runs, 1)))

    return Batched(draw)


def _total(rows: Floats, calibrated: bool) -> float:
    auxiliary, values = rows.T
    weights = np.full(len(rows), POPULATION / auxiliary.sum()) if calibrated else auxiliary
    return float((np.minimum(weights, CAP) * values).sum())


_ROWS = np.ones((50, 2))
_MORE = np.vstack([_ROWS, [[100.0, 1.0]]])
_CALIBRATED = Exhibit(
    name="calibrated_weights",
    fault="weights were calibrated on the sample, so that one row moves those of all others",
    source="a frequent request",
    recipe=_recipe(calibrated=True),
    pair=Pair(_MORE, _ROWS, adjacency="add-remove", name="a row of a large number more"),
    loss=abs(_total(_MORE, calibrated=True) - _total(_ROWS, calibrated=True)) * EPS / CAP,
)

EXHIBITS = {_CALIBRATED.name: _CALIBRATED}
CORRECT = {_CALIBRATED.name: _CALIBRATED.mended(_recipe(calibrated=False), LAPLACE)}
