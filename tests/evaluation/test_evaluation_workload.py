"""Workloads answer for all cells at once what their queries answer one by one."""

import math
from itertools import combinations, product

import numpy as np
import pytest

from dpmodels.errors import ArgumentError
from dpmodels.evaluation.recipe import WORKLOADS, margins


def boxes(domain, last=None):
    """The matrix of all boxes of cells, or of those that begin up to a last cell on each axis."""
    ends = [
        [(low, high) for low, high in combinations(range(n + 1), 2) if last is None or low <= last]
        for n in domain
    ]
    rows = np.zeros((math.prod(map(len, ends)), *domain))
    for row, corner in zip(rows, product(*ends), strict=True):
        row[tuple(slice(*pair) for pair in corner)] = 1.0
    return rows.reshape(len(rows), -1)


MATRICES = {
    "prefix": lambda domain: boxes(domain, last=0),
    "ranges": boxes,
    "identity": lambda domain: np.eye(math.prod(domain)),
}


@pytest.mark.parametrize("domain", [(7,), (3, 4), (2, 3, 2)])
@pytest.mark.parametrize("name", MATRICES)
def test_lengths_are_those_of_the_matrix(name, domain):
    matrix, workload = MATRICES[name](domain), WORKLOADS[name](domain)
    first, second = np.random.default_rng(1).normal(size=(2, *domain))
    assert workload.queries == len(matrix)
    images = workload.image(first), workload.image(second)
    answers = matrix @ first.ravel(), matrix @ second.ravel()
    for left, right in product(range(2), repeat=2):
        assert images[left] @ images[right] == pytest.approx(answers[left] @ answers[right])
    assert workload.error(images[0], 50) == pytest.approx(
        np.linalg.norm(answers[0]) / (len(matrix) * 50)
    )


@pytest.mark.parametrize("domain", [(9,), (5, 6)])
def test_random_ranges_are_sums_of_boxes_of_one_cell_or_more(domain):
    workload = WORKLOADS["random"](domain)
    ones = workload.image(np.ones(domain))
    assert ones.shape == (workload.queries,) == (2_000,)
    assert ones.min() >= 1
    assert ones.max() <= math.prod(domain)
    matrix = boxes(domain)
    values = np.random.default_rng(2).normal(size=domain)
    answers = matrix @ values.ravel()
    assert all(np.abs(answers - answer).min() < 1e-9 for answer in workload.image(values)[:50])
    np.testing.assert_array_equal(workload.image(values), WORKLOADS["random"](domain).image(values))


def test_marginals_are_sums_over_the_other_axes():
    workload = WORKLOADS["marginals"]((2, 3, 4))
    table = np.arange(24.0).reshape(2, 3, 4)
    assert workload.queries == 2 + 3 + 4 + 6 + 8 + 12 == workload.image(table).size
    np.testing.assert_allclose(workload.image(table)[:2], table.sum(axis=(1, 2)))
    np.testing.assert_allclose(workload.image(table)[9:15], table.sum(axis=2).ravel())
    assert margins(3)[3:] == [(0, 1), (0, 2), (1, 2)]


def test_one_variable_has_no_marginals():
    with pytest.raises(ArgumentError, match='write error="identity"'):
        WORKLOADS["marginals"]((8,))
