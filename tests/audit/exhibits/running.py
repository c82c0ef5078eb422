"""Counts over time whose running totals are noised as if each row were in one of them.

Totals, each with noise of its own, `total_by_total`
    After every period the count of all rows so far is released with Laplace
    noise of scale 1/ε, as a single count would be [1]_. A row of the first
    period is in all T totals: the true ε is Tε. Right is noise of scale T/ε, or
    totals made of noisy counts of runs of periods, of which a row is in log T.
A square root without its first column, `last_column`
    Totals are made of noisy sums R x, where R is the lower triangular root of
    their matrix [2]_. Its columns are the first one, moved down and cut off;
    noise is scaled by the longest. With that of the last one, which is 1 long, it is
    enough for a row of the last period: a row of the first of 16 moves the sums
    by 1.40, and μ is as much larger.

References
----------
.. [1] Dwork, Naor, Pitassi and Rothblum (2010). "Differential privacy under
   continual observation." STOC 2010.
.. [2] Fichtenberger, Henzinger and Upadhyay (2023). "Constant matters:
   fine-grained error bound on differentially private continual observation."
   ICML 2023.
"""

from functools import partial

import numpy as np

from dpmodels.audit.neighbours import Pair
from dpmodels.privacy import ApproxDP, gaussian_eps, gaussian_multiplier
from dpmodels.typing import Floats
from exhibits.exhibit import LAPLACE, Batched, Exhibit

EPS, TOTALS = 1.0, 4
_CLAIM = ApproxDP(1.0, 1e-5)
_PERIODS = 16
_ROOT = np.concatenate([[1.0], np.cumprod([(2 * k - 1) / (2 * k) for k in range(1, _PERIODS)])])
LONGEST = float(np.linalg.norm(_ROOT))


def _totals(rows: Floats, generator: np.random.Generator, runs: int, *, scale: float) -> Floats:
    """Release the running totals of rows that are the numbers of their periods."""
    exact = np.cumsum(np.bincount(rows.astype(np.intp), minlength=TOTALS))
    return exact + scale * generator.laplace(size=(runs, TOTALS))


def _sums(rows: Floats, generator: np.random.Generator, runs: int, *, scale: float) -> Floats:
    """Release the sums that totals are made of."""
    counts = np.bincount(rows.astype(np.intp), minlength=_PERIODS)
    exact = np.convolve(counts, _ROOT)[:_PERIODS]
    return np.asarray(exact + scale * generator.standard_normal((runs, _PERIODS)))


def _one_more(alternatives: Floats) -> Pair:
    return Pair(
        np.append(alternatives, 0.0), alternatives, "add-remove", "a row of the first period more"
    )


_TOTAL = Exhibit(
    name="total_by_total",
    fault="every running total has noise for a row that is in one of them",
    source="the first attempt in Dwork, Naor, Pitassi and Rothblum (2010)",
    recipe=Batched(partial(_totals, scale=1 / EPS)),
    pair=_one_more(np.array([1.0, 2.0, 2.0, 3.0])),
    loss=TOTALS * EPS,
)
MULTIPLIER = gaussian_multiplier(_CLAIM)
_COLUMN = Exhibit(
    name="last_column",
    fault="noise is scaled by the shortest column of the root, and early rows are in longer ones",
    source="a slip in matrix factorisations",
    recipe=Batched(partial(_sums, scale=MULTIPLIER), law="gaussian"),
    pair=_one_more(np.array([5.0, 9.0, 15.0])),
    eps=_CLAIM.eps,
    delta=_CLAIM.delta,
    runs=50_000,
    loss=gaussian_eps(_CLAIM.delta, MULTIPLIER / LONGEST),
)

EXHIBITS = {value.name: value for value in (_TOTAL, _COLUMN)}
CORRECT = {
    _TOTAL.name: _TOTAL.mended(Batched(partial(_totals, scale=TOTALS / EPS)), LAPLACE),
    _COLUMN.name: _COLUMN.mended(
        Batched(partial(_sums, scale=MULTIPLIER * LONGEST), law="gaussian"),
        "Fichtenberger, Henzinger and Upadhyay (2023)",
    ),
}
