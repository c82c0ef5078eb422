"""Counts of a plane: least squares by brute force, any order of cells, whole and adding up."""

import numpy as np
import pytest

import dpmodels as dp
from dpmodels.mechanisms.counts import Gaussian, Geometric, Grid
from dpmodels.mechanisms.protocol import CountFacts
from dpmodels.noise import source
from dpmodels.postprocess.ordered import numbers, ordered
from dpmodels.postprocess.plane import plane
from dpmodels.privacy import ZCDP, PureDP, adjacency
from dpmodels.statistics import Statistic

SHAPE = (2, 6, 5)


def released(strategy, guarantee, relation="replace", shape=SHAPE, most=9, seed=3):
    rng = np.random.default_rng(1)
    exact = rng.integers(0, most, np.prod(shape) + 1)
    facts = CountFacts(1, exact.size, False, adjacency(relation), shape)
    plan = strategy.plan(facts, guarantee)
    with dp.simulation(seed=seed):
        statistic = Statistic("counts", exact.astype(object), int(exact.sum()))
        return exact, strategy.release(statistic, plan, source())


@pytest.mark.parametrize("relation", ["replace", "add-remove"])
def test_counts_are_the_least_squares_of_all_nodes(relation):
    _, release = released(Grid(side=2), PureDP(1.0), relation)
    counts = ordered(release, SHAPE)
    blocks = plane(SHAPE[1:], 2)
    cells = np.eye(30)[:, blocks.order]
    t = np.concatenate(blocks.hierarchy.sums(cells), axis=-1).T
    design = np.zeros((2 * len(t) + 1, 61))
    design[: len(t), :30] = design[len(t) : -1, 30:60] = t
    design[-1, -1] = 1.0
    values, total = release.values, np.ones(61)
    solved, inverse = np.linalg.lstsq(design, values)[0], np.linalg.inv(design.T @ design)
    if relation == "replace":
        gap = (release.rows - solved.sum()) / (total @ inverse @ total)
        solved = solved + gap * inverse @ total
        inverse = inverse - np.outer(inverse @ total, inverse @ total) / (total @ inverse @ total)
    assert counts.cells.ravel() == pytest.approx(solved[:-1])
    assert counts.incomplete == pytest.approx(solved[-1])
    weights = np.random.default_rng(2).normal(size=(3, 30))
    by_group = np.array([0.0, 1.0, -0.5])
    columns = np.column_stack([weights, np.repeat(by_group[:, None], 30, axis=1), np.zeros(3)])
    variance = np.einsum("ki,ij,kj->k", columns, inverse, columns)
    assert counts.spread(weights, by_group).squares == pytest.approx(variance)
    marginal = counts.along(np.zeros(()), np.ones(()), np.zeros(()))
    assert marginal.squares == pytest.approx(np.diag(inverse)[:30])


@pytest.mark.parametrize("strategy", [Grid(side=2), Geometric(), Gaussian()], ids=repr)
def test_whole_counts_are_near_add_up_and_are_not_negative(strategy):
    shape = (1, 40, 40)
    exact, release = released(strategy, ZCDP(0.5), shape=shape, most=2)
    counts = ordered(release, shape)
    totals = counts.whole
    assert totals.dtype.kind == "i"
    assert totals.min() >= 0
    assert totals.sum() == release.rows
    for rows, columns in ((slice(3, 30), slice(5, 40)), (slice(0, 20), slice(0, 20))):
        inside = np.zeros(shape[1:])
        inside[rows, columns] = 1.0
        sd = release.noise_sd * np.sqrt(counts.spread(inside.ravel()).squares)
        expected = inside.ravel() @ exact[:-1]
        # Cutting at 0 cell by cell would add hundreds of rows to these sums.
        assert abs(inside.ravel() @ totals[:-1] - expected) <= 6 * sd
        assert abs(inside.ravel() @ counts.cells[0] - expected) <= 6 * sd


def test_a_huge_budget_gives_the_counts_in_their_places():
    for strategy in (Grid(side=2), Grid(), Geometric()):
        exact, release = released(strategy, PureDP(1e8))
        counts = ordered(release, SHAPE)
        assert counts.cells.ravel() == pytest.approx(exact[:-1])
        assert counts.whole.tolist() == exact.tolist()


def test_numbers_are_those_of_the_plane():
    for side in (None, 2, 3):
        _, release = released(Grid(side=side), PureDP(1.0))
        assert numbers(release) == len(release.values)
