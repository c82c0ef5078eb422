"""The number of complete rows and their sum, released apart from the second moment."""

from __future__ import annotations

import math
from typing import NamedTuple

from dpmodels.mechanisms.protocol import Facts

# Of the budget, without and with the sum of the rows: choices.
COUNT_SHARE = {False: 0.02, True: 0.15}


class CountNoise(NamedTuple):
    """Scales of the noise in the number of rows and their sum, in units of the ball."""

    rows: float
    total: float


def gaussian_count(facts: Facts, multiplier: float) -> CountNoise:
    """Return the noise of one Gaussian release of the count and, if centred, the sum.

    `multiplier` is the noise scale over the L2 sensitivity; nan stands for a sum not released.

    A complete row x of the unit ball adds ``(w, x)``, an incomplete one 0. The count alone moves
    by at most 1. With the sum, two complete rows are at most 2 apart and a row is ``√(w² + 1)``
    long: under ``replace`` the sensitivity is 2, up to w = √3 at no cost; under ``add-remove`` it
    is ``√(5/4)`` for w = 1/2.
    """
    if not facts.centred:
        return CountNoise(multiplier, math.nan)
    if facts.adjacency.n_public:
        return CountNoise(2 * multiplier / math.sqrt(3), 2 * multiplier)
    scale = math.sqrt(1.25) * multiplier
    return CountNoise(2 * scale, scale)


def laplace_count(facts: Facts, eps: float) -> CountNoise:
    """Return the noise of one Laplace release of the count and, if centred, the sum.

    `eps` is of both together.

    A row of the unit ball has an L1 norm of at most ``√d``, d columns. With weights (w, 1) for
    count and sum, an added row moves them by at most ``w + √d`` and two complete rows are at most
    ``2√d`` apart: under ``replace`` ``w = √d`` is free, under ``add-remove`` ``w = √d/4`` costs a
    quarter.
    """
    if not facts.centred:
        return CountNoise(1 / eps, math.nan)
    length = math.sqrt(facts.columns)
    if facts.adjacency.n_public:
        return CountNoise(2 / eps, 2 * length / eps)
    return CountNoise(5 / eps, 1.25 * length / eps)
