"""Graphs of what a model misses; rows without missing values; margins along many cliques."""

import math
import time
from itertools import combinations

import numpy as np
import pytest

from dpmodels.postprocess.graphical.fit import fit_model
from dpmodels.postprocess.graphical.measurements import Residuals, centred_table, without_missing
from dpmodels.postprocess.graphical.model import GraphicalModel
from dpmodels.postprocess.graphical.selection import choose_structure, missed_pairs
from dpmodels.postprocess.graphical.structure import structure_of
from dpmodels.postprocess.residuals import components, crossed, summed

SIZES = (4, 4, 4, 4)
EVERY = tuple(range(len(SIZES)))
PAIRS = tuple(combinations(EVERY, 2))


def released_from(table, sd, seed=0, terms=PAIRS):
    generator = np.random.default_rng(seed)
    tables = {}
    for part in components(terms):
        counts = summed(table, tuple(range(table.ndim)), part)
        tables[part] = centred_table(counts + sd * generator.normal(size=counts.shape))
    return Residuals(table.shape, tables, dict.fromkeys(tables, sd))


def chained(agreement=0.8, n_rows=100_000.0):
    """Counts of a chain of four variables without missing values, their last level."""
    step = np.full((3, 3), (1 - agreement) / 2)
    np.fill_diagonal(step, agreement)
    table = np.zeros(SIZES)
    table[:3, :3, :3, :3] = np.einsum("ab,bc,cd->abcd", step / 3, step, step) * n_rows
    return table


def test_dependence_that_the_model_explains_is_not_joined():
    """The ends of a chain depend on each other, and its edges explain that.

    Three pairs are explained in each of six releases. Of 48 in sixteen others 7 were joined, as the
    model has noise of its own; with 15 % of them, 12 of 18 have a probability below 1e-6.
    """
    chain, explained = {(0, 1), (1, 2), (2, 3)}, 0
    for seed in range(6):
        released = released_from(chained(), 20.0, seed)
        alone = fit_model(released, structure_of((), SIZES))
        assert {(0, 2), (1, 3)} <= set(missed_pairs(released, alone))
        edges = set(choose_structure(released).edges)
        assert chain <= edges
        explained += len(edges - chain)
    assert explained < 12


def test_a_pair_that_nothing_explains_is_missed():
    table = chained()
    table[0, :, :, 0] += 3_000
    released = released_from(table, 20.0)
    chain = fit_model(released, structure_of([(0, 1), (1, 2), (2, 3)], SIZES))
    assert set(missed_pairs(released, chain)) >= {(0, 3)}
    assert (0, 3) in choose_structure(released).edges


@pytest.mark.parametrize("part", [(0,), (0, 1), (0, 1, 2)])
def test_components_without_a_level_have_the_stated_mean_and_noise(part):
    """Of variables without rows in the last level: P C Pᵀ by matrices, and exact tables."""
    n_levels = [SIZES[i] for i in part]
    centring = crossed(np.eye(n) - 1 / n for n in n_levels)
    left_out = crossed(np.eye(n)[:-1] for n in n_levels)
    smaller = crossed(np.eye(n - 1) - 1 / (n - 1) for n in n_levels)
    covariance = smaller @ left_out @ centring @ left_out.T @ smaller.T
    np.testing.assert_allclose(covariance, smaller, atol=1e-12)
    complete = without_missing(released_from(chained(), 0.0, terms=[EVERY]))
    assert complete.sizes == (3,) * 4
    exact = centred_table(summed(chained()[:3, :3, :3, :3], EVERY, part))
    np.testing.assert_allclose(complete.tables[part], exact, atol=1e-8)


def test_missing_values_that_are_detected_have_cells():
    table = chained()
    table[3, 0, 0, 0] = 500.0
    released = released_from(table, 5.0)
    assert without_missing(released).sizes == (4, 3, 3, 3)
    model = fit_model(released, choose_structure(released))
    assert model.table((0,))[3] == pytest.approx(500, abs=50)
    assert [float(model.table((i,))[3]) for i in (1, 2, 3)] == [0.0] * 3
    assert model.table((0, 3)).sum() == pytest.approx(model.n_rows)


def test_a_margin_of_empty_levels_is_empty():
    """Separators have no rows in them, nor do the tables between."""
    tables = [np.zeros((3, 3)) for _ in range(3)]
    for table in tables:
        table[:2, :2] = 25.0
    tree = structure_of([(0, 1), (1, 2), (2, 3)], (3,) * 4)
    margin = GraphicalModel(tree, 100.0, tuple(tables)).table((0, 3))
    np.testing.assert_allclose(margin[:2, :2], 25.0)
    assert not margin[2].any()
    assert not margin[:, 2].any()


@pytest.mark.product
@pytest.mark.parametrize("shape", ["chain", "star"])
def test_graphs_of_a_thousand_variables(shape):
    """A margin of the ends of 1,000 variables, in seconds; it took minutes once."""
    edges = [(i if shape == "chain" else 0, i + 1) for i in range(999)]
    start = time.process_time()
    tree = structure_of(edges, (2,) * 1_000)
    table = np.array([[0.499, 0.001], [0.001, 0.499]])
    model = GraphicalModel(tree, 1.0, (table,) * len(tree.cliques))
    margin = model.table((1, 999))
    assert time.process_time() - start < 20
    n_steps = 998 if shape == "chain" else 2
    same = 0.25 + 0.25 * math.pow(0.996, n_steps)
    np.testing.assert_allclose(margin, [[same, 0.5 - same], [0.5 - same, same]], rtol=1e-9)
