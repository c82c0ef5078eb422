"""The declared sensitivity against a search for the worst pair of rows."""

import math
from itertools import product

import numpy as np
import pytest
from scipy.optimize import minimize

from dpmodels.privacy import adjacency
from dpmodels.statistics import MomentWeights, moment_sensitivity, moment_weights

REPLACE, ADD_REMOVE = adjacency("replace"), adjacency("add-remove")
STARTS = 12


def added(row, weights):
    """What a row of the unit ball adds to the weighted moments, in isometric coordinates."""
    upper = np.triu_indices(len(row), 1)
    second = np.outer(row, row)
    parts = [np.diagonal(second), math.sqrt(2) * second[upper], weights.mean * row]
    return np.concatenate([[weights.count], *parts])


def held(point):
    """Any point, brought into the unit ball."""
    return point / max(1.0, float(np.linalg.norm(point)))


def furthest(columns, weights, relation):
    """The largest change of the weighted moments that a search over pairs of rows finds."""

    def between(points):
        x, y = (held(point) for point in points.reshape(2, columns))
        return -float(np.linalg.norm(added(x, weights) - added(y, weights)))

    def alone(point):
        return -float(np.linalg.norm(added(held(point), weights)))

    rng = np.random.default_rng(columns)
    starts = rng.normal(size=(STARTS, 2 * columns))
    norms = [-alone(start[:columns]) for start in starts]
    if relation is REPLACE:
        norms += [
            -minimize(between, start, method="Powell", options={"xtol": 1e-7, "ftol": 1e-12}).fun
            for start in starts
        ]
    return max(norms)


@pytest.mark.parametrize(
    "relation", [REPLACE, ADD_REMOVE], ids=lambda relation_of_case: relation_of_case.name
)
@pytest.mark.parametrize("centred", [True, False])
@pytest.mark.parametrize("columns", [2, 3, 5])
def test_the_chosen_weights_have_the_declared_sensitivity(relation, centred, columns):
    weights = moment_weights(relation, centred=centred)
    declared = moment_sensitivity(relation, weights)
    norm = furthest(columns, weights, relation)
    assert norm <= declared * (1 + 1e-12)
    assert norm >= declared * (1 - 1e-6)


@pytest.mark.parametrize(
    "relation", [REPLACE, ADD_REMOVE], ids=lambda relation_of_case: relation_of_case.name
)
@pytest.mark.parametrize(("count", "mean"), list(product((0.0, 0.3, 3.0), (0.0, 0.4, 1.0, 1.41))))
def test_any_weights_have_the_declared_sensitivity(relation, count, mean):
    weights = MomentWeights(count, mean)
    declared = moment_sensitivity(relation, weights)
    norm = furthest(2, weights, relation)
    assert norm <= declared * (1 + 1e-12)
    assert norm >= declared * (1 - 1e-6)


@pytest.mark.product
@pytest.mark.parametrize("mean", [2.0, 5.0])
def test_a_heavy_mean_is_moved_farthest_by_opposite_rows(mean):
    weights = MomentWeights(1.0, mean)
    norm = furthest(3, weights, REPLACE)
    assert norm == pytest.approx(moment_sensitivity(REPLACE, weights), rel=1e-6)
    assert norm <= moment_sensitivity(REPLACE, weights) * (1 + 1e-12)


def test_one_column_is_within_the_bound():
    for relation, centred in product((REPLACE, ADD_REMOVE), (True, False)):
        weights = moment_weights(relation, centred=centred)
        assert furthest(1, weights, relation) <= moment_sensitivity(relation, weights) + 1e-12


def test_the_numbers_of_the_theory():
    def declared(relation, centred):
        return moment_sensitivity(relation, moment_weights(relation, centred=centred))

    assert declared(REPLACE, False) == pytest.approx(math.sqrt(2), rel=1e-15)
    assert declared(REPLACE, True) == pytest.approx(1.25 * math.sqrt(2), rel=1e-15)
    assert declared(ADD_REMOVE, False) == pytest.approx(math.sqrt(1.25), rel=1e-15)
    assert declared(ADD_REMOVE, True) == pytest.approx(math.sqrt(1.75), rel=1e-15)


def test_the_count_is_free_where_n_is_public():
    for centred in (True, False):
        weights = moment_weights(REPLACE, centred=centred)
        without = MomentWeights(0.0, weights.mean)
        assert weights.count >= 1
        assert moment_sensitivity(REPLACE, weights) == pytest.approx(
            moment_sensitivity(REPLACE, without), rel=1e-15
        )
        heavier = MomentWeights(weights.count * 1.001, weights.mean)
        assert moment_sensitivity(REPLACE, heavier) > moment_sensitivity(REPLACE, without)


def test_no_sum_is_weighed_where_none_is_released():
    for relation in (REPLACE, ADD_REMOVE):
        assert moment_weights(relation, centred=False).mean == 0
        assert moment_weights(relation, centred=True).mean == math.sqrt(0.5)
