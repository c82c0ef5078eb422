"""Moments for least squares, and the ridge of AdaSSP: sensitivity, noise, composition."""

import math

import numpy as np
import pytest
from scipy.stats import chi2

from dpmodels.errors import ArgumentError, BudgetError
from dpmodels.mechanisms import Facts, Gauss, Laplace
from dpmodels.mechanisms.regression.moments import CHANCE, SENSITIVITY, SMALLEST, AdaSSP, Moments
from dpmodels.noise import source
from dpmodels.noise.entropy import simulation
from dpmodels.privacy import (
    ZCDP,
    ApproxDP,
    GaussianEvent,
    PureDP,
    adjacency,
    compose_gaussians,
    gaussian_multiplier,
)
from dpmodels.statistics import Statistic, moment_sensitivity, moment_weights

RELATIONS = ("replace", "add-remove")
USUAL = ApproxDP(1.0, 1e-6)


def facts(columns=4, relation="replace"):
    return Facts(columns, adjacency(relation), centred=True)


def weighted_rows(rng, count, columns):
    """Rows of the ball and weights, with the corners where neighbours are farthest."""
    rows = rng.normal(size=(count, columns))
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    shares = rng.choice([0.0, 1.0, 0.3, 0.9], size=count)
    return rows * rng.choice([1.0, 1.0, 0.5], size=(count, 1)), shares


def added(row, share, weights):
    """What a row of some weight adds, in isometric coordinates."""
    square = np.outer(row, row)
    upper = np.triu_indices(len(row), 1)
    parts = ([weights.count], weights.mean * row, np.diag(square), math.sqrt(2) * square[upper])
    return share * np.concatenate(parts)


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("columns", [1, 3])
def test_weighted_neighbours_stay_within_the_sensitivity(relation, columns):
    rng = np.random.default_rng(4)
    related = adjacency(relation)
    weights = moment_weights(related, centred=True)
    bound = moment_sensitivity(related, weights)
    rows, shares = weighted_rows(rng, 400, columns)
    points = np.array([added(*pair, weights) for pair in zip(rows, shares, strict=True)])
    distance = np.linalg.norm(points, axis=1).max()
    if related.n_public:
        distance = np.linalg.norm(points[:, None] - points[None], axis=2).max()
    assert 0.85 * bound < distance <= bound * (1 + 1e-12)


@pytest.mark.parametrize(
    ("guarantee", "twin"), [(USUAL, Gauss()), (ZCDP(0.3), Gauss()), (PureDP(1.0), Laplace())]
)
@pytest.mark.parametrize("relation", RELATIONS)
def test_moments_are_planned_like_their_twins(guarantee, twin, relation):
    first, second = (
        mechanism.plan(facts(4, relation), guarantee) for mechanism in (Moments(), twin)
    )
    assert (first.events, first.steps, first.lattice) == (
        second.events,
        second.steps,
        second.lattice,
    )


@pytest.mark.parametrize("guarantee", [USUAL, PureDP(1.0)], ids=str)
def test_moments_have_the_noise_they_state(guarantee):
    plan = Moments().plan(facts(), guarantee)
    zero = Statistic("zeros", np.zeros((5, 5), dtype=object), 7)
    with simulation(seed=2):
        releases = [Moments().release(zero, plan, source()) for _ in range(800)]
    upper = np.triu_indices(4, 1)
    off = np.array([release.second[upper] for release in releases]).ravel() / releases[0].noise.off
    if guarantee == USUAL:
        # A chi-squared of 4800 degrees: a false alarm at 1e-6 on either side.
        assert chi2.isf(1 - 1e-6, off.size) < (off**2).sum() < chi2.isf(1e-6, off.size)
    else:
        # Squares of unit Laplace noise have variance 5: 5 standard errors, 6e-7.
        assert (off**2).mean() == pytest.approx(1, abs=5 * math.sqrt(5 / off.size))


@pytest.mark.parametrize("guarantee", [USUAL, ZCDP(0.3)], ids=str)
def test_adassp_composes_to_what_was_asked(guarantee):
    plan = AdaSSP(share=0.3).plan(facts(), guarantee)
    assert all(isinstance(event, GaussianEvent) for event in plan.events)
    multiplier = compose_gaussians([event.multiplier for event in plan.events])
    assert multiplier == pytest.approx(gaussian_multiplier(guarantee), rel=1e-12)
    smallest = plan.scales[SMALLEST] / (SENSITIVITY * plan.lattice.radius**2)
    assert smallest == pytest.approx(plan.events[0].multiplier, rel=1e-6)


def test_neighbours_move_the_smallest_eigenvalue_by_at_most_two():
    rng = np.random.default_rng(8)
    largest = 0.0
    for columns in (1, 2, 4):
        for _ in range(400):
            rows, _ = weighted_rows(rng, 3 * columns, columns)
            matrix = np.column_stack([np.ones(len(rows)), rows])
            changed = matrix.copy()
            changed[0, 1:] = rng.choice([-1, 1]) * rows[-1]
            gone = matrix[1:]
            values = [np.linalg.eigvalsh(table.T @ table)[0] for table in (matrix, changed, gone)]
            largest = max(largest, np.ptp(values))
    assert 0.3 < largest <= SENSITIVITY


def exact_moments(second, count, plan):
    """Integers of rows that have mean zero."""
    size = len(second) + 1
    moments = np.zeros((size, size), dtype=object)
    moments[0, 0] = int(count * plan.lattice.radius**2)
    moments[1:, 1:] = np.array([[round(v * plan.lattice.steps**2) for v in r] for r in second])
    return Statistic("moments", moments, count)


def test_the_ridge_is_there_where_the_eigenvalue_is_small_and_only_there():
    plan = AdaSSP().plan(facts(), USUAL)
    strong = exact_moments(np.diag([4e4, 5e4, 6e4, 5e4]), 200_000, plan)
    weak = exact_moments(np.diag([1.0, 5e4, 6e4, 5e4]), 200_000, plan)
    with simulation(seed=5):
        strong_release, ridged = (
            AdaSSP().release(statistic, plan, source()) for statistic in (strong, weak)
        )
    assert np.array_equal(strong_release.estimate, strong_release.second)
    lift = ridged.estimate - ridged.second
    limit = ridged.noise.off * math.sqrt(3 * math.log(2 * 9 / CHANCE))
    assert np.array_equal(lift, np.diag(np.diagonal(lift)))
    assert np.diagonal(lift)[:3] == pytest.approx(np.full(3, lift[0, 0]), rel=1e-9)
    assert 0 < lift[0, 0] <= limit * (1 + 1e-12)
    assert lift[3, 3] == 0


def test_adassp_refuses_pure_guarantees_and_shares():
    with pytest.raises(BudgetError):
        AdaSSP().plan(facts(), PureDP(1.0))
    with pytest.raises(ArgumentError, match="share="):
        AdaSSP(share=1.0)


def test_a_response_alone_has_no_ridge():
    plan = AdaSSP().plan(facts(1), USUAL)
    with simulation(seed=5):
        release = AdaSSP().release(exact_moments(np.array([[3e3]]), 9_000, plan), plan, source())
    assert np.array_equal(release.estimate, release.second)
