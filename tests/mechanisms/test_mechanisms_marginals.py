"""Noise on the largest margins: brute force, and the estimate against dense least squares."""

from itertools import product

import numpy as np
import pytest

import dpmodels as dp
from dpmodels.mechanisms.margins import Marginals
from dpmodels.mechanisms.protocol import MarginFacts
from dpmodels.noise import discrete_laplace, source
from dpmodels.postprocess.residuals import cells, components, rebuilt, split
from dpmodels.privacy import PureDP, adjacency
from dpmodels.statistics import Statistic

SIZES, TERMS = (3, 4, 2, 3), ((0,), (0, 1), (1, 2), (3,))
LARGEST = ((3,), (0, 1), (1, 2))


def counted(rows):
    """The counts of the largest margins, by hand."""
    tables = []
    for term in LARGEST:
        table = np.zeros([SIZES[i] for i in term])
        for row in rows:
            table[tuple(row[i] for i in term)] += 1
        tables.append(table.ravel())
    return np.concatenate(tables)


@pytest.mark.parametrize("name", ["add-remove", "replace"])
def test_neighbours_move_the_counts_as_far_as_declared(name):
    relation = adjacency(name)
    plan = Marginals().plan(MarginFacts(SIZES, TERMS, relation), PureDP(1.0))
    (event,) = plan.events
    rows = [(0, 0, 0, 0), (2, 3, 1, 2), (1, 1, 1, 1)]
    start = counted([*rows, (0, 0, 0, 0)] if relation.n_public else rows)
    distance = [np.abs(counted([*rows, row]) - start).sum() for row in product(*map(range, SIZES))]
    assert max(distance) == event.count == len(LARGEST) * (2 if relation.n_public else 1)
    assert event.multiplier <= plan.scales[0] == pytest.approx(event.count)


@pytest.mark.parametrize("name", ["add-remove", "replace"])
def test_the_estimate_is_dense_least_squares(name):
    """By the pseudo-inverse, with the number of rows as a constraint where it is public."""
    relation = adjacency(name)
    facts = MarginFacts(SIZES, TERMS, relation)
    plan = Marginals().plan(facts, PureDP(1.0))
    rng = np.random.default_rng(2)
    rows = [tuple(rng.integers(0, size) for size in SIZES) for _ in range(40)]
    exact = counted(rows).astype(int).astype(object)
    with dp.simulation(seed=3):
        noisy = exact + discrete_laplace(plan.scales[0], exact.size, source()).astype(object)
    with dp.simulation(seed=3):
        release = Marginals().release(Statistic("margins", exact, 40), plan, source())
    every = list(product(*map(range, SIZES)))
    design = np.array([counted([cell]) for cell in every]).T
    weights = np.ones(len(noisy))
    if relation.n_public:
        design = np.vstack([design, np.ones(len(every))])
        noisy, weights = np.append(noisy, 40), np.append(weights, 1e8)
    dense = np.linalg.lstsq(weights[:, None] * design, weights * noisy.astype(float), rcond=None)[0]
    full = dense.reshape(SIZES)
    parts = split(release.values, components(TERMS), SIZES)
    for term in TERMS:
        expected = full.sum(axis=tuple(i for i in range(4) if i not in term))
        np.testing.assert_allclose(rebuilt(term, parts, SIZES), expected, atol=1e-4)
    assert release.values.size == sum(cells(part, SIZES) for part in components(TERMS))
