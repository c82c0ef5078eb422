"""Multiplicative weights: a distribution is moved towards answers that it gets most wrong.

Theorem
    ε-differentially private where neighbours have one row more or fewer, by adding up: ε/20 for
    the number of rows, and for each of ten rounds one half of a tenth of the rest to choose a query
    and one half to answer it. Inconsistent: ten queries do not fix a table of more cells.
Sensitivity
    Queries are counts of the rows from the first cell to some cell. A row more or fewer moves each
    by 0 or 1, and so the whole-number score ``|q(x) - round(q(y))|`` by 1 at most, some up and
    others down, where y is what was released before: a draw with weights ``exp(a score / 2)`` is
    a-differentially private.
Noise
    Discrete Laplace on the number of rows, and on the answer of each query that was drawn.
Numerics
    exact: integer scores, integer noise and the exact law of the draw.
Source
    Hardt, Ligett, McSherry (2012), "A simple and practical algorithm for differentially private
    data release", NIPS. There the number of rows is public; here it is bought.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Final

import numpy as np

from dpmodels.evaluation.algorithms.identity import noisy
from dpmodels.noise import source
from dpmodels.noise.finite import draw_finite
from dpmodels.typing import Floats, Integers

ROUNDS: Final = 10
# Of the budget, for the number of rows.
TOTAL: Final = 1 / 20
# Times that all answers are gone through after each round.
_PASSES: Final = 20


def mwem(counts: Integers, eps: float) -> Floats:
    """Return a table of the noisy total that agrees with ten noisy counts of ranges."""
    exact = counts.ravel().cumsum()
    total = max(float(noisy(exact[-1:], 1 / (TOTAL * eps))[0]), 1.0)
    share = (1 - TOTAL) * eps / (2 * ROUNDS)
    table = np.full(exact.size, total / exact.size)
    answers: dict[int, float] = {}
    for _ in range(ROUNDS):
        levels = -scores(exact, table)
        chosen = draw_finite(levels, Fraction(share) / 2, source())
        answers[chosen] = float(noisy(exact[chosen : chosen + 1], 1 / share)[0])
        table = _moved(table, answers, total)
    return table.reshape(counts.shape)


def scores(exact: Integers, table: Floats) -> Integers:
    """Return how far each count of rows up to a cell is from that of a released table."""
    return np.asarray(np.abs(exact - np.rint(table.cumsum()).astype(np.int64)))


def _moved(table: Floats, answers: dict[int, float], total: float) -> Floats:
    """Multiply the weights of the cells of each query by an exponential of what it lacks."""
    for _ in range(_PASSES):
        for last, answer in answers.items():
            lacking = (answer - table[: last + 1].sum()) / (2 * total)
            table[: last + 1] *= math.exp(min(max(lacking, -1.0), 1.0))
            table *= total / table.sum()
    return table
