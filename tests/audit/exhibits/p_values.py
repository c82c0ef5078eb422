"""The logarithm of a p-value, with noise for a sensitivity that no test of so few rows has.

`wishful_p_value`
    ``log max(p, ν)`` of a z-test of 10,000 rows, each -1 or 1, with Laplace
    noise of scale η/ε for η = 10⁻⁴, a round number that noise of p-values was
    tried with in simulations. A row moves the statistic by ``Δ = 2/√n``, and
    so the logarithm by up to ``log(Φ̄(z - Δ)/Φ̄(z))`` with z the statistic whose
    p-value is ν: .082 for ν = 5·10⁻⁵, 820 times η. Right is noise for that.
"""

import math
from functools import partial
from typing import Final

import numpy as np
from scipy.special import log_ndtr, ndtri

from dpmodels.audit.neighbours import Pair
from dpmodels.typing import Floats
from exhibits.exhibit import LAPLACE, Batched, Exhibit

EPS, ROWS, LEAST = 1.0, 10_000, 5e-5
Z: Final = -float(ndtri(LEAST / 2))
WISHED: Final = 1e-4
MOVED: Final = float(log_ndtr(2 / math.sqrt(ROWS) - Z) - log_ndtr(-Z))


def _log_p(rows: Floats) -> float:
    z = abs(float(rows.sum())) / math.sqrt(len(rows))
    return max(math.log(2) + float(log_ndtr(-z)), math.log(LEAST))


def _released(
    rows: Floats, generator: np.random.Generator, runs: int, *, sensitivity: float
) -> Floats:
    """Release a noisy logarithm of the p-value: shape (runs, 1)."""
    return _log_p(rows) + generator.laplace(0.0, sensitivity / EPS, (runs, 1))


def _signs(positive: int) -> Floats:
    return np.where(np.arange(ROWS) < positive, 1.0, -1.0)


_PAIR = Pair(_signs(5_201), _signs(5_200), name="a row of the other sign, at a small p-value")
_WISHED = Exhibit(
    name="wishful_p_value",
    fault="noise for a p-value that hardly moves",
    source="sensitivities of p-values taken from simulations",
    recipe=Batched(partial(_released, sensitivity=WISHED)),
    pair=_PAIR,
    loss=abs(_log_p(_PAIR.rows) - _log_p(_PAIR.neighbour)) / WISHED * EPS,
)

EXHIBITS = {_WISHED.name: _WISHED}
CORRECT = {_WISHED.name: _WISHED.mended(Batched(partial(_released, sensitivity=MOVED)), LAPLACE)}
