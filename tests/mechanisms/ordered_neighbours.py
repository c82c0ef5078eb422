"""All tables of cells in an order that differ in one row, and what a mechanism would release."""

from itertools import permutations

import numpy as np
import pytest

from dpmodels.mechanisms import count_noise
from dpmodels.mechanisms.protocol import CountFacts
from dpmodels.noise import seeded
from dpmodels.privacy import adjacency
from dpmodels.statistics import Statistic

SHAPES = ((1, 2), (1, 5), (1, 8), (2, 3), (2, 4))


def facts_of(shape, relation):
    groups, cells = shape
    return CountFacts(1, groups * cells + 1, False, adjacency(relation), shape)


def farthest(strategy, plan):
    """The largest distances in L1 and L2 norm, and of one number, in units of the noise scale.

    Counts of cells, and of incomplete rows, are those of any neighbours whatever the other rows:
    all numbers are sums of theirs.
    """
    size = plan.facts.parts
    base = np.full(size, 3)
    if plan.facts.adjacency.n_public:
        rows = [
            np.eye(size, dtype=int)[to] - np.eye(size, dtype=int)[of] for of, to in _pairs(size)
        ]
    else:
        rows = list(np.eye(size, dtype=int))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(count_noise, "noised_units", _exact)
        first = _released(strategy, plan, base)
        moves = np.array([_released(strategy, plan, base + row) - first for row in rows])
    units = plan.scale / plan.units_per_row
    sizes = np.abs(moves) / units
    return sizes.sum(axis=1).max(), np.sqrt((sizes**2).sum(axis=1)).max(), np.abs(moves).max()


def _pairs(size):
    return permutations(range(size), 2)


def _exact(plan, exact, entropy):
    return exact.astype(float), "laplace"


def _released(strategy, plan, counts):
    statistic = Statistic("counts", counts.astype(object), int(counts.sum()))
    return strategy.release(statistic, plan, seeded(0)).values


def declared(events, power):
    return sum(event.count / event.multiplier**power for event in events) ** (1 / power)
